"""Contents of an objective's rows, counted in the data themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unified.data.annotations import Annotations
from unified.data.targets import TOKEN
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.tokenization import load_tokenizer, word_starts
from unified.training.row_dataset import RowDataset
from unified.training.stream_dataset import RunningText, StreamDataset

#: Rows that are looked at.
COUNT = 400


@dataclass(frozen=True)
class RowFacts:
    """Shares of the tokens of training rows: how many predictions there are to a token, and how many are padding.

    Predictions from span boundaries and of the next sentence are not counted.
    """

    predictions: float
    padding: float


def row_facts(data: Path, objectives: str, row_length: int, seed: int, streams: int = 0) -> RowFacts:
    """Shares in the first rows of the first epoch, made as fairseq-train makes them.

    Args:
        streams: rows per update where they are parallel streams, for a memory; 0 for packed rows.
    """
    vocabulary, file = Vocabulary.load(data / "dict.txt"), TokenFile(data / "train")
    starts, mixture = word_starts(load_tokenizer(data), vocabulary), parse_objectives(objectives)
    if streams:
        text = RunningText(file, vocabulary.special)
        rows = StreamDataset(text, mixture.objectives[0], starts, row_length, seed)
        rows.split(streams)
    else:
        texts = DocumentTexts(file, vocabulary.special, starts, Annotations(file))
        rows = RowDataset(texts, mixture, row_length, seed)
    order = rows.order()[:COUNT].tolist()
    examples = [example for number in order for example in rows[number]]
    tokens = len(order) * row_length
    predictions = sum(len(example.targets[TOKEN]) for example in examples)
    return RowFacts(predictions / tokens, 1 - sum(len(example.tokens) for example in examples) / tokens)
