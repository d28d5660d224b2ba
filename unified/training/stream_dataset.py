"""Parallel streams of running text, for models that remember: row s of every batch goes on where it ended.

The corpus is one text whose documents are divided by ``</s>``. It is cut into regions of equal length; a stream
reads one of them, forwards or backwards, in windows that overlap by what does not enter the memory (XLNet's
``data_utils.py``: a window of 512 goes on by ``reuse_len`` 256). A window is two segments: the running text with
segment A, and segment B, which goes on or, half of the time, stands somewhere else. Where a sentence ends in the part
of the window in which they may part, B begins with a sentence; where none does, within one. A B from elsewhere is
chosen alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unified.data import randomness
from unified.data.example import Example, Examples
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.texts import Texts
from unified.data.token_files import TokenFile
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.objectives.arrays import naming_objective
from unified.objectives.check import FIRST_EXAMPLES, check_first_examples
from unified.objectives.contract import Objective
from unified.planning.instances import RANDOM_SECOND_SHARE
from unified.planning.sources import require_final_separators, word_starts_of

#: Random windows that are looked at together for a random second segment, and how often.
_AT_ONCE, _ROUNDS = 64, 256


class RunningText:
    """All sentences of a token file one after another, a ``</s>`` between documents, and around from the end.

    Args:
        file: sentences and document ends as in :class:`unified.planning.documents.DocumentTexts`.
        special: ids of the special symbols.

    Raises:
        UnifiedError: the file holds nothing.
    """

    def __init__(self, file: TokenFile, special: SpecialTokens):
        self.file, self.special, self.name = file, special, file.prefix
        sizes = np.asarray(file.sizes)
        if sizes.size == 0 or sizes.min() < 1:
            raise UnifiedError(f"{self.name}: holds no text, or an item without </s>")
        #: int64 (I + 1,), the index where each item begins, and the end. A sentence's own ``</s>`` has no place.
        self.bounds = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(np.maximum(sizes - 1, 1), out=self.bounds[1:])

    def __len__(self) -> int:
        """Tokens of the text."""
        return int(self.bounds[-1])

    def read(self, index: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """``length`` tokens, int64, and how many of them precede each sentence end within."""
        index %= len(self)
        here = min(length, len(self) - index)
        tokens, ends = self._read(index, index + here)
        if here == length:
            return tokens, ends
        more, later = self.read(0, length - here)
        return np.concatenate([tokens, more]), np.concatenate([ends, [here], here + later])

    def ends_between(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Number of sentence ends behind ``starts`` and before ``stops`` (int64 (n,), any indices), int64 (n,)."""
        rounds, indices = np.divmod([starts, stops - 1], len(self))
        before = rounds * (len(self.bounds) - 1) + self.bounds[1:].searchsorted(indices, side="right")
        return before[1] - before[0]

    def begun(self, index: int, length: int) -> np.ndarray:
        """True at tokens that an item begins with, bool (length,), among those that :meth:`read` gives."""
        indices = np.arange(index, index + length) % len(self)
        return self.bounds[self.bounds.searchsorted(indices)] == indices

    def _read(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        first = int(self.bounds.searchsorted(start, side="right")) - 1
        last = int(self.bounds.searchsorted(stop))
        items = np.asarray(self.file.slice(first, last))
        sizes = np.asarray(self.file.sizes[first:last])
        ends = np.cumsum(sizes) - 1
        require_final_separators(items[ends], np.arange(first, last), self.special, self.name)
        kept = np.ones(len(items), dtype=bool)
        kept[ends[sizes > 1]] = False
        skipped = int(start - self.bounds[first])
        tokens = items[kept].astype(np.int64)[skipped : skipped + stop - start]
        return tokens, self.bounds[first + 1 : last] - start


class StreamDataset:
    """Rows of S streams, step after step: row ``t * S + s`` is step t of stream s.

    With an objective of both directions streams come in pairs that read one region, the second one backwards. Every
    epoch has its regions elsewhere. What a row holds depends on (seed, epoch, its number, S) alone.

    Args:
        text: the corpus.
        objective: one that reads streams, such as XLNet.
        word_starts: bool (V,), True where a vocabulary entry begins a word; None when unknown.
        row_length: tokens per row, padding included.
        seed: a whole number from 0.
        streams: S; :meth:`split` changes it.
        name: what the objective is called in logs; its own name where it has no other.

    Raises:
        UnifiedError: the objective does not read streams, or the rows are too short for it.
    """

    packed = True

    def __init__(
        self,
        text: RunningText,
        objective: Objective,
        word_starts: np.ndarray | None,
        row_length: int,
        seed: int,
        streams: int = 1,
        name: str | None = None,
    ):
        called = name or objective.name
        if not objective.reads_streams:
            raise UnifiedError(
                f"objective {called} reads single texts; a memory needs one that reads streams, such as xlnet"
            )
        self.text, self.objective, self.word_starts = text, objective, word_starts
        self.row_length, self.seed = row_length, seed
        #: Tokens of a row that enter the memory, by which a stream goes on.
        self.advance = objective.reuse or row_length // 2
        self.window = row_length - objective.special_tokens
        if self.advance > self.window - 2:
            raise UnifiedError(
                f"objective {called}: reuse {self.advance} leaves no room for two segments in rows of "
                f"{row_length} tokens; lower it or lengthen the rows"
            )
        self.objective_names = (called,)
        self.epoch = 0  # the first is 1
        self.split(streams)
        self.set_epoch(1)
        first = range(min(len(self), FIRST_EXAMPLES))
        texts, draws = self.texts(first)
        with naming_objective(called, type(objective).__module__):
            check_first_examples(objective, texts, draws, row_length)

    def split(self, streams: int) -> None:
        """Cut the corpus into ``streams`` streams.

        Raises:
            UnifiedError: it is too short for so many.
        """
        each = 2 if self.objective.both_directions else 1
        regions = -(-streams // each)
        steps = (len(self.text) // regions - self.window) // self.advance + 1
        if steps < 1:
            raise UnifiedError(
                f"{self.text.name}: {len(self.text)} tokens are too few for {streams} streams of rows of "
                f"{self.row_length}; lower --batch-size, or train on more text"
            )
        self.streams, self.regions, self.steps = streams, regions, steps

    def set_epoch(self, epoch: int) -> None:
        """Choose where the streams of ``epoch`` begin; nothing happens at the current one."""
        if epoch != self.epoch:
            self.epoch = epoch
            rng = randomness.generator(self.seed, epoch, randomness.PLAN)
            self._shift = int(rng.integers(len(self.text)))

    def __len__(self) -> int:
        return self.streams * self.steps

    def step(self, row: int) -> int:
        """Number of rows of its stream before ``row``."""
        return row // self.streams

    def __getitem__(self, row: int) -> list[Example]:
        return self.examples([row])[0].split()

    def examples(self, rows: Sequence[int]) -> tuple[Examples, np.ndarray]:
        """The examples of some rows, one each, as :meth:`.RowDataset.examples` gives them."""
        texts, draws = self.texts(rows)
        with naming_objective(*self.objective_names, type(self.objective).__module__):
            examples = self.objective.examples(texts, draws)
        return replace(examples, objectives=[*self.objective_names] * len(rows)), np.ones(len(rows), dtype=np.int64)

    def texts(self, rows: Sequence[int]) -> tuple[Texts, Draws]:
        """The texts of some rows, and the random numbers of their examples."""
        for row in rows:
            if not 0 <= row < len(self):
                raise IndexError(f"row {row} of {len(self)}")
        draws = Draws.of(self.seed, self.epoch, randomness.EXAMPLE, np.array(rows))
        return Texts.of([self._text(*one) for one in zip(rows, draws.generators("text"), strict=True)]), draws

    def _text(self, row: int, rng: np.random.Generator) -> Text:
        step, stream = divmod(row, self.streams)
        backward = stream >= self.regions
        region = len(self.text) // self.regions
        start = self._shift + stream % self.regions * region
        advanced = step * self.advance
        index = start + region - advanced - self.window if backward else start + advanced
        tokens, begun, ends = self._read(index, self.window, backward)
        # Segment A takes at least one token behind the running text. B has one, too: no end is the window's own.
        ends = ends[ends > self.advance]
        cut = int(rng.choice(ends)) if len(ends) else int(rng.integers(self.advance + 1, self.window))
        first, second, follows = tokens[:cut], tokens[cut:], rng.random() >= RANDOM_SECOND_SHARE
        if not follows:
            begin = self._elsewhere(len(second), len(ends) > 0, backward, rng)
            second, begun[cut:], _ = self._read(begin, len(second), backward)
        both = np.concatenate([first, second])
        starts = word_starts_of(both, begun, self.word_starts, self.text.special, self.text.name)
        return Text(first, self.text.special, second, bool(follows), starts, backward)

    def _elsewhere(self, length: int, parted: bool, backward: bool, rng: np.random.Generator) -> int:
        """The index where a random second segment of ``length`` tokens begins in the text.

        It is drawn as the true ones are, so that nothing in it tells the label: it is what a random window, cut there,
        has as its second segment. A window whose segments could part at one of k sentence ends parts at each with
        probability 1 / k; where they part within a sentence (not ``parted``), it has no such end.
        """
        for _ in range(_ROUNDS):
            if parted:
                joins = self.text.bounds[rng.integers(len(self.text.bounds) - 1, size=_AT_ONCE)]
            else:
                joins = rng.integers(len(self.text), size=_AT_ONCE)
            # Where the part of the window begins in which its segments can part: its end, or backwards its front.
            behind = joins - length if backward else joins + length - (self.window - self.advance)
            ends = self.text.ends_between(behind, behind + self.window - self.advance)
            fitting = np.flatnonzero(rng.random(_AT_ONCE) * ends < 1 if parted else ends == 0)
            if fitting.size:
                return int(joins[fitting[0]]) - length * backward
        return int(joins[0]) - length * backward

    def _read(self, index: int, length: int, backward: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens, which of them an item begins with, and how many precede each sentence end, as they are read."""
        (tokens, ends), begun = self.text.read(index, length), self.text.begun(index, length)
        return (tokens[::-1], begun[::-1], (length - ends)[::-1]) if backward else (tokens, begun, ends)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, int64 (rows,): streams have no padding."""
        return np.full(len(self), self.row_length)

    @property
    def batch_lengths(self) -> np.ndarray:
        """Lengths of the rows, :attr:`lengths`."""
        return self.lengths

    def row_tokens(self, row: int) -> int:
        """Tokens of a row: all rows are of one length."""
        return self.row_length

    def order(self) -> np.ndarray:
        """The rows as they go on from each other."""
        return np.arange(len(self))
