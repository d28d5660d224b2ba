"""The questions of all passages as a file of SQuAD 2.0, and how many each stage made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from unified.files.whole import whole_file
from unified.tasks.augmentation.stages import Row


def write_squad(path: Path, rows: Iterable[tuple[Row, ...]]) -> None:
    """Writes an article for each passage that has a question, called like it; the file appears when it is complete.

    Args:
        rows: for each passage its rows of the stages "passages", "kept" and "unanswerable".
    """
    with whole_file(path) as stream:
        stream.write(b'{"version": "v2.0", "data": [')
        before = b"\n"
        for article in filter(None, map(_article, rows)):
            stream.write(before + json.dumps(article, ensure_ascii=False).encode())
            before = b",\n"
        stream.write(b"\n]}\n")


def _article(rows: tuple[Row, ...]) -> Row | None:
    passage, kept, unanswerable = rows
    questions = [
        {
            "id": f"{passage['id']}.{number}",
            "question": one["question"],
            "answers": [{"text": one["text"], "answer_start": one["start"]}],
            "is_impossible": False,
        }
        for number, one in enumerate(kept["kept"])
    ]
    questions += [
        {
            "id": f"{passage['id']}.{one['source']}.{one['way']}",
            "question": one["question"],
            "answers": [],
            "is_impossible": True,
        }
        for one in unanswerable["unanswerable"]
    ]
    if not questions:
        return None
    return {"title": passage["id"], "paragraphs": [{"context": passage["text"], "qas": questions}]}


def counted(rows: Iterable[tuple[Row, ...]]) -> dict[str, int]:
    """Counts what the stages made.

    Args:
        rows: for each passage its rows of the stages "answers", "questions", "kept" and "unanswerable".

    Returns:
        Numbers of ``passages``, candidate ``answers``, ``questions`` to them, ``different questions``, those that were
        ``kept``, and questions without an answer by the way in which they were made, ``swap`` and ``negation``.
    """
    found: Counter[str] = Counter()
    for answers, questions, kept, unanswerable in rows:
        asked = [question for question in questions["questions"] if question]
        found["passages"] += 1
        found["answers"] += len(answers["answers"])
        found["questions"] += len(asked)
        found["different questions"] += len(set(asked))
        found["kept"] += len(kept["kept"])
        found.update(one["way"] for one in unanswerable["unanswerable"])
    names = ("passages", "answers", "questions", "different questions", "kept", "swap", "negation")
    return {name: found[name] for name in names}
