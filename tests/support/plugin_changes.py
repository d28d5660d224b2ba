"""A program: what of fairseq, torch and the process differs after the plug-ins are imported, and a task is built.

    python -m tests.support.plugin_changes

It prints one JSON object and is run in a fresh process, since a change can be seen only where it was not made before.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import sys
import threading
import types
import warnings
from argparse import Namespace
from collections.abc import Iterator

import fairseq_cli.generate
import fairseq_cli.train
import fairseq_cli.validate  # noqa: F401
import torch
from fairseq.utils import import_user_module

#: Packages whose functions, methods and tables are compared.
PACKAGES = ("fairseq", "fairseq_cli", "torch", "omegaconf", "hydra", "argparse", "pickle", "multiprocessing")


def values_of(packages: tuple[str, ...]) -> dict[str, int]:
    """Dotted name -> identity of everything that the loaded modules of the packages hold.

    Modules and what Python itself notes are left out. Entries of dictionaries have names such as ``a.TABLE['key']``.
    """
    found = {}
    for module in {id(module): module for module in sys.modules.values()}.values():
        if not isinstance(module, types.ModuleType) or module.__name__.partition(".")[0] not in packages:
            continue
        for name, value in list(vars(module).items()):
            if not name.startswith("__") and not isinstance(value, types.ModuleType):
                found.update(_named(f"{module.__name__}.{name}", value, module.__name__))
    return found


def _named(name: str, value: object, module: str) -> Iterator[tuple[str, int]]:
    yield name, id(value)
    if isinstance(value, dict):
        yield from _entries(name, value, depth=2)
    elif isinstance(value, type) and value.__module__ == module:
        yield from ((f"{name}.{key}", id(inner)) for key, inner in vars(value).items())


def _entries(name: str, table: dict, depth: int) -> Iterator[tuple[str, int]]:
    for key, value in list(table.items()):
        if isinstance(key, str) and not isinstance(value, types.ModuleType):
            yield f"{name}[{key!r}]", id(value)
            if isinstance(value, dict) and depth:
                yield from _entries(f"{name}[{key!r}]", value, depth - 1)


def process() -> dict[str, object]:
    """What else a library might change without a word."""
    denormal = torch.tensor([1e-40])
    return {
        "environment": dict(os.environ),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads(), threading.active_count()),
        "handlers": [repr(signal.getsignal(number)) for number in signal.valid_signals()],
        "hooks": (repr(sys.excepthook), repr(sys.settrace), repr(sys.meta_path), repr(sys.path_hooks)),
        "recursion": sys.getrecursionlimit(),
        "logging": (logging.root.level, repr(logging.root.handlers), logging.root.manager.disable),
        "warnings": len(warnings.filters),
        "torch.set_default_dtype": str(torch.get_default_dtype()),
        "torch.use_deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "torch.set_float32_matmul_precision": torch.get_float32_matmul_precision(),
        "torch.set_flush_denormal": bool((denormal / 1).item() == 0.0),
        "torch.serialization.add_safe_globals": sorted(
            f"{one.__module__}.{one.__qualname__}" for one in torch.serialization.get_safe_globals()
        ),
    }


def different(before: dict, after: dict) -> list[str]:
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def main() -> None:
    called_of_c: list[str] = []
    ctypes.CDLL(None)
    kept = values_of(PACKAGES)
    at_first, loaded = process(), set(sys.modules)
    sys.addaudithook(lambda event, args: called_of_c.append(args[1]) if event == "ctypes.dlsym" else None)

    import_user_module(Namespace(user_dir="fairseq_plugins"))

    now = values_of(PACKAGES)
    came_with_modules = tuple(f"{name}." for name in set(sys.modules) - loaded)
    changed = different(kept, now)
    added = [name for name in changed if name not in kept and not name.startswith(came_with_modules)]
    imported, of_import = process(), list(called_of_c)

    from fairseq_plugins.task import DictionaryTask
    from unified.data.vocabulary import Vocabulary

    DictionaryTask(Namespace(), Vocabulary(["a", "b"]))
    report = {
        "replaced": [name for name in changed if name in kept],
        "added": added,
        "import": different(at_first, imported) + of_import,
        "task": different(imported, process()) + called_of_c[len(of_import) :],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
