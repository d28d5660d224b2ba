"""The shortest sequences of each head: a token of each text fits, and one token less is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tiny_models import vocabulary
from unified.arguments import counted
from unified.data.markers import with_markers
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.tasks.heads import Understanding
from unified.tasks.heads.choice import Choice, ChoiceItem
from unified.tasks.heads.classification import Classification, Regression
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.documents import DocumentItem
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.heads.relation import Relation, RelationItem
from unified.tasks.heads.tagging import Tagging
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

SYMBOLS = with_markers(vocabulary(), 4)
RELATED = RelationItem("1", ("a", "b", "c"), (Entity(0, 1, "X"), Entity(2, 3, "Y")))


@pytest.mark.parametrize("between", [1, 2])
@pytest.mark.parametrize(
    ("task", "item", "least"),
    [
        (Classification(("x", "y")), TextItem("1", "a b c d"), 3),
        (Regression(), TextItem("1", "a b c d", "b c d"), 5),
        (Tagging(("O", "B-X")), WordsItem("1", ("a", "b")), 3),
        (Choice(), ChoiceItem("1", "a b c", ("b c", "c d")), 5),
        (Coreference(), DocumentItem("1", (("a", "b"), ("c",))), 3),
        (Relation(("no_relation", "x")), RELATED, 7),
        (Relation(("no_relation", "x"), ("SUBJ=X", "OBJ=Y"), design="types"), RELATED, 4),
    ],
    ids=lambda value: value.name if isinstance(value, Understanding) else "",
)
def test_a_token_of_each_text_fits_or_the_sequences_are_too_short(
    task: Understanding[Any], item: Any, least: int, between: int
):
    """A second separator between two texts takes a token more."""
    least += between - 1 if least == 5 else 0

    def encoded(longest: int) -> list[int]:
        codec = Codec(SymbolTokenizer(SYMBOLS.symbols), SYMBOLS, longest, pair_separators=between)
        return [len(example.tokens) for example in task.encode([item], codec).examples]

    assert set(encoded(least)) == {least}
    for longest in (least - 1, 1):
        with pytest.raises(UnifiedError) as refused:
            encoded(longest)
        assert str(refused.value) == (
            f"sequences of {counted(longest, 'token')} are too short, those of this task need {least}; "
            "raise --max-length of `unified finetune` (--tokens-per-sample of fairseq-train)"
        )
