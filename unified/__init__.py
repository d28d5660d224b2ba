"""One Transformer, one family of attention masks, every pre-training objective.

The public names are loaded when first used, so that `import unified` (and `unified --help`) does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["UnifiedLM", "masks"]

if TYPE_CHECKING:
    from unified import masks
    from unified.inference.language_model import UnifiedLM


def __getattr__(name: str) -> object:
    if name == "masks":
        return import_module("unified.masks")
    if name == "UnifiedLM":
        return import_module("unified.inference.language_model").UnifiedLM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
