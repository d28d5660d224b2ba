"""Sequences after an objective (:class:`Example`, :class:`Examples`, numpy) and packed rows (:class:`Batch`, torch)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import torch

from unified.data.extents import Extents, runs
from unified.masks import NO_KEY, AttentionMask
from unified.masks.builders import of_steps
from unified.masks.packing import steps_of
from unified.masks.steps import Steps

#: ``Example.is_next`` where the objective predicts no next sentence.
NO_PAIR_LABEL = -1
#: ``Example.sentences`` where the objective classifies none.
NO_SENTENCES = np.empty((0, 2), dtype=np.int64)
#: ``Example.boundaries`` where nothing is predicted from them.
NO_BOUNDARIES = np.empty((0, 4), dtype=np.int64)


@dataclass(frozen=True)
class Example:
    """One sequence of T tokens as an objective leaves it; all arrays int64.

    Attributes:
        group: name of the objective, under which its loss is summed and logged.
        tokens: (T,) input ids, special symbols and corruption included.
        positions: (T,) position ids.
        token_types: (T,) token-type ids (UniLM's also name the objective).
        mask: who sees whom, a row of T tokens that are query and key at once, see :mod:`unified.masks`.
        predicted: (N,) increasing places of ``tokens`` whose original token is predicted.
        labels: (N,) the tokens to predict there.
        is_next: 1 where the second segment follows the first, 0 where it is random, -1 where nobody asks.
        pair_place: the place from which ``is_next`` is predicted.
        boundaries: (M, 4) tokens that are predicted from the boundaries of their span: place before the span, place
            behind it, distance (0, 1, …) from its first token, and the token itself.
        sentences: (K, 2) places of the first tokens of sentences, and 1 where a summary takes the sentence, else 0.
        query_stream: predictions are not made by the predicted places themselves but by a query stream: one query for
            each of them that knows where it is and sees what they see, less themselves (XLNet).
        entities: bool (T,), tokens within named entities; None where nobody says.
    """

    group: str
    tokens: np.ndarray
    positions: np.ndarray
    token_types: np.ndarray
    mask: AttentionMask
    predicted: np.ndarray
    labels: np.ndarray
    is_next: int = NO_PAIR_LABEL
    pair_place: int = 0
    boundaries: np.ndarray = field(default_factory=lambda: NO_BOUNDARIES)
    sentences: np.ndarray = field(default_factory=lambda: NO_SENTENCES)
    query_stream: bool = False
    entities: np.ndarray | None = None


@dataclass(frozen=True)
class Examples:
    """n examples one after another; see :class:`Example` for what each of the fields holds of one.

    All arrays are int64 where nothing else is said.

    Attributes:
        groups: n names.
        lengths: (n,) tokens of each.
        tokens, positions, token_types: (all tokens,).
        steps: who sees whom, of n sequences.
        predicted, labels: (all predictions,), places counted from their example's first token.
        predicted_counts: (n,) predictions of each.
        is_next, pair_place: (n,).
        boundaries: (all boundaries, 4), and how many each has, (n,).
        sentences: (all sentences, 2), and how many each has, (n,).
        query_stream: (n,) 1 or 0.
        entities: bool (all tokens,); None where some example does not say.
    """

    groups: list[str]
    lengths: np.ndarray
    tokens: np.ndarray
    positions: np.ndarray
    token_types: np.ndarray
    steps: Steps
    predicted: np.ndarray
    labels: np.ndarray
    predicted_counts: np.ndarray
    is_next: np.ndarray
    pair_place: np.ndarray
    boundaries: np.ndarray
    boundary_counts: np.ndarray
    sentences: np.ndarray
    sentence_counts: np.ndarray
    query_stream: np.ndarray
    entities: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Examples:
        """Those of a list, copied.

        Raises:
            ValueError: a mask is not of an example's tokens.
        """
        for example in examples:
            _check_mask(example)

        def each(values: Iterable[int]) -> np.ndarray:
            return np.fromiter(values, dtype=np.int64, count=len(examples))

        def joined(field: str, empty: np.ndarray = _EMPTY) -> np.ndarray:
            return np.concatenate([empty, *(getattr(example, field) for example in examples)])

        return cls(
            groups=[example.group for example in examples],
            lengths=each(len(example.tokens) for example in examples),
            **{name: joined(name) for name in (*_PER_TOKEN, *_PER_PREDICTION)},
            steps=steps_of([example.mask for example in examples]),
            predicted_counts=each(len(example.predicted) for example in examples),
            is_next=each(example.is_next for example in examples),
            pair_place=each(example.pair_place for example in examples),
            boundaries=joined("boundaries", NO_BOUNDARIES),
            boundary_counts=each(len(example.boundaries) for example in examples),
            sentences=joined("sentences", NO_SENTENCES),
            sentence_counts=each(len(example.sentences) for example in examples),
            query_stream=each(example.query_stream for example in examples),
            entities=_all_or_none([example.entities for example in examples]),
        )

    @classmethod
    def of_one_group(
        cls,
        group: str,
        extents: Extents,
        *,
        tokens: np.ndarray,
        token_types: np.ndarray,
        steps: Steps,
        places: np.ndarray,
        labels: np.ndarray,
        is_next: np.ndarray | None = None,
        entities: np.ndarray | None = None,
    ) -> Examples:
        """Examples of one objective whose positions count from 0, without boundaries, sentences or query stream.

        Args:
            extents: the examples' tokens.
            steps: who sees whom, of n sequences.
            places: (all predictions,), increasing, counted over all examples.
            is_next: (n,), None where nobody asks.
            entities: bool (all tokens,), None where nobody says.
        """
        count = len(extents)
        none = np.zeros(count, dtype=np.int64)
        counts = extents.counts(places)
        return cls(
            groups=[group] * count,
            lengths=extents.lengths,
            tokens=tokens,
            positions=extents.within,
            token_types=token_types,
            steps=steps,
            predicted=places - extents.starts.repeat(counts),
            labels=labels,
            predicted_counts=counts,
            is_next=np.full(count, NO_PAIR_LABEL) if is_next is None else is_next,
            pair_place=none,
            boundaries=NO_BOUNDARIES,
            boundary_counts=none,
            sentences=NO_SENTENCES,
            sentence_counts=none,
            query_stream=none,
            entities=entities,
        )

    @classmethod
    def joined(cls, parts: Sequence[Examples], order: np.ndarray) -> Examples:
        """The examples of all parts together in another order, int64 (n,)."""
        arrays = [field.name for field in fields(cls) if field.name not in ("groups", "steps")]
        found = {name: _all_or_none([getattr(part, name) for part in parts]) for name in arrays}
        merged = {name: array for name, array in found.items() if array is not None}
        groups = [group for part in parts for group in part.groups]
        for names, counts in _COUNTED.items():
            extents = Extents(merged[counts])
            own = runs(extents.starts[order], extents.lengths[order])
            merged |= {name: merged[name][own] for name in names if name in merged}
        extents = Extents(merged["lengths"])
        own = runs(extents.starts[order], extents.lengths[order])
        steps = Steps.joined([part.steps for part in parts]).reordered(own, order)
        merged |= {name: merged[name][order] for name in _PER_EXAMPLE}
        return cls(groups=[groups[i] for i in order.tolist()], steps=steps, **merged)

    def split(self) -> list[Example]:
        """Each by itself, as views."""
        cuts = {
            name: np.split(getattr(self, name), np.cumsum(getattr(self, counts))[:-1])
            for names, counts in _COUNTED.items()
            for name in names
            if getattr(self, name) is not None
        }
        steps = self.steps.split(self.lengths)
        return [
            Example(
                group=group,
                **{name: parts[i] for name, parts in cuts.items()},
                mask=of_steps(steps[i]),
                is_next=int(self.is_next[i]),
                pair_place=int(self.pair_place[i]),
                query_stream=bool(self.query_stream[i]),
            )
            for i, group in enumerate(self.groups)
        ]


_EMPTY = np.empty(0, dtype=np.int64)
_PER_TOKEN = ("tokens", "positions", "token_types")
_PER_PREDICTION = ("predicted", "labels")
#: Fields of :class:`Examples`, and the field that says how many entries of them each example has.
_COUNTED = {
    (*_PER_TOKEN, "entities"): "lengths",
    _PER_PREDICTION: "predicted_counts",
    ("boundaries",): "boundary_counts",
    ("sentences",): "sentence_counts",
}
_PER_EXAMPLE = (*_COUNTED.values(), "is_next", "pair_place", "query_stream")


@dataclass(frozen=True)
class Batch:
    """B rows of T places; each row holds one or more examples, numbered as documents, and padding.

    Behind its T places a row has those of its query stream, if any example of the batch has one: Q places in all.

    Attributes:
        tokens: int64 (B, T).
        positions, token_types: int64 (B, Q).
        query_step: int32 (B, Q); this and the next three are the attention mask, see :mod:`unified.masks`.
        key_start, key_stop: int32 (B, T).
        document_ends: int32 (B, D), where the examples' parts of the row's time axis end.
        predicted: int64 (N,), places to predict, row by row, as flat indices into B x Q, as all flat indices here.
        labels: int64 (N,).
        label_groups: int64 (N,), index into ``groups``.
        pair_places: int64 (M,), flat indices of the places that answer "does the second segment follow?".
        pair_labels: int64 (M,), 1 = it follows, 0 = it was drawn at random.
        pair_groups: int64 (M,), index into ``groups``.
        boundary_places: int64 (L, 2), flat indices of the places before and behind a span.
        boundary_offsets: int64 (L,), distance of the predicted token from the span's first.
        boundary_labels: int64 (L,), that token.
        boundary_groups: int64 (L,), index into ``groups``.
        sentence_places: int64 (K,), flat indices of the places that say whether a summary takes their sentence.
        sentence_labels: int64 (K,), 1 = it does, 0 = it does not.
        sentence_groups: int64 (K,), index into ``groups``.
        entities: bool (B, T), tokens within named entities; None where some example does not say.
        groups: names of the objectives; the same tuple in every batch of a run.
        structure: "full", "causal" or "mixed", what :attr:`mask` is, known since collation.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    token_types: torch.Tensor
    query_step: torch.Tensor
    key_start: torch.Tensor
    key_stop: torch.Tensor
    document_ends: torch.Tensor
    predicted: torch.Tensor
    labels: torch.Tensor
    label_groups: torch.Tensor
    pair_places: torch.Tensor
    pair_labels: torch.Tensor
    pair_groups: torch.Tensor
    boundary_places: torch.Tensor
    boundary_offsets: torch.Tensor
    boundary_labels: torch.Tensor
    boundary_groups: torch.Tensor
    sentence_places: torch.Tensor
    sentence_labels: torch.Tensor
    sentence_groups: torch.Tensor
    groups: tuple[str, ...]
    structure: str = "mixed"
    entities: torch.Tensor | None = None

    @property
    def mask(self) -> AttentionMask:
        """The attention mask of the rows, (B, Q) queries by (B, T) keys."""
        length, queries = self.tokens.size(1), self.query_step.size(1)
        own = torch.arange(queries, device=self.tokens.device)
        return AttentionMask.unchecked(
            query_step=self.query_step,
            key_start=self.key_start,
            key_stop=self.key_stop,
            document_ends=self.document_ends,
            query_key=None
            if queries == length
            else torch.where(own < length, own, NO_KEY).expand(len(self.tokens), -1),
            structure=self.structure,
        )

    @property
    def prediction_count(self) -> int:
        """Predictions of all kinds together."""
        return sum(map(len, (self.labels, self.pair_labels, self.boundary_labels, self.sentence_labels)))

    def prediction_counts(self) -> dict[str, torch.Tensor]:
        """int64 scalars: how many predictions there are under each of :func:`prediction_names`."""
        kinds = (self.label_groups, self.pair_groups, self.boundary_groups, self.sentence_groups)
        counts = torch.cat([groups.bincount(minlength=len(self.groups)) for groups in kinds])
        return dict(zip(prediction_names(self.groups), counts.unbind(), strict=True))

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensor fields that there are by name; with :meth:`known` they make the batch again."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _KNOWN}
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    def known(self) -> dict[str, object]:
        """What is no tensor: ``groups`` and ``structure``."""
        return {name: getattr(self, name) for name in _KNOWN}

    def to(self, device: torch.device | str) -> Batch:
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in self.tensors().items()}
        return Batch(**moved, **self.known())


def prediction_names(groups: Sequence[str]) -> list[str]:
    """Names under which a model may give losses of these groups: of tokens, pairs, boundaries and sentences."""
    return [f"{group}{kind}" for kind in ("", "_next_sentence", "_boundary", "_extractive") for group in groups]


_KNOWN = ("groups", "structure")


def _check_mask(example: Example) -> None:
    """Raise a ValueError unless the mask is one of the example's tokens alone."""
    mask, length = example.mask, len(example.tokens)
    if mask.batched or (mask.query_length, mask.key_length) != (length, length):
        raise ValueError(
            f"an example of {example.group!r} has {length} tokens, but its mask has {mask.query_length} queries and "
            f"{mask.key_length} keys"
        )
    if mask.exclude_self or mask.last_key is not None or mask.document_count > 1:
        raise ValueError(
            f"the mask of an example of {example.group!r} must be one of steps alone, of one document: without_self "
            "and causal are a model's, and packing comes later"
        )


def _all_or_none(arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Concatenates the arrays; None if one of them is None, or there are none."""
    return np.concatenate(arrays) if arrays and all(array is not None for array in arrays) else None
