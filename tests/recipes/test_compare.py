"""The comparison of all objectives: from text to tables and curves at the smallest size, and what it promises."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import steps
from plan import SIZES, comparisons
from rows import row_facts

from tests.recipes.test_recipes import load
from tests.support import fairseq_runs
from tests.support.prepared_python import interpreter
from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES, parse_objectives

ROOT = Path(__file__).resolve().parents[2]
COMPARE = ROOT / "recipes" / "compare"
NAMES = "scratch (shared);unilm mixture;xlnet, memory"
DEBUG = SIZES["debug"]
ROW, ROWS = DEBUG.row, DEBUG.rows


def write_text(path: Path, documents: int, rng: np.random.Generator) -> Path:
    """Sentences of words whose frequencies fall as in a language."""
    words = ["".join(rng.choice(list("abcdefgh"), size=int(rng.integers(2, 7)))) for _ in range(60)]
    shares = 1 / np.arange(1, len(words) + 1)
    lines = []
    for _ in range(documents):
        sentences = [" ".join(rng.choice(words, size=8, p=shares / shares.sum())) for _ in range(12)]
        lines.append(json.dumps({"text": "\n".join(f"{sentence.capitalize()}." for sentence in sentences)}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def compare():
    return load(COMPARE / "run.py")


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """The folder of a finished comparison."""
    folder, rng = tmp_path_factory.mktemp("compare"), np.random.default_rng(3)
    train, valid = write_text(folder / "a.jsonl", 60, rng), write_text(folder / "b.jsonl", 6, rng)
    result = subprocess.run(
        [interpreter(), COMPARE / "run.py", *words(folder, train, valid)],
        capture_output=True, text=True, env=fairseq_runs.environment(),
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return folder


def words(folder: Path, train: Path, valid: Path) -> list[str]:
    options = {"--size": "debug", "--input": train, "--valid": valid}
    return [str(folder / "output"), "--only", NAMES, *(str(x) for pair in options.items() for x in pair)]


def again(compare, folder: Path, monkeypatch, *more: str) -> None:
    """Calls the recipe again; no command may be run."""

    def refuse(*arguments, **keywords):
        raise AssertionError(f"ran {arguments}")

    monkeypatch.setattr(steps.subprocess, "Popen", refuse)
    compare.main([*words(folder, folder / "a.jsonl", folder / "b.jsonl"), *more])


def table_rows(text: str, table: int) -> list[list[str]]:
    """Cells of the lines of the first (0) or second (1) table, without its head."""
    lines = text.strip().split("\n\n")[table].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def log(folder: Path, name: str, tag: str) -> list[dict]:
    path = folder / "output" / "logs" / f"{name.replace(' ', '-')}.log"
    return fairseq_runs.logged(path.read_text(encoding="utf-8"), tag)


def test_numbers_of_the_tables_are_those_of_the_logs(work):
    text = (work / "output" / "tables.md").read_text(encoding="utf-8")
    cost, losses = table_rows(text, 0), table_rows(text, 1)
    assert [row[0] for row in cost] == NAMES.split(";")
    scratch = None
    for name, _, _, _, seconds, bits, accuracy, gain in cost:
        final = log(work, f"{name} then cloze", "valid")[-1]
        assert float(bits) == float(final["valid_bidirectional_loss"])
        assert float(accuracy) == float(final["valid_bidirectional_accuracy"])
        assert int(final["valid_num_updates"]) == DEBUG.cloze_updates
        scratch = scratch or float(bits)
        if name == "unilm mixture":
            assert float(gain) == pytest.approx(scratch - float(bits), abs=1e-3)
            speeds = [float(line["ups"]) for line in log(work, name, "train_inner") if float(line["ups"]) > 0]
            assert float(seconds) == pytest.approx(1 / statistics.median(speeds), abs=1e-3)
        else:
            assert gain == ""  # no pre-training, or no model of its kind without
    for name, loss, first, middle, last, fell in losses:
        curve = [float(line[f"valid_{loss}_loss"]) for line in log(work, name, "valid")]
        assert len(curve) == DEBUG.updates  # ten validations
        assert [float(first), float(middle), float(last)] == [curve[0], curve[len(curve) // 2], curve[-1]]
        assert float(fell) == pytest.approx(curve[0] - curve[-1], abs=1e-3)
    mixed = [f"unilm mixture: {name}" for name in ("bidirectional", "bidirectional_next_sentence", "left_to_right")]
    assert {*mixed, "xlnet, memory: xlnet"} <= {f"{row[0]}: {row[1]}" for row in losses}


def test_a_second_call_repeats_nothing(work, compare, monkeypatch):
    output = work / "output"
    before = {name: (output / name).read_text() for name in ("tables.md", "curves.svg")}
    times = {path: path.stat().st_mtime_ns for path in output.glob("models/*/*")}
    (output / "tables.md").unlink()
    # Killed between training and results: those are read from the logs again.
    (output / "results" / "xlnet,-memory.json").unlink()
    again(compare, work, monkeypatch)
    assert before == {name: (output / name).read_text() for name in before}
    assert times and times == {path: path.stat().st_mtime_ns for path in output.glob("models/*/*")}


def test_other_settings_in_the_same_folder_are_refused(work, compare, monkeypatch):
    with pytest.raises(UnifiedError, match="begun with --seed 1, now 2; name another folder"):
        again(compare, work, monkeypatch, "--seed", "2")


def test_an_unknown_name_is_refused_with_those_there_are(work, compare, monkeypatch):
    with pytest.raises(UnifiedError, match="--only names bart; known: .*spanbert"):
        again(compare, work, monkeypatch, "--only", "bart")


def test_the_picture_has_a_curve_per_loss(work):
    root = ElementTree.parse(work / "output" / "curves.svg").getroot()
    svg = "{http://www.w3.org/2000/svg}"
    groups = {group.get("id"): group for group in root.iter(f"{svg}g") if ": " in (group.get("id") or "")}
    mixed = ("bidirectional", "seq2seq", "left_to_right", "right_to_left")
    assert set(groups) == {"xlnet, memory: xlnet", *(f"unilm mixture: {name}" for name in mixed)}
    curves = {
        title: [
            tuple(map(float, point)) for point in re.findall(r"[ML] (\S+) (\S+)", group.find(f"{svg}path").get("d"))
        ]
        for title, group in groups.items()
    }
    # Heights follow from the logged bits by the straight line of the panel, which all its curves share.
    for panel in ("unilm mixture", "xlnet, memory"):
        bits, heights = [], []
        for title, points in curves.items():
            name, loss = title.split(": ")
            if name == panel:
                bits += [float(entry[f"valid_{loss}_loss"]) for entry in log(work, name, "valid")]
                heights += [y for _, y in points]
        slope, offset = np.polyfit(bits, heights, 1)
        assert slope < 0 and np.abs(np.polyval([slope, offset], bits) - heights).max() < 0.11
    width, height = (float(x) for x in root.get("viewBox").split()[2:])
    assert all(0 < x < width and 0 < y < height for points in curves.values() for x, y in points)


def test_shares_of_rows(work):
    """Streams are full and predict one token in six; packed rows have the tokens that fairseq counted."""
    data = work / "output" / "data"
    streams = row_facts(data, "xlnet", ROW, 1, streams=ROWS)
    assert streams.padding == 0 and streams.predictions == pytest.approx(1 / 6, abs=0.03)
    packed = row_facts(data, "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1", ROW, 1)
    tokens = statistics.mean(float(line["wpb"]) for line in log(work, "unilm mixture", "train_inner"))
    assert packed.padding == pytest.approx(1 - tokens / (ROWS * ROW), abs=0.03)
    everything = row_facts(data, "bidirectional(mask_share=1.0, next_sentence=False)", ROW, 1)
    assert everything.predictions < 1 - everything.padding  # all but CLS and SEP


def test_every_objective_on_running_text_is_compared_alone():
    for annotated in (False, True):
        runs = comparisons(annotated)
        mixtures = [parse_objectives(run.objectives) for run in runs if run.objectives]
        alone = {mixture.names[0] for mixture in mixtures if len(mixture.names) == 1}
        assert alone == {name for name, kind in OBJECTIVES.items() if not kind.paired}
        assert len({run.name for run in runs}) == len(runs)
        assert {run.model for run in runs} == {run.model for run in runs if not run.objectives}
        annotations = {
            kind for mixture in mixtures for o in mixture.objectives for kind in getattr(o, "annotations", ())
        }
        assert annotations == ({"noun_phrases"} if annotated else set())


PARSE = """
import json, sys
from fairseq import options
budget = ("max_update", "total_num_update", "warmup_updates", "batch_size", "tokens_per_sample", "lr", "optimizer",
          "seed", "layers", "width", "heads", "feed_forward", "dropout", "initializer_range")
for line in sys.stdin:
    arguments = options.parse_args_and_arch(options.get_training_parser(), json.loads(line))
    values = {name: getattr(arguments, name, None) for name in budget}  # None: as the model's default has it
    print(json.dumps(["PARSED", arguments.objectives, values]))
"""


@pytest.fixture(scope="module")
def parsed(compare, tmp_path_factory) -> dict[str, list]:
    """What fairseq reads of every pre-training, in their order, by size."""
    words = []
    for size in SIZES.values():
        work = compare.Work(steps.Run(tmp_path_factory.mktemp("unused")), size, 1, (), (), None)
        runs = [run for run in comparisons(annotated=True) if run.objectives]
        words += [work.training(run.name, 100, 10, run.pretraining(size)).words for run in runs]
    commands = "".join(json.dumps(one[one.index("fairseq_cli.train") + 1 :]) + "\n" for one in words)
    result = subprocess.run([sys.executable, "-c", PARSE], input=commands, capture_output=True, text=True,
                            cwd=ROOT, env=fairseq_runs.environment())  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    found = [json.loads(line) for line in result.stdout.splitlines() if line.startswith('["PARSED"')]
    assert len(found) == len(SIZES) * len(runs)
    return {size: found[i * len(runs) : (i + 1) * len(runs)] for i, size in enumerate(SIZES)}


@pytest.mark.parametrize("size", SIZES)
def test_all_runs_have_the_same_budget_as_fairseq_reads_it(parsed, size):
    runs = [run for run in comparisons(annotated=True) if run.objectives]
    assert [objectives for _, objectives, _ in parsed[size]] == [run.objectives for run in runs]
    budget = parsed[size][0][2]
    assert all(other == budget for *_, other in parsed[size])
    assert (budget["max_update"], budget["batch_size"]) == (100, SIZES[size].rows)
