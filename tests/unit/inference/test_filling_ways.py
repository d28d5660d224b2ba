"""Blanks of models that write in other ways or not at all, and models that fill none."""

import numpy as np
import pytest
import torch

from tests.support.tiny_models import model, vocabulary
from unified import UnifiedLM, masks
from unified.errors import UnifiedError
from unified.model.model import NO_TOKEN_HEAD
from unified.objectives.xlnet import CLS_TYPE
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

WORDS = vocabulary()
CLS, SEP, MASK = WORDS.special.begin, WORDS.special.separator, WORDS.special.mask
FIRST = WORDS.index("w0")


def handle(writes, **changes) -> UnifiedLM:
    return UnifiedLM(model(**changes), WORDS, SymbolTokenizer(WORDS.symbols), writes, None)


def best_of(logits: torch.Tensor, count: int) -> list[str]:
    return [WORDS.symbols[i] for i in logits.argsort(descending=True)[:count].tolist()]


@pytest.mark.parametrize("writes", ["nothing", "cloze", "next", "left_to_right"])
def test_a_model_fills_blanks_however_it_writes(writes):
    lm = handle(writes)
    tokens = torch.tensor([[CLS, FIRST + 1, MASK, FIRST + 3, SEP]])
    mask = masks.batch([masks.bidirectional(5)])
    with torch.no_grad():
        states = lm.model.transformer(tokens, torch.arange(5)[None], torch.zeros_like(tokens), mask)
        expected = lm.model.logits(states[0, 2:3])[0]
    ((*found,),) = lm.fill_mask("w1 <mask> w3", 4)
    assert [symbol for symbol, _ in found] == best_of(expected, 4)
    assert np.allclose([p for _, p in found], expected.softmax(-1).sort(descending=True).values[:4], atol=1e-6)


def test_a_permutation_model_is_asked_by_a_query_that_sees_all_but_the_blank():
    """The query stands at the position of the blank; what stands there instead of <mask> changes nothing."""
    lm = handle("permutation", positions="relative", token_types=3)
    ((*found,),) = lm.fill_mask("w1 <mask> w3", 4)
    content = masks.permutation([masks.GIVEN, 1, masks.GIVEN, masks.GIVEN, masks.GIVEN])
    both = masks.AttentionMask(
        query_step=torch.cat([content.query_step, content.query_stream([1]).query_step]),
        key_start=content.key_start,
        key_stop=content.key_stop,
        query_key=torch.tensor([*range(5), masks.NO_KEY]),
    )
    positions, types = torch.tensor([[0, 1, 2, 3, 4, 1]]), torch.tensor([[0, 0, 0, 0, CLS_TYPE, 0]])
    for blank in (MASK, FIRST + 7):
        tokens = torch.tensor([[FIRST + 1, blank, FIRST + 3, SEP, CLS]])
        with torch.no_grad():
            states = lm.model.transformer(tokens, positions, types, masks.batch([both]))
            expected = lm.model.logits(states[0, -1:])[0]
        assert [symbol for symbol, _ in found] == best_of(expected, 4)
        assert np.allclose([p for _, p in found], expected.softmax(-1).sort(descending=True).values[:4], atol=1e-5)


def test_a_model_without_a_token_head_is_refused_before_its_text():
    lm = handle("nothing", token_head="none")
    with pytest.raises(UnifiedError) as raised:
        lm.fill_mask("no blank here")
    assert str(raised.value) == NO_TOKEN_HEAD


@pytest.mark.parametrize("name", ["fill_mask", "fill_span"])
def test_only_a_text_is_filled_and_no_gradients_are_kept(name, monkeypatch):
    lm, seen = handle("nothing", boundary_offsets=3), []
    fill = {"fill_mask": lm.fill_mask, "fill_span": lm.fill_span}[name]
    with pytest.raises(UnifiedError) as raised:
        fill(["w1 <mask> w3"])
    assert str(raised.value).startswith("text: expected ")
    hidden = lm.model.hidden
    monkeypatch.setattr(
        lm.model, "hidden", lambda *given, **named: seen.append(torch.is_grad_enabled()) or hidden(*given, **named)
    )
    fill("w1 <mask> w3")
    assert seen == [False] and torch.is_grad_enabled()
