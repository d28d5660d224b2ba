"""Training of WordPiece vocabularies: characters that stay, sizes, refusals; settings of tokenizers."""

import json
import os
import pty
from collections import Counter

import numpy as np
import pytest

from tests.support.locales import plain_locale
from tests.support.refusals import refused
from unified.errors import UnifiedError
from unified.tokenization.wordpiece import SPECIAL_ENTRIES, WordPieceTokenizer, train_wordpiece

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


# ---------------------------------------------------------------- training


def characters_of(tokenizer):
    return {entry for entry in tokenizer.entries if len(entry) == 1}


def test_the_most_frequent_characters_that_reach_the_coverage_stay():
    rng = np.random.default_rng(0)
    for _ in range(25):
        letters = rng.choice(list("abcdefghij"), size=60, p=np.arange(10, 0, -1) / 55)
        lines = ["".join(letters[i : i + 6]) + " " for i in range(0, 60, 6)]
        counts = sorted(Counter(letters.tolist()).items(), key=lambda item: (-item[1], item[0]))
        for coverage in (0.3, 0.5, 45 / 60, 0.9995, 1.0):
            kept, total = set(), 0
            for letter, count in counts:  # by definition: until so many of the characters are reached
                if total >= coverage * 60 - 1e-9:
                    break
                kept.add(letter)
                total += count
            assert characters_of(train_wordpiece(lines, None, coverage)) == kept


@pytest.mark.parametrize(("rare", "kept"), [(1, False), (2, True)])
def test_the_most_frequent_characters_of_9995_in_10000_stay_where_nothing_is_said(rare, kept):
    assert ("\u03a9" in train_wordpiece(["a" * 1999, "\u03a9" * rare]).entries) is kept


def test_chinese_characters_are_words_of_their_own_in_training():
    assert train_wordpiece(["\u4e2d\u56fd"] * 9).entries == [*SPECIAL, "\u4e2d", "\u56fd"]


def test_entries_begin_with_special_ones_and_characters_and_pieces_are_frequent():
    tokenizer = train_wordpiece(["ab ab, abc", "xab"], None, 1.0)
    alone, inside = sorted("abcx,"), ["##a", "##b", "##c"]
    assert tokenizer.entries[: 5 + len(alone) + len(inside)] == [*SPECIAL, *alone, *inside]
    assert list(SPECIAL_ENTRIES) == SPECIAL and tokenizer.entries[13:] == ["ab"]  # all others occur once
    assert train_wordpiece(["ab ab, abc", "xab"], 14, 1.0).entries == tokenizer.entries
    assert not tokenizer.lowercase and train_wordpiece(["A"], lowercase=True).lowercase
    assert "A" in train_wordpiece(["Aé"] * 9).entries
    assert characters_of(train_wordpiece(["Aé"] * 9, lowercase=True)) == {"a", "e"}


def test_a_size_must_hold_the_characters_and_be_reached():
    lines = ["ab ab, abc", "xab"]
    says = "the WordPiece tokenizer cannot be trained: "
    assert train_wordpiece(lines, 13, 1.0).entries == train_wordpiece(lines, 14, 1.0).entries[:13]
    assert refused(train_wordpiece, lines, 12, 1.0) == (
        f"{says}12 entries do not hold the 13 characters and special symbols; ask for more entries or less "
        "--character-coverage"
    )
    assert refused(train_wordpiece, lines, 15, 1.0) == (
        f"{says}the text gives 14 entries, fewer than --vocabulary-size 15"
    )
    for nothing in ([], ["", " \u2003"]):
        assert refused(train_wordpiece, nothing) == f"{says}there is no text"


@pytest.mark.slow
def test_without_a_size_there_are_at_most_32000_entries():
    letters = list(filter(str.isalpha, map(chr, range(0x400, 0x500))))[:190]
    words = [one + other for one in letters for other in letters]
    assert len(words) > 32_000
    assert len(train_wordpiece([" ".join(words)] * 2, character_coverage=1.0).entries) == 32_000


def test_dropped_characters_become_blanks_before_training():
    lines = ["aaqaa aa"] * 20 + ["bbb"] * 20 + ["XX"] * 40 + ["z"]
    tokenizer = train_wordpiece(lines, None, 0.9)
    assert "XX" in tokenizer.entries and not set("qz") & set("".join(tokenizer.entries[5:]))
    assert "aa" in tokenizer.entries and "aaaa" not in tokenizer.entries


def test_a_terminal_shows_nothing_of_the_training():
    terminal, end = pty.openpty()
    before = os.dup(2)
    try:
        os.dup2(end, 2)
        train_wordpiece(["ab ab, abc", "xab"])
        os.write(2, b"nothing else")
        assert os.read(terminal, 100) == b"nothing else"
    finally:
        os.dup2(before, 2)
        for descriptor in (terminal, end, before):
            os.close(descriptor)


# ---------------------------------------------------------------- tokenizers


def test_entries_are_named_once_and_hold_the_unknown_one():
    assert refused(WordPieceTokenizer, ["[UNK]", "a", "b", "a"]) == (
        "the WordPiece vocabulary: lists 'a' twice; each entry may appear once"
    )
    assert refused(WordPieceTokenizer, ["a", "b"], name="x.txt") == (
        "x.txt: no [UNK] among its 2 entries; is it a WordPiece vocabulary?"
    )


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        ({}, ["A", "É", "中", "国"]),
        ({"lowercase": True}, ["a", "e", "中", "国"]),
        ({"lowercase": True, "strip_accents": False}, ["a", "é", "中", "国"]),
        ({"strip_accents": True}, ["A", "E", "中", "国"]),
        ({"split_chinese": False}, ["A", "É", "中国"]),
    ],
)
def test_letters_accents_and_chinese_characters_are_treated_as_the_settings_say(tmp_path, options, pieces):
    entries = [*SPECIAL, *"AÉaéeE中国", "中国", "##x"]
    tokenizer = WordPieceTokenizer(entries, **options)
    assert tokenizer.encode("A\u00a0É 中国") == pieces
    with plain_locale():
        tokenizer.save(tmp_path)
    again = WordPieceTokenizer.load(tmp_path / "vocab.txt")
    grown = again.with_entries(["new"])
    for one in (again, grown):
        assert one.encode("A É 中国") == pieces
        assert (one.lowercase, one.strip_accents, one.split_chinese) == (
            options.get("lowercase", False),
            options.get("strip_accents"),
            options.get("split_chinese", True),
        )
    assert grown.entries == [*entries, "new"] and grown.encode("new") == ["new"] and again.entries == entries


def test_a_stated_case_is_not_overruled(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]\na\n")
    assert not WordPieceTokenizer.load(path, False).lowercase and WordPieceTokenizer.load(path, True).lowercase
    WordPieceTokenizer(["[UNK]", "a"], True).save(tmp_path)
    assert WordPieceTokenizer.load(path).lowercase and WordPieceTokenizer.load(path, True).lowercase
    with pytest.raises(UnifiedError) as raised:
        WordPieceTokenizer.load(path, False)
    assert raised.value.details == f"{path}: lower case was asked to be False, the tokenizer's files say True"


def test_special_entries_have_the_names_of_the_vocabulary_and_a_text_is_put_together_again():
    tokenizer = WordPieceTokenizer([*SPECIAL, "a", "##b", "x"])
    assert tokenizer.native_symbols() == ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "a", "##b", "x"]
    assert tokenizer.encode("ab q") == ["a", "##b", "<unk>"] and tokenizer.decode(["a", "##b", "x", "##b"]) == "ab xb"
    flat, sizes, offsets = tokenizer.encode_offsets([" ab\t x", "", "q"])
    assert (flat.tolist(), sizes.tolist()) == ([5, 6, 7, 1], [3, 0, 1])
    assert offsets.tolist() == [[0, 1], [1, 2], [3, 4], [0, 1]]
    ids, counts = tokenizer.encode_ids([" ab\t x", "", "q"])
    assert (ids.tolist(), counts.tolist(), ids.dtype) == ([5, 6, 7, 1], [3, 0, 1], np.int32)
    assert tokenizer.word_start("a") and not tokenizer.word_start("##a")
    assert tokenizer.content["model"]["vocab"] == {entry: i for i, entry in enumerate(tokenizer.entries)}
    assert json.dumps(tokenizer.content) and tokenizer.content["added_tokens"] == []


def test_a_word_of_more_than_100_characters_is_unknown():
    tokenizer = WordPieceTokenizer(["[UNK]", "a", "##a"])
    assert tokenizer.encode("a" * 100) == ["a", *["##a"] * 99] and tokenizer.encode("a" * 101) == ["<unk>"]
