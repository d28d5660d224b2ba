"""A training whose gradients are no longer finite ends with one line that says so."""

import logging
from types import SimpleNamespace

import pytest
import torch
from fairseq import trainer as trainers
from torch import nn

import fairseq_plugins  # noqa: F401  (changes fairseq)
from fairseq_plugins.divergence import ending_in_one_line


def trainer_of(folder):
    """A trainer that has made 6 updates."""
    cfg = SimpleNamespace(checkpoint=SimpleNamespace(save_dir=str(folder)))
    return SimpleNamespace(get_num_updates=lambda: 6, cfg=cfg)


class Root(nn.Module):
    """Gives its output within an object, as modules of ours do."""

    def forward(self, numbers):
        return SimpleNamespace(value=numbers.sqrt())


class Model(nn.Module):
    """The square root of a linear map: not finite below zero."""

    def __init__(self):
        super().__init__()
        self.map, self.root = nn.Linear(2, 2), Root()

    def forward(self, numbers):
        return self.root(self.map(numbers)).value.sum()


def test_modules_are_watched_whatever_they_give(caplog):
    """fairseq's own detector ended in a TypeError there."""
    caplog.set_level(logging.WARNING)
    model = Model()
    model.map.weight.data.fill_(float("nan"))
    with trainers.NanDetector(model):
        model(torch.ones(3, 2)).backward()
    assert [one.getMessage()[:34] for one in caplog.records] == ["NaN detected in output of map, sha"]
    caplog.clear()
    model.map.weight.data.fill_(1.0)
    with trainers.NanDetector(model):
        model(torch.ones(3, 2)).backward()
    assert not caplog.records


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("gradients are Nan/Inf", "its gradients are not finite; lower --lr or raise --warmup-updates"),
        ("gradients are inconsistent between workers.\n---\nrank 0", "gradients are inconsistent between workers."),
    ],
)
def test_an_update_that_is_not_finite_is_one_line(tmp_path, error, said):
    """Where fairseq has written ``crash.pt``, as it does before it looks for the modules, that is removed."""
    (tmp_path / "checkpoint_last.pt").touch()

    def step(trainer, *given):
        if given:
            (tmp_path / "crash.pt").touch()
        raise FloatingPointError(error)

    for given in ([], ["batch"]):
        with pytest.raises(SystemExit) as raised:
            ending_in_one_line(step)(trainer_of(tmp_path), *given)
        assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_last.pt"]
    assert str(raised.value) == f"unified_lm: error: update 7: {said}; the checkpoints before it are whole"


def test_other_updates_and_other_errors_pass():
    def step(trainer, *given, **options):
        return trainer, given, options

    trainer = trainer_of("a")
    assert ending_in_one_line(step)(trainer, ["batch"], raise_oom=True) == (trainer, (["batch"],), {"raise_oom": True})

    def failing(trainer):
        raise OverflowError("scale")

    with pytest.raises(OverflowError, match="scale"):
        ending_in_one_line(failing)(trainer)
