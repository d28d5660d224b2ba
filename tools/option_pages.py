"""Prints the pages of all options as one line of JSON, {path in the site: text}; read by tools/site_pages.py.

They are made of the argument parsers of `unified` and of `fairseq-train --task unified_lm`, which needs fairseq.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from unified.cli.parsing import command_modules  # noqa: E402

TABLE = ["| option | default | meaning |", "|---|---|---|"]


def cell(text: object) -> str:
    """A cell of a table: one line, nothing of it read as Markdown's."""
    line = " ".join(str(text).split())
    return line.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def shown_default(action: argparse.Action) -> str:
    """The value that an option has where it is not given."""
    if action.required:
        return "required"
    if action.default is None or action.default is argparse.SUPPRESS or action.default == []:
        return ""
    if isinstance(action.default, bool):
        return "on" if action.default else "off"
    return f"`{action.default}`" if str(action.default) else ""


def row(action: argparse.Action, prog: str) -> str:
    """The row of a table for one option or argument."""
    takes = action.metavar or ("|".join(map(str, action.choices)) if action.choices else None)
    names = [f"`{name}`" for name in action.option_strings] or [f"`{takes or action.dest}`"]
    values = {**vars(action), "prog": prog}
    if action.choices is not None:
        values["choices"] = ", ".join(map(str, action.choices))
    meaning = cell((action.help or "") % values)
    if action.choices and action.option_strings:
        meaning = f"{meaning.removesuffix('.')}. One of {', '.join(f'`{choice}`' for choice in action.choices)}."
    return f"| {cell_of_code(', '.join(names))} | {cell_of_code(shown_default(action))} | {meaning.strip()} |"


def cell_of_code(text: str) -> str:
    """A cell that is code already; only the bar would end it."""
    return text.replace("|", "\\|")


def table(actions: Iterable[argparse.Action], prog: str) -> list[str]:
    """A table of all actions but the one for help and those that are hidden."""
    shown = [action for action in actions if action.dest != "help" and action.help != argparse.SUPPRESS]
    return [*TABLE, *(row(action, prog) for action in shown), ""] if shown else []


def commands(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """Lines of the page for a command and the commands below it."""
    yield from [f"{'#' * level} `{parser.prog}`", "", cell(parser.description or ""), ""]
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    yield from table([action for action in parser._actions if action not in below], parser.prog)
    for action in below:
        for name, inner in action.choices.items():
            inner.description = inner.description or next(
                (choice.help for choice in action._choices_actions if choice.dest == name), None
            )
            yield from commands(inner, level + 1)


def unified_page() -> str:
    """The page of the command `unified`."""
    lines = [
        "# Options of `unified`",
        "",
        "Made of the program's argument parsers: what `unified COMMAND --help` prints.",
        "",
    ]
    for name, module_name in command_modules().items():
        module = importlib.import_module(module_name)
        parser = argparse.ArgumentParser(prog=f"unified {name}", description=module.HELP)
        module.add_arguments(parser)
        lines += commands(parser, 2)
    return "\n".join(lines)


def own_fields(config: type) -> dict[str, object]:
    """Fields of a configuration that are options of its own, with defaults; others repeat one of fairseq's options."""
    fields = {field.name: field.default for field in dataclasses.fields(config)}
    return {name: default for name, default in fields.items() if not str(default).startswith("${")}


def training_parser(task: str, optimizer: str) -> argparse.ArgumentParser:
    """The parser of fairseq-train with the options of a task, its criterion, the model and an optimizer."""
    from fairseq import options

    parser = options.get_training_parser()
    words = ["data", "--user-dir", str(ROOT / "fairseq_plugins"), "--task", task, "--criterion", task]
    options.parse_args_and_arch(parser, [*words, "--arch", "unified_lm_tiny", "--optimizer", optimizer])
    return parser


def fairseq_page() -> str:
    """The page of `fairseq-train --task unified_lm`: first the options of this library, then all of fairseq's own."""
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY as CRITERIA
    from fairseq.models import MODEL_DATACLASS_REGISTRY as MODELS
    from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY as OPTIMIZERS
    from fairseq.tasks import TASK_DATACLASS_REGISTRY as TASKS

    lm, understanding = "unified_lm", "unified_understanding"
    parsers = {
        task: training_parser(task, name) for task, name in ((lm, "unified_adam"), (understanding, "unified_adamax"))
    }
    actions = {task: {action.dest: action for action in parser._actions} for task, parser in parsers.items()}
    ours = [  # heading, task whose parser has the options, configuration
        ("--task unified_lm", lm, TASKS[lm]),
        ("--arch (defaults of unified_lm_base)", lm, MODELS[lm]),
        ("--criterion unified_lm", lm, CRITERIA[lm]),
        ("--optimizer unified_adam", lm, OPTIMIZERS["unified_adam"]),
        ("--task unified_understanding", understanding, TASKS[understanding]),
        ("--criterion unified_understanding", understanding, CRITERIA[understanding]),
        ("--optimizer unified_adamax", understanding, OPTIMIZERS["unified_adamax"]),
    ]
    lines = ["# Options of `fairseq-train`", ""]
    lines += ["Made of the program's argument parser; [the fairseq plug-ins](../fairseq.md) says more about ours.", ""]
    told = set()
    for heading, task, config in ours:
        defaults = own_fields(config)
        own = [action for name, action in actions[task].items() if name in defaults]
        for action in own:
            action.default = defaults[action.dest] if action.default is None else action.default
        lines += [f"## `{heading}`", "", *table(own, "fairseq-train")]
        told |= {action.dest for action in own}
    for group in parsers[lm]._action_groups:
        rest = table([action for action in group._group_actions if action.dest not in told], "fairseq-train")
        lines += [f"## fairseq's own: {group.title}", "", *rest] if rest else []
    return "\n".join(lines)


if __name__ == "__main__":
    pages = {"reference/options/unified.md": unified_page(), "reference/options/fairseq-train.md": fairseq_page()}
    print(json.dumps(pages))
