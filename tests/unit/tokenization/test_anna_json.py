"""ANNA's tokenizer as ``tokenizer.json``: texts are divided alike, and how words are found among marks."""

import json
import unicodedata
from itertools import product

import numpy as np
import pytest
from tokenizers import Tokenizer

from unified.tokenization.anna import MARKS, AnnaTokenizer
from unified.tokenization.anna_json import anna_json, no_anna_json
from unified.tokenization.wordpiece_files import LONGEST_WORD

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["U.S.", "U.S", "c++", "a-b", "b", "b(a", "ab", "abc.a", "中a", "a.b.", "x|y", "[z]", "n.n", "É."]
WORDS = [word for word in WORDS if word[0] not in MARKS]
PIECES = [*SPECIAL, *"a b c . , ( ) $ + - | 中 国 U S é É e z n ##a ##b ##c ##S ##é".split()]
PIECES = [piece for piece in PIECES if piece not in WORDS]
PARTS = [*"abcéÉUSX.,()$+-|zn中国 \t\u00a0\x1c\u0301", "U.S.", "c++", "a-b", "abc.a", "x|y", "[z]", "n.n", "e\u0301"]


def read(tokenizer):
    return Tokenizer.from_str(json.dumps(anna_json(tokenizer)))


def assert_alike(tokenizer, texts):
    other = read(tokenizer)
    flat, sizes = tokenizer.encode_ids(texts)
    for text, own in zip(texts, np.split(flat, np.cumsum(sizes)[:-1]), strict=True):
        assert other.encode(text).ids == own.tolist(), ascii(text)
    return flat


@pytest.mark.parametrize("words", [WORDS, WORDS[:1], ["ab"], []])
def test_random_texts_are_divided_alike(words):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(PARTS, rng.integers(0, 9))) for _ in range(1500)]
    flat = assert_alike(AnnaTokenizer(PIECES, words, "a test"), texts)
    assert not words or (flat >= len(PIECES)).sum() > 20


def is_new_punctuation(character):
    before, now = (table.category(character)[0] for table in (unicodedata.ucd_3_2_0, unicodedata))
    return before != now and "P" in (before, now)


def test_characters_of_all_kinds_are_divided_alike_beside_letters():
    """A sample of every category of Unicode, and the ends of the ranges of Chinese characters and of ASCII's marks."""
    by_category = {}
    for number in range(0x30000):
        by_category.setdefault(unicodedata.category(chr(number)), []).append(chr(number))
    rng = np.random.default_rng(1)
    sample = [
        str(c) for kind, own in by_category.items() if kind not in ("Cs", "Cn", "Co") for c in rng.choice(own, 12)
    ]
    ends = [0x4E00, 0x9FFF, 0x3400, 0x4DBF, 0x20000, 0x2A6DF, 0x2A700, 0x2B73F, 0x2B740, 0x2B81F, 0x2B920, 0x2CEAF]
    ends += [0xF900, 0xFAFF, 0x2F800, 0x2FA1F, *map(ord, "!/:@[`{~")]
    sample += [chr(number + step) for number in ends for step in (-1, 0, 1)]
    # BERT removes characters of format; it takes for punctuation what Unicode did before its version 9.
    sample = [c for c in sample if unicodedata.category(c) not in ("Cf", "Cn") and not is_new_punctuation(c)]
    pieces = list(dict.fromkeys([*SPECIAL, "a", "##a", "b", "##b", *sample]))
    pieces = [piece for piece in pieces if piece.split() == [piece]]
    assert_alike(AnnaTokenizer(pieces, ["ab"], "a test"), [f"a{c}b {c}{c}ab" for c in sample])


def test_words_that_begin_alike_are_all_found_and_the_longest_first():
    words = ["a", "ab", "abc", "abd", "b", "bcd", "a.b", "a.b.c", "a*", "a+"]
    other = read(AnnaTokenizer(SPECIAL, words, "a test"))
    for word in words:
        for text in (word, f"({word}", f"{word},", f'"({word})."'):
            assert other.encode(text).tokens.count(word) == 1, text
    two = read(AnnaTokenizer(SPECIAL, ["a.b", "a.c"], "a test"))
    assert two.encode("(a.b a.c)").tokens == ["[UNK]", "a.b", "a.c", "[UNK]"]
    tokenizer = AnnaTokenizer([*SPECIAL, *"cd.", "##a", "##b", "##c", "##d"], words, "a test")
    assert_alike(tokenizer, ["".join(letters) for size in range(1, 6) for letters in product("abcd.", repeat=size)])


def test_a_chunk_longer_than_a_word_may_be_is_unknown():
    tokenizer = AnnaTokenizer([*SPECIAL, "a", "##a"], ["b"], "a test")
    for length in (LONGEST_WORD - 1, LONGEST_WORD, LONGEST_WORD + 1):
        assert_alike(tokenizer, ["a" * length])
    assert read(tokenizer).encode("a" * (LONGEST_WORD + 1)).tokens == ["[UNK]"]


def test_only_white_space_and_control_characters_are_changed_before_words_are_found():
    steps = anna_json(AnnaTokenizer(SPECIAL, ["a"], "a test"))["normalizer"]["normalizers"]
    assert steps[1] == {
        "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False, "strip_accents": False,
        "lowercase": False,
    }  # fmt: skip


def test_pieces_are_put_together_again_as_they_are():
    other = read(AnnaTokenizer(PIECES, WORDS, "a test"))
    ids = [other.token_to_id(token) for token in ("U.S.", "a", "##b", ".", ",", "É")]
    assert other.decode(ids) == "U.S. ab . , É"
    assert other.encode("É é").tokens == ["É", "é"] and other.encode("x y").tokens == ["[UNK]", "[UNK]"]
    assert other.get_vocab() == {entry: i for i, entry in enumerate([*PIECES, *WORDS])}


@pytest.mark.parametrize("mark", MARKS)
def test_a_word_that_begins_with_a_mark_is_named(mark):
    def reason(*words):
        tokenizer = AnnaTokenizer(SPECIAL, ["a"], "a test")
        tokenizer.words = list(words)
        return no_anna_json(tokenizer)

    says = f"tokenizer.json cannot say that the word {mark + 'b'!r}, which begins with a mark, stays whole"
    assert reason("a", mark + "b", mark + "c") == says
    assert reason("a", "b" + mark, "b" + mark + "c") is None and reason() is None
