"""One Transformer, its heads, and the language model they make."""

from unified.model.config import PRESETS, TransformerConfig
from unified.model.language_model import LanguageModel
from unified.model.transformer import Transformer

__all__ = ["PRESETS", "LanguageModel", "Transformer", "TransformerConfig"]
