"""Options of the commands that generate, evaluate, score or show: names, types, defaults, what is required."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from tests.support.commands import assert_stands_for, leaving, parsed
from unified.generation.config import GenerationConfig

GENERATE = "generate --model m --output o"
#: Settings that both verbs of `masks` have, all types of `score` and all types of `evaluate`, with their defaults.
OF_MASKS = {
    "mask": "tree", "arguments": [], "query_stream": None, "sinks": 0, "memory": 0, "json": False,
    "without_self": False,
}  # fmt: skip
OF_SCORES = {
    "intervals": False, "resamples": None, "seed": None, "json": False, "output": None, "overwrite": False,
    "against": None,
}  # fmt: skip
OF_EVALUATIONS = {
    "data": "d", "model": "m", "threads": 0, "device": "cpu", "intervals": False, "resamples": None, "seed": None,
    "output": None, "overwrite": False, "run_name": None, "json": False, "against": None,
}  # fmt: skip
MORE_OF_EVALUATIONS = (
    "--threads 2 --device cuda --intervals --resamples 3 --seed 0 --output o --overwrite --run r --json --against a"
)
GIVEN_TO_EVALUATIONS = {
    "data": "d", "model": "m", "threads": 2, "device": "cuda", "intervals": True, "resamples": 3, "seed": 0,
    "output": "o", "overwrite": True, "run_name": "r", "json": True, "against": "a",
}  # fmt: skip
SQUAD = {"data": "d", "predictions": ["p"], "rules": None}
LABELS = {"gold": "d", "predictions": ["p"], "label_field": None}
TEXTS = {"predictions": ["d", "p"], "references": [], "target_field": None}
#: Command lines and the settings that they are parsed to: for each command the shortest line, which gives the defaults,
#: and one with all options.
LINES: dict[str, dict[str, Any]] = {
    GENERATE: {
        "data": None, "model": "m", "output": "o", "overwrite": False, "input": None, "gen_subset": None,
        "source_lang": None, "target_lang": None, "workers": 1, "threads": 1, "device": "cpu", "int8": False,
        "batch_size": 32, "chunk": 128, "max_source": None, "windows": False, "prompt": None, "beam": None,
        "max_length": None, "min_length": 1, "nbest": 1, "length_penalty": "fairseq", "lenpen": 1.0,
        "no_repeat_ngram_size": 0, "no_repeat_ngram_ignore": [], "sampling": False, "top_k": 0, "top_p": 1.0,
        "temperature": 1.0, "seed": 0,
    },
    "generate d --model m --output o --overwrite --input i --gen-subset g -sde -ten --workers 2 --threads 3 "
    "--device cuda --int8 --batch-size 4 --chunk 5 --max-source 6 --windows --prompt --beam 7 --max-length 8 "
    "--min-length 9 --nbest 10 --length-penalty unilm --lenpen 0.5 --no-repeat-ngram-size 11 "
    "--no-repeat-ngram-ignore a b --sampling --top-k 12 --top-p 0.25 --temperature 2 --seed 13": {
        "data": "d", "model": "m", "output": "o", "overwrite": True, "input": "i", "gen_subset": "g",
        "source_lang": "de", "target_lang": "en", "workers": 2, "threads": 3, "device": "cuda", "int8": True,
        "batch_size": 4, "chunk": 5, "max_source": 6, "windows": True, "prompt": True, "beam": 7, "max_length": 8,
        "min_length": 9, "nbest": 10, "length_penalty": "unilm", "lenpen": 0.5, "no_repeat_ngram_size": 11,
        "no_repeat_ngram_ignore": ["a", "b"], "sampling": True, "top_k": 12, "top_p": 0.25, "temperature": 2.0,
        "seed": 13,
    },
    "masks show tree": OF_MASKS | {"verb": "show"},
    "masks plot tree --output o": OF_MASKS | {
        "verb": "plot", "output": "o", "overwrite": False, "tokens": None,
    },
    "masks plot tree 0,0 1 --query-stream 1,2 --sinks 1 --memory 2 --json --without-self --output o --overwrite "
    "--tokens t": {
        "verb": "plot", "mask": "tree", "arguments": ["0,0", "1"], "query_stream": "1,2", "sinks": 1, "memory": 2,
        "json": True, "without_self": True, "output": "o", "overwrite": True, "tokens": "t",
    },
    "objectives": {"action": None, "json": False},
    "objectives --json": {"action": None, "json": True},
    "objectives show n --text t": {
        "action": "show", "objective": "n", "text": "t", "second": None, "json": False, "seed": 1,
    },
    "objectives show n --text t --second s --json --seed 0": {
        "action": "show", "objective": "n", "text": "t", "second": "s", "json": True, "seed": 0,
    },
    "evaluate minimal-pairs d --model m": OF_EVALUATIONS | {"scoring": None, "draws": None},
    f"evaluate minimal-pairs d --model m --scoring both --draws 1 {MORE_OF_EVALUATIONS}": (
        GIVEN_TO_EVALUATIONS | {"scoring": "both", "draws": 1}
    ),
    "evaluate perplexity d --model m": (
        OF_EVALUATIONS | {"scoring": None, "draws": None, "text_field": None, "window": None, "stride": None}
    ),
    "evaluate perplexity d --model m --scoring s --draws 1 --text-field t --window 4 --stride 2 "
    f"{MORE_OF_EVALUATIONS}": (
        GIVEN_TO_EVALUATIONS | {"scoring": "s", "draws": 1, "text_field": "t", "window": 4, "stride": 2}
    ),
    "evaluate similarity d --model m": OF_EVALUATIONS | {
        "text_field": None, "second_field": None, "label_field": None, "pooling": "mean", "max_length": None,
        "batch_size": 32,
    },
    "evaluate similarity d --model m --text-field a --second-field b --label-field c --pooling cls --max-length 1 "
    f"--batch-size 2 {MORE_OF_EVALUATIONS}": GIVEN_TO_EVALUATIONS | {
        "text_field": "a", "second_field": "b", "label_field": "c", "pooling": "cls", "max_length": 1,
        "batch_size": 2,
    },
    "score squad d p": OF_SCORES | SQUAD | {"na_prob": None, "na_prob_thresh": None, "against_na_prob": None},
    "score squad d p --rules 1.1 --na-prob n --na-prob-thresh 0.5 --against e --against-na-prob f --intervals "
    "--resamples 2 --seed 0 --json --output o --overwrite": {
        "data": "d", "predictions": ["p"], "rules": "1.1", "na_prob": ["n"], "na_prob_thresh": 0.5, "intervals": True,
        "resamples": 2, "seed": 0, "json": True, "output": "o", "overwrite": True, "against": ["e"],
        "against_na_prob": ["f"],
    },
    "score mrqa d p": OF_SCORES | {"data": "d", "predictions": ["p"]},
    "score coqa d p": OF_SCORES | {"data": "d", "predictions": ["p"]},
    "score span d p": OF_SCORES | SQUAD | {"text_field": None, "second_field": None, "label_field": None},
    "score span d p --rules 2.0 --text-field a --second-field b --label-field c": OF_SCORES | {
        "data": "d", "predictions": ["p"], "rules": "2.0", "text_field": "a", "second_field": "b", "label_field": "c",
    },
    "score coref d p": OF_SCORES | {"key": "d", "predictions": ["p"]},
    "score classification d p": OF_SCORES | LABELS | {"labels": None, "positive": None},
    "score classification d p --label-field l --labels a,b --positive b": OF_SCORES | LABELS | {
        "label_field": "l", "labels": "a,b", "positive": "b",
    },
    "score choice d p": OF_SCORES | LABELS,
    "score regression d p": OF_SCORES | LABELS,
    "score relation d p": OF_SCORES | LABELS | {"labels": None, "rules": "tacred", "negative": None},
    "score relation d p --labels a --rules semeval2010 --negative n": OF_SCORES | LABELS | {
        "labels": "a", "rules": "semeval2010", "negative": "n",
    },
    "score tagging d p": OF_SCORES | LABELS | {"labels": None},
    "score generation d p": OF_SCORES | TEXTS | {
        "no_stemmer": False, "bleu_tokenizer": "13a", "sources": None, "sentence_separator": None,
        "post_process": None, "max_words": None, "plain_references": False,
    },
    "score generation d --references r t --target-field f --no-stemmer --bleu-tokenizer zh --sources s "
    "--sentence-separator x --post-process xsum --max-words 0 --plain-references --against e f": OF_SCORES | {
        "predictions": ["d"], "against": ["e", "f"], "references": ["r", "t"], "target_field": "f",
        "no_stemmer": True, "bleu_tokenizer": "zh", "sources": "s", "sentence_separator": "x",
        "post_process": "xsum", "max_words": 0, "plain_references": True,
    },
    "score question-generation d p --sources s": OF_SCORES | TEXTS | {
        "sources": "s", "penn_treebank": False, "bert_words": False, "meteor": False,
    },
    "score question-generation d p --sources s --penn-treebank --meteor": OF_SCORES | TEXTS | {
        "sources": "s", "penn_treebank": True, "bert_words": False, "meteor": True,
    },
    "score question-generation d p --sources s --bert-words": OF_SCORES | TEXTS | {
        "sources": "s", "penn_treebank": False, "bert_words": True, "meteor": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_parsed_to_these_settings_and_no_others(line):
    assert_stands_for(line, LINES[line])


def test_each_setting_of_the_search_is_an_option_with_its_default():
    found = parsed(GENERATE)
    for field in fields(GenerationConfig):
        default = {"max_length": None, "no_repeat_ngram_ignore": []}.get(field.name, field.default)
        assert found[field.name] == default and type(found[field.name]) is type(default), field.name
    assert parsed(f"{GENERATE} --no-prompt")["prompt"] is False


def test_help_of_the_search_describes_each_setting_and_says_its_default(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # no word is divided at its hyphens
    _, out, _ = leaving(capsys, "generate", "--help")
    text = " ".join(out.split())
    values = {"length_penalty": "{fairseq,unilm} ", "sampling": ""}
    for field in fields(GenerationConfig):
        if field.name == "no_repeat_ngram_ignore":
            continue  # symbols on the command line, ids in Python
        shown = f"--{field.name.replace('_', '-')} {values.get(field.name, 'N ')}{field.metadata['help']}"
        if type(field.default) in (int, float):
            default = str(field.default)
            if field.name == "max_length":
                default = f"as in training; without pairs {default}, or what the text leaves of the positions"
            shown += f" (default: {default})"
        assert shown in text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        *(
            (line, f"the following arguments are required: {missing}")
            for line, missing in {
                "generate --output o": "--model",
                "generate --model m": "--output",
                "masks": "VERB",
                "masks plot tree": "--output",
                "objectives show n": "--text",
                "objectives show --text t": "NAME",
                "evaluate": "TYPE",
                "evaluate minimal-pairs --model m": "FOLDER",
                "evaluate perplexity d": "--model",
                "evaluate similarity --model m": "FILE",
                "score": "TYPE",
                "score squad d": "PREDICTIONS",
                "score coref d": "RESPONSE",
                "score relation": "GOLD, PREDICTIONS",
                "score span d": "PREDICTIONS",
                "score generation": "FILE",
                "score question-generation d p": "--sources",
            }.items()
        ),
        *(
            (f"{line} {option} {value}", f"argument {option}: must be an integer of at least {least}, got '{value}'")
            for line, option, value, least in (
                *((GENERATE, f"--{name}", 0, 1) for name in ("workers", "batch-size", "chunk")),
                ("evaluate perplexity d --model m", "--seed", -1, 0),
                *(("evaluate perplexity d --model m", f"--{n}", 0, 1) for n in "draws window stride".split()),
                *(
                    (f"evaluate {kind} d --model m", "--resamples", 1, 2)
                    for kind in ("minimal-pairs", "perplexity", "similarity")
                ),
                *(("evaluate similarity d --model m", f"--{name}", 0, 1) for name in ("max-length", "batch-size")),
                ("evaluate similarity d --model m", "--seed", -1, 0),
            )
        ),
        *(
            (f"{line} --threads {value}", f"argument --threads: must be an integer from {least} to 4096, got '{value}'")
            for line, least in ((GENERATE, 1), ("evaluate perplexity d --model m", 0), ("predict t i --model m", 0))
            for value in (least - 1, 4294967296)
        ),
        (f"{GENERATE} --length-penalty x",
         "argument --length-penalty: invalid choice: 'x' (choose from fairseq, unilm)"),
        ("evaluate similarity d --model m --pooling max",
         "argument --pooling: invalid choice: 'max' (choose from mean, cls)"),
        ("score squad d p --rules 3", "argument --rules: invalid choice: '3' (choose from 1.1, 2.0)"),
        ("score span d p --rules 3", "argument --rules: invalid choice: '3' (choose from 1.1, 2.0)"),
        ("score relation d p --rules x", "argument --rules: invalid choice: 'x' (choose from tacred, semeval2010)"),
        ("score generation d --post-process x",
         "argument --post-process: invalid choice: 'x' (choose from cnndm, gigaword, xsum)"),
        ("score generation d --max-words 1.5", "argument --max-words: invalid int value: '1.5'"),
        ("score question-generation d --sources s --penn-treebank --bert-words",
         "argument --bert-words: not allowed with argument --penn-treebank"),
    ],
)  # fmt: skip
def test_a_missing_argument_or_a_wrong_value_is_refused_in_one_line(line, says, capsys):
    words = line.split()
    status, out, err = leaving(capsys, *words)
    verbs = {"evaluate", "score", "masks", "objectives"}
    program = " ".join(["unified", *words[: 2 if words[0] in verbs and len(words) > 1 else 1]])
    assert (status, out) == (2, "") and err == f"{program}: error: {says}; see {program} --help\n"


def test_options_take_the_names_of_all_rules_and_poolings():
    for line, option, values in (
        ("score squad d p", "rules", ("1.1", "2.0")), ("score span d p", "rules", ("1.1", "2.0")),
        ("score relation d p", "rules", ("tacred", "semeval2010")),
        ("score generation d", "post-process", ("cnndm", "gigaword", "xsum")),
        ("evaluate similarity d --model m", "pooling", ("mean", "cls")),
    ):  # fmt: skip
        for value in values:
            assert parsed(f"{line} --{option} {value}")[option.replace("-", "_")] == value


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ("generate", ["search"]),
        ("evaluate minimal-pairs", ["scoring", "intervals"]),
        ("evaluate perplexity", ["scoring", "windows of long documents", "intervals"]),
        ("evaluate similarity", ["fields", "intervals"]),
        ("score squad", ["intervals"]),
        ("score span", ["fields", "intervals"]),
        ("score generation", ["fields", "clean-up", "intervals"]),
    ],
)
def test_help_has_some_options_in_groups(words, groups, capsys):
    status, out, _ = leaving(capsys, *words.split(), "--help")
    found = re.findall(r"^([a-z][a-z -]*):$", out, re.MULTILINE)
    assert status == 0 and found == ["positional arguments", "options", "what is printed", *groups]


def test_help_of_intervals_says_what_is_drawn(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for words, what in (
        ("evaluate minimal-pairs", "pairs"),
        ("evaluate perplexity", "documents"),
        ("evaluate similarity", "pairs"),
    ):
        _, out, _ = leaving(capsys, *words.split(), "--help")
        text = " ".join(out.split())
        assert f"How far the scores would move if other {what} had been drawn." in text
        shown = f"--intervals add the 95 % bootstrap interval of every score over the {what} --resamples N "
        assert f"{shown}resamples of the bootstrap (default: 1000)" in text
        assert "name of the run in tables of results (default: ours)" in text
    _, out, _ = leaving(capsys, "score", "span", "--help")
    text = " ".join(out.split())
    for said in ("GOLD rows with 'question'", "PREDICTIONS rows with 'id' and 'answer'"):
        assert said in text
    _, out, _ = leaving(capsys, "score", "squad", "--help")
    assert "DATA file of SQuAD, JSON PREDICTIONS JSON object: question id to answer" in " ".join(out.split())
