"""Attention masks as dense matrices; True means "may attend".

Letters: B rows, T tokens, Q queries (the tokens, and behind them those of a query stream), S keys.
"""

from __future__ import annotations

import torch

from .configuration_unified import UnifiedConfig

#: Token types of a first and a second text by mask, in models with UniLM's six, which name the objective.
_UNILM_TYPES = {"bidirectional": (0, 1), "left_to_right": (2, 2), "right_to_left": (3, 3), "seq2seq": (4, 5)}


def visible_by_steps(query_step: torch.Tensor, key_start: torch.Tensor, key_stop: torch.Tensor) -> torch.Tensor:
    """The mask rule: a key is visible from one step until another, and a query looks at one step.

    Args:
        query_step: integers (B, Q).
        key_start, key_stop: integers (B, S).

    Returns:
        bool (B, Q, S).
    """
    step = query_step.unsqueeze(2)
    return (key_start.unsqueeze(1) <= step) & (step < key_stop.unsqueeze(1))


def visible_in_texts(mask: str, real: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
    """The mask of a text or a pair of texts, bool (B, T, T).

    Args:
        mask: "bidirectional", "left_to_right", "right_to_left", or "seq2seq": the first text sees itself, the second
            one the first and what stands before in it.
        real: bool (B, T), False at padding, which nobody sees and which sees nothing.
        segments: int64 (B, T), 1 from the second text on.
    """
    index = torch.arange(real.size(1), device=real.device)
    before = index.unsqueeze(1) >= index  # (T, T), keys that do not stand behind the query
    second = ((segments == 1).cumsum(1) > 0).unsqueeze(1)  # (B, 1, T)
    every = torch.ones_like(before)
    visible = {"bidirectional": every, "left_to_right": before, "right_to_left": before.T, "seq2seq": before | ~second}
    return visible[mask] & real.unsqueeze(1) & real.unsqueeze(2)


def class_index(config: UnifiedConfig, visible: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Index of the token that each text is read by as a whole, int64 (B,).

    It is CLS, at the front, or at the end where positions are relative; or the last SEP, where CLS does not see all.

    Args:
        visible: bool (B, T, T).
        real: bool (B, T).
    """
    first, index = real.long().argmax(1), torch.arange(real.size(1), device=real.device)
    last = (real * index).argmax(1)
    if config.positions == "relative":
        return last
    seen = visible[torch.arange(len(first), device=real.device), first]  # (B, T), by the first token
    return torch.where((seen == real).all(1), first, last)


def types_of_texts(config: UnifiedConfig, segments: torch.Tensor) -> torch.Tensor:
    """Token types of a text or a pair of texts, int64 (B, T), from the segments 0 and 1 that tokenizers give."""
    if config.token_types <= 5 or config.positions == "relative":
        return segments
    return torch.tensor(_UNILM_TYPES[config.mask], device=segments.device)[segments]


def without_following(visible: torch.Tensor, positions: torch.Tensor, tokens: int) -> torch.Tensor:
    """No query sees a key that stands behind its own (``attn_type`` "uni").

    A query of a query stream stands at the token of its position.

    Args:
        visible: bool (B, Q, S).
        positions: int64 (B, Q), those of the query stream behind those of the ``tokens`` tokens.
    """
    index = torch.arange(tokens, device=visible.device)
    stream = positions[:, tokens:].unsqueeze(2) == positions[:, None, :tokens]  # (B, Q - T, T)
    if not bool((stream.sum(2) == 1).all()):
        raise ValueError("attn_type 'uni': each query of a query stream needs one token of its position in its row")
    own = torch.cat([index.expand(len(positions), -1), stream.long().argmax(2)], dim=1)  # (B, Q)
    return visible & (index <= own.unsqueeze(2))
