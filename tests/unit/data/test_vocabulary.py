"""Vocabularies against fairseq's Dictionary, and what is refused."""

import numpy as np
import pytest

from tests.support.locales import plain_locale
from tests.support.refusals import refused
from unified.data.vocabulary import APPENDED, MASK, SENTINELS, Vocabulary
from unified.errors import UnifiedError

Dictionary = pytest.importorskip("fairseq.data").Dictionary

SYMBOLS = ["▁the", "##s", "é", "…", "<0x0A>", "#fairseq", "a" * 50, "12"]


def test_fairseq_gives_every_symbol_the_same_id(tmp_path):
    ours = Vocabulary(SYMBOLS, counts=list(range(8, 0, -1)))
    ours.save(tmp_path / "dict.txt")
    theirs = Dictionary.load(str(tmp_path / "dict.txt"))
    assert theirs.symbols == ours.symbols
    assert theirs.count == ours.counts
    assert (theirs.bos(), theirs.pad(), theirs.eos(), theirs.unk()) == (0, 1, 2, 3)
    for symbol in [*ours.symbols, "missing"]:
        assert ours.index(symbol) == theirs.index(symbol)


def test_dictionaries_of_fairseq_preprocess_get_mask_and_sentinels_at_the_end(tmp_path):
    theirs = Dictionary()
    for symbol in SYMBOLS:
        theirs.add_symbol(symbol, n=3)
    theirs.finalize(padding_factor=8)
    theirs.save(str(tmp_path / "dict.txt"))
    ours = Vocabulary.load(tmp_path / "dict.txt")
    assert ours.symbols == theirs.symbols + list(APPENDED)
    assert ours.special.mask == len(theirs) and ours.special.first_sentinel == len(theirs) + 1
    assert len(SENTINELS) == ours.special.sentinel_count == 100


def test_a_dictionary_that_is_a_link_stays_one(tmp_path):
    (tmp_path / "dict.txt").symlink_to("other.txt")
    Vocabulary(["a"]).save(tmp_path / "dict.txt")
    assert (tmp_path / "dict.txt").is_symlink() and Vocabulary.load(tmp_path / "other.txt").symbols[4] == "a"


def test_loading_what_was_saved_changes_nothing(tmp_path):
    first = Vocabulary(SYMBOLS, counts=[5] * 8)
    with plain_locale():
        first.save(tmp_path / "dict.txt")
        second = Vocabulary.load(tmp_path / "dict.txt")
    assert (second.symbols, second.counts) == (first.symbols, first.counts)
    assert second.special == first.special


def test_symbols_that_are_appended_are_part_of_the_vocabulary_and_not_of_its_list():
    for symbols, listed in (([], 4), (["a", "b"], 6), (["a", MASK], 6), (["a", *APPENDED], 5 + len(APPENDED))):
        vocabulary = Vocabulary(symbols)
        assert vocabulary.listed == listed
        assert len(vocabulary) == len(vocabulary.symbols) == 4 + len({*symbols, *APPENDED})


def test_what_is_not_counted_counts_as_one():
    assert Vocabulary(["a", "b"]).counts == [1] * (4 + 2 + len(APPENDED))
    assert Vocabulary(["a", MASK], [7, 9]).counts == [1] * 4 + [7, 9] + [1] * len(SENTINELS)


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_symbols_may_hold_what_python_takes_for_the_end_of_a_line(tmp_path, character):
    symbols = ["a", f"b{character}", f"{character}c", character, f"d{character}e"]
    Vocabulary(symbols).save(tmp_path / "dict.txt")
    assert Vocabulary.load(tmp_path / "dict.txt").symbols == Vocabulary(symbols).symbols


def test_ordinary_symbols_are_exactly_those_that_are_not_special():
    vocabulary = Vocabulary(SYMBOLS)
    special = vocabulary.special
    assert vocabulary.symbols[special.ordinary_start : special.ordinary_stop] == SYMBOLS
    assert vocabulary.symbols[special.mask] == MASK
    for i, sentinel in enumerate(SENTINELS):
        assert vocabulary.symbols[special.first_sentinel + i] == sentinel
    names = [vocabulary.symbols[i] for i in (special.begin, special.pad, special.separator, special.unknown)]
    assert names == ["<s>", "<pad>", "</s>", "<unk>"]


MARKERS = [f"[unused{i}]" for i in range(1, 9)]


@pytest.mark.parametrize("symbols", [["a", MASK, "b"], ["a", MASK, *MARKERS], ["a", *APPENDED, "b"], MARKERS, [MASK]])
def test_few_symbols_may_stand_behind_the_mask(symbols):
    vocabulary = Vocabulary(symbols)
    assert vocabulary.symbols[: 4 + len(symbols)][4:] == symbols
    assert vocabulary.special.mask == vocabulary.special.ordinary_stop == vocabulary.index(MASK)


@pytest.mark.parametrize(
    ("symbols", "says"),
    [
        ([MASK, "a"], "lists '<mask>' before most other symbols, and random tokens are drawn from those before it"),
        (["a", MASK, *MARKERS, "b", "c"], "lists '<mask>' before most other symbols"),
        (["a", *APPENDED[:2], "b", "c"], "lists '<mask>' before most other symbols"),
        (["a", "<sentinel_7>", "b", "c"], "lists '<sentinel_7>' before most other symbols"),
        (["a", "b", "<sentinel_7>"], "does not list '<sentinel_7>' directly behind '<sentinel_6>'"),
        (["a", "<sentinel_0>", "b"], "does not list '<sentinel_1>' directly behind '<sentinel_0>'"),
        (["a", *SENTINELS[:-1], "b"], "does not list '<sentinel_99>' directly behind '<sentinel_98>'"),
        (["a", "<sentinel_1>", "<sentinel_0>"], "does not list '<sentinel_1>' directly behind '<sentinel_0>'"),
    ],
)
def test_special_symbols_among_the_words_are_refused_with_their_file(tmp_path, symbols, says):
    """Random tokens would be few, or a sentinel's id another symbol's, without a word."""
    (tmp_path / "dict.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols))
    said = refused(Vocabulary.load, tmp_path / "dict.txt")
    assert said.startswith(f"{tmp_path}/dict.txt: the vocabulary {says}") and said.endswith("folder again")


def test_encode_is_index_of_each_piece():
    vocabulary = Vocabulary(SYMBOLS)
    ids = vocabulary.encode(["é", "nowhere", "<mask>", "</s>"])
    assert ids.dtype == np.int64
    assert ids.tolist() == [6, 3, 12, 2]
    assert vocabulary.encode([]).shape == (0,)


def test_one_text_in_place_of_pieces_is_refused():
    """Its characters would be looked up, and nearly all are unknown."""
    says = "pieces: expected a list of texts, got one text; put it in a list"
    assert refused(Vocabulary(["the", "t"]).encode, "the") == says
    assert refused(Vocabulary, "the") == says.replace("pieces", "symbols")
    assert refused(Vocabulary, ["the", "t"], [1]) == "the vocabulary has 2 symbols and 1 counts"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1\nb\n", "line 2: expected 'symbol count'"),
        (b"a 1\n\nb 2\n", "line 2: expected 'symbol count'"),
        (b"a one\n", "line 1: expected 'symbol count', got 'a one'"),
        (b"a 1\na 2\n", "'a' twice"),
        (b"<pad> 1\n", "'<pad>' twice"),
        (b"a 1\n\xff 2\n", "not UTF-8 at byte 4"),
    ],
)
def test_damaged_dictionaries(tmp_path, content, message):
    (tmp_path / "dict.txt").write_bytes(content)
    with pytest.raises(UnifiedError, match=message):
        Vocabulary.load(tmp_path / "dict.txt")


def test_missing_dictionary(tmp_path):
    with pytest.raises(UnifiedError, match=r"dict\.txt: no such dictionary"):
        Vocabulary.load(tmp_path / "dict.txt")
