"""Options of the commands that make files of other files: names, types, defaults, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import assert_stands_for, leaving, parsed
from unified.generation.schemes import SCHEMES
from unified.tasks.datasets.summaries.formats import FORMATS as DATA_SETS

#: The exponents 0, 0.2, ... 2.
EXPONENTS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0]
#: What a command line stands for: the shortest one of each command, whose values are the defaults, and all options.
LINES: dict[str, dict[str, Any]] = {
    "completion bash": {"shell": "bash"},
    "convert a b": {
        "source_format": None, "vocabulary": None, "writes": None, "seed": None, "input": Path("a"),
        "output": Path("b"), "json": False,
    },
    "convert --from bert --writes cloze a b --json": {
        "source_format": "bert", "vocabulary": None, "writes": "cloze", "seed": None, "input": Path("a"),
        "output": Path("b"), "json": True,
    },
    "convert a b --vocabulary d --seed -3": {
        "source_format": None, "vocabulary": Path("d"), "writes": None, "seed": -3, "input": Path("a"),
        "output": Path("b"), "json": False,
    },
    "export a b": {"model": "a", "format": None, "dtype": "float32", "output": Path("b"), "json": False},
    "export a b --format bert --dtype bfloat16 --json": {
        "model": "a", "format": "bert", "dtype": "bfloat16", "output": Path("b"), "json": True,
    },
    "pairs xsum a --output o": {
        "data_set": "xsum", "inputs": ["a"], "output": "o", "overwrite": False, "list": None, "separator": "|",
        "oracle": None, "skip_empty": False, "workers": None, "json": False,
    },
    "pairs xsum a b --output o --oracle --overwrite --list l --separator s --skip-empty --workers 2 --json": {
        "data_set": "xsum", "inputs": ["a", "b"], "output": "o", "overwrite": True, "list": "l", "separator": "s",
        "oracle": "combinations", "skip_empty": True, "workers": 2, "json": True,
    },
    "plugin-dir": {"json": False},
    "plugin-dir --json": {"json": True},
    "report r": {
        "run_folder": "r", "output": None, "overwrite": False, "samples": 8, "seed": 1, "json": False,
    },
    "report r --output o --overwrite --samples 2 --seed 0 --json": {
        "run_folder": "r", "output": "o", "overwrite": True, "samples": 2, "seed": 0, "json": True,
    },
    "results a": {
        "paths": ["a"], "measures": [], "differences": False, "intervals": False, "ahead_of": None,
        "models_as_seeds": False, "json": False,
    },
    "results a b --measures m n --differences --intervals --ahead-of c --models-as-seeds --json": {
        "paths": ["a", "b"], "measures": ["m", "n"], "differences": True, "intervals": True, "ahead_of": "c",
        "models_as_seeds": True, "json": True,
    },
    "tune-lengths a": {
        "predictions": ["a"], "references": [], "target_field": None, "length_penalty": "unilm", "lenpens": EXPONENTS,
        "min_lengths": [0], "max_lengths": None, "metric": "rouge2", "sentence_separator": None,
        "post_process": None, "max_words": None, "plain_references": False, "output": None, "overwrite": False,
        "json": False,
    },
    "tune-lengths a b --references r --target-field f --length-penalty fairseq --lenpens 1 2 --min-lengths 3 4 "
    "--max-lengths 5 6 --metric rougeL --sentence-separator s --post-process xsum --max-words 7 --plain-references "
    "--output o --overwrite --json": {
        "predictions": ["a", "b"], "references": ["r"], "target_field": "f", "length_penalty": "fairseq",
        "lenpens": [1.0, 2.0], "min_lengths": [3, 4], "max_lengths": [5, 6], "metric": "rougeL",
        "sentence_separator": "s", "post_process": "xsum", "max_words": 7, "plain_references": True, "output": "o",
        "overwrite": True, "json": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_stands_for_these_settings_and_no_others(line):
    assert_stands_for(line, LINES[line])


def test_exponents_are_numbers_with_a_point():
    found = parsed("tune-lengths a --lenpens 1 0.5")["lenpens"]
    assert found == [1.0, 0.5] and all(type(one) is float for one in found)


#: Option or argument of a line, its names, and its name in a refusal.
CHOICES = [
    ("completion {}", "shell", ("bash", "zsh", "tcsh"), "shell"),
    ("convert a b --from {}", "source_format", ("bert", "roberta", "xlnet", "modernbert", "unified"), "--from"),
    ("convert a b --writes {}", "writes", (*SCHEMES, "nothing"), "--writes"),
    ("export a b --format {}", "format", ("bert", "xlnet", "modernbert", "unified"), "--format"),
    ("export a b --dtype {}", "dtype", ("float32", "float16", "bfloat16"), "--dtype"),
    ("pairs {} a --output o", "data_set", tuple(DATA_SETS), "DATASET"),
    ("pairs xsum a --output o --oracle {}", "oracle", ("combinations", "greedy"), "--oracle"),
    ("tune-lengths a --length-penalty {}", "length_penalty", ("fairseq", "unilm"), "--length-penalty"),
    ("tune-lengths a --metric {}", "metric", ("rouge1", "rouge2", "rougeL"), "--metric"),
]


@pytest.mark.parametrize(("line", "setting", "names", "called"), CHOICES)
def test_names_are_those_that_the_library_knows_and_others_are_refused(line, setting, names, called, capsys):
    for name in names:
        assert parsed(line.format(name))[setting] == name
    command = line.split()[0]
    says = f"argument {called}: invalid choice: '???' (choose from {', '.join(names)})"
    expected = f"unified {command}: error: {says}; see unified {command} --help\n"
    assert leaving(capsys, *line.format("???").split()) == (2, "", expected)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        *(
            (line, f"the following arguments are required: {missing}")
            for line, missing in {
                "completion": "shell",
                "convert": "IN, OUT",
                "convert a": "OUT",
                "export a": "OUT",
                "export": "MODEL, OUT",
                "pairs xsum --output o": "INPUT",
                "pairs --output o": "DATASET, INPUT",
                "pairs xsum a": "--output",
                "report": "RUN",
                "results": "PATH",
                "tune-lengths": "FILE",
            }.items()
        ),
        ("convert --from bert --vocabulary d a b", "argument --vocabulary: not allowed with argument --from"),
        ("convert a b --seed 1.5", "argument --seed: invalid int value: '1.5'"),
        ("pairs xsum a --output o --workers x", "argument --workers: invalid int value: 'x'"),
        ("report r --samples 1.5", "argument --samples: invalid int value: '1.5'"),
        ("report r --seed -1", "argument --seed: must be an integer of at least 0, got '-1'"),
        ("results a --measures", "argument --measures: expected at least one argument"),
        ("tune-lengths a --lenpens x", "argument --lenpens: invalid float value: 'x'"),
        ("tune-lengths a --min-lengths 0.5", "argument --min-lengths: invalid int value: '0.5'"),
        ("tune-lengths a --max-lengths 0.5", "argument --max-lengths: invalid int value: '0.5'"),
        *((f"tune-lengths a --{name}", f"argument --{name}: expected at least one argument")
          for name in ("lenpens", "min-lengths", "max-lengths")),
    ],
)  # fmt: skip
def test_what_is_missing_or_cannot_be_is_refused(line, says, capsys):
    command = line.split()[0]
    expected = f"unified {command}: error: {says}; see unified {command} --help\n"
    assert leaving(capsys, *line.split()) == (2, "", expected)


def test_help_names_the_groups_and_the_defaults(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # no sentence is divided
    for command, said in (
        ("tune-lengths", "lengths: Settings to try; FILE must hold several hypotheses for each sentence"),
        ("tune-lengths", "clean-up: Rules that were published with UniLM"),
        ("export", "half the space (default: float32)"),
        ("results", "print the 95 % interval of each mean over seeds"),
        *(("pairs", f"{name}: {form.known}") for name, form in DATA_SETS.items()),
    ):
        status, out, _ = leaving(capsys, command, "--help")
        assert status == 0 and said in " ".join(out.split()), said
