"""`unified augment`: every stage against a retelling by the models' plain methods, and runs that were interrupted."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import string
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.augment_models import NAMES, PLACES, asking, spans
from unified import load
from unified.cli import main
from unified.errors import UnifiedError
from unified.tasks.augmentation.entities import find_entities
from unified.tasks.augmentation.negatives import negated, swaps
from unified.tasks.augmentation.two_stages import TwoStages
from unified.tasks.catalogue import task_named
from unified.tasks.composing import ask
from unified.tasks.datasets.squad_json import misaligned_reasons, read_squad_file
from unified.tasks.heads.questions import UNASKED

TOP, LEAST, MAX_SOURCE, MAX_LENGTH = 12, 0.25, 24, 9
OPTIONS = (
    "--words", 5, 60, "--passages", 8, "--top", TOP, "--beam", 2, "--max-length", MAX_LENGTH,
    "--max-source", MAX_SOURCE, "--min-f1", LEAST, "--chunk", 3, "--unanswerable", 1.0, "--seed", 3, "--threads", 1,
)  # fmt: skip
OUTPUTS = ("passages.jsonl", "answers.jsonl", "questions.jsonl", "kept.jsonl", "unanswerable.jsonl",
           "generated/train-v2.0.json", "counts.json")  # fmt: skip


def passages(rng: np.random.Generator, count: int) -> list[str]:
    return [
        ". ".join(
            f"{rng.choice(NAMES)} was born in {rng.choice(PLACES)}, it is said; he moved in {rng.integers(1800, 1999)}"
            for _ in range(rng.integers(1, 4))
        )
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """``corpus.txt``, three models, and ``out`` of a run without a break."""
    folder = tmp_path_factory.mktemp("augment")
    (folder / "corpus.txt").write_text("\n".join(passages(np.random.default_rng(1), 15)) + "\n", encoding="utf-8")
    spans(folder / "answers", 1)
    spans(folder / "reads", 2, labels=("",))
    asking(folder / "asks", 11)
    assert run(folder, "out") == 0
    return folder


def run(folder: Path, output: str, *more, **changed) -> int:
    options = {"answers": "--answer-model", "asks": "--question-model", "reads": "--reader-model"}
    models = {name: folder / name for name in options} | changed
    roles = [word for name, path in models.items() for word in (options[name], path)]
    words = ["augment", folder / "corpus.txt", "--output", folder / output, *roles, *OPTIONS, *more]
    return main([str(word) for word in words])


def refused(capsys, *arguments, **changed) -> str:
    capsys.readouterr()
    assert run(*arguments, **changed) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    return line


def rows(folder: Path, name: str) -> list[dict]:
    return [
        json.loads(line) for line in (folder / "out" / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    ]


def official_f1(prediction: str, answer: str) -> float:
    """F1 as evaluate-v2.0.py computes it."""

    def words(text: str) -> list[str]:
        text = "".join(c for c in text.lower() if c not in set(string.punctuation))
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    common = sum((Counter(words(prediction)) & Counter(words(answer))).values())
    if not common:
        return 0.0
    precision, recall = common / len(words(prediction)), common / len(words(answer))
    return 2 * precision * recall / (precision + recall)


def test_passages_are_sampled_from_the_corpus(work):
    corpus, found = (work / "corpus.txt").read_text(encoding="utf-8").splitlines(), rows(work, "passages")
    assert len(found) == 8
    assert [corpus[int(one["id"].split(".")[1])] for one in found] == [one["text"] for one in found]


def test_answers_are_the_best_spans_to_the_empty_question(work):
    lm, told = load(work / "answers"), 0
    for passage, found in zip(rows(work, "passages"), rows(work, "answers"), strict=True):
        best = lm.answer(UNASKED, passage["text"])["nbest"][:TOP]  # the model lists 20
        listed = [(one["text"], one["start"]) for one in best if official_f1(one["text"], one["text"])]
        assert [(one["text"], one["start"]) for one in found["answers"]] == listed and found["id"] == passage["id"]
        assert all(passage["text"].startswith(one["text"], one["start"]) for one in found["answers"])
        told += len(listed)
    assert told > 50


def test_questions_are_those_that_ask_gives(work):
    lm, lost = load(work / "asks"), 0
    found = zip(rows(work, "passages"), rows(work, "answers"), rows(work, "questions"), strict=True)
    for passage, answers, questions in list(found)[:4]:
        for answer, question in zip(answers["answers"], questions["questions"], strict=True):
            try:
                told = ask(lm, passage["text"], answer["text"], start=answer["start"], max_source=MAX_SOURCE,
                              beam=2, max_length=MAX_LENGTH)  # fmt: skip
            except ValueError:
                lost += 1
                assert question is None
                continue
            assert question == (told.strip() or None)
    assert lost < 5


def test_questions_are_kept_where_the_readers_answer_agrees_and_get_it(work):
    lm, kept, dropped = load(work / "reads"), 0, 0
    found = [rows(work, name) for name in ("passages", "answers", "questions", "kept")]
    for passage, answers, questions, left in zip(*found, strict=True):
        expected = {}
        for candidate, question in zip(answers["answers"], questions["questions"], strict=True):
            if question is None:
                continue
            read = lm.answer(question, passage["text"])
            f1 = official_f1(read["answer"], candidate["text"])
            if f1 >= LEAST and question not in expected:
                expected[question] = (read["answer"], read["start"], candidate["text"], pytest.approx(f1))
            dropped += f1 < LEAST
        listed = {one["question"]: (one["text"], one["start"], one["candidate"], one["f1"]) for one in left["kept"]}
        assert listed == expected
        kept += len(listed)
    assert kept > 10 and dropped > 10


def test_unanswerable_questions_are_of_kept_ones(work):
    ways = Counter()
    for passage, kept, found in zip(*(rows(work, name) for name in ("passages", "kept", "unanswerable")), strict=True):
        for one in found["unanswerable"]:
            source = kept["kept"][one["source"]]["question"]
            told = swaps(source, find_entities(passage["text"])) if one["way"] == "swap" else [negated(source)]
            assert one["question"] in told
            ways[one["way"]] += 1
    assert set(ways) == {"swap", "negation"}


def test_the_file_is_squads_with_every_question_and_no_answer_out_of_place(work):
    paragraphs = read_squad_file(work / "out" / "generated" / "train-v2.0.json")
    assert not misaligned_reasons(paragraphs)
    questions = {question.id: (question, one.context) for one in paragraphs for question in one.questions}
    counts, expected = json.loads((work / "out" / "counts.json").read_text()), Counter()
    for passage, kept, found in zip(*(rows(work, name) for name in ("passages", "kept", "unanswerable")), strict=True):
        for number, one in enumerate(kept["kept"]):
            question, context = questions.pop(f"{passage['id']}.{number}")
            assert context == passage["text"] and question.text == one["question"] and not question.is_impossible
            assert [(answer.text, answer.start) for answer in question.answers] == [(one["text"], one["start"])]
            expected["kept"] += 1
        for one in found["unanswerable"]:
            question, context = questions.pop(f"{passage['id']}.{one['source']}.{one['way']}")
            assert context == passage["text"] and question.text == one["question"] and question.is_impossible
            expected[one["way"]] += 1
    assert not questions
    asked = [[q for q in row["questions"] if q] for row in rows(work, "questions")]
    expected["passages"], expected["answers"] = 8, sum(len(row["answers"]) for row in rows(work, "answers"))
    expected["questions"], expected["different questions"] = sum(map(len, asked)), sum(len(set(row)) for row in asked)
    assert counts == dict(expected)


def test_counts_as_json_alone(work, capfd):
    assert run(work, "out", "--json") == 0
    counts = json.loads((work / "out" / "counts.json").read_text())
    assert json.loads(capfd.readouterr().out) == {"output": str(work / "out"), "counts": counts, "commands": {}}


@pytest.mark.parametrize("stage", range(5))
def test_an_interrupted_run_ends_with_the_same_bytes(work, stage):
    """Killed within a stage, wherever its file was cut, with nothing of later stages."""
    whole = {name: (work / "out" / name).read_bytes() for name in OUTPUTS}
    rng = np.random.default_rng(stage)
    for cut in rng.integers(0, len(whole[OUTPUTS[stage]]), 2):
        shutil.rmtree(work / "again", ignore_errors=True)
        (work / "again").mkdir()
        shutil.copy(work / "out" / "claim.json", work / "again")
        for name in OUTPUTS[:stage]:
            shutil.copy(work / "out" / name, work / "again")
        (work / "again" / f"{OUTPUTS[stage]}.partial").write_bytes(whole[OUTPUTS[stage]][:cut])
        assert run(work, "again") == 0
        assert {name: (work / "again" / name).read_bytes() for name in OUTPUTS} == whole


def test_another_seed_draws_others(work):
    assert run(work, "seed", "--seed", 4) == 0
    assert (work / "seed" / "passages.jsonl").read_bytes() != (work / "out" / "passages.jsonl").read_bytes()


def dry_run(capsys, *words) -> str:
    """The command of fairseq-train that `unified finetune` would run."""
    capsys.readouterr()
    assert main([*map(str, words), "--dry-run"]) == 0
    return capsys.readouterr().out


def test_a_finished_run_needs_no_models_and_prints_the_commands(work, capsys):
    """Both stages: the generated questions with masked language modelling, then the real ones from there."""
    squad = work / "squad"
    squad.mkdir()
    for part in ("train", "dev"):
        shutil.copy(work / "out" / "generated" / "train-v2.0.json", squad / f"{part}-v2.0.json")
    shutil.copytree(work / "out", work / "done")
    then = (
        "--data",
        squad,
        "--init",
        work / "asks",
        "--second-stage",
        "--epochs 3",
        "--first-stage",
        "--max-length 64",
    )
    assert run(work, "done", *then) == 0
    first, second = map(shlex.split, capsys.readouterr().out.splitlines()[-2:])
    done = work / "done"
    assert first == [
        "unified", "finetune", "squad2.0", "--data", str(done / "generated"), "--init", str(work / "asks"), "--output",
        str(done / "first"), "--run", "first", "--epochs", "1", "--auxiliary-masking", "0.3", "--seed", "3",
        "--max-length", "64",
    ]  # fmt: skip
    assert second == [
        "unified", "finetune", "squad2.0", "--data", str(squad), "--init", str(done / "first" / "checkpoint_last.pt"),
        "--output", str(done / "second"), "--run", "second", "--epochs", "2", "--auxiliary-masking", "0.3",
        "--seed", "3", "--epochs", "3",
    ]  # fmt: skip
    # Both commands are accepted, and mask tokens in training; what is given to a stage overrides.
    for words, epochs in ((first, 1), (second, 3)):
        data = shlex.split(dry_run(capsys, *words[1:], "--max-length", 64))
        assert data[0] == "fairseq-train" and data[data.index("--auxiliary-masking") + 1] == "0.3"
        updates = int(data[data.index("--max-update") + 1])
        assert updates % epochs == 0 and updates > epochs
        shutil.copytree(work / "asks", done / "first", dirs_exist_ok=True)  # what the second starts from
    words = dry_run(capsys, *second[1:], "--max-length", 64, "--auxiliary-masking", 0)
    assert "--auxiliary-masking" not in words
    splits = task_named("squad2.0").read(done / "generated")
    assert set(splits) == {"train", "valid"} and len(splits["train"]) == len(splits["valid"])


def test_what_cannot_be_done_is_refused_before_any_work(work, capsys):
    assert "begun with --top 12, now 7" in refused(capsys, work, "out", "--top", 7)
    assert "begun with other contents of --reader-model (checkpoint_last.pt)" in refused(
        capsys, work, "out", reads=work / "answers"
    )
    assert "needs both --data and --init" in refused(capsys, work, "new", "--finetune")
    assert "no file train-v2.0" in refused(capsys, work, "new", "--data", work, "--init", work / "asks")
    assert "--question-model" in refused(capsys, work, "new", asks=work / "reads")
    assert "--reader-model" in refused(capsys, work, "new", reads=work / "asks")
    assert "no such file" in refused(capsys, work, "new", reads=work / "nowhere")
    assert "room for 3 to" in refused(capsys, work, "new", "--max-source", 500)
    assert "must not exceed" in refused(capsys, work, "new", "--words", 9, 5)
    assert not (work / "new").exists()
    assert "no paragraph of 900 to 999 words" in refused(capsys, work, "new", "--words", 900, 999)
    assert run(work, "new") == 0  # with other settings, where nothing was made yet


def test_tasks_of_writing_have_no_auxiliary_masking(capsys):
    words = ["finetune", "squad_qg", "--data", "x", "--init", "x", "--output", "y", "--auxiliary-masking", "0.3"]
    assert main(words) == 2 and "squad_qg is a generation task" in capsys.readouterr().err


def test_nothing_kept_is_said(work, capsys):
    assert "no question was answered like its candidate" in refused(
        capsys, work, "none", "--passages", 1, "--top", 1, "--min-f1", 1.0
    )


def test_stages_of_fine_tuning_follow_each_other(work, monkeypatch):
    """The second starts from the first one's checkpoint, and not before that has ended well."""
    squad, folder, ran = work / "squad-of-stages", work / "stages", []
    squad.mkdir()
    (folder / "generated").mkdir(parents=True)
    for path in (squad / "train-v2.0.json", squad / "dev-v2.0-a.json", folder / "generated" / "dev-v2.0-old.json"):
        path.write_text(path.name)
    fails = ["first"]

    def finetune(words, **options):
        name = words[words.index("--run") + 1]
        ran.append(name)
        return subprocess.CompletedProcess(words, int(name in fails))

    monkeypatch.setattr("unified.runtime.processes.subprocess.run", finetune)
    stages = TwoStages(folder, folder / "generated", squad, work / "asks", 0.3, (), (), 1)
    stages.check()
    stages.prepare()
    assert [path.name for path in (folder / "generated").iterdir()] == ["dev-v2.0-a.json"]
    second = stages.commands()["second"]
    assert second[second.index("--init") + 1] == str(folder / "first" / "checkpoint_last.pt")
    with pytest.raises(UnifiedError, match="the first stage of fine-tuning has failed"):
        stages.run()
    fails.clear()
    stages.run()
    assert ran == ["first", "first", "second"]
