"""A sentencepiece model: its pieces by one thread, as a ``tokenizer.json``, and what such a file cannot say."""

import io
import json
import unicodedata

import numpy as np
import pytest
import sentencepiece
from tokenizers import Tokenizer

from tests.support.corpora import random_documents
from unified.errors import UnifiedError
from unified.tokenization.sentencepiece_json import drops_marks, sentencepiece_json
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece

LINES = [line for document in random_documents(60) for line in document]
WAYS = "the sentencepiece model divides words in a way that tokenizer.json cannot say"
SPACE = "the sentencepiece model keeps white space in a way that tokenizer.json cannot say"


@pytest.fixture(scope="module")
def trained() -> dict[str, SentencePieceTokenizer]:
    return {
        name: train_sentencepiece(LINES, name, None if name == "char" else 90) for name in ("unigram", "bpe", "char")
    }


@pytest.mark.parametrize("name", ["unigram", "bpe", "char"])
def test_pieces_and_texts_are_those_of_sentencepiece(trained, name):
    tokenizer, texts = trained[name], ["", " ", " the  red tree.", "Ünder naïve ☃☃ runs", *LINES[:40]]
    theirs = Tokenizer.from_str(json.dumps(sentencepiece_json(tokenizer)))
    flat, sizes = tokenizer.encode_ids(texts)
    assert [one.ids for one in theirs.encode_batch(texts)] == [
        one.tolist() for one in np.split(flat, np.cumsum(sizes)[:-1])
    ]
    for text in LINES[:5]:
        assert theirs.decode(theirs.encode(text).ids) == tokenizer.decode(tokenizer.encode(text))


def test_pieces_that_become_a_special_symbol_together_stay_apart():
    """A model whose pieces may hold marks and letters, as no model that is trained here."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a<s b<s a<un k> us> uns>"] * 5), model_writer=made, model_type="bpe", vocab_size=21,
        hard_vocab_limit=False, num_threads=1, minloglevel=3, split_by_unicode_script=False,
    )  # fmt: skip
    tokenizer = SentencePieceTokenizer(made.getvalue())
    assert tokenizer.encode("<s> <unk>") == ["\u2581", "<s", ">", "\u2581", "<un", "k>"]
    assert not differing(tokenizer, ["<s>", "<unk>", "a<s> b<unk>s", "<s><s>"])


def test_the_blank_before_a_text_is_taken_off_and_a_byte_of_a_blank_is_not():
    tokenizer = train_sentencepiece(["a b"] * 9, "bpe", 264, byte_fallback=True)
    theirs = Tokenizer.from_str(json.dumps(sentencepiece_json(tokenizer)))
    for pieces, text in ((["\u2581a", "b"], "ab"), (["\u2581", "<0x20>", "b"], " b"), (["\u2581a", "<0x20>"], "a ")):
        assert tokenizer.decode(pieces) == text
        assert theirs.decode(tokenizer.processor.piece_to_id(pieces)) == text


def test_a_model_that_says_nothing_of_bytes_has_no_fallback_to_them(trained):
    plain = sentencepiece_json(with_fields(trained["unigram"], 2, b""))
    assert plain["model"]["byte_fallback"] is False and plain == sentencepiece_json(trained["unigram"])


def differing(tokenizer: SentencePieceTokenizer, texts: list[str]) -> list[str]:
    """Texts that the tokenizer.json divides in another way than the model."""
    theirs = Tokenizer.from_str(json.dumps(sentencepiece_json(tokenizer)))
    flat, sizes = tokenizer.encode_ids(texts)
    own = np.split(flat, np.cumsum(sizes)[:-1])
    return [
        text for text, one, ids in zip(texts, theirs.encode_batch(texts), own, strict=True) if one.ids != ids.tolist()
    ]


def test_marks_are_dropped_where_the_model_replaces_characters_and_the_text_is_decomposed():
    """Random Latin letters with accents: alike in the form NFC always, and in NFD where nothing is replaced."""
    rng = np.random.default_rng(0)
    letters = [chr(code) for first, last in ((0xC0, 0x180), (0x1E00, 0x1F00)) for code in range(first, last)]
    composed = ["".join(rng.choice(letters, 4)) for _ in range(200)]
    decomposed = [unicodedata.normalize("NFD", text) for text in composed]
    lines = [*LINES, " ".join(letters), " ".join(decomposed)]
    plain = train_sentencepiece(lines, "char")
    assert not drops_marks(plain) and not differing(plain, [*composed, *decomposed])
    for settings in (
        {"lowercase": True},
        {"normalization": "nmt_nfkc"},
        {"normalization": "nmt_nfkc", "lowercase": True},
    ):
        replacing = train_sentencepiece(lines, "char", **settings)
        assert drops_marks(replacing) and differing(replacing, decomposed)
        assert not differing(replacing, composed)


def test_many_texts_are_encoded_by_one_thread(trained, monkeypatch):
    """Processes share the work; the threads of a library would only take each other's cores."""
    tokenizer, asked = SentencePieceTokenizer(trained["char"].model), []

    class Noted:
        def encode(self, texts, **options):
            asked.append(options.get("num_threads"))
            return trained["char"].processor.encode(texts, **options)

    monkeypatch.setattr(tokenizer, "processor", Noted())
    assert tokenizer.encode_ids(LINES[:3])[0].tolist() == trained["char"].encode_ids(LINES[:3])[0].tolist()
    assert len(tokenizer.encode_offsets(LINES[:3])[0]) > 3 and asked == [1, 1]


def with_fields(tokenizer: SentencePieceTokenizer, number: int, fields: bytes) -> SentencePieceTokenizer:
    """A copy with other fields in the message of that number: 2 for the training settings, 3 for the normalizer."""
    return SentencePieceTokenizer(tokenizer.model + bytes([number << 3 | 2, len(fields)]) + fields)


@pytest.mark.parametrize(
    ("message", "fields", "says"),
    [
        (3, bytes([3 << 3, 0]), SPACE),  # no space before a text
        (3, bytes([4 << 3, 0]), SPACE),  # spaces at ends and in a row stay
        (3, bytes([5 << 3, 0]), SPACE),  # spaces are not written as U+2581
        (2, bytes([0xC0, 0x01, 1]), WAYS),  # the space stands behind a word, field 24
        (2, bytes([3 << 3, 3]), WAYS),  # pieces are whole words
    ],
)
def test_what_a_tokenizer_json_cannot_say_is_refused(trained, message, fields, says):
    with pytest.raises(UnifiedError) as raised:
        sentencepiece_json(with_fields(trained["unigram"], message, fields))
    assert str(raised.value) == says


def test_what_is_usual_may_be_said_or_not(trained):
    """Each of the three fields of the normalizer is true where it is missing."""
    usual = bytes([3 << 3, 1, 4 << 3, 1, 5 << 3, 1])
    plain = sentencepiece_json(with_fields(trained["char"], 3, b""))
    assert plain == sentencepiece_json(with_fields(trained["char"], 3, usual))
