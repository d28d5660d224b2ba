"""``unified completion``: the script, written by shtab, by which a shell completes what is typed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from unified.cli.parsing import make_parser
from unified.cli.paths import is_path, shown_as

HELP = "print a script for your shell that completes what you type after `unified`"

#: shtab's test for a script that is read into a running zsh takes `eval` for the only way.
_READ_BY_EVAL, _READ_IN = "$zsh_eval_context[-1] == eval", "$zsh_eval_context[-1] == (eval|file)"
#: Such a script needs this of zsh, where no startup file has asked for it.
_COMPINIT = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "shell",
        choices=("bash", "zsh", "tcsh"),
        help="the shell to complete in; as the script takes some seconds to write, keep it in a file, and let the "
        "shell's startup file read that by `source FILE`",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    import shtab

    parser = make_parser()
    names = _names()
    for action in _actions(parser):
        if action.choices is None:
            if (action.dest, shown_as(action)) in names:
                action.choices = names[action.dest, shown_as(action)]
            elif is_path(action):
                vars(action)["complete"] = shtab.FILE
    script = shtab.complete(parser, args.shell)
    if args.shell == "zsh":
        script = script.replace(f"if [[ {_READ_BY_EVAL} ]]; then\n", f"if [[ {_READ_IN} ]]; then\n  {_COMPINIT}")
    print(script)
    return 0


def _names() -> dict[tuple[str, str], list[str]]:
    """Names to complete by the argument's name and placeholder; these arguments take other values, too."""
    from unified.cli.commands.masks import BUILDERS
    from unified.evaluation.names import SENTENCES, SUMS
    from unified.objectives import OBJECTIVES
    from unified.tasks.catalogue import TASKS
    from unified.tasks.heads import TASK_HEADS
    from unified.training.pretraining import model_names

    return {
        ("mask", "MASK"): [*BUILDERS, "pack"],
        ("scoring", "NAME"): [*SENTENCES, *SUMS],
        ("objective", "NAME"): list(OBJECTIVES),
        ("objectives", "MIXTURE"): list(OBJECTIVES),
        ("task", "TASK"): [*TASK_HEADS, *TASKS],
        ("model", "NAME"): model_names(),
    }


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser and of its subcommands."""
    for action in parser._actions:  # argparse has no public list
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _actions(subparser)
        else:
            yield action
