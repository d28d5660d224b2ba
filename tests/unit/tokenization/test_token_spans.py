"""Offsets of tokens, and the tokens that spans of characters belong to."""

import itertools
import json
import lzma
import unicodedata

import numpy as np
import pytest
from tokenizers import Tokenizer, normalizers

from tests.support.annotators import Patterns, tokens_of_spans
from tests.support.corpora import random_documents
from tests.support.trained_tokenizers import ODD, TOKENIZERS, trained_tokenizers
from unified.corpus.annotate import token_spans
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.vocabulary import UNKNOWN
from unified.tokenization import single_spaced
from unified.tokenization.json_tokenizer import JsonTokenizer
from unified.tokenization.wordpiece import train_wordpiece


def texts_with(offsets, sizes):
    return np.split(offsets, np.cumsum(sizes)[:-1])


@pytest.mark.parametrize("kind", [*TOKENIZERS, "byte_fallback", "uncased"])
def test_offsets_keep_their_promises(kind):
    texts = ODD + [line for document in random_documents(40, seed=1) for line in document]
    flat, sizes, offsets = trained_tokenizers()[kind].encode_offsets(texts)
    expected = trained_tokenizers()[kind].encode_ids(texts)
    assert np.array_equal(flat, expected[0]) and np.array_equal(sizes, expected[1])
    assert offsets.dtype == np.int64 and offsets.shape == (len(flat), 2)
    for text, own in zip(texts, texts_with(offsets, sizes), strict=True):
        assert (own[:, 0] < own[:, 1]).all() and (np.diff(own, axis=0) >= 0).all()
        assert own.size == 0 or (own.min() >= 0 and own.max() <= len(single_spaced(text)))


def written(cuts: list[str], pieces: list[str]) -> list[str]:
    """Cuts of a text as pieces are written, with sentencepiece's space; one that is unknown is so there, too."""
    pairs = zip(cuts, pieces, strict=True)
    return [UNKNOWN if piece == UNKNOWN else cut.replace(" ", "\u2581") for cut, piece in pairs]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_offsets_cut_the_pieces_out_of_the_text(kind):
    tokenizer = trained_tokenizers()[kind]
    for text in [line for document in random_documents(40, seed=2) for line in document]:
        _, _, offsets = tokenizer.encode_offsets([text])
        cuts = [text[start:stop] for start, stop in offsets.tolist()]
        pieces = tokenizer.encode(text)
        if kind in ("wordpiece", "anna"):
            assert written(cuts, pieces) == [piece.removeprefix("##") for piece in pieces]
        elif pieces[0] == "\u2581":  # the space put before a text: no character is its own
            assert written(cuts[1:], pieces[1:]) == pieces[1:]
        else:
            assert cuts[0] == pieces[0][1:]
            assert written(cuts[1:], pieces[1:]) == pieces[1:]


#: Letters with and without accents, vowel signs, marks alone, characters that are taken out, and spaces.
MARKED = ["e", "é", "e\u0301", "o\u031b\u0309", "न", "हू", "ท", "ที่", "\u0301", "x", "\u200b", "漢", ".", " ", " "]


def marked_texts(count: int) -> list[str]:
    rng = np.random.default_rng(6)
    return ["", "\u0301", *("".join(rng.choice(MARKED, rng.integers(1, 20))) for _ in range(count))]


@pytest.mark.parametrize("kind", ["uncased", "stripping json"])
def test_accents_that_are_taken_off_go_with_the_token_in_front(kind):
    """Beside the offsets of the library ``tokenizers``, which leave them out."""
    own = train_wordpiece(["e o x न ह र ท 漢 . e o x न ह र ท"] * 3, lowercase=True)
    plain = Tokenizer.from_str(json.dumps(own.content))
    if kind != "uncased":
        plain.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
        own = JsonTokenizer(json.loads(plain.to_str()), {"[UNK]": "<unk>"})
    texts = [single_spaced(text) for text in marked_texts(300)]
    ids, sizes, offsets = own.encode_offsets(texts)
    assert np.array_equal(ids, own.encode_ids(texts)[0]) and own.encode_offsets([])[2].shape == (0, 2)
    more = 0
    for text, found in zip(texts, texts_with(offsets, sizes), strict=True):
        library = np.array(plain.encode(text).offsets).reshape(-1, 2)
        assert np.array_equal(found[:, 0], library[:, 0]) and (np.diff(found, axis=0) >= 0).all()
        covered = {i for start, stop in library.tolist() for i in range(start, stop)}
        marks = [i for i, one in enumerate(text) if unicodedata.category(one) == "Mn" and i not in covered]
        for stop, before in zip(found[:, 1].tolist(), library[:, 1].tolist(), strict=True):
            expected = next(i for i in itertools.count(before) if i not in marks)
            assert stop == expected
            more += stop > before
    assert more > 200


def assert_spans_are_the_definition(tokenizer, texts, spans):
    _, sizes, offsets = tokenizer.encode_offsets(texts)
    found = token_spans(spans, offsets, sizes)
    assert found.tokens.dtype == np.int32 and len(found.sizes) == len(texts)
    for i, own in enumerate(np.split(found.tokens, np.cumsum(found.sizes)[:-1])):
        expected = tokens_of_spans(spans[spans[:, 0] == i, 1:].tolist(), texts_with(offsets, sizes)[i].tolist())
        assert own.reshape(-1, 2).tolist() == [list(span) for span in expected], texts[i]


@pytest.mark.parametrize("kind", [*TOKENIZERS, "byte_fallback", "uncased"])
def test_a_token_belongs_to_a_span_where_a_character_does(kind):
    rng = np.random.default_rng(3)
    texts = [single_spaced(text) for text in ODD]
    texts += [line for document in random_documents(20, seed=3) for line in document]
    spans = []
    for i, text in enumerate(texts):
        bounds = np.unique(rng.integers(0, len(text) + 1, size=8)).tolist()
        spans += [(i, start, stop) for start, stop in zip(bounds[:-1], bounds[1:], strict=True)]
    assert_spans_are_the_definition(trained_tokenizers()[kind], texts, np.array(spans))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unigram", "wordpiece", "anna"])
def test_spans_of_real_text(unified_data, kind):
    with lzma.open(unified_data / "pretrain_wiki" / "valid.jsonl.xz", "rt", encoding="utf-8") as stream:
        lines = [line for _ in range(12) for line in json.loads(next(stream))["text"].split("\n")]
    texts = [single_spaced(line)[:400] for line in lines if line.strip()][:150]
    share = {"word_share": 0.2} if kind == "anna" else {}
    tokenizer = TokenizerSource(kind, vocabulary_size=1500, **share).train(texts)
    spans = Patterns.spans("entities", texts)
    assert len(spans) > 300
    assert_spans_are_the_definition(tokenizer, texts, spans)


def test_no_span_and_no_token():
    none = np.zeros((0, 3), dtype=np.int64)
    found = token_spans(none, np.array([[0, 2], [2, 3]]), np.array([0, 2, 0]))
    assert found.tokens.tolist() == [] and found.sizes.tolist() == [0, 0, 0]
    found = token_spans(np.array([[0, 0, 1], [2, 0, 5]]), np.zeros((0, 2), dtype=np.int64), np.array([0, 0, 0]))
    assert found.sizes.tolist() == [0, 0, 0]
