"""Sequences without room for a token of each text are refused by every head, so that a dry run refuses them, too."""

from __future__ import annotations

import pytest

from tests.support.tiny_models import vocabulary
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.tasks.heads.choice import Choice, ChoiceItem
from unified.tasks.heads.classification import Classification, Regression
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.heads.tagging import Tagging
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

WORDS = vocabulary()
#: A head, an item, and the tokens of the shortest sequence that it reads.
CASES = {
    "a text": (Classification(("a", "b")), TextItem("0", "w1 w2", None, "a"), 3),
    "a pair": (Classification(("a", "b")), TextItem("0", "w1 w2", "w3 w4", "a"), 5),
    "a number": (Regression(), TextItem("0", "w1 w2", "w3 w4", 1.0), 5),
    "words": (Tagging(("O", "B-x")), WordsItem("0", ("w1", "w2"), ("O", "O")), 3),
    "choices": (Choice(), ChoiceItem("0", "w1", ("w2", "w3"), None, 0), 5),
}


@pytest.mark.parametrize("case", CASES)
def test_the_shortest_sequence_is_read_and_a_shorter_one_refused(case):
    head, item, least = CASES[case]
    tokenizer = SymbolTokenizer(WORDS.symbols)
    encoded = head.encode([item], Codec(tokenizer, WORDS, least))
    assert all(len(example.tokens) <= least for example in encoded.examples)
    for longest in (1, least - 1):
        with pytest.raises(UnifiedError, match=f"^sequences of {longest} tokens? leave no room for .* is {least}$"):
            head.encode([item], Codec(tokenizer, WORDS, longest))
