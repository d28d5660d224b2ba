"""Fine-tunings on understanding tasks: the data folder, the command of fairseq-train, and what judges the model."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from fairseq_plugins.validation_scores import averaged_measures
from tests.support.corpora import jsonl
from tests.support.refusals import refused
from tests.support.task_folders import WORDS, language_model, read_and_written, vocabulary
from tests.support.understanding_runs import codec, small_model
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.files.destination import MANIFEST
from unified.inference.language_model import UnifiedLM
from unified.model import TransformerConfig
from unified.reports.results import FILE_NAME
from unified.tasks.catalogue import TASKS, task_named, with_head
from unified.tasks.finetuning import Start, data_hash, with_both, write_items_folder
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.registry import parse_head
from unified.tasks.jobs import SeveralJob, UnderstandingJob, WritingJob, job_of
from unified.tasks.prediction import Predictor
from unified.tasks.settings import Training
from unified.tasks.several import tasks_named
from unified.tasks.task_model import TaskModel
from unified.training.fairseq_options import by_name


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Start:
    return Start.of(language_model(tmp_path_factory.mktemp("start") / "model", max_positions=32))


def items(count: int, label: str = "ab") -> list[TextItem]:
    return [TextItem(str(i), f"w{i % 30} w1", None, label[i % len(label)]) for i in range(count)]


SPLITS = {"train": items(10), "valid": items(4), "test": [TextItem("9", "w9")]}
CLASSES = replace(task_named("classification"), training=Training(max_length=32))


def job(start: Start, folder: Path, task=CLASSES, **changes) -> UnderstandingJob:
    return job_of(task, Training(**{"max_length": 32, **changes}), start, folder)


# ---------------------------------------------------------------- the start and the data


def test_a_start_is_a_checkpoint_with_its_shape_and_words(start):
    assert start.checkpoint.suffix == ".pt" and start.checkpoint.is_file()
    assert (start.config.width, start.config.max_positions) == (32, 32)
    assert start.vocabulary.symbols == vocabulary().symbols and start.tokenizer.encode("w3 w4") == ["w3", "w4"]


def test_fields_of_the_shape_change_where_they_are_given(start):
    changed = start.with_changes(mask="left_to_right", lstm=None)
    assert changed.config == replace(start.config, mask="left_to_right") and changed.checkpoint == start.checkpoint
    assert start.with_changes(mask=None) == start


def test_a_folder_of_items_has_dictionary_tokenizer_and_manifest(start, tmp_path):
    folder = tmp_path / "data"
    for _ in range(2):  # a folder that was made like this is made anew
        write_items_folder(folder, "mine", {"one/train": SPLITS["train"], "valid": SPLITS["valid"]}, start)
        made = json.loads((folder / MANIFEST).read_text())
        assert (made["task"], made["items"]) == ("mine", {"one/train": 10, "valid": 4}) and "annotation" not in made
    assert Vocabulary.load(folder / "dict.txt").symbols == start.vocabulary.symbols
    rows = [json.loads(line) for line in (folder / "valid.jsonl").read_text().splitlines()]
    assert rows == [{"id": str(i), "text": f"w{i} w1", "label": "ab"[i % 2]} for i in range(4)]
    assert set(made["outputs"]) > {"dict.txt", "one/train.jsonl", "valid.jsonl"}
    whole = data_hash(folder)
    assert whole == {name: made["outputs"][name]["sha256"] for name in ("one/train.jsonl", "valid.jsonl")}
    assert data_hash(folder, "one/") == {"train.jsonl": whole["one/train.jsonl"]}
    (folder / "more").touch()
    assert "will not be replaced" in refused(write_items_folder, folder, "mine", SPLITS, start)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    assert "not empty" in refused(write_items_folder, tmp_path / "other", "mine", SPLITS, start)


def test_items_train_and_validate():
    for splits, says in (
        ({}, "train split of mine"), ({"train": [], "valid": [1]}, "train split of mine"),
        ({"train": [1]}, "valid split of mine; do this"), ({"train": [1], "valid": []}, "valid split of mine; do this"),
    ):  # fmt: skip
        assert refused(with_both, splits, Path("x"), "mine", "; do this") == f"--data x: holds no {says}"
    assert refused(with_both, {"train": [1]}, Path("x"), "mine") == "--data x: holds no valid split of mine"
    assert with_both({"train": [1], "valid": [2]}, Path("x"), "mine") == {"train": [1], "valid": [2]}
    assert refused(with_both, {"train": [1], "valid": [2], "test": []}, Path("x"), "mine", "; do this") == (
        "--data x: the test split of mine has no item; add some, or leave it out"
    )


def test_items_are_read_and_written_before_anything_is_learnt(start, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for split in ("train", "valid"):
        jsonl(source / f"{split}.jsonl", [{"text": "w1", "label": label} for label in "abab"])
    own = job(start, tmp_path / "run")
    splits = read_and_written(own, source)
    assert {split: len(some) for split, some in splits.items()} == {"train": 4, "valid": 4}
    assert own.items == own.data == tmp_path / "run" / "data" and set(data_hash(own.data)) == {
        "train.jsonl", "valid.jsonl",
    }  # fmt: skip
    assert refused(own.items_of, tmp_path / "none") == f"--data {tmp_path / 'none'}: no such file or folder"
    assert refused(own.items_of, source / "train.jsonl") == (
        f"--data {source / 'train.jsonl'}: holds no valid split of classification; --valid-share 0.1 takes a tenth of "
        "the training items for it"
    )


def test_a_job_has_begun_where_there_are_checkpoints_or_results(start, tmp_path):
    own = job(start, tmp_path)
    assert not own.begun() and own.results == [tmp_path / FILE_NAME]
    (tmp_path / "checkpoint_last.pt").touch()
    assert own.begun()
    (tmp_path / "checkpoint_last.pt").rename(tmp_path / FILE_NAME)
    assert own.begun()


def test_the_dictionary_grows_by_the_markers_of_the_head(start, tmp_path):
    assert job(start, tmp_path).vocabulary(SPLITS) is start.vocabulary
    rows = [{"words": ["w1", "w2"], "entities": [{"start": 0, "stop": 1}, {"start": 1, "stop": 2}], "label": label}
            for label in ("x", "no_relation")]  # fmt: skip
    task = task_named("relation")
    pairs = task.read.items(jsonl(tmp_path / "a.jsonl", rows))
    own = job(start, tmp_path / "run", task)
    splits = {"train": pairs, "valid": pairs}
    assert own.vocabulary(splits).symbols == [*start.vocabulary.symbols, *(f"[unused{i}]" for i in range(1, 5))]
    own.write(splits)
    assert Vocabulary.load(own.data / "dict.txt").symbols == own.vocabulary(splits).symbols


# ---------------------------------------------------------------- the command


def test_the_command_of_a_fine_tuning(start, tmp_path):
    own = job(start, tmp_path, epochs=2, batch_size=4, lr=2e-5, warmup=0.3, weight_decay=0.02, clip=0.5)
    assert by_name(own.command(SPLITS, 3, 0)) == {
        "": str(tmp_path / "data"),
        "--task": "unified_understanding", "--head": "classification", "--criterion": "unified_understanding",
        "--best-checkpoint-metric": "accuracy", "--maximize-best-checkpoint-metric": True, "--arch": "unified_lm",
        "--layers": "2", "--width": "32", "--heads": "2", "--feed-forward": "128", "--max-positions": "32",
        "--token-types": "2", "--dropout": "0.0", "--attention-dropout": "0.0",
        "--finetune-from-model": str(start.checkpoint), "--tokens-per-sample": "32", "--batch-size": "4",
        "--update-freq": "1", "--weight-decay": "0.02", "--clip-norm": "0.5", "--lr": "2e-05",
        "--lr-scheduler": "polynomial_decay", "--warmup-updates": "2", "--total-num-update": "6", "--max-update": "6",
        "--log-format": "json", "--log-interval": "1", "--num-workers": "1", "--seed": "3",
        "--save-dir": str(tmp_path), "--optimizer": "unified_adam", "--adam-betas": "(0.9, 0.999)",
        "--adam-eps": "1e-6", "--no-epoch-checkpoints": True, "--fp16-no-flatten-grads": True, "--cpu": True,
        "--distributed-world-size": "1", "--no-export": True,
    }  # fmt: skip


def test_settings_that_are_not_usual_are_options(start, tmp_path):
    own = job(start, tmp_path, optimizer="adamax", head_lr=1e-3, head_weight_decay=0.0, layer_decay=0.75)
    options, usual = (by_name(one.command(SPLITS, 1, 1)) for one in (own, job(start, tmp_path)))
    assert "--cpu" not in usual and options.items() - usual.items() == {
        ("--optimizer", "unified_adamax"), ("--adamax-betas", "(0.9, 0.999)"), ("--adamax-eps", "1e-6"),
        ("--head-lr", "0.001"), ("--head-weight-decay", "0.0"), ("--layer-decay", "0.75"),
    }  # fmt: skip
    assert usual.keys() - options.keys() == {"--adam-betas", "--adam-eps"}


def test_a_checkpoint_is_chosen_within_an_epoch_where_that_is_wanted(start, tmp_path):
    for changes, interval in (
        ({"select": "best", "validations": 3}, "2"), ({"select": "best"}, None), ({"validations": 3}, None),
        ({"select": "best", "validations": 2}, "3"),
    ):  # fmt: skip
        found = by_name(job(start, tmp_path, epochs=2, batch_size=2, **changes).command(SPLITS, 1, 0))
        assert found["--max-update"] == "10"
        assert found.get("--save-interval-updates") == interval
        assert found.get("--keep-interval-updates") == (None if interval is None else "1")


@pytest.mark.parametrize("cards", [0, 1, 2, 3])
@pytest.mark.parametrize("most", [None, 1, 2, 5, 12, 100])
@pytest.mark.parametrize("batch_size", [1, 7, 8, 32])
def test_an_update_has_its_sequences_however_they_are_divided(start, tmp_path, cards, most, batch_size):
    """By the definition: a process reads exactly its share of an update, in the fewest equal batches that fit."""
    found = by_name(job(start, tmp_path, epochs=3, batch_size=batch_size).command(SPLITS, 1, cards, most))
    at_once, times, processes = int(found["--batch-size"]), int(found["--update-freq"]), max(cards, 1)
    share = math.ceil(batch_size / processes)
    assert at_once <= (most or share) and at_once * times == share
    assert times == next(n for n in range(1, 99) if share % n == 0 and share // n <= (most or share))
    batches = math.ceil(10 / at_once)
    assert int(found["--max-update"]) == 3 * math.ceil(batches / (times * processes))


def test_a_model_of_another_shape_is_made_as_it_is(start, tmp_path):
    own = job(replace(start, config=TransformerConfig(vocabulary_size=99)), tmp_path)
    names = by_name(own.command(SPLITS, 1, 0))
    assert not {"--layers", "--width", "--vocabulary-size", "--heads"} & set(names)
    wide = replace(start, config=TransformerConfig(vocabulary_size=99, token_head="none", dropout=0.3))
    found = by_name(job(wide, tmp_path).command(SPLITS, 1, 0))
    assert (found["--token-head"], found["--dropout"]) == ("none", "0.3")


def test_epochs_are_counted_in_items_where_their_sequences_belong_together(start, tmp_path):
    rows = [{"context": "w1", "choices": [f"w{i}", "w3", "w4"], "label": 1} for i in range(10)]
    task = task_named("choice")
    some = task.read.items(jsonl(tmp_path / "a.jsonl", rows))
    assert job(start, tmp_path, task, epochs=2).updates({"train": some}, 4) == 2 * 3
    passage = " ".join(f"w{i % 30}" for i in range(60))
    rows = [{"question": "w1", "context": passage, "answers": [{"text": "w5", "start": passage.index("w5")}]}]
    some = task_named("span").read.items(jsonl(tmp_path / "b.jsonl", rows))
    windows = len(parse_head("span").for_items(some).encode(some, codec(32)).examples)
    assert windows > 1 and job(start, tmp_path, task_named("span")).updates({"train": some}, 1) == 3 * windows
    assert job(start, tmp_path, epochs=1).updates(SPLITS, 3, 2) == 2


# ---------------------------------------------------------------- refusals and judges


def test_a_job_is_of_the_kind_of_its_task(start, tmp_path):
    assert type(job(start, tmp_path)) is UnderstandingJob
    several = tasks_named("rte, mrpc")
    assert type(job(start, tmp_path, several)) is SeveralJob
    roomy = replace(start, config=replace(start.config, max_positions=600))
    written = task_named("texts")
    assert type(job_of(written, written.training, roomy, tmp_path)) is WritingJob


def test_sequences_have_room_for_a_token_of_a_text(start, tmp_path):
    job(start, tmp_path, max_length=3)
    assert refused(job, start, tmp_path, max_length=2).startswith("sequences of 2 tokens are too short, those of this")


def test_sequences_have_room_in_the_positions(start, tmp_path):
    job(start, tmp_path, max_length=32)
    assert refused(job, start, tmp_path, max_length=33) == (
        "--max-length 33: the model has 32 positions; give it shorter sequences"
    )


def test_a_model_that_reads_entities_learns_tasks_whose_items_name_them(start, tmp_path):
    reading = replace(start, config=replace(start.config, sublayers="entity,feed_forward"))
    job(reading, tmp_path)
    assert refused(job, reading, tmp_path, task_named("tagging")).startswith("the model has entity-aware attention")
    assert refused(job, reading, tmp_path, tasks_named("rte, conll2003")).startswith("the model has entity-aware")


def test_the_measure_that_chooses_is_one_of_the_heads(start, tmp_path):
    def chosen(task, **settings) -> str:
        return by_name(job(start, tmp_path, task, **settings).command(SPLITS, 1, 0))["--best-checkpoint-metric"]

    assert chosen(CLASSES) == "accuracy" and chosen(replace(CLASSES, measure="matthews")) == "matthews"
    task = with_head(TASKS["mrpc"], "classification")
    assert refused(job(start, tmp_path, task).command, SPLITS, 1, 0) == (
        "mrpc is judged by f1, which the head classification does not measure (it has accuracy, matthews, macro_f1); "
        "give --head all settings of the published head, or leave it out"
    )


def trained(*tasks: str) -> TaskModel:
    """A model with a head for each task, by the names of the heads."""
    own = codec(32)
    predictors = {}
    for name in tasks:
        task = parse_head("classification").for_items(SPLITS["train"])
        predictors[name] = Predictor(small_model(task, own), "task", task, own)
    return TaskModel(next(iter(predictors.values())).model, own.vocabulary, own.tokenizer, Path(), predictors)


def test_a_model_of_a_task_is_judged_by_its_predictor(start, tmp_path):
    own, model = job(start, tmp_path), trained("task")
    own.write(SPLITS)
    [learnt] = own.learnt(model, SPLITS)
    assert learnt.task is own.task and learnt.folder == tmp_path and learnt.splits is SPLITS
    assert learnt.predictor is model.predictors["task"] and learnt.measure == "accuracy" and learnt.together == ()
    assert learnt.data == data_hash(own.data) and set(learnt.data) == {"train.jsonl", "valid.jsonl", "test.jsonl"}
    with pytest.raises(UnifiedError, match="^the model is a language model"):
        own.learnt(UnifiedLM.from_pretrained(start.checkpoint), SPLITS)


# ---------------------------------------------------------------- several tasks


def several(start: Start, folder: Path, text: str = "mrpc:2, mine=rte") -> SeveralJob:
    return job_of(tasks_named(text), Training(max_length=32, epochs=2), start, folder)


def both() -> dict[str, list[TextItem]]:
    return {
        "mrpc/train": items(5, "01"), "mrpc/valid": items(2, "01"), "mrpc/test": items(1, "01"),
        "mine/train": items(7), "mine/valid": items(3),
    }  # fmt: skip


def test_each_of_several_tasks_has_its_folder_its_items_and_its_judge(start, tmp_path):
    own, model = several(start, tmp_path), trained("mrpc", "mine")
    assert own.results == [tmp_path / "mrpc" / FILE_NAME, tmp_path / "mine" / FILE_NAME]
    own.write(both())
    first, second = own.learnt(model, both())
    assert (first.folder, second.folder) == (tmp_path / "mrpc", tmp_path / "mine")
    assert {name: len(some) for name, some in first.splits.items()} == {"train": 5, "valid": 2, "test": 1}
    assert {name: len(some) for name, some in second.splits.items()} == {"train": 7, "valid": 3}
    assert second.data == data_hash(own.data, "mine/") and set(second.data) == {"train.jsonl", "valid.jsonl"}
    assert [one.predictor for one in (first, second)] == [model.predictors[name] for name in ("mrpc", "mine")]
    assert (first.measure, second.measure) == ("f1", "accuracy") and first.task.name == "mrpc"
    assert first.together == second.together == ("mrpc", "mine")
    unmeasured = replace(own, task=replace(own.task, members=tuple(
        replace(member, task=replace(member.task, measure=None)) for member in own.task.members)))  # fmt: skip
    assert [one.measure for one in unmeasured.learnt(model, both())] == ["accuracy", "accuracy"]


def test_an_epoch_of_several_tasks_reads_each_by_its_weight(start, tmp_path):
    own = several(start, tmp_path)
    # Ten of the first, seven of the second, in batches of one task each.
    assert own.updates(both(), 4) == 2 * (3 + 2) and own.updates(both(), 4, 2) == 2 * 3
    half = several(start, tmp_path, "mrpc:0.3, mine=rte")
    assert half.updates(both(), 1) == 2 * (2 + 7)
    command = own.command(both(), 1, 0)
    assert by_name(command)["--best-checkpoint-metric"] == "average" and by_name(command)["--head"] == own.task.head


def test_the_average_that_chooses_is_of_each_tasks_own_measure(start, tmp_path):
    """As each of them alone is judged, and as ``results.json`` of each names it."""
    text = "cola, mrpc, stsb, mine=rte, own=regression"
    own = several(start, tmp_path, text)
    labels = {"cola": "01", "mrpc": "01", "stsb": [1.0, 2.5], "own": [1.0, 2.5]}
    splits = {f"{member.name}/{split}": items(4, labels.get(member.name, ("entailment", "not_entailment")))
              for member in own.task.members for split in ("train", "valid")}  # fmt: skip
    asked = by_name(own.command(splits, 1, 0))["--average-measures"]
    assert asked == "cola=matthews, mrpc=f1, stsb=spearman, mine=accuracy, own=pearson"
    alone = [by_name(job(start, tmp_path, member.task).command(
        {split: splits[f"{member.name}/{split}"] for split in ("train", "valid")}, 1, 0
    ))["--best-checkpoint-metric"] for member in own.task.members]  # fmt: skip
    heads = dict(zip([member.name for member in own.task.members], own.understandings(splits), strict=True))
    assert [*averaged_measures(asked, heads).values()] == alone


def test_a_measure_that_a_head_of_several_lacks_is_refused(start, tmp_path):
    own = several(start, tmp_path)
    task = replace(own.task, members=(replace(own.task.members[0], task=with_head(TASKS["mrpc"], "classification")),
                                      *own.task.members[1:]))  # fmt: skip
    assert refused(replace(own, task=task).command, both(), 1, 0).startswith("mrpc is judged by f1, which the head ")


def test_several_tasks_are_read_from_a_folder_each(start, tmp_path):
    source = tmp_path / "source"
    for name, header in (("MRPC", "Quality\t#1 String\t#2 String"), ("mine", "label\tsentence1\tsentence2")):
        (source / name).mkdir(parents=True)
        for split in ("train", "dev"):
            label = "1" if name == "MRPC" else "entailment"
            (source / name / f"{split}.tsv").write_text(f"{header}\n{label}\tw1\tw2\n")
    own = several(start, tmp_path / "run")
    found = own.items_of(source)
    assert list(found) == ["mrpc/train", "mrpc/valid", "mine/train", "mine/valid"]
    assert found["mine/valid"] == [TextItem("0", "w1", "w2", "entailment")] and WORDS[1] == "w1"
    (source / "mine" / "train.tsv").write_text("label\tsentence1\tsentence2\n")
    assert "holds no row" in refused(own.items_of, source)
