"""Claims: notes by which a command that can resume recognizes its own unfinished folder or file.

A claim is a small JSON file: the settings that decide the output, and SHA-256 of what is read. It is locked while a
command is at work, so that a second one is refused. Only the same settings and inputs go on with what is there; others
are refused in one line that names what differs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.files.destination import require_folders
from unified.files.json_text import NotJson, parse_json
from unified.files.locks import locked_file
from unified.files.shapes import Each, misfit
from unified.files.whole import open_output, to_disk

#: Name of the claim in a folder; a file's claim stands beside it and has its name with ``.claim`` behind.
FILE_NAME = "claim.json"


@dataclass(frozen=True)
class Claim:
    """The settings and inputs that decide an output.

    Attributes:
        settings: by the names that users know, such as ``--seed``; JSON values.
        inputs: SHA-256 of each file that is read, below the name of what it belongs to, such as ``--data``.
    """

    settings: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def content(self) -> dict[str, Any]:
        """The claim as JSON gives it back from a file."""
        return json.loads(json.dumps(asdict(self)))

    def difference(self, before: Mapping[str, Any]) -> str | None:
        """The first difference from the content of another claim, in words; None where there is none."""
        now = self.content
        for name in {**before["settings"], **now["settings"]}:
            old, new = before["settings"].get(name), now["settings"].get(name)
            if old != new:
                return f"{_said(name, old)}, now {'without' if new is None else _value(new)}"
        for name in {**before["inputs"], **now["inputs"]}:
            old, new = before["inputs"].get(name, {}), now["inputs"].get(name, {})
            for file in {**old, **new}:
                if old.get(file) != new.get(file):
                    return f"other contents of {name} ({file})"
        return None


@contextmanager
def claimed_folder(folder: Path, claim: Claim, advice: str, begun: Callable[[], bool] | None = None) -> Iterator[None]:
    """Claim a folder for a block; the claim stays in it, unless nothing is begun when the block ends.

    Args:
        advice: what a user should do where the folder is another's.
        begun: whether the folder holds what only the claim explains; without it, anything but the claim.

    Raises:
        UnifiedError: the folder was begun with another claim or without one, or a command is at work in it.
    """
    if folder.exists() and not folder.is_dir():
        raise UnifiedError(f"{folder}: a file, where a folder should be")
    require_folders(folder, str(folder))
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    made = made or [folder] * (folder / FILE_NAME).exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _claimed(folder / FILE_NAME, folder, claim, advice, begun or (lambda: _others(folder))):
            yield
    finally:
        for path in made:
            if any(path.iterdir()):
                break
            path.rmdir()


@contextmanager
def claimed_file(path: Path, claim: Claim, advice: str) -> Iterator[None]:
    """Claim a file for a block; without the file there is no claim when the block ends. An empty file goes, too.

    Raises:
        UnifiedError: as :func:`claimed_folder`.
    """

    def begun() -> bool:
        return path.exists() and path.stat().st_size > 0

    with _claimed(path.with_name(path.name + ".claim"), path, claim, advice, begun):
        try:
            yield
        finally:
            if not begun():
                path.unlink(missing_ok=True)


@contextmanager
def _claimed(file: Path, owner: Path, claim: Claim, advice: str, begun: Callable[[], bool]) -> Iterator[None]:
    with locked_file(file, owner):
        before = _content(file)
        try:
            if before != claim.content:
                if begun():
                    raise UnifiedError(f"{owner}: {_why_not(claim, before)}; {advice}")
                before = claim.content
                with open_output(file) as stream:  # in place, as it is locked
                    stream.write(json.dumps(before, indent=2, ensure_ascii=False).encode())
                    to_disk(stream)
            yield
        finally:
            if before is None or not begun():
                file.unlink(missing_ok=True)


def _content(file: Path) -> dict[str, Any] | None:
    """Content of a claim; None if there is none, or the command was killed while it wrote the claim."""
    try:
        content = parse_json(file.read_text(encoding="utf-8"))
    except (NotJson, UnicodeDecodeError):
        return None
    return None if misfit(content, {"settings": dict, "inputs": Each(Each(str))}, "a claim") else content


def _why_not(claim: Claim, before: dict[str, Any] | None) -> str:
    if before is None:
        return "is there already, and no claim beside it says what made it"
    return f"was begun with {claim.difference(before)}"


def _others(folder: Path) -> bool:
    return any(path.name != FILE_NAME for path in folder.iterdir())


def _said(name: str, value: Any) -> str:
    return f"no {name}" if value is None else f"{name} {_value(value)}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
