"""Differences between runs in few words: names and values of the settings that are not the same in all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

#: Characters of a hash that are shown.
_HASH = 6


class Digest(str):
    """A hash: compared whole, shown by its beginning."""

    @property
    def short(self) -> str:
        """The first characters of the hash, enough to tell files apart in a table."""
        return self[:_HASH]


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by name, without None and False; mappings among them are taken apart, names joined by a space."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name} ")
        elif value is not None and value is not False:
            found[prefix + name] = value
    return found


def canonical(value: Any) -> str:
    """A text that values have in common exactly where they are the same as JSON; 1 and 1.0 are."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)


def differing(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names whose values are not the same in all of several flat mappings, in the order in which they occur."""
    names = dict.fromkeys(name for run in runs for name in run)
    return [name for name in names if len({canonical(run.get(name)) for run in runs}) > 1]


def described(run: Mapping[str, Any], names: Iterable[str]) -> str:
    """Names with their values in a flat mapping, such as "epochs 3, no head rate"."""
    return ", ".join(_shown(name, run.get(name)) for name in names)


def short_paths(paths: Iterable[str]) -> dict[str, str]:
    """The last names of each path, as few as distinguish it from the others."""
    parts = {path: PurePath(path).parts or (path,) for path in paths}
    found = {}
    for path, own in parts.items():
        others = [other for name, other in parts.items() if name != path]
        count = next((n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in others)), len(own))
        found[path] = str(PurePath(*own[-count:]))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shown(name: str, value: Any) -> str:
    if value is None:
        return f"no {name}"
    if value is True:
        return name
    if isinstance(value, Digest):
        return f"{name} {value.short}"
    if isinstance(value, float):
        return f"{name} {value:g}" if float(f"{value:g}") == value else f"{name} {value!r}"
    return f"{name} {value if isinstance(value, str) else canonical(value)}"
