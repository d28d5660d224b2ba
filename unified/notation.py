"""The notation of lists of objectives, heads and tasks: ``name=type(setting=value, …):weight, …``.

``type`` is what is learnt, such as ``random_spans``. Its settings stand in parentheses where they differ from the
defaults; values are Python literals. The weight is 1 where none is given. ``name`` is what the entry is called in logs
and folders, so that one type can be listed twice; an entry without a name is called like its type.
"""

from __future__ import annotations

import ast
import importlib
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, TypeVar

from unified.errors import UnifiedError, nearest

ClassT = TypeVar("ClassT")

#: Makes the refusal of an entry from what is wrong with it.
Refusal = Callable[[str], UnifiedError]


#: The notation as messages show it.
SHAPE = "[name=]type[(setting=value, …)][:weight]"
#: Name of a class outside the library, ``package.module:Class``.
_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
#: Most entries of a list.
_MOST = 1000
_NAME = re.compile(r"\w+", re.ASCII)
_HEAD = re.compile(r"(?:(\w+)\s*=\s*)?([^\s=():,]+(?::[A-Za-z_]\w*)?)", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """One entry of a list.

    Attributes:
        what: what it is, for messages: "objective", "head" or "task".
        text: the entry as it was written.
        name: what it is called; None where it is called like its type.
        type: as it was written, such as ``random_spans`` or ``package.module:Class``.
        inside: what stands between the parentheses; empty where there are none.
        weight: 1 where none was written.
    """

    what: str
    text: str
    name: str | None
    type: str
    inside: str
    weight: float

    @property
    def settings(self) -> dict[str, Any]:
        """Values by setting.

        Raises:
            UnifiedError: what stands between the parentheses is something else.
        """
        return read_settings(self.inside, self.refusal)

    @property
    def type_with_settings(self) -> str:
        """The entry without its name and weight."""
        return f"{self.type}({self.inside})" if self.inside else self.type

    def refusal(self, problem: str) -> UnifiedError:
        """The error that names this entry and says what is wrong with it."""
        return UnifiedError(f"{self.what} {self.text!r}: {problem}")


def parse_entries(
    text: str, what: str, known: Collection[str] = (), classes: bool = False, zero: bool = False
) -> list[Entry]:
    """Read a list in the notation of this module.

    Args:
        what: what an entry is, for messages: "objective", "head" or "task".
        known: types that are known by name.
        classes: whether a type may be ``package.module:Class``; what follows the colon of a known type is a weight.
        zero: whether a weight may be 0.

    Raises:
        UnifiedError: names the entry and what is wrong with it.
    """
    return [_entry(entry, what, known, classes, zero) for entry in split_entries(text, f"{what}s")]


def is_name(name: object) -> bool:
    """Whether an entry can be called so: letters of ASCII, digits and underscores."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def require_distinct(what: str, names: Sequence[str], types: Sequence[str] | None = None) -> None:
    """Refuse two entries of one name.

    Args:
        types: what stands behind the name of each entry, as advice writes it; None: the names.

    Raises:
        UnifiedError: says which name.
    """
    for name, count in Counter(names).items():
        if count > 1:
            last = len(names) - 1 - [*reversed(names)].index(name)
            example = name if types is None else types[last]
            raise UnifiedError(f"two {what}s are called {name}; give each a name of its own, as in other={example}")


def _entry(text: str, what: str, known: Collection[str], classes: bool, zero: bool) -> Entry:
    def refusal(problem: str) -> UnifiedError:
        return UnifiedError(f"{what} {text!r}: {problem}")

    head, bracket, rest = text.partition("(")
    inside = ""
    if bracket:
        inside, _, tail = rest.rpartition(")")
        tail = tail.strip()
        if tail and not tail.startswith(":"):
            raise refusal(f"{tail!r} after the settings; expected {SHAPE}")
        weight = tail[1:] if tail else "1"
    else:
        head, *rest_of_entry = text.split(":")
        class_name = head.rpartition("=")[2].strip()
        # What follows the first colon is a class only where no type is known by the name and it can be one.
        if classes and class_name not in known and rest_of_entry and rest_of_entry[0].strip().isidentifier():
            head = f"{head}:{rest_of_entry.pop(0)}"
        weight = ":".join(rest_of_entry) if rest_of_entry else "1"
    match = _HEAD.fullmatch(head.strip())
    if not match:
        raise refusal(f"expected {SHAPE}")
    return Entry(what, text, match[1], match[2], inside, _weight(weight.strip(), zero, refusal))


def _weight(text: str, zero: bool, refusal: Refusal) -> float:
    try:
        weight = float(text)
    except ValueError:
        raise refusal(f"the weight after the colon must be a number, got {text!r}") from None
    if not 0 <= weight < math.inf or (weight == 0 and not zero):
        raise refusal(f"the weight must be a finite number {'of at least' if zero else 'above'} 0, got {text}")
    return weight


def split_entries(text: str, what: str) -> list[str]:
    """Cut at the commas that stand outside parentheses, brackets and quotation marks.

    Raises:
        UnifiedError: brackets or quotation marks do not pair, an entry is empty, or there are more than 1,000; begins
            with ``what``.
    """
    entries, depth, quote, escaped, begin = [], 0, "", False, 0
    for i, character in enumerate(text):
        if quote:
            quote = "" if character == quote and not escaped else quote
            escaped = character == "\\" and not escaped
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif character == "," and depth == 0:
            entries.append(text[begin:i].strip())
            begin = i + 1
    if depth or quote:
        raise UnifiedError(f"{what} {text!r}: a bracket or quotation mark is not closed or not opened")
    entries.append(text[begin:].strip())
    if not any(entries):
        return []
    if not all(entries):
        raise UnifiedError(f"{what} {text!r}: nothing stands on one side of a comma")
    if len(entries) > _MOST:
        raise UnifiedError(f"{what}: {len(entries):,} are listed; at most {_MOST:,} may be")
    return entries


def read_settings(text: str, refusal: Refusal) -> dict[str, Any]:
    """``setting=value, …``, values Python literals.

    Raises:
        UnifiedError: it is something else, or a setting is there twice.
    """
    expected = "settings must be name=value, separated by commas, values Python literals"
    try:
        call = ast.parse(f"_({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two where signs nest too deeply
        raise refusal(expected) from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise refusal(expected)
    settings: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise refusal(expected)
        if keyword.arg in settings:
            raise refusal(f"{keyword.arg} is set twice")
        try:
            settings[keyword.arg] = plain(ast.literal_eval(keyword.value))
        except (ValueError, TypeError, RecursionError, MemoryError):  # a TypeError of a list that is a key
            raise refusal(f"the value of {keyword.arg} is not a Python literal") from None
    return settings


def plain(value: object) -> object:
    """A setting as frozen dataclasses have it: lists are tuples."""
    return tuple(value) if isinstance(value, list) else value


def check_settings(
    own_class: type[Any], name: str, settings: Iterable[str], refusal: Refusal, from_data: Iterable[str] = ()
) -> None:
    """Refuse a class that is no dataclass, settings that are none of its fields, and fields without a value.

    Args:
        from_data: fields that need no value, because data give one where no setting does.

    Raises:
        UnifiedError: names the class or the setting.
    """
    if not is_dataclass(own_class):
        raise refusal(
            f"{own_class.__name__} is not a dataclass; its settings are fields: write @dataclass(frozen=True)"
        )
    settings = list(settings)
    given = {*settings, *from_data}
    known = {field.name: field for field in fields(own_class) if field.init}
    for setting in settings:
        if setting not in known:
            listed = f"its settings are {', '.join(known)}" if known else "it has none"
            raise refusal(f"no setting {setting!r}{nearest(setting, known)}; {listed}")
    for field in known.values():
        if field.name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise refusal(f"the setting {field.name} has no default; write {name}({field.name}=…)")


def is_import_path(text: str) -> bool:
    """Whether ``text`` has the form ``package.module:Name``."""
    return _IMPORT_PATH.fullmatch(text) is not None


def imported(
    path: str, what: str, known: Collection[str], refusal: Refusal, form: str = "package.module:Class"
) -> object:
    """Imports a module and returns what it has under a name.

    Only what a user wrote may come here, nothing that was read from a checkpoint.

    Args:
        path: ``package.module:Name``.
        what: what the user names, for messages: "objective", "head", "task".
        known: names that need no import, for messages.
        form: how the message shows an import path.

    Raises:
        UnifiedError: ``path`` is no import path, the module cannot be imported, or has nothing of that name.
    """
    if not is_import_path(path):
        told = nearest(path, known) or f"; known are {', '.join(known)}, and any {form}"
        raise refusal(f"no such {what}{told}")
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        hint = nearest(module_name, known)
        if error.name == module_name.partition(".")[0]:
            hint += "; PYTHONPATH=. in front of the command finds modules of the current folder"
        raise refusal(f"module {module_name} cannot be imported ({error}){hint}") from None
    if name not in vars(module):
        public = [one for one in vars(module) if not one.startswith("_")]
        raise refusal(f"module {module_name} has no {name!r}{nearest(name, public)}")
    return vars(module)[name]


def named_class(
    name: str,
    what: str,
    known: Mapping[str, type[ClassT]],
    base: type[Any],
    refusal: Refusal,
    also_known: Sequence[str] = (),
    if_trusted: str | None = None,
) -> type[ClassT]:
    """The class that a name stands for: one of the library's, or one that is imported.

    Args:
        name: a key of ``known``, or ``package.module:Class``.
        what: what the class is, for messages: "objective", "head", "attention backend".
        known: the library's classes by name.
        base: the class that an imported one must derive from.
        also_known: further names for messages, which the caller serves itself.
        if_trusted: None where a user wrote the name. Where it comes from a checkpoint nothing is imported, and this is
            what a user who trusts the checkpoint can write.

    Raises:
        UnifiedError: there is no such class, or it is not of ``base``.
    """
    if name in known:
        return known[name]
    if if_trusted is not None and is_import_path(name):
        raise refusal(
            "the checkpoint names a class of another library, and no checkpoint chooses what is imported; where you "
            f"trust it, name it yourself: {if_trusted}"
        )
    own = imported(name, what, (*also_known, *known), refusal)
    if not isinstance(own, type) or not issubclass(own, base):
        raise refusal(f"{name.rpartition(':')[2]} is not a subclass of {base.__module__}.{base.__qualname__}")
    return own
