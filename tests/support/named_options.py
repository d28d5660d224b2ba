"""Which options the texts of the library name, and which commands can show these texts and have these options."""

from __future__ import annotations

import argparse
import ast
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import fairseq_plugins
import unified
from tests.support.fairseq_runs import options_of_fairseq
from unified.cli.parsing import command_modules, make_parser

ROOT = Path(__file__).resolve().parents[2]
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
#: Of other programs: `hf download`.
OTHERS = {"--local-dir"}
#: A text that names a command may name the command's options.
COMMAND = re.compile(r"`+unified ([a-z-]+)|\b(fairseq-[a-z]+)|\bfairseq's\b")


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    """Options of a parser and of its subcommands."""
    found = set()
    for action in parser._actions:
        found.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                found |= flags_of(inner)
    return found


@cache
def options_of_commands() -> dict[str, set[str]]:
    return {f"unified {name}": flags_of(make_parser(name)) for name in command_modules()} | options_of_fairseq()


@cache
def modules() -> dict[str, Path]:
    """All modules of the library and of the plug-ins with their files."""
    found = {}
    for package in (unified, fairseq_plugins):
        found[package.__name__] = Path(package.__file__)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            stem = ROOT / Path(*module.name.split("."))
            found[module.name] = stem / "__init__.py" if module.ispkg else stem.with_suffix(".py")
    return found


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


@cache
def imported(name: str) -> set[str]:
    """Modules that a module imports anywhere, but for its annotations; two packages load their names when asked."""
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body.clear()  # its children are not walked any more
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    if "unified.UnifiedLM" in found:
        found.add("unified.inference.language_model")
    if "unified.load" in found:
        found.add("unified.tasks.loading")
    if "unified.generation" in found:
        found.update(other for other in modules() if other.startswith("unified.generation."))
    return found & modules().keys()


def reached(names: set[str]) -> set[str]:
    """The modules and all that they import."""
    found, new = set(names), set(names)
    while new:
        new = set().union(*map(imported, new)) - found
        found |= new
    return found


@cache
def who_reaches() -> dict[str, set[str]]:
    """Module -> commands that may show its texts."""
    found: dict[str, set[str]] = {name: set() for name in modules()}
    starts = {f"unified {name}": {module} for name, module in command_modules().items()}
    plugins = {name for name in modules() if name.startswith("fairseq_plugins")}
    running = {name: plugins for name in options_of_fairseq() if name != "fairseq-preprocess"}
    for command, start in (starts | running).items():
        for name in reached(start):
            found[name].add(command)
    return found


def texts(name: str) -> Iterator[tuple[int, str]]:
    """Line and content of each text of a module; what an f-string puts in is left out."""
    within = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.JoinedStr):
            within.update(map(id, node.values))
            parts = (str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in within:
            yield node.lineno, node.value


def named_by(text: str) -> set[str]:
    """Commands that a text names."""
    found = set()
    for match in COMMAND.finditer(text):
        if match[1]:
            found.add(f"unified {match[1]}")
        elif match[2]:
            found.add(match[2])
        else:
            found |= options_of_fairseq().keys()
    return found


def misnamed() -> tuple[int, list[str]]:
    """How many options sentences of the library name, and those that no command that may show the sentence has."""
    options, wrong, count = options_of_commands(), [], 0
    for name, commands in who_reaches().items():
        for line, text in texts(name):
            if text.split() == [text]:
                continue  # a word of a command line that is put together, or of a parser
            known = OTHERS.union(*(options[one] for one in (commands | named_by(text)) & options.keys()))
            for match in OPTION.finditer(text):
                if text[match.end() : match.end() + 1] == "\0":
                    continue  # the rest of its name is not known here
                count += 1
                if match[0] not in known:
                    wrong.append(f"{modules()[name].relative_to(ROOT)}, line {line}: {match[0]}")
    return count, wrong
