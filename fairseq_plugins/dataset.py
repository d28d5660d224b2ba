"""fairseq datasets over ours: rows for training, pairs for generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset, data_utils

from fairseq_plugins.refusals import refusal, refusing
from unified.data.collate import collate_flat
from unified.data.example import Batch
from unified.data.token_files import TokenFile
from unified.data.vocabulary import SpecialTokens
from unified.training.batches import Cut, batches_by_size
from unified.training.row_dataset import RowDataset
from unified.training.stream_dataset import StreamDataset

#: Batch that fairseq moves between devices and hands to criterions: tensors and numbers by name, nested.
Sample = dict[str, Any]
#: Options that limit the tokens of a batch in training; elsewhere the first one of these that is given, if any.
_LIMIT, _LIMIT_ELSEWHERE = "--max-tokens", "--max-tokens-valid (or else --max-tokens)"
#: Number, source and target, int64 each; None where there is no target.
Pair = tuple[int, np.ndarray, np.ndarray | None]


def to_batch(sample: Mapping[str, Any]) -> Batch:
    """The :class:`Batch` inside a fairseq sample, wherever its tensors have been moved."""
    return Batch.of_tensors(sample["batch"], sample["known"])


def batch_fields(batch: Batch) -> Sample:
    """Fields of a sample that :func:`to_batch` reads."""
    return {"batch": batch.tensors(), "known": batch.known()}


class Planned(FairseqDataset):
    """Base class of rows and pairs, whose examples are drawn anew in every epoch."""

    # Each epoch has its own masks and rows; with persistent workers fairseq would repeat the first epoch's.
    can_reuse_epoch_itr_across_epochs = False

    def filter_indices_by_size(self, indices: np.ndarray, max_sizes: object) -> tuple[np.ndarray, list[int]]:
        """Lengths were settled when rows were planned; nothing is dropped."""
        return indices, []

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        """Divides all items into batches; fairseq's default, multiples of 8, would drop the last batch in silence."""
        return super().batch_by_size(indices, max_tokens, max_sentences)

    @property
    def rows_of_epoch(self) -> int | None:
        """Number of rows by which a run that goes on knows that they are the same; None where that says nothing."""
        return len(self)

    def position(self, read: int, begun: Cut, now: Cut) -> tuple[int, Cut]:
        """The number of rows behind which an epoch goes on, and the cut that decides its order.

        Args:
            read: rows of the epoch that have been read.
            begun: how it was cut when it began.
            now: how it is cut by this run.
        """
        return read, begun


class RowFairseqDataset(Planned):
    """Items are rows. A batch holds as many rows as --batch-size or --max-tokens / row length allow."""

    def __init__(self, rows: RowDataset | StreamDataset, special: SpecialTokens, shuffle: bool):
        self.rows = rows
        self.special = special
        self.shuffle = shuffle

    def set_epoch(self, epoch: int) -> None:
        self.rows.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> int:
        """The number itself: examples are made for a whole batch at once."""
        return index

    def num_tokens(self, index: int) -> int:
        return self.size(index)

    def size(self, index: int) -> int:
        return self.rows.row_length if self.rows.packed else self.rows.row_tokens(index)

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        """Batches of all rows, as :func:`unified.training.batches.batches_by_size` makes them."""
        with refusing():
            called = _LIMIT if self.shuffle else _LIMIT_ELSEWHERE
            return batches_by_size(indices, self.rows.batch_lengths[indices], max_tokens, max_sentences, called)

    def ordered_indices(self) -> np.ndarray:
        """Training: the epoch's own order. Validation: as they lie in the file."""
        return self.rows.order() if self.shuffle else np.arange(len(self))

    def collater(self, indices: Sequence[int]) -> Sample:
        if not indices:
            return {}
        length = self.rows.row_length if self.rows.packed else None
        examples, per_row = self.rows.examples(indices)
        return {
            "id": torch.tensor(indices),
            "nsentences": len(examples),
            "ntokens": len(examples.tokens),
            **batch_fields(collate_flat(examples, per_row, length, self.rows.objective_names, self.special.pad)),
        }


class StreamFairseqDataset(RowFairseqDataset):
    """Rows of parallel streams: every batch goes on where the one before it ended, in each of its rows."""

    rows: StreamDataset

    def split(self, streams: int) -> None:
        """Cuts the text into as many streams as all processes together have rows in a batch."""
        with refusing():
            self.rows.split(streams)

    @property
    def rows_of_epoch(self) -> None:
        """None: the rows of streams depend on the number of these."""
        return None

    def position(self, read: int, begun: Cut, now: Cut) -> tuple[int, Cut]:
        """Streams are cut by this run: another number of them goes on behind as much text, at a whole step of all."""
        return -(-read // self.rows.streams) * self.rows.streams, now

    def collater(self, indices: Sequence[int]) -> Sample:
        sample = super().collater(indices)
        if sample:
            sample["starts_streams"] = self.rows.step(indices[0]) == 0
        return sample


def cut_item(tokens: np.ndarray, maximum: int) -> np.ndarray:
    """The first ``maximum`` tokens of an item, int64 (n,), and the separator at its end."""
    return np.append(tokens[:-1][:maximum], tokens[-1])


class Side:
    """One side of the pairs, as a sequence: int64 arrays that end with the separator, cut to ``maximum`` before it.

    A ``maximum`` of 0 cuts nothing.
    """

    def __init__(self, file: TokenFile, maximum: int):
        self.file = file
        self.maximum = maximum

    def __len__(self) -> int:
        return len(self.file)

    def __getitem__(self, index: int) -> np.ndarray:
        tokens = self.file[index].astype(np.int64)
        return cut_item(tokens, self.maximum) if self.maximum else tokens

    @property
    def sizes(self) -> np.ndarray:
        """Tokens of each item, the separator included, int64 (n,)."""
        sizes = self.file.sizes.astype(np.int64)
        return np.minimum(sizes, self.maximum + 1) if self.maximum else sizes


class PairFairseqDataset(Planned):
    """Dataset of source/target pairs for fairseq-generate, with the batches from which the loss is computed.

    ``sources`` and ``targets`` are sequences of int64 arrays, each ending with the separator.
    """

    def __init__(
        self,
        sources: Sequence[np.ndarray] | Side,
        targets: Sequence[np.ndarray] | Side | None,
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

    def __getitem__(self, index: int) -> Pair:
        return index, self.sources[index], None if self.targets is None else self.targets[index]

    def num_tokens(self, index: int) -> int:
        return self.size(index)

    def size(self, index: int) -> int:
        return len(self.sources[index]) + (0 if self.targets is None else len(self.targets[index])) + 1

    def ordered_indices(self) -> np.ndarray:
        """Similar lengths together: they pad little and finish together."""
        sizes = np.fromiter((self.size(i) for i in range(len(self))), dtype=np.int64, count=len(self))
        return np.argsort(sizes, kind="stable")

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        """Batches of all pairs; one that is too long for a batch, with its whole target, is refused."""
        too_long = [size for size in map(self.size, indices.tolist()) if max_tokens is not None and size > max_tokens]
        if too_long:
            item = "source" if self.targets is None else "pair with its whole target"
            raise refusal(f"{_LIMIT_ELSEWHERE} {max_tokens} is less than the longest {item}, of {max(too_long)} tokens")
        return super().batch_by_size(indices, max_tokens, max_sentences)

    def collater(self, items: Sequence[Pair]) -> Sample:
        if not items:
            return {}
        pad, separator = self.special.pad, self.special.separator
        sources = [torch.from_numpy(np.asarray(source, dtype=np.int64)) for _, source, _ in items]
        sample: Sample = {
            "id": torch.tensor([index for index, *_ in items]),
            "nsentences": len(items),
            "ntokens": sum(map(len, sources)),
            "net_input": {
                "src_tokens": data_utils.collate_tokens(sources, pad),
                "src_lengths": torch.tensor([len(source) for source in sources]),
            },
            "target": None,
        }
        if self.targets is not None:
            targets = [torch.from_numpy(np.asarray(target, dtype=np.int64)) for _, _, target in items]
            sample["ntokens"] += sum(map(len, targets))
            sample["target"] = data_utils.collate_tokens(targets, pad)
            sample["net_input"]["prev_output_tokens"] = data_utils.collate_tokens(
                targets, pad, separator, move_eos_to_beginning=True
            )
        if self.losses is not None:
            examples, per_row = self.losses.examples([index for index, *_ in items])
            sample.update(batch_fields(collate_flat(examples, per_row, None, self.losses.objective_names, pad)))
        return sample
