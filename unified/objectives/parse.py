"""Mixtures of objectives from text."""

from __future__ import annotations

from dataclasses import is_dataclass

from unified.errors import UnifiedError
from unified.notation import Entry, check_settings, imported, is_import_path, nearest, parse_entries
from unified.objectives.catalogue import OBJECTIVES
from unified.objectives.contract import Objective, require_declared
from unified.objectives.mixture import Mixture


def parse_objectives(text: str, own_classes: bool = True) -> Mixture:
    """Read a list of objectives such as ``bidirectional:2,long=random_spans(mean_span=32):1,package.module:Class:0.5``.

    The notation is that of :mod:`unified.notation`. A type is a name of
    :data:`unified.objectives.catalogue.OBJECTIVES` or ``module:Class``. An objective of weight 0 is left out.

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
    objective_class, settings = _class(entry, own_classes), entry.settings
    check_settings(objective_class, entry.type, settings, entry.refusal)
    return objective_class(**settings)


def _class(entry: Entry, own_classes: bool) -> type[Objective]:
    if entry.type in OBJECTIVES:
        return OBJECTIVES[entry.type]
    name = entry.type
    if not is_import_path(name):
        listed = ", ".join(OBJECTIVES)
        hint = nearest(name, OBJECTIVES)
        raise entry.refusal(f"no objective {name!r}{hint}; known are {listed}, and any package.module:Class")
    if not own_classes:
        raise entry.refusal(
            "the checkpoint names a class of another library, and no checkpoint chooses what is imported; where you "
            "trust it, name it yourself: --task unified_lm --objectives '...'",
        )
    module_name, _, class_name = name.partition(":")
    objective_class = imported(name, entry.refusal, nearest(module_name, OBJECTIVES))
    if not isinstance(objective_class, type) or not is_dataclass(objective_class):
        raise entry.refusal(f"module {module_name} has no dataclass {class_name!r}")
    if not issubclass(objective_class, Objective):
        raise entry.refusal(f"{class_name} is not an objective; make it a subclass of unified.objectives.Objective")
    require_declared(objective_class)
    return objective_class
