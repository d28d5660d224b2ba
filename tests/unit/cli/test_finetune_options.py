"""Options of `unified finetune`: their names, their types, their defaults, what is required and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.commands import assert_stands_for, leaving, parsed
from unified.masks import TEXT_MASKS

FINETUNE = "finetune cola --data d --init i --output o"
#: Command lines and the settings that they are parsed to: the shortest line, which gives the defaults, and one with all
#: options.
LINES: dict[str, dict[str, Any]] = {
    FINETUNE: {
        "task": "cola", "data": "d", "init": "i", "output": "o", "run_name": "ours", "system": None, "head": None,
        "epochs": None, "batch_size": None, "micro_batch": None, "lr": None, "head_lr": None, "layer_decay": None,
        "mask": None, "lstm": None, "max_length": None, "max_source": None, "max_target": None,
        "auxiliary_masking": 0.0, "seed": 1, "grid": None, "seeds": None, "select": None, "validations": None,
        "valid": None, "test": None, "valid_share": None, "skip_empty": False, "text_field": None,
        "second_field": None, "label_field": None, "source_field": None, "target_field": None, "labels": None,
        "spacy": None, "spacy_code": None, "threshold": None, "device": None, "dry_run": False, "report_to": None,
        "fairseq": "", "config": None, "json": False,
    },
    f"{FINETUNE} --run r --system unilm --head h --epochs 2 --batch-size 3 --micro-batch 4 --lr 0.5 --head-lr 0.25 "
    "--layer-decay 0.75 --mask seq2seq --lstm 5 --max-length 6 --max-source 7 --max-target 8 --auxiliary-masking 0.125 "
    "--seed 9 --grid lr=1,2 batch-size=3 --seeds 1,2 --select best --validations 10 --valid v --test t "
    "--valid-share 0.5 --skip-empty --text-field f1 --second-field f2 --label-field f3 --source-field f4 "
    "--target-field f5 --labels l --spacy s --spacy-code c --threshold best --device cpu --dry-run "
    "--report-to wandb --fairseq=--fp16 --json": {
        "task": "cola", "data": "d", "init": "i", "output": "o", "run_name": "r", "system": "unilm", "head": "h",
        "epochs": 2, "batch_size": 3, "micro_batch": 4, "lr": 0.5, "head_lr": 0.25, "layer_decay": 0.75,
        "mask": "seq2seq", "lstm": 5, "max_length": 6, "max_source": 7, "max_target": 8, "auxiliary_masking": 0.125,
        "seed": 9, "grid": ["lr=1,2", "batch-size=3"],
        "seeds": "1,2", "select": "best", "validations": 10, "valid": "v",
        "test": "t", "valid_share": 0.5, "skip_empty": True, "text_field": "f1", "second_field": "f2",
        "label_field": "f3", "source_field": "f4", "target_field": "f5", "labels": "l", "spacy": "s",
        "spacy_code": "c", "threshold": "best", "device": "cpu", "dry_run": True, "report_to": "wandb",
        "fairseq": "--fp16", "config": None, "json": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_parsed_to_these_settings_and_no_others(line):
    assert_stands_for(line, LINES[line])


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("finetune --data d --init i --output o", "TASK"),
        ("finetune cola --init i --output o", "--data"),
        ("finetune cola --data d --output o", "--init"),
        ("finetune cola --data d --init i", "--output"),
    ],
)
def test_what_is_required_is_named(line, missing, capsys):
    status, out, err = leaving(capsys, *line.split())
    assert (status, out) == (2, "") and err == (
        f"unified finetune: error: the following arguments are required: {missing}; see unified finetune --help\n"
    )


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--seed", "-1", "must be an integer from 0 to 2147483647, got '-1'"),
        ("--auxiliary-masking", "-0.1", "must be a number of at least 0, got '-0.1'"),
        ("--select", "all", "invalid choice: 'all' (choose from last, best)"),
        ("--device", "tpu", "invalid choice: 'tpu' (choose from cpu, cuda)"),
        ("--report-to", "file", "invalid choice: 'file' (choose from tensorboard, wandb)"),
        ("--mask", "nope", f"invalid choice: 'nope' (choose from {', '.join(TEXT_MASKS)})"),
        ("--lstm", "-1", "must be an integer of at least 0, got '-1'"),
        ("--epochs", "1.5", "invalid int value: '1.5'"),
        ("--validations", "x", "invalid int value: 'x'"),
        ("--valid-share", "x", "invalid float value: 'x'"),
        ("--run", " ", "must be a name in one line, got ' '"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused_with_the_name_of_the_option(option, value, says, capsys):
    status, out, err = leaving(capsys, *FINETUNE.split(), option, value)
    assert (status, out) == (2, "")
    assert err == f"unified finetune: error: argument {option}: {says}; see unified finetune --help\n"


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("mask", tuple(TEXT_MASKS)),
        ("select", ("last", "best")),
        ("device", ("cpu", "cuda")),
        ("report-to", ("tensorboard", "wandb")),
    ],
)
def test_an_option_takes_each_of_its_choices(option, values):
    for value in values:
        assert parsed(f"{FINETUNE} --{option} {value}")[option.replace("-", "_")] == value


def test_the_published_grid_is_asked_for_by_an_option_without_values():
    assert parsed(f"{FINETUNE} --grid")["grid"] == []


def test_help_has_the_fields_in_a_group(capsys):
    status, out, _ = leaving(capsys, "finetune", "--help")
    groups = re.findall(r"^([a-z][a-z -]*):$", out, re.MULTILINE)
    assert status == 0 and groups == ["positional arguments", "options", "what is printed", "fields"]
