"""Options of the commands that prepare data and pretrain: names, types, defaults, what is required."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.commands import assert_stands_for, leaving, parsed

AUGMENT = "augment a b --output o --answer-model x --question-model y --reader-model z"
#: Command lines and the settings that they are parsed to: for each command the shortest line, which gives the defaults,
#: and one with all options.
LINES: dict[str, dict[str, Any]] = {
    AUGMENT: {
        "inputs": ["a", "b"], "output": "o", "text_field": None, "seed": 1, "answer_model": "x",
        "question_model": "y", "reader_model": "z", "device": "cpu", "threads": 0, "batch_size": 32,
        "max_tokens": 4096, "chunk": 16, "passages": None, "words": (80, 500), "top": 30, "beam": 3,
        "max_length": None, "max_source": None, "min_f1": 0.6, "unanswerable": 0.8, "spacy": None, "spacy_code": None,
        "data": None, "init": None, "finetune": False, "auxiliary_masking": None, "first_stage": None,
        "second_stage": None, "json": False,
    },
    f"{AUGMENT} --text-field t --seed 0 --device cuda --threads 1 --batch-size 2 --max-tokens 3 --chunk 4 --passages 5 "
    "--words 6 7 --top 8 --beam 9 --max-length 10 --max-source 11 --min-f1 1 --unanswerable 0 --spacy s "
    "--spacy-code c --data d --init i --finetune --auxiliary-masking 2 --first-stage=--epochs "
    "--second-stage=--lr --json": {
        "inputs": ["a", "b"], "output": "o", "text_field": "t", "seed": 0, "answer_model": "x", "question_model": "y",
        "reader_model": "z", "device": "cuda", "threads": 1, "batch_size": 2, "max_tokens": 3, "chunk": 4,
        "passages": 5, "words": [6, 7], "top": 8, "beam": 9, "max_length": 10, "max_source": 11, "min_f1": 1.0,
        "unanswerable": 0.0, "spacy": "s", "spacy_code": "c", "data": "d", "init": "i", "finetune": True,
        "auxiliary_masking": 2.0, "first_stage": "--epochs", "second_stage": "--lr", "json": True,
    },
    "prepare a b --output o": {
        "inputs": ["a", "b"], "valid": None, "valid_share": 0.0, "test": None, "text_field": None,
        "skip_empty": False, "output": "o", "overwrite": False, "clean": None, "source_field": None,
        "target_field": None, "target": None, "valid_target": None, "test_target": None, "oracle": False,
        "tokenizer": "unigram", "vocabulary_size": None, "character_coverage": None, "normalization": None,
        "lowercase": False, "byte_fallback": False, "word_share": None, "reserve": 0, "sample_megabytes": 20,
        "annotate": None, "spacy": None, "spacy_code": None, "workers": None, "chunk_bytes": 2**20, "seed": 1,
        "json": False,
    },
    "prepare a --valid b c --valid-share 0.5 --test d e --text-field f --skip-empty --output o --overwrite --clean g "
    "--source-field h --target-field i --target j k --valid-target l m --test-target n p --oracle --tokenizer bpe "
    "--vocabulary-size 1 --character-coverage 0.25 --normalization nfkc --lowercase --byte-fallback --word-share 0.75 "
    "--reserve 2 --sample-megabytes 3 --annotate q --spacy r --spacy-code s --workers 4 --chunk-bytes 5 --seed 0 "
    "--json": {
        "inputs": ["a"], "valid": ["b", "c"], "valid_share": 0.5, "test": ["d", "e"], "text_field": "f",
        "skip_empty": True, "output": "o", "overwrite": True, "clean": "g", "source_field": "h", "target_field": "i",
        "target": ["j", "k"], "valid_target": ["l", "m"], "test_target": ["n", "p"], "oracle": True,
        "tokenizer": "bpe", "vocabulary_size": 1, "character_coverage": 0.25, "normalization": "nfkc",
        "lowercase": True, "byte_fallback": True, "word_share": 0.75, "reserve": 2, "sample_megabytes": 3,
        "annotate": "q", "spacy": "r", "spacy_code": "s", "workers": 4, "chunk_bytes": 5, "seed": 0, "json": True,
    },
    "pretrain d --output o": {
        "data": "d", "output": "o", "model": "small", "objectives": None, "tokens_per_sample": 512,
        "max_tokens": 16384, "update_freq": 1, "max_update": 20000, "lr": 3e-4, "seed": 1, "warmup_updates": None,
        "device": None, "dry_run": False, "report_to": None, "fairseq": "", "config": None,
    },
    "pretrain d --output o --model tiny --objectives m --tokens-per-sample 1 --max-tokens 2 --update-freq 3 "
    "--max-update 4 --lr 0.5 --seed 5 --warmup-updates 6 --device cuda --dry-run --report-to tensorboard "
    "--fairseq=--fp16": {
        "data": "d", "output": "o", "model": "tiny", "objectives": "m", "tokens_per_sample": 1, "max_tokens": 2,
        "update_freq": 3, "max_update": 4, "lr": 0.5, "seed": 5, "warmup_updates": 6, "device": "cuda",
        "dry_run": True, "report_to": "tensorboard", "fairseq": "--fp16", "config": None,
    },
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_parsed_to_these_settings_and_no_others(line):
    assert_stands_for(line, LINES[line])


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("augment --output o --answer-model x --question-model y --reader-model z", "INPUT"),
        ("augment a --answer-model x --question-model y --reader-model z", "--output"),
        ("augment a --output o --question-model y --reader-model z", "--answer-model"),
        ("augment a --output o --answer-model x --reader-model z", "--question-model"),
        ("augment a --output o --answer-model x --question-model y", "--reader-model"),
        ("prepare --output o", "INPUT"),
        ("prepare a", "--output"),
        ("pretrain --output o", "DATA"),
        ("pretrain d", "--output"),
    ],
)
def test_what_is_required_is_named(line, missing, capsys):
    command = line.split()[0]
    assert leaving(capsys, *line.split()) == (
        2,
        "",
        f"unified {command}: error: the following arguments are required: {missing}; see unified {command} --help\n",
    )


FIRST = {
    "augment": AUGMENT,
    "prepare": "prepare a --output o",
    "pretrain": "pretrain d --output o",
}
AT_LEAST_0, AT_LEAST_1 = "must be an integer of at least 0, got '-1'", "must be an integer of at least 1, got '0'"
A_SEED = "must be an integer from 0 to 2147483647, got '-1'"


@pytest.mark.parametrize(
    ("command", "option", "value", "says"),
    [
        ("augment", "--seed", "-1", A_SEED),
        *(
            ("augment", f"--{name}", "0", AT_LEAST_1)
            for name in "batch-size max-tokens chunk passages top beam max-length max-source".split()
        ),
        ("augment", "--words", "0 9", AT_LEAST_1),
        ("augment", "--words", "9", "expected 2 arguments"),
        ("augment", "--min-f1", "1.1", "must be a number from 0 to 1, got '1.1'"),
        ("augment", "--unanswerable", "-0.1", "must be a number from 0 to 1, got '-0.1'"),
        ("augment", "--auxiliary-masking", "-1", "must be a number of at least 0, got '-1'"),
        ("prepare", "--seed", "-1", AT_LEAST_0),
        ("prepare", "--normalization", "nfd", "invalid choice: 'nfd' (choose from nmt_nfkc, nfkc, identity)"),
        ("prepare", "--valid", "", "expected at least one argument"),
        ("pretrain", "--max-update", "1e4", "invalid int value: '1e4'"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused_with_the_name_of_the_option(
    command, option, value, says, capsys
):
    status, out, err = leaving(capsys, *FIRST[command].split(), option, *value.split())
    assert (status, out) == (2, "")
    assert err == f"unified {command}: error: argument {option}: {says}; see unified {command} --help\n"


@pytest.mark.parametrize(
    ("command", "option", "values"),
    [
        ("prepare", "normalization", ("nmt_nfkc", "nfkc", "identity")),
        ("pretrain", "device", ("cpu", "cuda")),
        ("pretrain", "report-to", ("tensorboard", "wandb")),
    ],
)
def test_an_option_takes_each_of_its_choices(command, option, values):
    for value in values:
        assert parsed(f"{FIRST[command]} --{option} {value}")[option.replace("-", "_")] == value


@pytest.mark.parametrize(
    ("command", "groups"),
    [
        ("augment", ["positional arguments", "options", "what is printed", "models", "stages", "fine-tuning"]),
        ("prepare", ["options", "what is printed", "text", "pairs", "tokenizer", "annotations"]),
        ("pretrain", ["positional arguments", "options", "what is printed"]),
    ],
)
def test_help_has_its_options_in_groups(command, groups, capsys):
    status, out, _ = leaving(capsys, command, "--help")
    assert status == 0 and re.findall(r"^([a-z][a-z -]*):$", out, re.MULTILINE) == groups
