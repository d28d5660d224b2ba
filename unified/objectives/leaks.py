"""Finds predictions of an objective that can read their own label somewhere in the row, by recoding the texts."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
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
from unified.runtime.announcements import log_once

logger = logging.getLogger(__name__)

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
    orders tokens by what they are, since its examples then differ by more than their tokens, which is logged once.

    Returns:
        A sentence without its subject that names the prediction, the tokens on the way and the index of the label.
    """
    count = _recodings(texts)
    made = objective.examples(recoded(texts, count), draws.repeated(count))
    if not _equal_but_for_tokens(made, count):
        log_once(logger, f"leaks of objective {objective.name} are not judged: its examples depend on what tokens are")
        return None
    shown: list[bool] = []
    for copies in _copies_of_each(made, count):
        problem = copies.leak(objective.shows_labels)
        if problem:
            return problem
        shown += copies.shown
    if len(shown) >= _TELLING_EXAMPLES and all(shown) and not objective.shows_labels:
        return "leaks: every token that it predicts stands unhidden at the index that predicts it"
    return None


def recoded(texts: Texts, count: int) -> Texts:
    """The texts ``count`` times, with other tokens each time: ordinary ones, each drawn by itself.

    Tokens that an objective draws from the corpus are drawn from the ordinary ones, too.
    """
    start, stop = texts.special.ordinary_start, texts.special.ordinary_stop
    tokens = np.random.default_rng(0).integers(start, stop, count * len(texts.tokens))

    def sampled(counts: np.ndarray, draws: Draws) -> np.ndarray:
        return start + draws.integers("other tokens", stop - start, counts)

    return replace(texts.repeated(count), tokens=tokens, sampler=sampled)


def _recodings(texts: Texts) -> int:
    ordinary = texts.special.ordinary_stop - texts.special.ordinary_start
    return 2 + math.ceil(_CERTAINTY / math.log10(max(ordinary, 2)))


def _equal_but_for_tokens(made: Examples, count: int) -> bool:
    """Whether all recodings have examples of equal lengths, masks and predicted indices."""
    arrays = [made.lengths, *made.target_counts.values()]
    arrays += [targets.output_indices for targets in made.targets.values()]
    arrays += [made.steps.query_step, made.steps.key_start, made.steps.key_stop]
    return all(len(array) % count == 0 and _all_equal(array.reshape(count, -1)) for array in arrays)


def _all_equal(rows: np.ndarray) -> bool:
    return bool((rows == rows[:1]).all())


def _copies_of_each(made: Examples, count: int) -> Iterator[_Copies]:
    """Yields what is a copy of a label in the example of each text, which was recoded ``count`` times."""
    first = Examples.joined([made], np.arange(len(made) // count))
    heads = [head for head in _HEADS if head in made.targets]
    sizes = [len(first.tokens), *(len(first.targets[head]) for head in heads)]
    symbols = [made.tokens, *(_labels(made.targets[head]) for head in heads)]
    every = np.concatenate([array.reshape(count, -1) for array in symbols], axis=1)  # (R, all tokens + all labels)
    codes = np.unique(every, axis=1, return_inverse=True)[1].ravel()
    codes[(every == every[:1]).all(0)] = -1  # symbols that are the same in every run, such as sentinels
    keys, *labels = np.split(codes, np.cumsum(sizes)[:-1])
    each = {head: _split(own, first.target_counts[head]) for head, own in zip(heads, labels, strict=True)}
    for number, (example, of_keys) in enumerate(zip(first.split(), _split(keys, first.lengths), strict=True)):
        yield _Copies(example, of_keys, {head: own[number] for head, own in each.items()})


def _split(values: np.ndarray, counts: np.ndarray) -> list[np.ndarray]:
    return np.split(values, np.cumsum(counts)[:-1])


class _Copies:
    """Input tokens of one example that are copies of its labels.

    Args:
        keys, labels: int64, a code of each token, and by head of each label, which two of them share that are equal in
            all recodings; -1 for what is the same symbol in all of them.

    Attributes:
        shown: whether every token that it predicts stands at the index that predicts it; empty where it predicts none.
    """

    def __init__(self, example: Example, keys: np.ndarray, labels: Mapping[str, np.ndarray]):
        self._example, self._of_keys, self._of_labels = example, keys, labels
        self._kept = np.zeros(len(keys), dtype=bool)
        self.shown: list[bool] = []
        if TOKEN in labels and not example.query_stream:
            indices, own = example.targets[TOKEN].output_indices[:, 0], labels[TOKEN]
            at_index = (keys[indices] == own) & (own >= 0)
            self._kept[indices[at_index]] = True
            self.shown = [bool(at_index.all())] if len(indices) else []

    def leak(self, given_may_show: bool) -> str | None:
        """A path by which a prediction can read its own label; None where none can."""
        judged = ~self._kept
        if given_may_show:
            judged &= ~self._example.mask.given_keys().numpy()
        for head, own in self._of_labels.items():
            targets = self._example.targets[head]
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
