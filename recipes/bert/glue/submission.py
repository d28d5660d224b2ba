"""The files that GLUE's server takes, from predictions for the test sets.

    python recipes/bert/glue/submission.py RUNS OUTPUT

RUNS holds a folder for each task (cola, sst2, …), as `unified finetune` makes it. Says which tasks are still missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from unified.errors import UnifiedError
from unified.tasks.datasets.glue import SUBMISSIONS, write_submission


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="folder with a fine-tuning of each task in a folder of its name")
    parser.add_argument("output", type=Path, help="folder for the files that the GLUE server takes")
    options = parser.parse_args(arguments)
    missing = []
    for name, submission in SUBMISSIONS.items():
        task = submission.task.lower().replace("-", "")
        predictions = options.runs / task / f"predictions.{submission.split}.jsonl"
        if predictions.is_file():
            print(write_submission(name, predictions, options.output))
        else:
            missing.append(f"{name} ({predictions})")
    if missing:
        print(f"missing: {', '.join(missing)}")


if __name__ == "__main__":
    try:
        main()
    except (UnifiedError, OSError) as error:
        sys.exit(f"submission: error: {error}")
