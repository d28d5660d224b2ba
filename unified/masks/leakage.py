"""Tells which predictions can reach their own labels through any number of layers, and through which tokens.

After several layers the state of a query depends on its own token (the residual stream carries it) and on whatever it
reaches along visible keys: it sees a key, the query of that token sees further keys, and so on.

Letters: T queries, S keys, N predictions; C classes of queries that see the same keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from unified.masks.vectors import MaskVectors, require_mask

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Integers = Sequence[int] | npt.NDArray[np.integer] | torch.Tensor

#: Chains of more keys are cut where a leak is printed.
_SPELLED_OUT = 6


@dataclass(frozen=True)
class Leak:
    """A prediction that can reach its own label.

    Attributes:
        query: index of the query whose state is used for the prediction.
        label_key: index of the key whose input token is the label.
        through: keys that pass the label on, in the order in which information is asked for: the query sees the first,
            the token of the first sees the second, the token of the last sees ``label_key``. Empty if the query sees
            ``label_key`` itself, or if that is the query's own token. No chain is shorter.
    """

    query: int
    label_key: int
    through: tuple[int, ...]

    def __str__(self) -> str:
        if not self.through:
            return f"query {self.query} is shown its own label, key {self.label_key}, directly"
        seen = [f"sees key {key}" for key in (*self.through, self.label_key)]
        rest = ""
        if len(seen) > _SPELLED_OUT:
            rest = f", and so on, {len(seen) - 3} more steps to key {self.label_key}"
            seen = seen[:3]
        return f"query {self.query} {', which '.join(seen)}{rest}, its own label"


def is_transitive(mask: MaskVectors) -> bool:
    """Tells whether stacked layers show every query exactly the keys that one layer shows it.

    Every token is then shown no longer than everything it has read. Self-attention masks of the six papers are
    transitive, windows are not. O((T + S) log (T + S)); with ``last_key``, ``exclude_self`` or ``window`` by the
    definition, in O(T S) memory.

    Raises:
        ValueError: it is no mask, or a batch.
    """
    require_mask("is_transitive", mask)
    if mask.batched:
        raise ValueError(f"is_transitive takes the mask of one row, got a batch of {len(mask.query_step)}")
    if mask.only_steps:
        return _is_clean(*map(_array, (mask.query_step, mask.key_start, mask.key_stop, mask.own_keys)))
    visible, own = mask.dense(), mask.own_keys
    tokens = own >= 0
    by_tokens = torch.zeros(mask.key_length, mask.key_length)
    by_tokens[own[tokens]] = visible[tokens].float()
    return not bool(((visible.float() @ by_tokens > 0) & ~visible).any())


def _is_clean(query_step: IntArray, key_start: IntArray, key_stop: IntArray, query_key: IntArray) -> bool:
    return passing_on(query_step, key_start, key_stop, query_key).size == 0


def passing_on(query_step: IntArray, key_start: IntArray, key_stop: IntArray, query_key: IntArray) -> IntArray:
    """Finds the queries whose own token is shown to a query that may not see everything they have seen.

    There is none exactly when every token is shown no longer than everything it has read: for a query i with own key j,
    the interval of j lies within the interval of every key that i sees. Only steps at which some query looks count.
    O((T + S) log (T + S)).

    Args:
        query_step: int64 (T,).
        key_start, key_stop: int64 (S,); a key is visible to steps ``key_start <= step < key_stop``.
        query_key: int64 (T,), index of each query's own key, -1 if it has none: such a query reads, but passes nothing
            on. A key that is no query's own holds its input alone.

    Returns:
        int64, the indices of these queries, ascending; empty if visibility is transitive.
    """
    steps, query_index = np.unique(query_step, return_inverse=True)
    query_index = query_index.reshape(-1)
    first = np.searchsorted(steps, key_start)
    end = np.searchsorted(steps, key_stop)
    read = first < end  # some query sees the key
    latest_first = _maximum_of_intervals(first[read], end[read], first[read], len(steps), 0)
    earliest_end = -_maximum_of_intervals(first[read], end[read], -end[read], len(steps), -len(steps))
    has_key = np.flatnonzero(query_key >= 0)
    query = has_key[read[query_key[has_key]]]
    key, index = query_key[query], query_index[query]
    return query[(first[key] < latest_first[index]) | (end[key] > earliest_end[index])]


def _maximum_of_intervals(first: IntArray, end: IntArray, value: IntArray, count: int, least: int) -> IntArray:
    """Returns for each index 0 .. count - 1 the maximum value of the intervals [first, end) around it, or ``least``.

    Each interval is two overlapping ones whose length is a power of two; lengths are halved until they are 1.
    """
    if not count:
        return np.zeros(0, dtype=np.int64)
    power = np.frexp(end - first)[1] - 1  # floor of log2
    maximum = np.full(count, least, dtype=np.int64)  # of the intervals of length 2 ** level that begin at each index
    for level in range(int(power.max(initial=0)), -1, -1):
        of_level = power == level
        np.maximum.at(maximum, first[of_level], value[of_level])
        np.maximum.at(maximum, end[of_level] - 2**level, value[of_level])
        half = 2**level // 2
        if half:
            halves = maximum.copy()
            np.maximum(halves[half:], maximum[:-half], out=halves[half:])
            maximum = halves
    return maximum


def leaks(mask: MaskVectors, read: Integers, label_key: Integers) -> list[Leak]:
    """Finds the predictions that can reach their own label through any number of layers.

    Works for every mask of one row, transitive or not, with ``exclude_self``, ``last_key`` and ``window``. The residual
    stream of a query always holds its own token, even if the query does not attend to itself: it leaks if that token is
    its label.

    Cost: O((T + S) log (T + S) + N) if visibility is transitive (:func:`is_transitive`) and there is neither
    ``last_key`` nor ``window``. Otherwise O(C S) memory and up to O(C ** 3 / 64) operations, about a second for 2,000
    tokens; and up to O(C S) for the chain of each leak. C is the number of distinct steps, each with its last key and
    position where the mask has them.

    Args:
        mask: mask of one row.
        read: integers (N,), queries whose states are used for a prediction; a query may occur several times.
        label_key: integers (N,), the key whose input is the token to predict; -1 if the input holds it nowhere, as
            when it is masked, or holds it on purpose (BERT's kept tokens): such a prediction is not judged. Where
            several keys hold the token, list the prediction once for each.

    Returns:
        One Leak for each prediction that leaks, in the order of ``read``, with a shortest chain of tokens.

    Raises:
        ValueError: ``mask`` is no mask, or a batch; ``read`` and ``label_key`` differ in length, or an index lies
            outside the mask.
    """
    require_mask("leaks", mask)
    if mask.query_step.dim() != 1:
        raise ValueError(f"leaks takes the mask of one row, got a batch of shape {tuple(mask.query_step.shape)}")
    view = _View(mask)
    queries = _indices("read", read, 0, len(view.query_step), "queries")
    labels = _indices("label_key", label_key, -1, len(view.key_start), "keys")
    if queries.shape != labels.shape:
        raise ValueError(f"read and label_key must have equal lengths, got {len(queries)} and {len(labels)}")
    judged = labels >= 0
    queries, labels = queries[judged], labels[judged]
    direct = (view.query_key[queries] == labels) | view.sees(queries, labels)
    leaking = direct
    if not direct.all() and not view.is_transitive():
        leaking = direct | _reached(view, queries, labels)
    return [
        Leak(query, label, () if at_once else _shortest_chain(view, query, label))
        for query, label, at_once in zip(
            queries[leaking].tolist(), labels[leaking].tolist(), direct[leaking].tolist(), strict=True
        )
    ]


class _View:
    """The mask in numpy, and its queries by classes: queries of one class see the same keys.

    ``exclude_self`` is left out on purpose: a query holds its own token anyway, so a way through it leads nowhere new.
    """

    def __init__(self, mask: MaskVectors) -> None:
        self.query_step = _array(mask.query_step)
        self.key_start, self.key_stop = _array(mask.key_start), _array(mask.key_stop)
        self.query_key = _array(mask.own_keys)
        self.last_key = None if mask.last_key is None else _array(mask.last_key)
        self.window = mask.window
        self._visible: BoolArray | None = None
        rules = [self.query_step] if self.last_key is None else [self.query_step, self.last_key]
        if mask.window is not None:
            self.query_position, self.key_position = map(_array, mask.window_positions)
            rules.append(self.query_position)
        _, first, number = np.unique(np.stack(rules), axis=1, return_index=True, return_inverse=True)
        self.class_of_query = number.reshape(-1)  # (T,)
        self.query_of_class = first  # (C,), one of each
        owner = np.flatnonzero(self.query_key >= 0)
        self.owned_key, self.owner_class = self.query_key[owner], self.class_of_query[owner]  # pairs

    def sees(self, query: IntArray, key: IntArray) -> BoolArray:
        """Tells of queries and keys, broadcast against each other, who sees whom."""
        step = self.query_step[query]
        visible = (self.key_start[key] <= step) & (step < self.key_stop[key])
        if self.last_key is not None:
            visible = visible & (key <= self.last_key[query])
        if self.window is not None:
            visible = visible & (np.abs(self.query_position[query] - self.key_position[key]) <= self.window)
        return visible

    def is_transitive(self) -> bool:
        """True only if visibility is transitive; a last key and a window are not looked into."""
        only_steps = self.last_key is None and self.window is None
        return only_steps and _is_clean(self.query_step, self.key_start, self.key_stop, self.query_key)

    @property
    def visible(self) -> BoolArray:
        """bool (C, S)."""
        if self._visible is None:
            self._visible = self.sees(self.query_of_class[:, None], np.arange(len(self.key_start)))
        return self._visible


def _reached(view: _View, query: IntArray, key: IntArray) -> BoolArray:
    """Tells for each of N pairs whether the query reaches the key in any number of layers.

    Warshall's algorithm: whoever reaches class c reaches all that c reaches. Rows of bits, eight to a byte.
    """
    count = len(view.query_of_class)
    reaches = np.eye(count, dtype=np.bool_)
    for pair in range(len(view.owned_key)):
        reaches[:, view.owner_class[pair]] |= view.visible[:, view.owned_key[pair]]
    bits = np.packbits(reaches, axis=1)  # (C, C / 8)
    for middle in range(count):
        byte, bit = divmod(middle, 8)
        asking = (bits[:, byte] >> (7 - bit)) & 1 == 1
        bits[asking] |= bits[middle]
    keys, of_key = np.unique(key, return_inverse=True)
    seen_by = np.packbits(view.visible[:, keys].T, axis=1)  # (distinct keys, C / 8)
    found = np.zeros(len(query), dtype=np.bool_)
    for pair, (asking_class, number) in enumerate(zip(view.class_of_query[query], of_key.reshape(-1), strict=True)):
        found[pair] = (bits[asking_class] & seen_by[number]).any()
    return found


def _shortest_chain(view: _View, query: int, label: int) -> tuple[int, ...]:
    """Searches breadth-first from a query to a key that it reaches; returns the keys in between."""
    start = int(view.class_of_query[query])
    reader_of = {}  # class -> the class that sees its key, and that key
    found = np.zeros(len(view.query_of_class), dtype=np.bool_)
    found[start] = True
    layer = np.array([start])
    while not view.visible[layer, label].any():
        readers = view.visible[layer]  # (classes of this layer, S)
        new = np.flatnonzero(readers.any(axis=0)[view.owned_key] & ~found[view.owner_class])
        classes, first = np.unique(view.owner_class[new], return_index=True)
        keys = view.owned_key[new[first]]
        for owner, key, reader in zip(classes, keys, layer[readers[:, keys].argmax(axis=0)], strict=True):
            reader_of[int(owner)] = int(reader), int(key)
        found[classes] = True
        layer = classes
    last = int(layer[view.visible[layer, label].argmax()])
    chain: list[int] = []
    while last != start:
        last, key = reader_of[last]
        chain.append(key)
    return tuple(reversed(chain))


def _array(values: torch.Tensor) -> IntArray:
    return values.detach().cpu().numpy().astype(np.int64)


def _indices(name: str, values: Integers, least: int, count: int, what: str) -> IntArray:
    array = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    if array.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be a flat sequence of integers, got {array.dtype} {array.shape}")
    outside = array[(array < least) | (array >= count)]
    if outside.size:
        also = "" if least == 0 else ", or be -1"
        raise ValueError(f"{name} must lie within the {count} {what} of the mask{also}, got {outside[0]}")
    return array.astype(np.int64)
