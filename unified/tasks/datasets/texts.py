"""Your own pairs of source and target, a row each, and how a text is written from a source."""

from __future__ import annotations

from typing import Any

from unified.errors import WrongField, require_fields
from unified.files.fields import FieldNames
from unified.files.ids import item_id
from unified.tasks.datasets.own_files import OwnFiles
from unified.tasks.heads.items import are_texts, nonempty_text
from unified.tasks.writing import TokenBudget, WritingItem, WritingTask, WritingTraining
from unified.tasks.writing_scores import scored_texts


def text_of(fields: dict[str, Any], number: int) -> WritingItem:
    """Reads ``source`` and ``target``, and if present ``references``, ``reference_group`` and ``id``.

    Raises:
        UnifiedError: says which field is wrong.
    """
    require_fields(fields, "source", "target")
    references, group = fields.get("references"), fields.get("reference_group")
    if isinstance(fields["target"], list):
        raise WrongField(
            "target", "must be one text to learn, not a list; put all texts that are right into the field 'references'"
        )
    target = nonempty_text(fields, "target")
    if references is not None and not are_texts(references):
        raise WrongField("references", "must be a list of texts that are not empty")
    if group is not None and not isinstance(group, str):
        raise WrongField("reference_group", f"must be a text, got {group!r}")
    pooled = tuple(references) if references else None
    return WritingItem(item_id(fields, number), _source(fields), target, pooled, group)


def source_item(fields: dict[str, Any], number: int, budget: TokenBudget) -> WritingItem:
    """Reads ``source``, a text or a list of parts, from which something is to be written.

    Raises:
        UnifiedError: there is none.
    """
    return WritingItem(item_id(fields, number), _source(fields))


def _source(fields: dict[str, Any]) -> str | tuple[str, ...]:
    require_fields(fields, "source")
    source = fields["source"]
    if are_texts(source) and source:
        return tuple(source)
    if not isinstance(source, str) or not source.strip():
        raise WrongField("source", "must be a text that is not empty, or a list of such texts")
    return source


#: Parts of an item that ``--source-field`` and ``--target-field`` name.
PARTS = {"source": "source", "target": "target"}
#: UniLM's search for summaries.
NO_TRIGRAM_TWICE = {"beam": 5, "no_repeat_ngram_size": 3, "length_penalty": "unilm"}

TASKS = (
    WritingTask(
        name="texts",
        read=OwnFiles(text_of, FieldNames(PARTS)),
        parts=PARTS,
        item=source_item,
        scored=scored_texts,
        training=WritingTraining(epochs=10, lr=3e-5, max_length=512, max_source=384, max_target=125),
        decoding={**NO_TRIGRAM_TWICE, "max_length": 125, "lenpen": 1.0},
        may_repeat=(".",),
    ),
)
