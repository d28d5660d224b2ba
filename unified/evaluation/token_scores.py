"""Runs a model over the predictions of texts: the log-probability of every token, in float64.

Texts of like length share a batch, each example in a row of its own. Equal texts are read once, so that their scores
are exactly equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unified.data.batching import batches_of
from unified.data.collate import collate_flat
from unified.data.example import Examples
from unified.data.targets import TOKEN
from unified.errors import UnifiedError
from unified.evaluation.patterns import Sampling
from unified.evaluation.predictions import OBJECTIVE, TokenizedTexts
from unified.evaluation.scorings import Scoring, form_of, longest_text, require_scorable
from unified.inference.language_model import UnifiedLM
from unified.masks.steps import Integers

#: Tokens that a model reads at once; predictions whose logits are held at once, and summed in float64 at once.
TOKENS_AT_ONCE = 8192
_LOGITS_AT_ONCE = 512
_SUMMED_AT_ONCE = 32


@dataclass(frozen=True)
class TokenScores:
    """Scores of the tokens of a text.

    Attributes:
        log_probs: float64 (tokens,), in nats: of random scorings the weighted mean of the draws. 0 for the context, and
            for tokens that no draw of "diffusion" hides.
        greedy: bool (tokens,), whether no other symbol is more probable; of several predictions of a token, in all.
            True of tokens without a prediction.
    """

    log_probs: np.ndarray
    greedy: np.ndarray

    @property
    def total(self) -> float:
        """The score of the text."""
        return float(self.log_probs.sum())


@torch.no_grad()
def token_scores(
    lm: UnifiedLM,
    texts: Sequence[Integers],
    scoring: Scoring,
    *,
    given: Sequence[int] | None = None,
    sampling: Sampling = Sampling(),  # noqa: B008 (it is frozen)
    done: Callable[[int], Any] = lambda count: None,
) -> list[TokenScores]:
    """Score the tokens of texts.

    Args:
        texts: ids without special symbols, int64 (tokens,) each; see :meth:`UnifiedLM.encode`.
        given: how many first tokens of each text are its context, which is not scored; None for none.
        sampling: what "permutation" and "diffusion" draw.
        done: is told now and then how many texts more have been scored.

    Raises:
        UnifiedError: the model cannot score so, a text is too long for its table of positions, or a score is no number.
    """
    require_scorable(lm, scoring)
    firsts = [0] * len(texts) if given is None else list(given)
    limit = longest_text(lm, scoring)
    for number, text in enumerate(texts):
        if len(text) > limit:
            raise UnifiedError(
                f"texts[{number}] has {len(text):,} tokens, the model reads {limit:,} beside its special symbols"
            )
    alike: dict[tuple[bytes, int], list[int]] = {}
    for number, (text, first) in enumerate(zip(texts, firsts, strict=True)):
        alike.setdefault((np.asarray(text, dtype=np.int64).tobytes(), first), []).append(number)
    distinct = sorted(alike.values(), key=lambda numbers: len(texts[numbers[0]]))
    found: dict[int, TokenScores] = {}
    form = form_of(lm, scoring)
    lengths = [(len(texts[numbers[0]]), firsts[numbers[0]]) for numbers in distinct]
    costs = [scoring.cost(length, max(length - first, 0), sampling.draws) for length, first in lengths]
    for members in batches_of(np.arange(len(distinct)), np.array(costs, dtype=np.int64), None, TOKENS_AT_ONCE):
        portion = [distinct[member] for member in members]
        of_portion = TokenizedTexts.of(
            [texts[numbers[0]] for numbers in portion], [firsts[numbers[0]] for numbers in portion]
        )
        predictions = scoring.predictions(of_portion, form, sampling)
        log_probs, greedy = _predicted(lm, predictions.examples)
        if np.isnan(log_probs).any():
            raise UnifiedError("the model's scores are not numbers; its parameters seem to be damaged")
        weights = predictions.examples.targets[TOKEN].weights
        weighted = log_probs if weights is None else log_probs * weights
        total = of_portion.extents.total
        sums = np.bincount(predictions.tokens, weighted, total)
        never = np.bincount(predictions.tokens, ~greedy, total) == 0
        for numbers, start, stop in zip(
            portion, of_portion.extents.starts.tolist(), of_portion.extents.stops.tolist(), strict=True
        ):
            for number in numbers:
                found[number] = TokenScores(sums[start:stop], never[start:stop])
        done(sum(map(len, portion)))
    return [found[number] for number in range(len(texts))]


def _predicted(lm: UnifiedLM, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability, float64 (N,), of the label of each prediction, and bool (N,) whether none is more probable."""
    log_probs, greedy = [], []
    for part in _parts(examples):
        each = np.ones(len(part), dtype=np.int64)
        batch = collate_flat(part, each, None, (OBJECTIVE,), lm.special.pad).to(lm.device)
        targets = batch.targets[TOKEN]
        states = lm.model.hidden(batch, output_indices=targets.output_indices[:, 0])
        labels = targets.labels
        assert labels is not None
        for some, wanted in zip(states.split(_LOGITS_AT_ONCE), labels.split(_LOGITS_AT_ONCE), strict=True):
            own, best = label_log_probs(lm.model.logits(some), wanted)
            log_probs.append(own.cpu().numpy())
            greedy.append(best.cpu().numpy())
    return np.concatenate([np.zeros(0), *log_probs]), np.concatenate([np.zeros(0, dtype=bool), *greedy])


def label_log_probs(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-softmax of (N, V) logits at int64 (N,) labels, float64 (N,), and bool (N,) whether no logit is greater."""
    highest = logits.amax(-1, keepdim=True)
    wanted = logits.gather(-1, labels.unsqueeze(-1))
    parts = zip(logits.split(_SUMMED_AT_ONCE), highest.split(_SUMMED_AT_ONCE), strict=True)
    # Few rows stay in caches; only sums need float64: what is added is as exact as the logits.
    norms = torch.cat([(some - top).exp_().sum(-1, dtype=torch.float64) for some, top in parts]).log_()
    return (wanted.double() - highest).squeeze(-1) - norms, (wanted >= highest).squeeze(-1)


def _parts(examples: Examples) -> Iterator[Examples]:
    """Consecutive examples of about :data:`TOKENS_AT_ONCE` tokens with their padding."""
    start = 0
    while start < len(examples):
        widths = np.maximum.accumulate(examples.lengths[start:])
        sizes = widths * np.arange(1, len(widths) + 1)
        count = max(1, int(sizes.searchsorted(TOKENS_AT_ONCE, side="right")))
        whole = count == len(examples)
        yield examples if whole else Examples.joined([examples], np.arange(start, start + count))
        start += count
