"""The interface of a source of texts for datasets of rows, and checks that all sources share."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from unified.data.randomness import Draws
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.planning.rows import DealtDocuments, RowLimits, RowPlan
from unified.planning.second_pools import SecondPools
from unified.planning.text_request import TextRequest


class TextSource(Protocol):
    """Blocks of a document folder, or pairs of a source and a target file.

    Running text has also ``bounds`` and ``document_starts``, see :class:`unified.planning.documents.DocumentTexts`:
    planners other than :class:`Blocks`, and dealing documents to several planners, need them.

    Attributes:
        name: what error messages call it, the path of its files.
        paired: True for source/target pairs, False for running text.
        plans_each_epoch: True where the plan depends on the epoch.
        special: ids of the special symbols.
        word_starts: bool (V,), True where a vocabulary entry begins a word; None when unknown.
    """

    name: str
    paired: bool
    plans_each_epoch: bool
    special: SpecialTokens
    word_starts: np.ndarray | None

    @property
    def document_count(self) -> int:
        """Documents that a random second segment may come from; 0 for pairs."""
        ...

    @property
    def annotation_kinds(self) -> frozenset[str]:
        """Kinds of spans that are annotated."""
        ...

    def blocks(self, limits: RowLimits, seed: int, epoch: int, dealt: DealtDocuments | None = None) -> RowPlan:
        """The plan of an epoch: its blocks or pairs, and the rows within ``limits`` that hold them.

        ``dealt`` are the documents to take; None for all, and always None for pairs.
        """
        ...

    def texts(
        self,
        starts: np.ndarray,
        lengths: np.ndarray,
        objective: TextRequest,
        draws: Draws,
        pools: SecondPools | None = None,
    ) -> Texts:
        """Texts of planned blocks, given their entries in :attr:`RowPlan.starts` and :attr:`RowPlan.lengths`.

        ``pools`` hold the second segments of all blocks of the plan; pairs have no use for them.
        """
        ...


def word_starts_of(
    tokens: np.ndarray, begun: np.ndarray, table: np.ndarray | None, special: SpecialTokens, name: str
) -> np.ndarray | None:
    """True at tokens that begin a word, bool (n,), from the table per vocabulary entry; None without a table.

    A byte-level tokenizer marks the space before a word, and none stands before the first word of a sentence, which is
    encoded by itself. So the first token of a sentence begins a word, whatever its entry says.

    Args:
        tokens: int64 (n,).
        begun: bool (n,), True at the first token of a sentence, or of any other text that is encoded by itself.

    Raises:
        UnifiedError: a token is in no vocabulary, or the table is too short for it.
    """
    highest = int(tokens.max(initial=0))
    size = special.first_sentinel + special.sentinel_count
    if highest >= size:
        raise UnifiedError(f"{name}: holds token {highest}, but the dictionary has {size} entries; they do not match")
    if table is None:
        return None
    if highest >= len(table):
        raise UnifiedError(
            f"{name}: holds token {highest}, but the table of word starts has {len(table)} entries; they do not match"
        )
    return table[tokens] | begun


def require_final_separators(last_tokens: np.ndarray, items: np.ndarray, special: SpecialTokens, name: str) -> None:
    """Refuse items (int64 (n,)) that do not end with ``</s>``, given their last tokens (n,).

    Raises:
        UnifiedError: names the first such item.
    """
    right = last_tokens == special.separator
    if not right.all():
        wrong = np.flatnonzero(~right)[0]
        raise UnifiedError(
            f"{name}: item {int(items[wrong])} ends with token {int(last_tokens[wrong])}, not with </s> "
            f"({special.separator}); make the folder again with `unified prepare` or `fairseq-preprocess`"
        )
