"""The files of a data set of summaries: which form they have, and their rows in chunks that worker processes take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from unified.corpus.readers import PairChunk, ParallelCorpus
from unified.errors import UnifiedError, first_few
from unified.files.json_files import Fields
from unified.files.rows import Row as FileRow
from unified.files.rows import RowChunk, has_fields, require_rows, row_chunks
from unified.files.text_files import LineReader
from unified.tasks.datasets.summaries.formats import FORMATS, Format, SummaryPair

_FILES_AT_ONCE = 256

#: Rows with fields, lines of two text files, or files of one pair each.
InputChunk = RowChunk | PairChunk | tuple[Path, ...]
#: A row's location, its bytes, and a function that makes a pair of it or raises UnifiedError.
Row = tuple[str, int, Callable[[], SummaryPair]]


@dataclass(frozen=True)
class Inputs:
    """The files of one split of a data set.

    Attributes:
        name: one of :data:`unified.tasks.datasets.summaries.formats.FORMATS`.
        paths: files with fields (:mod:`unified.files.rows`), two text files equal in lines, or folders with a
            file a pair.
        chosen: file that names which files of the folders to take, one a line, in this order; None takes all.

    Raises:
        UnifiedError: no such data set, a file is missing, or the data set does not come in this form.
    """

    name: str
    paths: tuple[str, ...]
    chosen: str | None = None

    def __post_init__(self) -> None:
        if self.name not in FORMATS:
            raise UnifiedError(f"no data set {self.name!r}; known are {', '.join(FORMATS)}")
        if self.chosen is not None and not self.are_folders:
            raise UnifiedError(f"--list chooses files of folders, but {' '.join(self.paths)} are none")
        if not self.are_folders:
            for path in self.paths:
                require_rows(path)
        with_fields = all(map(has_fields, self.paths))
        parallel = len(self.paths) == 2 and not any(map(has_fields, self.paths))
        if not (self.form.file if self.are_folders else self.form.row if with_fields else self.form.lines and parallel):
            raise UnifiedError(f"{' '.join(self.paths)}: {self.name} is read from {self.form.known}")

    @property
    def form(self) -> Format:
        """The format of this data set's files."""
        return FORMATS[self.name]

    @property
    def are_folders(self) -> bool:
        """Whether every path is a folder."""
        return all(Path(path).is_dir() for path in self.paths)

    def chunks(self) -> Iterator[InputChunk]:
        """The files in portions: names of files, rows with fields, or lines of both sides.

        Raises:
            UnifiedError: two text files differ in their number of lines, or files of the list are not there, or are
                named twice.
        """
        if self.are_folders:
            files = self._files()
            yield from (tuple(files[i : i + _FILES_AT_ONCE]) for i in range(0, len(files), _FILES_AT_ONCE))
        elif has_fields(self.paths[0]):
            for path in self.paths:
                yield from row_chunks(path)
        else:
            yield from ParallelCorpus(self.paths[:1], self.paths[1:]).chunks()

    def rows(self, chunk: InputChunk) -> Iterator[Row]:
        """The rows of a chunk."""
        # __post_init__ has refused files of a form that the data set does not have.
        if isinstance(chunk, PairChunk):
            assert self.form.lines is not None
            for number, source, target in chunk.pairs():
                size = len(source) + len(target)
                yield chunk.location(number, "source"), size, partial(self.form.lines, source, target)
        elif isinstance(chunk, tuple):
            assert self.form.file is not None
            for path in chunk:
                yield str(path), path.stat().st_size, partial(_of_file, self.form.file, path)
        else:
            assert self.form.row is not None
            rows = list(chunk.rows())
            for row in rows:
                yield f"{chunk.path}, {row.location}", chunk.size // len(rows), partial(_of_row, self.form.row, row)

    def _files(self) -> list[Path]:
        paths = [path for folder in self.paths for path in sorted(Path(folder).glob(f"*{self.form.suffix}"))]
        if self.chosen is None:
            return paths
        found = {path.name: path for path in paths}
        names: dict[str, int] = {}
        twice = []
        for chunk in LineReader(self.chosen).chunks():
            for number, entry in enumerate(chunk.lines, chunk.first_line):
                if entry.strip():
                    name = self.form.stem(entry).removesuffix(self.form.suffix) + self.form.suffix
                    if name in names:
                        twice.append(f"{self.chosen}, line {number}: {name} again, as in line {names[name]}")
                    names.setdefault(name, number)
        if twice:
            raise UnifiedError(f"{first_few(twice)}; name each file once")
        missing = [f"{self.chosen}, line {line}: no file {name}" for name, line in names.items() if name not in found]
        if missing:
            raise UnifiedError(f"{first_few(missing)}; in {', '.join(self.paths)}")
        return [found[name] for name in names]


def _of_row(pair_of: Callable[[Fields], SummaryPair], row: FileRow) -> SummaryPair:
    return pair_of(row.fields)


def _of_file(pair_of: Callable[[str], SummaryPair], path: Path) -> SummaryPair:
    try:
        return pair_of(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnifiedError(f"not UTF-8 at byte {error.start}") from None
