"""Data of the recipe from some articles of SQuAD 2.0: questions to learn from, and others to score by."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from augment_sizes import Size
from squad_splits import articles_of, drawn, kept, write_splits

#: One of four articles of the development set scores; the others train, with the training articles there are.
HELD_OUT = 4
#: Longer passages, and sources of questions, take more than their share of a small budget.
MOST_WORDS, MOST_ANSWER_WORDS = 120, 12


def real_articles(real: Path) -> tuple[list[dict], list[dict]]:
    """Articles that train and those that score, of UNIFIED_DATA's ``squad``."""
    train, dev = (articles_of(real / "squad" / f"{name}.json.xz") for name in ("train-v2.0-10articles", "dev-v2.0"))
    dev.sort(key=lambda article: article["title"])
    held_out = dev[HELD_OUT - 1 :: HELD_OUT]
    training = [*train, *(article for article in dev if article not in held_out)]
    return _short(training), _short(held_out)


def write(folder: Path, training: list[dict], held_out: list[dict], size: Size) -> None:
    """Folders as ``unified finetune`` reads them.

    ``few`` and ``many`` are of SQuAD 2.0. Of 1.1 ``answerable`` has all questions with an answer, ``spans`` some of
    them, and ``pairs`` those with a short one. They validate on the same questions of ``held_out``.
    """
    scored, answered = drawn(held_out, size.scored), kept(training, _answers)
    for name, count in (("few", size.few), ("many", size.many)):
        write_splits(folder / name, "v2.0", drawn(training, count), scored)
    short = kept(answered, lambda qa: len(qa["answers"][0]["text"].split()) <= MOST_ANSWER_WORDS)
    for name, articles in (("answerable", answered), ("spans", drawn(answered, size.spans)), ("pairs", short)):
        write_splits(folder / name, "v1.1", articles, kept(scored, _answers))


def _answers(qa: dict) -> list:
    return qa["answers"]


def _short(articles: Iterable[dict]) -> list[dict]:
    return [
        article | {"paragraphs": [one for one in article["paragraphs"] if len(one["context"].split()) <= MOST_WORDS]}
        for article in articles
    ]
