"""Totals of an update are known before its first micro-batch, and are those of all micro-batches and processes."""

from types import SimpleNamespace

import pytest
import torch

from fairseq_plugins import updates
from fairseq_plugins.updates import Update, UpdateCriterion, update_of


class Criterion(UpdateCriterion):
    """Counts the numbers of a sample by their sign."""

    def names_of(self, model):
        assert model == "model"
        return ["below", "above"]

    def totals_of(self, model, sample):
        numbers = torch.tensor(sample["numbers"], dtype=torch.float64)
        return {"above": (numbers > 0).double().sum(), "below": (numbers < 0).double().sum()}

    def size_of(self, totals):
        return int(totals["above"] + 2 * totals["below"])


class Trainer:
    """A trainer of some processes that makes steps of a criterion."""

    device = torch.device("cpu")
    is_fsdp = False

    def __init__(self, criterion, world=1):
        self.criterion, self.data_parallel_world_size = criterion, world
        self.task, self.begun = SimpleNamespace(begin_update=self.begin_update), []

    def begin_update(self, again):
        self.begun.append(again)

    def get_model(self):
        return "model"

    def get_criterion(self):
        return self.criterion

    def reset_dummy_batch(self, batch):
        self.dummy_batch = batch


SAMPLES = [{"numbers": [1, 2, -3]}, {}, None, {"numbers": [-4, 0]}]


def numbers(update: Update) -> tuple[dict[str, float], float]:
    assert all(one.dtype == torch.float64 for one in (*update.totals.values(), update.size))
    return {name: float(total) for name, total in update.totals.items()}, float(update.size)


def test_micro_batches_are_added_up_and_empty_ones_count_nothing():
    assert numbers(update_of(Criterion(), Trainer(Criterion()), SAMPLES)) == ({"below": 2, "above": 2}, 6)
    assert numbers(update_of(Criterion(), Trainer(Criterion()), [None])) == ({"below": 0, "above": 0}, 0)


def test_other_processes_are_added_too(monkeypatch):
    asked = []

    def all_reduce(sums, group):
        asked.append(group)
        sums += torch.tensor([10, 20, 30], dtype=torch.float64)

    monkeypatch.setattr(updates.distributed_utils, "get_data_parallel_group", lambda: "group")
    monkeypatch.setattr(updates.distributed_utils, "all_reduce", all_reduce)
    found = update_of(Criterion(), Trainer(Criterion(), world=2), SAMPLES)
    assert numbers(found) == ({"below": 12, "above": 22}, 36) and asked == ["group"]
    update_of(Criterion(), Trainer(Criterion(), world=1), SAMPLES)
    assert asked == ["group"]


def test_outside_an_update_a_micro_batch_is_one():
    criterion = Criterion()
    totals = criterion.totals_of("model", SAMPLES[0])
    assert numbers(criterion.update_with(totals)) == ({"above": 2, "below": 1}, 4)
    criterion.update = Update({"above": torch.tensor(9.0)}, torch.tensor(1.0))
    assert criterion.update_with(totals) is criterion.update


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (SAMPLES, [SAMPLES[0], SAMPLES[3]]),
        ([{}, None], [None]),
        ([None, {}, None], [None]),
        ([{}], [{}]),
        ([{"numbers": [1]}], [{"numbers": [1]}]),
    ],
)
def test_a_step_gets_the_micro_batches_that_this_process_has(given, kept):
    criterion = Criterion()
    seen = []

    def step(trainer, samples, *arguments, **keywords):
        seen.append((samples, arguments, keywords, numbers(criterion.update)))
        return "done"

    wrapped = updates.announcing_updates(step)
    assert wrapped(Trainer(criterion), given, 3, raise_oom=True) == "done"
    expected = numbers(update_of(criterion, Trainer(criterion), given))
    assert seen == [(kept, (3,), {"raise_oom": True}, expected)] and criterion.update is None


def test_a_process_without_a_batch_makes_its_step_on_one_of_training():
    """A validation has put a batch of its own in its place, which may have no masked copy."""
    seen = []

    def iterator(name):
        return SimpleNamespace(first_batch=name)

    def get(trainer, epoch, load_dataset=True):
        trainer.reset_dummy_batch(f"training {epoch}")
        return iterator(f"training {epoch} {load_dataset}")

    def step(trainer, samples):
        seen.append(trainer.dummy_batch)

    for criterion in (Criterion(), SimpleNamespace()):
        trainer = Trainer(criterion)
        found = updates.keeping_dummy_batch(get)(trainer, 2, load_dataset=False)
        assert found == iterator("training 2 False")
        trainer.reset_dummy_batch("validation")
        updates.announcing_updates(step)(trainer, [{}])
    assert seen == ["training 2 False", "validation"]
    assert vars(criterion) == {}


def test_the_task_is_told_of_an_update_that_is_computed_again():
    """fairseq's step calls itself where gradients overflow (--amp)."""
    trainer, left = Trainer(Criterion()), [2, 1, 0, 0]

    def step(trainer, samples):
        retries = left.pop(0)
        return Trainer.train_step(trainer, samples) if retries else "done"

    Trainer.train_step = updates.announcing_updates(step)
    try:
        assert trainer.train_step(SAMPLES) == trainer.train_step(SAMPLES) == "done"
    finally:
        del Trainer.train_step
    assert trainer.begun == [False, True, True, False] and trainer.criterion.update is None


def test_after_a_step_that_fails_there_is_no_update():
    criterion = Criterion()

    def step(trainer, samples):
        raise ValueError

    with pytest.raises(ValueError):
        updates.announcing_updates(step)(Trainer(criterion), SAMPLES)
    assert criterion.update is None


def test_other_criterions_are_left_alone_and_sharded_models_refused():
    def step(trainer, samples):
        return samples

    assert updates.announcing_updates(step)(Trainer(SimpleNamespace()), SAMPLES) is SAMPLES
    sharded = Trainer(Criterion())
    sharded.is_fsdp = True
    with pytest.raises(SystemExit) as raised:
        updates.announcing_updates(step)(sharded, SAMPLES)
    assert str(raised.value) == (
        "unified_lm: error: --ddp-backend fully_sharded is not supported; choose pytorch_ddp or legacy_ddp"
    )
