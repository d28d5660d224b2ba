"""Which checkpoint is scored: the last one, or the best on the development set; and that no test set chooses."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fairseq_plugins.language_options import UnifiedLMTaskConfig
from fairseq_plugins.tasks.unified_lm import UnifiedLMTask
from fairseq_plugins.tasks.unified_understanding import UnifiedUnderstandingTask, UnifiedUnderstandingTaskConfig
from fairseq_plugins.writing_validation import OfficialScores
from tests.integration.cli.test_task_commands import finetune, items, refused, value_of
from tests.support import fairseq_runs as fairseq
from tests.support.task_folders import WORDS, language_model
from unified import load
from unified.checkpoints.trained import find_checkpoint
from unified.cli import main
from unified.errors import UnifiedError
from unified.reports.results import read_results
from unified.tasks.catalogue import TASKS, task_named, with_head
from unified.tasks.heads.items import TextItem, write_items
from unified.tasks.selection import require_development_set, with_valid_share
from unified.tasks.several import tasks_named

FLIPPED = {"yes": "no", "no": "yes"}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A model, and data whose validation labels are the wrong ones: the more is learnt, the lower the score."""
    folder, rng = tmp_path_factory.mktemp("selection"), np.random.default_rng(0)
    language_model(folder / "model")
    (folder / "data").mkdir()
    write_items(folder / "data" / "train.jsonl", items(384, rng))
    wrong = [TextItem(one.id, one.text, None, FLIPPED[one.label]) for one in items(60, rng)]
    write_items(folder / "data" / "valid.jsonl", wrong)
    return folder


def logged(run, measure: str) -> list[float]:
    """The measure of every validation of a run."""
    log = (run / "train.log").read_text(encoding="utf-8")
    return [float(row[f"valid_{measure}"]) for row in fairseq.logged(log, "valid")]


def test_the_best_checkpoint_is_scored_and_not_the_last(start, tmp_path):
    """Two validations in each of two epochs; the first finds about half of the labels, the last none."""
    result = finetune(
        "finetune", "classification", "--data", start / "data", "--init", start / "model", "--output",
        tmp_path / "run", "--head", "classification(dropout=0.0)", "--epochs", 2, "--lr", 6e-3,
        "--max-length", 16, "--batch-size", 16, "--select", "best", "--validations", 2,
        "--fairseq", "--log-format json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    scores = logged(tmp_path / "run", "accuracy")
    assert len(scores) == 4 and max(scores) > 30 > 15 > scores[-1]
    content = json.loads((tmp_path / "run" / "results.json").read_text())
    # The file that the run has written makes the same run again.
    again = finetune("finetune", "--config", tmp_path / "run" / "run.yaml", "--output", tmp_path / "again")
    assert again.returncode == 0, again.stderr[-3000:]
    repeated = json.loads((tmp_path / "again" / "results.json").read_text())
    assert {key: repeated[key] for key in ("scores", "seed", "settings")} == {
        key: content[key] for key in ("scores", "seed", "settings")
    }
    assert logged(tmp_path / "again", "loss") == logged(tmp_path / "run", "loss")
    assert round(content["scores"]["valid"]["accuracy"], 2) == max(scores)
    assert content["checkpoint"] == content["settings"]["select"] == "best" and content["measure"] == "accuracy"
    valid = [json.loads(line) for line in (start / "data" / "valid.jsonl").read_text().splitlines()]
    for name, score in (("best", max(scores)), ("last", scores[-1])):
        handle = load(tmp_path / "run" / f"checkpoint_{name}.pt")
        found = handle.classify([one["text"] for one in valid])
        right = sum(one["label"] == item["label"] for one, item in zip(found, valid, strict=True))
        assert round(100 * right / len(valid), 2) == score
    assert find_checkpoint(tmp_path / "run").name == "checkpoint_best.pt"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Pairs whose target is one text, and of a tenth another one, which development items of that kind do not have.

    The model learns the first text for all sources, and then that this tenth has the other one.
    """
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(1)
    language_model(folder / "model", width=64, initializer_range=0.125)
    (folder / "data").mkdir()
    for split, count in (("train", 480), ("valid", 12)):
        rows = []
        for i in range(count):
            words, rare = rng.choice(WORDS[4:], 4).tolist(), split == "valid" or i % 10 == 0
            target = "w2 w3 w4" if rare and split == "train" else "w5 w6 w7"
            rows.append({"title": target, "body": " ".join(["w0" if rare else "w1", *words])})
        (folder / "data" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    capitals = [{"title": title, "body": "w1 w5 w6"} for title in ("W5 w6", "w5 w6")]
    (folder / "data" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in capitals))
    return folder


def test_a_writer_is_chosen_by_what_it_writes(texts, tmp_path):
    """A checkpoint is chosen by the official scores, the very ones that the results have."""
    result = finetune(
        "finetune", "reuters", "--data", texts / "data", "--init", texts / "model", "--output", tmp_path / "run",
        "--epochs", 3, "--batch-size", 16, "--lr", 4e-3, "--max-length", 76, "--select", "best",
        "--fairseq", "--log-format json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    command = fairseq.printed_command(result.stderr)
    assert value_of(command, "--best-checkpoint-metric") == "rougeL" and value_of(command, "--eval-task") == "reuters"
    scores = logged(tmp_path / "run", "rougeL")
    said = "test: no prediction has a capital letter, and all references of 1 of 2 items have some: "
    assert said in result.stderr and "valid: no prediction" not in result.stderr
    assert len(scores) == 3 and max(scores) > 30 > 15 > scores[-1]
    (content,) = read_results([tmp_path / "run"])
    assert content["measure"] == "rougeL"
    assert round(content["scores"]["valid"]["rougeL"], 2) == max(scores)
    for measure in ("rouge1", "rouge2"):
        best = logged(tmp_path / "run", measure)[len(scores) - 1 - scores[::-1].index(max(scores))]
        assert round(content["scores"]["valid"][measure], 2) == best


def test_options_that_leave_no_checkpoint_are_refused(start, tmp_path, capsys):
    data, model = start / "data", start / "model"
    shared = ("--data", data, "--init", model, "--output", tmp_path / "run")
    assert "--fairseq --disable-validation: then there is no best checkpoint to score; leave it out" in refused(
        capsys, "finetune", "classification", *shared, "--select", "best", "--fairseq=--disable-validation"
    )
    assert "--fairseq --no-last-checkpoints: then there is no last checkpoint to score" in refused(
        capsys, "finetune", "classification", *shared, "--fairseq", "--lr 1 --no-last-checkpoints"
    )
    for select in ("last", "best"):
        assert f"--fairseq --no-save: then there is no {select} checkpoint to score" in refused(
            capsys, "finetune", "classification", *shared, "--select", select, "--fairseq=--no-save"
        )
    assert "--validations must be at least 1, got 0" in refused(
        capsys, "finetune", "classification", *shared, "--validations", 0
    )
    says = "--validations 2: the last checkpoint is scored, which no validation chooses; add --select best, or leave"
    for select in ((), ("--select", "last")):
        assert says in refused(capsys, "finetune", "classification", *shared, *select, "--validations", 2)


def test_fairseq_train_refuses_what_it_does_not_measure(start, texts, tmp_path):
    words = ["--init", start / "model", "--output", tmp_path / "run", "--dry-run"]
    assert main(["finetune", "classification", "--data", str(start / "data"), *map(str, words)]) == 0
    for metric, maximize, says in (
        ("f1", True, "f1 is not measured in validation (known: accuracy, matthews, macro_f1, loss)"),
        ("loss", True, "loss cannot go with --maximize-best-checkpoint-metric"),
        ("accuracy", False, "accuracy needs --maximize-best-checkpoint-metric"),
    ):
        options = {"best_checkpoint_metric": metric, "maximize_best_checkpoint_metric": maximize}
        config = UnifiedUnderstandingTaskConfig(data=str(tmp_path / "run" / "data"), max_valid_steps=None, **options)
        assert f"--best-checkpoint-metric {metric}" in (said := refusal(UnifiedUnderstandingTask, config))
        assert says in said
    words = [
        "--init",
        texts / "model",
        "--output",
        tmp_path / "text",
        "--max-length",
        76,
        "--select",
        "best",
        "--dry-run",
    ]
    assert main(["finetune", "reuters", "--data", str(texts / "data"), *map(str, words)]) == 0
    for changes, says in (
        ({"eval_task": "rte"}, "--eval-task rte: not a generation task; known are squad_qg,"),
        ({"eval_items": None}, "--eval-task reuters: needs --eval-items, the file of its validation items"),
        ({"eval_task": "coqa_free"}, "rougeL is not measured in validation"),
        ({"eval_task": None}, "rougeL is not measured in validation"),
    ):
        options = {
            "best_checkpoint_metric": "rougeL", "maximize_best_checkpoint_metric": True, "max_tokens": None,
            "max_valid_steps": None, "eval_task": "reuters",
            "eval_items": str(tmp_path / "text" / "items" / "valid.jsonl"),
        }  # fmt: skip
        config = UnifiedLMTaskConfig(data=str(tmp_path / "text" / "data"), tokens_per_sample=76, **options | changes)
        assert says in refusal(UnifiedLMTask, config)
    scores = OfficialScores("reuters", str(tmp_path / "text" / "items" / "valid.jsonl"))
    with pytest.raises(UnifiedError, match="--eval-items: holds 12 items for 480 validation pairs"):
        scores.require(480)


def refusal(task, config) -> str:
    """What fairseq-train says as it ends before it trains."""
    with pytest.raises(SystemExit) as raised:
        task.setup_task(config)
    return str(raised.value)


def test_a_head_that_lacks_the_tasks_measure_is_refused(start, tmp_path, capsys):
    rows = ["#1 String\t#2 String\tQuality", "w1\tw2\t1", "w3\tw4\t0"]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text("\n".join(rows))
    shared = ("--data", tmp_path, "--init", start / "model", "--output", tmp_path / "run", "--dry-run")
    assert "mrpc is judged by f1, which the head classification(dropout=0.2) does not measure" in refused(
        capsys, "finetune", "mrpc", *shared, "--head", "classification(dropout=0.2)"
    )
    assert main(["finetune", "mrpc", *map(str, shared), "--head", "classification(positive='1')"]) == 0


def reviews(folder, count: int = 20) -> None:
    for split in ("train", "test"):
        for label in ("neg", "pos"):
            (folder / split / label).mkdir(parents=True)
            for i in range(count):
                (folder / split / label / f"{i}_1.txt").write_text(f"{split} {label} w{i}")


def test_nothing_is_chosen_on_a_test_set(start, tmp_path, capsys):
    """IMDB's test set validates, as in XLNet's code, whose default is therefore the last checkpoint."""
    on_test = [name for name, task in TASKS.items() if name not in TEXTS and task.validates_on_test]
    assert on_test == ["imdb"] and TASKS["imdb"].training.select == "last"
    reviews(tmp_path / "imdb")
    shared = ("--init", start / "model", "--output", tmp_path / "run", "--dry-run")
    says = (
        "--select best: the validation files of imdb are its test set, on which nothing may be chosen; "
        "--valid-share 0.1 chooses on a tenth of its training items instead"
    )
    assert says in refused(capsys, "finetune", "imdb", "--data", tmp_path / "imdb", *shared, "--select", "best")
    assert says in refused(capsys, "finetune", "rte, imdb", "--data", tmp_path, *shared, "--select", "best")
    options = ("--select", "best", "--valid-share", "0.1")
    assert main(["finetune", "imdb", "--data", str(tmp_path / "imdb"), *map(str, shared), *options]) == 0
    manifest = json.loads((tmp_path / "run" / "data" / "manifest.json").read_text())
    assert manifest["items"] == {"train": 36, "valid": 4, "test": 40}
    for share, says in ((0.0, "must be above 0 and below 1"), (1.0, "must be above 0 and below 1"), (0.001, "leaves")):
        assert says in refused(
            capsys, "finetune", "imdb", "--data", tmp_path / "imdb", *shared, "--valid-share", share
        )  # fmt: skip
    (tmp_path / "pairs").mkdir()
    for name in ("train", "dev"):
        (tmp_path / "pairs" / f"{name}.tsv").write_text(
            "index\tsentence1\tsentence2\tlabel\n0\tw1\tw2\tentailment\n1\tw3\tw4\tnot_entailment\n"
        )
    assert "pairs has a development set for rte; leave it out" in refused(
        capsys, "finetune", "rte", "--data", tmp_path / "pairs", *shared, "--valid-share", 0.1
    )
    assert "--valid-share 0.1: coqa_free has a development set of its own" in refused(
        capsys, "finetune", "coqa_free", "--data", tmp_path, *shared, "--valid-share", 0.1
    )


def test_a_single_file_of_items_gives_its_own_development_set(start, tmp_path, capsys):
    """A folder without valid.jsonl is refused, but with --valid-share; one that has the file is refused with it."""
    data, shared = tmp_path / "data", ("--init", start / "model", "--dry-run")
    data.mkdir()
    write_items(data / "train.jsonl", items(20, np.random.default_rng(0)))
    words = ("finetune", "classification", "--data", data, *shared)
    assert "--valid-share" in refused(capsys, *words, "--output", tmp_path / "none")
    assert main([*map(str, words), "--output", str(tmp_path / "run"), "--valid-share", "0.1"]) == 0
    manifest = json.loads((tmp_path / "run" / "data" / "manifest.json").read_text())
    assert manifest["items"] == {"train": 18, "valid": 2}
    write_items(data / "valid.jsonl", items(4, np.random.default_rng(1)))
    assert "--valid-share 0.1" in refused(capsys, *words, "--output", tmp_path / "both", "--valid-share", 0.1)
    options = ("--output", tmp_path / "c", "--valid-share", 0.1)
    assert "no file in it is called train" in refused(
        capsys, "finetune", "classification", "--data", tmp_path, *shared, *options
    )


TEXTS = [name for name, task in TASKS.items() if not hasattr(task, "head")]


def test_held_out_items_are_training_items(tmp_path):
    reviews(tmp_path)
    task = task_named("imdb")
    held = with_valid_share(task, 0.25)
    before, after = task.read(tmp_path), held.read(tmp_path)
    assert after["test"] == before["valid"] and len(after["valid"]) == 10
    assert {one.id for one in (*after["train"], *after["valid"])} == {one.id for one in before["train"]}
    assert not {one.id for one in after["train"]} & {one.id for one in after["valid"]}
    assert held.read(tmp_path) == after
    assert held.published == {"test": {"XLNet large": {"accuracy": 96.21}}}
    require_development_set(held, "--select best")
    several = with_valid_share(tasks_named("rte, imdb"), 0.25)
    require_development_set(several, "--select best")
    assert several.members[0].task == TASKS["rte"]
    with pytest.raises(UnifiedError, match="leaves nothing to train or to choose on"):
        with_valid_share(task, 0.99).read(tmp_path)


def test_defaults_are_what_the_papers_did():
    """SpanBERT's scripts keep the best of ten validations an epoch, its coreference code of one each 1,000 documents;

    XLNet's script of STS-B takes the best checkpoint (eval_all_ckpt); the others say nothing of the kind.
    """
    best = {name for name, task in TASKS.items() if task.training.select == "best"}
    mrqa = {"newsqa", "triviaqa", "searchqa", "hotpotqa", "naturalquestions", "mrqa_squad", "mrqa_together"}
    assert best == {"tacred", "conll2012", *mrqa}
    assert {TASKS[name].training.validations for name in best - {"conll2012"}} == {10}
    systems = {
        (name, system): training.select
        for name, task in TASKS.items()
        if name not in TEXTS
        for system, (_, training) in task.systems.items()
    }
    chosen = {key for key, select in systems.items() if select == "best"}
    coreference = {("conll2012", system) for system in TASKS["conll2012"].systems}
    spanbert = {key for key in systems if key[1] == "spanbert"}
    assert chosen == spanbert | coreference | {("stsb", "xlnet")}


def test_the_first_measure_of_a_task_chooses():
    measures = {name: TASKS[name].measures[0] for name in TEXTS}
    assert measures.pop("coqa_free") == "f1"
    assert {name: measure for name, measure in measures.items() if measure != "rougeL"} == dict.fromkeys(
        ("squad_qg", "squad_qg_du", "squad_qg_reversed", "squad_qg_sentence"), "bleu4"
    )
    assert with_head(TASKS["cola"], "classification").measure == "matthews" and TASKS["stsb"].measure == "spearman"
