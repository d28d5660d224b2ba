"""Messages of Protocol Buffers, field by field, without the library and without a schema."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_NUMBERS = {1: "<Q", 5: "<I"}  # wire types of fixed size; numbers with a point keep their bits


def message_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Each field's number and value, in the order of the message; a text or a message within it is bytes.

    Raises:
        IndexError, KeyError, struct.error: the bytes are no message.
    """
    at = 0
    while at < len(message):
        tag, at = variable_integer(message, at)
        number, wire_type = tag >> 3, tag & 7
        value: int | bytes
        if wire_type == 0:
            value, at = variable_integer(message, at)
        elif wire_type == 2:
            length, at = variable_integer(message, at)
            value, at = message[at : at + length], at + length
        else:
            form = _NUMBERS[wire_type]
            (value,) = struct.unpack_from(form, message, at)
            at += struct.calcsize(form)
        yield number, value


def variable_integer(data: bytes, at: int) -> tuple[int, int]:
    """The integer at an index, seven bits a byte and the lowest first, and the index behind it.

    Raises:
        IndexError: the data end before it does.
    """
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return value, at
