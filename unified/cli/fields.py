"""Options that name the fields of a user's rows, alike in all commands."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence

from unified.errors import UnifiedError, first_few
from unified.files.fields import FieldNames, option_of, other_meaning

#: Contents of the field of each part, in words.
_HOLDS = {
    "text": "the text, words or passage",
    "second": "the second text, or the question about a passage",
    "label": "the label, number, tags or answer",
    "source": "the source of a pair",
    "target": "the target of a pair",
}
#: Parts that are read to predict, without labels and targets, and their options.
READ_PARTS = ("text", "second", "source")
READ_FIELDS = tuple(map(option_of, READ_PARTS))


def add_field_arguments(parser: argparse.ArgumentParser, *parts: str, labels: bool = False) -> None:
    """Declare an option for the field of each part, and ``--labels`` where it is wanted."""
    group = parser.add_argument_group(
        "fields", "Names of fields or columns that differ from those of the task's items."
    )
    for part in parts:
        group.add_argument(option_of(part), metavar="NAME", help=f"field or column that holds {_HOLDS[part]}")
    if labels:
        group.add_argument(
            "--labels",
            metavar="NAME,NAME,...",
            help="names of the labels that rows have as 0, 1, ..., or as false and true",
        )


def field_names(args: argparse.Namespace) -> FieldNames:
    """The names that the options give.

    Raises:
        UnifiedError: two of them name one field, or labels have no names of their own.
    """
    options = vars(args)
    found = {part: options.get(f"{part}_field") for part in _HOLDS}
    given = {part: name for part, name in found.items() if name is not None}
    require_different_fields({option_of(part): name for part, name in given.items()})
    labels = options.get("labels")
    return FieldNames(
        given=given,
        labels=() if labels is None else _label_names(labels),
    )


def require_different_fields(names: Mapping[str, str]) -> None:
    """Refuse two options that name one field.

    Args:
        names: of fields, by option.

    Raises:
        UnifiedError: names both options.
    """
    first: dict[str, str] = {}
    for option, name in names.items():
        if name in first:
            raise UnifiedError(
                f"{first[name]} {name} and {option} {name}: one field is named twice; each needs its own"
            )
        first[name] = option


def _label_names(text: str) -> tuple[str, ...]:
    """The names of ``--labels``.

    Raises:
        UnifiedError: one is empty, or two labels would have the same name, or a name is the number of another label.
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UnifiedError(f"--labels {text}: a name is empty")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UnifiedError(f"--labels {text}: two labels have the name {twice[0]}, and would be one class")
    unclear = other_meaning(names)
    if unclear is not None:
        name, other = unclear
        raise UnifiedError(
            f"--labels {text}: a label {name} of the rows could be this name, or stand for {other}; leave --labels out "
            "where rows have the names, or choose other names"
        )
    return names


def require_fields_in(path: str, args: argparse.Namespace) -> None:
    """Refuse options of fields where the name of a file says that it holds plain lines.

    Raises:
        UnifiedError: names the first option; or there is no such file, or it is a folder.
    """
    from unified.files.rows import has_fields
    from unified.files.text_files import require_file

    if not has_fields(path):
        require_file(path)
        for option, name in field_options(args).items():
            raise UnifiedError(f"{option} {name}: {path} holds lines without fields, by its name; leave {option} out")


def require_any_rows(option: str, paths: Sequence[str]) -> None:
    """Refuse an option about rows where the name of no file says that it holds any.

    Args:
        option: with its value.

    Raises:
        UnifiedError: names the option and the files.
    """
    from unified.files.rows import has_fields

    if not any(map(has_fields, paths)):
        raise UnifiedError(f"{option} is for rows, and no file has any, by its name: {first_few(paths)}")


def field_options(args: argparse.Namespace) -> dict[str, str]:
    """The options that were given, by their names on the command line."""
    names = field_names(args)
    given = {option_of(part): name for part, name in names.given.items()}
    return {**given, "--labels": args.labels} if names.labels else given
