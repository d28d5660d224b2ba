"""Options that say where a model computes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from unified.cli.values import threads

if TYPE_CHECKING:
    import torch


def add_device_arguments(parser: argparse._ActionsContainer) -> None:
    """Declare the device, and the number of threads of a CPU."""
    parser.add_argument("--device", default="cpu", help="device to compute on: cpu or cuda (default: cpu)")
    parser.add_argument(
        "--threads",
        type=threads,
        default=0,
        metavar="N",
        help="CPU threads; 0 leaves the choice to PyTorch (default: 0)",
    )


def use_device(args: argparse.Namespace) -> torch.device:
    """The device of ``--device``; sets the number of threads.

    Raises:
        UnifiedError: PyTorch cannot compute there.
    """
    import torch

    from unified.runtime.devices import usable_device

    if args.threads:
        torch.set_num_threads(args.threads)
    return usable_device(args.device, "--device")
