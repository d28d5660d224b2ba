"""Grid searches: the options of each run, the claim of the folder, and the results that are written."""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from unified.cli.commands.finetuning.grid import finetune_grid
from unified.errors import TrainingFailed, UnifiedError
from unified.reports.results import write_result
from unified.tasks.catalogue import task_named
from unified.tasks.grids import Grid
from unified.tasks.several import tasks_named

#: Score on the development set by learning rate; the seed is added to it.
SCORES = {1.0: 70.0, 2.0: 60.0, 4.0: 70.0}


class Runs:
    """Stands for `unified finetune`: leaves results, keeps the options of each run, and fails in ``broken`` folders."""

    def __init__(self, broken: tuple[str, ...] = ()):
        self.asked: list[Namespace] = []
        self.broken = broken

    def __call__(self, args: Namespace) -> int:
        self.asked.append(args)
        folder = Path(args.output)
        if args.dry_run:
            return 0
        folder.mkdir(parents=True)
        if folder.name in self.broken:
            raise TrainingFailed("no memory")
        result(folder, "rte", "accuracy", SCORES[args.lr] + args.seed, args.seed)
        return 0


def result(folder: Path, task: str, measure: str, score: float, seed: int) -> None:
    folder.mkdir(exist_ok=True)
    write_result(
        folder, task=task, run="ours", seed=seed, command=[], scores={"valid": {"other": 1.0, measure: score}},
        measure=measure, model={"name": "m", "sha256": "a"}, settings={}, data={}, published={},
    )  # fmt: skip


@pytest.fixture
def args(tmp_path, monkeypatch) -> Namespace:
    monkeypatch.chdir(tmp_path)
    for name in ("data/train.tsv", "data/deeper/dev.tsv", "model.pt", "own.tsv", "seen.tsv"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name, encoding="utf-8")
    return Namespace(
        task="rte", data="data", init="model.pt", output="out", grid=["lr=1,2,4"], seeds="3,5", seed=7, dry_run=False,
        run_name="mine", system=None, lr=None, batch_size=None, head_lr=0.5, command="finetune", valid=None, test=None,
        json=False, config=None, report_to=None, micro_batch=2, max_length=9, device="cpu", fairseq="",
    )  # fmt: skip


def changed(args: Namespace, **changes: object) -> Namespace:
    return Namespace(**{**vars(args), **changes})


def digest(name: str) -> str:
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()


def claim(folder: str = "out") -> dict:
    return json.loads((Path(folder) / "claim.json").read_text(encoding="utf-8"))


def test_every_setting_is_run_with_every_seed_in_a_folder_of_its_own(args):
    runs = Runs()
    assert finetune_grid(args, task_named("rte"), runs) == 0
    assert [(one.lr, one.seed, one.output) for one in runs.asked] == [
        (lr, seed, str(Path("out", f"lr-{lr:g}_seed-{seed}"))) for lr in SCORES for seed in (3, 5)
    ]
    for one in runs.asked:
        own = {"lr": one.lr, "seed": one.seed, "output": one.output, "grid": None, "seeds": None}
        assert vars(one) == vars(args) | own


def test_the_choice_is_written_down_with_all_that_was_tried(args, capsys):
    """70 + 3 and 70 + 5 have the mean 74 and the deviation sqrt(2); 1 and 4 are tied."""
    assert finetune_grid(args, task_named("rte"), Runs(broken=("lr-2_seed-3",))) == 0
    root = 2**0.5
    first = {"setting": {"lr": 1.0}, "scores": {"3": 73.0, "5": 75.0}, "mean": 74.0, "problems": {}}
    second = {"setting": {"lr": 2.0}, "scores": {"5": 65.0}, "mean": 65.0, "problems": {"3": "no memory"}}
    content = json.loads(Path("out/results.json").read_text(encoding="utf-8"))
    assert content == {
        "task": "rte", "run": "mine", "measure": "valid accuracy", "grid": {"lr": [1.0, 2.0, 4.0]}, "source": "",
        "seeds": [3, 5],
        "settings": [
            {**first, "deviation": pytest.approx(root)},
            {**second, "deviation": None},
            {**first, "setting": {"lr": 4.0}, "deviation": pytest.approx(root)},
        ],
        "chosen": {
            **first, "deviation": pytest.approx(root), "seed": 5, "folder": "lr-1_seed-5", "ties": [{"lr": 4.0}],
        },
    }  # fmt: skip
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-4:] == [
        "| 4 | 73.00 | 75.00 | 74.00 ± 1.41 |  |",
        "chosen by the mean of valid accuracy: lr 1 (74.00)",
        "lr 4 has the same mean; the first in the grid is taken",
        f"its best seed is 5: {Path('out/lr-1_seed-5')}",
    ]
    assert printed.err.splitlines() == [
        "run 1 of 6: lr 1, seed 3",
        "run 2 of 6: lr 1, seed 5",
        "run 3 of 6: lr 2, seed 3",
        "run 3 of 6: no memory; the others go on",
        *(f"run {n} of 6: lr {lr}, seed {seed}" for n, lr, seed in ((4, 2, 5), (5, 4, 3), (6, 4, 5))),
        f"written to {Path('out/results.json')}; `unified results out` makes a table of all scores",
    ]


def test_a_setting_without_any_score_has_no_mean(args):
    broken = Runs(broken=("lr-2_seed-3", "lr-2_seed-5"))
    assert finetune_grid(args, task_named("rte"), broken) == 0
    row = json.loads(Path("out/results.json").read_text(encoding="utf-8"))["settings"][1]
    problems = {"3": "no memory", "5": "no memory"}
    assert row == {"setting": {"lr": 2.0}, "scores": {}, "mean": None, "deviation": None, "problems": problems}


def test_a_dry_run_asks_for_finished_runs_too_and_writes_nothing(args, capsys):
    assert finetune_grid(args, task_named("rte"), Runs()) == 0
    before = Path("out/results.json").read_bytes()
    capsys.readouterr()
    dry = Runs()
    assert finetune_grid(changed(args, dry_run=True), task_named("rte"), dry) == 0
    assert len(dry.asked) == 6 and Path("out/results.json").read_bytes() == before
    printed = capsys.readouterr()
    assert printed.out == "" and "finished" not in printed.err and len(printed.err.splitlines()) == 6
    again = Runs()
    assert finetune_grid(args, task_named("rte"), again) == 0 and again.asked == []
    assert "run 6 of 6: lr 4, seed 5 (finished before)\n" in capsys.readouterr().err
    unbegun = changed(args, dry_run=True, output="new")
    assert finetune_grid(unbegun, task_named("rte"), Runs()) == 0 and not Path("new").exists()


def test_the_published_grid_is_that_of_the_task_and_a_seed_alone_is_the_option(args):
    task = replace(task_named("rte"), grid=Grid({"lr": (2.0, 4.0)}, "a paper"))
    runs = Runs()
    assert finetune_grid(changed(args, grid=[], seeds=None), task, runs) == 0
    assert [(one.lr, one.seed) for one in runs.asked] == [(2.0, 7), (4.0, 7)]
    content = json.loads(Path("out/results.json").read_text(encoding="utf-8"))
    assert content["source"] == "a paper" and content["seeds"] == [7] and content["chosen"]["ties"] == []


def test_seeds_alone_are_runs_of_one_setting(args):
    runs = Runs()
    assert finetune_grid(changed(args, grid=None, lr=2.0), task_named("rte"), runs) == 0
    assert [(one.lr, one.seed, Path(one.output).name) for one in runs.asked] == [(2.0, 3, "seed-3"), (2.0, 5, "seed-5")]


def test_a_folder_is_claimed_by_what_all_its_runs_share(args):
    assert finetune_grid(args, task_named("rte"), Runs()) == 0
    assert claim() == {
        "settings": {
            "task": "rte", "--run-name": "mine", "--system": None, "--lr": None, "--batch-size": None, "--head-lr": 0.5,
            "--valid": None, "--test": None, "--max-length": 9, "--fairseq": {},
        },
        "inputs": {
            "--init": {"model.pt": digest("model.pt")},
            "--data": {"dev.tsv": digest("data/deeper/dev.tsv"), "train.tsv": digest("data/train.tsv")},
        },
    }  # fmt: skip
    own = changed(args, data="own.tsv", test="seen.tsv", output="other")
    assert finetune_grid(own, task_named("rte"), Runs()) == 0
    assert claim("other")["inputs"]["--data"] == {name: digest(name) for name in ("own.tsv", "seen.tsv")}


def test_files_of_the_output_are_no_data_and_a_data_set_of_the_hub_is_no_file(args):
    inside = changed(args, output="data/out")
    assert finetune_grid(inside, task_named("rte"), Runs()) == 0
    again = Runs()
    assert finetune_grid(inside, task_named("rte"), again) == 0 and again.asked == []
    assert claim("data/out")["inputs"]["--data"].keys() == {"dev.tsv", "train.tsv"}
    hub = changed(args, data="hub:owner/name@train", valid="hub:owner/name@valid", output="of-hub")
    assert finetune_grid(hub, task_named("rte"), Runs()) == 0
    assert claim("of-hub")["inputs"]["--data"] == {}


def test_options_that_decide_no_score_may_change_and_others_may_not(args):
    assert finetune_grid(args, task_named("rte"), Runs()) == 0
    free = {
        "json": True,
        "config": "run.yaml",
        "report_to": "wandb",
        "micro_batch": 1,
        "seed": 8,
        "command": "x",
        "device": "cuda",
        "fairseq": "--log-interval=5",
    }
    again = Runs()
    assert finetune_grid(changed(args, **free), task_named("rte"), again) == 0 and again.asked == []
    for name, value in (
        ("max_length", 8),
        ("head_lr", None),
        ("system", "spanbert"),
        ("task", "wnli"),
        ("fairseq", "--clip-norm 1"),
    ):
        with pytest.raises(UnifiedError, match=f"^out: was begun with .*{name.replace('_', '-')}.*; give another --ou"):
            finetune_grid(changed(args, **{name: value}), task_named("rte"), Runs())


def test_the_score_of_several_tasks_is_their_mean(args, capsys):
    """Where all tasks have one measure, the mean has its name; where they have several, it is called average."""
    for measures, name in ((("accuracy", "accuracy"), "accuracy"), (("accuracy", "f1"), "average")):

        def runs(own: Namespace, measures=measures) -> int:
            Path(own.output).mkdir(parents=True)
            for task, measure, score in zip(("rte", "wnli"), measures, (60.0, 80.0), strict=True):
                result(Path(own.output) / task, task, measure, score + own.seed, own.seed)
            return 0

        given = changed(args, grid=None, output=f"out-{name}")
        assert finetune_grid(given, tasks_named("rte, wnli"), runs) == 0
        content = json.loads(Path(f"out-{name}/results.json").read_text(encoding="utf-8"))
        assert content["measure"] == f"valid {name}" and content["chosen"]["scores"] == {"3": 73.0, "5": 75.0}
        again = Runs()
        assert finetune_grid(given, tasks_named("rte, wnli"), again) == 0 and again.asked == []
        # The size of micro-batches decides how many updates several tasks get.
        with pytest.raises(UnifiedError, match="--micro-batch"):
            finetune_grid(changed(given, micro_batch=1), tasks_named("rte, wnli"), again)
        capsys.readouterr()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data": "nowhere"}, "--data nowhere: no such file or folder"),
        ({"init": "nowhere.pt"}, "--init nowhere.pt: no such file or folder"),
        ({"head_lr": 0.5, "grid": ["head-lr=1,2"]}, "--head-lr 0.5: --grid varies it; leave it out"),
        ({"grid": [], "task": "swag"},
         "--grid: no grid is published for swag; name the settings to try, such as --grid lr=1e-5,2e-5"),
        ({"grid": [], "task": "swag", "system": "spanbert"},
         "--grid: no grid of spanbert is published for swag; name the settings to try, such as --grid lr=1e-5,2e-5"),
        ({"task": "imdb"}, "--grid: the validation files of imdb are its test set, on which nothing may be chosen; "
         "--valid-share 0.1 chooses on a tenth of its training items instead"),
        ({"task": "imdb", "grid": None}, "--seeds: the validation files of imdb are its test set, on which nothing may "
         "be chosen; --valid-share 0.1 chooses on a tenth of its training items instead"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused_before_any_run(args, changes, says):
    given, runs = changed(args, **changes), Runs()
    with pytest.raises(UnifiedError) as refused:
        finetune_grid(given, task_named(given.task), runs)
    assert str(refused.value) == says and runs.asked == [] and not Path("out").exists()
