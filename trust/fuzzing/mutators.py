"""Damage: of bytes, of text, of tables, and of JSON whose structure is kept but for one place."""

from __future__ import annotations

import json
import random
from typing import Any

from trust.fuzzing.reader import Mutator

_INTERESTING = (b"\0", b"\xff", b"\x80", b"\n", b"\r", b'"', b"{", b"[", b" ", b"\t", b"\x7f")


def flip(data: bytes, rng: random.Random) -> bytes:
    """Some bits are others."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8)) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwrite(data: bytes, rng: random.Random) -> bytes:
    """A few bytes are random ones, or all 0 or 255."""
    if not data:
        return data
    at, size = rng.randrange(len(data)), rng.choice((1, 2, 4, 8))
    new = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size)))
    return data[:at] + new + data[at + size :]


def cut(data: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data) + 1)]


def remove(data: bytes, rng: random.Random) -> bytes:
    """A piece is missing."""
    start, stop = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[min(stop, start + rng.choice((1, 4, 64, len(data)))) :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    """A piece is there several times."""
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.choice((1, 3, 16, 200))]
    return data[:start] + piece * rng.choice((2, 3, 50)) + data[start:]


def insert(data: bytes, rng: random.Random) -> bytes:
    """A byte that often means something is there once more."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_INTERESTING) * rng.choice((1, 1, 2, 100)) + data[at:]


def empty(data: bytes, rng: random.Random) -> bytes:
    """Nothing, or white space."""
    return rng.choice((b"", b"\n", b" ", b"\n\n\n", b"\xef\xbb\xbf", b"\0"))


BYTES: tuple[Mutator, ...] = (flip, overwrite, cut, remove, repeat, insert, empty)

#: Pieces of text that readers stumble over.
_TEXTS = (
    "\r", "\r\n", "\ufeff", "\0", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\u00b2", "\u0663", "\u200b",
    "\ufffd", "\U0010ffff", "e\u0301", "''", '"', '"""', "\\", "\t", "\t\t", ",", ";", "  ", "-", "NaN", "inf", "1e999",
    "-1", "0", "99999999999999999999", "9" * 5000, "None", "null", "<s>", "</s>", "<mask>", "<unk>", "<sentinel_0>",
    "[CLS]", "[UNK]", "#fairseq:overwrite", "-DOCSTART-", "__proto__", "{}", "%s", "{0}", "../../x", "hub:x/y",
)  # fmt: skip
_NOT_UTF8 = (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\xaf", b"\x80")


def special_text(data: bytes, rng: random.Random) -> bytes:
    """A piece of text that readers stumble over is put in."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_TEXTS).encode() + data[at:]


def special_cell(data: bytes, rng: random.Random) -> bytes:
    """One cell, the text between tabs, commas, blanks or line ends, is another."""
    ends = [-1, *(at for at, byte in enumerate(data) if byte in b"\t,; \n"), len(data)]
    number = rng.randrange(len(ends) - 1)
    return data[: ends[number] + 1] + rng.choice((*_TEXTS, "")).encode() + data[ends[number + 1] :]


def not_utf8(data: bytes, rng: random.Random) -> bytes:
    """Bytes that no UTF-8 has."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_NOT_UTF8) + data[at:]


def other_encoding(data: bytes, rng: random.Random) -> bytes:
    """The text in another encoding."""
    return data.decode("utf-8", errors="replace").encode(rng.choice(("utf-16", "utf-32", "utf-8-sig")))


def other_line_ends(data: bytes, rng: random.Random) -> bytes:
    """Lines end as on other systems, or one of them does."""
    end = rng.choice((b"\r\n", b"\r", b"\n\n", b"\r\r\n"))
    return data.replace(b"\n", end, rng.choice((-1, 1)))


def long_piece(data: bytes, rng: random.Random) -> bytes:
    """A very long word or cell, of 10 MB now and then."""
    at = rng.randrange(len(data) + 1)
    size = 10 << 20 if rng.random() < 0.02 else rng.choice((1 << 12, 1 << 17))
    return data[:at] + rng.choice((b"x", b"7", b" ", b"\n", b"\t", b",", b'"')) * size + data[at:]


def lines_moved(data: bytes, rng: random.Random) -> bytes:
    """A line is missing, there twice, or elsewhere."""
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


TEXT: tuple[Mutator, ...] = (
    special_text, special_text, special_cell, special_cell, not_utf8, other_encoding, other_line_ends, long_piece,
    lines_moved, flip, cut, remove, insert, empty,
)  # fmt: skip

#: Values of JSON, as they are written, that are wrong nearly everywhere.
_JSON_VALUES = (
    "null", "true", "false", "0", "-1", "1", "2.5", "-0.0", "1e400", "-1e400", "1e308", "NaN", "Infinity", "-Infinity",
    "9" * 5000, "-" + "9" * 5000, "1" + "0" * 400, "9223372036854775808", "18446744073709551616", '""', '" "', '"\\n"',
    '"\u00b2"', '"\u0663"', '"1"', '"\\ud800"', '"\\u0000"', '"\\u2028"', '"NaN"', '"true"', "[]", "{}", "[[]]",
    "[null]", '[""]', "[0]", '["a", "a"]', '{"a": 1, "a": 2}', '{"": null}', '{"type": "x"}', '[1, "a", null]',
    "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000, "[" * 500 + "]" * 500,
    '"' + "x" * 5000 + '"',
    "[" + "0," * 5000 + "0]", '"' + "a " * 200 + '"', "1.", ".5", "0x10", "'a'", "undefined", '"unclosed', "",
)  # fmt: skip
_NAMES = ("", " ", "id", "a\nb", "\u00b2", "\ud800", "x" * 5000, "__class__", "type", "name", "self")
_PLACEHOLDER = "\u0001here\u0001"


def places(value: Any) -> list[tuple[Any, Any]]:
    """All (container, key) of lists and objects in a value, the outermost value aside."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            found.append((one, key))
            waiting.append(one[key])
    return found


def json_value(data: bytes, rng: random.Random) -> bytes:
    """One value of a JSON text is another, is missing, is there twice, or has another name."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return special_text(data, rng)
    all_places = places(value)
    if not all_places or rng.random() < 0.02:
        return rng.choice(_JSON_VALUES).encode(errors="surrogatepass")
    holder, key = rng.choice(all_places)
    new = rng.choice(_JSON_VALUES)
    how = rng.randrange(10)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[rng.choice(_NAMES)] = holder.pop(key)
    elif how == 1:
        holder.insert(key, holder[key])
    elif how == 2:
        holder[key] = [holder[key]]
    elif how == 3:
        other_holder, other_key = rng.choice(all_places)
        text = json.dumps(other_holder[other_key])  # a copy: the value may hold the place itself
        holder[key] = json.loads(text)
    else:
        holder[key] = _PLACEHOLDER
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    return text.replace(json.dumps(_PLACEHOLDER), new).encode(errors="surrogatepass")


def json_line(data: bytes, rng: random.Random) -> bytes:
    """One line of JSON lines is damaged as :func:`json_value` does."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = json_value(lines[at], rng) if lines[at] else rng.choice(_JSON_VALUES).encode()
    return b"\n".join(lines)


#: Mutators of one JSON value and of JSON lines: their structure first.
JSON: tuple[Mutator, ...] = (
    *(json_value,) * 10,
    flip,
    cut,
    special_text,
    not_utf8,
    insert,
    empty,
    other_encoding,
    long_piece,
)
JSON_LINES: tuple[Mutator, ...] = (
    *(json_line,) * 10, flip, cut, special_text, not_utf8, insert, empty, lines_moved, other_line_ends, long_piece
)  # fmt: skip
