"""One Transformer, one family of attention masks, every pre-training objective.

The public names are loaded when first used, so that `import unified` (and `unified --help`) does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"
__all__ = ["TaskModel", "UnifiedLM", "load", "masks", "train"]

if TYPE_CHECKING:
    from unified import masks
    from unified.inference.language_model import UnifiedLM
    from unified.tasks.loading import load
    from unified.tasks.task_model import TaskModel
    from unified.training.loop import train

#: The module of each public name.
_HOMES = {
    "TaskModel": "unified.tasks.task_model",
    "UnifiedLM": "unified.inference.language_model",
    "load": "unified.tasks.loading",
    "train": "unified.training.loop",
}


def __getattr__(name: str) -> object:
    if name == "masks":
        return import_module("unified.masks")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
