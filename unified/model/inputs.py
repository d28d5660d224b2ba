"""Checks of what a Transformer is given: on a GPU of shapes and dtypes alone, so that it never waits for them."""

from __future__ import annotations

import torch

from unified.errors import UnifiedError
from unified.masks import AttentionMask
from unified.model.config import TransformerConfig


def check_inputs(
    tokens: torch.Tensor,
    positions: torch.Tensor,
    token_types: torch.Tensor,
    mask: AttentionMask,
    output_indices: torch.Tensor | None = None,
    entities: torch.Tensor | None = None,
) -> None:
    """Check the arguments of :meth:`unified.model.Transformer.forward`.

    Raises:
        UnifiedError: one has another type, dtype or length than the others ask for.
    """
    _require("tokens", tokens, torch.int64, 2)
    rows, length = tokens.shape
    _require("positions", positions, torch.int64, 2)
    if positions.size(0) != rows or positions.size(1) < length:
        raise UnifiedError(
            f"positions must be (rows, length) of the {rows} rows of at least {length} tokens, got "
            f"{tuple(positions.shape)}"
        )
    _require("token_types", token_types, torch.int64, 2)
    if token_types.shape != positions.shape:
        raise UnifiedError(
            f"token_types must have the shape of positions, {tuple(positions.shape)}, got {tuple(token_types.shape)}"
        )
    if not isinstance(mask, AttentionMask):
        raise UnifiedError(
            f"mask must be an AttentionMask of unified.masks, got {described(mask)}; from_dense makes one of a matrix"
        )
    if (mask.query_length, mask.key_length) != (positions.size(1), length):
        raise UnifiedError(
            f"mask must have a query for each of {positions.size(1)} positions and a key for each of {length} tokens, "
            f"got {mask.query_length} queries and {mask.key_length} keys"
        )
    if mask.batched and len(mask.query_step) != rows:
        raise UnifiedError(f"mask must have the {rows} rows of tokens, got {len(mask.query_step)}")
    if output_indices is not None:
        _require("output_indices", output_indices, torch.int64, 1)
        if output_indices.numel() and output_indices.device.type == "cpu":
            least, most = int(output_indices.min()), int(output_indices.max())
            if not 0 <= least <= most < positions.numel():
                raise UnifiedError(
                    f"output_indices must be from 0 to {positions.numel() - 1}, indices of rows and positions, "
                    f"got {least} to {most}"
                )
    if entities is not None:
        _require("entities", entities, torch.bool, 2)
        if entities.shape != tokens.shape:
            raise UnifiedError(
                f"entities must have the shape of tokens, {tuple(tokens.shape)}, got {tuple(entities.shape)}"
            )


def require_config(config: TransformerConfig) -> None:
    """Refuse what is no configuration.

    Raises:
        UnifiedError: a model is to be made of something else.
    """
    if not isinstance(config, TransformerConfig):
        raise UnifiedError(f"config must be a TransformerConfig, got {described(config)}")


_SHAPES = {1: "(length,)", 2: "(rows, length)"}
_WORDS = {torch.int64: "an int64", torch.bool: "a bool"}


def _require(name: str, value: torch.Tensor, dtype: torch.dtype, axes: int) -> None:
    if not isinstance(value, torch.Tensor) or value.dtype != dtype or value.dim() != axes:
        raise UnifiedError(f"{name} must be {_WORDS[dtype]} tensor {_SHAPES[axes]}, got {described(value)}")


def described(value: object) -> str:
    """Dtype and shape of a tensor, or the type of anything else."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
