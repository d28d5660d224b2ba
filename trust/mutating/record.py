"""The record of mutation testing in the repository: which parts of which modules were tried, and what was not noticed.

A part is a class, a function or another statement of a module. What tests noticed of it is not run again, on any
machine, until the part changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from trust.mutating.operators import Mutant

#: A line for each module of which mistakes were tried.
FILE = Path(__file__).parent / "tried.jsonl"


class Record:
    """What was tried of each module, in a file of JSON lines.

    A line has the name of a ``module`` and its ``parts``: the hash of each, with its number of mistakes and the keys of
    those that no test noticed or that were not tried, because they change nothing or are no valid Python.
    """

    def __init__(self, file: Path):
        self.file = file
        texts = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.parts: dict[str, dict[str, tuple[int, list[str]]]] = {
            line["module"]: line["parts"] for line in map(json.loads, texts)
        }

    def noticed(self, module: str, mutants: Iterable[Mutant]) -> set[tuple[str, str]]:
        """Part and key of those among all mutants of a module's source that tests have noticed.

        Nothing is known of a part that had another number of mistakes when it was tried: more kinds are made now.
        """
        by_part: dict[str, list[str]] = {}
        for one in mutants:
            by_part.setdefault(one.part, []).append(one.key)
        known = self.parts.get(module, {})
        return {
            (part, key)
            for part, keys in by_part.items()
            if part in known and known[part][0] == len(keys)
            for key in keys
            if key not in known[part][1]
        }

    def add(self, module: str, mutants: Iterable[Mutant], noticed: set[tuple[str, str]]) -> None:
        """Keeps which of all mutants of a module's source were noticed; what was known of the module goes."""
        parts: dict[str, tuple[int, list[str]]] = {}
        for one in mutants:
            number, left = parts.get(one.part, (0, []))
            parts[one.part] = number + 1, left if (one.part, one.key) in noticed else [*left, one.key]
        self.parts[module] = parts

    def write(self, modules: Iterable[str]) -> None:
        """Writes a line for each of the ``modules`` that were tried; those of others go, as their files have gone."""
        lines = [{"module": module, "parts": self.parts[module]} for module in sorted(modules) if module in self.parts]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        self.file.write_text(text, encoding="utf-8")
