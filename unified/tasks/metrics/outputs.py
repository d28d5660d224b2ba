"""Reading the texts to score: the output of ``fairseq-generate``, or plain files of one sentence a line."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from unified.data.vocabulary import ESCAPED_UNKNOWN, UNMATCHED
from unified.errors import Problems, UnifiedError, WrongField, require_fields
from unified.files.fields import FieldNames
from unified.files.ids import item_id
from unified.files.json_files import Fields
from unified.files.raw_text import is_object, require_text_name
from unified.files.rows import has_fields, read_rows
from unified.files.text_files import numbered_lines

_T = TypeVar("_T")
_OWN_NAMES = FieldNames()
#: Files of references, whose texts stand in the field ``target``.
TARGET = FieldNames({"target": "target"})
# S source, T reference, H hypothesis as tokens, D hypothesis as text, P scores of its tokens; then the sentence number.
_LINE = re.compile(r"([STHDP])-([0-9]{1,18})\t(.*)", re.DOTALL)


def read_lines(path: str | Path) -> list[str]:
    """Lines of a UTF-8 file, plain or compressed, without their line ends; an empty line is an empty sentence.

    Raises:
        UnifiedError: there is no such file, it is empty, a table by its name, or JSON lines, or a line is not UTF-8.
    """
    require_text_name(path)
    lines = [line for _, line in numbered_lines(path)]
    if not lines:
        raise UnifiedError(f"{path}: the file is empty; expected one sentence a line")
    written = [line for line in lines if line.strip()]
    if written and all(map(is_object, written)):
        raise UnifiedError(f"{path}: not raw text but JSON lines, which a name with .jsonl says")
    return lines


def read_hypotheses(path: str | Path) -> list[str]:
    """Texts of a file: its lines, or the field ``text`` of rows, as ``unified predict`` writes it.

    Raises:
        UnifiedError: as :func:`read_lines`, or a row has no such text.
    """
    return _texts(path, "text")


def read_sources(path: str | Path) -> list[str]:
    """Sources of texts: the lines of a file, or the field ``source`` of rows.

    Raises:
        UnifiedError: as :func:`read_hypotheses`.
    """
    return _texts(path, "source")


def read_references(path: str | Path, names: FieldNames = TARGET) -> list[list[str]]:
    """References of each line, or of each row of a file with fields: ``references``, or ``target`` where there is none.

    ``target`` is a text, or a list of texts, each of which is a reference, as in ``references``. A field that is null,
    as in a row of Parquet without a value, is not there.

    Args:
        names: :data:`TARGET` with what users call it; ``references`` are then passed over.

    Raises:
        UnifiedError: as :func:`read_lines`, or a row has neither.
    """
    if not has_fields(path):
        return [[line] for line in read_lines(path)]
    return _of_rows(path, names, partial(_references, pooled=not names.given))


def read_ids(path: str | Path) -> list[str] | None:
    """Ids of a file's rows, of a row without one its number; None for lines, and where no row has an id.

    Raises:
        UnifiedError: an id occurs twice, or is neither a text nor an integer.
    """
    rows = list(read_rows(path)) if has_fields(path) else []
    if all(row.fields.get("id") is None for row in rows):
        return None
    ids = [item_id(row.fields, row.number).strip() for row in rows]
    key, count = Counter(ids).most_common(1)[0]
    if count > 1:
        raise UnifiedError(f"{path}: {count} rows have the id {key!r}; each needs an id of its own")
    return ids


def matched(path: str | Path, values: list[_T], other: str | Path, wanted: list[str] | None) -> list[_T]:
    """Values of a file's rows in the order of another file's, matched by id; as they are where either has no ids.

    Args:
        wanted: ids of the other file, from :func:`read_ids`.

    Raises:
        UnifiedError: an id occurs in one of the files alone.
    """
    found = None if wanted is None else read_ids(path)
    if wanted is None or found is None:
        return values
    rows, others = dict(zip(found, values, strict=True)), set(wanted)
    alone = [(path, other, key) for key in wanted if key not in rows]
    alone += [(other, path, key) for key in found if key not in others]
    if alone:
        lacking, having, key = alone[0]
        raise UnifiedError(f"{lacking}: no row has the id {key!r} of {having}; both files need the same ids, or none")
    return [rows[key] for key in wanted]


def _texts(path: str | Path, field: str) -> list[str]:
    """Lines of a file, or a field of its rows."""
    if not has_fields(path):
        return read_lines(path)
    return _of_rows(path, _OWN_NAMES, partial(_text, field=field))


def _of_rows(path: str | Path, names: FieldNames, read: Callable[[Fields], _T]) -> list[_T]:
    """Values that are read of each row of a file.

    Raises:
        UnifiedError: rows are wrong, or there is none.
    """
    found, problems = [], Problems()
    for row in read_rows(path):
        try:
            fields = names.renamed(row.fields)
            with names.explaining(row.fields):
                found.append(read(fields))
        except UnifiedError as problem:
            problems.add(f"{path}, {row.location}", problem)
    problems.check()
    if not found:
        raise UnifiedError(f"{path}: the file is empty; expected a text a row")
    return found


def _text(fields: Fields, field: str) -> str:
    require_fields(fields, field)
    text = fields[field]
    if not isinstance(text, str):
        raise WrongField(field, f"must be a text, got {text!r}")
    return text


def _references(fields: Fields, pooled: bool) -> list[str]:
    name = "references" if pooled and fields.get("references") is not None else "target"
    require_fields(fields, name)
    found = fields[name]
    group = [found] if name == "target" and isinstance(found, str) else found
    if not isinstance(group, list) or not group or not all(isinstance(text, str) for text in group):
        expected = "a list of texts" if name == "references" else "a text, or a list of texts that are all references"
        raise WrongField(name, f"must be {expected}, got {found!r}")
    return group


def is_generate_output(path: str | Path) -> bool:
    """Whether ``path`` holds lines such as ``H-12<tab>…``, as ``fairseq-generate`` writes them."""
    return not has_fields(path) and any(
        match is not None and match[1] == "H" for match in (_LINE.fullmatch(line) for _, line in numbered_lines(path))
    )


def read_generate_output(paths: Sequence[str | Path], *, need_references: bool = True) -> tuple[list[str], list[str]]:
    """Hypotheses (D lines) and references (T lines), in sentence order.

    What stands for unknown tokens of a reference (``<<unk>>``) is a word that no hypothesis has.

    Where ``fairseq-generate --nbest`` wrote several hypotheses, the best counts. Several files are shards of one run.
    Other lines, such as the log's, are passed over.

    Raises:
        UnifiedError: a sentence occurs twice or is missing, or lacks a hypothesis or a needed reference.
    """
    hypotheses: dict[int, str] = {}
    references: dict[int, str] = {}
    seen: dict[tuple[str, int], str] = {}
    for path in paths:
        current = None
        for number, line in numbered_lines(path):
            match = _LINE.fullmatch(line)
            if match is None:
                continue
            letter, sentence, text = match[1], int(match[2]), match[3]
            where = f"{path}, line {number}"
            new_block = sentence != current
            current = sentence
            if letter in "ST" or (letter == "H" and new_block):
                _only_once(seen, letter, sentence, where)
            if letter == "T":
                references[sentence] = text.replace(ESCAPED_UNKNOWN, UNMATCHED)
            elif letter == "D":
                _, tab, hypothesis = text.partition("\t")
                if not tab:
                    raise UnifiedError(f"{where}: expected 'D-{sentence}<tab>score<tab>text', got {line[:60]!r}")
                hypotheses.setdefault(sentence, hypothesis)
    return _in_order(hypotheses, references, seen, " ".join(map(str, paths)), need_references)


@dataclass(frozen=True)
class Written:
    """A hypothesis: its text, the log-probabilities of its tokens in sum (nats), and how many, the end included."""

    text: str
    log_prob: float
    length: int


def read_n_best(paths: Sequence[str | Path]) -> list[list[Written]]:
    """All hypotheses of each sentence, from D and P lines, in the order in which they were written.

    Raises:
        UnifiedError: a sentence is missing, or D and P lines do not go together.
    """
    texts: dict[int, list[str]] = {}
    scores: dict[int, list[list[float]]] = {}
    for path in paths:
        for number, line in numbered_lines(path):
            match = _LINE.fullmatch(line)
            if match is None or match[1] not in "DP":
                continue
            sentence = int(match[2])
            if match[1] == "D":
                texts.setdefault(sentence, []).append(match[3].partition("\t")[2])
                continue
            try:
                scores.setdefault(sentence, []).append([float(score) for score in match[3].split()])
            except ValueError:
                raise UnifiedError(f"{path}, line {number}: {match[3]!r:.60} are no scores of tokens") from None
    files = " ".join(map(str, paths))
    for sentence in range(max(texts, default=0) + 1):
        if sentence not in texts or len(texts[sentence]) != len(scores.get(sentence, [])):
            raise UnifiedError(
                f"{files}: D- and P- lines of sentence {sentence} are missing or of different number; expected all "
                "that fairseq-generate or `unified generate` writes"
            )
    return [
        [
            Written(text, math.log(2) * sum(own), len(own))
            for text, own in zip(texts[sentence], scores[sentence], strict=True)
        ]
        for sentence in range(len(texts))
    ]


def _only_once(seen: dict[tuple[str, int], str], letter: str, sentence: int, where: str) -> None:
    if (letter, sentence) in seen:
        raise UnifiedError(
            f"{where}: {letter}-{sentence} was already in {seen[letter, sentence]}; "
            "pass the output of one run, each shard once"
        )
    seen[letter, sentence] = where


def _in_order(
    hypotheses: dict[int, str],
    references: dict[int, str],
    seen: dict[tuple[str, int], str],
    files: str,
    need_references: bool,
) -> tuple[list[str], list[str]]:
    if not hypotheses:
        raise UnifiedError(f"{files}: no D- lines; expected the output of fairseq-generate (without --quiet)")
    for (letter, sentence), where in seen.items():
        if sentence not in hypotheses:
            raise UnifiedError(f"{where}: {letter}-{sentence} has no D-{sentence} line; the output seems to be cut off")
    count = max(hypotheses) + 1
    missing = [i for i in range(count) if i not in hypotheses]
    if missing:
        raise UnifiedError(
            f"{files}: {len(missing)} of {count} sentences missing, the first is number {missing[0]}; "
            "pass every shard, and run fairseq-generate without --skip-invalid-size-inputs-valid-test"
        )
    without = [i for i in range(count) if i not in references]
    if need_references and without:
        raise UnifiedError(
            f"{files}: no T- line for sentence {without[0]} ({len(without)} in all); pass --references FILE instead"
        )
    return [hypotheses[i] for i in range(count)], [references[i] for i in range(count)] if need_references else []
