"""Grids of settings: what is published, which runs are made, and what is chosen on the development set."""

from __future__ import annotations

import json
import math
import shlex
from argparse import Namespace
from pathlib import Path

import pytest

from tests.integration.cli.test_task_commands import refused, value_of
from tests.integration.tasks.test_selection import reviews
from tests.support.task_folders import WORDS, language_model
from unified.checkpoints.trained import find_checkpoint
from unified.cli import main
from unified.cli.commands.finetuning.grid import finetune_grid
from unified.errors import TrainingFailed, UnifiedError
from unified.reports.results import FILE_NAME, read_results, write_result
from unified.tasks.catalogue import TASKS, task_named
from unified.tasks.grids import Tried, choose, parse_grid, parse_seeds, run_folder, table
from unified.tasks.heads.items import TextItem, write_items
from unified.tasks.settings import Task
from unified.tasks.several import tasks_named

FIVE_RATES = (5e-6, 1e-5, 2e-5, 3e-5, 5e-5)


def test_published_grids():
    """Devlin et al. 2019: section 4.1, four rates for GLUE at 32 sequences and 3 epochs; appendix A.3 for the others.

    Joshi et al. 2020, appendix B: five rates, 16 or 32 sequences, for all tasks but coreference.
    """
    berts = {"cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli"}
    for name in berts:
        assert TASKS[name].grid.values == {"lr": (5e-5, 4e-5, 3e-5, 2e-5)}
        assert (TASKS[name].training.batch_size, TASKS[name].training.epochs) == (32, 3)
    assert TASKS["conll2003"].grid.values == {
        "batch_size": (16, 32), "lr": (5e-5, 3e-5, 2e-5), "epochs": (2, 3, 4)
    }  # fmt: skip
    assert len(TASKS["conll2003"].grid.settings) == 18
    mrqa = {"newsqa", "triviaqa", "searchqa", "hotpotqa", "naturalquestions", "mrqa_squad"}
    spanberts = [TASKS[name].grid for name in (*mrqa, "tacred")]
    spanberts += [TASKS[name].as_in("spanbert").grid for name in (*berts, "squad1.1", "squad2.0")]
    for grid in spanberts:
        assert grid.values == {"lr": FIVE_RATES, "batch_size": (16, 32)} and len(grid.settings) == 10
    known = [task for task in TASKS.values() if isinstance(task, Task)]
    assert {task.name for task in known if task.grid} == {*berts, *mrqa, "tacred", "conll2003"}
    assert all(task.grid.source for task in known if task.grid)
    assert {system for task in known for system in task.systems if task.as_in(system).grid} == {"spanbert"}


def test_a_grid_in_words():
    grid = parse_grid(["lr=1e-5,2e-5", "batch-size=16,32"])
    assert grid.settings == [
        {"lr": 1e-5, "batch_size": 16}, {"lr": 1e-5, "batch_size": 32},
        {"lr": 2e-5, "batch_size": 16}, {"lr": 2e-5, "batch_size": 32},
    ]  # fmt: skip
    assert run_folder(grid.settings[1], 7) == "lr-1e-05_batch-size-32_seed-7"
    assert parse_seeds("1,2,3") == (1, 2, 3)
    for words, says in (
        (["learning_rates=1e-5"], "--grid learning_rates=1e-5: expected a setting and its values, such as"),
        (["head-r=1e-5"], "did you mean 'head-lr'?"),
        (["epochs"], "settings are lr, batch-size, epochs, max-length, head-lr, layer-decay"),
        (["epochs=1.5"], "--grid epochs=1.5: expected integers with commas between them"),
        (["lr=1e-5,"], "expected numbers with commas"),
        (["epochs=2,2"], "a value is there twice"),
        (["epochs=2", "epochs=3"], "epochs is there twice; give all of its values at once"),
    ):
        with pytest.raises(UnifiedError) as raised:
            parse_grid(words)
        assert says in str(raised.value)
    with pytest.raises(UnifiedError, match="--seeds 1,b: expected integers"):
        parse_seeds("1,b")


def tried(rate: float, *scores: float) -> Tried:
    one = Tried({"lr": rate})
    for seed, score in enumerate(scores, 1):
        one.add(seed, score)
    return one


def test_means_are_those_found_by_hand():
    """(80 + 84) / 2 = 82, deviation sqrt(4 + 4) = 2.83; (90 + 70) / 2 = 80, deviation sqrt(200) = 14.14."""
    grid = [tried(1e-5, 90.0, 70.0), tried(2e-5, 80.0, 84.0)]
    choice = choose(grid)
    assert choice.tried is grid[1] and choice.tried.best_seed == 2 and not choice.ties
    assert (grid[0].mean, grid[1].mean) == (80.0, 82.0)
    assert grid[1].deviation == pytest.approx(math.sqrt(8)) and grid[0].deviation == pytest.approx(math.sqrt(200))
    assert table(grid, (1, 2), "f1", choice.tried).splitlines() == [
        "| lr | seed 1 | seed 2 | f1 |  |",
        "|---|---|---|---|---|",
        "| 1e-05 | 90.00 | 70.00 | 80.00 ± 14.14 |  |",
        "| 2e-05 | 80.00 | 84.00 | 82.00 ± 2.83 | chosen |",
    ]


def test_ties_and_failures():
    """A setting of which a seed failed is not chosen, whatever the other seed found; the first of equal ones is."""
    failed = tried(1e-5, 99.0, math.nan)
    first, second = tried(2e-5, 80.0, 82.0), tried(3e-5, 82.0, 80.0)
    choice = choose([failed, first, second])
    assert choice.tried is first and choice.ties == (second,)
    line = table([failed, first], (1, 2), "f1", first).splitlines()[2]
    assert line == "| 1e-05 | 99.00 | failed | 99.00 | seed 2: diverged, its score is nan |"
    with pytest.raises(UnifiedError, match="no setting has a score for each of its seeds: diverged, its score is nan"):
        choose([failed])


SCORES = {1e-5: 70.0, 2e-5: 75.0, 3e-5: 60.0}


class Finetune:
    """Leaves results as `unified finetune` does; scores follow the rate, and a seed adds itself."""

    def __init__(self, broken: tuple[str, ...] = ()):
        self.called, self.broken = [], broken

    def __call__(self, args: Namespace) -> int:
        folder = Path(args.output)
        self.called.append(folder.name)
        if args.dry_run:
            return 0
        folder.mkdir(parents=True, exist_ok=True)
        if folder.name in self.broken:
            raise TrainingFailed("fairseq-train has failed; what it printed says why")
        (folder / "checkpoint_best.pt").write_text(folder.name)
        (folder / "checkpoint_last.pt").write_text(folder.name)
        write_result(
            folder, task="rte", run="ours", seed=args.seed, command=["fairseq-train"], checkpoint="last",
            scores={"valid": {"accuracy": SCORES[args.lr] + args.seed, "other": 1.0}}, measure="accuracy",
            model={"name": "m", "sha256": "a"}, settings={"lr": args.lr}, data={}, published={},
        )  # fmt: skip
        return 0


@pytest.fixture
def args(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.tsv").write_text("a")
    (tmp_path / "model.pt").write_text("m")
    return Namespace(
        task="rte", data=str(tmp_path / "data"), init=str(tmp_path / "model.pt"), output=str(tmp_path / "grid"),
        grid=["lr=1e-5,2e-5,3e-5"], seeds="1,3", seed=1, dry_run=False, run_name="ours", system=None,
        lr=None, batch_size=None, epochs=None, micro_batch=None, command="finetune",
        valid=None, test=None, fairseq="",
    )  # fmt: skip


FOLDERS = [f"lr-{rate:g}_seed-{seed}" for rate in SCORES for seed in (1, 3)]


def test_a_grid_is_run_and_its_choice_written_down(args, tmp_path, capsys):
    finetune = Finetune()
    assert finetune_grid(args, task_named("rte"), finetune) == 0
    assert finetune.called == FOLDERS
    printed = capsys.readouterr()
    assert "| 2e-05 | 76.00 | 78.00 | 77.00 ± 1.41 | chosen |" in printed.out
    assert "chosen by the mean of valid accuracy: lr 2e-05 (77.00)" in printed.out
    assert "run 6 of 6: lr 3e-05, seed 3" in printed.err
    content = json.loads((tmp_path / "grid" / FILE_NAME).read_text())
    assert content["chosen"]["setting"] == {"lr": 2e-5} and content["chosen"]["seed"] == 3
    assert content["chosen"]["folder"] == "lr-2e-05_seed-3" and content["chosen"]["mean"] == 77
    assert [row["mean"] for row in content["settings"]] == [72, 77, 62]
    # Whatever takes a model takes the chosen one; tables have a line for each setting.
    assert find_checkpoint(tmp_path / "grid") == tmp_path / "grid" / FOLDERS[3] / "checkpoint_last.pt"
    assert main(["results", str(tmp_path / "grid")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| ours | lr 2e-05 | 1, 3 | 77.00 ± 1.41 | 1.00 ± 0.00 |" in lines and len(lines) == 7
    assert len(read_results([tmp_path / "grid" / FILE_NAME])) == len(read_results([tmp_path])) == 6


def test_only_what_is_missing_is_run(args, tmp_path, capsys):
    """Runs that failed are tried again, and further settings and seeds join those that are there."""
    broken = Finetune(broken=(FOLDERS[2], FOLDERS[4]))
    assert finetune_grid(args, task_named("rte"), broken) == 0
    printed = capsys.readouterr()
    assert "| 2e-05 | failed | 78.00 | 78.00 | seed 1: fairseq-train has failed" in printed.out
    assert "run 3 of 6: fairseq-train has failed; what it printed says why; the others go on" in printed.err
    assert "chosen by the mean of valid accuracy: lr 1e-05 (72.00)" in printed.out
    again = Finetune()
    assert finetune_grid(args, task_named("rte"), again) == 0
    assert again.called == [FOLDERS[2], FOLDERS[4]]
    printed = capsys.readouterr()
    assert "chosen by the mean of valid accuracy: lr 2e-05 (77.00)" in printed.out
    assert "run 1 of 6: lr 1e-05, seed 1 (finished before)" in printed.err
    more = Finetune()
    assert finetune_grid(Namespace(**{**vars(args), "seeds": "1,3,5"}), task_named("rte"), more) == 0
    assert more.called == [f"lr-{rate:g}_seed-5" for rate in SCORES]
    (tmp_path / "data" / "train.tsv").write_text("b")
    with pytest.raises(UnifiedError, match=r"was begun with other contents of --data .train.tsv.; give"):
        finetune_grid(args, task_named("rte"), Finetune())
    (tmp_path / "data" / "train.tsv").write_text("a")
    with pytest.raises(UnifiedError, match="was begun with no --epochs, now 5; give another --output"):
        finetune_grid(Namespace(**{**vars(args), "epochs": 5}), task_named("rte"), Finetune())
    everything = Finetune(broken=FOLDERS)
    with pytest.raises(UnifiedError, match="no setting has a score for each of its seeds: fairseq-train has failed"):
        other = {"output": str(tmp_path / "other")}
        finetune_grid(Namespace(**{**vars(args), **other}), task_named("rte"), everything)


def test_several_tasks_are_chosen_by_their_mean(args, tmp_path):
    def finetune(own: Namespace) -> int:
        for task, score in (("rte", 60.0), ("stsb", 80.0)):
            folder = Path(own.output) / task
            folder.mkdir(parents=True)
            measure = "accuracy" if task == "rte" else "spearman"
            write_result(
                folder, task=task, run="ours", seed=own.seed, command=[], scores={"valid": {measure: score + own.seed}},
                measure=measure, together=["rte", "stsb"], checkpoint="last", model={"name": "m", "sha256": "a"},
                settings={}, data={}, published={},
            )  # fmt: skip
        return 0

    alone, task = Namespace(**{**vars(args), "grid": None}), tasks_named("rte, stsb")
    assert finetune_grid(alone, task, finetune) == 0
    assert finetune_grid(alone, task, again := Finetune()) == 0 and again.called == []
    content = json.loads((tmp_path / "grid" / FILE_NAME).read_text())
    assert content["measure"] == "valid average" and content["chosen"]["scores"] == {"1": 71.0, "3": 73.0}
    assert content["chosen"]["folder"] == "seed-3" and content["grid"] == {}


def test_one_setting_with_several_seeds(args, tmp_path, capsys):
    finetune = Finetune()
    given = Namespace(**{**vars(args), "grid": None, "lr": 2e-5})
    assert finetune_grid(given, task_named("rte"), finetune) == 0
    assert finetune.called == ["seed-1", "seed-3"]
    assert "chosen by the mean of valid accuracy: as given (77.00)\nits best seed is 3" in capsys.readouterr().out


def test_commands_of_a_grid(tmp_path, capsys):
    """--dry-run prints a command for each setting and seed; without settings the published grid is run."""
    language_model(tmp_path / "model")
    (tmp_path / "data").mkdir()
    rows = ["index\tsentence1\tsentence2\tlabel", "0\tw1\tw2\tentailment", "1\tw3\tw4\tnot_entailment"]
    for name in ("train", "dev"):
        (tmp_path / "data" / f"{name}.tsv").write_text("\n".join(rows))
    shared = ["--data", tmp_path / "data", "--init", tmp_path / "model", "--output", tmp_path / "grid", "--dry-run"]
    shared = list(map(str, shared))
    assert main(["finetune", "rte", *shared, "--seeds", "1,2", "--grid"]) == 0
    commands = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    found = [(float(value_of(words, "--lr")), int(value_of(words, "--seed"))) for words in commands]
    assert found == [(rate, seed) for rate in (5e-5, 4e-5, 3e-5, 2e-5) for seed in (1, 2)]
    assert value_of(commands[0], "--save-dir") == str(tmp_path / "grid" / "lr-5e-05_seed-1")
    assert main(["finetune", "rte", *shared, "--grid", "batch-size=1,2", "epochs=3"]) == 0
    commands = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert [value_of(words, "--batch-size") for words in commands] == ["1", "2"]
    for words, says in (
        (["--grid", "--lr", "1e-5"], "--lr 1e-05: --grid varies it; leave it out"),
        (["--grid", "--system", "unilm"], "--grid: no grid of unilm is published for rte; name the settings to try"),
        (["--grid", "--seeds", "1,1"], "--seeds 1,1: a value is there twice"),
    ):
        assert says in refused(capsys, "finetune", "rte", *shared, *words)
    assert "--grid: no grid is published for swag" in refused(capsys, "finetune", "swag", *shared, "--grid")
    assert "--grid: mrqa stands for several tasks; run it for each of newsqa," in refused(
        capsys, "finetune", "mrqa", *shared, "--grid"
    )
    reviews(tmp_path / "imdb")
    assert "--grid: the validation files of imdb are its test set, on which nothing may be chosen" in refused(
        capsys, "finetune", "imdb", *shared, "--grid", "epochs=1,2"
    )


def test_a_grid_has_a_folder_of_its_own(args, tmp_path):
    """Not one of a single fine-tuning, nor its data's files, which stay what they are while runs are written."""
    inside = Namespace(**{**vars(args), "output": str(tmp_path / "data" / "grid")})
    assert finetune_grid(inside, task_named("rte"), Finetune()) == 0
    assert finetune_grid(inside, task_named("rte"), again := Finetune()) == 0 and again.called == []
    write_items(tmp_path / "items.jsonl", [TextItem("1", WORDS[1], None, "a")])
    single = Namespace(**{**vars(args), "output": str(tmp_path / "single"), "lr": 1e-5})
    Finetune()(single)
    with pytest.raises(UnifiedError, match="is there already, and no claim beside it says what made it"):
        finetune_grid(
            args.__class__(**{**vars(args), "output": str(tmp_path / "single")}), task_named("rte"), Finetune()
        )
