"""Options of fairseq with which a training cannot work are refused before anything is read."""

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq import options
from fairseq.data import data_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from omegaconf import OmegaConf

import fairseq_plugins  # noqa: F401  (changes fairseq)
from fairseq_plugins import training_checks
from fairseq_plugins.training_checks import check_training
from unified.errors import UnifiedError


def configuration(folder: Path, **changes):
    """fairseq's settings of a training in ``folder`` with batches of four rows; ``a__b`` is the option b of group a."""
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.task = {"_name": "unified_lm", "no_export": False}
    changes = {"dataset__batch_size": 4, "checkpoint__save_dir": str(folder), **changes}
    for name, value in changes.items():
        OmegaConf.update(cfg, name.replace("__", "."), value, merge=False)
    return cfg


def refusal(folder: Path, **changes) -> str:
    with pytest.raises(UnifiedError) as raised:
        check_training(configuration(folder, **changes))
    return str(raised.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dataset__batch_size": None}, "--max-tokens or --batch-size must say how much a batch holds"),
        ({"dataset__batch_size": 0}, "--batch-size must be at least 1, got 0"),
        ({"dataset__batch_size": -2}, "--batch-size must be at least 1, got -2"),
        ({"dataset__max_tokens": 0}, "--max-tokens must be at least 1, got 0"),
        ({"dataset__batch_size_valid": 0}, "--batch-size-valid must be at least 1, got 0"),
        ({"dataset__max_tokens_valid": -1}, "--max-tokens-valid must be at least 1, got -1"),
        ({"optimization__update_freq": [2, 0]}, "--update-freq must be at least 1, got 2,0"),
        ({"optimization__update_freq": []}, "--update-freq must be at least 1, got nothing"),
        ({"optimization__lr": [-1.0]}, "--lr must be at least 0 and finite, got -1.0"),
        ({"optimization__lr": [float("inf")]}, "--lr must be at least 0 and finite, got inf"),
        ({"optimization__lr": []}, "--lr must be at least 0 and finite, got nothing"),
        ({"optimization__clip_norm": float("nan")}, "--clip-norm must be at least 0, which clips nothing, got nan"),
        ({"optimization__clip_norm": -1.0}, "--clip-norm must be at least 0, which clips nothing, got -1.0"),
        ({"common__seed": -1}, "--seed must be an integer from 0 to 2147483647, got -1"),
        ({"common__seed": 2**31}, "--seed must be an integer from 0 to 2147483647, got 2147483648"),
    ],
)
def test_numbers_out_of_range_are_refused_by_their_options(tmp_path, changes, said):
    assert refusal(tmp_path, **changes) == said


def test_numbers_at_their_limits_are_taken(tmp_path):
    check_training(
        configuration(
            tmp_path, dataset__batch_size=1, dataset__max_tokens=1, optimization__update_freq=[1, 2],
            optimization__lr=[0.0], optimization__clip_norm=0.0, common__seed=2**31 - 1,
        )
    )  # fmt: skip
    check_training(configuration(tmp_path, dataset__batch_size=None, dataset__max_tokens=8, common__seed=0))


@pytest.mark.parametrize("text", ["1.5", "1,2.5", "[0.5]"])
def test_fractions_in_lists_of_integers_are_refused(capsys, text):
    """They were cut off: 1.5 batches of an update were 1."""
    with pytest.raises(SystemExit):
        options.get_training_parser().parse_args(["--update-freq", text])
    assert f"argument --update-freq: must be whole numbers, got '{text}'" in capsys.readouterr().err


def test_whole_numbers_in_lists_are_taken():
    parsed = options.get_training_parser().parse_args(["--update-freq", "1,2.0", "--lr", "0.5,1"])
    assert parsed.update_freq == [1, 2] and parsed.lr == [0.5, 1.0]
    assert options.get_training_parser().parse_args(["--update-freq", "3"]).update_freq == [3]


@pytest.mark.parametrize("more", [{}, {"common__fp16_no_flatten_grads": True}])
def test_fp16_without_a_gpu_is_refused(tmp_path, monkeypatch, more):
    """With gradients apart it went on to the first overflow, which fairseq notes on a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    said = "--fp16 needs a GPU; without one leave it out, or train with --bf16"
    assert refusal(tmp_path, common__fp16=True, **more) == said
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    check_training(configuration(tmp_path, common__fp16=True, **more))


def test_a_tpu_without_its_package_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(training_checks, "find_spec", lambda name: None)
    assert refusal(tmp_path, common__tpu=True) == "--tpu needs torch_xla, which is not installed; leave it out"
    monkeypatch.setattr(training_checks, "find_spec", lambda name: name)
    check_training(configuration(tmp_path, common__tpu=True))


FALLS = "; it is the update at which the learning rate has fallen to its end, such as that of --max-update"


@pytest.mark.parametrize("number", [0.0, -1.0, float("nan")])
def test_a_learning_rate_that_never_falls_to_its_end_is_refused(tmp_path, number):
    schedule = {"_name": "polynomial_decay", "total_num_update": number}
    assert refusal(tmp_path, lr_scheduler=schedule) == (
        f"--lr-scheduler polynomial_decay needs --total-num-update above 0, got {number:g}{FALLS}"
    )
    check_training(configuration(tmp_path, lr_scheduler={"_name": "fixed"}))
    check_training(configuration(tmp_path, lr_scheduler={**schedule, "total_num_update": 1.0}))


def words(**changes) -> Namespace:
    """Options of a training for a task of ours, which has --no-export."""
    return Namespace(**{"lr_scheduler": "fixed", "profile": False, "no_export": False, **changes})


def test_what_ends_before_a_training_is_refused_before_hydra_composes_settings(monkeypatch):
    """hydra ended in a traceback of its own, also beside --max-update, and torch in one for want of a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    composed: list[Namespace] = []
    override = training_checks.checking_words(composed.append)
    falling = {"lr_scheduler": "polynomial_decay", "total_num_update": None}
    for changes, said in (
        (falling, f"--lr-scheduler polynomial_decay needs --total-num-update{FALLS}"),
        ({"profile": True}, "--profile needs a GPU, whose work it notes; without one leave it out"),
    ):
        with pytest.raises(SystemExit) as raised:
            override(words(**changes))
        assert str(raised.value) == f"unified_lm: error: {said}"
    taken = [
        words(**falling | {"total_num_update": "3"}),
        words(),
        Namespace(**falling, profile=True),  # tasks of others may know better
        Namespace(no_export=False),  # fairseq-validate
    ]
    for args in taken:
        override(args)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    override(words(profile=True))
    assert composed == [*taken, words(profile=True)]


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_the_fused_optimizer_is_not_memory_efficient(tmp_path, monkeypatch, precision):
    """fairseq ended in a traceback that named a class."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    option = {f"common__memory_efficient_{precision}": True}
    assert refusal(tmp_path, optimizer={"_name": "unified_adam"}, **option) == (
        f"--memory-efficient-{precision} does not go with --optimizer unified_adam, whose kernel wants parameters in "
        f"float32; take --{precision}, or --optimizer adam"
    )
    check_training(configuration(tmp_path, optimizer={"_name": "adam"}, **option))
    check_training(configuration(tmp_path, optimizer={"_name": "unified_adam"}))


@pytest.mark.parametrize("split", ["valid", "train1", ""])
def test_the_split_that_is_trained_on_has_one_name(tmp_path, split):
    """Another one was read in the order, with the seed and the padding of validation."""
    said = (
        f"--train-subset {split}: the split that is trained on is 'train'; prepare a folder whose training text is that"
    )
    assert refusal(tmp_path, dataset__train_subset=split) == said


@pytest.mark.parametrize("splits", ["train", "valid,train"])
def test_validation_does_not_read_what_is_trained_on(tmp_path, splits):
    """fairseq sets the dataset of a validation to the first epoch, that of the training if they are one."""
    said = refusal(tmp_path, dataset__valid_subset=splits)
    assert said == (
        f"--valid-subset {splits}: validating on the split 'train' would set its training back to the first epoch; "
        "leave it out, and read it by fairseq-validate"
    )
    check_training(configuration(tmp_path, dataset__valid_subset=splits, dataset__disable_validation=True))
    check_training(configuration(tmp_path, dataset__valid_subset="valid,train1"))


def test_a_criterion_of_fairseqs_own_is_refused(tmp_path):
    """It ended in a traceback at the first batch, as did a command without --criterion."""
    for name in ("cross_entropy", "label_smoothed_cross_entropy"):
        assert refusal(tmp_path, criterion={"_name": name}) == (
            f"--criterion {name} (where none is given, cross_entropy) is fairseq's own, which cannot read the batches "
            "of this task; take --criterion unified_lm or unified_understanding, as the task is called"
        )
    check_training(configuration(tmp_path, criterion={"_name": "unified_lm"}))


def test_writing_in_the_background_needs_its_package(tmp_path, monkeypatch):
    """fairseq trained nothing, and ended with status 0."""
    wanted = {"checkpoint__write_checkpoints_asynchronously": True}
    monkeypatch.setattr(training_checks, "find_spec", lambda name: None)
    assert refusal(tmp_path, **wanted) == (
        "--write-checkpoints-asynchronously needs iopath, which is not installed; pip install iopath, or leave it out"
    )
    check_training(configuration(tmp_path))
    monkeypatch.setattr(training_checks, "find_spec", lambda name: name)
    check_training(configuration(tmp_path, **wanted))


def test_splits_are_not_combined_for_validation(tmp_path):
    """The first one alone was read."""
    assert refusal(tmp_path, dataset__combine_valid_subsets=True) == (
        "--combine-val: splits are validated by themselves; leave it out and name them, as in --valid-subset "
        "valid,valid1"
    )
    check_training(configuration(tmp_path, dataset__combine_valid_subsets=False, dataset__valid_subset="valid,valid1"))


def test_a_validation_split_that_would_be_overlooked_is_refused_in_one_line(tmp_path):
    """fairseq ended in a traceback that advises --combine-val."""
    (tmp_path / "valid1.idx").touch()
    check = data_utils.raise_if_valid_subsets_unintentionally_ignored
    cfg = configuration(tmp_path, task={"_name": "unified_lm", "no_export": False, "data": str(tmp_path)})
    with pytest.raises(SystemExit) as raised:
        check(cfg)
    assert str(raised.value) == (
        f"unified_lm: error: --valid-subset valid: {tmp_path} holds valid1, too; name all, as in --valid-subset "
        "valid,valid1, or pass --ignore-unused-valid-subsets"
    )
    cfg.dataset.valid_subset = "valid,valid1"
    check(cfg)
    other = configuration(tmp_path, task={"_name": "translation", "data": str(tmp_path)})
    with pytest.raises(ValueError, match="^Valid paths"):
        check(other)


def test_a_validation_split_of_pairs_is_overlooked_only_where_it_is_not_named(tmp_path):
    """fairseq refused it, named or not, because its files have the languages in their names."""
    for name in ("valid", "valid1", "valid2"):
        for side in ("de", "en"):
            (tmp_path / f"{name}.de-en.{side}.idx").touch()
    check = data_utils.raise_if_valid_subsets_unintentionally_ignored
    cfg = configuration(tmp_path, task={"_name": "unified_lm", "no_export": False, "data": str(tmp_path)})
    cfg.dataset.valid_subset = "valid,valid2"
    with pytest.raises(SystemExit, match=" holds valid1, too; name all, as in --valid-subset valid,valid2,valid1, "):
        check(cfg)
    cfg.dataset.ignore_unused_valid_subsets = True
    check(cfg)
    cfg.dataset.ignore_unused_valid_subsets, cfg.dataset.valid_subset = False, "valid,valid1,valid2"
    check(cfg)


@pytest.mark.parametrize("option", ["--restore-file", "--finetune-from-model", "--continue-once"])
def test_what_a_training_begins_with_must_be_a_file(tmp_path, option):
    """fairseq trained a new model where it was none."""
    name = f"checkpoint__{option.removeprefix('--').replace('-', '_')}"
    missing, folder = tmp_path / "checkpoint_best.pt", tmp_path / "model"
    folder.mkdir()
    assert refusal(tmp_path, **{name: str(missing)}) == f"{option} {missing}: no such file"
    said = f"{option} {folder}: a folder; name a checkpoint in it, such as {folder / 'checkpoint_last.pt'}"
    assert refusal(tmp_path, **{name: str(folder)}) == said
    missing.touch()
    check_training(configuration(tmp_path, **{name: str(missing)}))


@pytest.mark.parametrize("suffix", ["", "-a"])
def test_a_training_that_goes_on_no_longer_needs_what_it_began_with(tmp_path, suffix):
    (tmp_path / f"checkpoint_last{suffix}.pt").touch()
    options = {"checkpoint__checkpoint_suffix": suffix, "checkpoint__finetune_from_model": "gone.pt"}
    check_training(configuration(tmp_path, **options))
    assert refusal(tmp_path / "new", **options) == "--finetune-from-model gone.pt: no such file"


def test_the_file_that_fairseq_takes_is_the_one_that_must_be_there(tmp_path):
    (tmp_path / "a.pt").touch()
    first = {"checkpoint__continue_once": str(tmp_path / "a.pt"), "checkpoint__finetune_from_model": "gone.pt"}
    check_training(configuration(tmp_path, **first))


@pytest.mark.parametrize("reset", ["reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader"])
def test_a_new_beginning_goes_with_no_other_option_of_that_kind(tmp_path, reset):
    model = tmp_path / "a.pt"
    model.touch()
    begin = {"checkpoint__finetune_from_model": str(model)}
    option = f"--{reset.replace('_', '-')}"
    said = f"--finetune-from-model resets everything; leave {option} out"
    assert refusal(tmp_path, **begin, **{f"checkpoint__{reset}": True}) == said
    assert refusal(tmp_path, **begin, checkpoint__restore_file=str(model)).endswith("too; choose one")
    check_training(configuration(tmp_path, **{f"checkpoint__{reset}": True}))


def test_trainings_of_our_tasks_alone_are_checked_and_before_they_begin(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(distributed_utils, "call_main", lambda cfg, main, **more: begun.append((main, more)))
    training_checks.install()
    wrong = {"common__seed": -1}
    with pytest.raises(SystemExit) as raised:
        distributed_utils.call_main(configuration(tmp_path, **wrong), "main")
    assert str(raised.value).startswith("unified_lm: error: --seed must be") and not begun
    for other in ({"task": {"_name": "translation"}}, {"common_eval__path": "model.pt"}):
        distributed_utils.call_main(configuration(tmp_path, **wrong, **other), "main", more=1)
    distributed_utils.call_main(configuration(tmp_path), "main", more=1)
    assert begun == [("main", {"more": 1})] * 3
