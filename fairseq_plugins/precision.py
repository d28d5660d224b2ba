"""``--bf16`` on a GPU or a CPU: fairseq takes it for a request for a TPU (its issue 4696) and then wants torch_xla."""

from __future__ import annotations

import importlib.util
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from fairseq.dataclass import utils


def _for_this_machine(override: Callable[[Namespace], Any]) -> Callable[[Namespace], Any]:
    def override_module_args(args: Namespace) -> Any:
        if "bf16" in args and args.bf16 and importlib.util.find_spec("torch_xla") is None:
            args.tpu = False
        return override(args)

    return override_module_args


def install() -> None:
    """Replace the function that turns options into a configuration; fairseq looks it up at every call."""
    utils.override_module_args = _for_this_machine(utils.override_module_args)
