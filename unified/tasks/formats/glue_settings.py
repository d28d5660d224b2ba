"""How the papers fine-tune on the tasks of GLUE."""

from __future__ import annotations

from dataclasses import dataclass

from unified.errors import UnifiedError
from unified.notation import nearest
from unified.tasks.formats.glue import GlueTask


@dataclass(frozen=True)
class FineTuning:
    """Settings of a fine-tuning; the rate rises linearly, then falls linearly to 0.

    Attributes:
        optimizer: "adam" or "adamax".
        rates, batches: learning rates and items of an update that the paper tries; the first is our choice.
        epochs: over the training items.
        length: places of a sequence.
        dropout: before the last projection.
        warmup: share of the updates in which the rate rises.
        weight_decay: of the optimizer.
        clip: greatest norm of a gradient.
    """

    optimizer: str
    rates: tuple[float, ...]
    batches: tuple[int, ...]
    epochs: int
    length: int
    dropout: float = 0.1
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0


#: UniLM's dropout where it is another than 0.1.
_UNILM_DROPOUT = {"MNLI": 0.3, "CoLA": 0.05, "SST-2": 0.05}


def published_bert(task: GlueTask) -> FineTuning:
    """BERT (section 4.1, A.3): the rate is chosen on the development set; length, decay and warm-up are the code's."""
    return FineTuning("adam", rates=(2e-5, 3e-5, 4e-5, 5e-5), batches=(32,), epochs=3, length=128)


def published_spanbert(task: GlueTask) -> FineTuning:
    """SpanBERT (appendix B): rate and batch are chosen on the development set."""
    rates = (2e-5, 5e-6, 1e-5, 3e-5, 5e-5)
    return FineTuning("adam", rates, batches=(32, 16), epochs=4 if task.name == "CoLA" else 10, length=128)


def published_unilm(task: GlueTask) -> FineTuning:
    """UniLM (section 3.5): Adamax, at most five epochs; the weight decay is 0, the paper has none here."""
    dropout = _UNILM_DROPOUT.get(task.name, 0.1)
    return FineTuning("adamax", (5e-5,), (32,), epochs=5, length=512, dropout=dropout, weight_decay=0.0)


#: By system.
PUBLISHED = {"bert": published_bert, "spanbert": published_spanbert, "unilm": published_unilm}


def published(system: str, task: GlueTask) -> FineTuning:
    """
    Raises:
        UnifiedError: no settings of this system are known.
    """
    if system not in PUBLISHED:
        raise UnifiedError(f"no system {system!r}{nearest(system, PUBLISHED)}; known are {', '.join(PUBLISHED)}")
    return PUBLISHED[system](task)
