"""Options from a YAML file, and the file that repeats a run.

Keys are the names of the options without their hyphens in front, and of the arguments without an option.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from unified.arguments import shown
from unified.cli.paths import misfit
from unified.errors import UnifiedError, nearest
from unified.files.claims import FILE_NAME as CLAIM
from unified.files.whole import write_whole_text
from unified.files.yaml_text import read_yaml_object

#: The file that a run writes beside its checkpoints.
FILE_NAME = "run.yaml"
_OPTION = "--config"
#: Options that are no part of a run.
_LEFT_OUT = frozenset(("help", "config", "dry-run", "json", "quiet", "verbose"))


def add_config_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--config``, which may stand for all others, and several times.

    A later file wins over an earlier one, and the command line over all files (:func:`config_first`).
    """
    parser.add_argument(
        _OPTION,
        metavar="FILE",
        action=_Config,
        help="YAML file with options by their names, such as `lr: 1e-4`. Of several files, each with its own --config, "
        "a later one wins over an earlier one, and an option on the command line over all, wherever it stands. Every "
        f"run writes such a file, {FILE_NAME}, beside its checkpoints",
    )


def config_first(arguments: Sequence[str]) -> list[str]:
    """Words of a command with every ``--config`` moved to the front, so that all other options come after their own.

    The files keep their order: of two that give an option, the later one counts. The name of ``--config`` may be cut
    short, which the parser allows.
    """
    command = next((i for i, word in enumerate(arguments) if not word.startswith("-")), None)
    if command is None or any(map(_is_config, arguments[:command])):  # no command stands before it
        return list(arguments)
    files: list[str] = []
    others: list[str] = []
    words = iter(arguments[command + 1 :])
    for word in words:
        if _is_config(word):
            files += [word] if "=" in word else [word, *islice(words, 1)]
        else:
            others.append(word)
            if word == "--":  # no options follow
                break
    return [*arguments[: command + 1], *files, *others, *words]


def _is_config(word: str) -> bool:
    option = word.partition("=")[0]
    return len(option) > len("--") and _OPTION.startswith(option)


def write_run(folder: Path, args: argparse.Namespace, add_arguments: Callable[[argparse.ArgumentParser], None]) -> None:
    """Write the options of a run to :data:`FILE_NAME` in its folder.

    Args:
        add_arguments: declares the options of the command.
    """
    import yaml

    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    given = {name: vars(args)[action.dest] for name, action in _by_name(parser).items()}
    content = {name: value for name, value in given.items() if value is not None and value is not False}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=float("inf"))
    path = folder / FILE_NAME
    write_whole_text(path, f"# unified {args.command} --config {path}\n{text}")


def require_run_folder(folder: Path) -> None:
    """Refuse a folder with files of something else, such as a downloaded model, which a training would replace.

    A run has :data:`FILE_NAME`; before that is written, its folder holds no more than a claim and items.

    Raises:
        UnifiedError: names some of the files.
    """
    if not folder.is_dir() or (folder / FILE_NAME).exists():
        return
    others = sorted(
        path.name for path in folder.iterdir() if path.name not in (CLAIM, "data", "items") and path.name[0] != "."
    )
    if others:
        raise UnifiedError(
            f"--output {folder}: holds {', '.join(others[:3])}, and no {FILE_NAME} says that a run made "
            f"{'it' if len(others) == 1 else 'them'}; name another folder"
        )


class _Config(argparse.Action):
    """Sets the options that a file names; they are no longer required."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: Any, *_: Any) -> None:
        known = _by_name(parser)
        for name, given in read_yaml_object(value).items():
            if name not in known:
                raise UnifiedError(f"{value}: no option {name!r}{nearest(str(name), known)}")
            if given is not None:
                action = known[name]
                setattr(namespace, action.dest, _converted(f"{value}: {name}", action, given))
                action.required = False


def _by_name(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Options and arguments of a parser by their names in a file."""
    actions = {}
    for action in parser._actions:  # argparse has no public list
        long = [option for option in action.option_strings if option.startswith("--")]
        actions[long[0].removeprefix("--") if long else action.dest] = action
    return {name: action for name, action in actions.items() if name not in _LEFT_OUT}


def _converted(where: str, action: argparse.Action, value: Any) -> Any:
    """A value of the file as the command line would give it."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise UnifiedError(f"{where}: must be true or false, got {shown(value)}")
        return value
    if action.nargs in ("*", "+"):
        return [_one(where, action, each) for each in (value if isinstance(value, list) else [value])]
    return _one(where, action, value)


def _one(where: str, action: argparse.Action, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UnifiedError(f"{where}: must be a text or a number, got {shown(value)}; put it in quotes if it is a text")
    wrong = misfit(action, value)
    if wrong is not None:
        raise UnifiedError(f"{where}: {wrong}")
    try:
        converted = action.type(str(value)) if callable(action.type) else str(value)
    except (TypeError, ValueError, argparse.ArgumentTypeError):
        raise UnifiedError(f"{where}: {value!r} is no value of it") from None
    if action.choices is not None and converted not in action.choices:
        known = list(map(str, action.choices))
        raise UnifiedError(f"{where}: must be one of {', '.join(known)}, got {value!r}{nearest(str(value), known)}")
    return converted
