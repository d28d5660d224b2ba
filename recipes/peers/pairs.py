"""The tasks that are compared, with their data and settings, and the seeds of each, by size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import debug
from peer_data import first_sentences, some_of_squad1, some_of_squad2, squad1, squad2

from unified.tasks.catalogue import task_named
from unified.tasks.writing import WritingTask

#: The papers' rates are for larger models; a small one takes the highest that BERT tries.
RATE = ("--lr", 5e-5)


@dataclass(frozen=True)
class Pair:
    """A task that ours and the peer are fine-tuned for.

    Attributes:
        task: as ``unified finetune`` takes it, and the name of its folder.
        data: a folder of the real data; or what makes one, given the folder to make and that of all real data.
        options: settings that are not the task's own, for both.
    """

    task: str
    data: str | Callable[[Path, Path | None], None]
    options: tuple[str | int | float, ...] = RATE

    @property
    def writes(self) -> bool:
        """Whether its answers are written: the peer has an encoder and a decoder, and copied sentences stand beside."""
        return isinstance(task_named(self.task), WritingTask)


@dataclass(frozen=True)
class Size:
    """Pairs, and the seeds with which each is run.

    Attributes:
        model: makes the folder of the model; None where it is a real one.
    """

    pairs: tuple[Pair, ...]
    seeds: tuple[int, ...]
    model: Callable[[Path], None] | None = None


_SMALL = tuple(Pair(name.lower(), f"glue/{name}") for name in ("CoLA", "MRPC", "RTE"))
_OTHERS = (
    Pair("stsb", "glue/STS-B"),
    Pair("wnut17", "wnut17"),
    Pair("codah", "codah"),
    Pair("semeval2010", "semeval2010_task8"),
)
_SQUAD1 = Pair("squad1.1", squad1)
#: A model that has only read learns to write by these: `unified finetune` takes them for it, and the peer is told.
_NEW = ("--lr", 3e-4, "--batch-size", 8)
_WRITING = (
    Pair("squad_qg_sentence", some_of_squad1, (*_NEW, "--epochs", 1)),
    Pair("reuters", "reuters21578", (*_NEW, "--epochs", 1, "--max-length", 128)),
    Pair("aeslc", "aeslc", (*_NEW, "--epochs", 1, "--max-length", 128)),
    Pair("scitldr", "scitldr", (*_NEW, "--epochs", 2, "--max-length", 384)),
)

SIZES: dict[str, Size] = {
    "debug": Size(
        (
            Pair("classification", debug.make_items, ("--epochs", 1, "--lr", 1e-3, "--max-length", 16)),
            Pair("texts", debug.make_texts, ("--epochs", 1, "--lr", 1e-3, "--max-length", 148)),
        ),
        seeds=(1,),
        model=debug.make_model,
    ),
    # Three epochs of 384 tokens of a whole SQuAD would take a core of 2.1 GHz half a day.
    "cpu": Size(
        (
            *_SMALL,
            *_OTHERS,
            Pair("sst2", first_sentences),
            Pair("squad1.1", squad1, (*RATE, "--epochs", 1, "--max-length", 192)),
            Pair("squad2.0", some_of_squad2, (*RATE, "--max-length", 192)),
        ),
        seeds=(1, 2, 3),
    ),
    "writing": Size(_WRITING, seeds=(1,)),
    "full": Size(
        (
            *_SMALL,
            Pair("sst2", "glue/SST-2"),
            *_OTHERS,
            _SQUAD1,
            Pair("squad2.0", squad2),
            *_WRITING,
        ),
        seeds=(1, 2, 3),
    ),
}
