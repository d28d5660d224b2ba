"""Source/target pairs from two token files."""

from __future__ import annotations

import os

import numpy as np

from unified.arguments import counted
from unified.data import randomness
from unified.data.annotations import Annotations, Spans
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.texts import UNASKED, Texts
from unified.data.token_files import TokenFile
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.planning.rows import DealtDocuments, RowLimits, RowPlan, members_of_rows, pack_windows
from unified.planning.second_pools import SecondPools
from unified.planning.sources import require_final_separators, word_starts_of
from unified.planning.text_request import TextRequest


def cut_note(file: TokenFile, name: str, maximum: int | None) -> str | None:
    """Sentence on the number of a file's items that are cut to ``maximum`` tokens; None where none is."""
    if not maximum:
        return None
    count = int((file.sizes > maximum + 1).sum())
    return f"{count:,} of {len(file):,} {name} are cut to their first {counted(maximum, 'token')}" if count else None


class PairTexts:
    """Item i of one file with item i of the other; a :class:`unified.planning.sources.TextSource`.

    The final ``</s>`` of each item is left out: objectives add their own. Either text may be empty. Rows are planned
    anew in every epoch, so that other pairs share a row.

    Args:
        source, target: one item per pair, each ending with ``</s>``.
        special: ids of the special symbols.
        max_source, max_target: tokens that are kept from the front of each text; 0 keeps all.
        word_starts: bool (V,), True where a vocabulary entry begins a word; None when unknown.
        annotations: spans that lie beside ``source``; None where nobody asks for any.

    Raises:
        UnifiedError: the files hold different numbers of items, none, or an empty item; a maximum is negative.
    """

    paired = True
    plans_each_epoch = True
    document_count = 0

    def __init__(
        self,
        source: TokenFile,
        target: TokenFile,
        special: SpecialTokens,
        max_source: int = 0,
        max_target: int = 0,
        word_starts: np.ndarray | None = None,
        annotations: Annotations | None = None,
    ):
        self.source, self.target, self.special, self.word_starts = source, target, special, word_starts
        self.annotations = annotations
        self.name = f"{source.prefix} and {os.path.basename(target.prefix)}"
        if len(source) != len(target):
            raise UnifiedError(
                f"{source.prefix} holds {counted(len(source), 'item')}, {target.prefix} {len(target)}; "
                "pairs need as many of each"
            )
        if len(source) == 0:
            raise UnifiedError(f"{source.prefix}: holds no pair")
        self.max_source, self.max_target = max_source, max_target
        #: int64 (n,), tokens of each pair, special symbols not counted.
        self.lengths = self._kept(source, "max_source", max_source) + self._kept(target, "max_target", max_target)

    @property
    def annotation_kinds(self) -> frozenset[str]:
        """Kinds of annotations that lie beside the texts."""
        return self.annotations.kinds if self.annotations else frozenset()

    def cut(self) -> dict[str, str]:
        """Sentences on how many texts ``max_source`` and ``max_target`` cut, for each side of which any is cut."""
        sides = (("source", self.source, self.max_source), ("target", self.target, self.max_target))
        notes = {side: cut_note(file, f"{side}s", maximum) for side, file, maximum in sides}
        return {side: note for side, note in notes.items() if note}

    @staticmethod
    def _kept(file: TokenFile, option: str, maximum: int) -> np.ndarray:
        """Tokens kept of each item, int64 (n,)."""
        if maximum < 0:
            raise UnifiedError(f"{option} must be 0 (keep all) or a number of tokens, got {maximum}")
        lengths = file.sizes.astype(np.int64) - 1
        if lengths.min() < 0:
            raise UnifiedError(f"{file.prefix}: item {int(lengths.argmin())} is empty; every item must end with </s>")
        return np.minimum(lengths, maximum) if maximum else lengths

    def blocks(self, limits: RowLimits, seed: int, epoch: int, dealt: DealtDocuments | None = None) -> RowPlan:
        """Pairs packed into rows: in random order, cut into windows, and in each window packed best-fit decreasing.

        Raises:
            UnifiedError: pairs are longer than a row; says how many and how long the longest is.
        """
        lengths = self.lengths + limits.overhead
        longest = int(lengths.max())
        if longest > limits.row_length:
            raise UnifiedError(
                f"{self.name}: {int((lengths > limits.row_length).sum())} of {len(lengths)} pairs are longer than a "
                f"row of {limits.row_length} tokens, the longest has {longest} with its {limits.overhead} special "
                "tokens; lengthen the rows or shorten the texts"
            )
        if limits.packed:
            rng = randomness.generator(seed, epoch, randomness.PLAN)
            members, offsets = members_of_rows(pack_windows(lengths, limits.row_length, rng)[0], rng)
        else:
            members, offsets = np.arange(len(lengths)), np.arange(len(lengths) + 1)
        return RowPlan(np.arange(len(lengths)), self.lengths, members, offsets)

    def texts(
        self,
        starts: np.ndarray,
        lengths: np.ndarray,
        objective: TextRequest,
        draws: Draws | None,
        pools: SecondPools | None = None,
    ) -> Texts:
        """The pairs whose numbers are ``starts`` (int64 (n,)); nothing is drawn at random, so ``pools`` are not used.

        Of the annotations that the objective reads, the spans whose first token is kept come along, cut as their text.
        """
        items = starts.tolist()
        sides = ((self.source, self.max_source), (self.target, self.max_target))
        segments = [self._read(file, item, maximum) for item in items for file, maximum in sides]
        tokens, sizes = np.concatenate(segments), np.array([len(segment) for segment in segments])
        begun = np.zeros(len(tokens), dtype=bool)
        begun[1:] = tokens[:-1] == self.special.separator  # of a source of several parts
        begun[Extents(sizes).starts[sizes > 0]] = True
        sizes = sizes.reshape(-1, 2).T
        kinds = self.annotation_kinds.intersection(objective.annotations)
        return Texts(
            tokens,
            self.special,
            sizes,
            np.full(len(items), UNASKED),
            word_starts_of(tokens, begun, self.word_starts, self.special, self.name),
            np.zeros(len(items), dtype=bool),
            spans={kind: self._spans(kind, starts, sizes[0]) for kind in kinds},
        )

    def _spans(self, kind: str, items: np.ndarray, lengths: np.ndarray) -> Spans:
        """Spans that begin in the first ``lengths`` (int64 (n,)) tokens of sources, cut there."""
        assert self.annotations is not None  # they have this kind
        spans = self.annotations.read(kind, items)
        kept = spans.kept(spans.bounds[:, 0] < lengths[spans.owners])
        return Spans(np.minimum(kept.bounds, lengths[kept.owners, None]), kept.counts)

    def _read(self, file: TokenFile, item: int, maximum: int) -> np.ndarray:
        tokens = np.asarray(file[item])
        require_final_separators(tokens[-1:], np.array([item]), self.special, file.prefix)
        stop = len(tokens) - 1
        return tokens[: min(stop, maximum) if maximum else stop].astype(np.int64)
