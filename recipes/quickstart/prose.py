"""Turns a documentation string into clean English sentences.

Documentation is prose mixed with code, tables and markup. Paragraphs are found by line and indentation, sentences
by a small rule, and a sentence is kept only if every word of it looks like English; the last filter is strict on
purpose, since there is more documentation than the quickstart can use.
"""

from __future__ import annotations

import re

MIN_WORDS = 4
MAX_CHARACTERS = 250  # of a clean sentence
PAIR_WORDS, PAIR_CHARACTERS = 8, (60, 120)  # of a sentence to test restoring: at least, and from-to
MAX_RUNNING_CHARACTERS = 400  # of a sentence of running text

#: Marks taken away from the source of a pair; a hyphen becomes a space.
REMOVED_MARKS = ".,;:!?\"'()"

_UNDERLINE = re.compile(r"\s*([-=~^*#+])\1{2,}\s*$")
_PROMPT = re.compile(r"\s*(>>>|\.\.\. |\$ |In \[\d+\])")
_DIRECTIVE = re.compile(r"\s*\.\. ")
_DIRECTIVE_WITH_PROSE = re.compile(r"\s*\.\. (note|warning|tip|important|caution|attention)::\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
_BULLET = re.compile(r"\s*([-*+o•]|\d+[.)]|\(\w\)|#\.)\s+")
_FIELD = re.compile(r"\s*(:\w[^:]*:|@\w+( \w+)?:)\s*")  # :param x:  and  @param x:
_ITEM = re.compile(r"\s*[*`]{0,2}\w[\w.]*[*`]{0,2}(\s*\([^)]*\))?\s?:(\s|$)")  # name (type): ...  and  name : type
_HEADING = re.compile(r"\s*[A-Z][\w /-]{0,30}:{1,2}\s*$")  # "Args:"
_SECTIONS_WITHOUT_PROSE = {"references", "see also", "methods", "examples", "example", "bibliography"}


def paragraphs(text: str) -> list[str]:
    """The running text of a documentation string (dedented), each paragraph in one line, code and tables left out."""
    reader = _Reader()
    lines = text.expandtabs().split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        reader.read(line, following)
    reader.close()
    return reader.found


class _Reader:
    """Takes lines, one at a time and knowing the next, and gathers them into paragraphs."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.current: list[str] = []
        self.depth = 0  # indentation of the current paragraph
        self.code_depth: int | None = None  # lines deeper than this belong to a block of code
        self.fenced = self.in_doctest = self.skipped_section = False

    def close(self) -> None:
        if self.current:
            self.found.append(" ".join(self.current))
            self.current = []

    def read(self, line: str, following: str) -> None:
        if _FENCE.match(line):
            self.close()
            self.fenced = not self.fenced
        elif not line.strip():
            self.close()
            self.in_doctest = False
        elif not (self.fenced or self._in_code(line) or self._is_heading(line, following) or self._in_doctest(line)):
            if not self.skipped_section:
                self._take(line)

    def _in_code(self, line: str) -> bool:
        if self.code_depth is not None and _depth(line) <= self.code_depth:
            self.code_depth = None
        return self.code_depth is not None

    def _is_heading(self, line: str, following: str) -> bool:
        underlined = _UNDERLINE.match(following) is not None
        if not (underlined or _UNDERLINE.match(line) or _HEADING.match(line)):
            return False
        self.close()
        if not _UNDERLINE.match(line):
            self.skipped_section = line.strip(" :").lower() in _SECTIONS_WITHOUT_PROSE
            self.code_depth = _depth(line) if line.rstrip().endswith("::") else None
        return True

    def _in_doctest(self, line: str) -> bool:
        if _PROMPT.match(line):
            self.close()
            self.in_doctest = True
        return self.in_doctest

    def _take(self, line: str) -> None:
        depth = _depth(line)
        if _DIRECTIVE.match(line):
            self.close()
            note = _DIRECTIVE_WITH_PROSE.match(line)
            if note is None:
                self.code_depth = depth
                return
            line, depth = line[note.end() :], depth + 3
        marker = _BULLET.match(line) or _FIELD.match(line)
        if marker:
            line, depth = line[marker.end() :], marker.end()
        if marker or depth != self.depth:
            self.close()
        item = None if self.current else _ITEM.match(line)
        if item:  # a row of parameters: "name (type): text", "name : type"
            line = line[item.end() :]
        self.depth = depth
        if line.strip():
            self.current.append(line.strip())
        if line.rstrip().endswith("::"):
            self.code_depth = depth
            self.close()


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


_ROLE = re.compile(r":[\w:+-]+:`~?([^`<]+?)(?:\s*<[^`]*>)?`")
_LITERAL = re.compile(r"``([^`]+)``|`([^`]+)`_{0,2}")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,2})([^\s*](?:[^*]*[^\s*])?)\1(?![\w*])")
_CITATION = re.compile(r"\s*\[[\w.-]+\]_|\s*\[\d+(?:, ?\d+)*\]")


def plain(text: str) -> str:
    """``text`` without reStructuredText markup and with single spaces."""
    text = _ROLE.sub(r"\1", text)
    text = _LITERAL.sub(lambda match: (match[1] or match[2]).removeprefix("~"), text)
    text = _EMPHASIS.sub(r"\2", text)
    text = _CITATION.sub("", text)
    return " ".join(text.split())


#: A citation that stands for a word ("as in [1]_"); taking it away would leave a hole.
_CITATION_AS_WORD = re.compile(r"\b(?:in|by|of|from|see|and|also|on|to|with|per|e\.g\.,?|cf\.)\s*\[[\w.,\s-]+\]", re.I)
_BREAK = re.compile(r"(?<=[.?!])([\"')]*)\s+(?=[\"'(]?[A-Z0-9`:*])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|fig|eq|eqs|sec|ch|dr|mr|mrs|ms|prof|st|al|no|nos|pp|vol|ed|eds|approx|resp|incl|ca|jr)"
    r"|\b[A-Za-z])\.[\"')]*$",
    re.IGNORECASE,
)


def split_sentences(paragraph: str) -> list[str]:
    """Cut after ``. ? !`` before a capital, digit or markup, but not after an abbreviation or a single letter."""
    sentences = []
    start = 0
    for match in _BREAK.finditer(paragraph):
        end = match.start() + len(match[1])
        if not _ABBREVIATION.search(paragraph[start:end]):
            sentences.append(paragraph[start:end].strip())
            start = match.end()
    rest = paragraph[start:].strip()
    return [*sentences, rest] if rest else sentences


_NAMES = "PyTorch|NumPy|SciPy|TorchScript|LaTeX|NaN|NaNs|Python's|JavaScript|MacOS|macOS|GitHub|OpenMP"
_WORD = re.compile(
    rf"""["(]*
    (?:{_NAMES}|[A-Z]?[a-z]+(?:['-][A-Z]?[a-z]+)*'?|[A-Z]{{2,6}}s?(?:-[a-z]+)*|[A-Z]|[A-Z]-[a-z]+|\d{{1,4}}|\d-?[A-Z]|\d-[a-z]+
       |[a-z]+-\d|i\.e\.|e\.g\.|etc\.)
    [)"',.;:?!]*""",
    re.VERBOSE,
)
_FULL_STOP_INSIDE = re.compile(r"(?<!\bi\.e)(?<!\be\.g)(?<!\betc)[.?!][)\"]*\s")
_END = re.compile(r"[\w)\"][.?!]$|[.?!][)\"]$")
_FUNCTION_WORDS = set(
    "a an the of to in on at by for from with as is are be was were it its this that these those and or not if when "
    "which has have can may must will should would do does you your we there no any all each than then into".split()
)


def is_prose(sentence: str) -> bool:
    """Whether ``sentence`` (without markup) is a whole English sentence and nothing else.

    It begins with a capital, ends with ``. ? !``, holds 4 words or more in at most 250 characters, every word is
    made like an English one (no identifiers, decimals, addresses, other scripts), a function word is among them,
    brackets and quotes are closed, no other sentence ends within it, and it is not a title.
    """
    words = sentence.split(" ")
    if not (MIN_WORDS <= len(words) and len(sentence) <= MAX_CHARACTERS):
        return False
    if not sentence[0].isupper() or not _END.search(sentence) or _FULL_STOP_INSIDE.search(sentence):
        return False
    if not all(_WORD.fullmatch(word) for word in words):
        return False
    if not _FUNCTION_WORDS.intersection(word.strip(REMOVED_MARKS).lower() for word in words):
        return False
    capitals = sum(word[:1].isupper() for word in words[1:])
    return capitals <= len(words) // 2 and _closed(sentence)


def _closed(sentence: str) -> bool:
    depth = 0
    for character in sentence:
        depth += (character == "(") - (character == ")")
        if depth not in (0, 1):
            return False
    return depth == 0 and sentence.count('"') % 2 == 0 and "()" not in sentence


def is_restorable(sentence: str) -> bool:
    """Whether a clean sentence is short enough to learn to restore from."""
    return len(sentence) <= PAIR_CHARACTERS[1]


def is_restoring_test(sentence: str) -> bool:
    """Whether a clean sentence is long enough besides to test restoring; in shorter ones there is little to restore."""
    return is_restorable(sentence) and len(sentence) >= PAIR_CHARACTERS[0] and len(sentence.split()) >= PAIR_WORDS


def is_running_text(sentence: str) -> bool:
    """A looser rule, for pre-training: English with some names, numbers and code words in it."""
    words = sentence.split(" ")
    if is_prose(sentence):
        return True
    if not (MIN_WORDS <= len(words) and len(sentence) <= MAX_RUNNING_CHARACTERS and sentence.isascii()):
        return False
    if not (sentence[0].isupper() and sentence[-1] in ".?!:") or max(map(len, words)) > 40:
        return False
    return sum(_WORD.fullmatch(word) is not None for word in words) >= 0.75 * len(words)


def all_sentences(text: str) -> list[str]:
    """Every sentence of a documentation string, without markup, in order and unfiltered."""
    found = (sentence for paragraph in paragraphs(text) for sentence in split_sentences(paragraph))
    kept = (plain(sentence) for sentence in found if not _CITATION_AS_WORD.search(sentence))
    return [sentence for sentence in kept if sentence]


def sentences(text: str) -> list[str]:
    """The clean sentences of a documentation string, in order."""
    return [sentence for sentence in all_sentences(text) if is_prose(sentence)]


_SIGNATURE = re.compile(r"\*{0,2}\w[\w.]*\s*\(.*\)(\s*->.*)?\.?$|[\w.]+\(.*|.* = \w[\w.]*\(.*\)$", re.DOTALL)


def is_signature(line: str) -> bool:
    """Whether ``line`` is a call such as ``norm(x, ord=2) -> float`` rather than text."""
    return _SIGNATURE.match(line) is not None


def without_code(text: str) -> str:
    """``text`` without doctests and the lines that only underline headings."""
    kept = []
    in_doctest = False
    for line in text.split("\n"):
        in_doctest = bool(line.strip()) and (in_doctest or _PROMPT.match(line) is not None)
        if not in_doctest and not _UNDERLINE.match(line):
            kept.append(line)
    return "\n".join(kept)


_REMOVE = str.maketrans("-", " ", REMOVED_MARKS)


def without_marks(sentence: str) -> str:
    """Lower-cased, without the marks of :data:`REMOVED_MARKS`, hyphens as spaces: the source of a restoring pair."""
    return " ".join(sentence.lower().translate(_REMOVE).split())
