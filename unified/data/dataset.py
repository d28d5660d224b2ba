"""Rows of examples by number: what data loaders ask for, without torch."""

from __future__ import annotations

import numpy as np

from unified.data import randomness
from unified.data.example import Example
from unified.data.rows import RowPlan
from unified.data.sources import TextSource
from unified.errors import UnifiedError
from unified.objectives.base import Mixture


class RowDataset:
    """A map-style dataset whose item is a row: a list of examples that fit into ``row_length`` places together.

    A row depends on (seed, epoch, its number) alone, the objectives of its examples included. It can be pickled;
    workers see the epoch that was set when they got their copy, so set the epoch before they start.

    Args:
        texts: documents or pairs.
        mixture: the objectives; one is drawn for each example.
        row_length: places per row.
        seed: a whole number from 0.
        packed: False gives every example a row of its own, of its own length.

    Raises:
        UnifiedError: mixture and texts do not go together, or ``row_length`` or ``seed`` is out of range.
    """

    def __init__(self, texts: TextSource, mixture: Mixture, row_length: int, seed: int, packed: bool = True):
        self.texts, self.mixture, self.row_length, self.seed, self.packed = texts, mixture, row_length, seed, packed
        self._special_tokens = np.array([objective.special_tokens for objective in mixture.objectives])
        _check(texts, mixture, row_length, int(self._special_tokens.max()), seed)
        self._plan: RowPlan | None = None
        self.epoch = -1
        self.set_epoch(1)

    def set_epoch(self, epoch: int) -> None:
        """Plan the rows of ``epoch`` and draw their objectives; nothing happens where it is the current one."""
        if epoch == self.epoch:
            return
        if self._plan is None or self.texts.plans_each_epoch:
            longest = int(self._special_tokens.max())
            self._plan = self.texts.plan(self.row_length, longest, self.packed, self.seed, epoch)
        uniforms = randomness.generator(self.seed, epoch, randomness.OBJECTIVE).random(len(self._plan.starts))
        self._objectives = self.mixture.choose(uniforms).astype(np.int16)
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self._plan)

    def __getitem__(self, row: int) -> list[Example]:
        """The examples of one row; each keeps to the length that was planned for it."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        first, stop = self._plan.offsets[row : row + 2]
        return [self._example(int(index)) for index in self._plan.members[first:stop]]

    def _example(self, index: int) -> Example:
        number = self._objectives[index]
        objective = self.mixture.objectives[number]
        rng = randomness.generator(self.seed, self.epoch, randomness.EXAMPLE, index)
        length = int(self._plan.lengths[index])
        example = objective(self.texts.text(int(self._plan.starts[index]), length, objective, rng), rng)
        if len(example.tokens) > length + self._special_tokens[number]:
            raise ValueError(
                f"objective {objective.name} made {len(example.tokens)} tokens of {length}; its special_tokens allows "
                f"{self._special_tokens[number]} more than it is given"
            )
        return example

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, special symbols included, int64 (rows,).

        A random second segment that its document cuts short makes an example shorter than counted here.
        """
        places = self._plan.lengths + self._special_tokens[self._objectives]
        return np.add.reduceat(places[self._plan.members], self._plan.offsets[:-1])

    def row_tokens(self, row: int) -> int:
        """Tokens of one row, an entry of :attr:`lengths`."""
        members = self._plan.members[self._plan.offsets[row] : self._plan.offsets[row + 1]]
        return int((self._plan.lengths[members] + self._special_tokens[self._objectives[members]]).sum())

    def padding_share(self) -> float:
        """Share of all places, ``row_length`` in each row, that hold no token."""
        return 1 - int(self.lengths.sum()) / (len(self) * self.row_length)

    def order(self) -> np.ndarray:
        """The rows in this epoch's order, int64 (rows,): at random; without packing by length, ties at random."""
        shuffled = randomness.generator(self.seed, self.epoch, randomness.ORDER).permutation(len(self))
        return shuffled if self.packed else shuffled[np.argsort(self.lengths[shuffled], kind="stable")]


def _check(texts: TextSource, mixture: Mixture, row_length: int, special_tokens: int, seed: int) -> None:
    names = ", ".join(mixture.names)
    if mixture.paired and not texts.paired:
        raise UnifiedError(f"{texts.name}: holds documents, but {names} needs source/target pairs")
    if texts.paired and not mixture.paired:
        raise UnifiedError(f"{texts.name}: holds source/target pairs, but {names} needs documents")
    if texts.document_count == 1:
        for objective in mixture.objectives:
            if objective.wants_random_second:
                raise UnifiedError(
                    f"{texts.name}: holds one document, but {objective.name} wants second segments from other ones; "
                    "separate documents by empty lines, or switch next-sentence prediction off"
                )
    if row_length <= special_tokens:
        raise UnifiedError(f"rows of {row_length} tokens hold no text beside {special_tokens} special tokens")
    if not 0 <= seed < 2**64:
        raise UnifiedError(f"the seed must be a whole number from 0 to 2^64 - 1, got {seed}")
