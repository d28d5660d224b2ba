"""Choice of ANNA's words in generated text: the most frequent ones, their share, candidates, refusals, and files."""

import json
from collections import Counter

import numpy as np
import pytest

from tests.support.locales import plain_locale
from unified.errors import UnifiedError
from unified.tokenization.anna import ALL_WORDS, AnnaTokenizer, can_be_word, surface_form, train_anna
from unified.tokenization.wordpiece import train_wordpiece


def random_lines(count, seed=0):
    """Words of two or three syllables, some of them frequent, with marks around some."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(["ka", "lo", "mi", "tu", "ne"], size=rng.integers(2, 4))) for _ in range(150)]
    words += ["U.S.", "C++", "x-ray"]
    chosen = rng.geometric(0.03, size=(count, 8)) % len(words)
    marks = [("", ""), ("", "."), ("(", ")"), ("", ",")]
    return [" ".join("{1}{0}{2}".format(words[i], *marks[rng.integers(4)]) for i in row) for row in chosen]


LINES = random_lines(150)


def ranked(chunks, pieces):
    """By definition: words that occur twice and are no piece, the most frequent first, equal ones by their letters."""
    counts = Counter(surface_form(chunk) for chunk in chunks)
    words = [
        word for word, count in counts.items() if count >= 2 and word not in pieces and any(map(str.isalnum, word))
    ]
    return sorted(words, key=lambda word: (-counts[word], word))


@pytest.mark.parametrize(("size", "share"), [(60, 0.25), (61, 0.5), (90, 0.6), (40, 0.0)])
def test_words_have_their_share_of_the_entries(size, share):
    tokenizer = train_anna(LINES, size, 1.0, share)
    count = round(share * size)
    assert len(tokenizer.words) == count and len(tokenizer.pieces) == size - count
    assert tokenizer.pieces == train_wordpiece(LINES, size - count, 1.0).entries
    chunks = [chunk for line in LINES for chunk in line.split()]
    assert tokenizer.words == ranked(chunks, tokenizer.pieces)[:count] and tokenizer.candidates == ALL_WORDS


def test_without_a_size_words_are_in_proportion_to_the_pieces():
    """Words with a hyphen are none of the pieces, of which 13 are characters and five special."""
    lines = [f"{one}-{other} {one}-{other}" for one in "abcdef" for other in "uvwxyz"]
    for options, count in (({"word_share": 0.1}, 2), ({"word_share": 0.4}, 12), ({"word_share": 0.6}, 27), ({}, 36)):
        tokenizer = train_anna(lines, **options)  # 36 words are all that there are, and 42 the share of 0.7
        assert tokenizer.pieces == train_wordpiece(lines).entries and len(tokenizer.pieces) == 18
        assert tokenizer.words == sorted({line[:3] for line in lines})[:count]


def test_candidates_may_come_from_a_finder_of_words():
    class Finder:
        description = "some words"

        def words(self, lines):
            assert lines is LINES
            return iter(["x-ray", "C++,", "C++", "once", "x-ray.", "x-ray"])

    tokenizer = train_anna(LINES, 50, 1.0, 0.04, Finder())
    assert tokenizer.words == ["x-ray", "C++"] and tokenizer.candidates == "some words"
    with pytest.raises(UnifiedError) as raised:
        train_anna(LINES, 50, 1.0, 0.06, Finder())
    assert str(raised.value) == (
        "the anna tokenizer cannot be trained: the text gives 2 words, fewer than the 3 of --vocabulary-size 50; ask "
        "for fewer entries, less --word-share or more --sample-megabytes"
    )


def test_what_wordpiece_refuses_is_told_of_the_wordpieces():
    begins = "the WordPieces of the anna tokenizer"
    cannot = "the WordPiece tokenizer cannot be trained: "
    for arguments, says in (
        (([],), f"{begins}: {cannot}there is no text"),
        ((["a b"], 20, 1.0, 0.25), f"{begins} (15 of 20 entries): {cannot}the text gives 7 entries, fewer than"),
    ):
        with pytest.raises(UnifiedError) as raised:
            train_anna(*arguments)
        assert str(raised.value).startswith(says)


@pytest.mark.parametrize(
    ("word", "possible"),
    [
        ("a", True), ("1", True), ("a" * 100, True), ("a" * 101, False), ("", False), ("...", False), ("a b", False),
        ("a\u00adb", False), ("##a", False), ("#a", True), ("<mask>", False), ("[SEP]", False), ("[sep]", True),
        ("é-", True),
    ],
)  # fmt: skip
def test_words_hold_a_letter_or_a_digit_and_look_like_no_symbol(word, possible):
    assert can_be_word(word) is possible


@pytest.mark.parametrize(("rare", "kept"), [(1, False), (2, True)])
def test_the_most_frequent_characters_of_9995_in_10000_have_pieces(rare, kept):
    assert ("\u03a9" in train_anna(["a" * 1999, "\u03a9" * rare]).pieces) is kept


def test_letters_and_digits_at_the_ends_of_a_word_are_its_own():
    letters = [character for character in map(chr, range(0x3000)) if character.isalnum()]
    assert [letter for letter in letters if surface_form(f"{letter}-{letter}") != f"{letter}-{letter}"] == []


def test_of_words_that_differ_in_their_marks_the_longest_stays_whole():
    tokenizer = AnnaTokenizer(["[UNK]", ".", ",", "'"], ["a.", "a", "'a", ".a.", "a.,"], "a test")
    for text, pieces in (
        ("a", ["a"]), ("a,", ["a", ","]), ("a.", ["a."]), (".a.", [".a."]), ("'.a.,'", ["'", ".a.", ",", "'"]),
        ("'a.,.", ["'", "a.,", "."]), ("'a.", ["'", "a."]), ("'a", ["'a"]), (".a", [".", "a"]),
    ):  # fmt: skip
        assert tokenizer.encode(text) == pieces, text


def test_a_word_has_its_characters_among_marks_that_have_one_each():
    tokenizer = AnnaTokenizer(["[UNK]", "a", "##b"], ["c++", "x-ray"], "a test")
    text = "ab ((c++)), x-ray. a"
    _, sizes, offsets = tokenizer.encode_offsets([text, "c++"])
    cuts = [text[start:stop] for start, stop in offsets[: sizes[0]].tolist()]
    assert cuts == ["a", "b", "(", "(", "c++", ")", ")", ",", "x-ray", ".", "a"]
    assert offsets[sizes[0] :].tolist() == [[0, 3]]


def test_divisions_are_forgotten_where_they_are_of_more_characters_than_shall_be_remembered():
    tokenizer = AnnaTokenizer(["[UNK]", "a"], [], "a test")
    assert tokenizer.most_remembered == 4_194_304
    tokenizer.most_remembered = 4
    for text, kept in (("ab cd", 2), ("ab e", 3), ("f", 1), ("ghi f", 2), ("j", 3), ("k", 1)):
        tokenizer.encode(text)
        assert tokenizer.remembered == kept, text


def test_a_tokenizer_is_written_and_read_as_json(tmp_path):
    tokenizer = AnnaTokenizer(["[UNK]", "é", "##b"], ["c++"], "mine")
    with plain_locale():
        tokenizer.save(tmp_path)
    path = tmp_path / "anna.json"
    content = {"candidates": "mine", "pieces": ["[UNK]", "é", "##b"], "words": ["c++"]}
    assert path.read_text(encoding="utf-8") == json.dumps(content, ensure_ascii=False, indent=0) + "\n"
    again = AnnaTokenizer.load(path)
    assert (again.candidates, again.pieces, again.words) == ("mine", tokenizer.pieces, tokenizer.words)
    assert again.statistics == {"pieces": 3, "words": 1, "word_candidates": "mine"}
    for changed, says in (
        ({"pieces": "ab"}, "pieces is not a list of strings"),
        ({"words": ["a", 1]}, "words is not a list of strings"),
        ({"words": ["##a"]}, "'##a' cannot be a word of the vocabulary"),
        ({"words": ["é"]}, "lists 'é' twice; each entry may appear once"),
        ({"more": 1}, "not an object with candidates, pieces, words; is it the anna.json of a folder?"),
    ):
        path.write_text(json.dumps(content | changed))
        with pytest.raises(UnifiedError) as raised:
            AnnaTokenizer.load(path)
        assert raised.value.details == f"{path}: {says}"
