"""Heads that find an answer in a passage: BERT's, UniLM's and XLNet's.

A batch is flat: states (N, D) that are read of E examples, one example after another, ``sizes`` of each.
All softmaxes are over the states of an example. Where an example holds no answer, the answer is its CLS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from unified.kernels.plain import LinearMap
from unified.model.config import TransformerConfig
from unified.model.heads import TaskHead
from unified.model.transformer import initialize

#: Starts that XLNet's head tries, and ends for each (``start_n_top``, ``end_n_top``).
BEAMS = 5


@dataclass(frozen=True)
class Beams:
    """The k best starts of each of E examples, and the k best ends for each of them.

    Attributes:
        starts: int64 (E, k), indices within the example, best first.
        ends: int64 (E, k, k).
        scores: float (E, k, k), log-probability of start and end; -inf where an example has fewer states.
    """

    starts: torch.Tensor
    ends: torch.Tensor
    scores: torch.Tensor


@dataclass(frozen=True)
class SpanScores:
    """Logits of an example's answer.

    Attributes:
        start: (N,).
        end: (N,); None where it depends on a start that nobody gave.
        answer_types: (E, K) of the types of answers, or (E, 1) that there is none; None where the head does not ask.
        beams: in place of ``end`` while predicting.
        ends_of: of heads with beams, the logits (N,) of ends behind given starts, int64 (E,) among all N states.
    """

    start: torch.Tensor
    end: torch.Tensor | None
    answer_types: torch.Tensor | None = None
    beams: Beams | None = None
    ends_of: Callable[[torch.Tensor], torch.Tensor] | None = None


class BertSpanHead(TaskHead):
    """A score as start and one as end for each token [BERT, sec. 4.2]."""

    label_modules = ()

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.output = nn.Linear(config.width, 2)
        initialize(self.output, config.initializer_range)

    def forward(self, states: torch.Tensor, reading: Mapping[str, torch.Tensor]) -> SpanScores:
        start, end = self.output(states).unbind(-1)
        return SpanScores(start, end)


class UnilmSpanHead(TaskHead):
    """BERT's scores, and which type of answer there is, from the state of CLS [UniLM, sec. 3.2].

    Args:
        answer_types: a span is the first; the others are answers that no passage holds.
    """

    label_modules = ("answer_type",)

    def __init__(self, config: TransformerConfig, answer_types: int):
        super().__init__()
        self.output = nn.Linear(config.width, 2)
        self.dropout = nn.Dropout(config.dropout)
        self.answer_type = nn.Linear(config.width, answer_types)
        for module in (self.output, self.answer_type):
            initialize(module, config.initializer_range)

    def forward(self, states: torch.Tensor, reading: Mapping[str, torch.Tensor]) -> SpanScores:
        """``reading`` has ``cls``, int64 (E,): its index within each example."""
        start, end = self.output(states).unbind(-1)
        cls = states.index_select(0, firsts(reading["sizes"]) + reading["cls"])
        return SpanScores(start, end, self.answer_type(self.dropout(cls)))


class XlnetSpanHead(TaskHead):
    """The end depends on the start; whether there is an answer is read from CLS and the expected start.

    Published ``get_qa_outputs``: end from tanh(dense [h_j; h_start]), LayerNorm, dense; no answer from
    tanh(dense [sum of h_j by their probability as start; h_CLS]), dropout, dense without bias.
    """

    label_modules = ()

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.start = nn.Linear(config.width, 1)
        self.end_dense = nn.Linear(2 * config.width, config.width)
        self.linear = LinearMap()  # by parts of the weight above
        self.end_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.end = nn.Linear(config.width, 1)
        self.answer_dense = nn.Linear(2 * config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.answer = nn.Linear(config.width, 1, bias=False)
        for module in (self.start, self.end_dense, self.end, self.answer_dense, self.answer):
            initialize(module, config.initializer_range)

    def forward(self, states: torch.Tensor, reading: Mapping[str, torch.Tensor]) -> SpanScores:
        """``reading`` has ``cls`` as above, and for ``end`` the starts in ``labels``, int64 (E, 2)."""
        sizes = reading["sizes"]
        first, example = firsts(sizes), example_of_states(sizes, len(states))
        start = self.start(states).squeeze(-1)
        expected = states.new_zeros(len(sizes), states.size(1)).index_add(
            0, example, softmax(start, example, len(sizes)).to(states.dtype).unsqueeze(-1) * states
        )
        cls = states.index_select(0, first + reading["cls"])
        answer_types = self.answer(self.dropout(torch.tanh(self.answer_dense(torch.cat([expected, cls], -1)))))
        own, other = self.end_dense.weight.chunk(2, dim=1)
        left = self.linear(states, own, self.end_dense.bias)

        def ends(starts: torch.Tensor) -> torch.Tensor:
            """(N,) logits for a start of each example, int64 (E,) flat indices."""
            right = self.linear(states.index_select(0, starts), other)
            hidden = torch.tanh(left + right.index_select(0, example))
            return self.end(self.end_norm(hidden)).squeeze(-1)

        end = ends(first + reading["labels"][:, 0].clamp(min=0)) if "labels" in reading else None
        if self.training:
            return SpanScores(start, end, answer_types)
        return SpanScores(start, end, answer_types, beams_of(start, ends, sizes), ends)


def beams_of(start: torch.Tensor, ends: Callable[[torch.Tensor], torch.Tensor], sizes: torch.Tensor) -> Beams:
    """The best starts of each of E examples, and the best ends behind each.

    Args:
        start: (N,) logits.
        ends: from the start of each example, int64 (E,) among all N states, to the (N,) logits of its ends.
        sizes: int64 (E,), states of each example.
    """
    first, example = firsts(sizes), example_of_states(sizes, len(start))
    cells = example, torch.arange(len(start), device=start.device) - first[example]
    table = start.new_full((len(sizes), max(int(sizes.max()), BEAMS)), -torch.inf)  # the only look at a value
    log_start, starts = _best(_log_softmax(start, example, len(sizes)), table, cells)
    log_ends, best_ends = [], []
    for beam in starts.unbind(1):
        # An example with fewer states than beams repeats its first; the score of the start is -inf.
        logits = ends(first + torch.minimum(beam, sizes - 1))
        log_end, found = _best(_log_softmax(logits, example, len(sizes)), table, cells)
        log_ends.append(log_end)
        best_ends.append(found)
    return Beams(starts, torch.stack(best_ends, 1), log_start.unsqueeze(-1) + torch.stack(log_ends, 1))


def _best(
    values: torch.Tensor, table: torch.Tensor, cells: tuple[torch.Tensor, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Highest (N,) values of each example and their indices in it, both (E, k).

    Args:
        table: (E, most states of an example), -inf throughout.
        cells: int64 (N,) twice, the row and the column of each value in it.
    """
    return table.to(values.dtype).index_put(cells, values).topk(BEAMS, dim=1)


def example_of_states(sizes: torch.Tensor, states: int) -> torch.Tensor:
    """int64 (N,): the example of each of N ``states``, of int64 (E,) sizes, whose sum N is."""
    return torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes, output_size=states)


def firsts(sizes: torch.Tensor) -> torch.Tensor:
    """int64 (E,): the first state of each example."""
    return sizes.cumsum(0) - sizes


def log_sum_exp(values: torch.Tensor, example: torch.Tensor, count: int) -> torch.Tensor:
    """(count,): of the (N,) values of each example, in float32 at least; no example is empty."""
    values = values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
    top = example_maxima(values, example, count)
    sums = values.new_zeros(count).index_add(0, example, (values - top[example]).exp())
    return top + sums.log()


def example_maxima(values: torch.Tensor, example: torch.Tensor, count: int) -> torch.Tensor:
    """(count,): the highest of the (N,) values of each example, without gradient."""
    return values.new_full((count,), -torch.inf).scatter_reduce(0, example, values.detach(), "amax")


def softmax(values: torch.Tensor, example: torch.Tensor, count: int) -> torch.Tensor:
    """(N,): probabilities that add up to 1 in each example."""
    return _log_softmax(values, example, count).exp()


def _log_softmax(values: torch.Tensor, example: torch.Tensor, count: int) -> torch.Tensor:
    return values - log_sum_exp(values, example, count)[example]
