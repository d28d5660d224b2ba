"""Items of multiple choice from the files of data sets."""

from __future__ import annotations

from typing import TypeGuard

from unified.errors import WrongField
from unified.files.json_files import Entries
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.items import require_whole_characters


def add_choice(
    items: list[ChoiceItem],
    entries: Entries,
    location: str,
    identity: str,
    context: str,
    choices: list[str],
    label: str | None,
    question: str = "",
    empty: bool = False,
    subset: str | None = None,
) -> None:
    """Adds an item, or notes the problem with it; ``empty`` allows empty choices."""
    try:
        require_whole_characters({"the context": context, "a choice": choices, "the question": question})
    except WrongField as problem:
        entries.wrong(location, f"{problem.name} {problem.problem}")
        return
    if not context.strip():
        entries.wrong(location, "the context is empty")
    elif len(choices) < 2 or not (empty or all(choice.strip() for choice in choices)):
        entries.wrong(location, "two choices or more are needed, none of them empty")
    elif label is not None and label not in map(str, range(len(choices))):
        entries.wrong(location, f"the label {label!r} is the number of no choice, 0 to {len(choices) - 1}")
    else:
        gold = None if label is None else int(label)
        items.append(ChoiceItem(identity, context.strip(), tuple(choices), question.strip() or None, gold, subset))


def are_strings(value: object) -> TypeGuard[list[str]]:
    """Whether a value of JSON is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
