"""A sentence of each source as its text, which a model that writes has to beat.

    python recipes/peers/lead.py TASK --data ITEMS --output FOLDER

ITEMS is the folder of items of ``unified finetune``. Of a source of one part it is the first sentence, the usual
baseline of summaries. Of a passage with an answer behind it, it is the sentence of the passage that holds the answer.
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
    """The first sentence that holds all further parts of the source, or else the first sentence of all."""
    text, *others = parts_of(item.source)
    sentences = split_sentences(text)
    return next((one for one in sentences if all(other in one for other in others)), sentences[0])


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
        "copied sentence",
        0,
        bert_words=False,
        model={"name": "copied sentence", "sha256": None},
        settings={},
    )


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"peers: error: {error}")
