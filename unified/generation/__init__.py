"""Writing text: a decoder with a cache, and searches over it.

The names are loaded when first used, so that ``unified generate --help`` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["SCHEMES", "CachedDecoder", "DecodingScheme", "GenerationConfig", "Hypothesis", "generate", "score"]

if TYPE_CHECKING:
    from unified.generation.config import GenerationConfig
    from unified.generation.decoder import CachedDecoder
    from unified.generation.schemes import SCHEMES, DecodingScheme
    from unified.generation.search import Hypothesis, generate, score

#: Module that defines each name.
_HOMES = {
    "SCHEMES": "schemes",
    "CachedDecoder": "decoder",
    "DecodingScheme": "schemes",
    "GenerationConfig": "config",
    "Hypothesis": "search",
    "generate": "search",
    "score": "search",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
