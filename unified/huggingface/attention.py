"""The attention function that layers of ``transformers`` call: ours under ``unified_mask``, else that of "sdpa"."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from unified.attention import AUTOMATIC, COMPILED, Attention, attend, prepare
from unified.errors import UnifiedError
from unified.masks import AttentionMask

#: The attention's name in ``set_attn_implementation`` and ``attn_implementation=``.
NAME = "unified"
#: Backends that "auto" asks. On a card FlexAttention is the first, which torch compiles for each new shape of a batch.
BACKENDS = (*COMPILED, *AUTOMATIC)
#: Keywords by which some models change the scores; :func:`unified.attention.attend` has nothing like them.
CHANGED_SCORES = ("position_bias", "s_aux", "softcap")


def unified_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    unified_mask: AttentionMask | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attends under ``unified_mask`` alone; without it, as the attention "sdpa" of ``transformers``.

    Under ``unified_mask`` the masks that the model makes do not count: neither its causal order, nor a sliding window,
    nor padding by ``attention_mask``. A query that sees nothing gives zeros.

    Args:
        module: the attention layer.
        query: (B, H, T, K).
        key, value: (B, G, S, K); each of the G heads serves H / G heads of the queries.
        attention_mask: what the model has made for "sdpa".
        scaling: factor of the scores; default 1 / sqrt(K).
        unified_mask: of B rows, or of one row for all, on any device.
        kwargs: what else the model hands to its attention; ``output_attentions`` asks for the weights.

    Returns:
        (B, T, H, K); and the weights, (B, H, T, S), where they are asked for under ``unified_mask``.

    Raises:
        UnifiedError: ``unified_mask`` is no mask, or has another shape than these; or the model changes the scores.
    """
    if unified_mask is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    return _uncompiled(query, key, value, dropout, scaling, unified_mask, **kwargs)


def _under_mask(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout: float,
    scaling: float | None,
    mask: AttentionMask,
    output_attentions: bool = False,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    _check(mask, query, key, kwargs)
    # Normed queries and keys are float32 under autocast, values are not.
    query, key = query.to(value.dtype), key.to(value.dtype)
    if scaling is not None and not math.isclose(factor := scaling * math.sqrt(query.size(-1)), 1.0):
        query = query * factor  # attend() divides by sqrt(K)
    groups = query.size(1) // key.size(1)
    if groups > 1:  # (B, G, S, K) -> (B, H, S, K)
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    weights = None
    if output_attentions:
        prepared = _preparations.get(mask, query, dropout, needs="weights")
        weights, attended = prepared.with_weights(query, key, value, dropout)
    else:
        attended = attend(query, key, value, _preparations.get(mask, query, dropout), dropout)
    return attended.transpose(1, 2).contiguous(), weights  # (B, H, T, K) -> (B, T, H, K)


#: A compiled model would be compiled anew for each mask.
_uncompiled = torch.compiler.disable(_under_mask)


class _Preparations(threading.local):
    """The last call's mask, prepared once for all layers of a forward; forgotten when the mask is.

    Each thread has its own, so that copies of a model in several threads do not mix theirs up.
    """

    def __init__(self) -> None:
        self._mask: Callable[[], AttentionMask | None] = lambda: None
        self._made: dict[tuple[object, ...], Attention] = {}
        self._used = False

    def begin(self) -> None:
        """Note that a model begins a forward, in which no layer has attended yet."""
        self._used = False

    def were_used(self) -> bool:
        """Whether a layer has attended under a mask since a model has begun its forward."""
        return self._used

    def get(self, mask: AttentionMask, query: torch.Tensor, dropout: float, needs: str | None = None) -> Attention:
        self._used = True
        if self._mask() is not mask:
            made: dict[tuple[object, ...], Attention] = {}
            self._mask, self._made = weakref.ref(mask, lambda _: made.clear()), made
        # What was made in inference mode cannot be used in training.
        case = (query.dtype, query.device, dropout, needs, torch.is_inference_mode_enabled())
        if case not in self._made:
            there = mask.to(query.device)
            self._made[case] = prepare(there, query.dtype, query.device, dropout, needs=needs, automatic=BACKENDS)
        return self._made[case]


_preparations = _Preparations()
#: Called before and after a model's forward, to find out whether its attention has met the mask.
begin_forward, mask_was_used = map(torch.compiler.disable, (_preparations.begin, _preparations.were_used))


def _check(mask: AttentionMask, query: torch.Tensor, key: torch.Tensor, kwargs: dict[str, Any]) -> None:
    if not isinstance(mask, AttentionMask):
        raise UnifiedError(f"unified_mask must be an AttentionMask of unified.masks, got {type(mask).__name__}")
    changed = [name for name in CHANGED_SCORES if kwargs.get(name) is not None]
    if changed:
        raise UnifiedError(f"unified_mask: this model changes attention's scores by {changed[0]}, which is not served")
    rows, queries, keys = query.size(0), query.size(2), key.size(2)
    if mask.batched and len(mask.query_step) != rows:
        raise UnifiedError(f"unified_mask is for {len(mask.query_step)} rows, attention got {rows}")
    if (mask.query_length, mask.key_length) != (queries, keys):
        cached = "; a cache holds keys beside these: call the model with use_cache=False, without past_key_values"
        raise UnifiedError(
            f"unified_mask is for {mask.query_length} queries and {mask.key_length} keys, attention got {queries} and "
            f"{keys}{cached if keys != queries else ''}"
        )
