"""Rows of examples by number, as data loaders read them, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unified.arguments import counted
from unified.data import randomness
from unified.data.example import Example, Examples
from unified.data.extents import ranges
from unified.data.randomness import Draws
from unified.data.texts import Texts
from unified.errors import UnifiedError
from unified.objectives.arrays import naming_objective
from unified.objectives.check import FIRST_EXAMPLES, check_first_examples, check_lengths, check_sentinels
from unified.objectives.contract import Supply
from unified.objectives.mixture import Mixture
from unified.planning.documents import DocumentTexts
from unified.planning.planners import BLOCKS, Blocks, Planner, TextPlan, deal
from unified.planning.rows import DealtDocuments, RowLimits, members_of_rows, pack_windows
from unified.planning.sources import TextSource


@dataclass(frozen=True)
class PlannedTogether:
    """The objectives of a mixture whose texts are planned together.

    Attributes:
        numbers: int64 (K,), which objectives of the whole mixture they are.
        mixture: those alone.
        weight: of them all in the whole mixture.
    """

    planner: Planner[DocumentTexts]
    numbers: np.ndarray
    mixture: Mixture
    weight: float
    limits: RowLimits

    @classmethod
    def of(
        cls, planner: Planner[DocumentTexts], mixture: Mixture, numbers: list[int], row_length: int, packed: bool
    ) -> PlannedTogether:
        """The objectives ``numbers`` of a mixture, whose texts ``planner`` plans into rows of ``row_length`` tokens."""
        own = Mixture(
            tuple(mixture.objectives[n] for n in numbers),
            tuple(mixture.ratios[n] for n in numbers),
            tuple(mixture.names[n] for n in numbers),
        )
        longest = longest_text(own, row_length)
        slope, overhead = _growth(own, row_length, longest)
        weight = sum(mixture.weights[n] for n in numbers)
        return cls(planner, np.array(numbers), own, weight, RowLimits(row_length, longest, overhead, packed, slope))

    def require_room(self) -> None:
        """Refuses rows that are too short for a text of the objectives."""
        if self.limits.longest < self.planner.shortest:
            rows = f"rows of {counted(self.limits.row_length, 'token')}"
            raise UnifiedError(f"{rows} hold no text beside the special tokens of {', '.join(self.mixture.names)}")

    def check(self, texts: TextSource) -> None:
        """Refuses rows that are too short for the objectives, and data that lack what the objectives read."""
        self.require_room()
        supply = Supply(texts.special, texts.word_starts is not None, self.limits.longest, texts.annotation_kinds)
        for name, objective in self.mixture:
            with naming_objective(name, type(objective).__module__):
                problem = objective.unmet(supply)
            if problem:
                raise UnifiedError(f"{texts.name}: objective {name}: {problem}")

    def plan(self, texts: TextSource, seed: int, epoch: int, dealt: DealtDocuments | None) -> TextPlan:
        """The texts of an epoch, of all documents or of those that were ``dealt`` to these objectives."""
        if isinstance(self.planner, Blocks):
            return self.planner.plan(texts, self.limits, seed, epoch, dealt)
        return self.planner.plan(_documents(texts), self.limits, seed, epoch, dealt)


class RowDataset:
    """A map-style dataset whose item is a row: a list of examples that fit into ``row_length`` tokens together.

    A row depends on (seed, epoch, its number) alone, the objectives of its examples included. It can be pickled;
    workers see the epoch that was set when they got their copy, so set the epoch before they start.

    Args:
        texts: documents or pairs.
        mixture: the objectives; one is drawn for each example.
        row_length: tokens per row, padding included.
        seed: a whole number from 0.
        packed: False gives every example a row of its own, of its own length.

    Raises:
        UnifiedError: mixture and texts do not go together, or ``row_length`` or ``seed`` is out of range.
    """

    def __init__(self, texts: TextSource, mixture: Mixture, row_length: int, seed: int, packed: bool = True):
        self.texts, self.mixture, self.row_length, self.seed, self.packed = texts, mixture, row_length, seed, packed
        require_texts(texts, mixture, row_length)
        if not 0 <= seed < 2**64:
            raise UnifiedError(f"the seed must be a whole number from 0 to 2^64 - 1, got {seed}")
        self._planned = _planned_together(mixture, row_length, packed)
        each_epoch = texts.plans_each_epoch or any(one.planner.each_epoch for one in self._planned)
        self._plans_each_epoch = each_epoch or len(self._planned) > 1
        self._plans: list[tuple[PlannedTogether, TextPlan]] = []
        self.epoch = 0  # the first is 1
        self.set_epoch(1)
        self._check_first_examples()

    def set_epoch(self, epoch: int) -> None:
        """Plan the texts and rows of ``epoch`` and draw their objectives; nothing happens at the current one."""
        if epoch == self.epoch:
            return
        if not self._plans or self._plans_each_epoch:
            self._plans = [(one, one.plan(self.texts, self.seed, epoch, dealt)) for one, dealt in self._dealt(epoch)]
        lengths = [plan.lengths for _, plan in self._plans]
        #: int64 (K + 1,), number of the first text of each plan, and the end.
        self._firsts = np.cumsum([0, *map(len, lengths)])
        self._objectives = self._drawn_objectives(epoch)
        #: int64 (texts,), tokens that each example takes, at most.
        self._lengths = self._example_lengths(np.concatenate(lengths))
        self._members, self._offsets = self._rows(epoch)
        self.epoch = epoch

    def _dealt(self, epoch: int) -> list[tuple[PlannedTogether, DealtDocuments | None]]:
        """Plans of objectives for ``epoch``, each with the documents that it gets; None stands for all documents."""
        if len(self._planned) == 1:
            return [(self._planned[0], None)]
        rng = randomness.generator(self.seed, epoch, randomness.DEAL)
        weights = tuple(one.weight for one in self._planned)
        documents = _documents(self.texts)
        dealt = deal(documents.bounds, documents.document_starts, weights, self.row_length, rng)
        return [(one, own) for one, own in zip(self._planned, dealt, strict=True) if own.wanted.any()]

    def _drawn_objectives(self, epoch: int) -> np.ndarray:
        """The objective of each text, int16 (texts,)."""
        uniforms = randomness.generator(self.seed, epoch, randomness.OBJECTIVE).random(self._firsts[-1])
        of_rows = np.split(uniforms, self._firsts[1:-1])
        drawn = [one.numbers[one.mixture.choose(own)] for (one, _), own in zip(self._plans, of_rows, strict=True)]
        return np.concatenate(drawn).astype(np.int16)

    def _example_lengths(self, lengths: np.ndarray) -> np.ndarray:
        return self.mixture.lengths(lengths)[self._objectives, np.arange(len(self._objectives))]

    def _rows(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Texts of all rows, those of each plan together, int64 (texts,), and where rows begin (rows + 1,)."""
        members, offsets = [], [np.zeros(1, dtype=np.int64)]
        for number, (_, plan) in enumerate(self._plans):
            first, stop = self._firsts[number : number + 2]
            own_members, own_offsets = plan.rows or self._packed_rows(self._lengths[first:stop], epoch, number)
            members.append(own_members + first)
            offsets.append(own_offsets[1:] + first)
        return np.concatenate(members), np.concatenate(offsets)

    def _packed_rows(self, lengths: np.ndarray, epoch: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of examples of these lengths."""
        if not self.packed:
            return np.arange(len(lengths)), np.arange(len(lengths) + 1)
        rng = randomness.generator(self.seed, epoch, randomness.PLAN, number)
        return members_of_rows(pack_windows(lengths, self.row_length, rng)[0], rng)

    @property
    def objective_names(self) -> tuple[str, ...]:
        """Names of the objectives, to which each example belongs."""
        return self.mixture.names

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> list[Example]:
        """The examples of one row; each keeps to the length that was planned for it."""
        return self.examples([row])[0].split()

    def examples(self, rows: Sequence[int]) -> tuple[Examples, np.ndarray]:
        """The examples of some rows, row after row, and how many each row holds, int64 (B,)."""
        numbers = np.asarray(rows, dtype=np.int64)
        outside = numbers[(numbers < 0) | (numbers >= len(self))]
        if outside.size:
            raise IndexError(f"row {outside[0]} of {len(self)}")
        starts, stops = self._offsets[numbers], self._offsets[numbers + 1]
        per_row = stops - starts
        indices = self._members[ranges(starts, per_row)]  # the texts of these rows, row after row
        drawn = self._objectives[indices]
        # Each objective makes all its examples at once; then they are put back in the order of the rows.
        of_objective = [np.flatnonzero(drawn == number) for number in np.unique(drawn)]
        made = [self._made(indices[own]) for own in of_objective]
        examples = made[0] if len(made) == 1 else Examples.joined(made, np.argsort(np.concatenate(of_objective)))
        return examples, per_row

    def _members_of(self, row: int) -> np.ndarray:
        return self._members[self._offsets[row] : self._offsets[row + 1]]

    def _check_first_examples(self) -> None:
        """Compares the first examples of every objective with its declarations, before training."""
        for number, (name, objective) in enumerate(self.mixture):
            first = np.flatnonzero(self._objectives == number)[:FIRST_EXAMPLES]
            if first.size:
                texts, draws, _ = self._texts(first)
                with naming_objective(name, type(objective).__module__):
                    check_first_examples(objective, texts, draws, self.row_length)

    def _texts(self, indices: np.ndarray) -> tuple[Texts, Draws, np.ndarray]:
        """Texts of one objective, the random numbers of their examples, and the tokens planned for each text."""
        objective = self.mixture.objectives[self._objectives[indices[0]]]
        number = int(self._firsts.searchsorted(indices[0], side="right")) - 1
        plan, own = self._plans[number][1], indices - self._firsts[number]
        draws = Draws.of(self.seed, self.epoch, randomness.EXAMPLE, indices)
        return plan.texts(own, objective, draws, self.epoch), draws, plan.lengths[own]

    def _made(self, indices: np.ndarray) -> Examples:
        """Examples of one objective, under its name in the mixture."""
        of_mixture = self._objectives[indices[0]]
        objective, name = self.mixture.objectives[of_mixture], self.mixture.names[of_mixture]
        texts, draws, planned = self._texts(indices)
        with naming_objective(name, type(objective).__module__):
            made = objective.examples(texts, draws)
            check_lengths(objective, made, self._lengths[indices], planned)
            check_sentinels(objective, made, texts)
        return replace(made, objectives=[name] * len(indices))

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, special symbols included, int64 (rows,).

        Where no other document has a run of a second segment's shape, an example is shorter than counted here.
        """
        return np.add.reduceat(self._lengths[self._members], self._offsets[:-1])

    def row_tokens(self, row: int) -> int:
        """Tokens of one row, an entry of :attr:`lengths`."""
        return int(self._lengths[self._members_of(row)].sum())

    @property
    def batch_lengths(self) -> np.ndarray:
        """Tokens that each row has in a batch of rows of its length, int64 (rows,): packed rows are filled up."""
        return np.full(len(self), self.row_length) if self.packed else self.lengths

    def order(self) -> np.ndarray:
        """The rows in this epoch's order, int64 (rows,): at random; without packing by length, ties at random."""
        shuffled = randomness.generator(self.seed, self.epoch, randomness.ORDER).permutation(len(self))
        return shuffled if self.packed else shuffled[np.argsort(self.lengths[shuffled], kind="stable")]


def longest_text(mixture: Mixture, row_length: int) -> int:
    """Tokens of the longest text that every objective of a mixture can put into a row; 0 where there is none."""
    fits = (mixture.lengths(np.arange(1, row_length + 1)) <= row_length).all(0)
    return int(fits.argmin()) if not fits.all() else row_length


def _growth(mixture: Mixture, row_length: int, longest: int) -> tuple[float, int | None]:
    """Slope and overhead of :class:`unified.planning.rows.RowLimits`: a line above the lengths of all examples."""
    tokens = np.arange(1, row_length + 1)
    lengths = mixture.lengths(tokens)
    if all((own - tokens == own[0] - tokens[0]).all() for own in lengths):
        return 1.0, int(max(own[0] for own in lengths) - 1)
    if len(lengths) > 1 or longest < 2 or mixture.paired:
        return 1.0, None
    tokens, own = tokens[:longest], lengths[0][:longest]
    half = longest // 2
    slope = max(1.0, (own[-1] - own[half - 1]) / (longest - half))
    # Between tokens of the text and of the row something is rounded at either end of a block.
    return float(slope), int(np.ceil((own - slope * tokens).max() + slope))


def require_room(mixture: Mixture, row_length: int) -> None:
    """Refuse packed rows that are too short for the texts of an objective.

    Raises:
        UnifiedError: names the length of the rows and the objectives.
    """
    for one in _planned_together(mixture, row_length, packed=True):
        one.require_room()


def require_texts(texts: TextSource, mixture: Mixture, row_length: int) -> None:
    """Refuse texts that the objectives cannot learn from, by what is known before rows are planned.

    Raises:
        UnifiedError: they are pairs or documents where the objectives need the others, one document where they need
            several, or lack what an objective reads, such as an annotation; or rows have no room for them.
    """
    names = ", ".join(mixture.names)
    if mixture.paired and not texts.paired:
        raise UnifiedError(f"{texts.name}: holds documents, but {names} needs source/target pairs")
    if texts.paired and not mixture.paired:
        raise UnifiedError(f"{texts.name}: holds source/target pairs, but {names} needs documents")
    if texts.document_count == 1:
        for name, objective in mixture:
            if objective.wants_random_second:
                raise UnifiedError(
                    f"{texts.name}: holds one document, but {name} wants second segments from other ones; "
                    "separate documents by empty lines, or switch next-sentence prediction off"
                )
    for one in _planned_together(mixture, row_length, packed=True):
        one.check(texts)


def _planned_together(mixture: Mixture, row_length: int, packed: bool) -> list[PlannedTogether]:
    """The objectives by their planners, in the order in which these are met."""
    numbers: dict[Planner[DocumentTexts], list[int]] = {}
    for number, objective in enumerate(mixture.objectives):
        numbers.setdefault(objective.planner or BLOCKS, []).append(number)
    return [PlannedTogether.of(planner, mixture, own, row_length, packed) for planner, own in numbers.items()]


def _documents(texts: TextSource) -> DocumentTexts:
    """``texts``, which are documents where an objective has a planner of its own; pairs are planned in one way."""
    assert isinstance(texts, DocumentTexts), f"{texts.name}: holds no documents to plan"
    return texts
