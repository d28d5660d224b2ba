"""Whether an answer stands in a passage where a data set says, and why not."""

from __future__ import annotations

NOT_THERE = "the answer is not in the passage"


def misalignment(context: str, text: str, start: int) -> str | None:
    """Why ``text`` does not stand at character ``start`` of ``context``; None where it does."""
    if start >= 0 and context.startswith(text, start):
        return None
    if text in context:
        return "the answer stands elsewhere in the passage"
    if "".join(text.split()) in "".join(context.split()):
        return "the passage has the answer with other white space"
    if text.casefold() in context.casefold():
        return "the passage has the answer in other capitals"
    return NOT_THERE
