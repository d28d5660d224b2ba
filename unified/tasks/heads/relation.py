"""The relation between two entities of a sentence, which are marked or replaced by symbols of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unified.arguments import check_all_settings, setting
from unified.errors import UnifiedError, WrongField, require_fields
from unified.files.ids import item_id
from unified.inference.sequences import Codec
from unified.model.config import TransformerConfig
from unified.model.heads import PairHead, PooledHead, TaskHead
from unified.tasks.heads.base import (
    ClassUnderstanding,
    Encoded,
    classes,
    require_labels,
    unlearnt_label,
    with_labels,
)
from unified.tasks.heads.entities import MARKERS, Entity, marked, masked, role_types
from unified.tasks.heads.items import are_texts, class_name, stated
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.classification import Confusion
from unified.tasks.metrics.relations import OTHER, Relations, SemevalRelations, require_directions

_MARKERS, _TYPES = "markers", "types"
_TACRED, _SEMEVAL = "tacred", "semeval2010"


@dataclass(frozen=True)
class RelationItem:
    """Words and two entities among them.

    Attributes:
        id: what predictions are named by.
        words: at least one.
        entities: TACRED's subject and object, SemEval's e1 and e2, in this order wherever they stand; may overlap.
        label: the relation by name; None where it is to be predicted.
    """

    id: str
    words: tuple[str, ...]
    entities: tuple[Entity, Entity]
    label: str | None = None


@dataclass(frozen=True)
class Relation(ClassUnderstanding[RelationItem]):
    """Head that finds which of several relations two entities of a sentence have, if any.

    Attributes:
        types: roles and types of entities, such as ``SUBJ=PERSON``, which have a symbol each; for design ``types``.
        design: "markers": each entity stands between two symbols, and the states of the two that begin them are read
            (Baldini Soares et al. 2019); "types": a symbol for its role and type stands in its place, and CLS is read,
            as SpanBERT does for TACRED [SpanBERT, sec. 4.1].
        rules: "tacred": micro-averaged F1 over all labels but ``negative``; "semeval2010": macro-averaged F1 of SemEval
            2010, task 8, whose labels have directions.
        negative: the label of no relation, which the rules of TACRED leave out; None where all labels are relations.
        dropout: before the last projection.

    Raises:
        UnifiedError: there are fewer than two labels, or one comes twice; a setting is out of range; or ``types`` or
            the labels do not go with design and rules.
    """

    name: ClassVar[str] = "relation"
    parts: ClassVar[Mapping[str, str]] = {"text": "words", "label": "label"}

    types: tuple[str, ...] = ()
    design: str = setting(_MARKERS, one_of=(_MARKERS, _TYPES))
    rules: str = setting(_TACRED, one_of=(_TACRED, _SEMEVAL))
    negative: str | None = "no_relation"
    dropout: float = setting(0.1, least=0, below=1)

    def __post_init__(self) -> None:
        require_labels(self.labels, "a relation")
        check_all_settings(self, "relation: {}".format)
        if self.types and self.design != _TYPES:
            raise UnifiedError(f"relation: types are those of entities with design={_TYPES!r}, got {self.types!r}")
        if self.rules == _SEMEVAL:
            require_directions(self.labels)
        elif self.negative is not None and self.negative not in self.labels:
            raise UnifiedError(
                f"relation: no label is {self.negative!r}, which the rules of TACRED leave out; set negative to the "
                "label of no relation, or negative=None where all labels are relations"
            )

    @property
    def markers(self) -> int:
        return MARKERS if self.design == _MARKERS else len(self.types)

    @property
    def measures(self) -> tuple[str, ...]:
        return ("f1", "precision", "recall") if self.rules == _TACRED else ("macro_f1", "micro_f1", "accuracy")

    @property
    def signature(self) -> str:
        if self.rules == _TACRED:
            labels = "labels:all" if self.negative is None else f"without:{self.negative}"
            return f"rules:tacred|avg:micro|{labels}"
        return f"rules:semeval2010-task8|avg:macro|directions:yes|without:{OTHER}"

    @classmethod
    def item(cls, fields: dict[str, Any], number: int, labelled: bool) -> RelationItem:
        """Reads ``words``, ``entities`` (objects with ``start``, ``stop``, perhaps ``type``), ``label`` and ``id``."""
        require_fields(fields, "words", "entities", *(["label"] if labelled else []))
        words, entities, label = (fields.get(name) for name in ("words", "entities", "label"))
        if not are_texts(words) or not words:
            raise WrongField("words", "must be a list of texts that are not empty")
        if not isinstance(entities, list) or len(entities) != 2 or not all(isinstance(one, dict) for one in entities):
            raise WrongField("entities", "must be a list of two objects")
        first, second = (_entity(entity, len(words)) for entity in entities)
        identity = item_id(fields, number)
        if not labelled:
            return RelationItem(identity, tuple(words), (first, second))
        return RelationItem(identity, tuple(words), (first, second), class_name(label))

    @classmethod
    def of(cls, items: Sequence[RelationItem], **settings: Any) -> Relation:
        settings = with_labels(settings, (stated(item.label, item, "label") for item in items))
        if settings.get("design") == _TYPES and "types" not in settings:
            settings["types"] = role_types([item.entities for item in items])
        return cls(**settings | {"types": tuple(settings.get("types", ()))})

    def encode(self, items: Sequence[RelationItem], codec: Codec) -> Encoded:
        """Encodes sentences; one that is too long for a row keeps the tokens nearest to the entities.

        Raises:
            UnifiedError: the dictionary has too few symbols for entities, or an entity has a new type.
        """
        words, entities = [item.words for item in items], [item.entities for item in items]
        head_inputs = {}
        if self.design == _MARKERS:
            examples, lost, head_inputs["turned"] = marked(words, entities, codec)
        else:
            examples, lost = masked(words, entities, self.types, codec)
        if all(item.label is not None for item in items):
            head_inputs["labels"] = [
                classes([stated(item.label, item, "label")], self.labels, item.id) for item in items
            ]
        return Encoded(examples, np.arange(len(items)), head_inputs, int(np.count_nonzero(lost)), lost)

    @classmethod
    def shared_text(cls, item: RelationItem) -> tuple[str, ...]:
        return item.words

    def unlearnt(self, item: RelationItem) -> str | None:
        types = role_types([item.entities]) if self.design == _TYPES else ()
        of_types = (unlearnt_label(one, self.types, "type of an entity") for one in types)
        return next(filter(None, (unlearnt_label(item.label, self.labels), *of_types)), None)

    def head(self, config: TransformerConfig) -> TaskHead:
        head_class = PairHead if self.design == _MARKERS else PooledHead
        return head_class(config, len(self.labels), self.dropout)

    def scored(self, items: Sequence[RelationItem], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Items with the scores by the official rules of the data set, see :mod:`unified.tasks.metrics.relations`."""
        gold = [stated(item.label, item, "label") for item in items]
        confusion = Confusion.of(gold, [prediction["label"] for prediction in predictions])
        return SemevalRelations(confusion) if self.rules == _SEMEVAL else Relations(confusion, self.negative)


def _entity(fields: dict[str, Any], words: int) -> Entity:
    require_fields(fields, "start", "stop")
    start, stop, entity_type = (fields.get(name) for name in ("start", "stop", "type"))
    if type(start) is not int or type(stop) is not int or not 0 <= start < stop <= words:
        raise UnifiedError(f"an entity must have 0 <= start < stop <= {words}, got {start!r} and {stop!r}")
    if entity_type is not None and (not isinstance(entity_type, str) or not entity_type):
        raise UnifiedError(f"the 'type' of an entity must be a name, got {entity_type!r}")
    return Entity(start, stop, entity_type)
