"""torch's scaled_dot_product_attention: the fast path on a CPU, and on a GPU for masks without structure."""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention

from unified.attention.backend import Backend
from unified.attention.bias import ScoreBias
from unified.masks import AttentionMask


class SdpaAttention(Backend):
    """One boolean T x S matrix a row at most; none where the row is full or causal throughout."""

    name = "sdpa"
    any_shape = True
    compiles = True

    @staticmethod
    def pays(mask: AttentionMask, device: torch.device, dtype: torch.dtype, dropout: float, needs: str | None) -> bool:
        return True

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        if needs == "weights":
            return "torch's attention does not give its weights, which relative values read; use 'dense'"
        return None

    def __init__(self, mask: AttentionMask, dtype: torch.dtype):
        self.causal = mask.structure == "causal"
        self.visible = self.empty = None
        if mask.structure == "mixed":
            self.visible = mask.for_sdpa()
            # Kernels differ in what they return for a query that sees nothing: zeros are written there. On a GPU they
            # are written without a look whether there is such a query, for which the program would wait.
            empty = ~self.visible.any(-1, keepdim=True)
            if mask.device.type != "cpu" or bool(empty.any()):
                self.empty = empty

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        visible, causal = self.visible, self.causal
        if bias is not None:
            visible, causal = self._biased(bias.dense()), False
        out = scaled_dot_product_attention(query, key, value, visible, dropout_p=dropout, is_causal=causal)
        return out if self.empty is None else out.masked_fill(self.empty, 0.0)

    def _biased(self, bias: torch.Tensor) -> torch.Tensor:
        """The bias (B, H, T, S) with the lowest number where a query may not attend; -inf would make empty rows NaN."""
        if self.visible is None and not self.causal:
            return bias
        visible = self.visible
        if visible is None:
            visible = torch.ones(bias.shape[-2:], dtype=torch.bool, device=bias.device).tril()
        return bias.masked_fill(~visible, torch.finfo(bias.dtype).min)
