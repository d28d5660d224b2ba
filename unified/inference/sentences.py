"""Inputs of ``unified generate``: a split of a prepared pair folder, or a text file of one source a line."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from unified.arguments import counted
from unified.data.prepared_folder import DataFolder
from unified.data.token_files import TokenFile
from unified.data.vocabulary import ESCAPED_UNKNOWN
from unified.errors import Problems, UnifiedError
from unified.files.raw_text import RawTextReader
from unified.inference.language_model import UnifiedLM


class FolderSentences:
    """Sources of a split, and their references where the folder has them.

    Attributes:
        files: the files read, for telling one run from another.
    """

    def __init__(self, folder: Path, subset: str, source: str | None, target: str | None):
        data = DataFolder.open(str(folder), source, target)
        if not data.paired:
            raise UnifiedError(f"{folder}: holds documents, no source/target pairs; --input reads a file of sources")
        source_prefix, target_prefix = data.prefixes(subset)
        self.sources, self.targets = TokenFile(source_prefix), TokenFile(target_prefix)
        if len(self.sources) != len(self.targets):
            raise UnifiedError(
                f"{source_prefix} holds {counted(len(self.sources), 'item')}, {target_prefix} {len(self.targets)}; "
                "they must pair one to one"
            )
        self.files = [Path(f"{prefix}.{end}") for prefix in (source_prefix, target_prefix) for end in ("idx", "bin")]

    def __len__(self) -> int:
        return len(self.sources)

    def source(self, lm: UnifiedLM, i: int) -> list[int]:
        """Ids of a source without special symbols."""
        ids = self.sources[i].tolist()
        return ids[:-1] if ids[-1:] == [lm.special.separator] else ids

    def parts(self, lm: UnifiedLM, i: int) -> list[str]:
        """Texts of the parts of a source, between which the separator stands; their tokens are those of the source."""
        ids = self.source(lm, i)
        bounds = [-1, *(at for at, token in enumerate(ids) if token == lm.special.separator), len(ids)]
        return [lm.decode(ids[start + 1 : end], lm.unknown_text) for start, end in pairwise(bounds)]

    def texts(self, lm: UnifiedLM, i: int) -> tuple[str, str | None]:
        """Source and reference as text; no hypothesis has what stands for unknown tokens of the reference."""
        return lm.decode(self.sources[i]), lm.decode(self.targets[i], ESCAPED_UNKNOWN)


class FileSentences:
    """Lines of a text file, plain or compressed; there are no references."""

    def __init__(self, path: Path):
        self.files = [path]
        self.lines = [line for chunk in RawTextReader(str(path)).chunks() for line in chunk.lines]

    def __len__(self) -> int:
        return len(self.lines)

    def require_texts(self) -> None:
        """Refuse empty lines, which are no sources; as prompts they are where a text begins.

        Raises:
            UnifiedError: names the first such lines.
        """
        problems = Problems()
        for number, line in enumerate(self.lines, 1):
            if not line.strip():
                problems.add(f"{self.files[0]}, line {number}", "empty, there is nothing to write from")
        problems.check(behind="; leave such lines out")

    def source(self, lm: UnifiedLM, i: int) -> list[int]:
        """Ids of a source without special symbols."""
        return lm.encode(self.lines[i])

    def parts(self, lm: UnifiedLM, i: int) -> list[str]:
        """A source as text, which is one part."""
        return [self.lines[i]]

    def texts(self, lm: UnifiedLM, i: int) -> tuple[str, str | None]:
        """Source as text, and no reference."""
        return self.lines[i], None
