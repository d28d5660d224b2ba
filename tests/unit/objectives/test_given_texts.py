"""What is wrong with a text that a library's objective is called with is said in one line."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.support.token_files import SPECIAL
from unified.data.text import Text
from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES
from unified.objectives.bert import Bert

BERT = Bert(next_sentence=False)
IDS = np.arange(6) + SPECIAL.ordinary_start


def spans(*bounds):
    return {"noun_phrases": np.array(bounds)}


def tagged(*bounds):
    return {"parts_of_speech": np.array(bounds)}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tokens": IDS * 1.0}, "tokens of the text must be integers (n,), got ndarray array("),
        ({"tokens": IDS.reshape(2, 3)}, "tokens of the text must be integers (n,), got ndarray array("),
        ({"tokens": "hello"}, "tokens of the text must be integers (n,), got str 'hello'"),
        ({"tokens": None}, "tokens of the text must be integers (n,), got NoneType None"),
        ({"tokens": np.array([9, -3])}, "tokens of the text must be ids of at least 0, got -3"),
        ({"second": IDS * 1.0}, "second of the text must be integers (n,), got ndarray array("),
        ({"second": np.array([-1])}, "second of the text must be ids of at least 0, got -1"),
        (
            {"word_starts": np.ones(3, dtype=bool)},
            "word_starts of the text must have the shape (6,), one for each token, got (3,)",
        ),
        (
            {"second": IDS, "word_starts": np.ones(6, dtype=bool)},
            "word_starts of the text must have the shape (12,), one for each token, got (6,)",
        ),
        ({"spans": spans(1, 2)}, "spans 'noun_phrases' of the text must have the shape (k, 2), got (2,)"),
        ({"special": None}, "special of the text must be the special of its vocabulary, got NoneType None"),
        ({"spans": spans([0.5, 2])}, "spans 'noun_phrases' of the text must be integers, got float64"),
        ({"spans": spans([1])}, "spans 'noun_phrases' of the text must have the shape (k, 2), got (1, 1)"),
        (
            {"spans": spans([0, 1], [4, 2])},
            "spans 'noun_phrases' of the text must begin at a token and before they end, got 4, 2",
        ),
        (
            {"spans": spans([-1, 2])},
            "spans 'noun_phrases' of the text must begin at a token and before they end, got -1, 2",
        ),
        ({"spans": spans([3, 4], [1, 2])}, "spans 'noun_phrases' of the text must be sorted by where they begin"),
        ({"spans": spans([0, 1, 5])}, "spans 'noun_phrases' of the text must have the shape (k, 2), got (1, 3)"),
        ({"spans": tagged([0, 1])}, "spans 'parts_of_speech' of the text must have the shape (k, 3), got (1, 2)"),
        (
            {"spans": tagged([0, 1, 16], [1, 2, 17])},
            "tags of spans 'parts_of_speech' of the text must be 0 to 16, as TAGS are, got 17",
        ),
        (
            {"spans": tagged([0, 1, -1])},
            "tags of spans 'parts_of_speech' of the text must be 0 to 16, as TAGS are, got -1",
        ),
    ],
)
def test_a_text_that_is_none_is_named(changed, message):
    with pytest.raises(UnifiedError) as refusal:
        BERT(replace(Text(IDS, SPECIAL), **changed), np.random.default_rng(1))
    assert str(refusal.value).startswith(f"bert: {message}") and "\n" not in str(refusal.value)


@pytest.mark.parametrize("tokens", [IDS.tolist(), IDS.astype(np.int32), torch.from_numpy(IDS)])
def test_ids_may_come_in_other_containers(tokens):
    expected = BERT(Text(IDS, SPECIAL), np.random.default_rng(1))
    assert np.array_equal(BERT(Text(tokens, SPECIAL), np.random.default_rng(1)).tokens, expected.tokens)
    whole = Text(IDS, SPECIAL, second=IDS, word_starts=np.ones(12, dtype=bool), spans=spans([0, 1], [1, 6], [6, 12]))
    assert len(BERT(whole, np.random.default_rng(1)).tokens) > len(IDS)


def test_what_is_no_text_and_no_generator_is_named():
    with pytest.raises(UnifiedError, match="^bert: text must be a Text of unified.data.text, got str 'hello world'$"):
        BERT("hello world", np.random.default_rng(1))
    for rng in (1, None, np.random.RandomState(1)):
        with pytest.raises(UnifiedError, match=r"^bert: rng must be a numpy.random.Generator, such as .*, got"):
            BERT(Text(IDS, SPECIAL), rng)


@pytest.mark.parametrize("name", ["left_to_right", "bert(next_sentence=False)", "anna", "spanbert", "xlnet"])
@pytest.mark.parametrize("tokens", [[], [SPECIAL.separator] * 3])
def test_a_text_of_special_symbols_alone_has_nothing_to_predict(name, tokens):
    objective = BERT if name.startswith("bert") else OBJECTIVES[name]()
    given = np.array(tokens, dtype=np.int64)
    text = Text(given, SPECIAL, second=given if objective.segments == 2 else None)
    none = {kind: np.zeros((0, 2), dtype=int) for kind in objective.annotations}
    with pytest.raises(UnifiedError, match=f"^{objective.name}: the text has no token that may be predicted; at least"):
        objective(replace(text, spans=none), np.random.default_rng(1))
