"""Texts with hidden tokens: the batch that predicts them, and the neighbours of each run of them."""

import re

import numpy as np
import pytest
import torch

from tests.support.tiny_models import model, vocabulary
from tests.support.trained_tokenizers import TOKENIZERS, trained_tokenizers
from unified import UnifiedLM, masks
from unified.data.targets import TOKEN
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.inference.filling import around_runs, masked_batch
from unified.inference.sequences import Codec
from unified.objectives.xlnet import CLS_TYPE
from unified.tokenization import ordinary_symbols
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

WORDS = vocabulary()
SPECIAL = WORDS.special
CLS, SEP, MASK = SPECIAL.begin, SPECIAL.separator, SPECIAL.mask
FIRST = WORDS.index("w0")


def handle(writes="left_to_right", **changes) -> UnifiedLM:
    return UnifiedLM(model(**changes), WORDS, SymbolTokenizer(WORDS.symbols), writes, None)


def batch(text, query_stream=False, **changes):
    lm = handle(**changes)
    return masked_batch(text, lm.model.config, lm.tokenizer, WORDS, query_stream)


@pytest.mark.parametrize("mask", ["bidirectional", "left_to_right", "right_to_left"])
def test_each_hidden_token_is_a_target_under_the_mask_of_the_model(mask):
    found = batch("w1 <mask> w3<mask>", mask=mask)
    assert found.tokens.tolist() == [[CLS, FIRST + 1, MASK, FIRST + 3, MASK, SEP]]
    assert found.targets[TOKEN].output_indices[:, 0].tolist() == [2, 4]
    assert found.positions.tolist() == [list(range(6))]
    assert found.mask == masks.batch([masks.TEXT_MASKS[mask](6)])
    assert set(found.token_types[0].tolist()) == {{"bidirectional": 0, "left_to_right": 2, "right_to_left": 3}[mask]}


@pytest.mark.parametrize("kind", [*TOKENIZERS, "byte_fallback", "uncased"])
def test_the_tokens_around_a_hidden_word_are_those_of_the_whole_text(kind):
    """Marks and words behind ``<mask>`` begin a word only where a space stands before them."""
    tokenizer = trained_tokenizers()[kind]
    symbols = Vocabulary(ordinary_symbols(tokenizer))
    config = model().config
    text = "e of. e x of.. x e.of"
    tokens, characters = Codec(tokenizer, symbols, 48).encode_offsets([text])[0]
    for word in re.finditer(r"\w+", text):
        begin = word.start() - text[: word.start()].endswith(" ")  # a space may be a token of its own
        own = (characters[:, 0] < word.end()) & (characters[:, 1] > begin)
        expected = [*tokens[: own.argmax()], symbols.special.mask, *tokens[len(own) - own[::-1].argmax() :]]
        asked = f"{text[: word.start()]}<mask>{text[word.end() :]}"
        found = masked_batch(asked, config, tokenizer, symbols, query_stream=False)
        assert found.tokens[0, 1:-1].tolist() == expected, (word, asked)


def test_queries_of_a_permutation_do_not_see_what_is_hidden():
    found = batch("w1 <mask> w3", True, positions="relative", token_types=3)
    assert found.tokens.tolist() == [[FIRST + 1, MASK, FIRST + 3, SEP, CLS]]
    assert found.token_types.tolist() == [[0, 0, 0, 0, CLS_TYPE, 0]]  # the last is that of the query
    seen = found.mask.dense()[0]
    assert seen[:, 1].tolist() == [False, True, False, False, False, False] and seen[:, [0, 2, 3, 4]].all()


def test_texts_that_nothing_can_be_asked_of_are_refused():
    with pytest.raises(UnifiedError) as raised:
        batch("w1 " * 30)
    assert str(raised.value) == f"a text with at least one <mask> is needed, got {('w1 ' * 30)[:60]!r}"
    batch("<mask>" + " w1" * 45)  # 48 positions
    with pytest.raises(UnifiedError, match="^the text has 49 tokens with its special symbols, the model takes 48$"):
        batch("<mask>" + " w1" * 46)


def test_neighbours_of_runs_and_places_within():
    tokens = torch.tensor([CLS, 9, MASK, MASK, 8, MASK, 7, SEP])
    around, within = around_runs(tokens, MASK, 2)
    assert around.tolist() == [[1, 4], [1, 4], [4, 6]] and within.tolist() == [0, 1, 0]
    assert around.dtype == within.dtype == torch.int64
    assert around_runs(tokens, MASK, 0)[0].tolist() == around.tolist()
    with pytest.raises(UnifiedError) as raised:
        around_runs(tokens, MASK, 1)
    assert str(raised.value) == "a run of 2 <mask> is longer than the span-boundary head reaches: 1"


@pytest.mark.parametrize("inner", [[MASK, 9], [9, MASK], [MASK]])
def test_a_run_at_an_end_of_the_text_has_no_neighbour(inner):
    with pytest.raises(
        UnifiedError, match="^<mask> at an end of the text has no neighbour there; give a token on both"
    ):
        around_runs(torch.tensor([CLS, *inner, SEP]), MASK, 0)


def test_the_best_symbols_come_first_with_their_probabilities():
    lm = handle()
    with torch.no_grad():
        found = batch("w1 <mask> w3 <mask>")
        states = lm.model.hidden(found)[0, [2, 4]]
        probabilities = lm.model.logits(states).softmax(-1)
    for asked, count in ((3, 3), (1, 1), (10**6, len(WORDS))):
        answer = lm.fill_mask("w1 <mask> w3 <mask>", asked)
        assert [len(row) for row in answer] == [count] * 2
        for row, own in zip(answer, probabilities, strict=True):
            best = own.argsort(descending=True)[:count].tolist()
            assert [symbol for symbol, _ in row] == [WORDS.symbols[i] for i in best]
            assert np.allclose([p for _, p in row], own[best], atol=1e-6)
    assert [len(row) for row in lm.fill_mask("<mask>")] == [5]
    with pytest.raises(UnifiedError, match="^top must be an integer of at least 1, got 0$"):
        lm.fill_mask("<mask>", 0)


def test_symbols_that_the_softmax_leaves_out_are_no_answers():
    lm = handle()
    lm.model.symbols.scored[FIRST:] = 0
    left = int((~lm.model.symbols.left_out).sum())
    assert 0 < left < len(WORDS)
    assert {symbol for symbol, _ in lm.fill_mask("w1 <mask>", 99)[0]} == set(WORDS.symbols[:FIRST])


def test_an_ensemble_fills_nothing():
    lm, other = handle(boundary_offsets=3), handle(boundary_offsets=3)
    lm.others = (other,)
    for name in ("fill_mask", "fill_span"):
        with pytest.raises(UnifiedError, match=f"^{name} asks a single model; this is an ensemble of 2$"):
            getattr(lm, name)("w1 <mask> w3")


def test_a_span_is_filled_from_its_neighbours_alone():
    lm = handle(boundary_offsets=3)
    text = "w1 <mask><mask> w3 w5 <mask> w2"
    found = lm.fill_span(text, 2)
    assert [len(row) for row in found] == [2, 2, 2]
    with torch.no_grad():
        states = lm.model.hidden(batch(text, boundary_offsets=3))[0]
        head = lm.model.head("boundary")
        for row, before, behind, place in zip(found, (1, 1, 5), (4, 4, 7), (0, 1, 0), strict=True):
            logits = head(states[[before]], states[[behind]], torch.tensor([place]), lm.model.symbols)
            best = logits[0].softmax(-1).topk(2)
            assert [symbol for symbol, _ in row] == [WORDS.symbols[i] for i in best.indices.tolist()]
            assert np.allclose([p for _, p in row], best.values, atol=1e-6)
    assert [len(row) for row in lm.fill_span("w1 <mask> w3")] == [5]
    with pytest.raises(UnifiedError, match="a run of 4 <mask> is longer than the span-boundary head reaches: 3"):
        lm.fill_span("w1 <mask><mask><mask><mask> w2")
