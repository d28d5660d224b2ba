"""Fine-tuned heads of BERT and XLNet in ``transformers`` as task heads of this library, and the reverse.

A class such as BertForSequenceClassification is BertModel with one projection, named ``classifier`` or ``qa_outputs``.
XLNet's classes call it ``logits_proj``, and BERT's pooler ``sequence_summary``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from unified.arguments import shown
from unified.errors import UnifiedError

_SUFFIXES = ("weight", "bias")


@dataclass(frozen=True)
class HeadClass:
    """A class of ``transformers`` with one of our heads.

    Attributes:
        ending: of the name of the class, behind "Bert" or "XLNet".
        head: our head, as ``--head`` takes it.
        projection: name of the projection's module.
        pooled: whether the pooler stands before it.
        has_labels: whether each of its scores stands for a label; else it has the fixed number ``scores``.
        scores: see there.
        dropout: whether our head has a setting of that name.
    """

    ending: str
    head: str
    projection: str = "classifier"
    pooled: bool = True
    has_labels: bool = False
    scores: int = 1
    dropout: bool = True


@dataclass(frozen=True)
class Family:
    """The classes that have one Transformer of ``transformers`` below them.

    Attributes:
        name: begins the names of the classes.
        pooler: name of the pooler's module.
        dropout: field of ``config.json`` with the dropout before the projection.
        usual_dropout: field with the dropout of the Transformer, which counts where the former has none.
        summary: fields that say how the classes with a pooler read a text, and their values.
        classes: those with a head of ours.
    """

    name: str
    pooler: str
    dropout: str
    usual_dropout: str
    summary: Mapping[str, Any]
    classes: tuple[HeadClass, ...]

    def class_of(self, head: Mapping[str, Any]) -> HeadClass | None:
        """The class that has a head of ours, of which ``head`` is the record; None if none has.

        Heads that read more than the last layer (tagging from fixed features), or decide in XLNet's way, have none.
        """
        settings = head["settings"]
        if settings.get("features") is not None or settings.get("design") == "xlnet":
            return None
        return next((head_class for head_class in self.classes if head_class.head == head["head"]), None)


BERT = Family(
    "Bert",
    pooler="bert.pooler.dense",
    dropout="classifier_dropout",
    usual_dropout="hidden_dropout_prob",
    summary={},
    classes=(
        HeadClass("ForSequenceClassification", "classification", has_labels=True),
        HeadClass("ForSequenceClassification", "regression"),
        HeadClass("ForTokenClassification", "tagging", pooled=False, has_labels=True),
        HeadClass("ForQuestionAnswering", "span", "qa_outputs", pooled=False, scores=2, dropout=False),
        HeadClass("ForMultipleChoice", "choice"),
    ),
)
XLNET = Family(
    "XLNet",
    pooler="sequence_summary.summary",
    dropout="summary_last_dropout",
    usual_dropout="dropout",
    summary={"summary_type": "last", "summary_use_proj": True, "summary_activation": "tanh"},
    classes=(
        HeadClass("ForSequenceClassification", "classification", "logits_proj", has_labels=True),
        HeadClass("ForSequenceClassification", "regression", "logits_proj"),
        HeadClass("ForTokenClassification", "tagging", pooled=False, has_labels=True, dropout=False),
        HeadClass("ForQuestionAnsweringSimple", "span", "qa_outputs", pooled=False, scores=2, dropout=False),
        HeadClass("ForMultipleChoice", "choice", "logits_proj"),
    ),
)


#: Classes of a folder's own code, see :mod:`unified.conversions.remote_code`; parameters keep our names there.
OWN_CODE = replace(BERT, name="Unified")


@dataclass(frozen=True)
class FineTunedHead:
    """A head that was taken from a file.

    Attributes:
        head_class: its class.
        settings: of our head.
        parameters: by their names within a model of ours.
    """

    head_class: HeadClass
    settings: Mapping[str, Any]
    parameters: Mapping[str, torch.Tensor]

    @property
    def record(self) -> dict[str, dict[str, Any]]:
        """The description of heads in a checkpoint of ours, see :func:`unified.checkpoints.trained.heads_of`."""
        return {self.head_class.head: {"head": self.head_class.head, "settings": dict(self.settings)}}


def take_head(
    family: Family, settings: Mapping[str, Any], state: Mapping[str, torch.Tensor], own: Mapping[str, Any]
) -> tuple[FineTunedHead | None, dict[str, torch.Tensor], list[str]]:
    """The fine-tuned head of a file, the other parameters, and names of a pooler that the head does not read.

    Args:
        family: of the class.
        settings: of ``config.json``.
        state: parameters under the names of the family.
        own: what this library wrote of the head into ``config.json``, see :func:`fine_tuned`; or nothing.

    Raises:
        UnifiedError: the class has several labels for one text, or reads another state than ours; or parameters are
            missing or have another shape.
    """
    head_class = _head_class(family, settings)
    if head_class is None:
        return None, dict(state), []
    for field, value in (family.summary if head_class.pooled else {}).items():
        if settings.get(field, value) != value:
            raise UnifiedError(f"config.json: {field} {settings[field]!r}; only {value!r} is built")
    labels = _labels(settings) if head_class.has_labels else ()
    ours = {} if own.get("head") != head_class.head else {n: with_tuples(value) for n, value in own["settings"].items()}
    if head_class.dropout:
        usual = settings.get(family.dropout)
        ours.setdefault("dropout", settings.get(family.usual_dropout, 0.1) if usual is None else usual)
    if head_class.has_labels:
        ours["labels"] = labels
    modules = {head_class.projection: "output"} | ({family.pooler: "pooler"} if head_class.pooled else {})
    wanted = {
        f"{theirs}.{suffix}": f"heads.{head_class.head}.{mine}.{suffix}"
        for theirs, mine in modules.items()
        for suffix in _SUFFIXES
    }
    missing = [name for name in wanted if name not in state]
    if missing:
        raise UnifiedError(f"config.json: {_name(settings)}, but the parameters lack {', '.join(missing)}")
    scores = len(labels) or head_class.scores
    found = len(state[f"{head_class.projection}.weight"])
    if found != scores:
        is_number = head_class.head == "regression" and settings.get("problem_type") == "regression"
        advice = "a regression of several numbers is not built" if is_number else "id2label must name each of them"
        raise UnifiedError(
            f"config.json: {_name(settings)} with {scores} scores, but {head_class.projection}.weight has {found}; "
            f"{advice}"
        )
    parameters = {mine: state[theirs].float() for theirs, mine in wanted.items()}
    unread = (
        []
        if head_class.pooled
        else [f"{family.pooler}.{suffix}" for suffix in _SUFFIXES if f"{family.pooler}.{suffix}" in state]
    )
    rest = {name: value for name, value in state.items() if name not in wanted and name not in unread}
    return FineTunedHead(head_class, ours, parameters), rest, unread


def fine_tuned(
    family: Family,
    name: str,
    head: Mapping[str, Any],
    parameters: Mapping[str, torch.Tensor],
    encoder: Mapping[str, torch.Tensor],
) -> tuple[dict[str, Any], dict[str, torch.Tensor], list[str]]:
    """Fields of ``config.json``, parameters of the class of ``transformers``, and names of ours that it has not.

    Args:
        family: of the class.
        name: of the head in our model.
        head: its record; it has a class, see :meth:`Family.class_of`.
        parameters: ours.
        encoder: those of the class that are not its head's.
    """
    head_class = family.class_of(head)
    assert head_class is not None
    modules = {"output": head_class.projection} | ({"pooler": family.pooler} if head_class.pooled else {})
    written = {
        f"heads.{name}.{mine}.{suffix}": f"{theirs}.{suffix}"
        for mine, theirs in modules.items()
        for suffix in _SUFFIXES
    }
    found = {**encoder, **{theirs: parameters[mine].contiguous() for mine, theirs in written.items()}}
    left_out = [mine for mine in parameters if not mine.startswith("transformer.") and mine not in written]
    return head_fields(family, head), found, left_out


def head_fields(family: Family, head: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of ``config.json`` that name the class of our head and describe its scores.

    Args:
        family: of the class.
        head: the record of ours; it has a class, see :meth:`Family.class_of`.
    """
    head_class, settings = family.class_of(head), head["settings"]
    assert head_class is not None
    fields: dict[str, Any] = {"architectures": [f"{family.name}{head_class.ending}"]}
    if head_class.has_labels:
        labels = settings["labels"]
        fields["id2label"] = {str(i): label for i, label in enumerate(labels)}
        fields["label2id"] = {label: i for i, label in enumerate(labels)}
    if head_class.head in ("classification", "regression"):
        fields["problem_type"] = "regression" if head_class.head == "regression" else "single_label_classification"
        fields |= {} if head_class.has_labels else {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    if head_class.dropout:
        fields[family.dropout] = settings.get("dropout", 0.1)
    if head_class.pooled:
        fields |= family.summary
    return fields


def _head_class(family: Family, settings: Mapping[str, Any]) -> HeadClass | None:
    """The class that ``config.json`` names; None for one without a fine-tuned head."""
    found = [head_class for head_class in family.classes if _name(settings).endswith(head_class.ending)]
    if len(found) < 2:
        return found[0] if found else None
    if settings.get("problem_type") == "multi_label_classification":
        raise UnifiedError(
            "config.json: problem_type 'multi_label_classification': a text has several labels there; classification "
            "here gives it one"
        )
    number = settings.get("problem_type") == "regression" or len(_labels(settings)) == 1
    return next(head_class for head_class in found if head_class.has_labels != number)


def _name(settings: Mapping[str, Any]) -> str:
    return str((settings.get("architectures") or [""])[0])


def _labels(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Labels in the order of their scores; ``transformers`` leaves out the usual two."""
    named = settings.get("id2label")
    if not isinstance(named, dict):
        return ("LABEL_0", "LABEL_1")
    if not all(number.isascii() and number.isdecimal() for number in named):
        raise UnifiedError(f"config.json: id2label must name labels by their numbers, got {shown(named)}")
    labels = tuple(str(named[number]) for number in sorted(named, key=int))
    twice = next((label for i, label in enumerate(labels) if label in labels[:i]), None)
    if twice is not None:
        raise UnifiedError(f"config.json: id2label names {shown(twice)} twice; a label may stand for one score")
    unprintable = next((label for label in labels if not label.isprintable()), None)
    if unprintable is not None:
        raise UnifiedError(f"config.json: id2label has the label {shown(unprintable)}; labels take printed characters")
    return labels


def with_tuples(value: Any) -> Any:
    """A value of JSON, its lists as tuples, as settings have them."""
    return tuple(map(with_tuples, value)) if isinstance(value, list) else value
