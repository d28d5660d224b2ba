"""The steps of augmentation with models in memory: answers, questions, what is kept, passages, and files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.full_disk import full_disk
from tests.support.understanding_runs import codec, small_model
from unified.data import randomness
from unified.runtime import progress
from unified.tasks.augmentation import pipeline
from unified.tasks.augmentation.entities import Entity, entities_by_rules
from unified.tasks.augmentation.negatives import negatives, swaps
from unified.tasks.augmentation.outcome import counted, write_squad
from unified.tasks.augmentation.passages import Passage, sample_passages
from unified.tasks.augmentation.pipeline import COUNTS, GENERATED, Models, Pipeline
from unified.tasks.augmentation.questions import Asking, candidate_answers, kept_questions
from unified.tasks.augmentation.stages import Stages
from unified.tasks.datasets.squad_json import read_squad_file
from unified.tasks.heads.questions import QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.prediction import Predictor

# ---------------------------------------------------------------- answers and questions


def test_the_best_spans_without_a_question_are_candidates(monkeypatch):
    task = SpanAnswers((), max_answer=4, nbest=7)
    predictor = Predictor(small_model(task, codec(64)), "task", task, codec(64))
    passages = ["w1 w2 w3 w4 w5", "w9 w8"]
    found = candidate_answers(predictor, passages, 3)
    listing = Predictor(predictor.model, "task", SpanAnswers((), max_answer=4, nbest=3), predictor.codec)
    expected = listing.predict([QuestionItem(str(i), "[UNK]", text) for i, text in enumerate(passages)])
    for some, one in zip(found, expected, strict=True):
        assert some == [{name: span[name] for name in ("text", "start", "probability")} for span in one["nbest"]]
    assert len(found[0]) == 3
    told = [{"text": "the", "start": 3, "probability": 0.5}, {"text": "a b", "start": 5, "probability": 0.3, "x": 1},
            {"text": "yes", "probability": 0.2}]  # fmt: skip
    monkeypatch.setattr(Predictor, "predict", lambda self, items: ({"nbest": told} for _ in items))
    assert candidate_answers(predictor, ["p"], 3) == [[{"text": "a b", "start": 5, "probability": 0.3}]]


@dataclass
class Writes:
    """A model that writes a question of the source that it is shown, and nothing for the answer "w5"."""

    asked: list = field(default_factory=list)

    def encode(self, text: str) -> list[str]:
        return text.split()

    def generate(self, sources, **options):
        self.asked.append((sources, options))
        return [" " if answer == "w5" else f" {window} -> {answer}?\n" for window, answer in sources]


def test_a_question_is_written_for_each_answer_that_fits():
    model = Writes()
    asking = Asking(model, 6, {"beam": 3})
    answers = [[{"text": "w3", "start": 6}, {"text": "w2 w3 w4", "start": 3}, {"text": "w5", "start": 12}], [],
               [{"text": "w9", "start": 0}]]  # fmt: skip
    found = asking(["w1 w2 w3 w4 w5 w6", "w7", "w9 w8"], answers)
    # Of six tokens, the separator and the answer leave four to the window; three do not stand in it twice.
    assert found == [["w1 w2 w3 w4 -> w3?", None, None], [], ["w9 w8 -> w9?"]]
    [(sources, options)] = model.asked
    assert len(sources) == 3 and options == {"prompt": False, "max_source": 0, "beam": 3}
    assert Asking(Writes(), 6, {})(["w7"], [[]]) == [[]]
    silent = Writes()
    assert Asking(silent, 2, {})(["w1 w2"], [[{"text": "w1 w2", "start": 0}]]) == [[None]] and silent.asked == []


class Reads:
    """A reader that answers by a table, and notes what it is asked."""

    def __init__(self, answers: dict[str, dict]):
        self.answers, self.items = answers, []

    def predict(self, items) -> Iterator[dict]:
        for item in items:
            self.items.append(item)
            yield self.answers[item.question]


def test_questions_are_kept_whose_answers_agree():
    reader = Reads({
        "who?": {"answer": "Ada Berg", "start": 3},
        "when?": {"answer": "1867", "start": 9},
        "why?": {"answer": "yes"},
        "where?": {"answer": "Oslo", "start": 1},
    })  # fmt: skip
    candidates = [
        [{"text": text} for text in ("Bob", "the Ada", "Ada Berg", "1901", "so", "x")],
        [{"text": "Oslo"}, {"text": "Rome"}],
        [],
    ]
    questions = [["who?", "who?", "who?", "when?", "why?", None], ["where?", "where?"], []]
    found = kept_questions(reader, ["p", "q", "r"], candidates, questions, 2 / 3)
    assert found == [
        [{"question": "who?", "text": "Ada Berg", "start": 3, "candidate": "the Ada", "f1": pytest.approx(2 / 3)}],
        [{"question": "where?", "text": "Oslo", "start": 1, "candidate": "Oslo", "f1": 1.0}],
        [],
    ]
    assert reader.items == [
        QuestionItem("", question, text)
        for text, question in (("p", "who?"), ("p", "when?"), ("p", "why?"), ("q", "where?"))
    ]
    strict = kept_questions(reader, ["p"], candidates[:1], questions[:1], 0.7)
    assert [one["candidate"] for one in strict[0]] == ["Ada Berg"]


# ---------------------------------------------------------------- unanswerable questions


def test_a_share_is_of_the_draws_below_it():
    entities = entities_by_rules(["we saw Oslo and Rome"])[0]

    def made(draw: float, share: float) -> int:
        rng = SimpleNamespace(random=lambda: draw, integers=np.random.default_rng(1).integers)
        return len(negatives(["where is Oslo?"], entities, share, rng))

    assert [made(0.5, share) for share in (0.4, 0.5, 0.51, 1.0)] == [0, 0, 1, 1]
    assert made(0.0, 0.0) == 0


def test_of_overlapping_entities_the_longest_is_replaced():
    entities = entities_by_rules(["in New York and Oslo, and in York"])[0]
    assert swaps("is new york nice?", entities) == ["is Oslo nice?"]
    assert swaps("york?", entities) == ["Oslo?"] and swaps("x?", entities) == []


def test_a_longer_form_of_the_replaced_name_does_not_come_in():
    entities = entities_by_rules(["of Christ the Savior, Saint Christ, Jesus Christ Superstar, Christie and Peter"])[0]
    entities.append(Entity(0, 6, "Christ", "name"))
    assert swaps("Who was Christ?", entities) == ["Who was Christie?", "Who was Peter?"]


# ---------------------------------------------------------------- files


def rows(number: int, kept: int, *ways: str) -> tuple[dict, dict, dict]:
    text = f"é w{number} w2"
    return (
        {"id": f"0.{number}", "text": text},
        {"kept": [{"question": f"q{i}?", "text": "w2", "start": text.index("w2")} for i in range(kept)]},
        {"unanswerable": [{"question": f"{way}?", "way": way, "source": i} for i, way in enumerate(ways)]},
    )


def test_generated_questions_are_a_file_of_squad(tmp_path):
    path = tmp_path / "train.json"
    write_squad(path, [rows(0, 2, "swap"), rows(1, 0), rows(2, 1), rows(3, 0, "negation", "swap")])
    assert list(tmp_path.iterdir()) == [path] and "é" in path.read_text(encoding="utf-8")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["version"] == "v2.0"
    found = [(one.title, [(q.id, q.text, len(q.answers), q.is_impossible) for q in one.questions])
             for one in read_squad_file(path)]  # fmt: skip
    assert found == [
        ("0.0", [("0.0.0", "q0?", 1, False), ("0.0.1", "q1?", 1, False), ("0.0.0.swap", "swap?", 0, True)]),
        ("0.2", [("0.2.0", "q0?", 1, False)]),
        ("0.3", [("0.3.0.negation", "negation?", 0, True), ("0.3.1.swap", "swap?", 0, True)]),
    ]
    assert content["data"][0]["paragraphs"][0]["context"] == "é w0 w2"
    answers = [{"text": "w2", "answer_start": 2}]
    answered = {"id": "0.2.0", "question": "q0?", "answers": answers, "is_impossible": False}
    assert content["data"][1] == {"title": "0.2", "paragraphs": [{"context": "é w2 w2", "qas": [answered]}]}
    articles = ",\n".join(json.dumps(article, ensure_ascii=False) for article in content["data"])
    assert path.read_text(encoding="utf-8") == f'{{"version": "v2.0", "data": [\n{articles}\n]}}\n'
    write_squad(path, [])
    assert json.loads(path.read_text()) == {"version": "v2.0", "data": []}


def contents_on_disk(folder, monkeypatch) -> list[dict[str, bytes]]:
    """What the files of a folder hold whenever one is written to the disk for good; filled from now on."""
    seen = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append({path.name: path.read_bytes() for path in folder.iterdir()}))
    return seen


def test_a_file_of_squad_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    seen = contents_on_disk(tmp_path, monkeypatch)
    write_squad(tmp_path / "train.json", [rows(0, 1)])
    whole = (tmp_path / "train.json").read_bytes()
    assert seen == [{f".train.json.{os.getpid()}.partial": whole}, {"train.json": whole}]


def test_each_chunk_of_a_stage_is_on_the_disk_before_the_next_is_begun(tmp_path, monkeypatch):
    seen, here = contents_on_disk(tmp_path, monkeypatch), Stages(tmp_path, 2)
    here.first("a", lambda: [{"n": i} for i in range(3)])
    first = b'{"n": 0}\n{"n": 1}\n{"n": 2}\n'
    assert seen == [{f".a.jsonl.{os.getpid()}.partial": first}, {"a.jsonl": first}]
    here.run("b", ("a",), lambda chunk: [{}] * len(chunk))
    assert seen[2:] == [{"a.jsonl": first, "b.jsonl.partial": b"{}\n" * done} for done in (2, 3)]


def test_rows_are_those_that_were_written(tmp_path):
    """Models that have gone astray find answers with a probability of NaN."""
    row = {"text": "é\u2028\r\n", "probability": float("inf"), "n": [1, None]}
    here = Stages(tmp_path, 2)
    here.first("a", lambda: [row, {"probability": float("nan")}])
    (first,), (second,) = here.rows("a")
    assert first == row and np.isnan(second["probability"])


def test_what_each_stage_made_is_counted():
    made = [
        ({"answers": [1, 2, 3]}, {"questions": ["a", "a", None]}, {"kept": [1]}, {"unanswerable": [{"way": "swap"}]}),
        ({"answers": []}, {"questions": []}, {"kept": []}, {"unanswerable": []}),
        ({"answers": [1]}, {"questions": ["a"]}, {"kept": [1]},
         {"unanswerable": [{"way": "negation"}, {"way": "swap"}]}),
    ]  # fmt: skip
    assert list(counted(made).items()) == [
        ("passages", 3), ("answers", 4), ("questions", 3), ("different questions", 2), ("kept", 2), ("swap", 2),
        ("negation", 1),
    ]  # fmt: skip
    assert counted([]) == dict.fromkeys(counted(made), 0)


# ---------------------------------------------------------------- the pipeline


def test_stages_follow_one_another_and_are_done_once(tmp_path, monkeypatch, capsys):
    passages = [Passage(0, 0, "we saw Oslo and Rome"), Passage(2, 1, "then Anna came")]
    calls = []

    def candidates(predictor, texts, top):
        calls.append(("answers", predictor, list(texts), top))
        return [[{"text": text.split()[-1], "start": 0}] for text in texts]

    def asks(texts, answers):
        calls.append(("asks", list(texts), answers))
        return [["where is Rome?"] for _ in texts]

    def keeps(predictor, texts, answers, questions, least):
        calls.append(("kept", predictor, list(texts), list(answers), list(questions), least))
        return [[{"question": asked[0], "text": "Rome", "start": 16}] for asked in questions]

    monkeypatch.setattr(pipeline, "candidate_answers", candidates)
    monkeypatch.setattr(pipeline, "kept_questions", keeps)
    settings = Pipeline(top=5, min_f1=0.7, share=1.0, find_entities=entities_by_rules, seed=3)
    made = settings.run(Stages(tmp_path, 1), lambda: passages, Models("finds", asks, "reads"))
    texts = [one.text for one in passages]
    assert calls == [
        *(("answers", "finds", [text], 5) for text in texts),
        *(("asks", [text], [[{"text": text.split()[-1], "start": 0}]]) for text in texts),
        *(("kept", "reads", [text], [[{"text": text.split()[-1], "start": 0}]], [["where is Rome?"]], 0.7)
          for text in texts),
    ]  # fmt: skip
    stored = {name: [row for (row,) in Stages(tmp_path, 1).rows(name)] for name in
              ("passages", "answers", "questions", "kept", "unanswerable")}  # fmt: skip
    assert stored["passages"] == [{"id": one.id, "text": one.text} for one in passages]
    assert [one["id"] for one in stored["kept"]] == ["0.0", "2.1"] and list(stored["answers"][0]) == ["id", "answers"]
    for one, row in zip(passages, stored["unanswerable"], strict=True):
        rng = randomness.generator(3, one.document, randomness.NEGATIVES, one.paragraph)
        expected = negatives(["where is Rome?"], entities_by_rules([one.text])[0], 1.0, rng)
        assert row == {"id": one.id, "unanswerable": [vars(negative) for negative in expected]}
    assert json.loads((tmp_path / "counts.json").read_text()) == made
    assert made == counted(Stages(tmp_path, 1).rows("answers", "questions", "kept", "unanswerable"))
    assert (made["passages"], made["kept"]) == (2, 2) and made["swap"] + made["negation"] == 2
    generated = tmp_path / "generated" / "train-v2.0.json"
    assert read_squad_file(generated)[0].context == texts[0]
    # Nothing is made anew, and the models are not needed.
    before = generated.stat().st_mtime_ns
    calls.clear()
    capsys.readouterr()
    assert settings.run(Stages(tmp_path, 1), lambda: [], None) == made and calls == []
    assert generated.stat().st_mtime_ns == before and capsys.readouterr().err == ""


def test_what_is_missing_of_a_finished_run_is_made_anew(tmp_path):
    here = Stages(tmp_path, 1)
    for name, row in (("passages", {"id": "0.0", "text": "we saw é"}), ("answers", {"answers": []}),
                      ("questions", {"questions": []}), ("kept", {"kept": []})):  # fmt: skip
        here.first(name, lambda row=row: [row])
    (tmp_path / GENERATED).parent.mkdir()
    made = Pipeline(1, 0.5, 1.0, entities_by_rules, 1).run(here, list, None)
    assert (tmp_path / GENERATED).is_file() and made["passages"] == 1 and not made["kept"]
    assert (tmp_path / COUNTS).read_text() == json.dumps(made, indent=2) + "\n"
    assert here.path("passages").read_text(encoding="utf-8") == '{"id": "0.0", "text": "we saw é"}\n'


def test_a_stage_says_how_far_it_is(tmp_path, monkeypatch, capsys):
    """By the library's own line; the time left is that of the passages of this run, without those before."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    here = Stages(tmp_path, 2)
    here.first("a", lambda: [{"n": i} for i in range(1000 + 9)])
    with (tmp_path / "b.jsonl.partial").open("w") as stream:
        stream.writelines("{}\n" for _ in range(1001))
    ends = iter([100.0, 1300.0, 1305.0, 1310.0, 1311.0])  # of five chunks of two

    def work(chunk):
        now[0] = next(ends)
        return [{} for _ in chunk]

    here.run("b", ("a",), work)
    assert capsys.readouterr().err.splitlines() == [
        "b: 1,002 of 1,009 passages",
        "b: 1,004 of 1,009 passages, 0:50:00 left",  # two in 20 minutes, five to go
        "b: 1,008 of 1,009 passages, 0:03:22 left",
        "b: 1,009 of 1,009 passages, 0:00:00 left",
    ]
    assert (tmp_path / "b.jsonl").read_text() == "{}\n" * 1009


@pytest.mark.parametrize("seed", range(5))
def test_the_paragraphs_with_the_lowest_hashes_are_the_sample(tmp_path, seed):
    """A hash is of the seed and the text, so that every release draws the same ones, wherever they stand."""
    texts = ["", *(f"w{i} w2" for i in range(9))]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    found = sample_passages([str(path)], "text", 3, (1, 9), seed)
    by_hash = sorted(texts[1:], key=lambda text: hashlib.blake2b(f"{seed}\n{text}".encode(), digest_size=16).digest())
    assert found == sorted(Passage(texts.index(text), 0, text) for text in by_hash[:3])
    assert found[0].id == f"{found[0].document}.0"
    every = sample_passages([str(path)], "text", None, (1, 9), seed)
    assert every == [Passage(i, 0, texts[i]) for i in range(1, 10)]


def test_a_full_disk_names_the_output_of_the_stage(tmp_path):
    here = Stages(tmp_path, 2)
    here.first("a", lambda: [{"n": i} for i in range(3)])
    with pytest.raises(OSError, match="File too large") as raised, full_disk(5):
        here.run("b", ("a",), lambda chunk: [{}] * len(chunk))
    assert raised.value.filename == str(tmp_path / "b.jsonl")
