"""Files of minimal pairs: two sentences that differ in one point of grammar, in the formats of BLiMP and of Zorro."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.arguments import counted, has_lone_surrogate
from unified.errors import Problems, UnifiedError, require_fields
from unified.files.rows import read_rows
from unified.files.text_files import numbered_lines, without_compression

#: Fields of BLiMP's rows with the two sentences, and with what a pair belongs to.
GOOD, BAD, PARADIGM, FIELD, TERM = "sentence_good", "sentence_bad", "UID", "field", "linguistics_term"


@dataclass(frozen=True)
class Paradigm:
    """Pairs that differ in one point of grammar.

    Attributes:
        name: BLiMP's UID, or the file without its ending.
        groups: what it belongs to, by the name of the grouping: ``field`` and ``linguistics_term`` of BLiMP, ``field``
            (the phenomenon) of Zorro.
        good, bad: the sentences, in pairs.
        places: file and line of each good sentence, then of each bad one, for messages.
    """

    name: str
    groups: Mapping[str, str]
    good: Sequence[str]
    bad: Sequence[str]
    places: Sequence[str]


@dataclass(frozen=True)
class PairFiles:
    """Minimal pairs as they were read.

    Attributes:
        paradigms: at least one.
        files: that hold them.
        left_out: names of files of the folder that hold something else.
    """

    paradigms: list[Paradigm]
    files: list[Path]
    left_out: list[str]


def read_paradigms(path: str | Path) -> PairFiles:
    """The paradigms of a file, or of all files of a folder, sorted by file.

    A file of rows (``.jsonl``, compressed or not) has a pair of :data:`GOOD` and :data:`BAD` in each row, as BLiMP. A
    ``.txt`` file has a bad sentence in the first, third, ... line and the good one behind it, as Zorro.

    A file of a folder whose first row has neither sentence is left out, and so is a ``.txt`` file without the hyphen of
    Zorro's names.

    Raises:
        UnifiedError: there is no such file or no pair, or a row or a line is not what it should be; names them.
    """
    path = Path(path)
    if not path.exists():
        raise UnifiedError(f"{path}: no such file or folder")
    files = sorted(one for one in path.iterdir() if _holds_pairs(one)) if path.is_dir() else [path]
    found: list[Paradigm] = []
    left_out: list[str] = []
    problems = Problems()
    for file in files:
        if without_compression(file.name).endswith(".txt"):
            if path.is_dir() and "-" not in file.name:
                left_out.append(file.name)
                continue
            found.append(_of_lines(file, problems))
            continue
        first = next(iter(read_rows(file)), None)
        if path.is_dir() and first is not None and not isinstance(first.content, UnifiedError):
            if GOOD not in first.content and BAD not in first.content:
                left_out.append(file.name)
                continue
        found += _of_rows(file, problems)
    problems.check()
    if not any(paradigm.good for paradigm in found):
        raise UnifiedError(
            f"{path}: no minimal pairs; BLiMP's files (.jsonl, rows with {GOOD} and {BAD}) or Zorro's (.txt) are read"
        )
    names = [paradigm.name for paradigm in found]
    twice = sorted({name for name, count in Counter(names).items() if count > 1})
    if twice:
        raise UnifiedError(f"{path}: two files hold the paradigm {twice[0]!r}; leave one of them out")
    return PairFiles(found, [file for file in files if file.name not in left_out], left_out)


def _holds_pairs(file: Path) -> bool:
    return file.is_file() and without_compression(file.name).endswith((".jsonl", ".txt"))


def _of_rows(file: Path, problems: Problems) -> list[Paradigm]:
    """The paradigms of BLiMP's rows, in the order of their first pairs."""
    stem = Path(without_compression(file.name)).stem
    pairs: dict[str, list[tuple[str, str, str]]] = {}
    groups: dict[str, dict[str, str]] = {}
    for row in read_rows(file):
        location = f"{file}, {row.location}"
        try:
            fields = row.fields
            require_fields(fields, GOOD, BAD)
            good, bad = (_sentence(name, fields[name]) for name in (GOOD, BAD))
        except UnifiedError as problem:
            problems.add(location, problem)
            continue
        name = str(fields.get(PARADIGM) or stem)
        pairs.setdefault(name, []).append((good, bad, location))
        # One of BLiMP's files writes the field "syntax_semantics" with a slash.
        groups.setdefault(name, {one: str(fields[one]).replace("/", "_") for one in (FIELD, TERM) if fields.get(one)})
    columns = {name: tuple(map(list, zip(*own, strict=True))) for name, own in pairs.items()}
    return [Paradigm(name, groups[name], good, bad, 2 * places) for name, (good, bad, places) in columns.items()]


def _of_lines(file: Path, problems: Problems) -> Paradigm:
    """Zorro's paradigm of a file ``PHENOMENON-PARADIGM.txt``: a phenomenon may have hyphens, a paradigm none."""
    name = Path(without_compression(file.name)).stem
    lines = [(number, line.strip()) for number, line in numbered_lines(file)]
    while lines and not lines[-1][1]:
        lines.pop()
    for number, line in lines:
        if not line:
            problems.add(f"{file}, line {number}", "an empty line; bad and good sentences take turns, line by line")
    if len(lines) % 2:
        problems.add(
            str(file), f"{counted(len(lines), 'line')}; bad and good sentences take turns, so their number is even"
        )
    bad, good = lines[::2], lines[1::2]
    groups = {FIELD: name.rpartition("-")[0]} if "-" in name else {}
    places = [f"{file}, line {number}" for number, _ in (*good, *bad)]
    return Paradigm(name, groups, [line for _, line in good], [line for _, line in bad], places)


def _sentence(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UnifiedError(f"{name} must be a sentence, got {value!r}")
    if has_lone_surrogate(value):
        raise UnifiedError(f"{name} holds half of a surrogate pair, such as a part of an emoji")
    return value
