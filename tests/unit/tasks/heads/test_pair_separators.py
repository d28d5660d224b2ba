"""Heads that read two texts with two separators between them, as RoBERTa does."""

from __future__ import annotations

import pytest

from tests.support.tiny_models import vocabulary
from unified.inference.sequences import Codec
from unified.tasks.heads.choice import Choice, ChoiceItem
from unified.tasks.heads.classification import Regression
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.question_windows import encode_questions
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

SYMBOLS = vocabulary()


def codec(longest: int) -> Codec:
    return Codec(SymbolTokenizer(SYMBOLS.symbols), SYMBOLS, longest, pair_separators=2)


def texts(examples) -> list[str]:
    return [" ".join(SYMBOLS.symbols[i] for i in example.tokens) for example in examples]


def test_two_texts_are_cut_to_what_both_separators_leave():
    encoded = Regression().encode([TextItem("1", "w0 w1 w2", "w3 w4 w5 w6")], codec(9))
    assert texts(encoded.examples) == ["<s> w0 w1 w2 </s> </s> w3 w4 </s>"] and encoded.lost.tolist() == [2]


def test_a_context_is_cut_to_what_both_separators_leave_beside_a_choice():
    encoded = Choice().encode([ChoiceItem("1", "w0 w1 w2 w3", ("w4 w5", "w6"))], codec(9))
    assert texts(encoded.examples) == ["<s> w0 w1 w2 </s> </s> w4 w5 </s>", "<s> w0 w1 w2 w3 </s> </s> w6 </s>"]
    assert encoded.lost.tolist() == [1]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("passage_first", [False, True])
def test_windows_of_a_passage_and_its_answer_stand_behind_both_separators(passage_first, whole):
    item = QuestionItem("1", "w0 w1", "w2 w3 w4 w5", (Answer("w5", 9),))
    encoded = encode_questions([item], codec(9), (), 5, 2, passage_first, whole)
    windows = ["w2 w3 w4", "w4 w5"]
    pairs = [(one, "w0 w1") if passage_first else ("w0 w1", one) for one in windows]
    assert texts(encoded.examples) == [f"<s> {one} </s> </s> {other} </s>" for one, other in pairs]
    for example, window, first, part, labels in zip(
        encoded.examples, encoded.notes, (0, 2), windows, encoded.head_inputs["labels"], strict=True
    ):
        read = example.targets["task"].output_indices[:, 0]
        assert read.tolist() == list(range(len(example.tokens))) if whole else len(read) == 1 + len(part.split())
        found = [SYMBOLS.symbols[i] for i in example.tokens[read]]
        assert found[window.first : window.first + len(window.offsets)] == part.split()
        assert window.offsets[:, 0].tolist() == [3 * i for i in range(first, first + len(part.split()))]
        assert [found[i] for i in labels[0]] == (["w5", "w5"] if "w5" in part else ["<s>", "<s>"])
