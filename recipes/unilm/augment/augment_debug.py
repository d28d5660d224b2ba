"""Data of the debug size, without a download: passages made by a grammar, questions about them, and a tiny model."""

from __future__ import annotations

import json
import random
from pathlib import Path

import torch
from debug_text import NAMES, PLACES

from unified.checkpoints.trained import Trained, write
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization.wordpiece import SPECIAL_ENTRIES, train_wordpiece

#: Passages of the articles that train and those that score, and of the corpus.
TRAIN, SCORE, CORPUS = 60, 20, 12
_MENTIONED = 3
#: Sentence of a passage about a person, and questions for place and year; {} are name, place and year.
_SAYS = "{} moved to {} in {}."
_ASKS = ("Where did {} move?", "When did {} move?")


def articles(name: str, passages: int) -> list[dict]:
    """Ten articles of passages with two questions on each of three people, and one on somebody else."""
    rng = random.Random(name)
    paragraphs = [_paragraph(rng, f"{name}{i}") for i in range(passages)]
    return [{"title": f"{name} {i}", "paragraphs": paragraphs[i::10]} for i in range(10)]


def write_corpus(path: Path) -> None:
    rng = random.Random("corpus")
    rows = (json.dumps({"text": _paragraph(rng, "")["context"]}) + "\n" for _ in range(CORPUS))
    path.write_text("".join(rows), encoding="utf-8")


def make_model(folder: Path, shape: dict[str, int]) -> None:
    """A checkpoint as ``unified convert`` writes it, of random weights."""
    folder.mkdir(parents=True)
    lines = [
        text
        for article in articles("train", TRAIN)
        for paragraph in article["paragraphs"]
        for text in (paragraph["context"], *(qa["question"] for qa in paragraph["qas"]))
    ]
    tokenizer = train_wordpiece([*lines, "[UNK]"], lowercase=True)
    tokenizer.save(folder)
    vocabulary = Vocabulary([entry for entry in tokenizer.entries if entry not in SPECIAL_ENTRIES])
    torch.manual_seed(1)
    config = TransformerConfig(vocabulary_size=len(vocabulary), initializer_range=0.1, **shape)
    write(Trained(config, "nothing", UnifiedModel.for_language(config).state_dict(), vocabulary), folder)


def _paragraph(rng: random.Random, name: str) -> dict:
    people, places = rng.sample(NAMES, _MENTIONED + 1), rng.sample(PLACES, _MENTIONED)
    facts = [(person, place, str(rng.randrange(1800, 1990))) for person, place in zip(people, places, strict=False)]
    context = " ".join(_SAYS.format(*fact) for fact in facts)
    questions = []
    for person, place, year in facts:
        for ask, answer in zip(_ASKS, (place, year), strict=True):
            start = context.index(answer, context.index(f"{person} moved"))
            questions.append((ask.format(person), [{"text": answer, "answer_start": start}]))
    questions.append((_ASKS[0].format(people[-1]), []))
    return {
        "context": context,
        "qas": [
            {"id": f"{name}.{i}", "question": question, "answers": answers, "is_impossible": not answers}
            for i, (question, answers) in enumerate(questions)
        ],
    }
