"""Parts that tokenizers share: white space, offsets, lists of ids, symbols of dictionaries and single marks."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from unified.data.vocabulary import APPENDED, Vocabulary
from unified.errors import UnifiedError
from unified.tokenization import original_offsets, parts_of, single_spaced, word_starts
from unified.tokenization.base import SPECIAL_SYMBOLS, concatenated, ordinary_symbols, pairs_of_integers
from unified.tokenization.symbol_tokenizer import SymbolTokenizer
from unified.tokenization.symbols import require_symbol, symbol_pieces
from unified.tokenization.wordpiece import WordPieceTokenizer


class Pieces(SymbolTokenizer):
    """Divides words into letters; the first has sentencepiece's mark in front, unless ``marked`` is False."""

    marked = True

    def encode(self, text: str) -> list[str]:
        words = ([("\u2581" if self.marked else "") + word[0], *word[1:]] for word in text.split())
        return [piece for word in words for piece in word]

    def word_start(self, symbol: str) -> bool:
        return symbol.startswith("\u2581")


def test_every_run_of_white_space_is_one_space():
    """Whatever Python takes for white space, a printable text as it is, another divided and joined."""
    spaces = [c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace()]
    assert len(spaces) > 20
    for space in spaces:
        assert single_spaced(f"a{space}b") == single_spaced(f"{space}a{space}{space}b{space}") == "a b"
        assert single_spaced(space) == ""
    drawn = random.Random(0)
    for _ in range(500):
        text = "".join(drawn.choices(["a", " ", "\u00a0", "\n", "\u200b", "é"], k=drawn.randrange(8)))
        assert single_spaced(text) == " ".join(text.split())


def test_offsets_of_a_single_spaced_text_are_led_back_to_the_text():
    """Every stretch of characters, the definition written out: the character that each end stands for."""
    drawn = random.Random(1)
    for _ in range(60):
        text = "".join(drawn.choices(["a", "b", " ", "\t"], k=drawn.randrange(1, 12)))
        shown = single_spaced(text)
        origin: list[int] = []
        for word_start, word in words_of(text):
            origin += [origin[-1] + 1] if origin else []  # the space behind the word before
            origin += range(word_start, word_start + len(word))
        pairs = [(i, j) for i in range(len(shown)) for j in range(i + 1, len(shown) + 1)]
        offsets = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        expected = [[origin[i], origin[j - 1] + 1] for i, j in pairs]
        assert original_offsets(text, offsets).tolist() == expected, text


def words_of(text: str) -> list[tuple[int, str]]:
    found, at = [], 0
    for word in text.split():
        at = text.index(word, at)
        found.append((at, word))
        at += len(word)
    return found


def test_a_text_without_words_has_no_offsets_to_lead_back():
    assert original_offsets(" \n", np.zeros((0, 2), dtype=np.int64)).shape == (0, 2)


def test_a_text_is_one_part_and_a_list_several():
    assert parts_of("a b") == ["a b"] and parts_of(("a", "b")) == ["a", "b"] and parts_of([]) == []


def test_lists_of_ids_and_of_pairs_stand_one_after_another():
    ids, sizes = concatenated([[1, 2], [], [3]])
    assert (ids.dtype, sizes.dtype) == (np.int32, np.int64)
    assert ids.tolist() == [1, 2, 3] and sizes.tolist() == [2, 0, 1]
    ids, sizes = concatenated([])
    assert ids.shape == sizes.shape == (0,)
    pairs = pairs_of_integers([[(0, 1), (1, 3)], [], [(4, 5)]])
    assert pairs.dtype == np.int64 and pairs.tolist() == [[0, 1], [1, 3], [4, 5]]
    assert pairs_of_integers([[]]).shape == (0, 2)


def test_ordinary_symbols_are_all_but_the_special_ones_of_the_library():
    assert SPECIAL_SYMBOLS == {"<s>", "<pad>", "</s>", "<unk>", *APPENDED}
    own = SymbolTokenizer(["b", "<s>", "<mask>", "a", "<sentinel_99>", "<sentinel_100>", "</s>"])
    assert ordinary_symbols(own) == ["b", "a", "<sentinel_100>"]
    for symbol in ("", "a b", " a", "\u00a0"):
        with pytest.raises(UnifiedError) as raised:
            ordinary_symbols(SymbolTokenizer(["x", symbol]))
        assert raised.value.details == (
            f"the tokenizer's piece {symbol!r} is empty or holds whitespace; dict.txt cannot hold it"
        )


def test_special_symbols_begin_a_word_and_the_unknown_one_as_the_tokenizer_says():
    vocabulary = Vocabulary(["\u2581a", "a"])
    starts = word_starts(Pieces([]), vocabulary)
    assert starts.dtype == bool and starts.shape == (len(vocabulary),)
    assert dict(zip(vocabulary.symbols[:6], starts.tolist(), strict=False)) == {
        "<s>": True, "<pad>": True, "</s>": True, "<unk>": False, "\u2581a": True, "a": False,
    }  # fmt: skip
    assert starts[6:].all()


def test_a_text_of_symbols_is_divided_at_white_space(tmp_path):
    own = SymbolTokenizer(Vocabulary(["a", "the"]).symbols)
    texts = [" a\tthe  x", "", "the"]
    ids, sizes = own.encode_ids(texts)
    assert ids.tolist() == [4, 5, 3, 5] and sizes.tolist() == [3, 0, 1]
    again, counts, offsets = own.encode_offsets(texts)
    assert again.tolist() == ids.tolist() and counts.tolist() == sizes.tolist()
    assert offsets.tolist() == [[0, 1], [2, 5], [6, 7], [0, 3]]
    assert own.encode(texts[0]) == ["a", "the", "<unk>"] and own.decode(["a", "x"]) == "a x"
    assert own.word_start("x") is True and own.native_symbols() == Vocabulary(["a", "the"]).symbols
    own.native_symbols().clear()
    assert own.native_symbols()
    own.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


# Single marks


def known(*symbols: str) -> Vocabulary:
    return Vocabulary(list(symbols))


def test_a_mark_has_a_symbol_behind_a_word_and_one_by_itself():
    own = Pieces([])
    assert symbol_pieces(own, known("\u2581a", "\u2581.", "."), ".") == [".", "\u2581."]
    assert symbol_pieces(own, known("\u2581a", "\u2581."), ".") == ["\u2581."]
    assert symbol_pieces(own, known("a"), ".") == []
    plain = WordPieceTokenizer(["[UNK]", "a", "."])
    assert symbol_pieces(plain, known("a", "."), ".") == ["."]
    divided = WordPieceTokenizer(["[UNK]", "a", "b", "##c"])
    assert symbol_pieces(divided, known("a", "b", "##c"), "bc") == ["##c"]  # the last piece alone


@pytest.mark.parametrize(
    ("symbols", "marked", "separator", "kept"),
    [
        (["\u2581;", ";"], True, ";", True),
        ([";"], True, ";", True),
        ([";"], False, ";", True),
        (["a"], True, ";", False),
        (["\u2581x", "y"], True, "xy", False),
        (["a"], False, "a", False),  # it stands in the text around it too
    ],
)
def test_a_separator_must_be_one_piece_of_its_own(symbols, marked, separator, kept):
    own = Pieces([])
    own.marked = marked
    if kept:
        require_symbol(own, known(*symbols), separator)
        return
    with pytest.raises(UnifiedError) as raised:
        require_symbol(own, known(*symbols), separator)
    said = f"the tokenizer has no piece for the separator {separator!r}; choose another symbol"
    assert str(raised.value) == said
