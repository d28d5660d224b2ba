"""Readers of the files in which runs leave their figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from entries import Figures

from unified.errors import UnifiedError
from unified.reports.results import measures_of, read_results
from unified.reports.training_log import read_training_log
from unified.tasks.metrics import folder_unigram_entropy

#: Figures of an evaluation that are too many for a line.
_LONG = ("paradigm", "tied")
#: Digits after the point that a line keeps.
_DIGITS = 6
#: Figures of a name: one number, or the bounds of an interval.
Found = dict[str, float | list[float]]


def read_figures(folder: Path, places: Iterable[Figures]) -> Found:
    """All figures of a run, rounded, by name; an interval's name ends in ``.interval``.

    Raises:
        UnifiedError: a file is missing or is something else, or two files have a figure of one name.
    """
    found: Found = {}
    for place in places:
        path = folder / place.path
        if not path.exists():
            raise UnifiedError(f"{path}: missing; the run should have left its figures there")
        for name, value in READERS[place.kind](path).items():
            full = f"{place.prefix}.{name}" if place.prefix else name
            if full in found:
                raise UnifiedError(f"{path}: a second figure {full}; give its file another prefix in the plan")
            found[full] = [round(one, _DIGITS) for one in value] if isinstance(value, list) else round(value, _DIGITS)
    return found


def _finetuned(path: Path) -> Found:
    """Measures of every split in a ``results.json`` of ``unified finetune``: ``valid.accuracy``, with its interval."""
    (result,) = read_results([path])
    found: Found = {}
    for split, scores in result["scores"].items():
        found |= {f"{split}.{name}": value for name, value in measures_of(scores).items()}
    for split, intervals in result.get("intervals", {}).items():  # peers write none
        found |= {f"{split}.{name}.interval": bounds for name, bounds in intervals.items()}
    return found


def _evaluated(path: Path) -> Found:
    """Figures in a ``results.json`` of ``unified evaluate``, without single paradigms; intervals of the whole alone."""
    (result,) = read_results([path])
    details = dict(result["details"])
    intervals = details.pop("intervals", {})
    whole = {f"{name}.interval": pair for name, pair in intervals.items() if isinstance(pair, list)}
    return {**dict(_leaves({name: one for name, one in details.items() if name not in _LONG}, ())), **whole}


def _prepared(path: Path) -> Found:
    """Counts in the manifest of ``unified prepare``, and the unigram entropy of the validation text in bits a token."""
    manifest = json.loads(path.read_text(encoding="utf-8"))
    counts = {name: manifest[name] for name in ("symbols", "splits")}
    return {**dict(_leaves(counts, ())), "unigram": folder_unigram_entropy(path.parent, "valid").bits}


def _trained(path: Path) -> Found:
    """Last validation losses (bits) and accuracies in the log of a pre-training."""
    log = read_training_log(path)
    return {
        name: points[-1][1]
        for name, points in log.items()
        if name.startswith("valid_") and name.endswith(("_loss", "_accuracy"))
    }


def _numbers(path: Path) -> Found:
    """All numbers of a file of JSON, nested names joined by points, and lists of two numbers as intervals."""
    return dict(_leaves(json.loads(path.read_text(encoding="utf-8")), ()))


def _leaves(content: Any, names: tuple[str, ...]) -> Iterable[tuple[str, float | list[float]]]:
    if isinstance(content, Mapping):
        for name, inner in content.items():
            yield from _leaves(inner, (*names, str(name)))
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield ".".join(names), float(content)
    elif isinstance(content, list) and len(content) == 2 and all(isinstance(one, int | float) for one in content):
        yield ".".join(names), [float(one) for one in content]


#: Kind of a file -> what reads it.
READERS: dict[str, Callable[[Path], Found]] = {
    "finetuned": _finetuned,
    "evaluated": _evaluated,
    "prepared": _prepared,
    "trained": _trained,
    "numbers": _numbers,
}
