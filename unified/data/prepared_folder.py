"""Tells folders of documents to pre-train on from those of source/target pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError


@dataclass(frozen=True)
class DataFolder:
    """A folder written by ``unified prepare`` or ``fairseq-preprocess``.

    ``source`` and ``target`` name the two sides of pairs; both are None for documents.
    """

    path: Path
    source: str | None = None
    target: str | None = None

    @classmethod
    def open(cls, path: str, source: str | None, target: str | None) -> DataFolder:
        """Find out what lies in ``path``.

        Args:
            source, target: languages of pairs; what is None is inferred from the names of files. Where both are given,
                no file is looked for.

        Raises:
            UnifiedError: no folder, nothing prepared in it, no pairs of the languages, or several.
        """
        folder = Path(path)
        require_data_folder(folder)
        if source and target:
            return cls(folder, source, target)
        found = map(_languages, (file.name for file in folder.glob("*.*-*.*.idx")))
        pairs = {languages for languages in found if languages is not None}
        if not pairs and not list(folder.glob("*.idx")):
            raise UnifiedError(f"{path}: holds no prepared data (*.idx); make it with `unified prepare`")
        if source or target:
            there = f"its language pairs are {sorted(pairs)}" if pairs else "it holds documents"
            either = pairs | {(second, first) for first, second in pairs}
            pairs = {pair for pair in either if source in (None, pair[0]) and target in (None, pair[1])}
            if not pairs:
                asked = f"-s {source}" if source else f"-t {target}"
                raise UnifiedError(f"{path}: holds no pairs for {asked}; {there}")
        if len(pairs) > 1:
            raise UnifiedError(f"{path}: holds several language pairs ({sorted(pairs)}); choose with -s and -t")
        return cls(folder, *pairs.pop()) if pairs else cls(folder)

    @property
    def paired(self) -> bool:
        """Whether it holds pairs of source and target and not documents."""
        return self.source is not None

    def prefixes(self, split: str) -> tuple[str, ...]:
        """Paths without .bin/.idx of one split: one for documents, source and target for pairs."""
        if not self.paired:
            return (str(self.path / split),)
        for first, second in ((self.source, self.target), (self.target, self.source)):
            base = self.path / f"{split}.{first}-{second}"
            if Path(f"{base}.{self.source}.idx").exists():
                return (f"{base}.{self.source}", f"{base}.{self.target}")
        there = ", ".join(sorted(file.name for file in self.path.glob("*.idx"))) or "no *.idx file"
        raise UnifiedError(f"{self.path}: has no split {split!r} for {self.source}-{self.target}; it holds {there}")

    def vocabulary(self) -> Vocabulary:
        """The dictionary; both sides of pairs must share one, as they share one Transformer."""
        if not self.paired:
            return Vocabulary.load(self.path / "dict.txt")
        sides = [self.path / f"dict.{language}.txt" for language in (self.source, self.target)]
        first, second = (Vocabulary.load(side) for side in sides)
        if first.symbols != second.symbols:
            raise UnifiedError(
                f"{sides[0].name} and {sides[1].name} in {self.path} differ; one Transformer needs one dictionary: "
                "use `unified prepare`, or fairseq-preprocess --joined-dictionary"
            )
        return first


def require_data_folder(folder: Path) -> None:
    """Raises UnifiedError where ``folder`` is no folder."""
    if not folder.is_dir():
        missing = "a file, where a data folder is wanted" if folder.exists() else "no such data folder"
        raise UnifiedError(f"{folder}: {missing}; make one with `unified prepare` or fairseq-preprocess")


def _languages(name: str) -> tuple[str, str] | None:
    """Source and target in the name of a file, ``SPLIT.SOURCE-TARGET.SIDE.idx``; None in a name of another form."""
    *_, both, side, _ = name.split(".")
    source, dash, target = both.partition("-")
    return (source, target) if dash and side in (source, target) else None
