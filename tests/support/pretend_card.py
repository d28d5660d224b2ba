"""A card that only pretends: torch computes shapes, types and devices there, and no values.

So a test without a card finds what is made on the CPU by mistake, and what waits for a value of the card.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

#: A device that torch has in every build, and that is not the CPU.
DEVICE = "lazy"


@contextmanager
def pretend_card() -> Iterator[torch.device]:
    """Within it, tensors have no values.

    An operation on tensors of two devices, and any look at a value, raise an error: what a card would refuse, and what
    it would wait for. What has been made before must be moved there; that of a device that is not the CPU is refused.
    """
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield torch.device(DEVICE)
