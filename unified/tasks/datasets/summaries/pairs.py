"""Data sets of summaries as JSON lines with a source and a target, which ``unified prepare`` reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import Problems, UnifiedError
from unified.files.whole import require_new, whole_file
from unified.runtime.parallel import ordered_map
from unified.runtime.progress import Progress
from unified.tasks.datasets.summaries.formats import SummaryPair
from unified.tasks.datasets.summaries.inputs import InputChunk, Inputs
from unified.tasks.datasets.summaries.oracles import ORACLES


@dataclass
class Counts:
    """Counts of the rows that became pairs, were changed, or were left out.

    Attributes:
        pairs: those that were written.
        empty: those left out because a side is empty.
        replaced: pairs whose text held the separator.
        without_oracle: pairs of which the oracle takes no sentence.
        limited: pairs for which a limit ended the oracle's search.
    """

    pairs: int = 0
    empty: int = 0
    replaced: int = 0
    without_oracle: int = 0
    limited: int = 0

    def add(self, other: Counts) -> None:
        """Adds other counts."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Converted:
    """Result of a chunk: its pairs as JSON, counts, problems with their locations, and the bytes read."""

    lines: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    problems: list[tuple[str, UnifiedError]] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True)
class PairConverter:
    """Makes JSON lines of chunks; worker processes get copies of it.

    Attributes:
        inputs: where the chunks come from.
        separator: what stands between the sentences of a summary; where a text holds it, it becomes a slash.
        oracle: name of the search for the sentences that an extractive summary takes, one of
            :data:`unified.tasks.datasets.summaries.oracles.ORACLES`; None for none.
        skip_empty: leave out pairs with an empty side instead of refusing them.

    Raises:
        UnifiedError: the separator is not one symbol, or there is no such oracle.
    """

    inputs: Inputs
    separator: str = "|"
    oracle: str | None = None
    skip_empty: bool = False

    def __post_init__(self) -> None:
        if self.separator.split() != [self.separator] or "/" in self.separator:
            raise UnifiedError(f"--separator must be a symbol without blanks and slashes, got {self.separator!r}")
        if self.oracle is not None and self.oracle not in ORACLES:
            raise UnifiedError(f"--oracle {self.oracle}: known are {', '.join(ORACLES)}")

    def __call__(self, chunk: InputChunk) -> Converted:
        done = Converted()
        for location, size, read in self.inputs.rows(chunk):
            done.size += size
            try:
                self._add(read(), done)
            except UnifiedError as error:
                done.problems.append((location, error))
        return done

    def _add(self, pair: SummaryPair, done: Converted) -> None:
        if not pair.source or not pair.target:
            if not self.skip_empty:
                side = "summary" if pair.source else "text"
                raise UnifiedError(f"the {side} is empty; mend it, or leave such pairs out with --skip-empty")
            done.counts.empty += 1
            return
        source, target, others = map(self._without_separator, (pair.source, pair.target, pair.others))
        row: dict[str, Any] = {"source": " ".join(source), "target": f" {self.separator} ".join(target)}
        if others:
            row["references"] = [row["target"], *others]
        if self.oracle:
            row["sentences"] = _starts(source)
            row["oracle"], limited = ORACLES[self.oracle](source, target)
            done.counts.without_oracle += not row["oracle"]
            done.counts.limited += limited
        done.counts.pairs += 1
        done.counts.replaced += (source, target, others) != (pair.source, pair.target, pair.others)
        done.lines.append(json.dumps(row, ensure_ascii=False))

    def _without_separator(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text.replace(self.separator, "/") for text in texts)


def write_pairs(converter: PairConverter, output: str | Path, workers: int = 1, overwrite: bool = False) -> Counts:
    """Write ``output``, JSON lines with ``source`` and ``target``; it takes its name when it is complete.

    With an oracle a line has also ``sentences``, where in ``source`` each of its sentences begins (characters), and
    ``oracle``, the numbers of those that it takes. Where a text has several summaries, ``references`` holds all.

    Raises:
        UnifiedError: the input cannot be read, rows are no pairs (the first ten are named), or there is none.
    """
    output = Path(output)
    if output.suffix != ".jsonl":
        raise UnifiedError(f"{output}: name it *.jsonl, by which `unified prepare` knows JSON lines")
    require_new(output, overwrite)
    output.parent.mkdir(parents=True, exist_ok=True)
    counts, problems, progress = Counts(), Problems(), Progress(output.name)
    with whole_file(output) as stream:
        for done in ordered_map(converter, converter.inputs.chunks(), workers):
            stream.writelines(f"{line}\n".encode() for line in done.lines)
            counts.add(done.counts)
            problems.extend(done.problems)
            progress.add(done.size, counted(counts.pairs, "pair"))
        problems.check()
        if counts.pairs == 0:
            raise UnifiedError(f"{', '.join(converter.inputs.paths)}: holds no pair of a text and its summary")
        progress.finish(counted(counts.pairs, "pair"))
    return counts


def _starts(sentences: Sequence[str]) -> list[int]:
    """Index of the first character of each sentence in their text, in which one blank divides them."""
    starts = [0]
    for sentence in sentences[:-1]:
        starts.append(starts[-1] + len(sentence) + 1)
    return starts
