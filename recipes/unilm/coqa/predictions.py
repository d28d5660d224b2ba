"""Answers in the output of generation -> CoQA's JSON of predictions.

python recipes/unilm/coqa/predictions.py OUTPUT/text/test.jsonl OUTPUT/generated/generate-test.txt predictions.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common"))
from sources import read_rows  # noqa: E402

from unified.errors import UnifiedError  # noqa: E402
from unified.metrics.outputs import read_generate_output  # noqa: E402


def main(turns: str, generated: str, target: str) -> None:
    rows = list(read_rows(Path(turns)))
    answers, _ = read_generate_output([generated], need_references=False)
    if len(rows) != len(answers):
        raise UnifiedError(f"{generated}: {len(answers)} answers, but {len(rows)} turns in {turns}")
    listed = [
        {"id": row["id"], "turn_id": row["turn_id"], "answer": answer}
        for row, answer in zip(rows, answers, strict=True)
    ]
    Path(target).write_text(json.dumps(listed, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (UnifiedError, OSError, KeyError) as error:
        sys.exit(f"predictions: error: {error}")
