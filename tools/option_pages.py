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

from unified.cli import command_modules  # noqa: E402

TABLE = ["| option | default | meaning |", "|---|---|---|"]
ASKED = ["data", "--user-dir", str(ROOT / "fairseq_plugins"), "--task", "unified_lm", "--arch", "unified_lm_tiny"]
ASKED += ["--criterion", "unified_lm", "--max-tokens", "1", "--optimizer", "unified_adam"]


def cell(text: object) -> str:
    """A cell of a table: one line, nothing of it read as Markdown's."""
    line = " ".join(str(text).split())
    return line.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


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
        meaning += f" One of {', '.join(f'`{choice}`' for choice in action.choices)}."
    return f"| {', '.join(names)} | {cell_of_code(shown_default(action))} | {meaning.strip()} |"


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


def fairseq_page() -> str:
    """The page of `fairseq-train --task unified_lm`: first the options of this library, then all of fairseq's own."""
    from fairseq import options
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
    from fairseq.models import MODEL_DATACLASS_REGISTRY
    from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
    from fairseq.tasks import TASK_DATACLASS_REGISTRY

    parser = options.get_training_parser()
    options.parse_args_and_arch(parser, ASKED)  # adds the options of task, model, criterion and optimizer
    lines = ["# Options of `fairseq-train --task unified_lm`", ""]
    lines += [
        "Made of the program's argument parser; [fairseq.md](../fairseq.md) says more about those of this library.",
        "",
    ]
    left = {action.option_strings[0]: action for action in parser._actions if action.option_strings}
    ours = {
        "--task unified_lm": TASK_DATACLASS_REGISTRY["unified_lm"],
        "--arch": MODEL_DATACLASS_REGISTRY["unified_lm"],
        "--criterion unified_lm": CRITERION_DATACLASS_REGISTRY["unified_lm"],
        "--optimizer unified_adam": OPTIMIZER_DATACLASS_REGISTRY["unified_adam"],
    }
    of_groups = {id(action): group.title for group in parser._action_groups for action in group._group_actions}
    for title, config in ours.items():
        fields = {field.name for field in dataclasses.fields(config)}
        own = [flag for flag, action in left.items() if action.dest in fields]
        lines += [f"## `{title}`", "", *table([left.pop(flag) for flag in own], "fairseq-train")]
    groups: dict[str, list[argparse.Action]] = {}
    for action in left.values():
        groups.setdefault(str(of_groups.get(id(action), "others")), []).append(action)
    for title, actions in groups.items():
        lines += [f"## fairseq's own: {title}", "", *table(actions, "fairseq-train")]
    return "\n".join(lines)


if __name__ == "__main__":
    pages = {"reference/options/unified.md": unified_page(), "reference/options/fairseq-train.md": fairseq_page()}
    print(json.dumps(pages))
