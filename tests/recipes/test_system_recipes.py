"""Recipes of BERT, SpanBERT, XLNet, ANNA and T5: golden losses, and what their READMEs say is what the commands do."""

from __future__ import annotations

import io
import json
import lzma
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from tests.recipes.test_recipes import load
from tests.support import fairseq_runs
from tests.support.prepared_python import interpreter

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "recipes"
sys.path.insert(0, str(RECIPES / "common"))
import corpora  # noqa: E402
import golden  # noqa: E402
import task_data  # noqa: E402

PAGES = [RECIPES / "README.md", *(RECIPES / system / "README.md" for system in golden.SYSTEMS)]


class DebugRuns:
    """Data and losses of the debug sizes, each made once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.data, self.losses = cache(self.data), cache(self.losses)

    def data(self, system: str) -> Path:
        if system == "anna":
            pytest.importorskip("spacy")
            pytest.importorskip("py3langid")
        (self.folder / system).mkdir()
        return golden.prepare(system, self.folder / system, interpreter())

    def losses(self, system: str) -> golden.Losses:
        return golden.pretrain(system, self.data(system), self.folder / system, python=interpreter())


@pytest.fixture(scope="module")
def debug_runs(tmp_path_factory) -> DebugRuns:
    return DebugRuns(tmp_path_factory.mktemp("debug"))


@pytest.mark.parametrize("system", golden.SYSTEMS)
def test_the_debug_size_gives_the_golden_losses(debug_runs, system):
    different = golden.differences(golden.golden(system), debug_runs.losses(system))
    assert not different, golden.made_with(system)


@pytest.mark.parametrize("system", golden.SYSTEMS)
def test_losses_fall(debug_runs, system):
    for name, curve in debug_runs.losses(system).items():
        # Half a bit below where it began. Whether sentences follow each other is not learned so soon.
        if len(curve) > 3 and "next_sentence" not in name:
            values = [curve[update] for update in sorted(curve, key=int)]
            assert values[-1] < values[0] - 0.5, name


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({}, []),
        ({"10": 7.003}, []),
        ({"10": 7.004}, ["loss, update 10: 7.004 here, 7.0 expected"]),
        ({"15": 6.0}, ["loss, update 15: 6.0 here, None expected"]),
    ],
)
def test_differences(change, lines):
    expected = {"loss": {"5": 9.0, "10": 7.0}, "valid_loss": {"10": 8.0}}
    found = {"loss": expected["loss"] | change, "valid_loss": {"10": 8.0}}
    assert golden.differences(expected, found) == lines
    assert golden.differences(expected, {"loss": found["loss"]})[-1] == "valid_loss, update 10: None here, 8.0 expected"


# READMEs


def commands(page: Path) -> list[list[str]]:
    """Words of the indented commands that run something of recipes/."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^    ((?:python|bash) recipes/.*)$", text, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def printed(words: list[str]) -> list[list[str]]:
    """The commands that a program of recipes/ would run."""
    printed = io.StringIO()
    with patch.dict(os.environ, {"PRINT": "1", "CARDS": "0"}), redirect_stdout(printed):
        assert load(ROOT / words[1]).main(words[2:]) == 0
    return [shlex.split(line) for line in printed.getvalue().splitlines()]


def pretraining(system: str) -> list[str]:
    """The pre-training command at the top of a README."""
    return next(words for words in commands(RECIPES / system / "README.md") if words[2:4] == [system, "pretrain"])


def table(system: str, heading: str) -> list[list[str]]:
    """Cells of the rows of the first table below a heading."""
    text = (RECIPES / system / "README.md").read_text(encoding="utf-8")
    section = text[text.index(f"# {heading}\n") :]
    rows = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def flags(cell: str) -> list[list[str]]:
    """Words of each piece of code in a cell that begins with a flag."""
    return [shlex.split(code) for code in re.findall(r"`(--[^`]+)`", cell)]


def ablations(system: str, heading: str) -> dict[str, list[str]]:
    """Name -> the flags that make it, of those that are other than the recipe."""
    return {row[0]: flags(row[1])[0] for row in table(system, heading) if flags(row[1])}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_commands_of_the_readme_parse(page):
    from unified.cli.parsing import make_parser

    found = commands(page)
    assert len(found) >= 3
    for words in found:
        script = words[1].rpartition("/")[2]
        if script == "corpora.py":
            corpora.argument_parser().parse_args(words[2:])
        elif script == "golden.py":
            assert set(words[2:]) <= {"--write"}
        elif script == "task_data.py":
            task_data.argument_parser().parse_args(words[2:])
        elif script == "pretrain.py" and words[3] == "prepare":
            make_parser("prepare").parse_args(printed(words)[-1][1:])
        elif script == "finetune.py":
            make_parser("finetune").parse_args(printed(words)[0][1:])
        elif script == "submission.sh":
            assert len(words) == 4
        else:
            assert script == "pretrain.py" and printed(words)


@pytest.mark.parametrize("system", golden.SYSTEMS)
def test_the_command_has_the_settings_of_the_readme(system):
    lists = printed(pretraining(system))
    settings = [words for row in table(system, "Settings") for words in flags(row[2])]
    assert len(settings) >= 8
    missing = [words for words in settings if not any(holds(line, words) for line in lists)]
    assert not missing


def holds(line: list[str], words: list[str]) -> bool:
    """Whether each flag of ``words`` has its value in ``line``, where the last one counts."""
    return all(
        flag in line and (not value or line[len(line) - line[::-1].index(flag)] == value)
        for flag, value in zip(words, [*words[1:], ""], strict=True)
        if flag.startswith("--")
        for value in ["" if value.startswith("--") else value]
    )


@pytest.fixture(scope="module")
def built(debug_runs) -> dict[tuple[str, str], dict]:
    """What each ablation (system, name) and each recipe (system, "") builds, on ANNA's annotated data."""
    data, commands = str(debug_runs.data("anna")), {}
    for system in golden.SYSTEMS:
        for name, change in {"": [], **ablations(system, "Ablations")}.items():
            command, _, *words = printed([*pretraining(system), *change])[-1]
            assert command == "fairseq-train"
            commands[system, name] = [data, *words]
    result = subprocess.run(
        [interpreter(), "-m", "tests.support.built_commands", "--user-dir", str(ROOT / "fairseq_plugins")],
        input=json.dumps(list(commands.values())), capture_output=True, text=True, cwd=ROOT,
        env=fairseq_runs.environment(),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    return dict(zip(commands, json.loads(result.stdout.partition("ANSWER")[2]), strict=True))


@pytest.mark.parametrize("system", golden.SYSTEMS)
def test_every_ablation_is_a_flag_that_builds(built, system):
    answers = [answer for (of, _), answer in built.items() if of == system]
    assert len(answers) > 6
    assert [answer for answer in answers if "error" in answer] == []
    assert len({json.dumps(answer) for answer in answers}) == len(answers), "two of them are the same"


def test_only_the_ablation_from_left_to_right_is_fine_tuned_so(built):
    """BERT's table 5: the mask of pre-training is the one that fine-tuning begins with."""
    masks = {name: answer["config"]["mask"] for (_, name), answer in built.items()}
    assert [name for name, mask in masks.items() if mask != "bidirectional"] == ["left to right, no NSP"]
    assert masks["left to right, no NSP"] == "left_to_right"


def test_ablations_of_data_are_flags_that_parse():
    from unified.cli.parsing import make_parser
    from unified.corpus.cleaning import Cleaning

    words = next(words for words in commands(RECIPES / "anna" / "README.md") if words[2:4] == ["anna", "prepare"])
    original = make_parser("prepare").parse_args(printed(words)[-1][1:])
    changes = ablations("anna", "Data")
    assert len(changes) == 3
    for change in changes.values():
        options = make_parser("prepare").parse_args(printed([*words, *change])[-1][1:])
        assert options != original and Cleaning.parse(options.clean)


def test_berts_second_part_begins_from_the_first_and_goes_on_from_itself(tmp_path):
    command = ["python", "recipes/pretrain.py", "bert", "pretrain", "base", "data", str(tmp_path)]
    first, second = printed(command)
    assert holds(first, ["--save-dir", f"{tmp_path}/short", "--tokens-per-sample", "128"])
    assert holds(second, ["--save-dir", f"{tmp_path}/long", "--restore-file", f"{tmp_path}/short/checkpoint_last.pt"])
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / "checkpoint_last.pt").touch()
    (again,) = printed(command)
    assert holds(again, ["--save-dir", f"{tmp_path}/long"])
    assert not {"--restore-file", "--reset-dataloader"} & set(again)


# Data


def test_a_ready_tokenizer_replaces_the_trained_one(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENIZER", "vocab.txt")
    words = printed(["python", "recipes/pretrain.py", "bert", "prepare", "base", str(tmp_path / "data"), "a.jsonl"])[0]
    assert holds(words, ["--tokenizer", "vocab.txt"]) and "--vocabulary-size" not in words


def test_the_debug_text_is_the_same_everywhere():
    import hashlib

    text = "\n\n".join("\n".join(paragraphs) for paragraphs in corpora.debug_documents())
    assert hashlib.sha256(text.encode()).hexdigest().startswith("358a60c840885288")


def test_corpora_are_read_as_they_arrive(tmp_path, monkeypatch):
    asked = []

    def load_dataset(name, configuration, split, streaming):
        asked.append((name, configuration, split, streaming))
        for i in range(10**9):  # more than anybody stores
            yield {"title": str(i), "text": f"Text {i}." if i % 2 else "  "}

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    corpora.main([str(tmp_path), "wikipedia", "c4", "--documents", "3"])
    rows = [json.loads(line) for line in (tmp_path / "wikipedia.jsonl").read_text().splitlines()]
    assert rows == [{"text": "Text 1."}, {"text": "Text 3."}, {"text": "Text 5."}]
    assert asked == [("wikimedia/wikipedia", "20231101.en", "train", True), ("allenai/c4", "en", "train", True)]
    corpora.main([str(tmp_path), "wikipedia"])  # is there already
    assert len(asked) == 2 and sorted(path.name for path in tmp_path.iterdir()) == ["c4.jsonl", "wikipedia.jsonl"]


def test_real_text_through_the_recipe(unified_data, tmp_path):
    text, mode = tmp_path / "articles.jsonl.xz", {"encoding": "utf-8"}
    with lzma.open(unified_data / "pretrain_wiki" / "valid.jsonl.xz", "rt", **mode) as articles:
        with lzma.open(text, "wt", **mode) as part:
            part.writelines(islice(articles, 30))
    options = ("--vocabulary-size", 1000, "--sample-megabytes", 1)
    golden.run(interpreter(), golden.PRETRAIN, "xlnet", "prepare", "debug", tmp_path / "data", text, *options)
    options = ("--max-update", "10", "--disable-validation")
    losses = golden.pretrain("xlnet", tmp_path / "data", tmp_path, *options, python=interpreter())
    assert losses["loss"]["10"] < losses["loss"]["5"] - 0.3
