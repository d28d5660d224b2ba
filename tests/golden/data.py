"""Small folders that every objective and every head can be trained on; they are the same on every machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from tests.support.annotators import PatternSource
from tests.support.corpora import jsonl, random_documents, raw_text, run, write
from tests.support.task_folders import WORDS, tokenizer, vocabulary
from unified.corpus.prepare import Settings, prepare
from unified.corpus.readers import DocumentCorpus
from unified.corpus.tokenizer_source import TokenizerSource

TRAIN, VALID = 240, 24


def documents(folder: Path) -> Path:
    """300 documents of one to four paragraphs in 300 pieces, annotated, with all sentinels."""
    text = write(folder / "text.txt", raw_text(random_documents(300)))
    settings = Settings(
        DocumentCorpus((text,)),
        valid_share=0.1,
        tokenizer=TokenizerSource("bpe", vocabulary_size=300),
        annotation=PatternSource(("noun_phrases", "parts_of_speech"), "patterns"),
    )
    prepare(settings, folder / "documents")
    return folder / "documents"


def pairs(folder: Path) -> Path:
    """Sources of one to three sentences and, as targets, their words in reverse order."""
    rng = np.random.default_rng(1)
    sources = [" . ".join(_words(rng, 2, 6) for _ in range(rng.integers(1, 4))) for _ in range(TRAIN + VALID)]
    rows = [{"source": source, "target": " ".join(reversed(source.split()))} for source in sources]
    train, valid = jsonl(folder / "train.jsonl", rows[:TRAIN]), jsonl(folder / "valid.jsonl", rows[TRAIN:])
    status = run(
        train, "--valid", valid, "--source-field", "source", "--target-field", "target",
        "--tokenizer", "bpe", "--vocabulary-size", 36, "--output", folder / "pairs",
    )  # fmt: skip
    if status:
        raise RuntimeError("unified prepare failed")
    return folder / "pairs"


def task(folder: Path, kind: str) -> Path:
    """The data folder of one kind of head; what is to be learnt is a simple function of the words."""
    path = folder / kind
    path.mkdir()
    tokenizer(*MARKS).save(path)
    vocabulary(*MARKS).save(path / "dict.txt")
    rng = np.random.default_rng(2)
    for split, count in (("train", TRAIN), ("valid", VALID)):
        items = _ITEMS[kind](rng)
        lines = (json.dumps({"id": str(number), **next(items)}) + "\n" for number in range(count))
        (path / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    return path


#: Symbols that the design "markers" of relations puts around entities.
MARKS = ("[unused1]", "[unused2]", "[unused3]", "[unused4]")


def _words(rng: np.random.Generator, least: int, most: int) -> str:
    return " ".join(rng.choice(WORDS, rng.integers(least, most + 1)))


def _number(word: str) -> int:
    return int(word[1:])


def _classification(rng: np.random.Generator) -> Iterator[dict]:
    while True:
        text, second = _words(rng, 2, 9), _words(rng, 2, 9)
        yield {"text": text, "second": second, "label": "yes" if _number(text.split()[0]) < 15 else "no"}


def _regression(rng: np.random.Generator) -> Iterator[dict]:
    while True:
        text = _words(rng, 2, 9)
        yield {"text": text, "label": float(np.mean([_number(word) for word in text.split()])) / 30}


def _tagging(rng: np.random.Generator) -> Iterator[dict]:
    while True:
        words = _words(rng, 2, 40).split()
        yield {"words": words, "tags": ["abc"[_number(word) % 3] for word in words]}


def _choice(rng: np.random.Generator) -> Iterator[dict]:
    while True:
        choices = [_words(rng, 1, 5) for _ in range(3)]
        yield {
            "context": _words(rng, 2, 9),
            "choices": choices,
            "label": int(np.argmax([_number(c.split()[0]) for c in choices])),
        }


def _relation(rng: np.random.Generator) -> Iterator[dict]:
    while True:
        words = _words(rng, 6, 12).split()
        first, second = sorted(rng.choice(len(words), 2, replace=False).tolist())
        larger = _number(words[first]) > _number(words[second])
        entities = [{"start": place, "stop": place + 1, "type": "THING"} for place in (first, second)]
        yield {"words": words, "entities": entities, "label": "larger" if larger else "no_relation"}


def _span(rng: np.random.Generator) -> Iterator[dict]:
    while True:
        words = _words(rng, 20, 50).split()
        place = int(rng.integers(1, len(words)))
        start = len(" ".join(words[:place])) + 1
        answer = {"text": words[place], "start": start}
        impossible = {"answers": [], "impossible": True}
        found = {"answers": [answer]} if rng.random() < 0.8 else impossible
        yield {"question": words[place - 1], "context": " ".join(words), **found}


def _coreference(rng: np.random.Generator) -> Iterator[dict]:
    while True:
        sentences = [_words(rng, 5, 9).split() for _ in range(rng.integers(3, 7))]
        places: dict[str, list[list[int]]] = {}
        for place, word in enumerate(word for sentence in sentences for word in sentence):
            places.setdefault(word, []).append([place, place])
        yield {"sentences": sentences, "chains": [chain for chain in places.values() if len(chain) > 1]}


_ITEMS = {
    "classification": _classification,
    "regression": _regression,
    "tagging": _tagging,
    "choice": _choice,
    "relation": _relation,
    "span": _span,
    "coreference": _coreference,
}

#: Kind of data -> what makes its folder within a folder.
FOLDERS = {"documents": documents, "pairs": pairs, **{kind: partial(task, kind=kind) for kind in _ITEMS}}
