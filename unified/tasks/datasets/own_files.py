"""Data of one's own: files of rows, each an item of a head, and which of them hold a split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unified.errors import MissingField, UnifiedError, first_few
from unified.files.fields import FieldNames
from unified.files.json_files import Fields
from unified.files.rows import FORMATS, has_fields, is_hub, read_rows
from unified.runtime.progress import Progress
from unified.tasks.heads.base import Understanding
from unified.tasks.heads.items import Item, read_items

#: Names of the splits' files in a folder, with the names that other programs give them.
_SPLITS = {"train": "train", "valid": "valid", "validation": "valid", "dev": "valid", "val": "valid", "test": "test"}


@dataclass(frozen=True)
class OwnFiles:
    """Reads the splits of a task from files of rows (:mod:`unified.files.rows`); a task's ``read`` for own data.

    Attributes:
        item_of: makes an item of fields and the number of its row.
        names: what rows call the fields of items.
        has_classes: whether labels are classes, which may be given names.
        valid, test: files of the other splits, where the training items are one file; None where there is none.
    """

    item_of: Callable[[Fields, int], Item]
    names: FieldNames
    has_classes: bool = False
    valid: str | None = None
    test: str | None = None

    def __call__(self, source: Path, budget: object = None) -> dict[str, Sequence[Any]]:
        """Items by split, of a file of training items or of a folder with a file for each split.

        Files of rows in the folder that hold no split are named on standard error.

        Args:
            budget: of tokens, which generation tasks give; texts are cut in training instead.

        Raises:
            UnifiedError: a file cannot be read, or rows are wrong, or two files hold one split.
        """
        files = self.files(source)
        others = [path.name for path in _row_files(source) if _split_of(path) is None]
        if others:
            Progress.say(f"{source}: files of splits are called train, valid or test; not read: {first_few(others)}")
        return {split: self.items(path) for split, path in files.items()}

    def files(self, source: Path) -> dict[str, str]:
        """The file of each split that is there.

        Raises:
            UnifiedError: a folder holds no split, or two files hold one.
        """
        given = {"valid": self.valid, "test": self.test}
        beside = {split: path for split, path in given.items() if path is not None}
        if not source.is_dir():
            return {"train": str(source), **beside}
        found: dict[str, str] = {}
        for path in _row_files(source):
            split = _split_of(path)
            if split is not None and split in found:
                raise UnifiedError(f"{path}: {Path(found[split]).name} holds the {split} split, too; keep one of them")
            if split is not None:
                found[split] = str(path)
        if not found:
            raise UnifiedError(
                f"{source}: no file in it is called train; name the training items train.jsonl ({FORMATS})"
            )
        for split in beside.keys() & found.keys():
            raise UnifiedError(
                f"--{split} {beside[split]}: {found[split]} holds the {split} split; leave one of them out"
            )
        return {**found, **beside}

    def locations(self, source: Path) -> dict[str, dict[str, str]]:
        """The file and the line, or the row, of each item by its id; by split."""
        found: dict[str, dict[str, str]] = {}
        for split, path in self.files(source).items():
            found[split] = {}
            for row in read_rows(path):
                try:
                    item = self.item_of(self.names.renamed(row.fields), row.number)
                except UnifiedError:
                    continue  # an empty one that was left out
                found[split][item.id] = f"{path}, {row.location}"
        return found

    def with_options(self, reader: str, names: FieldNames, valid: str | None, test: str | None) -> OwnFiles:
        """Reads rows with other names, and for files of their own for validation and test.

        Args:
            reader: whose items they are, for messages.
            names: without the parts of items, which are known here.

        Raises:
            UnifiedError: a name is that of a part which items do not have.
        """
        names = replace(names, parts=self.names.parts)
        names.check(reader, self.has_classes)
        return replace(self, names=names, valid=valid, test=test)

    def check_fields(self, source: Path) -> None:
        """Refuse a file whose first row lacks a field, before anything else is read.

        Raises:
            UnifiedError: names the field, and those that are there.
        """
        labels = [self.names.given.get(part, self.names.parts.get(part)) for part in ("label", "target")]
        for split, path in self.files(source).items():
            row = None if is_hub(path) or not has_fields(path) else next(read_rows(path), None)
            if row is not None:
                try:
                    with self.names.explaining(row.fields):
                        self.item_of(self.names.renamed(row.fields), row.number)
                except MissingField as problem:
                    unlabelled = split == "test" and problem.name in labels
                    advice = "; leave a test set without labels out, `unified predict` answers it" if unlabelled else ""
                    raise UnifiedError(f"{path}, {row.location}: {problem}{advice}") from None
                except UnifiedError:
                    pass  # whatever else is wrong with a row is named with all other rows

    def items(self, path: str) -> list[Any]:
        """Items of a file, see :func:`unified.tasks.heads.items.read_items`."""
        if not has_fields(path):
            raise UnifiedError(f"{path}: no file of rows by its name; rows come as {FORMATS}")
        return read_items(path, self.item_of, self.names)


def head_files(head: type[Understanding[Any]]) -> OwnFiles:
    """Files of rows that are items of a head."""

    def item_of(fields: Fields, number: int) -> Any:
        return head.item(fields, number, labelled=True)

    return OwnFiles(item_of, FieldNames(head.parts), head.has_classes)


def is_own_file(source: Path) -> bool:
    """Whether training items are one file, or a data set of the hub, and not a folder."""
    return is_hub(source) or source.is_file()


def _row_files(source: Path) -> list[Path]:
    """Files of rows in a folder by name; none where it is a file. Those of JSON that hold no split are settings."""
    files = sorted(path for path in source.iterdir() if path.is_file()) if source.is_dir() else []
    return [path for path in files if has_fields(path.name) and (_split_of(path) or path.suffix != ".json")]


def _split_of(path: Path) -> str | None:
    """The split that a file of rows in a folder holds, by its name; None for any other."""
    return _SPLITS.get(path.name.partition(".")[0])
