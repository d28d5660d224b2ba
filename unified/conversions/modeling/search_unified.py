"""Greedy and beam search for one source; token by token what the library UNIFIED (unified-lm) finds.

Letters: R hypotheses that are being written, Q queries, S keys, V symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from .layers_unified import Cache, View


class Scheme(NamedTuple):
    """How a model writes.

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
#: What summed log-probabilities are divided by, from the number of tokens and the exponent ``lenpen``.
PENALTIES = {
    "fairseq": lambda length, exponent: float(length) ** exponent,
    "unilm": lambda length, exponent: ((5 + length) / 6) ** exponent,
}


class Hypothesis(NamedTuple):
    """One finished text.

    Attributes:
        tokens: int64 (m,) on the CPU, without the end symbol.
        log_probs: float32 (m + 1,) in nats, the end symbol's last.
        score: their sum divided by the length penalty; without the end symbol where ``max_length`` ends the
            continuation of a prompt.
    """

    tokens: torch.Tensor
    log_probs: torch.Tensor
    score: float


@dataclass(frozen=True)
class Search:
    """Settings of a search: the library's, under its names."""

    beam: int = 5
    max_length: int = 128
    min_length: int = 1
    nbest: int = 1
    length_penalty: str = "fairseq"
    lenpen: float = 1.0
    no_repeat_ngram_size: int = 0
    no_repeat_ngram_ignore: Iterable[int] = ()
    temperature: float = 1.0

    def __post_init__(self) -> None:
        for name in ("beam", "max_length", "nbest"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} exceeds max_length {self.max_length}")
        if self.nbest > self.beam:
            raise ValueError(f"nbest {self.nbest} exceeds beam {self.beam}")
        if self.length_penalty not in PENALTIES:
            raise ValueError(f"length_penalty must be one of {sorted(PENALTIES)}, got {self.length_penalty!r}")
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature}")


class Reader:
    """One source, what R hypotheses have written behind it, and the scores of their next tokens.

    Args:
        model: the language model.
        scheme: how it writes.
        source: ids without a begin symbol; they end with the separator, or are a prompt.
        beam: R.
    """

    def __init__(self, model: Any, scheme: Scheme, source: Sequence[int], beam: int):
        self.model, self.scheme, self.cache, self.beam, self.written = model, scheme, Cache(), beam, 0
        config, self.device = model.config, model.device
        given = list(source) if scheme.query_stream else [config.cls_token_id, *source]
        self.source_length = len(given)
        if given:
            visible = torch.ones(1, len(given), len(given), dtype=torch.bool, device=self.device)
            causal = config.attn_type == "uni" or (scheme.prompt and not scheme.query_stream)
            self._run(torch.tensor([given], device=self.device), visible.tril() if causal else visible)
            self.cache.select(torch.zeros(beam, dtype=torch.long, device=self.device))

    def step(self, last: torch.Tensor | None) -> torch.Tensor:
        """Scores (R, V) of the next token; ``last`` int64 (R,) is what was written last, None at the first step."""
        config, kept = self.model.config, [] if last is None else [last]
        asks = []
        if self.scheme.mask_query:
            asks = [torch.full((self.beam,), config.mask_token_id, device=self.device)]
        elif last is None and not self.scheme.query_stream:
            kept = [torch.full((self.beam,), config.cls_token_id, device=self.device)]
        tokens = torch.stack([*kept, *asks], dim=1) if kept or asks else torch.empty(self.beam, 0, device=self.device)
        known, new = self.source_length + self.written, tokens.size(1) + int(self.scheme.query_stream)
        visible = torch.ones(self.beam, new, known + tokens.size(1), dtype=torch.bool, device=self.device)
        states = self._run(tokens.long(), visible.tril(known))
        self.written += len(kept)
        self.cache.keep(self.source_length + self.written)
        return self.model.logits(states[:, -1])

    def _run(self, tokens: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        """States (R, Q, D) of new tokens (R, c) and, behind them, of a query stream; ``visible`` is (R, Q, S)."""
        (rows, queries, keys), content = visible.shape, tokens.size(1)
        known = keys - content
        index = torch.arange(known + queries, device=self.device)
        positions = index.expand(rows, -1)
        types = torch.where(positions < self.source_length, self.scheme.source_type, self.scheme.target_type)
        own = index[known:].unsqueeze(1) == index[:keys]
        view = View(
            visible, own, content, positions[:, known:], positions[:, :keys], types[:, known:], types[:, :keys],
            cache=self.cache,
        )  # fmt: skip
        return self.model.transformer.run(tokens, view)[0]


def search(reader: Reader, given: Sequence[int], settings: Search) -> list[Hypothesis]:
    """The best texts, best first, by fairseq's rules.

    Of the 2 x beam best continuations those among the first ``beam`` that end are finished, and the best ones that do
    not end go on, until ``beam`` texts are finished.

    Args:
        given: the prompt, whose n-grams are not repeated either.
    """
    config, beam, device = reader.model.config, settings.beam, reader.device
    end, never = config.sep_token_id, [config.cls_token_id, config.pad_token_id, config.mask_token_id]
    totals = torch.full((beam,), -torch.inf, device=device)  # all texts begin alike, so the search starts from one
    totals[0] = 0.0
    tokens: list[list[int]] = [[] for _ in range(beam)]
    log_probs: list[list[float]] = [[] for _ in range(beam)]
    finished: list[Hypothesis] = []
    last = None
    for step in range(settings.max_length + 1):
        allowed = (reader.step(last).float() / settings.temperature).log_softmax(-1)
        allowed = _restricted(allowed, [[*given, *row] for row in tokens], never, end, step, settings)
        joint = (totals.unsqueeze(1) + allowed).flatten()
        sums, best = joint.topk(min(2 * beam, len(joint)))
        rows, symbols = best // allowed.size(1), best % allowed.size(1)
        gained = allowed[rows, symbols].tolist()
        picked = list(zip(rows.tolist(), symbols.tolist(), gained, sums.tolist(), strict=True))
        cut = step == settings.max_length
        for row, symbol, log_prob, total in picked[:beam]:
            if symbol == end and total > -torch.inf and len(finished) < beam:
                own = [*log_probs[row], log_prob]
                finished.append(_hypothesis(tokens[row], own, cut and reader.scheme.prompt, settings))
        going = [i for i, (_, symbol, _, total) in enumerate(picked) if symbol != end and total > -torch.inf][:beam]
        if not going or len(finished) >= beam:
            break
        going += [going[0]] * (beam - len(going))  # rows that never win
        totals = sums[going]
        totals[len(set(going)) :] = -torch.inf
        tokens = [[*tokens[picked[i][0]], picked[i][1]] for i in going]
        log_probs = [[*log_probs[picked[i][0]], picked[i][2]] for i in going]
        reader.cache.select(rows[going])
        last = symbols[going]
    if not finished:
        raise ValueError("the model's scores are not numbers; its parameters seem to be damaged")
    return sorted(finished, key=lambda one: -one.score)[: settings.nbest]


def _hypothesis(tokens: list[int], log_probs: list[float], unscored_end: bool, settings: Search) -> Hypothesis:
    """A finished text; ``unscored_end`` leaves the end symbol out of its score."""
    own = torch.tensor(log_probs)
    counted = own[:-1] if unscored_end else own
    penalty = PENALTIES[settings.length_penalty](len(counted), settings.lenpen)
    return Hypothesis(torch.tensor(tokens).long(), own, float(counted.double().sum()) / penalty)


def _restricted(
    log_probs: torch.Tensor, texts: Sequence[Sequence[int]], never: Sequence[int], end: int, step: int, settings: Search
) -> torch.Tensor:
    """Log-probabilities (R, V), -inf for what must not follow ``texts``; at ``max_length`` they end."""
    if step == settings.max_length:
        others = torch.arange(log_probs.size(1), device=log_probs.device) != end
        return log_probs.masked_fill(others, -torch.inf)
    allowed = log_probs.clone()
    allowed[:, never] = -torch.inf
    size = settings.no_repeat_ngram_size
    for row, text in enumerate(texts if size else ()):
        allowed[row, _repeating(text, size, set(settings.no_repeat_ngram_ignore))] = -torch.inf
    if step < settings.min_length:
        allowed[:, end] = -torch.inf
        if size:  # where nothing else is left, ending early is the lesser evil
            stuck = allowed.amax(1).isneginf()
            allowed[stuck, end] = log_probs[stuck, end]
    return allowed


def _repeating(text: Sequence[int], size: int, ignore: set[int]) -> list[int]:
    """Tokens that would repeat an n-gram of a text; none of ``ignore``, and none where the n-gram holds one of them."""
    tail = list(text[len(text) - size + 1 :])
    if len(text) < size or ignore.intersection(tail):
        return []
    ngrams = [list(text[i : i + size]) for i in range(len(text) - size + 1)]
    return [follower for *before, follower in ngrams if before == tail and follower not in ignore]
