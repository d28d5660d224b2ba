"""Vectors of texts against one forward pass for each text."""

import pytest
import torch
from torch.nn.functional import normalize

from tests.support.tiny_models import model, vocabulary
from unified import UnifiedLM, masks
from unified.errors import UnifiedError
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

WORDS = vocabulary()
CLS, SEP = WORDS.special.begin, WORDS.special.separator
TEXTS = ["w1 w5 w3 w2", "w7", "", "w4 w0 w9", "w7 w7 w7 w7 w7 w7"]


def handle(**changes) -> UnifiedLM:
    return UnifiedLM(model(**changes), WORDS, SymbolTokenizer(WORDS.symbols), "nothing", None)


@torch.no_grad()
def by_hand(lm, text, pooling, limit=None):
    tokens = torch.tensor([[CLS, *lm.encode(text)[:limit], SEP]])
    indices = torch.arange(tokens.size(1))[None]
    mask = masks.batch([masks.bidirectional(tokens.size(1))])
    states = lm.model.transformer(tokens, indices, torch.zeros_like(tokens), mask)[0]
    return states.mean(0) if pooling == "mean" else states[0]


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_a_vector_is_the_mean_of_the_states_or_that_of_the_first_symbol(pooling, batch_size):
    lm = handle()
    for normalized in (True, False):
        found = lm.embed(TEXTS, pooling=pooling, normalize=normalized, batch_size=batch_size)
        wanted = torch.stack([by_hand(lm, text, pooling) for text in TEXTS])
        wanted = normalize(wanted, dim=-1) if normalized else wanted
        torch.testing.assert_close(torch.as_tensor(found), wanted, rtol=1e-4, atol=1e-5)


def test_only_the_first_tokens_are_read_where_that_is_asked_for():
    lm = handle()
    found = torch.as_tensor(lm.embed(TEXTS, max_tokens=2, normalize=False))
    wanted = torch.stack([by_hand(lm, text, "mean", 2) for text in TEXTS])
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_texts_that_are_too_long_and_other_poolings_are_refused():
    lm = handle()
    lm.embed(["w1 " * 46])  # 48 positions
    with pytest.raises(UnifiedError) as raised:
        lm.embed(["w1", "w1 " * 47])
    assert str(raised.value) == (
        "texts[1] has 47 tokens, the model reads 46 beside its special symbols; max_tokens=46 reads the first ones of "
        "such texts"
    )
    lm.embed(["w1 " * 47], max_tokens=46)
    with pytest.raises(UnifiedError, match=r"^pooling must be one of mean, cls, got 'men' \(did you mean 'mean'\?\)$"):
        lm.embed(["w1"], pooling="men")
    with pytest.raises(UnifiedError, match="^max_tokens must be an integer of at least 0, got -1$"):
        lm.embed(["w1"], max_tokens=-1)
