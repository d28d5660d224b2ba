"""One Transformer, its heads, and the model they make."""

from unified.model.config import PRESETS, TransformerConfig
from unified.model.model import UnifiedModel
from unified.model.transformer import Transformer

__all__ = ["PRESETS", "Transformer", "TransformerConfig", "UnifiedModel"]
