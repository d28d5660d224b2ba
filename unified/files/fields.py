"""Users' names of fields, where the items of a task have other names for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from unified.errors import EmptyField, MissingField, UnifiedError, WrongField
from unified.files.ids import name_text
from unified.files.json_files import Fields

_TRUTH = {"true": 1, "false": 0}
#: Fields of items and predictions whose empty text says something: the passage has no answer, there is no second text.
_MAY_BE_EMPTY = ("answer", "answers", "second")


@dataclass(frozen=True)
class FieldNames:
    """Names of fields in rows and in items, for the parts of an item that ``--text-field`` and its like name.

    Attributes:
        parts: names in items by part: {"text": "words", "label": "tags"} for words with tags.
        given: names in rows by part; a part that is not there is called as in items.
        labels: names of labels that rows have as numbers from 0, or as false and true.
        skip_empty: whether rows in which a part is empty are left out instead of refused, as ``--skip-empty`` says;
            they are refused by None, where there is no such option.
        has_options: whether options name the fields; none name those of predictions.
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    skip_empty: bool | None = None
    has_options: bool = True

    def check(self, reader: str, classes: bool) -> None:
        """Refuse names of parts that items do not have.

        Args:
            reader: whose items they are, for the message.
            classes: whether labels are classes, which may have names.

        Raises:
            UnifiedError: names the option.
        """
        for part in self.given:
            if part not in self.parts:
                known = ", ".join(map(option_of, self.parts)) or "no such option"
                raise UnifiedError(f"{option_of(part)} {self.given[part]}: {reader} takes {known}")
        if self.labels and not classes:
            raise UnifiedError(f"--labels {','.join(self.labels)}: labels of {reader} are no classes; leave it out")

    def renamed(self, fields: Fields) -> Fields:
        """The fields of a row with the names of items; other fields stay.

        Raises:
            UnifiedError: a field is missing or empty, or a label has no name.
        """
        self._require_filled(fields)
        found = dict(fields)
        for part, name in self.given.items():
            if name not in fields:
                raise MissingField(name, list(fields))
            found[self.parts[part]] = fields[name]
        label = self.parts.get("label")
        if self.labels and label in found:
            found[label] = self._named(found[label])
        return found

    @contextmanager
    def explaining(self, fields: Fields) -> Iterator[None]:
        """Has errors name fields as the row does, and adds the option that names a missing one, where there is one.

        Args:
            fields: of the row, as the user has them.
        """
        try:
            yield
        except WrongField as problem:
            own = {self.parts[part]: name for part, name in self.given.items()}
            raise WrongField(own.get(problem.name, problem.name), problem.problem) from None
        except MissingField as problem:
            part = next((part for part, name in self.parts.items() if name == problem.name), None)
            option = None if part is None or part in self.given or not self.has_options else option_of(part)
            raise MissingField(problem.name, list(fields), option=option) from None

    def _require_filled(self, fields: Fields) -> None:
        """Refuse an empty text or list, or null, where a part of an item should be, by the user's name for it."""
        for part, own in self.parts.items():
            name = self.given.get(part, own)
            if own in _MAY_BE_EMPTY or name not in fields:
                continue
            value = fields[name]
            is_null = value is None and part != "second"  # the second of two texts may be lacking
            is_empty_list = value == [] and part != "label"  # a file of tags to score may have a sentence without words
            if is_null or is_empty_list or (isinstance(value, str) and not value.strip()):
                raise EmptyField(name)

    def _named(self, label: Any) -> Any:
        """The name of a label, or the names of a list of labels, or of several in one text."""
        if isinstance(label, list):
            return [self._named(one) for one in label]
        name = name_text(label)
        if name in self.labels:
            return name
        if isinstance(label, str) and len(words := label.split()) > 1 and self._is_label(words[0]):
            return [self._named(one) for one in words]
        number = _TRUTH.get(str(label).lower(), label)
        try:
            return self.labels[range(len(self.labels)).index(int(number) if isinstance(number, str) else number)]
        except ValueError:
            last, names = len(self.labels) - 1, ", ".join(self.labels)
            raise UnifiedError(f"the label {label!r} is none of 0 to {last}, which --labels calls {names}") from None

    def _is_label(self, word: str) -> bool:
        """Whether a word is a label by its name or number, so that a text that it begins is a list of labels."""
        return word in self.labels or word.lower() in _TRUTH or word in map(str, range(len(self.labels)))


def other_meaning(names: Sequence[str]) -> tuple[str, str] | None:
    """The first of these names of labels that is the number, or the truth value, of another one, and that one.

    A label "1" of the names 1, 2 could be the first by its name, or the second, since labels are numbered from 0.
    """
    numbers = _TRUTH | {str(number): number for number in range(len(names))}
    for position, name in enumerate(names):
        number = numbers.get(name.lower(), position)
        if number != position and number < len(names):
            return name, names[number]
    return None


def option_of(part: str) -> str:
    """The option that names the field of a part of an item."""
    return f"--{part}-field"
