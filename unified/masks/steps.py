"""The steps of many sequences at once: what every builder, packing and every query stream are made of.

Each function takes what describes n sequences, such as their lengths, int64 (n,), and returns :class:`Steps`. The
builders for one sequence (:mod:`unified.masks.builders`) and the objectives are its callers; nothing else writes steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from unified.masks.constants import GIVEN, HIDDEN_START, HIDDEN_STOP, NOWHERE

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Steps:
    """Attention masks of n sequences that stand one after another.

    A query sees a key of its own sequence while ``key_start <= query_step < key_stop``.

    Attributes:
        query_step: int64 (all queries,).
        key_start, key_stop: int64 (all keys,).
        ends: int64 (n,), the length of each sequence's time axis: its queries look at steps 0 to ``ends - 1``.
    """

    query_step: Integers
    key_start: Integers
    key_stop: Integers
    ends: Integers

    @classmethod
    def joined(cls, several: Sequence[Steps]) -> Steps:
        """The sequences of several ``Steps``, one after another."""
        if not several:
            none = np.zeros(0, dtype=np.int64)
            return cls(none, none, none, none)
        vectors = zip(*((one.query_step, one.key_start, one.key_stop, one.ends) for one in several), strict=True)
        return cls(*map(np.concatenate, vectors))

    def reordered(self, tokens: Integers, sequences: Integers) -> Steps:
        """Puts the sequences in another order; tokens are queries and keys at once.

        Args:
            tokens: int64 (all tokens,), where each token of the result stands now.
            sequences: int64 (n,), which sequence each one of the result is now.
        """
        return Steps(self.query_step[tokens], self.key_start[tokens], self.key_stop[tokens], self.ends[sequences])

    def split(self, lengths: Integers) -> list[Steps]:
        """Each sequence by itself, as views; ``lengths``, int64 (n,), of tokens that are queries and keys at once."""
        edges = [0, *lengths.cumsum().tolist()]
        return [
            Steps(self.query_step[a:b], self.key_start[a:b], self.key_stop[a:b], self.ends[i : i + 1])
            for i, (a, b) in enumerate(pairwise(edges))
        ]

    def shifted(self, queries: Integers, keys: Integers, offsets: Integers) -> Steps:
        """Each sequence moved along the axis, its intervals cut off where its own part of the axis ends.

        Sequences whose parts do not overlap do not see each other. What is hidden stays hidden.

        Args:
            queries, keys: int64 (n,), how many each sequence has.
            offsets: int64 (n,), the step at which its part begins.
        """
        before, ends = offsets.repeat(keys), self.ends.repeat(keys)
        # Cut off first and moved then: an interval may reach to the limits of int64.
        start = np.minimum(np.maximum(self.key_start, GIVEN), ends) + before  # np.clip takes longer
        stop = np.minimum(self.key_stop, ends) + before
        hidden, nowhere = start >= stop, self.query_step == NOWHERE
        if self.key_start is self.query_step and not hidden.any():
            return Steps(start, start, stop, self.ends)  # what looks when it appears still does
        step = self.query_step + (before if queries is keys else offsets.repeat(queries))
        if hidden.any():
            start[hidden], stop[hidden] = HIDDEN_START, HIDDEN_STOP
        if nowhere.any():
            step[nowhere] = NOWHERE
        return Steps(step, start, stop, self.ends)


def bidirectional(lengths: Integers) -> Steps:
    """Everything is given."""
    step = np.full(lengths.sum(), GIVEN)
    return Steps(step, step, np.ones_like(step), np.ones_like(lengths))


def left_to_right(lengths: Integers) -> Steps:
    """A token appears at its index, counted from 1."""
    return _lasting(1 + _within(lengths), lengths, lengths + 1)


def right_to_left(lengths: Integers) -> Steps:
    """A token appears at its index, counted from the end."""
    return _lasting(lengths.repeat(lengths) - _within(lengths), lengths, lengths + 1)


def seq2seq(sources: Integers, targets: Integers) -> Steps:
    """The source is given; target tokens appear at 1, 2 and so on."""
    lengths = sources + targets
    return _lasting(np.maximum(1 + _within(lengths) - sources.repeat(lengths), GIVEN), lengths, targets + 1)


def permutation(steps: Integers, lengths: Integers) -> Steps:
    """Each token appears at its step, int64 (all tokens,), GIVEN (0) or later."""
    return _lasting(steps, lengths, 1 + _maxima(steps, lengths))


def block_causal(lengths: Integers, size: int) -> Steps:
    """Blocks of ``size`` tokens appear one after another."""
    return _lasting(1 + _within(lengths) // size, lengths, 1 + -(-lengths // size))


def sliding_window(lengths: Integers, left: int | None, right: int | None) -> Steps:
    """A query looks from its index at ``left`` keys before and ``right`` keys behind it; None for all of them."""
    ends = lengths + 1
    step, end = 1 + _within(lengths), ends.repeat(lengths)
    start = np.full_like(step, GIVEN) if right is None else np.maximum(step - right, GIVEN)
    stop = end if left is None else np.minimum(step + left + 1, end)
    return Steps(step, start, stop, ends)


def block_diffusion(lengths: Integers, size: int) -> Steps:
    """Each text twice, noised and then clean, in blocks of ``size``: noised block b at step 2b + 1, clean at 2b + 2.

    A noised block disappears before the clean one appears, so that none but itself sees it (BD3LM).
    """
    halves = np.stack([lengths, lengths], axis=1).ravel()
    block, clean = _within(halves) // size, np.tile([0, 1], len(lengths)).repeat(halves)
    ends = 2 * -(-lengths // size) + 1
    step = 2 * block + 1 + clean
    return Steps(step, step, np.where(clean, ends.repeat(2 * lengths), step + 1), ends)


def pseudo_masked(steps: Integers, lengths: Integers) -> Steps:
    """Corrupted texts and, behind each, for every step the [P] copies and then the originals of its tokens (UniLM v2).

    Args:
        steps: int64 (all tokens of the texts,), GIVEN (0) where a token is not predicted, else the step at which its
            span is: the originals of span s appear at 2s + 1, its [P] copies at 2s alone.
        lengths: int64 (n,), of the texts; a sequence is longer by two for every predicted token.
    """
    owners = np.arange(len(lengths)).repeat(lengths)
    predicted = np.flatnonzero(steps > GIVEN)
    twice = np.concatenate([predicted, predicted])
    of_copy = 2 * steps[twice] + np.repeat([0, 1], len(predicted))
    step = np.concatenate([np.full(len(steps), GIVEN), of_copy])
    owner = np.concatenate([owners, owners[twice]])
    order = np.lexsort((step, owner))  # stable: tokens of one step keep the order of the text
    step, owner = step[order], owner[order]
    longer = lengths + 2 * np.bincount(owners[predicted], minlength=len(lengths))
    ends = 2 + 2 * _maxima(steps, lengths)
    pseudo = (step > GIVEN) & (step % 2 == 0)
    return Steps(step, step, np.where(pseudo, step + 1, ends.repeat(longer)), ends)


def masked_copies(steps: Integers, copied: Integers, lengths: Integers) -> Steps:
    """Texts that appear in an order and, behind each, [MASK] copies of some of its tokens, in the order of the text.

    A copy sees what is given and the tokens of earlier steps, itself and the copies of its own step; no token of the
    text sees a copy. So a text in which every token is asked for by a [MASK] that sees what precedes it takes one pass.

    Args:
        steps: int64 (all tokens of the texts,), GIVEN (0), or the step from 1 on at which each token appears.
        copied: int64 (copies,), increasing indices into ``steps`` of the tokens that have a copy; none of them given.
        lengths: int64 (n,), of the texts; a sequence is longer by the number of its copies.
    """
    owners = np.arange(len(lengths)).repeat(lengths)
    step = np.concatenate([np.where(steps > GIVEN, 2 * steps + 1, GIVEN), 2 * steps[copied]])
    copy = np.arange(len(step)) >= len(steps)
    owner = np.concatenate([owners, owners[copied]])
    order = np.argsort(owner, kind="stable")
    step, copy = step[order], copy[order]
    longer = lengths + np.bincount(owners[copied], minlength=len(lengths))
    ends = 2 + 2 * _maxima(steps, lengths)
    return Steps(step, step, np.where(copy, step + 1, ends.repeat(longer)), ends)


def tree(parents: Integers, lengths: Integers) -> Steps:
    """A token sees itself and its ancestors: it appears as a depth-first walk enters it, and disappears as that leaves.

    Args:
        parents: int64 (all tokens,), each token's parent within its sequence, -1 for roots.

    Raises:
        ValueError: a token is its own ancestor.
    """
    entry, leaving = np.zeros_like(parents), np.zeros_like(parents)
    starts = np.cumsum(lengths) - lengths
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        _walk(parents[start : start + length].tolist(), entry[start : start + length], leaving[start : start + length])
    return Steps(entry, entry, leaving, lengths + 1)


def before(starts: Integers) -> Integers:
    """The step of queries that predict tokens which appear at ``starts``: the one before (XLNet's query stream)."""
    return starts - 1


def _lasting(step: Integers, lengths: Integers, ends: Integers) -> Steps:
    """Tokens that look at the step at which they appear, and never disappear."""
    return Steps(step, step, ends.repeat(lengths), ends)


def _within(lengths: Integers) -> Integers:
    """0, 1, … in each sequence."""
    if len(lengths) == 1:
        return np.arange(lengths[0])
    within: Integers = np.arange(int(lengths.sum())) - (np.cumsum(lengths) - lengths).repeat(lengths)
    return within


def _maxima(values: Integers, lengths: Integers) -> Integers:
    """The largest value of each sequence, at least 0, int64 (n,)."""
    largest = np.zeros(len(lengths), dtype=np.int64)
    np.maximum.at(largest, np.arange(len(lengths)).repeat(lengths), values)
    return largest


def _walk(parents: list[int], entry: Integers, leaving: Integers) -> None:
    """Number one sequence's tokens as a depth-first walk enters them, from 1, and say when it leaves them."""
    children: dict[int, list[int]] = {}
    for token, parent in enumerate(parents):
        children.setdefault(parent, []).append(token)
    step, open_tokens = 1, [(root, False) for root in reversed(children.get(-1, []))]
    while open_tokens:
        token, is_done = open_tokens.pop()
        if is_done:
            leaving[token] = step
            continue
        entry[token] = step
        step += 1
        open_tokens.append((token, True))
        open_tokens += [(child, False) for child in reversed(children.get(token, []))]
    if step <= len(parents):
        circle = int(np.flatnonzero(entry == 0)[0])
        raise ValueError(f"parents must lead to a root (-1), but token {circle} is below itself or below such a token")
