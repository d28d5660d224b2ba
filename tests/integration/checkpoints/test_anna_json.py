"""ANNA's tokenizer leaves with a tokenizer.json that divides texts alike."""

from __future__ import annotations

import json
import lzma
import unicodedata

import numpy as np
import pytest
from tokenizers import Tokenizer

from unified.tokenization.anna import AnnaTokenizer, train_anna
from unified.tokenization.anna_json import anna_json, no_anna_json

WORDS = ["U.S.", "U.S", "Ph.D.", "c++", "a-b", "b", "(c)a", "b(a", "ab", "abc.a", "中a", "a.b.", "(a"]
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] a c . , ( ) $ + - 中 U S P h D ##a ##b ##c ##S".split()
#: What random chunks are made of: letters, marks of a sentence, other punctuation, white space, words.
PARTS = [*"abcUS.,()$+-中 \t\u00a0\x1c", "U.S.", "Ph.D", "c++", "a-b", "abc.a", "b(a"]


def divided(tokenizer: AnnaTokenizer, texts: list[str]) -> list[tuple[list[int], list[int]]]:
    """Ids of each text by the tokenizer and by its tokenizer.json."""
    theirs = Tokenizer.from_str(json.dumps(anna_json(tokenizer)))
    flat, sizes = tokenizer.encode_ids(texts)
    ids = [one.tolist() for one in np.split(flat, np.cumsum(sizes)[:-1])]
    return [(mine, other.ids) for mine, other in zip(ids, theirs.encode_batch_fast(texts), strict=True)]


def test_random_texts_are_divided_alike():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(PARTS, rng.integers(0, 9))) for _ in range(4000)]
    tokenizer = AnnaTokenizer(PIECES, [word for word in WORDS if word[0] != "("], "a test")
    for text, (mine, theirs) in zip(texts, divided(tokenizer, texts), strict=True):
        assert mine == theirs, text
    assert all(divided(AnnaTokenizer(PIECES, [], "no words"), texts[:50]))


@pytest.mark.slow
def test_ten_thousand_real_lines_are_divided_alike(unified_data):
    """But for characters that BERT removes, here spaces and joiners of no width beside a word that stays whole."""
    with lzma.open(unified_data / "pretrain_wiki" / "valid.jsonl.xz", "rt", encoding="utf-8") as stream:
        articles = [json.loads(line)["text"] for line in stream.readlines(4_000_000)]
    lines = [line for article in articles for part in article.splitlines() for line in part.split(". ") if line.strip()]
    assert len(lines) > 10_000
    tokenizer = train_anna(lines[::6], 3000)
    assert len(tokenizer.words) == 2100
    pairs = zip(lines[:10_000], divided(tokenizer, lines[:10_000]), strict=True)
    differing = [line for line, (mine, theirs) in pairs if mine != theirs]
    assert len(differing) <= 10
    assert all(any(unicodedata.category(character) == "Cf" for character in line) for line in differing)


def test_a_word_that_begins_with_a_mark_cannot_be_said():
    reason = no_anna_json(AnnaTokenizer(PIECES, WORDS, "a test"))
    assert reason == "tokenizer.json cannot say that the word '(c)a', which begins with a mark, stays whole"
