"""Spans of words: the candidates, a vector for each, and the choice of some (Lee et al. 2017 and 2018)."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def candidate_spans(sentences: torch.Tensor, widest: int) -> tuple[torch.Tensor, torch.Tensor]:
    """First and last words, int64 (C,), of all spans of up to ``widest`` words of one sentence, by first, then last.

    Args:
        sentences: int64 (W,), the sentence of each word.
    """
    words = len(sentences)
    starts = torch.arange(words, device=sentences.device).unsqueeze(1)
    ends = starts + torch.arange(widest, device=sentences.device)
    inside = (ends < words) & (sentences[ends.clamp(max=words - 1)] == sentences.unsqueeze(1))
    rows, columns = inside.nonzero(as_tuple=True)
    return rows, rows + columns


def kept_spans(scores: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, count: int) -> torch.Tensor:
    """The best ``count`` spans that do not cross a better one that is kept, as increasing numbers, int64 (K,).

    Two spans cross where the second begins behind the first word of the first one and within it, and ends behind it.
    Of equal scores the earlier span is better.

    Args:
        scores, starts, ends: (C,), of each candidate.
    """
    order = scores.argsort(descending=True, stable=True).tolist()
    first, last = starts.tolist(), ends.tolist()
    words = int(ends.max()) + 1
    # reach: last word of the longest kept span that begins at a word; origin: first word of the longest ending there.
    reach, origin = np.full(words, -1), np.full(words, words)
    kept: list[int] = []
    for candidate in order:
        if len(kept) == count:
            break
        start, end = first[candidate], last[candidate]
        if (reach[start + 1 : end + 1] > end).any() or (origin[start:end] < start).any():
            continue
        reach[start], origin[end] = max(reach[start], end), min(origin[end], start)
        kept.append(candidate)
    return torch.tensor(sorted(kept), device=scores.device)


class SpanVectors(nn.Module):
    """A span as [state of its first token; of its last; its width; mean of its tokens' states, weighted by attention].

    Args:
        states: width D of a token's state.
        widest: words of a span, at most.
        features: width of the embedding of a span's width.
    """

    def __init__(self, states: int, widest: int, features: int, dropout: float):
        super().__init__()
        self.attention = nn.Linear(states, 1)
        self.widths = nn.Embedding(widest, features)
        self.dropout = nn.Dropout(dropout)
        self.size = 3 * states + features

    def forward(
        self, states: torch.Tensor, first: torch.Tensor, last: torch.Tensor, words: torch.Tensor
    ) -> torch.Tensor:
        """(S, 3 D + features).

        Args:
            states: (T, D), of tokens that stand one behind another.
            first, last: int64 (S,), the tokens between which a span lies, both in it.
            words: int64 (S,), how many words it has.
        """
        parts = states[first], states[last], self.width(words), self.mean(states, states, first, last)
        return torch.cat(parts, dim=-1)

    def width(self, words: torch.Tensor) -> torch.Tensor:
        """(S, features)."""
        return self.dropout(self.widths(words - 1))

    def mean(
        self,
        values: torch.Tensor,
        states: torch.Tensor,
        first: torch.Tensor,
        last: torch.Tensor,
        tokens_in_all: int | None = None,
    ) -> torch.Tensor:
        """Mean (S, V) of the ``values`` (T, V) of each span's tokens, weighted by attention to the tokens' states.

        ``tokens_in_all`` is P, how many tokens all spans have together; where it is None, a GPU waits for it.
        """
        lengths = last - first + 1
        begins = lengths.cumsum(0) - lengths
        # The tokens of all spans one behind another, P in all, and the span of each.
        spans = torch.arange(len(lengths), device=states.device).repeat_interleave(lengths, output_size=tokens_in_all)
        tokens = torch.arange(len(spans), device=states.device) - (begins - first)[spans]
        scores = self.attention(states).squeeze(-1)[tokens]
        highest = scores.new_full(lengths.shape, -torch.inf).scatter_reduce(0, spans, scores.detach(), "amax")
        weights = (scores - highest[spans]).exp()
        weights = weights / weights.new_zeros(lengths.shape).index_add(0, spans, weights)[spans]
        # A sum of weighted rows that never holds the (P, V) rows.
        return functional.embedding_bag(tokens, values, begins, mode="sum", per_sample_weights=weights.to(values.dtype))


class MentionScorer(nn.Module):
    """Scorer of spans as mentions: a hidden layer with ReLU and dropout on the vector of a span, and one score.

    The hidden layer is applied to the parts of the vectors, which is the same, and so to each token once instead of to
    each span: a mean of projections is the projection of the mean.
    """

    def __init__(self, vectors: SpanVectors, states: int, hidden: int, dropout: float):
        super().__init__()
        self.first = nn.Linear(states, hidden)
        self.last = nn.Linear(states, hidden, bias=False)
        self.width = nn.Linear(vectors.widths.embedding_dim, hidden, bias=False)
        self.mean = nn.Linear(states, hidden, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden, 1)

    def forward(
        self,
        vectors: SpanVectors,
        states: torch.Tensor,
        first: torch.Tensor,
        last: torch.Tensor,
        words: torch.Tensor,
        tokens_in_all: int | None = None,
    ) -> torch.Tensor:
        """(S,), of the spans that ``vectors`` would make vectors of, see there and :meth:`SpanVectors.mean`."""
        hidden = self.first(states)[first] + self.last(states)[last] + self.width(vectors.width(words))
        hidden = hidden + vectors.mean(self.mean(states), states, first, last, tokens_in_all)
        return self.output(self.dropout(hidden.relu())).squeeze(-1)
