"""Writes small splits of SQuAD, for recipes that need only some of its questions.

    python recipes/common/squad_splits.py OUTPUT --train FILE... --dev FILE --questions 500

writes OUTPUT/train-v1.1.json, the articles of all train files, and OUTPUT/dev-v1.1.json with some of dev's questions.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Callable, Iterable
from pathlib import Path


def articles_of(path: Path) -> list[dict]:
    """Articles of a file of SQuAD, plain or .xz."""
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        return json.load(stream)["data"]


def drawn(articles: Iterable[dict], count: int) -> list[dict]:
    """The articles with ``count`` of their questions, drawn at random; a larger draw holds a smaller one."""
    articles = list(articles)
    ids = [qa["id"] for article in articles for paragraph in article["paragraphs"] for qa in paragraph["qas"]]
    random.Random(1).shuffle(ids)
    chosen = set(ids[:count])
    return kept(articles, lambda qa: qa["id"] in chosen)


def kept(articles: Iterable[dict], wanted: Callable[[dict], object]) -> list[dict]:
    """Articles with the wanted questions; articles without any are left out."""
    found = []
    for article in articles:
        paragraphs = [
            {"context": paragraph["context"], "qas": questions}
            for paragraph in article["paragraphs"]
            if (questions := [qa for qa in paragraph["qas"] if wanted(qa)])
        ]
        if paragraphs:
            found.append({"title": article["title"], "paragraphs": paragraphs})
    return found


def write_splits(folder: Path, version: str, training: list[dict], scored: list[dict]) -> None:
    """Writes ``train-VERSION.json`` and ``dev-VERSION.json`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, articles in (("train", training), ("dev", scored)):
        text = json.dumps({"version": version, "data": articles}, ensure_ascii=False)
        (folder / f"{name}-{version}.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder to write both files to")
    parser.add_argument("--train", type=Path, nargs="+", required=True, help="files of SQuAD 1.1 to train on")
    parser.add_argument("--dev", type=Path, required=True, help="file of SQuAD 1.1 to score by")
    parser.add_argument("--questions", type=int, required=True, help="number of questions that are drawn from --dev")
    options = parser.parse_args()
    training = [article for path in options.train for article in articles_of(path)]
    write_splits(options.output, "v1.1", training, drawn(articles_of(options.dev), options.questions))


if __name__ == "__main__":
    main()
