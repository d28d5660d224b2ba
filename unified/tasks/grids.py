"""Grids of settings: which are tried with which seeds, how they scored on the development set, and which is chosen."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

from unified.errors import UnifiedError, nearest
from unified.reports.markdown import table_lines
from unified.training.settings import LARGEST_SEED

#: Settings that a grid may vary, as :class:`unified.tasks.settings.Training` has them, and the type of each.
VARIED: Mapping[str, Callable[[str], float]] = {
    "lr": float,
    "batch_size": int,
    "epochs": int,
    "max_length": int,
    "head_lr": float,
    "layer_decay": float,
}

_Number = TypeVar("_Number", int, float)

#: Values by the names in :data:`VARIED`.
Setting = Mapping[str, float]


@dataclass(frozen=True)
class Grid:
    """All combinations of some values.

    Attributes:
        values: by the names in :data:`VARIED`.
        source: where the grid is published; empty for a user's.
    """

    values: Mapping[str, tuple[float, ...]]
    source: str = ""

    @property
    def settings(self) -> list[Setting]:
        """Every combination, the last value varying fastest; one without any value where nothing varies."""
        return [dict(zip(self.values, chosen, strict=True)) for chosen in product(*self.values.values())]


#: Settings from which SpanBERT's authors chose for all tasks but coreference.
SPANBERT_GRID = Grid({"lr": (5e-6, 1e-5, 2e-5, 3e-5, 5e-5), "batch_size": (16, 32)}, "Joshi et al. 2020, appendix B")


@dataclass
class Tried:
    """Scores of the fine-tunings with one setting.

    Attributes:
        setting: what distinguishes it from the others of the grid.
        scores: of the development set, by seed, in percent.
        problems: why a seed has no score, by seed.
    """

    setting: Setting
    scores: dict[int, float] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)

    def add(self, seed: int, score: float) -> None:
        """Note the score of a run; one that is no finite number is a problem."""
        if math.isfinite(score):
            self.scores[seed] = score
        else:
            self.problems[seed] = f"diverged, its score is {score}"

    @property
    def mean(self) -> float:
        """Mean score over the seeds that have one; NaN where none has."""
        return statistics.mean(self.scores.values()) if self.scores else math.nan

    @property
    def deviation(self) -> float | None:
        """Standard deviation of a sample; None where there are fewer than two scores."""
        return statistics.stdev(self.scores.values()) if len(self.scores) > 1 else None

    @property
    def best_seed(self) -> int:
        """The seed with the highest score; of equal ones the first."""
        return max(self.scores, key=lambda seed: self.scores[seed])


@dataclass(frozen=True)
class ChosenSetting:
    """The setting with the highest mean.

    Attributes:
        tried: that setting.
        ties: other settings with exactly this mean, which come later in the grid.
    """

    tried: Tried
    ties: tuple[Tried, ...]


def choose(grid: Sequence[Tried]) -> ChosenSetting:
    """Choose by the mean over seeds; a setting of which a run failed or diverged cannot be chosen.

    Raises:
        UnifiedError: runs of every setting failed.
    """
    complete = [tried for tried in grid if tried.scores and not tried.problems]
    if not complete:
        problems = "; ".join(dict.fromkeys(problem for tried in grid for problem in tried.problems.values()))
        raise UnifiedError(f"--grid: no setting has a score for each of its seeds: {problems}")
    best = max(tried.mean for tried in complete)
    chosen, *ties = [tried for tried in complete if tried.mean == best]
    return ChosenSetting(chosen, tuple(ties))


def parse_grid(words: Sequence[str]) -> Grid:
    """A grid as ``--grid lr=1e-5,2e-5 batch-size=16,32`` names it.

    Args:
        words: settings with their values, one in each word or several with white space between them.

    Raises:
        UnifiedError: a word names no setting, one that another word names, or values that are none.
    """
    values: dict[str, tuple[float, ...]] = {}
    for word in [part for given in words for part in given.split() or [given]]:
        option, equals, listed = word.partition("=")
        name = option.replace("-", "_")
        if name not in VARIED or not equals:
            known = [known.replace("_", "-") for known in VARIED]
            meant = "" if name in VARIED else nearest(option, known)
            raise UnifiedError(
                f"--grid {word}: expected a setting and its values, such as lr=1e-5,2e-5{meant}; settings are "
                f"{', '.join(known)}"
            )
        if name in values:
            raise UnifiedError(f"--grid {word}: {option} is there twice; give all of its values at once")
        values[name] = _values(f"--grid {word}", listed, VARIED[name])
    return Grid(values)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds as ``--seeds 1,2,3`` names them.

    Raises:
        UnifiedError: one is no integer, or there twice, or out of range.
    """
    seeds = _values(f"--seeds {text}", text, int)
    for seed in seeds:
        if not 0 <= seed <= LARGEST_SEED:
            raise UnifiedError(f"--seeds {text}: seeds are integers from 0 to {LARGEST_SEED}, got {seed}")
    return seeds


def described(setting: Setting) -> str:
    """A setting in words of the command line."""
    return ", ".join(f"{option(name)} {_shown(value)}" for name, value in setting.items()) or "as given"


def option(name: str) -> str:
    """A setting's name on the command line, without dashes before it."""
    return name.replace("_", "-")


def run_folder(setting: Setting, seed: int) -> str:
    """Name of the folder of a run."""
    return "_".join((*(f"{option(name)}-{_shown(value)}" for name, value in setting.items()), f"seed-{seed}"))


def table(grid: Sequence[Tried], seeds: Iterable[int], measure: str, chosen: Tried) -> str:
    """Table in Markdown: a line for each setting with the score of each seed, mean, deviation, and remarks."""
    seeds = list(seeds)
    names = [option(name) for name in grid[0].setting]
    rows = []
    for tried in grid:
        shown = [f"{tried.scores[seed]:.2f}" if seed in tried.scores else "failed" for seed in seeds]
        mean = "" if math.isnan(tried.mean) else f"{tried.mean:.2f}"
        mean += "" if tried.deviation is None else f" ± {tried.deviation:.2f}"
        said = "chosen" if tried is chosen else "; ".join(f"seed {s}: {why}" for s, why in tried.problems.items())
        rows.append([*map(_shown, tried.setting.values()), *shown, mean, said])
    return "\n".join(table_lines([*names, *(f"seed {seed}" for seed in seeds), measure, ""], rows))


def _shown(value: float) -> str:
    """Six digits of a value, or all where it has more: different values have different texts."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _values(word: str, listed: str, parse: Callable[[str], _Number]) -> tuple[_Number, ...]:
    try:
        found = tuple(parse(value) for value in listed.split(","))
    except ValueError:
        wanted = "integers" if parse is int else "numbers"
        raise UnifiedError(f"{word}: expected {wanted} with commas between them") from None
    if len(set(found)) < len(found):
        raise UnifiedError(f"{word}: a value is there twice")
    return found
