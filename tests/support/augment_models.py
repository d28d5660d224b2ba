"""Tiny models of random weights in files, for the three roles of augmentation."""

from __future__ import annotations

from pathlib import Path

import torch

from unified.checkpoints import load_checkpoint
from unified.checkpoints.files import save
from unified.checkpoints.trained import Trained, write
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.heads.span import SpanAnswers
from unified.tokenization.wordpiece import SPECIAL_ENTRIES, WordPieceTokenizer

NAMES = ["Ada Berg", "U.S. Steel", *"Bruno Clara Dario Elsa Felix Greta Hugo Irma Jonas Karin Leo Marta".split()]
PLACES = ["Lisbon", "New York", "Oslo", "Naples", "Vienna", "Bergen"]
WORDS = "who did was is had could has were not moved in born it said ? . , ; he".split()


def tokenizer() -> WordPieceTokenizer:
    """Whole lower-cased words, and digits one by one."""
    words = [part.strip(".").lower() for name in [*NAMES, *PLACES] for part in name.split()]
    digits = [prefix + str(digit) for digit in range(10) for prefix in ("", "##")]
    entries = dict.fromkeys([*SPECIAL_ENTRIES, *WORDS, *words, "u", "s", "steel", "[", "]", "unk", *digits])
    return WordPieceTokenizer(list(entries), lowercase=True)


def vocabulary() -> Vocabulary:
    return Vocabulary([entry for entry in tokenizer().entries if entry not in SPECIAL_ENTRIES])


def config(**changes) -> TransformerConfig:
    shape = {"layers": 2, "width": 32, "heads": 2, "initializer_range": 0.4, "max_positions": 128, "token_types": 6}
    return TransformerConfig(vocabulary_size=len(vocabulary()), **shape | changes)


def asking(folder: Path, seed: int, writes: str = "cloze", **changes) -> Path:
    """A folder with a language model that writes."""
    folder.mkdir(parents=True)
    tokenizer().save(folder)
    torch.manual_seed(seed)
    shape = config(**changes)
    write(Trained(shape, writes, UnifiedModel.for_language(shape).state_dict(), vocabulary()), folder)
    return folder


def spans(folder: Path, seed: int, labels: tuple[str, ...] = (), **changes) -> Path:
    """A folder with a model that answers, as fairseq-train leaves it."""
    asking(folder, seed, "nothing", **changes)
    path = folder / "checkpoint_last.pt"
    content, task = load_checkpoint(path), SpanAnswers(labels=labels, max_answer=4)
    torch.manual_seed(seed)
    model = UnifiedModel.for_tasks(config(**changes), {"span": task.head(config(**changes))})
    fingerprint = content["model"]["dictionary_version"]
    content["model"] = {f"core.{name}": value for name, value in model.state_dict().items()}
    content["model"]["dictionary_version"] = fingerprint
    content["cfg"]["task"] = {"_name": "unified_understanding", "data": str(folder), "tokens_per_sample": 64}
    content["extra_state"]["UnifiedUnderstandingTask"] = {
        "span": {"head": "span", "settings": {"labels": list(labels), "max_answer": 4}}
    }
    save(content, path)
    return folder
