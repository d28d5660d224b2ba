"""Texts and words cut to a row against loops that cut one token after another, and marks of named entities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support import understanding_runs as runs
from tests.support.trained_tokenizers import byte_level_codec
from tests.unit.tasks.heads.test_tagging import spelling_codec
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.tasks.heads.encoded_texts import beyond, encode_texts, encode_words, fitting
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.passages import token_marks, token_span


def test_the_longer_of_two_texts_loses_its_end():
    """BERT's ``_truncate_seq_pair``: of equal ones the second loses a token."""
    for first in range(8):
        for second in range(8):
            for most in range(16):
                one, other = list(range(first)), list(range(second))
                while len(one) + len(other) > most:
                    (one if len(one) > len(other) else other).pop()
                found = fitting((np.arange(first), np.arange(second)), most)
                assert [part.tolist() for part in found] == [one, other], (first, second, most)
    assert [part.tolist() for part in fitting((np.arange(4),), 3)] == [[0, 1, 2]]
    assert [part.tolist() for part in fitting((np.arange(3),), 3)] == [[0, 1, 2]]


def test_texts_are_cut_to_the_row_and_what_they_lost_is_counted():
    codec = runs.codec(7)
    items = [TextItem("1", "w1 w2 w3 w4 w5"), TextItem("2", "w1 w2 w3 w4 w5 w6 w7"), TextItem("3", "w1 w2 w3", "w4 w5"),
             TextItem("4", "w1", "w4 w5 w6")]  # fmt: skip
    examples, lost = encode_texts(items, codec)
    assert [runs.symbols(example, codec) for example in examples] == [
        ["<s>", "w1", "w2", "w3", "w4", "w5", "</s>"],
        ["<s>", "w1", "w2", "w3", "w4", "w5", "</s>"],
        ["<s>", "w1", "w2", "</s>", "w4", "w5", "</s>"],
        ["<s>", "w1", "</s>", "w4", "w5", "w6", "</s>"],
    ]
    assert lost.tolist() == [0, 2, 1, 0] and lost.dtype == np.int64
    assert all(example.entities is None for example in examples)
    assert encode_texts([], codec)[1].dtype == np.int64


@pytest.mark.parametrize("cls_last", [False, True])
def test_tokens_within_named_entities_are_marked(cls_last):
    codec = replace(runs.codec(8, cls_last=cls_last), marks_entities=True)
    spans = {"text": ((0, 2), (6, 8)), "second": ((3, 8),)}
    items = [TextItem("1", "w1 w2 w3 w4", "w5 w6 w7", named_entities=spans), TextItem("2", "w1 w2", named_entities={
        "text": ((3, 5),)})]  # fmt: skip
    (pair, alone), lost = encode_texts(items, codec)
    # Of seven words five fit: the first text loses its fourth, the second its third.
    marks = [True, False, True, False, False, True, False]
    assert lost.tolist() == [2, 0]
    assert pair.entities.tolist() == ([*marks, False] if cls_last else [False, *marks])
    assert alone.entities.tolist() == ([False, True, False, False] if cls_last else [False, False, True, False])
    with pytest.raises(UnifiedError, match="^item 3 has no 'named_entities', which"):
        encode_texts([TextItem("3", "w1")], codec)


def test_marks_are_tokens_that_touch_a_span():
    rng = np.random.default_rng(1)
    for _ in range(300):
        edges = np.cumsum(rng.integers(0, 3, 12))
        offsets = edges.reshape(-1, 2)  # tokens with gaps between them, of which some are empty
        spans = [tuple(sorted(rng.integers(0, 16, 2).tolist())) for _ in range(rng.integers(3))]
        spans = [(start, stop) for start, stop in spans if start < stop]
        assert token_marks(offsets, spans).dtype == bool
        expected = np.zeros(6, dtype=bool)
        for start, stop in spans:
            touching = [i for i, (first, last) in enumerate(offsets.tolist()) if first < stop and start < last]
            expected[touching[0] if touching else 0 : touching[-1] + 1 if touching else 0] = True
            found = token_span(offsets, start, stop)
            assert found == ((touching[0], touching[-1]) if touching else None)
        assert token_marks(offsets, spans).tolist() == expected.tolist()


def test_words_are_divided_greedily():
    """Words of known numbers of pieces: as many as fit into a row, one row after another."""
    codec, rng = runs.codec(7), np.random.default_rng(2)
    for _ in range(50):
        counts = rng.integers(1, 14, rng.integers(1, 5)).tolist()
        sentences = [[f"w{i % 30}" for i in range(count)] for count in counts]
        examples, owners, divided, lost = encode_words(sentences, codec)
        expected = [(n, words[i : i + 5]) for n, words in enumerate(sentences) for i in range(0, len(words), 5)]
        shown = [runs.symbols(example, codec)[1:-1] for example in examples]
        assert list(zip(owners.tolist(), shown, strict=True)) == expected
        assert divided == sum(count > 5 for count in counts) and lost.tolist() == [0] * len(counts)
        assert lost.dtype == np.int64
        for example, words in zip(examples, shown, strict=True):
            assert example.targets["task"].output_indices[:, 0].tolist() == list(range(1, 1 + len(words)))


@pytest.mark.parametrize(("lengths", "divided", "lost"), [
    ([1, 3, 1], 0, 0), ([1, 3, 2], 1, 0), ([5], 0, 0), ([6], 1, 1), ([8], 1, 3), ([6, 1, 9], 1, 5),
])  # fmt: skip
def test_a_sentence_counts_once_whether_it_is_divided_or_loses_a_token(lengths, divided, lost):
    """Words of letters, of which each is a token, in sequences of five tokens."""
    found = encode_words([["w1"], ["a" + "b" * (length - 1) for length in lengths]], spelling_codec(7))
    assert found[2] == divided and found[3].tolist() == [0, lost]


@pytest.mark.parametrize("documents", [None, ["1", "1", "2"]])
def test_words_of_byte_level_tokenizers_begin_with_their_mark(documents):
    """But the first word of a text: of a sentence by itself, or of the document."""
    codec = byte_level_codec(12)
    sentences = [["Anna", "lives"], ["Rome", "is", "old"], ["Rome", "lives"]]
    examples, *_ = encode_words(sentences, codec, documents)
    first, second, third = ([symbol.replace("\u0120", "_") for symbol in runs.symbols(one, codec)] for one in examples)
    rome, anna = byte_level_pieces(codec, "Rome"), byte_level_pieces(codec, "Anna")
    if documents is None:
        assert first == ["<s>", *anna, "_lives", "</s>"] and second == ["<s>", *rome, "_is", "_old", "</s>"]
    else:
        assert first == second == ["<s>", *anna, "_lives", "_Rome", "_is", "_old", "</s>"]
    assert third == ["<s>", *rome, "_lives", "</s>"] and "_Rome" not in rome


def byte_level_pieces(codec: Codec, word: str) -> list[str]:
    """Pieces of a word at the beginning of a text."""
    return [codec.vocabulary.symbols[i] for i in codec.encode([word])[0]]


def test_a_word_without_pieces_is_unknown():
    codec = runs.codec(7)
    examples, *_ = encode_words([["w1", "\u200b", "w2"]], codec)
    assert runs.symbols(examples[0], codec) == ["<s>", "w1", "<unk>", "w2", "</s>"]


def test_tokens_that_words_lose_are_counted():
    assert beyond([np.arange(3), np.arange(5), np.arange(4), np.arange(9)], 4) == 1 + 5
    assert beyond([], 4) == beyond([np.arange(4)], 4) == 0
