"""The task of understanding: its options, its heads and items, and what is refused before a model is built."""

from dataclasses import MISSING, fields, replace

import pytest
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

from fairseq_plugins import trust
from fairseq_plugins.dataset import to_batch
from fairseq_plugins.items import HeadsFairseqDataset, ItemFairseqDataset, TrainingOrder
from fairseq_plugins.tasks.unified_understanding import UnifiedUnderstandingTask, UnifiedUnderstandingTaskConfig
from tests.support.task_folders import vocabulary
from tests.support.understanding_tasks import (
    ITEMS,
    built_model,
    item_folder,
    model_settings,
    settings,
    understanding_task,
)
from unified.data.targets import TASK
from unified.errors import UnifiedError
from unified.tasks.heads import TASK_HEADS, Classification, Tagging
from unified.tasks.heads.items import TextItem, WordsItem, write_items

BOTH = "classification, tagging:2.5"


class Own(Classification):
    """A head of somebody else."""

    name = "own"


def test_options_have_these_defaults():
    assert TASK_REGISTRY["unified_understanding"] is UnifiedUnderstandingTask
    assert TASK_DATACLASS_REGISTRY["unified_understanding"] is UnifiedUnderstandingTaskConfig
    options = fields(UnifiedUnderstandingTaskConfig)
    assert {field.name: field.default for field in options} == {
        "_name": None, "no_export": False, "data": "???", "head": "classification", "average_measures": "",
        "tokens_per_sample": 128, "auxiliary_masking": 0.0, "padded": False, "seed": "${common.seed}",
        "cpu": "${common.cpu}", "update_freq": "${optimization.update_freq}",
        "max_valid_steps": "${dataset.max_valid_steps}",
        "best_checkpoint_metric": "${checkpoint.best_checkpoint_metric}",
        "maximize_best_checkpoint_metric": "${checkpoint.maximize_best_checkpoint_metric}",
    }  # fmt: skip
    assert all(field.default_factory is MISSING for field in options)


def test_a_lone_head_learns_the_labels_of_the_training_items(tmp_path):
    task = understanding_task(item_folder(tmp_path / "data", "classification"), "classification(dropout=0.25)")
    assert task.tasks == {"classification": Classification(("a", "b"), dropout=0.25)}
    assert task.vocabulary.symbols == vocabulary().symbols and task.cfg.seed == 3 and task.items == {}
    assert task.tokenizer.encode("w1 w2") == ["w1", "w2"] and task.of_checkpoint is False
    assert task.predictions.tasks is task.tasks and task.predictions.items is task.items
    assert [*task.entries] == ["classification"] and task.masked is False


def test_items_of_several_heads_are_in_folders_called_like_them(tmp_path):
    task = understanding_task(item_folder(tmp_path / "data", "classification", "tagging"), BOTH)
    assert task.tasks == {"classification": Classification(("a", "b")), "tagging": Tagging(("x", "y"))}
    assert {name: entry.weight for name, entry in task.entries.items()} == {"classification": 1, "tagging": 2.5}


def refused(*given, **options):
    with pytest.raises(SystemExit) as raised:
        understanding_task(*given, **options)
    return str(raised.value).removeprefix("unified_lm: error: ")


def test_what_is_not_there_or_cannot_be_is_refused_in_one_line(tmp_path):
    missing = tmp_path / "missing"
    assert refused(missing, "classification") == f"{missing}: no such data folder"
    data = item_folder(tmp_path / "data", "classification")
    for steps in (0, 2):
        assert refused(data, "classification", max_valid_steps=steps) == (
            "--max-valid-steps: scores are of all items of a split; leave it out"
        )
    (data / "dict.txt").unlink()
    assert refused(data, "classification") == f"{data / 'dict.txt'}: no such dictionary; `unified prepare` makes one"


@pytest.mark.parametrize(
    ("heads", "options", "metric", "maximize", "says"),
    [
        ("one", {}, "loss", False, None),
        ("one", {}, "accuracy", True, None),
        ("one", {}, "macro_f1", True, None),
        ("one", {"auxiliary_masking": 0.5}, "accuracy", True, None),
        ("both", {}, "tagging_loss", False, None),
        ("both", {}, "average", True, None),
        ("both", {}, "classification_macro_f1", True, None),
        ("one", {}, "loss", True, "loss cannot go with --maximize-best-checkpoint-metric"),
        ("one", {}, "accuracy", False, "accuracy needs --maximize-best-checkpoint-metric"),
        ("one", {"auxiliary_masking": 0.5}, "masked_loss", False,
            "masked_loss is not measured in validation (known: accuracy, matthews, macro_f1, loss)"),
        ("one", {"auxiliary_masking": 0.5}, "f1", True,
            "f1 is not measured in validation (known: accuracy, matthews, macro_f1, loss)"),
        ("one", {}, "classification_loss", False,
            "classification_loss is not measured in validation (known: accuracy, matthews, macro_f1, loss)"),
        ("both", {}, "accuracy", True,
            "accuracy is not measured in validation (known: average, classification_accuracy, classification_matthews, "
            "classification_macro_f1, tagging_accuracy, loss, classification_loss, tagging_loss)"),
    ],
)  # fmt: skip
def test_a_checkpoint_is_chosen_by_what_validation_measures(tmp_path, heads, options, metric, maximize, says):
    one = heads == "one"
    data = item_folder(tmp_path / "data", *["classification"] if one else ["classification", "tagging"])
    given = data, "classification" if one else BOTH
    options = {**options, "best_checkpoint_metric": metric, "maximize_best_checkpoint_metric": maximize}
    if says is None:
        assert understanding_task(*given, **options).masked is bool(options.get("auxiliary_masking"))
    else:
        assert refused(*given, **options) == f"--best-checkpoint-metric {says}"


def test_a_weight_of_masking_is_no_negative_number(tmp_path):
    data = item_folder(tmp_path / "data", "classification")
    assert refused(data, "classification", auxiliary_masking=-0.5) == "--auxiliary-masking must be at least 0, got -0.5"
    said = refused(data, "classification", auxiliary_masking=float("nan"))
    assert said == "--auxiliary-masking must be finite, got nan"


def test_the_average_of_several_heads_is_of_the_measures_that_an_option_names(tmp_path):
    data = item_folder(tmp_path / "data", "classification", "tagging")
    task = understanding_task(data, BOTH, average_measures="classification=macro_f1")
    assert task.predictions.measures == {"classification": "macro_f1", "tagging": "accuracy"}
    says = "--average-measures 'tagging=f1': tagging does not measure 'f1' (it has accuracy)"
    assert refused(data, BOTH, average_measures="tagging=f1") == says


def test_a_class_of_somebody_else_is_imported_where_the_command_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(TASK_HEADS, "own", Own)  # what is registered goes again
    head = f"{Own.__module__}:Own"
    cfg = settings(item_folder(tmp_path / "data", "classification"), head)

    def of_checkpoint(cfg, **given):
        load = trust.noting_options(
            lambda filenames, overrides: UnifiedUnderstandingTask.setup_task(cfg, from_checkpoint=True)
        )
        return load(["model.pt"], given)

    for task in (UnifiedUnderstandingTask.setup_task(cfg), of_checkpoint(cfg, head=head)):
        assert type(task.tasks["own"]) is Own
    for given in ({}, {"seed": 1}):
        with pytest.raises(SystemExit, match=f"^unified_lm: error: .*{Own.__module__}:Own"):
            of_checkpoint(cfg, **given)
    plain = replace(cfg, head="classification")
    assert of_checkpoint(plain).of_checkpoint is True
    assert UnifiedUnderstandingTask.setup_task(plain, from_checkpoint=False).of_checkpoint is False


def loaded(task, *splits):
    built_model(task)
    for split in splits:
        task.load_dataset(split)
    return [task.datasets[split] for split in splits]


@pytest.mark.parametrize("options", [{}, {"auxiliary_masking": 0.5}, {"padded": True}])
def test_examples_are_read_at_random_in_training_and_whole_items_together_otherwise(tmp_path, monkeypatch, options):
    monkeypatch.setattr(Classification, "longest_run", 4)
    task = understanding_task(item_folder(tmp_path / "data", "classification"), "classification:1.5", **options)
    train, valid = loaded(task, "train", "valid")
    assert type(train) is type(valid) is ItemFairseqDataset
    assert train.training == TrainingOrder(3, 1.5, 4, "auxiliary_masking" in options) and valid.training is None
    length = None if options.get("padded") else task.row_length
    for split, dataset in (("train", train), ("valid", valid)):
        assert (dataset.split, dataset.head, dataset.row_length) == (split, "classification", length)
        assert task.items[split] == {"classification": ITEMS["classification"][split]}
        assert dataset.special == task.special and len(dataset.encoded.examples) == len(ITEMS["classification"][split])
        batch = to_batch(dataset.collater([0, 1]))
        assert len(batch.tokens) == (1 if length else 2)


@pytest.mark.parametrize("together", [True, False])
def test_examples_of_an_item_are_read_together_where_the_loss_needs_them(tmp_path, monkeypatch, together):
    """In validation always; here a row has room for two words."""
    monkeypatch.setattr(Tagging, "together", together)
    task = understanding_task(item_folder(tmp_path / "data", "tagging"), "tagging", tokens_per_sample=4)
    write_items(tmp_path / "data" / "train.jsonl", [WordsItem("0", ("w1",) * 5, ("x",) * 5)])
    write_items(tmp_path / "data" / "valid.jsonl", [WordsItem("0", ("w1",) * 5, ("x",) * 5)])
    train, valid = loaded(task, "train", "valid")
    assert [len(unit) for unit in train.whole] == ([3] if together else [1, 1, 1])
    assert [len(unit) for unit in valid.whole] == [3]


def test_several_heads_have_a_data_set_each(tmp_path):
    task = understanding_task(item_folder(tmp_path / "data", "classification", "tagging"), BOTH)
    train, valid = loaded(task, "train", "valid")
    assert type(train) is type(valid) is HeadsFairseqDataset
    assert [one.head for one in valid.datasets] == ["classification", "tagging"]
    assert [one.training.weight for one in train.datasets] == [1, 2.5]
    assert task.items["valid"] == {head: ITEMS[head]["valid"] for head in ITEMS}
    task.load_dataset("valid")
    assert [*task.items] == ["train", "valid"] and len(task.items["valid"]) == 2


def test_items_that_are_too_long_and_other_remarks_are_logged(tmp_path, caplog, monkeypatch):
    encode = Classification.encode
    monkeypatch.setattr(
        Classification, "encode", lambda self, *given: replace(encode(self, *given), remarks=["odd", "very odd"])
    )
    data = item_folder(tmp_path / "data", "classification", "tagging")
    long = [TextItem(str(n), "w1 " * length, None, "a") for n, length in enumerate((6, 7, 8))]
    write_items(data / "classification" / "valid.jsonl", long)
    write_items(data / "tagging" / "valid.jsonl", [WordsItem("0", ("w1",) * 7, ("x",) * 7)])
    with caplog.at_level("INFO", "fairseq_plugins.tasks.unified_understanding"):
        (valid,) = loaded(understanding_task(data, BOTH, tokens_per_sample=8), "valid")
    assert caplog.messages == [
        f"{data}/classification/valid.jsonl: 2 of 3 items have more than 8 tokens; they are cut",
        f"{data}/classification/valid.jsonl: odd",
        f"{data}/classification/valid.jsonl: very odd",
        f"{data}/tagging/valid.jsonl: 1 of 1 items have more than 8 tokens; they are read in windows",
    ]
    assert [len(one.tokens) for one in valid.datasets[0].encoded.examples] == [8, 8, 8]
    assert sum(len(one.targets[TASK]) for one in valid.datasets[1].encoded.examples) == 7


def test_items_that_cannot_be_learnt_are_refused_with_their_file(tmp_path):
    task = understanding_task(item_folder(tmp_path / "data", "classification"), "classification")
    built_model(task)
    write_items(tmp_path / "data" / "valid.jsonl", [TextItem("7", "w1", None, "z")])
    with pytest.raises(SystemExit) as raised:
        task.load_dataset("valid")
    assert str(raised.value) == (
        f"unified_lm: error: {tmp_path}/data/valid.jsonl: item 7 has the label 'z'; the labels are a, b"
    )
    with pytest.raises(SystemExit, match=f"^unified_lm: error: {tmp_path}/data/test.jsonl: "):
        task.load_dataset("test")


def test_a_checkpoint_keeps_what_the_scores_of_each_head_mean(tmp_path):
    task = understanding_task(item_folder(tmp_path / "data", "classification", "tagging"), BOTH)
    kept = task.get_checkpoint_dict()["UnifiedUnderstandingTask"]
    assert kept == {
        "classification": {
            "head": "classification", "settings": {"labels": ("a", "b"), "positive": None, "dropout": 0.1},
        },
        "tagging": {
            "head": "tagging",
            "settings": {"labels": ("x", "y"), "dropout": 0.1, "context": False, "features": None,
                         "recurrent_width": 768},
        },
    }  # fmt: skip


def test_a_validated_checkpoint_and_its_data_have_the_same_labels(tmp_path):
    """The classes of another folder counted as those of the same numbers."""
    data = item_folder(tmp_path / "data", "classification", "tagging")
    task = understanding_task(data, BOTH)
    kept = task.get_checkpoint_dict()["UnifiedUnderstandingTask"]
    same = understanding_task(data, BOTH)
    same.load_state_dict({"heads": kept})
    same.load_state_dict({})
    understanding_task(data / "tagging", "tagging").load_state_dict({"heads": kept})

    def said(**changed):
        with pytest.raises(SystemExit) as raised:
            same.load_state_dict({"heads": {**kept, "tagging": {**kept["tagging"], **changed}}})
        return str(raised.value)

    assert said(settings={**kept["tagging"]["settings"], "labels": ("x", "b")}) == (
        "unified_lm: error: --head: label 2 of 'tagging' is 'b' in the checkpoint, 'y' in this run; labels are those "
        "in train.jsonl where --head sets none"
    )
    assert said(settings={**kept["tagging"]["settings"], "dropout": 0.5}) == (
        "unified_lm: error: --head: the checkpoint's 'tagging' has dropout 0.5, this run has 0.1"
    )
    other = kept["classification"]
    assert said(**other) == (
        "unified_lm: error: --head: 'tagging' is tagging in this run, but classification in the checkpoint"
    )


@pytest.mark.parametrize("heads_may_differ", [False, True])
def test_a_training_goes_on_where_the_scores_of_its_heads_mean_the_same(tmp_path, heads_may_differ):
    data = item_folder(tmp_path / "data", "classification", "tagging")
    task = understanding_task(data, BOTH)
    state = task.get_checkpoint_dict()

    def taken(heads, *given):
        understanding_task(*given).require_same_meaning({"UnifiedUnderstandingTask": heads}, heads_may_differ)

    def refused(heads, *given):
        with pytest.raises(UnifiedError) as raised:
            taken(heads, *given)
        return str(raised.value)

    kept = state["UnifiedUnderstandingTask"]
    task.require_same_meaning(state, heads_may_differ)
    task.require_same_meaning({"train_iterator": {}}, heads_may_differ)  # of a language model
    taken(kept, data, "classification(dropout=0.5), tagging")
    said = "--head: label 1 of 'classification' is 'a' in the checkpoint, 'b' in this run; "
    assert refused(kept, data, "classification(labels=('b', 'a')), tagging").startswith(said)
    said = "--head: label 3 of 'tagging' is none in the checkpoint, 'z' in this run; "
    assert refused(kept, data, "classification, tagging(labels=('x', 'y', 'z'))").startswith(said)
    assert refused({**kept, "tagging": kept["classification"]}, data, BOTH).startswith("--head: 'tagging' is tagging ")
    for own, names in (("tagging, classification", "tagging, classification"), ("classification", "classification")):
        given = (data if "," in own else data / own, own)
        if heads_may_differ:
            taken(kept, *given)
        else:
            said = f"--head: the heads are classification, tagging in the checkpoint, {names} in this run"
            assert refused(kept, *given) == said


def test_rows_that_are_longer_than_the_model_allows_are_refused_in_one_line(tmp_path):
    task = understanding_task(item_folder(tmp_path / "data", "tagging"), "tagging", tokens_per_sample=25)
    with pytest.raises(SystemExit) as raised:
        task.build_model(model_settings())
    assert str(raised.value) == "unified_lm: error: --tokens-per-sample 25 exceeds --max-positions 24"
    task.build_model(model_settings(max_positions=25))
