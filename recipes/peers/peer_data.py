"""Folders that ``unified finetune`` reads, made of parts of the real data."""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from itertools import islice
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))
from squad_splits import articles_of, drawn, write_splits  # noqa: E402

#: Training examples of SST-2 that one core can do.
SENTENCES = 10_000
#: Five of every seven articles of SQuAD 2.0's development set train: what there is of the training set has hardly a
#: question without an answer.
TRAIN, OF = 5, 7
#: Questions of SQuAD 2.0 that one core can do.
TRAINING_QUESTIONS, SCORED_QUESTIONS = 4000, 1500
#: Questions of SQuAD 1.1 that one core can write in minutes.
ASKED_QUESTIONS = 1000


def first_sentences(folder: Path, real: Path) -> None:
    """SST-2 with the first examples of its training set."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 1 + SENTENCES), ("dev", None)):  # the first line names the columns
        with lzma.open(real / "glue" / "SST-2" / f"{part}.tsv.xz", "rt", encoding="utf-8", newline="") as lines:
            (folder / f"{part}.tsv").write_text("".join(islice(lines, count)), encoding="utf-8", newline="")


def squad1(folder: Path, real: Path) -> None:
    """SQuAD 1.1: the 36 articles of its training set, and its development set."""
    folder.mkdir(parents=True)
    for name, target in (("train-v1.1-36articles", "train-v1.1"), ("dev-v1.1", "dev-v1.1")):
        _write_articles(folder / f"{target}.json", "1.1", _articles(real / "squad" / f"{name}.json.xz"))


def squad1_articles(real: Path) -> tuple[list[dict], list[dict]]:
    """Articles of SQuAD 1.1: all that there is of its training set, and its development set."""
    train, more, dev = (
        articles_of(real / "squad" / f"{name}.json.xz")
        for name in ("train-v1.1-36articles", "train-v1.1-extra-paragraphs", "dev-v1.1")
    )
    return [*train, *more], dev


def some_of_squad1(folder: Path, real: Path) -> None:
    """SQuAD 1.1 with some questions of its development set, drawn at random, few enough to be asked in minutes."""
    train, dev = squad1_articles(real)
    write_splits(folder, "v1.1", train, drawn(dev, ASKED_QUESTIONS))


def squad2(folder: Path, real: Path) -> None:
    """SQuAD 2.0: ten articles of its training set and five in seven of its development set train, the others score."""
    folder.mkdir(parents=True)
    train, dev = (_articles(real / "squad" / f"{name}.json.xz") for name in ("train-v2.0-10articles", "dev-v2.0"))
    training = [*train, *(article for i, article in enumerate(dev) if i % OF < TRAIN)]
    _write_articles(folder / "train-v2.0.json", "v2.0", training)
    _write_articles(folder / "dev-v2.0.json", "v2.0", [article for i, article in enumerate(dev) if i % OF >= TRAIN])


def some_of_squad2(folder: Path, real: Path) -> None:
    """Some questions of :func:`squad2`, drawn at random, few enough for an hour of one core."""
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / "squad"
        squad2(whole, real)
        training, scored = (articles_of(whole / f"{split}-v2.0.json") for split in ("train", "dev"))
    write_splits(folder, "v2.0", drawn(training, TRAINING_QUESTIONS), drawn(scored, SCORED_QUESTIONS))


def _articles(path: Path) -> list[dict]:
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        return json.load(stream)["data"]


def _write_articles(path: Path, version: str, articles: list[dict]) -> None:
    path.write_text(json.dumps({"version": version, "data": articles}, ensure_ascii=False), encoding="utf-8")
