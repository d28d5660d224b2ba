"""Fine-tuned heads of BERT in ``transformers`` as task heads of this library, and the reverse.

A class such as BertForSequenceClassification is BertModel with one projection, named ``classifier`` or ``qa_outputs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from unified.conversions.bert_names import to_bert
from unified.errors import UnifiedError

_POOLER, _OUR_POOLER = "bert.pooler.dense", "heads.next_sentence.pooler"
_PARTS = ("weight", "bias")


@dataclass(frozen=True)
class HeadClass:
    """A class of ``transformers`` with one of our heads.

    Attributes:
        ending: of the name of the class, behind "Bert".
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


CLASSES = (
    HeadClass("ForSequenceClassification", "classification", has_labels=True),
    HeadClass("ForSequenceClassification", "regression"),
    HeadClass("ForTokenClassification", "tagging", pooled=False, has_labels=True),
    HeadClass("ForQuestionAnswering", "span", "qa_outputs", pooled=False, scores=2, dropout=False),
    HeadClass("ForMultipleChoice", "choice"),
)


@dataclass(frozen=True)
class FineTunedHead:
    """A head that was taken from a file.

    Attributes:
        kind: its class.
        settings: of our head.
        parameters: by their names within a model of ours.
    """

    kind: HeadClass
    settings: Mapping[str, Any]
    parameters: Mapping[str, torch.Tensor]

    @property
    def record(self) -> dict[str, dict[str, Any]]:
        """What a checkpoint of ours says of its heads, see :func:`unified.checkpoints.trained.heads_of`."""
        return {self.kind.head: {"head": self.kind.head, "settings": dict(self.settings)}}


def take_head(
    settings: Mapping[str, Any], state: Mapping[str, torch.Tensor], own: Mapping[str, Any]
) -> tuple[FineTunedHead | None, dict[str, torch.Tensor], list[str]]:
    """The fine-tuned head of a file, the other parameters, and names of a pooler that the head does not read.

    Args:
        settings: of ``config.json``.
        state: parameters under the names of BERT.
        own: what this library wrote of the head into ``config.json``, see :func:`fine_tuned`; or nothing.

    Raises:
        UnifiedError: the class has several labels for one text, or parameters are missing or have another shape.
    """
    kind = _kind(settings)
    if kind is None:
        return None, dict(state), []
    labels = _labels(settings) if kind.has_labels else ()
    ours = {} if own.get("head") != kind.head else {n: _tuples(value) for n, value in own["settings"].items()}
    if kind.dropout:
        usual = settings.get("classifier_dropout")
        ours.setdefault("dropout", settings.get("hidden_dropout_prob", 0.1) if usual is None else usual)
    if kind.has_labels:
        ours["labels"] = labels
    modules = {kind.projection: "output"} | ({_POOLER: "pooler"} if kind.pooled else {})
    wanted = {
        f"{theirs}.{part}": f"heads.{kind.head}.{mine}.{part}" for theirs, mine in modules.items() for part in _PARTS
    }
    missing = [name for name in wanted if name not in state]
    if missing:
        raise UnifiedError(f"config.json: {_name(settings)}, but the parameters lack {', '.join(missing)}")
    scores = len(labels) or kind.scores
    if len(state[f"{kind.projection}.weight"]) != scores:
        raise UnifiedError(
            f"config.json: {_name(settings)} with {scores} scores, but {kind.projection}.weight has "
            f"{len(state[f'{kind.projection}.weight'])}; id2label must name each of them"
        )
    parameters = {mine: state[theirs].float() for theirs, mine in wanted.items()}
    unread = [] if kind.pooled else [f"{_POOLER}.{part}" for part in _PARTS if f"{_POOLER}.{part}" in state]
    rest = {name: value for name, value in state.items() if name not in wanted and name not in unread}
    return FineTunedHead(kind, ours, parameters), rest, unread


def class_of(head: Mapping[str, Any]) -> HeadClass | None:
    """The class of ``transformers`` that has a head of ours, of which ``head`` is the record; None if none has.

    Heads that read more than the last layer (tagging from fixed features), or decide in XLNet's way, have none.
    """
    settings = head["settings"]
    if settings.get("features") is not None or settings.get("design") == "xlnet":
        return None
    return next((kind for kind in CLASSES if kind.head == head["head"]), None)


def fine_tuned(
    name: str, head: Mapping[str, Any], parameters: Mapping[str, torch.Tensor], layers: int
) -> tuple[dict[str, Any], dict[str, torch.Tensor], list[str]]:
    """Fields of ``config.json``, parameters of the class of ``transformers``, and names of ours that it has not.

    Args:
        name: of the head in our model.
        head: its record; it has a class, see :func:`class_of`.
        parameters: ours, rows in BERT's order.
    """
    kind, settings = class_of(head), head["settings"]
    assert kind is not None
    encoder = {mine: value for mine, value in parameters.items() if mine.startswith("transformer.")}
    _, found, _ = to_bert(encoder, layers)
    found = {f"bert.{theirs}": value for theirs, value in found.items()}
    modules = {"output": kind.projection} | ({"pooler": _POOLER} if kind.pooled else {})
    written = {f"heads.{name}.{mine}.{part}": f"{theirs}.{part}" for mine, theirs in modules.items() for part in _PARTS}
    found |= {theirs: parameters[mine].contiguous() for mine, theirs in written.items()}
    fields: dict[str, Any] = {"architectures": [f"Bert{kind.ending}"]}
    if kind.has_labels:
        labels = settings["labels"]
        fields["id2label"] = {str(i): label for i, label in enumerate(labels)}
        fields["label2id"] = {label: i for i, label in enumerate(labels)}
    if kind.head in ("classification", "regression"):
        fields["problem_type"] = "regression" if kind.head == "regression" else "single_label_classification"
        fields |= {} if kind.has_labels else {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    if kind.dropout:
        fields["classifier_dropout"] = settings.get("dropout", 0.1)
    return fields, found, [mine for mine in parameters if mine not in encoder and mine not in written]


def _kind(settings: Mapping[str, Any]) -> HeadClass | None:
    """The class that ``config.json`` names; None for one without a fine-tuned head."""
    found = [kind for kind in CLASSES if _name(settings).endswith(kind.ending)]
    if len(found) < 2:
        return found[0] if found else None
    if settings.get("problem_type") == "multi_label_classification":
        raise UnifiedError(
            "config.json: problem_type 'multi_label_classification': a text has several labels there; classification "
            "here gives it one"
        )
    number = settings.get("problem_type") == "regression" or len(_labels(settings)) == 1
    return next(kind for kind in found if kind.has_labels != number)


def _name(settings: Mapping[str, Any]) -> str:
    return str((settings.get("architectures") or [""])[0])


def _labels(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Labels in the order of their scores; ``transformers`` leaves out the usual two."""
    named = settings.get("id2label")
    if not isinstance(named, dict):
        return ("LABEL_0", "LABEL_1")
    return tuple(str(named[number]) for number in sorted(named, key=int))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
