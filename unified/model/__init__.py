"""One Transformer, its heads, and the model they make."""

from unified.model.config import TransformerConfig
from unified.model.model import UnifiedModel
from unified.model.presets import PRESETS
from unified.model.transformer import Transformer

__all__ = ["PRESETS", "Transformer", "TransformerConfig", "UnifiedModel"]
