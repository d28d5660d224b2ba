"""Patterns of parts that are removed from inside a sentence: addresses, paths and noise."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

_URL = re.compile(r"\b(?:(?:https?|ftp)://|www\.)[^\s<>\"]*[^\s<>\".,;:!?'()\[\]{}”’»]", re.IGNORECASE)

_NAME = r"[\w.+@%~-]"  # a character of a file's name, and one that may be its last
_LAST = r"[\w+@%~-]"
_PATH = re.compile(
    # /usr/local/bin, but not /ˈwɪki/ (one name between two slashes is a pronunciation), and/or, 9/11
    rf"(?<![^\s(\[\"'<])(?:/(?:{_NAME}+/)+{_NAME}*{_LAST}/?"
    rf"|(?:~|\.\.?)/(?:{_NAME}+/)*{_NAME}*{_LAST}/?"  # ~/notes, ../src/a.c
    r"|[A-Za-z]:\\[^\s\"<>|]*[^\s\"<>|.,;:!?)\]]"  # C:\Windows
    r"|\\\\[\w.-]+\\[^\s\"<>|]*[^\s\"<>|.,;:!?)\]])"  # \\server\share
)

_ENTITY = re.compile(r"&(?:[A-Za-z]\w{1,30}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
#: Tags, and runs of one symbol ("-----", "=====", "......"); a blank takes their place.
_SPACED = re.compile(
    r"</?[A-Za-z][\w:-]*(?:\s+[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))*\s*/?>|<!--.{0,1000}?-->"
    r"|([^\w\s.!?])\1{3,}|([.!?])\2{5,}"
)
#: References, brackets with nothing inside, and characters nobody sees; nothing takes their place.
_GLUED = re.compile(
    r"\s?(?:\[(?:\d{1,3}|edit|update|citation needed)\]|\(\s*\)|\[\s*\]|\{\s*\})"
    "|[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufffd\ue000-\uf8ff]"
)
#: Depth of nesting to strip: removing a part may leave more to remove, as in "([1])" and "&lt;br&gt;".
_DEEPEST = 20


def strip_urls(sentence: str) -> str:
    """Removes addresses that begin with ``http://``, ``https://``, ``ftp://`` or ``www.``; marks behind them stay."""
    return _strip(_URL, "", sentence)


def strip_paths(sentence: str) -> str:
    """Removes paths of files, Unix's (two names or more, or with ``~`` or ``.`` first) and Windows'."""
    return _strip(_PATH, "", sentence)


def strip_noise(sentence: str) -> str:
    """The text without markup; empty where no letter or digit is left.

    Markup is tags, entities (resolved), references like [12], empty brackets, repeats of one symbol and invisible
    characters.
    """
    for _ in range(_DEEPEST):
        previous = sentence
        sentence = _strip(_ENTITY, _resolved, sentence)
        sentence = _strip(_SPACED, " ", _strip(_GLUED, "", sentence))
        if sentence == previous:
            break
    return sentence if any(map(str.isalnum, sentence)) else ""


def _resolved(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _strip(pattern: re.Pattern[str], replacement: str | Callable[[re.Match[str]], str], sentence: str) -> str:
    """The sentence with each match replaced; where there is one, its words stand one blank apart."""
    stripped = pattern.sub(replacement, sentence)
    return sentence if stripped == sentence else " ".join(stripped.split())
