"""`unified augment` around its stages: the models, settings and passages they get, the claim, and what comes after."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.support.augment_models import asking, spans
from tests.support.commands import exit_status
from tests.support.untrained_models import linked
from unified.checkpoints import load_checkpoint
from unified.checkpoints.files import save
from unified.cli import main
from unified.tasks.augmentation.entities import entities_by_rules
from unified.tasks.augmentation.passages import sample_passages
from unified.tasks.augmentation.pipeline import Pipeline

ROLES = ("--answer-model", "answers", "--question-model", "asks", "--reader-model", "reads")
COUNTS = {"passages": 3, "kept": 2, "swap": 0, "negation": 1}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """A folder with models of 128 positions, a corpus of paragraphs of 4 to 8 words, and a folder with SQuAD."""
    folder = tmp_path_factory.mktemp("augment")
    spans(folder / "answers", 1)
    spans(folder / "reads", 2, labels=("",))
    asking(folder / "asks", 11)
    asking(folder / "continues", 12, "permutation", positions="relative")
    path = asking(folder / "trained", 13) / "checkpoint_last.pt"
    lengths = {"max_source": 20, "max_target": 10, "longest_target": 9}
    save(load_checkpoint(path) | {"task_state": {"pair_lengths": lengths}}, path)
    paragraphs = [" ".join(["word"] * count) + "." for count in range(4, 9)]
    (folder / "corpus.txt").write_text("\n".join(paragraphs) + "\n", encoding="utf-8")
    (folder / "rows.jsonl").write_text(json.dumps({"body": "\n".join(paragraphs)}) + "\n", encoding="utf-8")
    (folder / "squad").mkdir()
    for part in ("train", "dev"):
        (folder / "squad" / f"{part}-v2.0.json").write_text(part, encoding="utf-8")
    return folder


@pytest.fixture
def work(models, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(linked(models, tmp_path))
    return tmp_path


@pytest.fixture
def stages(work, monkeypatch) -> list[SimpleNamespace]:
    """Replaces the stages, whose outcome is :data:`COUNTS`; returns what each run of them was given."""
    got: list[SimpleNamespace] = []

    def run(pipeline, stages, passages, models):
        got.append(SimpleNamespace(pipeline=pipeline, stages=stages, passages=passages(), models=models))
        generated = stages.folder / "generated"
        generated.mkdir(parents=True, exist_ok=True)
        return dict(COUNTS)

    monkeypatch.setattr("unified.tasks.augmentation.pipeline.Pipeline.run", run)
    return got


def augment(*words: str, corpus: str = "corpus.txt") -> int:
    return main(["augment", corpus, "--output", "out", *ROLES, *words])


def test_defaults_reach_the_stages(stages, capsys):
    words = ("augment", "corpus.txt", "--output", "out", *ROLES, "--words", "4", "8")
    assert exit_status(*words) == 0
    [got] = stages
    assert got.pipeline == Pipeline(30, 0.6, 0.8, entities_by_rules, 1)
    assert (got.stages.folder, got.stages.chunk) == (Path("out"), 16)
    assert got.passages == sample_passages(["corpus.txt"], "text", None, (4, 8), 1) and len(got.passages) == 5
    assert got.models.answers.task.labels == () and got.models.reads.task.labels == ("",)
    assert got.models.answers.max_tokens == got.models.reads.max_tokens == 4096
    # 128 positions leave 77 beside a question of 48 tokens and three special symbols.
    assert (got.models.asks.max_source, got.models.asks.options) == (
        77,
        {"beam": 3, "max_length": 48, "batch_size": 32},
    )
    printed = capsys.readouterr()
    assert printed.out == json.dumps(COUNTS, indent=2) + "\n"
    assert printed.err.splitlines()[-1] == f"written to {Path('out/generated/train-v2.0.json')}"


def test_options_reach_the_stages(stages, capsys):
    words = (
        "--text-field body --passages 2 --words 5 7 --top 4 --beam 2 --max-length 9 --max-source 24 --min-f1 0.25 "
        "--unanswerable 0.5 --batch-size 6 --max-tokens 99 --chunk 3 --seed 8"
    )
    assert augment(*words.split(), corpus="rows.jsonl") == 0
    [got] = stages
    assert got.pipeline == Pipeline(4, 0.25, 0.5, entities_by_rules, 8) and got.stages.chunk == 3
    assert got.passages == sample_passages(["rows.jsonl"], "body", 2, (5, 7), 8) and len(got.passages) == 2
    assert got.models.answers.max_tokens == got.models.reads.max_tokens == 99
    assert (got.models.asks.max_source, got.models.asks.options) == (
        24,
        {"beam": 2, "max_length": 9, "batch_size": 6},
    )
    assert "passages: only" not in capsys.readouterr().err


def test_a_corpus_with_fewer_paragraphs_than_asked_for_is_noted(stages, capsys):
    assert augment("--words", "5", "7", "--passages", "4") == 0 and len(stages[0].passages) == 3
    assert "passages: only 3 paragraphs of that length\n" in capsys.readouterr().err
    assert augment("--words", "5", "7", "--passages", "3", "--output", "other") == 0
    assert "of that length" not in capsys.readouterr().err


def test_lengths_of_sources_and_questions_are_those_of_the_models_training(stages):
    assert augment("--words", "4", "8", "--question-model", "trained") == 0
    asks = stages[0].models.asks
    assert (asks.max_source, asks.options["max_length"]) == (20, 10)
    for more, expected in ((("--max-source", "3"), (3, 10)), (("--max-source", str(128 - 10 - 3)), (115, 10))):
        assert augment("--words", "4", "8", "--question-model", "trained", *more, "--output", more[1]) == 0
        asks = stages[-1].models.asks
        assert (asks.max_source, asks.options["max_length"]) == expected


def test_a_model_of_relative_positions_has_room_for_sources_of_any_length(stages, work, capsys):
    asking(work / "any", 14, positions="relative")
    assert augment("--words", "4", "8", "--question-model", "any", "--max-source", "100000") == 0
    assert stages[0].models.asks.max_source == 100000
    assert augment("--words", "4", "8", "--question-model", "any", "--max-source", "2") == 2
    told = f"--max-source 2: the model has room for 3 to {2**30} tokens beside a question"
    assert capsys.readouterr().err.splitlines()[-1] == f"unified augment: error: {told}"


def test_a_spacy_pipeline_that_is_named_finds_the_entities(stages, monkeypatch):
    asked = []
    monkeypatch.setattr("unified.tasks.augmentation.entities.entities_of_spacy", lambda *names: asked.append(names))
    assert augment("--words", "4", "8", "--spacy", "pipe", "--spacy-code", "mod") == 0
    assert asked == [("pipe", "mod")] and stages[0].pipeline.find_entities is None


def test_a_folder_is_claimed_by_settings_and_contents(stages):
    assert augment("--words", "4", "8", "--passages", "2", "--top", "4") == 0

    def digest(path: str) -> dict[str, str]:
        return {Path(path).name: hashlib.sha256(Path(path).read_bytes()).hexdigest()}

    assert json.loads(Path("out/claim.json").read_text(encoding="utf-8")) == {
        "settings": {
            "--text-field": "text", "--passages": 2, "--words": [4, 8], "--top": 4, "--beam": 3, "--max-length": None,
            "--max-source": None, "--min-f1": 0.6, "--unanswerable": 0.8, "--spacy": None, "--spacy-code": None,
            "--batch-size": 32, "--max-tokens": 4096, "--chunk": 16, "--seed": 1,
        },
        "inputs": {
            "the corpus": digest("corpus.txt"),
            **{option: digest(f"{name}/checkpoint_last.pt") for option, name in zip(ROLES[::2], ROLES[1::2],
                                                                                    strict=True)},
        },
    }  # fmt: skip


def test_a_corpus_may_be_a_data_set_of_the_hub_which_the_claim_knows_by_its_rows(stages, capsys, monkeypatch):
    rows = [{"body": "one two three four.\nfive six"}, {"body": "seven eight nine ten"}]
    monkeypatch.setattr(
        "unified.files.rows.hub_entries", lambda _: ((f"row {i}", row) for i, row in enumerate(rows, 1))
    )
    words = ("--words", "4", "8", "--text-field", "body")
    assert augment(*words, corpus="hub:owner/wiki@test") == 0
    assert [one.text for one in stages[0].passages] == ["one two three four.", "seven eight nine ten"]
    content = json.loads(Path("out/claim.json").read_text(encoding="utf-8"))
    assert content["inputs"]["the corpus"].keys() == {"hub:owner/wiki@test"}
    assert augment(*words, corpus="hub:owner/wiki@test") == 0
    rows[1]["body"] += " eleven"
    assert augment(*words, corpus="hub:owner/wiki@test") == 2
    assert "was begun with other contents of the corpus (hub:owner/wiki@test)" in capsys.readouterr().err


def test_models_are_not_loaded_again_where_the_kept_questions_are_there_already(stages):
    assert augment("--words", "4", "8") == 0
    Path("out/kept.jsonl").write_text("", encoding="utf-8")
    assert augment("--words", "4", "8") == 0
    assert [got.models is None for got in stages] == [False, True]


FINETUNE = ("--words", "4", "8", "--data", "squad", "--init", "asks")


def test_the_commands_of_both_stages_of_fine_tuning_are_printed(stages, capsys):
    assert augment(*FINETUNE, "--first-stage", "--epochs 3", "--second-stage", "--lr 1", "--seed", "4") == 0
    lines = capsys.readouterr().out.splitlines()
    first, second = map(shlex.split, lines[-2:])
    assert lines[-3] == "}" and first[:5] == ["unified", "finetune", "squad2.0", "--data", "out/generated"]
    assert first[5:9] == ["--init", "asks", "--output", "out/first"] and first[-2:] == ["--epochs", "3"]
    assert second[3:5] == ["--data", "squad"] and second[-2:] == ["--lr", "1"]
    for words in (first, second):
        assert words[words.index("--auxiliary-masking") + 1] == "0.3" and words[words.index("--seed") + 1] == "4"
    # The development set of the first stage is that of SQuAD.
    assert Path("out/generated/dev-v2.0.json").read_text(encoding="utf-8") == "dev"


def test_both_stages_of_fine_tuning_are_run_where_that_is_asked_for(stages, capsys, monkeypatch):
    ran = []
    monkeypatch.setattr("unified.tasks.augmentation.two_stages.run_module", lambda module, words: ran.append(words))
    assert augment(*FINETUNE, "--finetune", "--auxiliary-masking", "0.5") == 0
    assert [words[words.index("--run") + 1] for words in ran] == ["first", "second"]
    assert all(words[words.index("--auxiliary-masking") + 1] == "0.5" for words in ran)
    assert capsys.readouterr().out.count("unified finetune") == 2


def test_counts_and_commands_are_printed_for_programs(stages, capsys):
    assert augment("--words", "4", "8", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"output": "out", "counts": COUNTS, "commands": {}}
    assert augment(*FINETUNE, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["commands"].keys() == {"first", "second"}
    assert found["commands"]["first"].startswith("unified finetune squad2.0 --data out/generated --init asks ")


def test_a_run_that_keeps_no_question_is_refused(stages, capsys, monkeypatch):
    monkeypatch.setitem(COUNTS, "kept", 0)
    assert augment("--words", "4", "8") == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out)["kept"] == 0
    assert printed.err.splitlines()[-1] == (
        "unified augment: error: out: no question was answered like its candidate, so there is nothing to train on; "
        "see the file questions.jsonl: do --answer-model, --question-model and --reader-model suit the corpus?"
    )


def test_a_first_stage_without_unanswerable_questions_is_refused_before_it_runs(stages, capsys, monkeypatch):
    monkeypatch.setitem(COUNTS, "negation", 0)
    assert augment(*FINETUNE) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1].startswith(
        "unified augment: error: out: no unanswerable question could be made of those that were kept, so "
    )
    assert not list(Path("out/generated").glob("dev*")) and augment("--words", "4", "8") == 0
    monkeypatch.setitem(COUNTS, "swap", 1)
    assert augment(*FINETUNE) == 0


NEEDS = "fine-tuning needs both --data and --init"
WITHOUT = "{0} has no effect without --data and --init; add --data and --init, or leave {0} out"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--words 9 8", "--words 9 8: the first must not exceed the second"),
        ("--text-field text", "--text-field text is for rows, and no file has any, by its name: corpus.txt"),
        ("--spacy-code c", "--spacy-code c belongs to a pipeline; give --spacy PIPELINE too"),
        ("--data squad", NEEDS),
        ("--init asks", NEEDS),
        ("--finetune", NEEDS),
        ("--data reads --init asks", "--data reads: no file train-v2.0*.json*"),
        ("--data squad --init asks --unanswerable 0",
         "--unanswerable 0: the first stage would learn from answered questions alone, and the dev file of --data has "
         "others; give a share above 0, or leave out --data and --init"),
        ("--data squad --init asks --first-stage \"--a 'b\"",
         "--first-stage \"--a 'b\": a quotation mark is not closed"),
        ("--data squad --init asks --second-stage \"--a 'b\"",
         "--second-stage \"--a 'b\": a quotation mark is not closed"),
        ("--data squad --init asks --first-stage '--bogus 3'",
         "--first-stage '--bogus 3': unrecognized arguments: --bogus, 3"),
        ("--data squad --init asks --first-stage '--epocs 3'",
         "--first-stage '--epocs 3': unrecognized arguments: --epocs (did you mean '--epochs'?), 3"),
        ("--data squad --init asks --second-stage '--epochs abc'",
         "--second-stage '--epochs abc': argument --epochs: invalid int value: 'abc'"),
        ("--data squad --init asks --second-stage '--epochs 0'",
         "--second-stage '--epochs 0': --epochs must be at least 1, got 0"),
        ("--data squad --init asks --second-stage '--system nobody'",
         "--second-stage '--system nobody': no settings of 'nobody' for squad2.0; known are unilm, spanbert, xlnet"),
        ("--data squad --init asks --second-stage '--init asks'",
         "--second-stage '--init asks': --init of this stage is out/first/checkpoint_last.pt; leave it out"),
        ("--data squad --init asks --first-stage '--output elsewhere'",
         "--first-stage '--output elsewhere': --output of this stage is out/first; leave it out"),
        ("--data squad --init asks --first-stage '--threshold 7'",
         "--first-stage '--threshold 7': --threshold 7: expected 'best' or a probability from 0 to 1"),
        ("--data squad --init asks --first-stage '--fairseq \"--seed 3\"'",
         "--first-stage '--fairseq \"--seed 3\"': --fairseq --seed: the command has an option --seed; give it outside "
         "of --fairseq"),
        ("--data squad --init asks --first-stage=--help",
         "--first-stage '--help': unrecognized arguments: --help"),
        ("--first-stage '--epochs 3'", WITHOUT.format("--first-stage")),
        ("--second-stage '--epochs 3'", WITHOUT.format("--second-stage")),
        ("--auxiliary-masking 0", WITHOUT.format("--auxiliary-masking")),
        ("--answer-model nowhere.pt", "--answer-model nowhere.pt: no such file"),
        ("--reader-model nowhere.pt", "--reader-model nowhere.pt: no such file"),
        ("--answer-model asks",
         "--answer-model asks: the model is a language model; fine-tune it for a task with `unified finetune`"),
        ("--reader-model asks",
         "--reader-model asks: the model is a language model; fine-tune it for a task with `unified finetune`"),
        ("--question-model continues", "--question-model continues: the model continues prompts; it has not learnt to "
         "write targets of sources"),
        ("--max-source 2", "--max-source 2: the model has room for 3 to 77 tokens beside a question"),
        ("--max-source 78", "--max-source 78: the model has room for 3 to 77 tokens beside a question"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_before_any_work(stages, capsys, line, says):
    assert augment("--words", "4", "8", *shlex.split(line)) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"unified augment: error: {says}"
    assert stages == [] and not Path("out").exists()


#: The longest question for which 128 positions leave the least source, 3 tokens, beside three special symbols.
LONGEST_QUESTION = 128 - 3 - 3


def test_the_longest_question_leaves_the_least_room_for_a_passage(stages):
    assert augment("--words", "4", "8", "--max-length", str(LONGEST_QUESTION)) == 0
    assert stages[0].models.asks.max_source == 3


@pytest.mark.parametrize("length", [LONGEST_QUESTION + 1, 200])
def test_a_question_that_leaves_no_room_for_a_passage_is_refused_by_its_own_option(stages, capsys, length):
    assert augment("--words", "4", "8", "--max-length", str(length)) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"unified augment: error: --max-length {length}: the model has no room for a passage beside a question of so "
        "many tokens; lower it"
    )
    assert stages == []


def test_the_fewest_and_the_most_words_may_be_equal(stages):
    assert augment("--words", "5", "5") == 0
    assert [len(passage.text.split()) for passage in stages[0].passages] == [5]


def test_a_missing_corpus_is_named(stages, capsys):
    assert augment("--words", "4", "8", corpus="nowhere.txt") == 2
    assert capsys.readouterr().err.splitlines()[-1] == "unified augment: error: INPUT nowhere.txt: no such file"


def test_cpu_threads_are_as_many_as_the_option_says(stages):
    before = torch.get_num_threads()
    try:
        assert augment("--words", "4", "8", "--threads", "2") == 0 and torch.get_num_threads() == 2
        assert augment("--words", "4", "8") == 0 and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
