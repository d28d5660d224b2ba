"""Finds predictions of an objective that can read their own label somewhere in the row, by recoding the texts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from unified import masks
from unified.data.example import Example, Examples
from unified.data.randomness import Draws
from unified.data.targets import BOUNDARY, TOKEN, ExampleTargets
from unified.data.texts import Texts
from unified.masks import AttentionMask
from unified.objectives.contract import Objective

#: Heads whose labels are tokens of the text.
_HEADS = (TOKEN, BOUNDARY)
#: Two tokens are equal by chance in all recodings with a probability of at most 10 to the power of minus this.
_CERTAINTY = 16
#: So many examples must show every label at its index before an objective counts as one that hides nothing.
_TELLING_EXAMPLES = 6


def leak_of_copies(objective: Objective, texts: Texts, draws: Draws) -> str | None:
    """The way in which a prediction of an objective can read its own label; None where none can.

    The objective makes examples of the same texts several times, with equal random numbers; each time every token of
    the texts is another one, drawn by itself. An input token that equals a label every time is a copy of the token
    that is predicted, wherever it stands. :func:`unified.masks.leaks` says which predictions can read such a copy
    through any number of layers.

    Not judged are: the token itself at the index that predicts it (BERT keeps a tenth of the hidden tokens), unless no
    example hides any; what is given, where the objective declares ``shows_labels``; and an objective that hides or
    orders tokens by what they are, since its examples then differ by more than their tokens.

    Returns:
        A sentence without its subject that names the prediction, the tokens on the way and the index of the label.
    """
    made = [objective.examples(texts_of_other_tokens(texts, seed), draws) for seed in range(_recodings(texts))]
    if not all(_equal_but_for_tokens(made[0], other) for other in made[1:]):
        return None
    shown: list[bool] = []
    for runs in zip(*(examples.split() for examples in made), strict=True):
        copies = _Copies(runs)
        problem = copies.leak(objective.shows_labels)
        if problem:
            return problem
        shown += copies.shown
    if len(shown) >= _TELLING_EXAMPLES and all(shown) and not objective.shows_labels:
        return "leaks: every token that it predicts stands unhidden at the index that predicts it"
    return None


def texts_of_other_tokens(texts: Texts, seed: int) -> Texts:
    """Replaces every token by an independently drawn ordinary one; tokens drawn from the corpus are replaced too."""
    start, stop = texts.special.ordinary_start, texts.special.ordinary_stop
    tokens = np.random.default_rng(seed).integers(start, stop, len(texts.tokens))

    def sampled(counts: np.ndarray, draws: Draws) -> np.ndarray:
        return start + draws.integers("other tokens", stop - start, counts)

    return replace(texts, tokens=tokens, sampler=sampled)


def _recodings(texts: Texts) -> int:
    ordinary = texts.special.ordinary_stop - texts.special.ordinary_start
    return 2 + math.ceil(_CERTAINTY / math.log10(max(ordinary, 2)))


def _equal_but_for_tokens(one: Examples, other: Examples) -> bool:
    if not np.array_equal(one.lengths, other.lengths) or one.targets.keys() != other.targets.keys():
        return False
    pairs = [(one.targets[head].output_indices, other.targets[head].output_indices) for head in one.targets]
    pairs += [
        (getattr(one.steps, name), getattr(other.steps, name)) for name in ("query_step", "key_start", "key_stop")
    ]
    return all(np.array_equal(*pair) for pair in pairs)


class _Copies:
    """Input tokens of one example that are copies of its labels.

    Args:
        runs: R examples of one text, recoded.

    Attributes:
        shown: whether every token that it predicts stands at the index that predicts it; empty where it predicts none.
    """

    def __init__(self, runs: tuple[Example, ...]):
        self._example = runs[0]
        self._heads = [head for head in _HEADS if head in runs[0].targets]
        width = len(runs[0].tokens)
        labels = [np.stack([_labels(run.targets[head]) for run in runs]) for head in self._heads]  # (R, N) each
        every = np.concatenate([np.stack([run.tokens for run in runs]), *labels], axis=1)  # (R, T + all N)
        codes = np.unique(every, axis=1, return_inverse=True)[1].ravel()
        codes[(every == every[:1]).all(0)] = -1  # symbols that are the same in every run, such as sentinels
        self._of_keys, *of_labels = np.split(codes, np.cumsum([width, *(own.shape[1] for own in labels)])[:-1])
        self._of_labels = dict(zip(self._heads, of_labels, strict=True))
        self._kept = np.zeros(width, dtype=bool)
        self.shown: list[bool] = []
        if TOKEN in self._of_labels and not self._example.query_stream:
            indices, own = self._example.targets[TOKEN].output_indices[:, 0], self._of_labels[TOKEN]
            at_index = (self._of_keys[indices] == own) & (own >= 0)
            self._kept[indices[at_index]] = True
            self.shown = [bool(at_index.all())] if len(indices) else []

    def leak(self, given_may_show: bool) -> str | None:
        """A path by which a prediction can read its own label; None where none can."""
        judged = ~self._kept
        if given_may_show:
            judged &= ~self._example.mask.given_keys().numpy()
        for head in self._heads:
            targets, own = self._example.targets[head], self._of_labels[head]
            prediction, key = np.nonzero((own[:, None] == self._of_keys) & (own >= 0)[:, None] & judged)
            problem = leak(self._example, targets, prediction, key)
            if problem:
                return problem
        return None


def _labels(targets: ExampleTargets) -> np.ndarray:
    assert targets.labels is not None, "examples without labels have been refused"
    return targets.labels


def leak(example: Example, targets: ExampleTargets, prediction: np.ndarray, key: np.ndarray) -> str | None:
    """A path by which a prediction can read a key that holds its label, through several layers; None where none can.

    Args:
        targets: of a head that reads tokens, or, for the head ``token`` of an example with a query stream, its queries.
        prediction, key: int64 (P,), pairs of a prediction's number and a key that holds its label.
    """
    if example.query_stream:
        streamed = example.targets[TOKEN].output_indices[:, 0]
        mask, read = _both_streams(example.mask, streamed), len(example.tokens) + prediction
        predicts = dict(zip(read.tolist(), streamed[prediction].tolist(), strict=True))
    else:
        indices = targets.output_indices[prediction]  # (P, k)
        mask, read, key = example.mask, indices.ravel(), key.repeat(indices.shape[1])
        predicts = {}
    found = masks.leaks(mask, read, key)
    if not found:
        return None
    through = "".join(f" sees index {step}, which" for step in found[0].through)
    index = predicts.get(found[0].query, found[0].query)
    return f"leaks: the prediction at index {index}{through} sees its own label at index {found[0].label_key}"


def _both_streams(content: AttentionMask, indices: np.ndarray) -> AttentionMask:
    """Queries of the content stream, and behind them those of a query stream, over the same keys."""
    stream = content.query_stream(indices)
    return AttentionMask.unchecked(
        query_step=torch.cat([content.query_step, stream.query_step]),
        key_start=content.key_start,
        key_stop=content.key_stop,
        document_ends=content.document_ends,
        query_key=torch.cat([content.own_keys, stream.own_keys]),
    )
