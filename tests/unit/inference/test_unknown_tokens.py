"""Unknown tokens: texts that are read again have the same ids, in windows and from folders."""

from pathlib import Path

import pytest

from tests.support.tiny_models import model
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.vocabulary import UNKNOWN, Vocabulary
from unified.generation import GenerationConfig
from unified.inference.language_model import UnifiedLM
from unified.tokenization import ordinary_symbols
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

TEXT = 9 * [
    f"the {a} cat sees a {b} dog, and the mat." for a in ("red", "big", "old") for b in ("blue", "small", "new")
]
#: Characters that the text lacks, between words, within a word and in a row.
ODD = "the \U0001f642 cat \u6f22\u9b51 sees ca\u9f98t and \u00a7 \u00a7"


def handle(kind: str) -> UnifiedLM:
    """A model that reads by a tokenizer of this kind."""
    if kind == "symbols":
        vocabulary = Vocabulary(sorted({word for line in TEXT for word in line.split()}))
        tokenizer = SymbolTokenizer(vocabulary.symbols)
    else:
        tokenizer = TokenizerSource(name=kind).train(TEXT)
        vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    own = model(words=len(vocabulary.symbols) - len(Vocabulary([]).symbols), max_positions=64)
    return UnifiedLM(own, vocabulary, tokenizer, "cloze", Path("folder"))


KINDS = ["symbols", "wordpiece", "char", "unigram", "bpe"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_with_unknown_tokens_is_read_again_as_it_was(kind):
    lm = handle(kind)
    ids = lm.encode(ODD)
    assert lm.special.unknown in ids
    assert lm.encode(lm.decode(ids, lm.unknown_text)) == ids
    assert (lm.encode(lm.decode(ids)) == ids) is (kind == "symbols")  # where <unk> is a symbol, and not five letters


def test_a_tokenizer_that_knows_all_characters_has_no_unknown_text():
    tokenizer = TokenizerSource(name="bpe", vocabulary_size=320, byte_fallback=True).train(TEXT)
    vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    assert UnifiedLM(model(), vocabulary, tokenizer, "cloze", Path("folder")).unknown_text == UNKNOWN


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_from_windows_is_read_with_its_unknown_tokens(kind):
    lm = handle(kind)
    bias = lm.model.heads["token"].bias.data
    bias -= 60  # it writes unknown tokens alone
    bias[lm.special.unknown] += 60
    source, limit = f"{ODD} {ODD}", max(len(lm.encode(ODD)) // 2, 5)
    (short,) = lm.shortened([source], GenerationConfig(beam=1, max_length=3), max_source=limit).ids
    assert short.count(lm.special.unknown) >= 2 and set(lm.pieces(short)) <= {UNKNOWN, "\u2581"}
