"""Registers the attention with ``transformers``, and refuses it to models that would not hand it the mask."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface, PreTrainedModel

from unified.errors import UnifiedError
from unified.huggingface.attention import NAME, begin_forward, mask_was_used, unified_attention

#: Kinds of layers, as configurations name them, in which nothing but attention carries states from token to token.
ATTENTION_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}


def unsupported(model: PreTrainedModel) -> str | None:
    """Why the layers of a model cannot attend under ``unified_mask``, or None."""
    settings = model.config.to_dict()
    others = sorted(set(settings.get("layer_types") or ()) - ATTENTION_LAYERS)
    if model._is_stateful or others:
        kinds = f" ({', '.join(others)})" if others else ""
        return f"it has layers{kinds} that carry a state from token to token, which no attention mask governs"
    if settings.get("is_encoder_decoder") or settings.get("add_cross_attention"):
        return "it has cross-attention, whose keys are of another text than the mask's"
    if not model.is_backend_compatible():
        return "its attention does not go through the AttentionInterface of transformers"
    if not model._supports_sdpa:
        return "its attention changes the scores in a way that the attention 'sdpa' does not know"
    return None


def register() -> None:
    """Make "unified" known to ``set_attn_implementation`` and ``attn_implementation=`` of all models.

    ``transformers`` takes a registered name for every model, also for one whose attention would ignore it and train
    without the mask, in silence. So both ways to choose an attention ask :func:`unsupported` first, and a call of any
    model with a mask looks behind the forward whether an attention has met it: most models take keywords that they do
    not know, also one that was loaded and has the attention "sdpa" again.
    """
    AttentionInterface.register(NAME, unified_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)  # a name without one gets no mask at all, not even for padding
    for method in ("set_attn_implementation", "get_correct_attn_implementation"):
        setattr(PreTrainedModel, method, _checking(getattr(PreTrainedModel, method)))
    PreTrainedModel.__call__ = _looking(PreTrainedModel.__call__)  # called by its class, it is nn.Module's otherwise


def _checking(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def check_and_call(model: PreTrainedModel, *args: Any, **kwargs: Any) -> Any:
        given = [*args, *kwargs.values()]
        # A dictionary chooses for the parts of a model, "" for the whole of it.
        of_parts = [chosen for one in given if isinstance(one, dict) for chosen in one.values()]
        if NAME in (*given, *of_parts):
            reason = unsupported(model)
            if reason is not None:
                raise UnifiedError(f"{type(model).__name__} cannot take the attention {NAME!r}: {reason}")
        return method(model, *args, **kwargs)

    return check_and_call


def _looking(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def call_and_look(model: PreTrainedModel, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("unified_mask") is None:
            return call(model, *args, **kwargs)
        begin_forward()
        output = call(model, *args, **kwargs)
        require_use(model)
        return output

    return call_and_look


def require_use(model: PreTrainedModel) -> None:
    """Refuses, after a forward pass with ``unified_mask``, a model that has not handed it to our attention.

    Raises:
        UnifiedError: no layer has attended under the mask.
    """
    if mask_was_used():
        return
    reason = unsupported(model)
    if reason is not None:
        raise UnifiedError(f"{type(model).__name__} cannot take unified_mask: {reason}")
    chosen = model.config._attn_implementation
    if chosen != NAME:
        raise UnifiedError(
            f"{type(model).__name__} has the attention {chosen!r}, which does not know unified_mask; call "
            f"set_attn_implementation({NAME!r}) first, also on a model that was loaded"
        )
    raise UnifiedError(
        f"{type(model).__name__} has not handed unified_mask to its attention; a newer release of transformers may"
    )
