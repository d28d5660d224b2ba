"""Small files in the form of SQuAD 2.0, made of the debug text: the same on every machine.

    python recipes/bert/squad/debug_data.py FOLDER

A question asks for a thing by its name ("Which boat?"); the answer is the thing with its adjective ("old boat"). A
quarter of the questions ask for things that the passage does not mention.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common"))
from debug_text import SUBJECTS  # noqa: E402

#: Passages of each file.
COUNTS = {"train": 60, "dev": 12}
MENTIONED, ASKED = 6, 3


def paragraph(rng: random.Random, name: str) -> dict:
    """A passage with three answerable questions and one without an answer."""
    adjectives, nouns, verbs = (words.split() for words in SUBJECTS[rng.choice(sorted(SUBJECTS))])
    rng.shuffle(nouns)
    sentences = [
        f"The {rng.choice(adjectives)} {first} {rng.choice(verbs)} the {rng.choice(adjectives)} {second}."
        for first, second in zip(nouns[:MENTIONED:2], nouns[1:MENTIONED:2], strict=True)
    ]
    context = " ".join(sentences)
    questions = []
    for i, noun in enumerate([*rng.sample(nouns[:MENTIONED], ASKED), nouns[MENTIONED]]):
        place = re.search(rf" {noun}\b", context)
        answers = []
        if place:
            begin = context.rindex(" ", 0, place.start()) + 1
            answers = [{"text": context[begin : place.end()], "answer_start": begin}]
        questions.append(
            {"id": f"{name}-{i}", "question": f"Which {noun}?", "answers": answers, "is_impossible": not answers}
        )
    return {"context": context, "qas": questions}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in COUNTS.items():
        rng = random.Random(split)
        article = {"title": split, "paragraphs": [paragraph(rng, f"{split}{i}") for i in range(count)]}
        text = json.dumps({"version": "v2.0", "data": [article]}, indent=1) + "\n"
        (folder / f"{split}-v2.0.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
