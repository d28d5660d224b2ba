"""A conversation about a story in the JSON of CoQA, and one of Abg-CoQA."""

from __future__ import annotations

import json
from pathlib import Path

STORY = "Anna has a  red boat. She sails to Borneo."


def answer(turn: int, text: str, start: int = -1, end: int = -1, **fields) -> dict:
    span = STORY[start:end] if start >= 0 else "unknown"
    return {"turn_id": turn, "input_text": text, "span_start": start, "span_end": end, "span_text": span, **fields}


OFFICIAL = {
    "version": "1.0",
    "data": [
        {
            "source": "mctest",
            "id": "s1",
            "filename": "x.txt",
            "story": STORY,
            "questions": [{"input_text": f"q{i}?", "turn_id": i} for i in (1, 2, 3)],
            "answers": [answer(1, "a boat", 11, 20), answer(2, "to Borneo", 32, 41), answer(3, "unknown")],
            "additional_answers": {"0": [answer(1, "red", 12, 15), answer(2, "Borneo"), answer(3, "no")]},
        }
    ],
}
ABG = {
    "version": "1.0",
    "data": [
        {
            "id": "s1|3|2",
            "story": STORY,
            "target_turn": {"turn_id": 3, "question": "where?", "answer": "Borneo", "rationale": "Borneo",
                            "span_start": 35, "span_end": 41},
            "history_turns": [{"turn_id": i, "question": f"q{i}?", "answer": f"a{i}", "rationale": ""} for i in (1, 2)],
            "ambiguity": "ambiguous",
            "clarification_turn": {"question": "which?", "answers": []},
            "source": "race",
        }
    ],
}  # fmt: skip


def written(folder: Path, content: object) -> Path:
    path = folder / "coqa.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
