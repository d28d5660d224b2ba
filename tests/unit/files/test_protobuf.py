"""Messages of Protocol Buffers are read field by field, as their format defines them."""

from __future__ import annotations

import io
import random
import struct

import pytest
import sentencepiece

from unified.files.protobuf import message_fields, variable_integer


def variable(number: int) -> bytes:
    """Base 128, the lowest seven bits first, as the format's documentation defines it."""
    digits = []
    while True:
        number, digit = divmod(number, 128)
        digits.append(digit + 128 * (number > 0))
        if not number:
            return bytes(digits)


def test_variable_integers_are_numbers_to_the_base_128():
    assert variable_integer(b"\x96\x01", 0) == (150, 2)  # the example of the format's documentation
    rng = random.Random(1)
    for number in (0, 1, 127, 128, 129, 255, 256, 16383, 16384, 2**64 - 1, *(rng.getrandbits(60) for _ in range(50))):
        data = variable(number)
        assert variable_integer(data, 0) == (number, len(data))
        assert variable_integer(b"\xff\x80" + data + b"\x05", 2) == (number, 2 + len(data))
        with pytest.raises(IndexError):
            variable_integer(data[:-1], 0)


def test_a_model_of_sentencepiece_has_the_pieces_and_scores_that_its_library_reads():
    """Against the library: field 1 of a model is a piece, which has a text, a score, and a type unless it is normal."""
    written = io.BytesIO()
    sentences = (f"the cat {i} sat on the mat {i * i} über" for i in range(40))
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=sentences, model_writer=written, vocab_size=40, num_threads=1, minloglevel=2
    )
    library = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    fields = list(message_fields(written.getvalue()))
    pieces = [dict(message_fields(value)) for number, value in fields if number == 1]
    assert [piece[1].decode() for piece in pieces] == [library.IdToPiece(i) for i in range(40)]
    scores = [struct.unpack("<f", struct.pack("<I", piece[2]))[0] for piece in pieces]
    assert scores == [library.GetScore(i) for i in range(40)]
    assert [i for i, piece in enumerate(pieces) if piece.get(3) == 3] == [i for i in range(40) if library.IsControl(i)]
    assert {number for number, _ in fields} >= {1, 2, 3}


def test_numbers_of_fixed_size_keep_their_bits():
    single, double = struct.pack("<f", 1.5), struct.pack("<d", -2.25)
    message = b"\x0d" + single + b"\x11" + double + b"\x1a\x03abc" + b"\x20\x07" + b"\xfd\xff\x03" + single
    assert list(message_fields(message)) == [
        (1, int.from_bytes(single, "little")), (2, int.from_bytes(double, "little")), (3, b"abc"), (4, 7),
        (8191, int.from_bytes(single, "little")),
    ]  # fmt: skip
    assert list(message_fields(b"")) == []


@pytest.mark.parametrize(
    ("message", "error"),
    [(b"\x0b", KeyError), (b"\x0d\x00", struct.error), (b"\x08", IndexError), (b"\x80", IndexError)],
)
def test_what_is_no_message_is_an_error(message, error):
    with pytest.raises(error):
        list(message_fields(message))
