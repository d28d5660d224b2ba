"""Figures of the papers beside ours: the published ones of every task of the library, and the lines of the queue.

No entries of its own: the table reads the lines of others. A task without a line says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import generation
import parity

from unified.tasks.catalogue import TASKS
from unified.tasks.settings import Published

TABLE = "published"
#: Tables whose lines it reads.
READS = (parity.TABLE, generation.TABLE)

#: The model that all these lines fine-tune, beside which the papers' systems are larger.
MINILM = "starts from MiniLM of 6 × 384, 22 million parameters, which its publishers had made an encoder of sentences"


@dataclass(frozen=True)
class Ours:
    """Lines that hold our figures of a task.

    Attributes:
        lines: names of the lines, one for each seed.
        prefix: what stands before a measure's name in a line's figures.
        separates: what differs from the published experiments.
    """

    lines: tuple[str, ...]
    prefix: str
    separates: str


_DATA = {
    "cola": "all of the training data",
    "stsb": "all of the training data",
    "rte": "all of the training data",
    "mrpc": "3,576 of the 4,076 pairs, tested on the other 500",
    "squad2.0": (
        "4,000 questions for training, of 130,319, and 2,595 of them of the official development set; 1,500 questions "
        "of 10 of its 35 articles score"
    ),
}

#: Task -> our lines.
OURS: dict[str, Ours] = {
    task: Ours(
        tuple(f"parity/{task}-{seed}" for seed in parity.SEEDS),
        "ours.valid",
        "; ".join([MINILM, *([_DATA[task]] if task in _DATA else []), "one rate, not searched"]),
    )
    for task in parity.TASKS
}
OURS["squad_qg"] = Ours(
    tuple(f"generation/{generation.TASK}-{seed}/scores" for seed in generation.SEEDS),
    "sentences",
    f"{MINILM}; 11,602 training questions (the paper: nine tenths of 87,599); sentences as sources, not passages",
)

#: The last cell of a task without lines. Objectives are compared by small models, whose figures do not belong here.
NO_FIGURE = "no figure from a published encoder"


def systems(published: Published) -> str:
    """Published figures in one cell: each split's systems, with their measures."""
    splits = []
    for split, found in published.items():
        named = (
            f"{system}: {', '.join(f'{measure} {figure:g}' for measure, figure in figures.items())}"
            for system, figures in found.items()
        )
        splits.append(f"{split}: {'; '.join(named)}")
    return "<br>".join(splits)


def measures(published: Published) -> list[str]:
    """Names of all published measures of a task, each once."""
    return list(dict.fromkeys(m for split in published.values() for figures in split.values() for m in figures))


def rows() -> Mapping[str, tuple[Published, Ours | None]]:
    """Task -> its published figures and our lines, for every task with published figures."""
    return {task.name: (task.published, OURS.get(task.name)) for task in TASKS.values() if task.published}


def sources() -> Mapping[str, list[str]]:
    """Papers, sections and scripts that publish figures -> the tasks whose figures stand there."""
    found: dict[str, list[str]] = {}
    for name in rows():
        found.setdefault(TASKS[name].source, []).append(name)
    return found
