"""What a loaded model is asked for, on a card that only pretends: the answers are those of a CPU."""

import numpy as np
import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.tiny_models import model, vocabulary
from tests.support.understanding_runs import assert_near
from unified import UnifiedLM
from unified.evaluation.patterns import Sampling
from unified.evaluation.scorings import SCORINGS
from unified.evaluation.token_scores import token_scores
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

TEXTS = ["w1 w5 w3 w2", "w7 w7", "w4 w0 w9"]
ASKED = {
    "blanks": lambda lm: [list(guess) for blank in lm.fill_mask("w1 <mask> w3 <mask>") for guess in blank],
    "features": lambda lm: [torch.as_tensor(lm.embed(TEXTS, pooling=how)).tolist() for how in ("mean", "cls")],
    "texts": lambda lm: lm.generate(TEXTS, beam=2, max_length=6),
    "texts that are drawn": lambda lm: lm.generate(TEXTS, sampling=True, top_k=4, seed=3, max_length=6),
    "scores of targets": lambda lm: lm.score(TEXTS, ["w2 w2", "w3", "w1 w9 w8"]),
    **{
        f"scores of tokens, {name}": lambda lm, scoring=scoring: [
            one.log_probs.tolist()
            for one in token_scores(
                lm, [np.array(lm.encode(text)) for text in TEXTS], scoring, sampling=Sampling(draws=2, seed=5)
            )
        ]
        for name, scoring in SCORINGS.items()
    },
}


def handle(writes: str) -> UnifiedLM:
    changes = {"positions": "relative", "token_types": 3} if writes == "permutation" else {}
    words = vocabulary()
    return UnifiedLM(model(**changes), words, SymbolTokenizer(words.symbols), writes, None)


#: Those that read a token at the symbol before it, which query streams cannot.
ONE_SIDED = {"scores of tokens, shifted", "scores of tokens, infilling"}


@pytest.mark.parametrize(
    ("writes", "asked"),
    [("left_to_right", asked) for asked in ASKED]
    + [("permutation", asked) for asked in ASKED if asked not in ONE_SIDED],
)
def test_a_model_on_a_card_answers_as_on_a_cpu(writes, asked):
    expected = ASKED[asked](handle(writes))
    with PretendCard():
        lm = handle(writes)
        lm.model.to(DEVICE)
        assert_near(ASKED[asked](lm), expected)
