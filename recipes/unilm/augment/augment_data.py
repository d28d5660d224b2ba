"""What the recipe reads, made of a part of SQuAD 2.0: questions to learn from, and others to score by."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Callable, Iterable
from pathlib import Path

from augment_sizes import Size

#: Of every so many articles of the development set one scores; the others train, with the training articles there are.
HELD_OUT = 4
#: Longer passages, and sources of questions, take more than their share of a small budget.
MOST_WORDS, MOST_ANSWER_WORDS = 120, 12


def real_articles(real: Path) -> tuple[list[dict], list[dict]]:
    """Articles that train and those that score, of UNIFIED_DATA's ``squad``."""
    train, dev = (_articles(real / "squad" / f"{name}.json.xz") for name in ("train-v2.0-10articles", "dev-v2.0"))
    dev.sort(key=lambda article: article["title"])
    held_out = dev[HELD_OUT - 1 :: HELD_OUT]
    training = [*train, *(article for article in dev if article not in held_out)]
    return _short(training), _short(held_out)


def write(folder: Path, training: list[dict], held_out: list[dict], size: Size) -> None:
    """Folders as ``unified finetune`` reads them.

    ``few`` and ``many`` are of SQuAD 2.0. Of 1.1 ``answerable`` has all questions with an answer, ``spans`` some of
    them, and ``pairs`` those with a short one. They validate on the same questions of ``held_out``.
    """
    scored, answered = drawn(held_out, size.scored), _kept(training, _answers)
    for name, count in (("few", size.few), ("many", size.many)):
        _write(folder / name, "v2.0", drawn(training, count), scored)
    short = _kept(answered, lambda qa: len(qa["answers"][0]["text"].split()) <= MOST_ANSWER_WORDS)
    for name, articles in (("answerable", answered), ("spans", drawn(answered, size.spans)), ("pairs", short)):
        _write(folder / name, "v1.1", articles, _kept(scored, _answers))


def drawn(articles: Iterable[dict], count: int) -> list[dict]:
    """The articles with ``count`` of their questions, drawn at random; a larger draw holds a smaller one."""
    articles = list(articles)
    ids = [qa["id"] for article in articles for paragraph in article["paragraphs"] for qa in paragraph["qas"]]
    random.Random(1).shuffle(ids)
    chosen = set(ids[:count])
    return _kept(articles, lambda qa: qa["id"] in chosen)


def _answers(qa: dict) -> list:
    return qa["answers"]


def _kept(articles: Iterable[dict], wanted: Callable[[dict], object]) -> list[dict]:
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


def _short(articles: Iterable[dict]) -> list[dict]:
    return [
        article | {"paragraphs": [one for one in article["paragraphs"] if len(one["context"].split()) <= MOST_WORDS]}
        for article in articles
    ]


def _articles(path: Path) -> list[dict]:
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        return json.load(stream)["data"]


def _write(folder: Path, version: str, training: list[dict], scored: list[dict]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, articles in (("train", training), ("dev", scored)):
        text = json.dumps({"version": version, "data": articles}, ensure_ascii=False)
        (folder / f"{name}-{version}.json").write_text(text + "\n", encoding="utf-8")
