"""`unified finetune` of several tasks at once: from official files to command, scores and answers of each."""

import json
import math
import shlex
import shutil

import numpy as np
import pytest
from scipy.stats import pearsonr

from fairseq_plugins.items import HeadsFairseqDataset, ItemFairseqDataset, TrainingOrder
from tests.integration.cli.test_task_commands import finetune, lines, refused, said, value_of
from tests.support import fairseq_runs as fairseq
from tests.support.task_folders import WORDS, language_model, read_and_written
from unified.checkpoints.trained import find_checkpoint
from unified.errors import UnifiedError
from unified.files.destination import new_folder, write_manifest
from unified.inference.sequences import Codec
from unified.reports.result_tables import tables
from unified.reports.results import read_results
from unified.tasks.catalogue import TASKS, task_named, with_changes
from unified.tasks.finetuning import Start, write_items_folder
from unified.tasks.heads import parse_head, parse_heads
from unified.tasks.heads.items import TextItem
from unified.tasks.jobs import job_of
from unified.tasks.settings import Training
from unified.tasks.several import MT_DNN, SeveralTasks, folders_of, tasks_named

SIZES = {"train": 900, "dev": 80}
OPTIONS = ("--epochs", 3, "--batch-size", 32, "--lr", 4e-3, "--max-length", 24)


def sentence(rng: np.random.Generator) -> list[str]:
    return rng.choice(WORDS[1:], rng.integers(2, 12)).tolist()


def rte(path, count: int, rng: np.random.Generator, labelled: bool) -> None:
    """Does w0 occur in the first sentence?"""
    rows = ["index\tsentence1\tsentence2" + "\tlabel" * labelled]
    for i in range(count):
        words = sentence(rng)
        if i % 2:
            words[rng.integers(len(words))] = "w0"
        label = ("not_entailment", "entailment")[i % 2]
        rows.append(f"{i}\t{' '.join(words)}\tw5" + f"\t{label}" * labelled)
    path.write_text("\n".join(rows) + "\n")


def stsb(path, count: int, rng: np.random.Generator) -> None:
    """How many of eight words are in the first sentence, 5 at most?"""
    rows = ["index\tsentence1\tsentence2\tscore"]
    for i in range(count):
        words = sentence(rng)
        rows.append(f"{i}\t{' '.join(words)}\tw6\t{min(sum(word in WORDS[:8] for word in words), 5)}.000")
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """``glue``: folders of official files, one called as in GLUE's archive; ``model``: where training starts."""
    folder, rng = tmp_path_factory.mktemp("several"), np.random.default_rng(6)
    for name in ("rte", "STS-B"):
        (folder / "glue" / name).mkdir(parents=True)
    for split, count in SIZES.items():
        rte(folder / "glue" / "rte" / f"{split}.tsv", count, rng, True)
        stsb(folder / "glue" / "STS-B" / f"{split}.tsv", count, rng)
    rte(folder / "glue" / "rte" / "test.tsv", 20, rng, False)
    language_model(folder / "model", initializer_range=0.15)
    return folder


@pytest.fixture(scope="module")
def finetuned(start):
    result = finetune(
        "finetune", "rte, stsb:1.5", "--data", start / "glue", "--init", start / "model", "--output", start / "run",
        *OPTIONS, "--seed", 2, "--run", "both", "--fairseq", "--log-format json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    return start, result


def test_both_tasks_are_learnt_scored_and_written_down(finetuned):
    """The scores are those of the written predictions, by definition, and those that validation logged."""
    folder, result = finetuned
    logged = fairseq.logged((folder / "run" / "train.log").read_text(encoding="utf-8"), "valid")[-1]
    printed = json.loads(result.stdout[result.stdout.rindex('{\n  "rte"') :])
    found = {name: json.loads((folder / "run" / name / "results.json").read_text()) for name in ("rte", "stsb")}
    for name, content in found.items():
        assert (content["task"], content["run"], content["seed"]) == (name, "both", 2)
        assert content["together"] == ["rte", "stsb"] and content["published"] == TASKS[name].published
        assert content["scores"] == printed[name] and list(content["scores"]) == ["valid"]
        assert content["command"] == fairseq.printed_command(result.stderr)
        written = json.loads((folder / "run" / "data" / "manifest.json").read_text())["outputs"]
        assert content["data"] == {
            path.name: written[f"{name}/{path.name}"]["sha256"]
            for path in (folder / "run" / "data" / name).glob("*.jsonl")
        }
    gold = {name: lines(folder / "run" / "data" / name / "valid.jsonl") for name in found}
    said_of = {name: lines(folder / "run" / name / "predictions.valid.jsonl") for name in found}
    right = sum(one["label"] == other["label"] for one, other in zip(gold["rte"], said_of["rte"], strict=True))
    assert found["rte"]["scores"]["valid"]["accuracy"] == pytest.approx(100 * right / 80) and right >= 76
    numbers = [[one["label"] for one in some["stsb"]] for some in (gold, said_of)]
    pearson = 100 * pearsonr(*numbers).statistic
    assert found["stsb"]["scores"]["valid"]["pearson"] == pytest.approx(pearson, abs=1e-6) and pearson >= 90
    for name, measure in (("rte", "accuracy"), ("stsb", "pearson"), ("stsb", "spearman")):
        score = found[name]["scores"]["valid"][measure]
        assert float(logged[f"valid_{name}_{measure}"]) == pytest.approx(score, abs=0.0051)
    assert len(lines(folder / "run" / "rte" / "predictions.test.jsonl")) == 20
    table = tables(read_results([folder / "run"]))
    assert "### rte, valid" in table and "### stsb, valid" in table and table.count("| both | 2 |") == 2


def test_as_many_updates_as_planned(finetuned):
    """All epochs, and no more: 900 items and 1,350 of the other task in batches of 32."""
    folder, result = finetuned
    words = fairseq.printed_command(result.stderr)
    epochs = fairseq.logged((folder / "run" / "train.log").read_text(encoding="utf-8"), "train")
    assert value_of(words, "--max-update") == str(3 * (29 + 43)) and len(epochs) == 3
    assert [float(epoch["train_num_updates"]) for epoch in epochs[:2]] == [72, 144]


def test_each_task_answers_by_its_name(finetuned, capsys, tmp_path):
    folder, _ = finetuned
    model = ("--model", folder / "run")
    yes = said(capsys, "predict", "rte", *model, '{"text": "w3 w0 w4", "second": "w5"}')
    assert json.loads(yes[0])["label"] == "entailment"
    few, many = (
        json.loads(said(capsys, "predict", "stsb", *model, json.dumps({"text": text, "second": "w6"}))[0])["label"]
        for text in ("w20 w21 w22 w23 w24", "w1 w2 w3 w4 w20")
    )
    assert many > few + 2
    assert said(capsys, "predict", "classification", *model, '{"text": "w3 w0 w4", "second": "w5"}') == yes
    assert said(capsys, "predict", "sst2", *model, "--head", "rte", '{"text": "w3 w0 w4", "second": "w5"}') == yes
    for task, says in (
        ("tagging", "fine-tuned for rte, stsb, not for tagging"),
        ("squad2.0", "fine-tuned for rte, stsb, not for squad2.0"),
        ("sst2", "fine-tuned for rte, stsb, not for sst2"),
    ):
        assert says in refused(capsys, "predict", task, *model, '{"text": "w1"}')
    moved = tmp_path / "moved"
    shutil.copytree(folder / "run", moved)
    assert find_checkpoint(moved) == moved / "checkpoint_last.pt"
    for name in ("rte", "stsb"):
        content = json.loads((moved / name / "results.json").read_text())
        (moved / name / "results.json").write_text(json.dumps(content | {"checkpoint": "best"}))
    assert find_checkpoint(moved) == moved / "checkpoint_best.pt"


def test_the_command_is_the_one_made_by_hand(start, tmp_path):
    """Data folder and options as docs/reference/tasks.md has them for fairseq-train."""
    arguments = ("finetune", "rte:2,stsb : 0.5", "--data", start / "glue", "--init", start / "model", "--output",
                 tmp_path / "run", "--max-length", 64, "--dry-run")  # fmt: skip
    first, second = finetune(*arguments), finetune(*arguments)
    assert first.stdout == second.stdout, second.stderr
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["data"]
    words = shlex.split(first.stdout)
    total = 5 * (math.ceil(1800 / 32) + math.ceil(450 / 32))
    assert words[1] == str(tmp_path / "run" / "data")
    by_hand = {
        "--task": "unified_understanding",
        "--head": "rte=classification(dropout=0.1):2, stsb=regression(dropout=0.1):0.5",
        "--criterion": "unified_understanding",
        "--average-measures": "rte=accuracy, stsb=spearman",
        "--best-checkpoint-metric": "average",
        "--batch-size": "32",
        "--update-freq": "1",
        "--optimizer": "unified_adamax",
        "--lr": "5e-05",
        "--max-update": str(total),
        "--warmup-updates": str(round(total / 10)),
        "--tokens-per-sample": "64",
    }
    assert {option: value_of(words, option) for option in by_hand} == by_hand
    hand = tmp_path / "hand"
    for name, folder in (("rte", "rte"), ("stsb", "STS-B")):
        write_items_folder(hand / name, name, task_named(name).read(start / "glue" / folder), Start.of(start / "model"))
        for path in (hand / name).glob("*.jsonl"):
            assert (tmp_path / "run" / "data" / name / path.name).read_bytes() == path.read_bytes()
        for path in (tmp_path / "run" / "data").iterdir():  # dictionary and tokenizer
            if path.is_file() and path.name != "manifest.json":
                assert path.read_bytes() == (hand / name / path.name).read_bytes()
    assert [entry.weight for entry in parse_heads(by_hand["--head"])] == [2, 0.5]


@pytest.mark.parametrize("seed", range(4))
def test_updates_are_those_of_fairseqs_batches(start, tmp_path, seed):
    """Counts what the dataset gives, for any weights and sizes of a batch."""
    rng = np.random.default_rng(seed)
    weights, size, groups = rng.uniform(0.05, 3, 2).round(2), int(rng.integers(1, 50)), int(rng.integers(1, 5))
    tasks = tasks_named(f"a=classification:{weights[0]}, b=regression:{weights[1]}")
    model = Start.of(start / "model")
    splits, parts = {}, []
    for member in tasks.members:
        label = 1.0 if member.name == "b" else "yes"
        count = int(rng.integers(1, 60))
        items = [TextItem(str(i), "w1 w2", None, label) for i in range(count)]
        items += [TextItem("last", "w3", None, 0.0 if member.name == "b" else "no")]
        splits |= {f"{member.name}/train": items, f"{member.name}/valid": items}
        encoded = (
            parse_head(member.task.head).for_items(items).encode(items, Codec(model.tokenizer, model.vocabulary, 64))
        )
        order = TrainingOrder(1, member.weight)
        parts.append(ItemFairseqDataset(encoded, False, None, model.vocabulary.special, "train", member.name, order))
    data = HeadsFairseqDataset(parts)
    batches = data.batch_by_size(data.ordered_indices(), max_sentences=size)
    job = job_of(tasks, Training(epochs=3), model, tmp_path)
    assert job.updates(splits, size, groups) == 3 * math.ceil(len(batches) / groups)


def test_lists_of_tasks(tmp_path):
    tasks = tasks_named("rte, mnli:2, mine=classification(labels=['a:b', 'c'], dropout=0):.25, squad-answers")
    assert [(member.name, member.weight) for member in tasks.members] == [
        ("rte", 1), ("mnli", 2), ("mine", 0.25), ("squad_answers", 1)
    ]  # fmt: skip
    assert tasks.training == MT_DNN and tasks.name == "rte, mnli, mine, squad-answers"
    entries = parse_heads(tasks.head)
    assert [(entry.name, entry.weight) for entry in entries] == [(one.name, one.weight) for one in tasks.members]
    assert entries[2].for_items([]).labels == ("a:b", "c") and entries[3].head_class.name == "span"
    assert isinstance(tasks_named("rte"), type(TASKS["rte"])) and tasks_named("xsum") is TASKS["xsum"]
    unilm = tasks_named("rte, mnli").as_in("unilm")
    assert unilm.training == TASKS["rte"].systems["unilm"][1] and "dropout=0.3" in unilm.head
    tiny = tasks_named("rte:0.00001, mnli")
    assert parse_heads(tiny.head)[0].weight == 1e-5
    for text, says in (
        ("rte, xsum", "task 'xsum': it is a generation task"),
        ("rte, mnli:two", "task 'mnli:two': the weight after the colon must be a number, got 'two'"),
        ("rte, mnli:0", "the weight must be a finite number above 0, got 0"),
        ("rte, mnli:-1", "above 0, got -1"),
        ("rte, mnli:nan", "above 0, got nan"),
        ("rte, mnli:", "got ''"),
        ("rte, mnli, rte:2", "two tasks are called rte; give each a name of its own, as in other=rte"),
        ("rte, rte=classification", "two tasks are called rte"),
        ("rte, mnlii", "task 'mnlii': no such task .did you mean 'mnli'"),
        ("rte, , mnli", "nothing stands on one side of a comma"),
        ("rte, data=classification", "take another name"),
        ("rte:2", "task 'rte:2': no such task .did you mean 'rte'"),
    ):
        with pytest.raises(UnifiedError, match=says):
            tasks_named(text)
    with pytest.raises(UnifiedError, match="no settings of 'unilm' for swag"):
        tasks_named("rte, swag").as_in("unilm")
    with pytest.raises(UnifiedError, match="--system spanbert: rte and cola have different settings"):
        tasks_named("rte, cola").as_in("spanbert")
    with pytest.raises(UnifiedError, match="the name items is torch's"):
        parse_heads("items=classification, b=tagging")
    with pytest.raises(UnifiedError, match="the name training is torch's"):
        parse_heads("training=classification")
    with pytest.raises(UnifiedError, match="the name token is that of a head of language modelling"):
        parse_heads("token=classification")


def test_folders_of_tasks(tmp_path):
    tasks = tasks_named("stsb, rte, squad2.0")
    for name in ("STS-B", "rte", "RTE", "squad2.0", "other"):
        (tmp_path / name).mkdir()
    assert [path.name for path in folders_of(tmp_path, tasks.members)] == ["STS-B", "rte", "squad2.0"]
    (tmp_path / "STS-B").rmdir()
    (tmp_path / "squad2.0").rmdir()
    with pytest.raises(UnifiedError, match="no folder stsb and no folder squad2.0 in it; several tasks have one each"):
        folders_of(tmp_path, tasks.members)
    (tmp_path / "file").write_text("")
    with pytest.raises(UnifiedError, match="no folder stsb and no folder rte and"):
        folders_of(tmp_path / "file", tasks.members)


def test_what_several_tasks_cannot_have_is_refused(start, tmp_path, capsys):
    paths = ("--data", start / "glue", "--init", start / "model", "--output", tmp_path / "run")
    for options, says in (
        (["rte, stsb", "--head", "regression"], "--head regression: there are several tasks; it is for one"),
        (["rte, mnli"], "no folder mnli in it"),
        (["rte, stsb", "--max-length", 513], "--max-length 513: the model has 512 positions"),
    ):
        assert says in refused(capsys, "finetune", *options, *paths)
    assert not (tmp_path / "run").exists()
    (tmp_path / "half" / "rte").mkdir(parents=True)
    shutil.copytree(start / "glue" / "STS-B", tmp_path / "half" / "stsb")
    shutil.copyfile(start / "glue" / "rte" / "train.tsv", tmp_path / "half" / "rte" / "train.tsv")
    tasks = tasks_named("rte, stsb")
    assert isinstance(tasks, SeveralTasks)
    job = job_of(tasks, with_changes(tasks.training, max_length=64), Start.of(start / "model"), tmp_path / "run")
    with pytest.raises(UnifiedError, match="rte"):
        read_and_written(job, tmp_path / "half")
    assert not (tmp_path / "run").exists()


def test_folders_with_folders_are_replaced_as_a_whole(tmp_path):
    """What the manifest lists, at any depth; anything else there is refused."""
    folder = tmp_path / "made"
    for content in ("one", "two"):
        with new_folder(folder, overwrite=True) as made:
            (made / "in").mkdir()
            (made / "in" / "file").write_text(content)
            write_manifest(made, {})
    assert (folder / "in" / "file").read_text() == "two"
    outputs = json.loads((folder / "manifest.json").read_text())["outputs"]
    assert list(outputs) == ["in/file"] and outputs["in/file"]["bytes"] == 3
    for foreign in ("in/other", "empty/", "deep/er/file"):
        path = folder / foreign
        path.mkdir() if foreign.endswith("/") else (path.parent.mkdir(parents=True, exist_ok=True), path.touch())
        with pytest.raises(UnifiedError, match=f"holds {foreign.rstrip('/')}, which"), new_folder(folder, True):
            pass
        path.rmdir() if foreign.endswith("/") else path.unlink()
    assert (folder / "in" / "file").read_text() == "two"
