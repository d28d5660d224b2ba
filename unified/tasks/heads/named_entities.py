"""Named entities in the texts of items, for models with entity-aware attention; other models do not read them.

An item says where they are in ``named_entities``: for each of its texts the characters [start, stop) of every entity.
Data files hold them, or an annotator finds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from unified.corpus.annotate import Annotator
from unified.errors import UnifiedError, WrongField
from unified.files.shapes import is_integer_pair

#: First character of each entity, and the one behind its last, by the name of the text.
NamedEntities = Mapping[str, Sequence[tuple[int, int]]]
#: The annotation that an annotator must give.
ENTITIES = "entities"
#: Why a pipeline that finds entities is refused.
NOTHING_TO_MARK = (
    "no attention of the model reads named entities ('entity' is not among its sublayers); leave out what finds them "
    "(annotator in Python, --spacy of `unified finetune` and `unified predict`)"
)


class Markable(Protocol):
    """A frozen dataclass whose texts may have their entities marked."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def id(self) -> str:
        """Name of the item in predictions."""

    @property
    def named_entities(self) -> NamedEntities | None:
        """Named entities of its texts; None where the texts are not annotated."""

    @property
    def texts(self) -> dict[str, str]:
        """Texts by the names of their fields; those that the item lacks are left out."""


_MarkableT = TypeVar("_MarkableT", bound=Markable)


def read_named_entities(fields: dict[str, Any], texts: Mapping[str, str]) -> NamedEntities | None:
    """Reads the field ``named_entities`` of a JSON object; None where it has none.

    Args:
        texts: of the item, by the names of their fields.

    Raises:
        UnifiedError: the field does not hold a list of [start, stop] within the text for each text.
    """
    found = fields.get("named_entities")
    if found is None:
        return None
    if not isinstance(found, dict) or found.keys() != texts.keys():
        raise WrongField("named_entities", f"must be an object with a list for each of {', '.join(texts)}")
    for name, spans in found.items():
        if not isinstance(spans, list) or not all(_is_span(span, len(texts[name])) for span in spans):
            raise WrongField("named_entities", f"of {name!r} must be a list of [start, stop] within the text")
    return {name: tuple((start, stop) for start, stop in spans) for name, spans in found.items()}


def _is_span(span: Any, length: int) -> bool:
    return is_integer_pair(span) and 0 <= span[0] < span[1] <= length


def annotated(items: Sequence[_MarkableT], annotator: Annotator, at_once: int = 1000) -> list[_MarkableT]:
    """The items with the entities that ``annotator`` finds; items that name theirs already stay as they are.

    Args:
        at_once: texts that the annotator gets in one call, at most.
    """
    unmarked = (item for item in items if item.named_entities is None)
    texts = list(dict.fromkeys(text for item in unmarked for text in item.texts.values()))
    spans: dict[str, list[tuple[int, int]]] = {text: [] for text in texts}
    for first in range(0, len(texts), at_once):
        some = texts[first : first + at_once]
        for number, start, stop in annotator(some)[ENTITIES].tolist():
            spans[some[number]].append((start, stop))
    return [
        item
        if item.named_entities is not None
        else replace(item, named_entities={name: tuple(spans[text]) for name, text in item.texts.items()})
        for item in items
    ]


def named_entities_of(item: Markable) -> NamedEntities:
    """The entities of an item.

    Raises:
        UnifiedError: the item does not name them.
    """
    if item.named_entities is None:
        raise UnifiedError(
            f"item {item.id} has no 'named_entities', which the model's entity-aware attention reads; find them with "
            "--spacy PIPELINE of `unified finetune` and `unified predict`, or write them into the data"
        )
    return item.named_entities
