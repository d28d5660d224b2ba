"""Mixtures of objectives from text."""

from __future__ import annotations

from unified.arguments import require_text
from unified.errors import UnifiedError
from unified.notation import Entry, check_settings, named_class, parse_entries
from unified.objectives.catalogue import OBJECTIVES
from unified.objectives.contract import Objective
from unified.objectives.mixture import Mixture


def parse_objectives(text: str, own_classes: bool = True) -> Mixture:
    """Read a list of objectives such as ``bidirectional:2,long=random_spans(mean_span=32):1,package.module:Class:0.5``.

    The notation is that of :mod:`unified.notation`. A type is a name of
    :data:`unified.objectives.catalogue.OBJECTIVES` or ``module:Class``. An objective of weight 0 is left out.

    Args:
        own_classes: whether ``module:Class`` may be imported. Not where the text comes from a checkpoint.

    Raises:
        UnifiedError: names the entry and what is wrong with it, or ``text`` is no text.
    """
    entries = parse_entries(require_text("objectives", text), "objective", OBJECTIVES, classes=True, zero=True)
    if not entries:
        raise UnifiedError(f"the list of objectives is empty; the objectives are {', '.join(OBJECTIVES)}")
    objectives = tuple(_build(entry, own_classes) for entry in entries)
    names = tuple(entry.name or own.name for entry, own in zip(entries, objectives, strict=True))
    return Mixture(objectives, tuple(entry.weight for entry in entries), names)


def library_objectives(text: str) -> tuple[tuple[Objective, ...], tuple[str, ...]]:
    """The objectives of a checkpoint's list that are the library's, and the import paths of the others.

    Nothing is imported. Objectives of weight 0 are left out.

    Raises:
        UnifiedError: as :func:`parse_objectives`.
    """
    entries = parse_entries(require_text("objectives", text), "objective", OBJECTIVES, classes=True, zero=True)
    kept = [entry for entry in entries if entry.weight > 0]
    known = tuple(_build(entry, own_classes=False) for entry in kept if entry.type in OBJECTIVES)
    return known, tuple(entry.type for entry in kept if entry.type not in OBJECTIVES)


def _build(entry: Entry, own_classes: bool) -> Objective:
    if_trusted = None if own_classes else "--task unified_lm --objectives '...'"
    objective_class = named_class(entry.type, "objective", OBJECTIVES, Objective, entry.refusal, if_trusted=if_trusted)
    settings = entry.settings
    check_settings(objective_class, entry.type, settings, entry.refusal)
    return objective_class(**settings)
