"""The list of objectives, and the notation ``name(setting=value, …):weight, …`` for a mixture of them."""

from __future__ import annotations

import importlib
import re
from dataclasses import is_dataclass
from functools import partial
from typing import Any

from unified.errors import UnifiedError
from unified.notation import check_settings, nearest, read_settings, split_entries
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

#: UniLM's mixture (section 2.4): a third, a third, a sixth and a sixth of the examples.
DEFAULT_PRETRAINING = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"
DEFAULT_FINETUNING = "target_cloze"


def parse_objectives(text: str, own_classes: bool = True) -> Mixture:
    """Read a list of objectives such as ``bidirectional:2,seq2seq(mask_share=0.2):2,package.module:Class(x=1):0.5``.

    An entry is a name of :data:`OBJECTIVES` or ``module:Class``, settings in parentheses (fields of the class, values
    as Python literals) where they differ from the defaults, and a weight after a colon, 1 where none is given.
    An objective of weight 0 is left out.

    Args:
        own_classes: whether ``module:Class`` may be imported. Not where the text comes from a checkpoint.

    Raises:
        UnifiedError: names the entry and what is wrong with it.
    """
    entries = split_entries(text, "objectives")
    if not entries:
        raise UnifiedError(f"the list of objectives is empty; the objectives are {', '.join(OBJECTIVES)}")
    objectives, weights = [], []
    for entry in entries:
        name, settings, weight = _split_entry(entry)
        weights.append(_weight(entry, weight))
        kind = OBJECTIVES[name] if name in OBJECTIVES else _load_class(entry, name, own_classes)
        objectives.append(_build(entry, name, kind, read_settings(settings, partial(_refusal, entry))))
    return Mixture(tuple(objectives), tuple(weights))


def _refusal(entry: str, problem: str) -> UnifiedError:
    return UnifiedError(f"objective {entry!r}: {problem}")


def _split_entry(entry: str) -> tuple[str, str, str]:
    """Name, text of the settings, and text of the weight of one entry."""
    head, bracket, rest = entry.partition("(")
    if bracket:
        settings, _, tail = rest.rpartition(")")
        tail = tail.strip()
        if tail and not tail.startswith(":"):
            raise _refusal(entry, f"{tail!r} after the settings; expected name(setting=value):weight")
        return head.strip(), settings, tail[1:] if tail else "1"
    name, *rest_of_entry = entry.split(":")
    # What follows the first colon is a class only where no objective is known by the name and it can be one.
    if name.strip() not in OBJECTIVES and rest_of_entry and rest_of_entry[0].strip().isidentifier():
        name = f"{name}:{rest_of_entry.pop(0)}"
    return name.strip(), "", ":".join(rest_of_entry) if rest_of_entry else "1"


def _weight(entry: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        raise _refusal(entry, f"the weight after the colon must be a number, got {text.strip()!r}") from None
    if not 0 <= weight < float("inf"):
        raise _refusal(entry, f"the weight must be a finite number of at least 0, got {text.strip()}")
    return weight


def _build(entry: str, name: str, kind: type[Objective], settings: dict[str, Any]) -> Objective:
    check_settings(kind, name, settings, partial(_refusal, entry))
    return kind(**settings)


def _load_class(entry: str, name: str, allowed: bool) -> type[Objective]:
    module_name, colon, class_name = name.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module_name):
        listed = ", ".join(OBJECTIVES)
        hint = nearest(name, OBJECTIVES)
        raise _refusal(entry, f"no objective {name!r}{hint}; known are {listed}, and any package.module:Class")
    if not allowed:
        raise _refusal(
            entry,
            "the checkpoint names a class of another library, and no checkpoint chooses what is imported; where you "
            "trust it, name it yourself: --task unified_lm --objectives '...'",
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        hint = nearest(module_name, OBJECTIVES)
        raise _refusal(entry, f"module {module_name} cannot be imported ({error}){hint}") from None
    kind = vars(module).get(class_name)
    if not isinstance(kind, type) or not is_dataclass(kind):
        raise _refusal(entry, f"module {module_name} has no dataclass {class_name!r}")
    if not issubclass(kind, Objective):
        raise _refusal(entry, f"{class_name} is not an objective; make it a subclass of unified.objectives.Objective")
    require_declared(kind)
    return kind
