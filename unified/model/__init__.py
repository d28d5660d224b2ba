"""One Transformer, its heads, and the language model they make."""

import unified.kernels.cpu  # noqa: F401  (registers its attention backend)
from unified.model.config import PRESETS, TransformerConfig
from unified.model.language_model import LanguageModel
from unified.model.transformer import Transformer

__all__ = ["PRESETS", "LanguageModel", "Transformer", "TransformerConfig"]
