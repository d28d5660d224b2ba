"""The parser of commands: its refusals in one line, what each command shares, and the modules that are commands."""

from __future__ import annotations

import argparse
import pkgutil
from pathlib import Path

import pytest

from unified import __version__
from unified.cli import commands
from unified.cli.parsing import Parser, command_modules, command_of, make_parser, options_of
from unified.errors import UnifiedError


@pytest.fixture
def parser() -> Parser:
    made = Parser(prog="tool", description="A tool.")
    made.add_argument("--batch-size", type=int)
    made.add_argument("--select", choices=("last", "best"))
    made.add_argument("--layers", type=int, choices=(2, 12))
    return made


def refusal(parser: Parser, words: str, capsys) -> str:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words.split())
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == ""
    return said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--batch-sise 3", "unrecognized arguments: --batch-sise (did you mean '--batch-size'?), 3"),
        ("--batch-sise=3", "unrecognized arguments: --batch-sise (did you mean '--batch-size'?)"),
        ("--nothing=3 file", "unrecognized arguments: --nothing, file"),
        ("batch-size", "unrecognized arguments: batch-size"),
        ("-1,0,0", "unrecognized arguments: -1,0,0 (write -- in front of numbers of which the first is negative)"),
        ("--select bets", "argument --select: invalid choice: 'bets' (did you mean 'best'?) (choose from last, best)"),
        ("--select none", "argument --select: invalid choice: 'none' (choose from last, best)"),
        ("--layers 3", "argument --layers: invalid choice: 3 (choose from 2, 12)"),
        ("--batch-size x", "argument --batch-size: invalid int value: 'x'"),
    ],
)
def test_a_refusal_is_one_line_with_the_nearest_name(parser, capsys, words, says):
    assert refusal(parser, words, capsys) == f"tool: error: {says}; see tool --help\n"


@pytest.mark.parametrize("words", ["file --outptu x", "--outptu x", "--outptu=x", "-q file --outptu x -- --output"])
def test_a_misspelt_option_is_named_before_those_that_are_missing(parser, capsys, words):
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--output", required=True)
    told = refusal(parser, words, capsys)
    assert told.startswith("tool: error: unrecognized arguments: --outptu (did you mean '--output'?)")
    missing = "tool: error: the following arguments are required: --output; see tool --help\n"
    assert refusal(parser, "file -- --outptu", capsys) == refusal(parser, "file --select last", capsys) == missing
    assert refusal(parser, "file --nothing=3", capsys) == missing
    assert parser.parse_args(["file", "--outp", "x"]).output == "x"
    parser.add_argument("--fairseq")  # a value that looks like an option is none, and hides nothing that is missing
    with pytest.raises(SystemExit):
        parser.parse_args(["file", "--fairseq", "--outptu 3"])
    assert capsys.readouterr().err == missing


def test_what_is_known_is_parsed(parser):
    found = parser.parse_args("--batch-size 3 --select best --layers 12".split())
    assert vars(found) == {"batch_size": 3, "select": "best", "layers": 12}
    found, unknown = parser.parse_known_args([], argparse.Namespace(before=1))
    assert unknown == [] and vars(found) == {"batch_size": None, "select": None, "layers": None, "before": 1}


@pytest.mark.parametrize("line", ["{} results x", "results x {}", "results {} x"])
@pytest.mark.parametrize("option", ["-q", "--quiet", "-v", "--verbose"])
def test_quiet_and_verbose_stand_before_a_command_or_behind_it(line, option):
    found = make_parser("results").parse_args(line.format(option).split())
    quiet = option in ("-q", "--quiet")
    assert (found.quiet, found.verbose, found.command) == (quiet, not quiet, "results")


def test_neither_quiet_nor_verbose_is_the_default_of_a_command_alone(parser):
    found = make_parser("results").parse_args(["results", "x"])
    assert (found.quiet, found.verbose) == (False, False)
    assert "quiet" not in vars(parser.parse_args([])) and "verbose" not in vars(parser.parse_args([]))
    assert vars(parser.parse_args(["-q", "-v"]))["quiet"] is True


def test_help_has_a_group_for_what_is_printed(parser):
    text = " ".join(parser.format_help().split())
    assert (
        "what is printed: -q, --quiet print results and errors alone, no progress and no notes -v, --verbose print the "
        "library's log, and where in the code an error was found"
    ) in text


def test_the_commands_are_the_modules_of_their_folder():
    modules = command_modules()
    files = {module.name for module in pkgutil.iter_modules(commands.__path__) if not module.ispkg}
    assert {name.replace("-", "_") for name in modules} == files and list(modules) == sorted(modules)
    assert modules["tune-lengths"] == "unified.cli.commands.tune_lengths"
    assert not {"finetuning", "scoring", "predicting"} & modules.keys() and "_" not in "".join(modules)


def choices_of(parser: Parser) -> dict[str, argparse.ArgumentParser]:
    (found,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(found.choices)


def test_a_parser_of_one_command_knows_no_other_and_that_of_none_knows_all(capsys):
    assert list(choices_of(make_parser("results"))) == ["results"]
    for name in (None, "reslts"):
        assert list(choices_of(make_parser(name, outline=True))) == list(command_modules())
    outline, whole = make_parser("results", outline=True), make_parser("results")
    assert "--measures" not in choices_of(outline)["results"].format_help()
    assert "--measures" in choices_of(whole)["results"].format_help()
    assert "--measures" in choices_of(make_parser())["results"].format_help()


def test_a_command_has_the_summary_of_its_module_in_the_list_and_in_its_help():
    from unified.cli.commands import results

    parser = make_parser(outline=True)
    one = choices_of(parser)["results"]
    assert isinstance(one, Parser) and one.prog == "unified results"
    assert " ".join(results.HELP.split()) in " ".join(one.format_help().split())
    assert results.HELP[:30] in " ".join(parser.format_help().split())
    assert one.parse_args([]).run is results.run
    assert (
        "Pre-train and fine-tune unified language models." in parser.format_help()
        and "COMMAND" in parser.format_usage()
    )


def test_a_command_is_required_and_the_version_is_told(capsys):
    assert refusal(make_parser("results"), "", capsys) == (
        "unified: error: the following arguments are required: COMMAND; see unified --help\n"
    )
    assert refusal(make_parser("reslts", outline=True), "reslts", capsys).startswith(
        "unified: error: argument COMMAND: invalid choice: 'reslts' (did you mean 'results'?) (choose from "
    )
    with pytest.raises(SystemExit) as ended:
        make_parser("results").parse_args(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"unified {__version__}\n"
    assert "\n  --version " in make_parser("results").format_help()


def test_the_word_that_names_the_command_is_the_first_that_is_no_option():
    assert command_of(["-q", "--verbose", "score", "squad"]) == "score"
    assert command_of(["-q"]) is None and command_of([]) is None


KEPT = "finetune rte --data d --init i --output o"


def test_a_command_that_is_kept_for_later_has_its_options_as_on_the_command_line(tmp_path: Path):
    config = tmp_path / "own.yaml"
    config.write_text("lr: 3\nepochs: 2\n", encoding="utf-8")
    options = options_of([*KEPT.split(), "--lr", "1", "--config", str(config)])
    assert (options.task, options.lr, options.epochs, options.batch_size) == ("rte", 1, 2, None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (f"{KEPT} --lr x", "argument --lr: invalid float value: 'x'"),
        (f"{KEPT} --epocs 3", "unrecognized arguments: --epocs (did you mean '--epochs'?), 3"),
        (f"{KEPT} --help", "unrecognized arguments: --help"),
        ("finetune rte --data d --init i", "the following arguments are required: --output"),
    ],
)
def test_a_command_that_is_kept_for_later_is_refused_by_an_error(words, says, capsys):
    with pytest.raises(UnifiedError) as refused:
        options_of(words.split())
    assert str(refused.value) == says and capsys.readouterr() == ("", "")
