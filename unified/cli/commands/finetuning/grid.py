"""Fine-tunings with every setting of a grid and several seeds, and the choice among them on the development set."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.errors import TrainingFailed, UnifiedError
from unified.files.claims import Claim, claimed_folder
from unified.files.hashes import hashes
from unified.files.rows import is_hub
from unified.files.whole import resolved
from unified.reports.results import FILE_NAME, read_results, write_whole
from unified.tasks.grids import (
    ChosenSetting,
    Grid,
    Tried,
    choose,
    described,
    option,
    parse_grid,
    parse_seeds,
    run_folder,
    table,
)

if TYPE_CHECKING:
    from unified.tasks.several import AnyTask


def finetune_grid(
    args: argparse.Namespace,
    task: AnyTask,
    finetune: Callable[[argparse.Namespace], int],
) -> int:
    """Fine-tune with each setting and seed; runs that are finished are not repeated. Then write down the choice.

    Args:
        args: of ``unified finetune``, with ``grid`` or ``seeds``.
        task: what they name, with the settings of ``--system``.
        finetune: ``unified finetune`` with one setting and one seed.

    Raises:
        UnifiedError: the grid cannot be run, all runs fail, or as ``finetune``.
    """
    from unified.tasks.selection import require_development_set

    require_development_set(task, "--grid" if args.grid is not None else "--seeds")
    grid, seeds = _grid_of(args, task), (args.seed,) if args.seeds is None else parse_seeds(args.seeds)
    output = Path(args.output)
    with claimed_folder(output, _claim(args, task), "give another --output, or remove the folder"):
        _run(args, task, grid, seeds, finetune)
    return 0


def _run(
    args: argparse.Namespace,
    task: AnyTask,
    grid: Grid,
    seeds: Sequence[int],
    finetune: Callable[[argparse.Namespace], int],
) -> None:
    output = Path(args.output)
    tried = [Tried(setting) for setting in grid.settings]
    runs = [(one, seed) for one in tried for seed in seeds]
    measure = ""
    for number, (one, seed) in enumerate(runs, 1):
        folder = output / run_folder(one.setting, seed)
        results = _result_files(task, folder)
        finished = all(path.is_file() for path in results) and not args.dry_run
        said = f"run {number} of {len(runs)}: {described(one.setting)}, seed {seed}"
        print(f"{said}{' (finished before)' if finished else ''}", file=sys.stderr, flush=True)
        own = {"grid": None, "seeds": None, "seed": seed, "output": str(folder)}
        try:
            if not finished:
                finetune(argparse.Namespace(**{**vars(args), **one.setting, **own}))
        except TrainingFailed as problem:
            one.problems[seed] = str(problem)
            print(f"run {number} of {len(runs)}: {problem}; the others go on", file=sys.stderr, flush=True)
            continue
        if not args.dry_run:
            measure, score = _score(results)
            one.add(seed, score)
    if not args.dry_run:
        _report(args, task.name, grid, seeds, tried, measure)


def _grid_of(args: argparse.Namespace, task: AnyTask) -> Grid:
    """The grid that the options name: the user's, the published one, or one setting with several seeds."""
    from unified.tasks.settings import Task

    if args.grid is None:
        return Grid({})
    published = task.grid if isinstance(task, Task) else None
    grid = parse_grid(args.grid) if args.grid else published
    if grid is None:
        system = f" of {args.system}" if args.system else ""
        raise UnifiedError(
            f"--grid: no grid{system} is published for {task.name}; name the settings to try, such as "
            "--grid lr=1e-5,2e-5"
        )
    for name in grid.values:
        if vars(args)[name] is not None:
            raise UnifiedError(f"--{option(name)} {vars(args)[name]}: --grid varies it; leave it out")
    return grid


def _claim(args: argparse.Namespace, task: AnyTask) -> Claim:
    """The settings that all runs of a folder share; further settings and seeds may be tried in it later."""
    from unified.conversions.named_models import checkpoint_named
    from unified.tasks.run_settings import decisive_values

    data, output, start = Path(args.data), resolved(args.output), checkpoint_named(args.init)
    for name, path in (("--data", data), ("--init", start)):
        if not (is_hub(path) or path.exists()):
            raise UnifiedError(f"{name} {path}: no such file or folder")
    files = sorted(path for path in data.rglob("*") if path.is_file()) if data.is_dir() else [data]
    files += [Path(path) for path in (args.valid, args.test) if path is not None]
    files = [path for path in files if not (is_hub(path) or path.resolve().is_relative_to(output))]
    options = decisive_values(vars(args), task)
    settings = {name if name == "task" else f"--{option(name)}": value for name, value in options.items()}
    return Claim(settings, {"--init": hashes([start]), "--data": hashes(files)})


def _result_files(task: AnyTask, folder: Path) -> list[Path]:
    """Names of the files that a finished run has written: one, or one for each of several tasks."""
    from unified.tasks.several import SeveralTasks

    folders = [folder / member.name for member in task.members] if isinstance(task, SeveralTasks) else [folder]
    return [one / FILE_NAME for one in folders]


def _score(files: Sequence[Path]) -> tuple[str, float]:
    """The measure that chooses and its score on the development set, the mean over several tasks."""
    results = read_results(files)
    scores = [result["scores"]["valid"][result["measure"]] for result in results]
    names = dict.fromkeys(result["measure"] for result in results)
    return names.popitem()[0] if len(names) == 1 else "average", sum(scores) / len(scores)


def _report(
    args: argparse.Namespace, task: str, grid: Grid, seeds: Sequence[int], tried: Sequence[Tried], measure: str
) -> None:
    """Write the table and the choice, and print them."""
    output, choice = Path(args.output), choose(tried)
    print(table(tried, seeds, measure, choice.tried))
    content: dict[str, Any] = {
        "task": task,
        "run": args.run_name,
        "measure": f"valid {measure}",
        "grid": {option(name): list(values) for name, values in grid.values.items()},
        "source": grid.source,
        "seeds": list(seeds),
        "settings": [_row(one) for one in tried],
        "chosen": _chosen(output, choice),
    }
    path = write_whole(output / FILE_NAME, content)
    best = content["chosen"]
    print(f"chosen by the mean of valid {measure}: {described(choice.tried.setting)} ({choice.tried.mean:.2f})")
    for other in choice.ties:
        print(f"{described(other.setting)} has the same mean; the first in the grid is taken")
    print(f"its best seed is {best['seed']}: {output / best['folder']}")
    print(f"written to {path}; `unified results {output}` makes a table of all scores", file=sys.stderr)


def _row(one: Tried) -> dict[str, Any]:
    return {
        "setting": {option(name): value for name, value in one.setting.items()},
        "scores": one.scores,
        "mean": one.mean if one.scores else None,
        "deviation": one.deviation,
        "problems": one.problems,
    }


def _chosen(output: Path, choice: ChosenSetting) -> dict[str, Any]:
    seed = choice.tried.best_seed
    folder = run_folder(choice.tried.setting, seed)
    return {
        **_row(choice.tried),
        "seed": seed,
        "folder": folder,
        "ties": [_row(other)["setting"] for other in choice.ties],
    }
