"""The first sentence of each source as its summary, which a model has to beat.

    python recipes/peers/lead.py TASK --data ITEMS --output FOLDER

ITEMS is the folder of items of ``unified finetune``. Of a question's source it is the first sentence of the window.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from writing import report

from unified.corpus.cleaning.sentences import split_sentences
from unified.errors import UnifiedError
from unified.tasks.catalogue import task_named
from unified.tasks.writing import WritingItem
from unified.tokenization import parts_of


def lead(item: WritingItem) -> str:
    """The first sentence."""
    return split_sentences(parts_of(item.source)[0])[0]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", metavar="TASK", help="task as `unified finetune` names it")
    parser.add_argument("--data", type=Path, required=True, help="folder of items that `unified finetune` has made")
    parser.add_argument("--output", type=Path, required=True, help="folder for texts and results")
    arguments = parser.parse_args(words)
    arguments.output.mkdir(parents=True, exist_ok=True)
    report(
        arguments.output,
        task_named(arguments.task),
        arguments.data,
        lambda items: [lead(item) for item in items],
        "first sentence",
        0,
        bert_words=False,
        model={"name": "first sentence", "sha256": None},
        settings={},
    )


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"peers: error: {error}")
