"""Scores of the next tokens for a batch of texts, with a cache of the tokens that have been read.

Letters: R rows, each a hypothesis of a text, Q queries, S keys, V symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .attention_unified import Cache, View


class Scheme(NamedTuple):
    """A way in which a model writes.

    Attributes:
        mask_query: a [MASK] asks for the next token (UniLM); else the last token predicts it.
        source_type, target_type: token types of what is given and of what is written.
        prompt: the given text is the beginning of what is written, not a source that ends with the separator.
        query_stream: a query that is no token asks for the next one (XLNet); no begin symbol stands in front.
    """

    mask_query: bool
    source_type: int
    target_type: int
    prompt: bool
    query_stream: bool = False


SCHEMES = {
    "cloze": Scheme(True, 4, 5, prompt=False),
    "next": Scheme(False, 4, 5, prompt=False),
    "left_to_right": Scheme(True, 2, 2, prompt=True),
    "permutation": Scheme(False, 0, 0, prompt=True, query_stream=True),
}


class Reader:
    """Sources, the hypotheses written from them, and the scores of the next tokens.

    Args:
        model: the language model.
        scheme: how it writes.
        sources: lists of ids without a begin symbol; they end with the separator, or are prompts.
        beam: hypotheses of each source; its rows stand side by side.
    """

    def __init__(self, model: Any, scheme: Scheme, sources: Sequence[Sequence[int]], beam: int):
        self.model, self.scheme, self.cache, self.written = model, scheme, Cache(), 0
        config, self.device = model.config, model.device
        begin = [] if scheme.query_stream else [config.cls_token_id]
        rows = [torch.tensor([*begin, *source]).long() for source in sources]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, True, config.pad_token_id).to(self.device)
        self.lengths = torch.tensor([len(row) for row in rows], device=self.device)
        self.width = tokens.size(1)
        if self.width:
            visible = self._real().unsqueeze(1).expand(-1, self.width, -1)
            causal = config.attn_type == "uni" or (scheme.prompt and not scheme.query_stream)
            self._run(tokens, visible.tril() if causal else visible)
        self.select(torch.arange(len(rows), device=self.device).repeat_interleave(beam))

    def select(self, rows: torch.Tensor) -> None:
        """Row i goes on as the old row ``rows[i]``, int64 (R,)."""
        self.lengths = self.lengths[rows]
        self.cache.select(rows)

    def step(self, last: torch.Tensor | None) -> torch.Tensor:
        """Scores (R, V) of the next token; ``last`` int64 (R,) are the tokens written last, None at the first step."""
        config, kept, rows = self.model.config, [] if last is None else [last], len(self.lengths)
        asks = []
        if self.scheme.mask_query:
            asks = [torch.full((rows,), config.mask_token_id, device=self.device)]
        elif last is None and not self.scheme.query_stream:
            kept = [torch.full((rows,), config.cls_token_id, device=self.device)]
        tokens = torch.stack([*kept, *asks], dim=1) if kept or asks else torch.empty(rows, 0, device=self.device)
        before, content = self.written, tokens.size(1)
        queries = content + int(self.scheme.query_stream)
        seen = torch.ones(rows, queries, before + content, dtype=torch.bool, device=self.device).tril(before)
        given = self._real().unsqueeze(1).expand(-1, queries, -1)
        states = self._run(tokens.long(), torch.cat([given, seen], dim=2))
        self.written += len(kept)
        self.cache.keep(self.width + self.written)
        return self.model.logits(states[:, -1])

    def _real(self) -> torch.Tensor:
        """bool (R, width), False at the padding of sources."""
        return torch.arange(self.width, device=self.device) < self.lengths.unsqueeze(1)

    def _run(self, tokens: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        """States (R, Q, D) of new tokens (R, c) and, behind them, of a query stream; ``visible`` is (R, Q, S)."""
        (rows, queries, keys), content = visible.shape, tokens.size(1)
        known = keys - content
        index = torch.arange(known + queries, device=self.device).expand(rows, -1)
        of_source = index < self.width
        # What is written stands behind its own source, wherever the padding of the batch ends.
        positions = torch.where(of_source, index, index - self.width + self.lengths.unsqueeze(1))
        types = torch.where(of_source, self.scheme.source_type, self.scheme.target_type)
        own = index[0, known:].unsqueeze(1) == index[0, :keys]
        view = View(
            visible, own, content, positions[:, known:], positions[:, :keys], types[:, known:], types[:, :keys],
            cache=self.cache,
        )  # fmt: skip
        return self.model.transformer.run(tokens, view)[0]
