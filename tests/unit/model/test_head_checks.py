"""Losses of a user's own heads are refused in one line that names the head, where they are not as declared."""

from __future__ import annotations

import pytest
import torch

from tests.support.refusals import refused
from unified import masks
from unified.data.example import Batch
from unified.data.targets import Targets
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel
from unified.model.head_checks import check_loss_sum
from unified.model.heads import LossSum, PredictionHead, PredictionLosses

CONFIG = TransformerConfig(vocabulary_size=11, layers=1, width=8, heads=2)
METHOD = "head 'mine': its method losses must return"
#: What a head makes of good losses, and the end of the refusal.
FAULTS = {
    "nothing": (lambda losses: None, "a PredictionLosses (loss, nll, right) of unified.model.heads, got NoneType"),
    "a tuple": (tuple, "a PredictionLosses (loss, nll, right) of unified.model.heads, got tuple"),
    "the mean": (
        lambda losses: losses.loss.mean(),
        "a PredictionLosses (loss, nll, right) of unified.model.heads, got float32 ()",
    ),
    "a summed loss": (
        lambda losses: replaced(losses, loss=losses.loss.sum()),
        "loss as a tensor (3,) of float, got float32 ()",
    ),
    "a column": (
        lambda losses: replaced(losses, loss=losses.loss[:, None]),
        "loss as a tensor (3,) of float, got float32 (3, 1)",
    ),
    "too few": (lambda losses: replaced(losses, nll=losses.nll[1:]), "nll as a tensor (3,) of float, got float32 (2,)"),
    "whole numbers": (
        lambda losses: replaced(losses, nll=losses.nll.long()),
        "nll as a tensor (3,) of float, got int64 (3,)",
    ),
    "bools": (
        lambda losses: replaced(losses, right=losses.right.bool()),
        "right as a tensor (3,) of int64, got bool (3,)",
    ),
    "a list": (lambda losses: replaced(losses, right=[1, 0, 0]), "right as a tensor (3,) of int64, got list"),
}


def replaced(returned, **changes):
    """A named tuple with some of its fields changed."""
    return type(returned)(**dict(zip(type(returned).__annotations__, returned, strict=True)) | changes)


class Mine(PredictionHead):
    """A head whose losses are good, or made into something else."""

    def __init__(self, config, changed=lambda losses: losses):
        super().__init__()
        self.changed = changed
        self.layer = torch.nn.Linear(config.width, 1)

    def losses(self, states, targets, symbols):
        loss = self.layer(states.squeeze(1)).squeeze(-1).square()
        return self.changed(PredictionLosses(loss, loss.detach(), torch.ones_like(targets.labels)))


def losses_of(changed):
    torch.manual_seed(0)
    model = UnifiedModel.for_language(CONFIG, {"mine": lambda config: Mine(config, changed)})
    ids, where = torch.arange(5).expand(1, -1), torch.tensor([1, 2, 4])
    targets = Targets(
        where[:, None], torch.zeros(3, dtype=torch.long), torch.zeros(3, dtype=torch.long), torch.tensor([3.0])
    )
    zeros = torch.zeros_like(ids)
    return model(Batch(ids, ids, zeros, masks.bidirectional(5), {"mine": targets}, ("o",)))


def test_good_losses_are_summed():
    found = losses_of(lambda losses: losses)["o_mine"]
    assert found.count == 3 and found.correct == 3 and found.total.requires_grad


@pytest.mark.parametrize("what", FAULTS)
def test_losses_that_are_none_are_named(what):
    changed, end = FAULTS[what]
    assert refused(lambda: losses_of(changed)) == f"{METHOD} {end}"


@pytest.mark.parametrize(
    ("made", "got"), [(lambda config: None, "NoneType"), (lambda config: torch.nn.Linear(2, 2), "Linear")]
)
def test_a_factory_must_make_a_head(made, got):
    with pytest.raises(UnifiedError) as refusal:
        UnifiedModel.for_language(CONFIG, {"mine": made})
    assert str(refusal.value) == f"head 'mine' must be a PredictionHead or a TaskHead, got {got}"
    with pytest.raises(UnifiedError, match=f"head 'task' must be a PredictionHead or a TaskHead, got {got}"):
        UnifiedModel.for_tasks(CONFIG, {"task": made(CONFIG)})


def test_a_sum_of_losses_has_scalars():
    one, nine = torch.tensor(1.0), torch.tensor(9)
    good = LossSum(one, nine, nine, one)
    check_loss_sum("mine", good)
    check_loss_sum("mine", replaced(good, correct=one))  # shares of what is right, as of coreference
    wanted = "head 'mine': its method loss must return"
    for wrong, end in (
        (one, "a LossSum (total, count, correct, nll) of unified.model.heads, got float32 ()"),
        (replaced(good, count=9), "count as a tensor () of int64, got int"),
        (replaced(good, total=one[None]), "total as a tensor () of float, got float32 (1,)"),
        (replaced(good, correct=one > 0), "correct as a tensor () of int64 or float, got bool ()"),
    ):
        assert refused(lambda wrong=wrong: check_loss_sum("mine", wrong)) == f"{wanted} {end}"
