"""Masks of :mod:`unified.masks` in models of ``transformers``.

Importing this package registers the attention "unified" with ``transformers`` (5.7 or later, extra `transformers`):

    import unified.huggingface
    model.set_attn_implementation("unified")
    model(input_ids, unified_mask=mask)    # an AttentionMask, in place of all that the model would have masked
    model(input_ids)                       # without the keyword: as with "sdpa"

Nothing else of the library imports it, because importing ``transformers``' models takes seconds.
"""

from unified.huggingface.attention import NAME, unified_attention
from unified.huggingface.registration import register, unsupported

__all__ = ["NAME", "register", "unified_attention", "unsupported"]

register()
