"""Words of a command line: misspelt ones, and those that the help writes out."""

import argparse
import re

import pytest

import unified
from tests.integration.cli.test_json import leaves
from tests.support.commands import leaving
from unified.checkpoints.vocabularies import SEED
from unified.cli.commands import convert, export, pairs
from unified.cli.commands import masks as masks_command
from unified.cli.parsing import make_parser
from unified.conversions.formats import READERS, WRITERS
from unified.tasks.datasets.summaries.formats import FORMATS
from unified.tasks.datasets.summaries.oracles import ORACLES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["finetun"],
            "unified: error: argument COMMAND: invalid choice: 'finetun' (did you mean 'finetune'?) (",
        ),
        (["xyz"], "unified: error: argument COMMAND: invalid choice: 'xyz' (choose from augment, "),
        (
            ["results", "runs", "--diferences", "--measure=f1"],
            "unified results: error: unrecognized arguments: --diferences (did you mean '--differences'?); see unified "
            "results --help",
        ),
        (["results", "runs", "-x"], "unified results: error: unrecognized arguments: -x; see "),
        (["plugin-dir", "here"], "unified plugin-dir: error: unrecognized arguments: here; see "),
        (
            ["score", "squad", "a", "b", "--rule=1.1", "--na-probs", "c"],
            "unified score squad: error: unrecognized arguments: --na-probs (did you mean '--na-prob'?), c; see "
            "unified score squad --help",
        ),
        (
            ["score", "sqad"],
            "unified score: error: argument TYPE: invalid choice: 'sqad' (did you mean 'squad'?) (",
        ),
        (
            ["objectives", "bert"],
            "unified objectives: error: argument show: invalid choice: 'bert' (choose from show); write `unified "
            "objectives show bert`; see unified objectives --help",
        ),
        (
            ["finetune", "cola", "--select", "first"],
            "unified finetune: error: argument --select: invalid choice: 'first' (choose from last, best); see ",
        ),
        (
            ["convert", "a", "b", "--from", "brt"],
            "unified convert: error: argument --from: invalid choice: 'brt' (did you mean 'bert'?) (choose from bert, ",
        ),
    ],
)
def test_a_misspelt_word_is_refused_in_one_line_with_the_nearest_one(capsys, arguments, message):
    status, out, err = leaving(capsys, *arguments)
    assert status == 2 and not out and err.startswith(message) and err.count("\n") == 1


def help_of(command):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return " ".join(parser.format_help().split())


def test_numbers_that_help_calls_defaults_are_the_defaults():
    """Where the parser has one; others follow from what is prepared or trained."""
    compared = 0
    for words, parser in leaves(make_parser()):
        for action in parser._actions:
            said = re.search(r"\(default: ([\d.,]+)\)", action.help or "")
            if said and isinstance(action.default, int | float):
                compared += 1
                assert float(said[1].replace(",", "")) == action.default, (words, action.option_strings)
    assert compared > 45


def test_options_with_a_number_by_default_read_a_number():
    read = 0
    for words, parser in leaves(make_parser()):
        for action in parser._actions:
            if isinstance(action.default, int | float) and not isinstance(action.default, bool):
                assert action.type is not None, (words, action.option_strings)
                assert action.type(str(action.default)) == action.default, (words, action.option_strings)
                read += 1
    assert read > 45


def test_what_help_writes_out_is_what_the_library_has():
    assert tuple(READERS) == convert.FORMATS and tuple(WRITERS) == export.FORMATS
    assert f"seed of the embeddings of new symbols, with --vocabulary (default: {SEED})" in help_of(convert)
    assert {name: form.known for name, form in FORMATS.items()} == pairs.DATA_SETS and tuple(ORACLES) == pairs.ORACLES
    builders = {name: vars(unified.masks)[name] for name in masks_command.BUILDERS}
    assert {name: masks_command.signature_of(builder) for name, builder in builders.items()} == masks_command.BUILDERS
