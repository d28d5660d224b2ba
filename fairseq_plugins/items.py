"""fairseq datasets of understanding tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fairseq_plugins.dataset import Planned, Sample, batch_fields
from unified.data import randomness
from unified.data.batching import batches_of
from unified.data.collate import collate
from unified.data.vocabulary import SpecialTokens
from unified.tasks.heads.auxiliary import masked_all
from unified.tasks.heads.base import Encoded
from unified.tasks.heads.batches import arranged, assembled, drawn, runs_of, units_of


@dataclass(frozen=True)
class TrainingOrder:
    """Order and number of items that training reads.

    Attributes:
        seed: of order and masks.
        weight: how often an epoch reads each; the rest of a fraction is drawn anew in every epoch.
        longest_run: how many examples of an item are read at most, see :class:`unified.tasks.heads.Understanding`.
        masked: whether batches come with a masked copy.
    """

    seed: int
    weight: float = 1.0
    longest_run: int | None = None
    masked: bool = False


class ItemFairseqDataset(Planned):
    """Items are a task's examples, or all of an item where they belong together; a batch packs its own into rows.

    ``--batch-size`` counts them, as published settings do, and ``--max-tokens`` their tokens.

    Args:
        encoded: of all items.
        together: whether the examples of an item must be in one batch.
        row_length: tokens of the rows in which examples are packed; None gives each a row of its own.
        special: ids of special symbols.
        split: name of the split.
        head: of the model that reads them.
        training: how training reads them; None keeps like lengths together, longest first.
    """

    def __init__(
        self,
        encoded: Encoded,
        together: bool,
        row_length: int | None,
        special: SpecialTokens,
        split: str,
        head: str,
        training: TrainingOrder | None = None,
    ):
        self.encoded, self.row_length, self.special = encoded, row_length, special
        self.split, self.head, self.training = split, head, training
        self.whole = units_of(encoded.owners, together)
        self.lengths = np.array([len(example.tokens) for example in encoded.examples])
        self.set_epoch(1)

    def set_epoch(self, epoch: int) -> None:
        self.epoch, self.units = epoch, self.whole
        if self.training is not None and self.training.longest_run is not None:
            rng = randomness.generator(self.training.seed, epoch, randomness.RUNS)
            self.units = runs_of(self.whole, self.training.longest_run, rng)
        self.unit_lengths = np.array([self.lengths[unit].sum() for unit in self.units])

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, index: int) -> int:
        return index

    def num_tokens(self, index: int) -> int:
        return int(self.unit_lengths[index])

    size = num_tokens

    def ordered_indices(self) -> np.ndarray:
        if self.training is None:
            return np.argsort(-self.unit_lengths, kind="stable")
        rng = randomness.generator(self.training.seed, self.epoch, randomness.ORDER)
        rounds = [rng.permutation(len(self)) for _ in range(math.ceil(self.training.weight))]
        return np.concatenate(rounds)[: drawn(self.training.weight, len(self))]

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        return batches_of(np.asarray(indices), self.unit_lengths, max_sentences, max_tokens)

    def collater(self, indices: Sequence[int]) -> Sample:
        if not indices:
            return {}
        members = np.concatenate([self.units[index] for index in indices])
        members, batch, reading = assembled(self.encoded, members, self.row_length, self.special.pad)
        sample = {
            "id": torch.tensor(indices),
            "nsentences": len(indices),
            "ntokens": int(self.unit_lengths[list(indices)].sum()),
            "members": torch.from_numpy(members),
            "reading": reading,
            "split": self.split,
            "head": self.head,
            **batch_fields(batch),
        }
        if self.training is not None and self.training.masked:
            sample["masked"] = self._masked(members, self.training.seed)
        return sample

    def _masked(self, members: np.ndarray, seed: int) -> Sample:
        """The examples ``members`` with some tokens hidden, for masked language modelling."""
        examples = masked_all(self.encoded.examples, members, self.special, seed, self.epoch)
        rows = arranged(np.arange(len(examples)), examples, self.row_length)
        batch = collate([[examples[i] for i in row] for row in rows], None, ("task",), self.special.pad)
        return batch_fields(batch)


class HeadsFairseqDataset(Planned):
    """Items of several heads; every batch is of one (MT-DNN: Liu et al. 2019, algorithm 1)."""

    def __init__(self, datasets: Sequence[ItemFairseqDataset]):
        self.datasets = datasets
        self.starts = np.cumsum([0, *map(len, datasets)])

    def set_epoch(self, epoch: int) -> None:
        for dataset in self.datasets:
            dataset.set_epoch(epoch)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, index: int) -> int:
        return index

    def num_tokens(self, index: int) -> int:
        number = self._number(index)
        return self.datasets[number].num_tokens(index - self.starts[number])

    size = num_tokens

    def ordered_indices(self) -> np.ndarray:
        return np.concatenate(
            [dataset.ordered_indices() + start for dataset, start in zip(self.datasets, self.starts[:-1], strict=True)]
        )

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        """Batches of one head each; rows of a head that follow each other are cut together."""
        indices, batches = np.asarray(indices), []
        owners = np.searchsorted(self.starts, indices, side="right")
        for run in np.split(indices, np.flatnonzero(np.diff(owners)) + 1) if len(indices) else []:
            number = self._number(run[0])
            found = self.datasets[number].batch_by_size(run - self.starts[number], max_tokens, max_sentences)
            batches += [batch + self.starts[number] for batch in found]
        return batches

    def collater(self, indices: Sequence[int]) -> Sample:
        if not indices:
            return {}
        number = self._number(indices[0])
        return self.datasets[number].collater([index - self.starts[number] for index in indices])

    def _number(self, index: int) -> int:
        return int(np.searchsorted(self.starts, index, side="right")) - 1
