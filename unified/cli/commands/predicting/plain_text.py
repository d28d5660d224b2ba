"""INPUT as a plain text, such as "a charming journey", or a file of such: the items, and an answer in words."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unified.errors import MissingField, UnifiedError
from unified.files.fields import FieldNames, option_of
from unified.files.rows import TEXT, has_fields, is_hub, is_name_of_data, read_rows

if TYPE_CHECKING:
    from unified.tasks.prediction import AnyPredictor


def is_plain_text(source: str) -> bool:
    """Whether INPUT is a text: several words that are no object, no file and no name of one."""
    if len(source.split()) < 2 or source.lstrip().startswith("{") or is_hub(source) or os.path.exists(source):
        return False
    folder = os.path.dirname(source)
    return not is_name_of_data(source) and not (folder and os.path.isdir(folder))


def require_input(source: str, names: FieldNames) -> None:
    """Refuse an INPUT that is neither a text of several words nor anything that can be read.

    Args:
        names: what the task and the options call the fields of an item.

    Raises:
        UnifiedError: says what INPUT may be.
    """
    if source == "-" or source.lstrip().startswith("{") or is_hub(source) or os.path.exists(source):
        return
    part = _text_part(names)
    if part is None or is_name_of_data(source):
        raise UnifiedError(f"{source}: no such file")
    item = json.dumps({names.given.get(part, names.parts[part]): source}, ensure_ascii=False)
    raise UnifiedError(f"{source}: no such file; a text of one word is given as an item, {shlex.quote(item)}")


def _text_part(names: FieldNames) -> str | None:
    """The part of a task's items that a plain text is; None where they have no such part."""
    return next((part for part in ("text", "source") if part in names.parts), None)


def names_in_file(source: str, names: FieldNames) -> FieldNames:
    """The names of fields in a file, of which one of plain text has ``text`` alone: the part that a text is.

    Args:
        names: what the task and the options call the fields of an item.
    """
    part = _text_part(names)
    if part is None or part in names.given or has_fields(source):
        return names
    first = next(read_rows(source), None)
    if first is None or list(first.fields) != [TEXT]:
        return names
    return replace(names, given={**names.given, part: TEXT})


def item_of_text(text: str, second: str | None, predictor: AnyPredictor, names: FieldNames, task: str) -> Any:
    """The item that a text, or a pair of texts, stands for.

    Args:
        names: what the task calls its parts.
        task: its name, for messages.

    Raises:
        UnifiedError: the task reads something else, or options name fields, which a text has not.
    """
    for part, name in names.given.items():
        raise UnifiedError(f"{option_of(part)} {name}: INPUT is a plain text, which has no fields; leave it out")
    first = _text_part(names)
    if first is None:
        raise UnifiedError(f"{task} takes no plain text; give a file, or an item, {{...}}")
    if second is not None and "second" not in names.parts:
        raise UnifiedError(f"--second: {task} reads one text; leave it out")
    fields = {names.parts[first]: text} | ({} if second is None else {names.parts["second"]: second})
    try:
        return predictor.item(fields, 1)
    except MissingField as problem:
        if problem.name == names.parts.get("second"):
            raise UnifiedError(f"{task} reads two texts; give the second, its {problem.name}, by --second") from None
        raise UnifiedError(
            f"{task} reads more than a text, its {problem.name}, too; give a file, or an item, {{...}}"
        ) from None


def in_words(prediction: Mapping[str, Any], text: str) -> str:
    """A prediction for a reader: classes with their probabilities, words with tags, an answer, a text or a number."""
    if "tags" in prediction:
        return "\n".join(f"{word}\t{tag}" for word, tag in zip(text.split(), prediction["tags"], strict=True))
    if "probabilities" in prediction:
        likely = sorted(prediction["probabilities"].items(), key=lambda one: -one[1])
        return "\n".join(f"{label}\t{100 * probability:.1f} %" for label, probability in likely)
    for name in ("answer", "text", "label"):
        if name in prediction:
            return str(prediction[name]) or "(no answer)"
    return json.dumps(prediction, ensure_ascii=False)
