"""Greedy search, beam search and sampling; token by token what the library UNIFIED (unified-lm) writes.

Letters: N texts that are being written, B hypotheses of each (the beam), R = N x B rows, Q queries, S keys, V symbols.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import torch

from .reader_unified import Reader

#: Divisors of summed log-probabilities, from the number of tokens and the exponent ``lenpen``.
PENALTIES = {
    "fairseq": lambda length, exponent: float(length) ** exponent,
    "unilm": lambda length, exponent: ((5 + length) / 6) ** exponent,
}
#: Least temperature: divided by less, scores may be no float32.
LEAST_TEMPERATURE = 1e-20
_LEAST = {
    "beam": 1, "max_length": 1, "nbest": 1, "min_length": 0, "no_repeat_ngram_size": 0, "top_k": 0, "seed": 0,
}  # fmt: skip


class Hypothesis(NamedTuple):
    """One finished text.

    Attributes:
        tokens: int64 (m,) on the CPU, without the end symbol.
        log_probs: float32 (m + 1,) in nats, the end symbol's last; after temperature, before top-k and top-p.
        score: their sum divided by the length penalty; without the end symbol where ``max_length`` ends the
            continuation of a prompt.
    """

    tokens: torch.Tensor
    log_probs: torch.Tensor
    score: float


@dataclass(frozen=True)
class Search:
    """Settings of a search: the library's, under its names.

    Attributes:
        beam: hypotheses kept for each text, by default 5; with sampling, the number drawn, by default ``nbest``.
        max_length, min_length: most and fewest tokens to write, the end symbol not counted.
        nbest: hypotheses to return for each text, best first.
        length_penalty: one of :data:`PENALTIES`.
        lenpen: its exponent.
        no_repeat_ngram_size: write no n-gram of this size twice; 0 allows all.
        no_repeat_ngram_ignore: ids that this rule leaves alone.
        sampling: draw tokens instead of searching for the best.
        top_k: draw from the k most probable tokens; 0: from all.
        top_p: draw from the most probable tokens that together have this probability.
        temperature: divisor of the logits.
        seed: of sampling; what is drawn for a text depends on the seed and its row number alone.
    """

    beam: int = None  # type: ignore[assignment]  # __post_init__ sets it
    max_length: int = 128
    min_length: int = 1
    nbest: int = 1
    length_penalty: str = "fairseq"
    lenpen: float = 1.0
    no_repeat_ngram_size: int = 0
    no_repeat_ngram_ignore: Iterable[int] = ()
    sampling: bool = False
    top_k: int = 0
    top_p: float = 1.0
    temperature: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.beam is None:
            object.__setattr__(self, "beam", self.nbest if self.sampling is True else 5)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        for name in ("lenpen", "top_p", "temperature"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r}")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} exceeds max_length {self.max_length}")
        if self.nbest > self.beam:
            raise ValueError(f"nbest {self.nbest} exceeds beam {self.beam}")
        if self.length_penalty not in PENALTIES:
            raise ValueError(f"length_penalty must be one of {sorted(PENALTIES)}, got {self.length_penalty!r}")
        self._require_penalty()
        if self.temperature < LEAST_TEMPERATURE:
            raise ValueError(f"temperature must be at least {LEAST_TEMPERATURE:g}, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p}")
        if not self.sampling and self.top_k:
            raise ValueError(f"top_k {self.top_k} says what is drawn from; it needs sampling")
        if not self.sampling and self.top_p < 1:
            raise ValueError(f"top_p {self.top_p} says what is drawn from; it needs sampling")
        if self.no_repeat_ngram_ignore and not self.no_repeat_ngram_size:
            raise ValueError("no_repeat_ngram_ignore needs no_repeat_ngram_size, which is 0")

    def _require_penalty(self) -> None:
        """Refuses an exponent by which the longest text, its end symbol counted, has no penalty above 0."""
        longest = self.max_length + 1
        try:
            divisor = PENALTIES[self.length_penalty](longest, self.lenpen)
        except OverflowError:
            divisor = math.inf
        if not 0 < divisor < math.inf:
            raise ValueError(f"lenpen {self.lenpen:g}: a text of {longest:,} tokens has no such length penalty")


class Text:
    """The search for one text: its hypotheses that are being written, and those that are finished.

    By fairseq's rules, of the 2 x beam best continuations those among the first ``beam`` that end are finished, and the
    best ones that do not end go on, until ``beam`` texts are finished. With sampling each hypothesis is continued by
    the token that is drawn for it.

    Args:
        given: the prompt, whose n-grams are not repeated either.
        prompt: whether the model continues a prompt.
        row: number of the text, for its random draws.
        config: of the model, with the ids of special symbols.
        settings: of the search.
    """

    def __init__(self, given: Sequence[int], prompt: bool, row: int, config: Any, settings: Search):
        self.given, self.prompt, self.settings = list(given), prompt, settings
        self.end, self.never = config.sep_token_id, [config.cls_token_id, config.pad_token_id, config.mask_token_id]
        self.tokens: list[list[int]] = [[] for _ in range(settings.beam)]
        self.log_probs: list[list[float]] = [[] for _ in range(settings.beam)]
        self.totals = torch.zeros(settings.beam)
        self.finished: list[Hypothesis] = []
        if settings.sampling:
            generator = np.random.default_rng([settings.seed, row])
            self.uniforms = torch.from_numpy(generator.random((settings.max_length + 1, settings.beam)))
        else:
            self.totals[1:] = -torch.inf  # all hypotheses begin alike, so the search starts from one

    def advance(self, logits: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Continues the hypotheses by one token.

        Args:
            logits: (B, V), scores of their next tokens.
            step: number of tokens that are written.

        Returns:
            For each hypothesis that goes on the row that it continues and its new token, int64 (B,) twice; None if no
            more are needed.
        """
        beam, unscored_end = self.settings.beam, self.prompt and step == self.settings.max_length
        allowed = self.restricted((logits.float() / self.settings.temperature).log_softmax(-1), step)
        ranked = allowed.where(allowed.isneginf(), 0.0) if unscored_end else allowed
        rows, symbols = self.drawn(allowed, step) if self.settings.sampling else self._best(ranked)
        gained = allowed[rows, symbols]
        sums = self.totals.to(gained.device)[rows] + gained
        picked = list(zip(rows.tolist(), symbols.tolist(), gained.tolist(), sums.tolist(), strict=True))
        for row, symbol, log_prob, total in picked[:beam]:
            if symbol == self.end and total > -torch.inf and len(self.finished) < beam:
                self.finish(self.tokens[row], [*self.log_probs[row], log_prob], unscored_end)
        going = [i for i, (_, symbol, _, total) in enumerate(picked) if symbol != self.end and total > -torch.inf]
        going = going[:beam]
        if not going or len(self.finished) >= beam:
            return None
        alive = len(going)
        going += [going[0]] * (beam - alive)  # rows that never win
        self.totals = sums[going]
        self.totals[alive:] = -torch.inf
        self.tokens = [[*self.tokens[picked[i][0]], picked[i][1]] for i in going]
        self.log_probs = [[*self.log_probs[picked[i][0]], picked[i][2]] for i in going]
        return rows[going], symbols[going]

    def best(self) -> list[Hypothesis]:
        """The requested number of finished texts, best first."""
        if not self.finished:
            raise ValueError("the model's scores are not numbers; its parameters seem to be damaged")
        return sorted(self.finished, key=lambda one: -one.score)[: self.settings.nbest]

    def _best(self, allowed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows and tokens of the 2 x beam best continuations, best first."""
        joint = (self.totals.to(allowed.device).unsqueeze(1) + allowed).flatten()
        best = joint.topk(min(2 * self.settings.beam, len(joint))).indices
        return best // allowed.size(1), best % allowed.size(1)

    def drawn(self, allowed: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Each row, and the token that is drawn for it by inverting the cumulative distribution."""
        cumulative = trimmed(allowed, self.settings.top_k, self.settings.top_p).double().softmax(-1).cumsum(-1)
        sought = self.uniforms[step].to(allowed.device).unsqueeze(1) * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, sought, right=True).squeeze(1).clamp(max=allowed.size(1) - 1)
        return torch.arange(len(allowed), device=allowed.device), tokens

    def finish(self, tokens: list[int], log_probs: list[float], unscored_end: bool) -> None:
        """Keeps a finished text; ``unscored_end`` leaves the end symbol out of its score."""
        own = torch.tensor(log_probs)
        counted = own[:-1] if unscored_end else own
        penalty = PENALTIES[self.settings.length_penalty](len(counted), self.settings.lenpen)
        score = float(counted.double().sum()) / penalty
        self.finished.append(Hypothesis(torch.tensor(tokens).long(), own, score))

    def restricted(self, log_probs: torch.Tensor, step: int) -> torch.Tensor:
        """Log-probabilities (B, V), -inf for tokens that must not follow; at ``max_length`` all hypotheses end."""
        if step == self.settings.max_length:
            others = torch.arange(log_probs.size(1), device=log_probs.device) != self.end
            return log_probs.masked_fill(others, -torch.inf)
        allowed, size = log_probs.clone(), self.settings.no_repeat_ngram_size
        allowed[:, self.never] = -torch.inf
        for row, text in enumerate(self.tokens if size else ()):
            barred = repeating([*self.given, *text], size, {*self.settings.no_repeat_ngram_ignore, self.end})
            allowed[row, barred] = -torch.inf
        if step < self.settings.min_length:
            allowed[:, self.end] = -torch.inf
            if size:  # where nothing else is left, ending early is the lesser evil
                stuck = allowed.amax(1).isneginf()
                allowed[stuck, self.end] = log_probs[stuck, self.end]
        return allowed


def search(reader: Reader, texts: Sequence[Text], beam: int, max_length: int) -> list[list[Hypothesis]]:
    """The best hypotheses of each text, best first; a text that has enough of them leaves the batch."""
    going, last = list(texts), None
    for step in range(max_length + 1):
        continued = [text.advance(own, step) for text, own in zip(going, reader.step(last).split(beam), strict=True)]
        chosen = [(i * beam + one[0], one[1]) for i, one in enumerate(continued) if one is not None]
        going = [text for text, one in zip(going, continued, strict=True) if one is not None]
        if not going:
            break
        rows, last = (torch.cat(parts) for parts in zip(*chosen, strict=True))
        reader.select(rows)
    return [text.best() for text in texts]


def trimmed(log_probs: torch.Tensor, top_k: int, top_p: float) -> torch.Tensor:
    """-inf for all but the ``top_k`` best (0: all) and, of those, the fewest that hold ``top_p`` of their mass."""
    if 0 < top_k < log_probs.size(-1):
        log_probs = log_probs.masked_fill(log_probs < log_probs.topk(top_k).values[..., -1:], -torch.inf)
    if top_p < 1:
        ordered, order = log_probs.double().softmax(-1).sort(descending=True)
        before = ordered.cumsum(-1) - ordered
        cut = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= top_p)
        log_probs = log_probs.masked_fill(cut, -torch.inf)
    return log_probs


def repeating(text: Sequence[int], size: int, ignore: set[int]) -> list[int]:
    """Tokens that would repeat an n-gram of a text; none of ``ignore``, and none where the n-gram holds one of them."""
    tail = list(text[len(text) - size + 1 :])
    if len(text) < size or ignore.intersection(tail):
        return []
    ngrams = [list(text[i : i + size]) for i in range(len(text) - size + 1)]
    return [follower for *before, follower in ngrams if before == tail and follower not in ignore]
