"""fairseq datasets over ours: rows for training, pairs for generation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from fairseq.data import FairseqDataset, data_utils

from fairseq_plugins.refusals import refusing
from unified.data import randomness
from unified.data.collate import collate
from unified.data.dataset import RowDataset
from unified.data.example import Batch
from unified.data.memory_streams import StreamDataset
from unified.data.mmap import TokenFile
from unified.data.vocabulary import SpecialTokens
from unified.tasks.base import Encoded
from unified.tasks.batches import arranged, batches_of, runs_of, units_of


def to_batch(sample: dict) -> Batch:
    """The :class:`Batch` inside a fairseq sample, wherever its tensors have been moved."""
    return Batch(**sample["batch"], groups=sample["groups"], structure=sample["structure"])


def _batch_fields(batch: Batch) -> dict:
    return {"batch": batch.tensors(), "groups": batch.groups, "structure": batch.structure}


class _Planned(FairseqDataset):
    """What rows and pairs share: examples are drawn anew in every epoch."""

    # Each epoch has its own masks and rows; with persistent workers fairseq would repeat the first epoch's.
    can_reuse_epoch_itr_across_epochs = False

    def filter_indices_by_size(self, indices, max_sizes):
        """Lengths were settled when rows were planned; nothing is dropped."""
        return indices, []

    def batch_by_size(self, indices, max_tokens=None, max_sentences=None, required_batch_size_multiple=1):
        """Batches of everything: asked for multiples of 8, its default, fairseq drops the last batch in silence."""
        return super().batch_by_size(indices, max_tokens, max_sentences, required_batch_size_multiple=1)


class RowFairseqDataset(_Planned):
    """Items are rows. A batch holds as many rows as --batch-size or --max-tokens / row length allow."""

    def __init__(self, rows: RowDataset | StreamDataset, special: SpecialTokens, shuffle: bool):
        self.rows = rows
        self.special = special
        self.shuffle = shuffle

    def set_epoch(self, epoch: int) -> None:
        self.rows.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int):
        return index, self.rows[index]

    def num_tokens(self, index: int) -> int:
        return self.size(index)

    def size(self, index: int) -> int:
        return self.rows.row_length if self.rows.packed else self.rows.row_tokens(index)

    def ordered_indices(self) -> np.ndarray:
        """Training: the epoch's own order. Validation: as they lie in the file."""
        return self.rows.order() if self.shuffle else np.arange(len(self))

    def collater(self, items: Sequence) -> dict:
        if not items:
            return {}
        length = self.rows.row_length if self.rows.packed else None
        rows = [examples for _, examples in items]
        batch = collate(rows, length, self.rows.groups, self.special.pad)
        return {
            "id": torch.tensor([index for index, _ in items]),
            "nsentences": sum(map(len, rows)),
            "ntokens": sum(len(example.tokens) for row in rows for example in row),
            **_batch_fields(batch),
        }


class StreamFairseqDataset(RowFairseqDataset):
    """Rows of parallel streams: every batch goes on where the one before it ended, in each of its rows."""

    rows: StreamDataset

    def split(self, streams: int) -> None:
        """Cut the text into as many streams as all processes have rows in a batch."""
        with refusing():
            self.rows.split(streams)

    def collater(self, items: Sequence) -> dict:
        sample = super().collater(items)
        if sample:
            sample["starts_streams"] = self.rows.step(items[0][0]) == 0
        return sample


class ItemFairseqDataset(_Planned):
    """Items are a task's examples, or all of an item where they belong together; a batch packs its own into rows.

    ``--batch-size`` counts them, as published settings do, and ``--max-tokens`` their tokens.

    Args:
        encoded: of all items.
        together: whether the examples of an item must be in one batch.
        longest_run: how many of them are read at most, a run of them drawn anew in every epoch; None for all.
        row_length: places of the rows in which examples are packed; None gives each a row of its own.
        special: ids of special symbols.
        seed: of the order; None keeps like lengths together, longest first.
        name: of the split.
        head: of the model that reads them.
    """

    def __init__(
        self,
        encoded: Encoded,
        together: bool,
        longest_run: int | None,
        row_length: int | None,
        special: SpecialTokens,
        seed: int | None,
        name: str,
        head: str,
    ):
        self.encoded, self.row_length, self.special = encoded, row_length, special
        self.seed, self.name, self.head = seed, name, head
        self.whole, self.longest_run = units_of(encoded.owners, together), longest_run
        self.lengths = np.array([len(example.tokens) for example in encoded.examples])
        self.set_epoch(1)

    def set_epoch(self, epoch: int) -> None:
        self.epoch, self.units = epoch, self.whole
        if self.longest_run is not None:
            rng = randomness.generator(self.seed, epoch, randomness.RUNS)
            self.units = runs_of(self.whole, self.longest_run, rng)
        self.places = np.array([self.lengths[unit].sum() for unit in self.units])

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, index: int) -> int:
        return index

    def num_tokens(self, index: int) -> int:
        return int(self.places[index])

    size = num_tokens

    def ordered_indices(self) -> np.ndarray:
        if self.seed is None:
            return np.argsort(-self.places, kind="stable")
        return randomness.generator(self.seed, self.epoch, randomness.ORDER).permutation(len(self))

    def batch_by_size(self, indices, max_tokens=None, max_sentences=None, required_batch_size_multiple=1):
        return batches_of(np.asarray(indices), self.places, max_sentences, max_tokens)

    def collater(self, indices: Sequence[int]) -> dict:
        if not indices:
            return {}
        examples = self.encoded.examples
        members = np.concatenate([self.units[index] for index in indices])
        rows = arranged(members, examples, self.row_length or 0, packed=self.row_length is not None)
        batch = collate([[examples[member] for member in row] for row in rows], None, ("task",), self.special.pad)
        members = np.concatenate(rows)
        return {
            "id": torch.tensor(indices),
            "nsentences": len(indices),
            "ntokens": int(self.places[list(indices)].sum()),
            "members": torch.from_numpy(members),
            "reading": self.encoded.reading(members),
            "split": self.name,
            "head": self.head,
            **_batch_fields(batch),
        }


class Side:
    """One side of the pairs, as a sequence: int64 arrays that end with the separator, cut to ``maximum`` before it."""

    def __init__(self, file: TokenFile, maximum: int):
        self.file = file
        self.maximum = maximum

    def __len__(self) -> int:
        return len(self.file)

    def __getitem__(self, index: int) -> np.ndarray:
        tokens = self.file[index].astype(np.int64)
        if self.maximum and len(tokens) > self.maximum + 1:
            tokens = np.append(tokens[: self.maximum], tokens[-1])
        return tokens


class PairFairseqDataset(_Planned):
    """Items are source/target pairs: what fairseq-generate needs, with the batch that the loss needs beside it.

    ``sources`` and ``targets`` are sequences of int64 arrays, each ending with the separator.
    """

    def __init__(
        self,
        sources: Sequence[np.ndarray],
        targets: Sequence[np.ndarray] | None,
        special: SpecialTokens,
        losses: RowDataset | None = None,
    ):
        self.sources = sources
        self.targets = targets
        self.special = special
        self.losses = losses

    def set_epoch(self, epoch: int) -> None:
        if self.losses is not None:
            self.losses.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, index: int):
        examples = self.losses[index] if self.losses is not None else None
        return index, self.sources[index], None if self.targets is None else self.targets[index], examples

    def num_tokens(self, index: int) -> int:
        return self.size(index)

    def size(self, index: int) -> int:
        return len(self.sources[index]) + (0 if self.targets is None else len(self.targets[index])) + 1

    def ordered_indices(self) -> np.ndarray:
        """Similar lengths together: they pad little and finish together."""
        sizes = np.fromiter((self.size(i) for i in range(len(self))), dtype=np.int64, count=len(self))
        return np.argsort(sizes, kind="stable")

    def collater(self, items: Sequence) -> dict:
        if not items:
            return {}
        pad, separator = self.special.pad, self.special.separator
        sources = [torch.from_numpy(np.asarray(source, dtype=np.int64)) for _, source, _, _ in items]
        sample = {
            "id": torch.tensor([index for index, *_ in items]),
            "nsentences": len(items),
            "ntokens": sum(map(len, sources)),
            "net_input": {
                "src_tokens": data_utils.collate_tokens(sources, pad, left_pad=False),
                "src_lengths": torch.tensor([len(source) for source in sources]),
            },
            "target": None,
        }
        if self.targets is not None:
            targets = [torch.from_numpy(np.asarray(target, dtype=np.int64)) for _, _, target, _ in items]
            sample["ntokens"] += sum(map(len, targets))
            sample["target"] = data_utils.collate_tokens(targets, pad)
            sample["net_input"]["prev_output_tokens"] = data_utils.collate_tokens(
                targets, pad, separator, move_eos_to_beginning=True
            )
        if self.losses is not None:
            batch = collate([examples for *_, examples in items], None, self.losses.mixture.names, pad)
            sample.update(_batch_fields(batch))
        return sample
