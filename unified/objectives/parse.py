"""The list of objectives, and mixtures of them from text."""

from __future__ import annotations

import importlib
import re
from dataclasses import is_dataclass

from unified.errors import UnifiedError
from unified.notation import Entry, check_settings, nearest, parse_entries
from unified.objectives.anna import Anna
from unified.objectives.bert import Bert
from unified.objectives.contract import Objective, require_declared
from unified.objectives.mixture import Mixture
from unified.objectives.spanbert import SpanBert
from unified.objectives.t5 import (
    BertStyle,
    Deshuffling,
    DropTokens,
    MassStyle,
    PrefixLM,
    RandomSpans,
    ReplaceSpans,
)
from unified.objectives.unilm import Bidirectional, LeftToRight, RightToLeft, Seq2Seq, TargetCloze, TargetNext
from unified.objectives.xlnet import XLNet

#: Every objective of the library. A new one is a class and its name here.
OBJECTIVES: dict[str, type[Objective]] = {
    kind.name: kind
    for kind in (
        *(Bidirectional, LeftToRight, RightToLeft, Seq2Seq, TargetCloze, TargetNext),
        *(Bert, SpanBert, XLNet, Anna),
        *(PrefixLM, BertStyle, Deshuffling, MassStyle, ReplaceSpans, DropTokens, RandomSpans),
    )
}

#: UniLM's mixture [UniLM, sec. 2.4]: a third, a third, a sixth and a sixth of the examples.
DEFAULT_PRETRAINING = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"
DEFAULT_FINETUNING = "target_cloze"


def parse_objectives(text: str, own_classes: bool = True) -> Mixture:
    """Read a list of objectives such as ``bidirectional:2,long=random_spans(mean_span=32):1,package.module:Class:0.5``.

    The notation is that of :mod:`unified.notation`. A kind is a name of :data:`OBJECTIVES` or ``module:Class``. An
    objective of weight 0 is left out.

    Args:
        own_classes: whether ``module:Class`` may be imported. Not where the text comes from a checkpoint.

    Raises:
        UnifiedError: names the entry and what is wrong with it.
    """
    entries = parse_entries(text, "objective", OBJECTIVES, classes=True, zero=True)
    if not entries:
        raise UnifiedError(f"the list of objectives is empty; the objectives are {', '.join(OBJECTIVES)}")
    objectives = tuple(_build(entry, own_classes) for entry in entries)
    names = tuple(entry.name or own.name for entry, own in zip(entries, objectives, strict=True))
    return Mixture(objectives, tuple(entry.weight for entry in entries), names)


def _build(entry: Entry, own_classes: bool) -> Objective:
    kind, settings = _kind(entry, own_classes), entry.settings
    check_settings(kind, entry.kind, settings, entry.refusal)
    return kind(**settings)


def _kind(entry: Entry, own_classes: bool) -> type[Objective]:
    if entry.kind in OBJECTIVES:
        return OBJECTIVES[entry.kind]
    name = entry.kind
    module_name, colon, class_name = name.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module_name):
        listed = ", ".join(OBJECTIVES)
        hint = nearest(name, OBJECTIVES)
        raise entry.refusal(f"no objective {name!r}{hint}; known are {listed}, and any package.module:Class")
    if not own_classes:
        raise entry.refusal(
            "the checkpoint names a class of another library, and no checkpoint chooses what is imported; where you "
            "trust it, name it yourself: --task unified_lm --objectives '...'",
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        hint = nearest(module_name, OBJECTIVES)
        raise entry.refusal(f"module {module_name} cannot be imported ({error}){hint}") from None
    kind = vars(module).get(class_name)
    if not isinstance(kind, type) or not is_dataclass(kind):
        raise entry.refusal(f"module {module_name} has no dataclass {class_name!r}")
    if not issubclass(kind, Objective):
        raise entry.refusal(f"{class_name} is not an objective; make it a subclass of unified.objectives.Objective")
    require_declared(kind)
    return kind
