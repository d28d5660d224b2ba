"""`unified predict`: which head answers, by which threshold, and the file of predictions with its claim."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path

import pytest
import torch

from tests.support.commands import exit_status
from tests.support.corpora import jsonl
from tests.support.full_disk import full_disk
from tests.support.standard_input import holding
from tests.support.task_folders import language_model
from tests.support.terminal import Terminal
from tests.support.untrained_models import linked, task_model, write_found_threshold
from unified import load
from unified.cli import main
from unified.cli.commands.predict import predictor_of
from unified.cli.parsing import make_parser
from unified.errors import UnifiedError
from unified.files.rows import read_rows
from unified.tasks.catalogue import task_named
from unified.tasks.heads import Classification
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.heads.tagging import Tagging

CLASSES = Classification(("no", "yes"))
ROWS = [{"text": f"w{i} é", "id": f"é{i}"} for i in range(5)]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    task_model(folder / "classes", {"classification": CLASSES})
    task_model(folder / "short", {"classification": CLASSES}, longest=5)
    task_model(folder / "context", {"tagging": Tagging(("A", "B", "C", "D"), context=True)}, longest=32)
    task_model(folder / "three", {"rte": CLASSES, "wnli": CLASSES, "tags": Tagging(("B-X", "O"))})
    task_model(folder / "two", {"rte": CLASSES, "tags": Tagging(("B-X", "O"))})
    task_model(folder / "span", {"span": SpanAnswers()})
    task_model(folder / "wide", {"span": SpanAnswers()}, longest=80, max_positions=80)
    task_model(folder / "abstains", {"span": SpanAnswers(labels=("",))})
    task_model(folder / "found", {"span": SpanAnswers(labels=("",))})
    task_model(folder / "set", {"span": SpanAnswers(labels=("",))})
    task_model(folder / "head", {"span": SpanAnswers(labels=("",), null_threshold=0.375)})
    write_found_threshold(folder / "found", 0.25)
    write_found_threshold(folder / "set", 0.125, found_on=None)
    language_model(folder / "writes", token_types=6, writes="cloze", initializer_range=0.3)
    language_model(folder / "silent")
    language_model(folder / "continues", writes="permutation", positions="relative")
    return folder


@pytest.fixture
def work(models, tmp_path, monkeypatch) -> Path:
    """The folder of a test with links to the models, whose names are short."""
    monkeypatch.chdir(linked(models, tmp_path))
    jsonl(tmp_path / "rows.jsonl", ROWS)
    return tmp_path


def predictor(line: str):
    args = make_parser("predict").parse_args(["predict", *line.split()])
    return predictor_of(args, task_named(args.task), load(*args.model))


@pytest.mark.parametrize(
    ("line", "head", "kind"),
    [
        ("classification i --model classes", "classification", Classification),
        ("cola i --model classes", "classification", Classification),
        ("rte i --model three", "rte", Classification),
        ("wnli i --model three", "wnli", Classification),
        ("tagging i --model three", "tags", Tagging),
        ("classification i --model three --head wnli", "wnli", Classification),
        ("conll2003 i --model three --head tags", "tags", Tagging),
    ],
)
def test_the_head_of_the_task_answers_or_the_one_that_is_named(work, line, head, kind):
    found = predictor(line)
    assert found.head == head and isinstance(found.task, kind)
    assert found.max_tokens == 4096 and predictor(f"{line} --max-tokens 7").max_tokens == 7


def test_the_threshold_of_no_answer_is_that_of_the_option_or_the_one_found_in_training(work, capsys):
    for line, value, found_on, says in (
        ("span i --model abstains", 0.5, None, "0.5; --threshold NUMBER sets it\n"),
        ("span i --model found", 0.25, "valid", "0.25, found on valid; --threshold NUMBER sets it\n"),
        ("span i --model set", 0.125, None, "0.125, set in fine-tuning; --threshold NUMBER sets it\n"),
        ("span i --model head", 0.375, None, "0.375, set in fine-tuning; --threshold NUMBER sets it\n"),
        ("span i --model abstains --model abstains", 0.5, None, "0.5; --threshold NUMBER sets it\n"),
        ("span i --model found --threshold best", 0.25, "valid", "0.25, found on valid; --threshold NUMBER sets it\n"),
        ("span i --model found --threshold 0.75", 0.75, None, ""),
        ("span i --model abstains --threshold 0", 0.0, None, ""),
    ):
        task = predictor(line).task
        assert (task.threshold, task.threshold_found_on) == (value, found_on)
        assert capsys.readouterr().err == (says and f"no answer where its probability exceeds {says}")


def test_a_generation_task_takes_the_limit_of_sources_and_windows_from_its_options(work):
    plain = predictor("texts i --model writes")
    assert (plain.max_source, plain.windows) == (None, False)
    other = predictor("texts i --model writes --max-source 7 --windows")
    assert (other.max_source, other.windows) == (7, True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("texts i --model writes --head h", "--head h: texts is a generation task, which needs no head"),
        ("texts i --model writes --threshold 0.5",
         "--threshold 0.5: texts answers every item, so there is no threshold to set"),
        ("texts i --model writes --max-tokens 9", "--max-tokens 9: texts is a generation task, whose batches are 32 "
         "texts of any length; leave the option out"),
        ("classification i --model classes --max-source 0",
         "--max-source: classification is no task that generates text; leave the option out"),
        ("classification i --model classes --windows",
         "--windows: classification is no task that generates text; leave the option out"),
        ("cola i --model three", "the model was fine-tuned for rte, wnli, tags, not for cola"),
        ("cola i --model two", "the model was fine-tuned for rte, tags, not for cola"),
        ("cola i --model three --head tags", "the model was fine-tuned for rte, wnli, tags, not for tags, as "
         "classification"),
        ("tagging i --model three --head rte", "the model was fine-tuned for rte, wnli, tags, not for rte, as tagging"),
        ("classification i --model classes --threshold 0.5",
         "--threshold 0.5: classification answers every item, so there is no threshold to set"),
        ("span i --model span --threshold 0.5",
         "--threshold 0.5: span answers every item, so there is no threshold to set"),
        ("span i --model abstains --threshold best", "--threshold best: no results beside abstains say which threshold "
         "was best on the development set; give a number, or fine-tune with --threshold best"),
        ("span i --model abstains --threshold 1.1",
         "--threshold 1.1: expected 'best' or a probability from 0 to 1"),
        ("classification i --model silent",
         "the model is a language model; fine-tune it for a task with `unified finetune`"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_with_the_task_are_refused(work, line, says):
    with pytest.raises(UnifiedError) as refused:
        predictor(line)
    assert refused.value.details == says


def test_a_model_that_does_not_write_is_refused_before_anything_is_read(work):
    for model, says in (
        ("silent", r"the model does not generate \(writes nothing\): "),
        ("classes", "the model was fine-tuned for classification and predicts no tokens"),
        ("continues", "the model continues prompts; it has not learnt to write targets of sources"),
    ):
        with pytest.raises(UnifiedError, match=f"^{says}"):
            predictor(f"texts i --model {model}")


def predict(*words: str) -> int:
    return main(["predict", *words])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--ahead", "0"), "--ahead must be at least 1, got 0"),
        (("--max-tokens", "0"), "--max-tokens must be at least 1, got 0"),
        (("--output", "rows.jsonl"), "--output rows.jsonl: a file that the command reads; name another one"),
        (("--output", "before"), "before: exists already; --overwrite replaces it, or give another --output"),
        (("--second", "x"),
         "--second goes with a plain text of several words as INPUT; other items have it as a field"),
        (("--source-field", "x"),
         "--source-field x: classification takes --text-field, --second-field"),
        (("--spacy-code", "c"), "--spacy-code c belongs to a pipeline; give --spacy PIPELINE too"),
    ],
)  # fmt: skip
def test_a_command_that_cannot_work_is_refused(work, capsys, words, says):
    Path("before").touch()
    assert predict("classification", "rows.jsonl", "--model", "classes", *words) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"unified predict: error: {says}\n")


def test_a_prediction_is_printed_as_a_line_of_json_for_each_item(work, capsys):
    words = ("classification", "rows.jsonl", "--model", "classes", "--ahead", "1", "--max-tokens", "1")
    assert exit_status("predict", *words) == 0
    printed = capsys.readouterr()
    assert [json.loads(line)["id"] for line in printed.out.splitlines()] == [row["id"] for row in ROWS]
    assert '"id": "é0"' in printed.out and printed.err == ""


def test_single_texts_for_a_model_of_pairs_are_noted_once_and_pairs_for_one_of_single_texts(work, capsys):
    from unified.cli.commands.predicting.inputs import noting_other_pairs
    from unified.tasks.heads.items import TextItem

    one, two = TextItem("1", "a"), TextItem("2", "a", "b")
    for given, pairs, says in (
        ([two, one, one], True, "pairs of texts, but item 1 has one text; --second-field, or --second"),
        ([one, two, two], False, "single texts, but item 2 has a second text\n"),
        ([one, two], None, ""),
    ):
        assert list(noting_other_pairs(iter(given), pairs)) == given
        said = capsys.readouterr().err
        assert says in said and said.count("\n") == bool(says)


def test_as_many_items_are_read_ahead_as_the_option_says(work, monkeypatch, capsys):
    """A bad line of a stream stops the command: what was answered before it has been printed."""
    stream = '{"text": "w1"}\n{"text": "w2"}\n{"text": "w3"}\n{"text": ""}\n'
    for ahead, answered in ((["--ahead", "1"], 3), (["--ahead", "2"], 2), ([], 0)):
        monkeypatch.setattr("sys.stdin", holding(stream))
        assert main(["predict", "classification", "-", "--model", "classes", *ahead]) == 2
        printed = capsys.readouterr()
        assert [json.loads(line)["id"] for line in printed.out.splitlines()] == ["1", "2", "3"][:answered]
        assert printed.err == (
            "unified predict: error: standard input: line 4: the field 'text' is empty; "
            "--skip-empty leaves such rows out\n"
        )


def test_a_plain_text_is_answered_in_words_or_as_json_or_into_a_file(work, capsys):
    words = ("classification", "w1 w2", "--model", "classes")
    assert predict(*words) == 0
    shown = capsys.readouterr().out
    assert sorted(line.split("\t")[0] for line in shown.splitlines()) == ["no", "yes"]
    assert predict(*words, "--json") == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["id"] == "1" and printed.count("\n") == 1
    assert predict(*words, "--output", "out.jsonl") == 0
    assert (capsys.readouterr().out, Path("out.jsonl").read_text(encoding="utf-8")) == ("", printed)


def test_progress_is_shown_where_a_file_of_known_length_becomes_another_file(work, monkeypatch):
    def said(*words: str) -> str:
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr("sys.stderr", terminal)
            assert predict("classification", "--model", "classes", *words) == 0
        return terminal.getvalue()

    assert said("rows.jsonl") == "" == said('{"text": "w1"}', "--output", "one.jsonl")
    bar = said("rows.jsonl", "--output", "all.jsonl")
    assert "predict:   0%" in bar and " 0/5 " in bar and " 5/5 " in bar and " items/s" in bar
    interrupted(monkeypatch, "classification", "rows.jsonl", "--model", "classes")
    Path("out.jsonl.partial").write_bytes(Path("all.jsonl").read_bytes().split(b"\n")[0] + b"\n")
    resumed = said("rows.jsonl", "--output", "out.jsonl")
    assert " 1/5 " in resumed and " 5/5 " in resumed and " 0/5 " not in resumed
    assert Path("out.jsonl").read_bytes() == Path("all.jsonl").read_bytes()


def test_a_model_of_another_data_set_is_refused_by_its_results_unless_a_head_is_named(work, capsys):
    words = ("--model", "found", '{"question": "w1", "context": "w2 w3"}')
    assert predict("squad2.0", *words) == 2
    assert capsys.readouterr().err.startswith(
        "unified predict: error: found was fine-tuned for span, not for squad2.0;"
    )
    assert predict("squad2.0", *words, "--head", "span") == 0 and predict("span", *words) == 0


def test_texts_that_are_cut_are_counted(work, capsys):
    jsonl(work / "long.jsonl", [{"text": "w1 w2"}, {"text": "w1 " * 9}, {"text": "w2 " * 9}])
    assert predict("classification", "long.jsonl", "--model", "short") == 0
    assert capsys.readouterr().err == "predict: 2 of 3 texts were cut; the model reads sequences of at most 5 tokens\n"
    jsonl(work / "asked.jsonl", [{"question": "w1 " * n, "context": "w1 w2 " * 40} for n in (3, 65)])
    assert predict("span", "asked.jsonl", "--model", "wide") == 0
    assert capsys.readouterr().err == (
        "predict: 1 of 2 texts were cut; the model reads at most 64 tokens of a question and its history (max_query)\n"
    )
    words = ("texts", "--model", "writes", "--max-source", "3", "--windows")
    jsonl(work / "sources.jsonl", [{"source": "w1"}, {"source": "w1 w2 . w3 w4 . w5 w6 ."}])
    assert predict(*words, "sources.jsonl") == 0
    assert "predict: 1 of 2 texts were divided into windows\n" in capsys.readouterr().err


def test_rows_that_are_left_out_are_counted_whatever_holds_them(work, monkeypatch, capsys):
    some, none = [ROWS[0], {"text": ""}, ROWS[1], {"text": " "}], '{"text": ""}'
    jsonl(work / "gaps.jsonl", some)
    text = Path("gaps.jsonl").read_text(encoding="utf-8")
    os.mkfifo(work / "pipe")
    writer = threading.Thread(target=lambda: (work / "pipe").write_text(text, encoding="utf-8"), daemon=True)
    writer.start()
    monkeypatch.setattr("sys.stdin", holding(text))
    for source, called, left_out, kept in (
        ("gaps.jsonl", "gaps.jsonl", "2 rows", 2), ("-", "standard input", "2 rows", 2), ("pipe", "pipe", "2 rows", 2),
        (none, "the item", "1 row", 0),
    ):  # fmt: skip
        assert predict("classification", source, "--model", "classes", "--skip-empty") == 0
        found = capsys.readouterr()
        assert found.err == f"{called}: {left_out} left out, the field 'text' is empty\n"
        assert found.out.count("\n") == kept
    writer.join(timeout=60)


def test_cpu_threads_are_as_many_as_the_option_says(work):
    before = torch.get_num_threads()
    try:
        for given, expected in (("2", 2), ("0", 2), ("1", 1)):
            assert predict("classification", "w1 w2", "--model", "classes", "--threads", given) == 0
            assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(before)


def interrupted(monkeypatch, *words: str) -> dict:
    """The claim of a command that is interrupted when all is predicted, before its file gets its name."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("unified.cli.commands.predict.Path.replace", stop)
        assert predict(*words, "--output", "out.jsonl") == 130
    return json.loads(Path("out.jsonl.partial.claim").read_text(encoding="utf-8"))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_what_an_interrupted_run_leaves_is_claimed_by_all_that_decides_it(work, monkeypatch):
    plain = {
        "the task": "classification", "--head": None, "--max-tokens": None, "--max-source": None, "--windows": False,
        "--threshold": None, "--spacy": None, "--spacy-code": None, "--skip-empty": False,
    }  # fmt: skip
    words = ("classification", "rows.jsonl", "--model", "classes")
    claim = interrupted(monkeypatch, *words)
    assert claim["settings"] == plain and claim["inputs"].keys() == {"--model", "INPUT"}
    assert claim["inputs"]["INPUT"] == {"rows.jsonl": digest(Path("rows.jsonl").read_bytes())}
    model = claim["inputs"]["--model"]
    assert model["checkpoint_last.pt"] == digest(Path("classes/checkpoint_last.pt").read_bytes())
    assert model["dict.txt"] == digest(Path("classes/dict.txt").read_bytes()) and len(model) > 2
    Path("out.jsonl.partial").unlink()
    more = ("--head", "classification", "--max-tokens", "9", "--skip-empty", "--text-field", "text")
    claim = interrupted(monkeypatch, *words, *more)
    assert claim["settings"] == plain | {
        "--head": "classification", "--max-tokens": 9, "--skip-empty": True, "--text-field": "text",
    }  # fmt: skip
    Path("out.jsonl.partial").unlink()
    item = '{"question": "w1", "context": "w2 w3"}'
    claim = interrupted(monkeypatch, "span", item, "--model", "abstains", "--threshold", "0.75")
    assert claim["settings"] == plain | {"the task": "span", "--threshold": 0.75}
    assert claim["inputs"]["INPUT"] == {"the item": digest(item.encode())}
    Path("out.jsonl.partial").unlink()
    claim = interrupted(monkeypatch, "texts", "w1 w2", "--model", "writes", "--max-source", "3", "--windows")
    assert claim["settings"] == plain | {"the task": "texts", "--max-source": 3, "--windows": True}


def test_plain_texts_are_told_apart_by_where_the_second_one_begins(work, monkeypatch):
    """An interrupted run must not be resumed for another pair of texts, whose only prediction has the same id."""
    claimed = []
    for texts in (("w1 w2",), ("w1 w2", "--second", ""), ("w1 w2", "--second", "w3"), ("w1 w2w3",)):
        claim = interrupted(monkeypatch, "classification", *texts, "--model", "classes")
        claimed.append(claim["inputs"]["INPUT"]["the item"])
        Path("out.jsonl.partial").unlink()
    assert len(set(claimed)) == len(claimed)


def test_two_runs_on_standard_input_never_share_a_claim(work, monkeypatch):
    found = []
    for _ in range(2):
        with open("rows.jsonl", encoding="utf-8") as stream:
            monkeypatch.setattr("sys.stdin", stream)
            found.append(interrupted(monkeypatch, "classification", "-", "--model", "classes")["inputs"]["INPUT"])
        Path("out.jsonl.partial").unlink()
    assert [one.keys() for one in found] == [{"standard input"}] * 2 and found[0] != found[1]


def test_a_data_set_of_the_hub_is_claimed_by_its_name(work, monkeypatch):
    monkeypatch.setattr("unified.cli.commands.predicting.inputs.read_rows", lambda source: read_rows("rows.jsonl"))
    claim = interrupted(monkeypatch, "classification", "hub:owner/name@test", "--model", "classes")
    assert claim["inputs"]["INPUT"] == {"hub:owner/name@test": "data set of the hub"}


@pytest.mark.parametrize("kept", range(6))
def test_a_repeated_run_goes_on_behind_the_whole_lines_that_it_left(work, monkeypatch, kept):
    words = ("classification", "rows.jsonl", "--model", "classes")
    interrupted(monkeypatch, *words)
    whole = Path("out.jsonl.partial").read_bytes()
    lines = whole.splitlines(keepends=True)
    changed = [line.replace(b'"id"', b'"mine": NaN, "id"') for line in lines[:kept]]
    Path("out.jsonl.partial").write_bytes(b"".join([*changed, *(line[:9] for line in lines[kept : kept + 1])]))
    assert predict(*words, "--output", "out.jsonl") == 0
    assert Path("out.jsonl").read_bytes() == b"".join([*changed, *lines[kept:]])
    assert sorted(path.name for path in work.iterdir() if path.name.startswith("out")) == ["out.jsonl"]


@pytest.mark.parametrize("kept", range(8))
def test_a_repeated_run_reads_the_whole_document_of_its_next_sentence(work, monkeypatch, kept):
    """Its tags depend on the sentences before it; documents: two sentences, four of another, and one in none."""
    documents = ("a", "a", "b", "b", "b", "b", None)
    rows = [{"words": [f"w{(7 * i + j * j) % 23}" for j in range(6)], "document": of} for i, of in enumerate(documents)]
    jsonl(work / "words.jsonl", [{name: value for name, value in row.items() if value is not None} for row in rows])
    words = ("tagging", "words.jsonl", "--model", "context")
    interrupted(monkeypatch, *words)
    lines = Path("out.jsonl.partial").read_bytes().splitlines(keepends=True)
    marked = [line.replace(b'"id"', b'"mine": 1, "id"') for line in lines[:kept]]
    Path("out.jsonl.partial").write_bytes(b"".join(marked))
    assert predict(*words, "--output", "out.jsonl") == 0
    behind = {0: 0, 1: 0, 2: 0, 7: 7}.get(kept, 2)  # a document may go on behind its last line that is left
    assert Path("out.jsonl").read_bytes() == b"".join([*marked[:behind], *lines[behind:]])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: [*lines, lines[0]], "line 6: INPUT has fewer items"),
        (lambda lines: [lines[0], lines[2]], "line 2: not the prediction of item 'é1'"),
        (lambda lines: ["[]\n", *lines[1:]], "line 1: not the prediction of item 'é0'"),
        (lambda lines: ["nonsense\n"], "line 1: not the prediction of item 'é0'"),
        (lambda lines: ["{}\n"], "line 1: not the prediction of item 'é0'"),
        (lambda lines: ["\n"], "line 1: not the prediction of item 'é0'"),
    ],
)
def test_lines_of_other_items_are_not_gone_on_with(work, monkeypatch, capsys, change, says):
    words = ("classification", "rows.jsonl", "--model", "classes")
    interrupted(monkeypatch, *words)
    partial = Path("out.jsonl.partial")
    partial.write_text("".join(change(partial.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")
    capsys.readouterr()
    assert predict(*words, "--output", "out.jsonl") == 2
    told = capsys.readouterr().err
    assert told == f"unified predict: error: out.jsonl.partial, {says}; remove it, or give another --output\n"


def test_a_full_disk_names_the_output_and_the_same_command_goes_on(work, capsys):
    jsonl(work / "many.jsonl", [{"text": f"w{i} é"} for i in range(200)])
    words = ("classification", "many.jsonl", "--model", "classes", "--output", "out.jsonl")
    assert predict(*words[:-2], "--output", "whole.jsonl") == 0
    whole = Path("whole.jsonl").read_bytes()
    with full_disk(room := 9000):
        assert predict(*words) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "unified predict: error: out.jsonl: file too large"
    assert Path("out.jsonl.partial").read_bytes() == whole[:room]
    assert predict(*words) == 0
    assert Path("out.jsonl").read_bytes() == whole
