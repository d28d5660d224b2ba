"""The queue of long runs: what is interrupted resumes, what fails is passed over, and a second run is compared."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recipes.test_recipes import load
from tests.support import fairseq_runs
from tests.support.prepared_python import interpreter
from unified.cli.parsing import command_of, make_parser
from unified.objectives import OBJECTIVES, parse_objectives

ROOT = Path(__file__).resolve().parents[2]
QUEUE = ROOT / "recipes" / "queue" / "run.py"

# Adds a number for each step, notes the steps in a file, goes on behind those that are there, and waits at the third as
# long as a file says so.
COUNTING = """
import json, random, sys, time
from pathlib import Path

steps, hold, result = Path("steps"), Path(sys.argv[1]), Path(sys.argv[2])
for step in range(len(steps.read_text()) if steps.exists() else 0, 6):
    while step == 3 and hold.exists():
        time.sleep(0.02)
    with steps.open("a") as stream:
        stream.write(str(step))
result.write_text(json.dumps({"score": sum(random.Random(step).random() for step in map(int, steps.read_text()))}))
"""
PLAN = """
from entries import Entry, Figures

SCORE = (Figures("numbers", "score.json"),)
count = ("python", {script!r}, {hold!r}, "score.json")
ENTRIES = [
    Entry("broken", "small", (("python", "-c", "print('no such luck'); raise SystemExit(3)"),), SCORE),
    Entry("waits", "small", (("python", "-c", "pass", "{{broken}}/score.json"),), ()),
    Entry("counts", "small", (count, ("python", "-c", "print('all')")), SCORE, {{"way": "up"}}, seed=7),
    Entry("copies", "large", (("python", {copy!r}, "{{counts}}/score.json"),), SCORE),
]
"""
COPY = "import pathlib, sys; pathlib.Path('score.json').write_text(pathlib.Path(sys.argv[1]).read_text())"


class Queue:
    """A plan of small programs in a folder, and the command that runs it."""

    def __init__(self, folder: Path, plan: str = "") -> None:
        self.folder, self.hold, copy = folder, folder / "hold", folder / "copy.py"
        script = folder / "counting.py"
        script.write_text(COUNTING)
        copy.write_text(COPY)
        text = plan or PLAN.format(script=str(script), hold=str(self.hold), copy=str(copy))
        (folder / "plan.py").write_text(text)

    def command(self, *more: str) -> list[str]:
        options = ["--plan", self.folder / "plan.py", "--results", self.folder / "results", "--nice", "0", *more]
        return list(map(str, [interpreter(), QUEUE, self.folder / "work", *options]))

    def run(self, *more: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*more), capture_output=True, text=True, env=fairseq_runs.environment())

    def start(self, *more: str) -> subprocess.Popen:
        """Start it and go on; signals reach a Python of its own."""
        words = [sys.executable, *self.command(*more)[1:]]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=fairseq_runs.environment())

    def lines(self, table: str) -> list[dict]:
        path = self.folder / "results" / f"{table}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def file(self, name: str, pattern: str) -> Path | None:
        return next(iter((self.folder / "work" / name).glob(f"*/{pattern}")), None)

    def text(self, name: str, pattern: str) -> str:
        path = self.file(name, pattern)
        return "" if path is None else path.read_text()

    def states(self) -> dict[str, str]:
        """Name of an entry -> how far it is, as --list says."""
        rows = (line.split() for line in self.run("--list").stdout.splitlines())
        return {row[-1]: row[0] for row in rows}


@pytest.fixture
def queue(tmp_path) -> Queue:
    return Queue(tmp_path)


def until(happened: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def at_third_step(queue: Queue) -> bool:
    return queue.text("counts", "steps") == "012"


PRIORITY = """
from entries import Entry
script = "import os, pathlib, time; time.sleep(0.3); group = pathlib.Path('/proc/self/autogroup'); " \\
    "print('priority', os.nice(0), group.read_text().split()[-1] if group.exists() else os.nice(0))"
ENTRIES = [Entry("low", "small", (("python", "-c", script),), ())]
"""


def test_commands_have_the_low_priority_as_processes_and_as_a_group(tmp_path):
    """A scheduler that groups sessions compares the priorities of groups."""
    queue = Queue(tmp_path, PRIORITY)
    wanted = os.nice(0) + 5
    assert queue.run("--nice", "5").returncode == 0
    assert f"priority {wanted} {wanted}\n" in queue.text("low", "log.txt")


MEETING = """
from entries import Entry
script = "import pathlib, sys, time; here, there = (pathlib.Path({folder!r}, one) for one in sys.argv[1:]); " \\
    "here.touch(); end = time.monotonic() + 60\\nwhile not there.exists(): assert time.monotonic() < end"
pair = ("left", "right")
ENTRIES = [Entry(a, "small", (("python", "-c", script, a, b),), ()) for a, b in (pair, pair[::-1])]
"""


def test_runs_at_the_same_time(tmp_path):
    """Each of two runs waits for the other; nothing is run by more than one queue."""
    queue = Queue(tmp_path, MEETING.format(folder=str(tmp_path)))
    both = queue.run("--at-once", "2")
    assert both.returncode == 0 and both.stdout.count("2 of 2 entries are finished") == 2, both.stdout + both.stderr
    assert sorted(line["name"] for line in queue.lines("small")) == ["left", "right"]
    none = queue.run("--at-once", "0")
    assert none.returncode and "--at-once 0: must be 1 or more" in none.stderr


def test_lines_failures_and_repeats(queue):
    """One line for each run; a failed one is passed over until it is asked for; what needs it waits."""
    first = queue.run()
    assert first.returncode == 1 and "2 of 4 entries are finished" in first.stdout
    assert "broken: status 3 of: python -c" in first.stdout and "no such luck" in first.stdout
    (line,) = queue.lines("small")
    assert (line["name"], line["seed"], line["settings"], line["repeats"]) == ("counts", 7, {"way": "up"}, None)
    assert line["machine"]["threads"] == 1 and len(line["commits"][0].removesuffix("-dirty")) == 40
    (copied,) = queue.lines("large")
    assert copied["figures"] == line["figures"] and copied["commands"][0].endswith("'{counts}/score.json'")
    assert queue.states() == {"broken": "failed", "waits": "to", "counts": "finished", "copies": "finished"}

    second = queue.run()
    assert "begins" not in second.stdout and queue.lines("small") == [line]
    assert "broken" in queue.run("--retry").stdout

    assert "the same figures" in queue.run("--again", "counts").stdout
    assert queue.lines("small")[1]["repeats"] == {
        **{key: line[key] for key in ("date", "commits")}, "same": True, "differences": {}
    }  # fmt: skip
    script = queue.folder / "counting.py"
    script.write_text(script.read_text().replace("Random(step)", "Random(step + 1)"))
    other = queue.run("--again", "counts")
    last = queue.lines("small")[2]
    assert other.returncode == 1 and "other figures" in other.stdout
    assert last["repeats"]["differences"] == {"score": [line["figures"]["score"], last["figures"]["score"]]}


KEEPING = """
from entries import Entry
make = ("python", "-c", "open('weights.safetensors', 'w').close()")
ENTRIES = [Entry("kept", "small", (make,), (), kept=True), Entry("not", "small", (make,), ())]
"""


def test_weights_stay_where_an_entry_says_so(tmp_path):
    queue = Queue(tmp_path, KEEPING)
    assert queue.run().returncode == 0
    assert [queue.file(name, "weights.safetensors") is not None for name in ("kept", "not")] == [True, False]


def test_what_is_made_for_its_files_is_made_where_they_are_not(tmp_path):
    """A line from elsewhere, as those that are in git, does for a figure alone."""
    queue = Queue(tmp_path, KEEPING)
    queue.run()
    shutil.rmtree(tmp_path / "work")
    assert queue.states() == {"kept": "to", "not": "finished"}
    assert queue.run().returncode == 0
    assert queue.file("kept", "weights.safetensors") is not None and queue.states()["kept"] == "finished"
    assert [line["name"] for line in queue.lines("small")] == ["kept", "not", "kept"]
    assert "begins" not in queue.run().stdout


def test_another_recipe_is_run_again(queue):
    queue.run("--only", "cop*")
    plan = queue.folder / "plan.py"
    plan.write_text(plan.read_text().replace("print('all')", "print('more')"))
    assert queue.states()["copies"] == "to"  # what it needs has changed
    queue.run("--only", "copies")
    first, second = queue.lines("large")
    assert first["recipe"] != second["recipe"] and second["repeats"] is None


def test_an_ended_queue_ends_its_run_which_resumes(queue):
    queue.hold.touch()
    process = queue.start("--only", "counts")
    until(lambda: at_third_step(queue))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0 and "stopped" in process.stdout.read()
    assert queue.states()["counts"] == "interrupted" and not queue.lines("small")
    queue.hold.unlink()
    assert queue.run("--only", "counts").returncode == 0
    assert queue.text("counts", "steps") == "012345"
    (queue.folder / "whole").mkdir()
    whole = Queue(queue.folder / "whole")
    whole.run("--only", "counts")
    assert [line["figures"] for line in whole.lines("small")] == [queue.lines("small")[0]["figures"]]


def test_a_killed_queue_leaves_its_run_locked(queue):
    """Its command goes on and holds the folder, so that another queue takes the next entry, and this one afterwards."""
    queue.hold.touch()
    process = queue.start("--only", "counts")
    until(lambda: at_third_step(queue))
    process.kill()
    process.wait(60)
    assert queue.states()["counts"] == "running"
    second = queue.start("--only", "broken", "counts")
    until(
        lambda: (
            queue.file("broken", "state.json") is not None
            and "status 3" in queue.file("broken", "state.json").read_text()
        )
    )
    assert at_third_step(queue) and not queue.lines("small")
    queue.hold.unlink()
    assert second.wait(120) == 1  # the broken one
    assert len(queue.lines("small")) == 1 and queue.text("counts", "steps") == "012345"


SCORING = r"""
from entries import Entry, Figures
prepare = ("unified", "prepare", "gold", "--output", "data", "--tokenizer", "char")
score = ("unified", "score", "classification", "gold", "gold", "--output", "score.json")
make = ("python", "-c", "open('gold', 'w').write('a\\nb\\n' * 50)")
ENTRIES = [Entry("scored", "small", (make, prepare, score), (Figures("numbers", "score.json"),))]
"""


def test_a_command_that_ended_after_its_queue_was_killed_is_made_again(tmp_path):
    """What it has left is there, and nobody has noted that it is whole."""
    queue = Queue(tmp_path, SCORING)
    first = queue.run()
    assert first.returncode == 0, first.stdout + first.stderr
    (line,) = queue.lines("small")
    assert line["figures"]["accuracy"] == 100 and not [one for one in line["commands"] if "--overwrite" in one]
    path = queue.file("scored", "state.json")
    state = json.loads(path.read_text())
    (queue.folder / "results" / "small.jsonl").unlink()
    path.write_text(json.dumps({**state, "done": 1, "finished": False}))
    again = queue.run()
    assert again.returncode == 0, again.stdout + queue.text("scored", "log.txt")
    assert [one["figures"] for one in queue.lines("small")] == [line["figures"]]


def test_a_run_whose_line_is_written_is_not_called_another_one(queue):
    """The queue may be killed between the line and the note of it; a run of another folder has a line of its own."""
    queue.run("--only", "counts")
    (line,) = queue.lines("small")
    path = queue.file("counts", "state.json")
    state = json.loads(path.read_text())
    path.write_text(json.dumps({**state, "finished": False}))
    assert queue.run("--only", "copies").returncode == 0
    assert queue.lines("small") == [line] and json.loads(path.read_text()) == state
    shutil.rmtree(queue.file("copies", "."))
    (queue.folder / "results" / "large.jsonl").unlink()
    path.write_text(json.dumps({**state, "finished": False, "seconds": state["seconds"] + 1}))
    assert queue.run("--only", "copies").returncode == 0
    assert [one["repeats"] is None for one in queue.lines("small")] == [True, False]


def test_seconds_of_the_processor_are_noted_while_a_command_runs(tmp_path, monkeypatch):
    """A queue that is killed has no others; they count what a command has started and waited for."""
    load(QUEUE.with_name("tables.py"))  # makes the queue's modules known by their names
    execution, entries = load(QUEUE.with_name("execution.py")), load(QUEUE.with_name("entries.py"))
    monkeypatch.setattr(execution, "_NOTE", 0.05)
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    script = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {burn!r}]); time.sleep(60)"
    entry = entries.Entry("burns", "small", (("python", "-c", script),), ())
    noted = 0.0

    def stopped() -> bool:
        nonlocal noted
        noted = execution.read_state(tmp_path).processor_seconds
        return noted > 0.35

    with execution.locked(tmp_path) as lock, pytest.raises(execution.Stopped):
        execution.Runner(str, ROOT, 1, stopped).make(entry, tmp_path, lock, "0" * 40)
    assert noted <= execution.read_state(tmp_path).processor_seconds < 5
    assert execution.session_seconds(2**30) == 0


def test_wrong_plans_and_names_are_refused(queue):
    refused = queue.run("--only", "nothing*")
    assert "--only nothing*: no entry has such a name" in refused.stderr
    assert "no such entry" in queue.run("--again", "nothing").stderr
    assert "not a time such as 03:00" in queue.run("--until", "3 o'clock").stderr
    plan = queue.folder / "plan.py"
    text = plan.read_text()
    plan.write_text(text.replace("{broken}", "{brokenest}"))
    assert "waits needs brokenest, which does not stand before it" in queue.run().stderr
    plan.write_text(text.replace('"waits"', '"broken"'))
    assert "two entries broken" in queue.run().stderr


def test_other_questions_are_pairs_of_sentence_and_answer_or_of_a_sentence(tmp_path):
    subsets = load(QUEUE.with_name("subsets.py"))
    (tmp_path / "qamr").mkdir()
    (tmp_path / "squad_qg").mkdir()
    asked = [{"question": "Who slept?", "answer": [1, 2], "validator_answers": []}]
    sentence = {"tokens": ["-LRB-", "The", "cat", "slept", "-RRB-"], "qas": asked}
    for name, row in (
        ("qamr/train", sentence),
        ("qamr/dev", sentence | {"qas": asked * 1001}),
        ("squad_qg/reqa-squad-train", {"id": "1", "sentence": "Rome is old.", "question": "How old?"}),
    ):
        with lzma.open(tmp_path / f"{name}.jsonl.xz", "wt", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
    subsets.more_questions(tmp_path, tmp_path)
    train, valid = (
        [json.loads(line) for line in (tmp_path / f"{split}.jsonl").read_text().splitlines()]
        for split in ("train", "valid")
    )
    answered = {"source": ["( The cat slept )", "The cat"], "target": "Who slept?"}
    assert train == [answered, {"source": ["Rome is old."], "target": "How old?"}] and valid == [answered] * 1000


def test_tasks_at_equal_updates_are_those_of_the_peers():
    generation, pairs = load(QUEUE.with_name("generation.py")), load(QUEUE.parents[1] / "peers" / "pairs.py")
    written = pairs.SIZES["writing"].pairs
    assert set(generation.EQUAL) == {pair.task for pair in written} and all(pair.writes for pair in written)


def test_models_of_the_comparison_differ_in_objective_and_seed_alone():
    """So all have one body and one budget; the untrained one has fewer updates; every objective on text is compared.

    The six systems have three seeds, and so have those that they are compared with.
    """
    objectives = load(QUEUE.with_name("objectives.py"))
    parser, budgets, alone = make_parser("pretrain"), {}, set()
    for objective, seeds in objectives.COMPARED:
        for seed in seeds:
            (command,) = objectives.pretraining(objective, seed).commands
            options = vars(parser.parse_args(command[1:]))
            mixture = parse_objectives(options.pop("objectives"))
            assert options.pop("seed") == seed
            alone |= set(mixture.names if len(mixture.names) == 1 else ())
            budgets.setdefault(json.dumps(options, default=str), []).append(objective.name)
    untrained, trained = sorted(budgets.values(), key=len)
    systems = ("random_spans", "unilm", "bert", "spanbert", "xlnet", "anna")
    seeds = dict.fromkeys((one.name for one in objectives.OTHERS), 1) | dict.fromkeys((*systems, "next_token"), 3)
    seeds.pop("untrained")
    assert untrained == ["untrained"] * 3 and Counter(trained) == seeds
    assert alone == {name for name, kind in OBJECTIVES.items() if not kind.paired}


def test_every_command_of_the_plan_is_one_that_there_is():
    """Options are parsed by the commands' own parsers, and files of recipes exist."""
    tables = load(QUEUE.with_name("tables.py"))
    commands = {command for entry in tables.plan.ENTRIES for command in entry.commands}
    for program, *words in commands:
        if program == "python":
            assert Path(words[0].replace("{recipes}", str(ROOT / "recipes"))).is_file()
        else:
            assert program == "unified" and make_parser(command_of(words)).parse_args(words)


TRAINING_PLAN = """
from entries import Entry, Figures, words

corpora = words("python", "{recipes}/common/corpora.py", "text", "debug")
prepare = words(
    "unified", "prepare", "text/debug.jsonl", "--valid-share", 0.1, "--output", "data", "--tokenizer", "unigram",
    "--vocabulary-size", 120,
)
train = words(
    "unified", "pretrain", "{corpus}/data", "--model", "tiny", "--objectives", "bert(next_sentence=False)",
    "--tokens-per-sample", 32, "--max-tokens", 128, "--max-update", 40, "--output", "model", "--device", "cpu",
    "--fairseq", "--layers 1 --width 16 --heads 1 --num-workers 0",
)
ENTRIES = [
    Entry("corpus", "trained", (corpora, prepare), (Figures("numbers", "data/manifest.json"),)),
    Entry("model", "trained", (train,), (Figures("trained", "model/train.log"),), seed=1),
]
"""


@pytest.mark.slow
def test_a_training_that_was_ended_in_the_middle_gives_the_figures_of_one_that_was_not(tmp_path):
    queue = Queue(tmp_path, TRAINING_PLAN)
    assert queue.run("--only", "corpus").returncode == 0
    process = queue.start()
    until(
        lambda: (path := queue.file("model", "model/train.log")) is not None and 'num_updates": "6"' in path.read_text()
    )
    process.terminate()
    process.wait(60)
    assert queue.states() == {"corpus": "finished", "model": "interrupted"}
    assert queue.run().returncode == 0
    log = queue.text("model", "log.txt")
    assert log.count("$ unified pretrain") == 2 and "which goes on behind them" in log
    assert "the same figures" in queue.run("--again", "model").stdout
    first, second = queue.lines("trained")[1:]
    assert first["figures"]["valid_bert_loss"] == second["figures"]["valid_bert_loss"] > 0
    assert not list((tmp_path / "work" / "model").rglob("*.pt")) and list((tmp_path / "work" / "corpus").rglob("*.bin"))


def test_the_plan_for_a_card_is_made_of_commands_that_there_are():
    """All models have one budget but for the untrained one; the shortest come first, and tasks read the plan's data."""
    plans = {name: load(QUEUE).plan_of(QUEUE.with_name(f"{name}.py")) for name in ("card_plan", "card_rehearsal")}
    entries = list(plans["card_plan"].entries.values())
    assert {entry.table for entry in entries} == {"card"} and entries[-1].name == "card/quickstart-long"
    updates = []
    rehearsed = list(plans["card_rehearsal"].entries.values())
    assert {entry.table for entry in rehearsed} == {"card_rehearsal"}
    for program, *words in (command for entry in (*entries, *rehearsed) for command in entry.commands):
        if program == "python":
            assert Path(words[0].replace("{recipes}", str(ROOT / "recipes"))).is_file()
            continue
        assert program == "unified" and (options := make_parser(command_of(words)).parse_args(words))
        if words[0] == "pretrain":
            updates.append(options.max_update * options.max_tokens)
    assert sorted(updates) == [512, 3 * 512, 16_384, *[4000 * 16_384] * 19]


def test_minutes_end_a_queue():
    run = load(QUEUE)
    now = time.time()
    assert now + 539 < run.end_of(None, None, 9) < now + 600 and run.end_of(None, None) is None
