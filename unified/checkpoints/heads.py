"""Parameters of heads in a file: groups that belong together, and the groups that a model takes from another one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from unified.arguments import counted
from unified.data.targets import NEXT_SENTENCE, PREDICTION_HEADS, TOKEN
from unified.model import UnifiedModel
from unified.model.heads import LanguageModelHead

#: Begins the names of parameters of the token head.
TOKEN_HEAD = f"heads.{TOKEN}."
_POOLER = f"heads.{NEXT_SENTENCE}.pooler."
#: Modules of a language model that a checkpoint may lack: nothing that is asked of a loaded model reads them.
OPTIONAL_HEADS = (_POOLER, f"heads.{NEXT_SENTENCE}.classifier.")

_HEAD = re.compile(r"heads\.([^.]+)\.")
#: Class, ``head``, and ``settings`` of each task head by its name, as checkpoints keep them.
Heads = Mapping[str, Mapping[str, Any]]


def head_of(parameter: str) -> str | None:
    """The name of the head that a parameter of a model belongs to; None outside of heads."""
    found = _HEAD.match(parameter)
    return found[1] if found else None


def by_head(parameters: Iterable[str]) -> list[str]:
    """Heads that parameters belong to, such as "heads.token (7 parameters)"; parameters outside of heads by name."""
    counts = Counter(name if head is None else f"heads.{head}" for name, head in ((n, head_of(n)) for n in parameters))
    held = {name: counted(count, "parameter") for name, count in counts.items()}
    return [f"{name} ({held[name]})" if name.startswith("heads.") else name for name in counts]


def heads_of_objectives(parameters: Iterable[str], tasks: Iterable[str]) -> list[str]:
    """Names of heads that an objective brought along, which are neither the library's nor those of ``tasks``."""
    found = dict.fromkeys(head for head in map(head_of, parameters) if head is not None)
    return [head for head in found if head not in {*PREDICTION_HEADS, *tasks}]


def prefixes(parameters: Iterable[str]) -> tuple[str, ...]:
    """Prefixes of the parameters of each head."""
    return tuple(dict.fromkeys(f"heads.{name}." for name in map(head_of, parameters) if name is not None))


def task_head_prefixes(model: UnifiedModel) -> tuple[str, ...]:
    """Prefixes of the parameters of each task head, and of each module in it."""
    heads = tuple(f"heads.{name}." for name in model.task_heads)
    modules = (f"heads.{name}.{own}." for name, head in model.task_heads.items() for own, _ in head.named_children())
    return heads + tuple(modules)


def start_new_token_head(model: UnifiedModel, new: Iterable[str]) -> bool:
    """Start the token head of a model by :meth:`unified.model.heads.LanguageModelHead.start_as_readout` if it is new.

    Args:
        new: parameters of the model that the checkpoint lacks, as
            :func:`unified.checkpoints.parameters.load_parameters` returns them.

    Returns:
        Whether the token head is among them.
    """
    head = model.prediction_heads.get(TOKEN)
    if not isinstance(head, LanguageModelHead) or not any(name.startswith(TOKEN_HEAD) for name in new):
        return False
    head.start_as_readout()
    return True


def with_pooler(parameters: Mapping[str, torch.Tensor], model: UnifiedModel) -> dict[str, torch.Tensor]:
    """Parameters of a language model with the pooler of its next-sentence head as that of each task with a pooler."""
    poolers = [name for name, head in model.task_heads.items() if head.takes_pooler]
    if not poolers or not any(name.startswith(_POOLER) for name in parameters):
        return dict(parameters)
    kept = {name: value for name, value in parameters.items() if not name.startswith(_POOLER)}
    for head in poolers:
        for name in ("weight", "bias"):
            kept[f"heads.{head}.pooler.{name}"] = parameters[_POOLER + name]
    return kept


def without_other_labels(
    parameters: Mapping[str, torch.Tensor], model: UnifiedModel, others: Iterable[str] = ()
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Parameters without the modules of task heads that are for other labels in ``model``, or have another size there.

    Args:
        others: prefixes of modules that are for other labels, see :func:`modules_of_other_labels`.

    Returns:
        What is left, and the names of what is not.
    """
    own, every = model.state_dict(), task_head_prefixes(model)
    differ = [name for name, value in parameters.items() if name in own and value.shape != own[name].shape]
    sizes = [max(holders, key=len) for name in differ if (holders := [*filter(name.startswith, every)])]
    modules = (*sizes, *others)
    left_out = [name for name in parameters if name.startswith(modules)]
    return {name: value for name, value in parameters.items() if name not in left_out}, left_out


def modules_of_other_labels(kept: Heads, learnt: Heads, model: UnifiedModel) -> list[str]:
    """Prefixes of the parameters of ``model`` that stand for other labels than in a checkpoint, or for another task.

    Args:
        kept: heads of the checkpoint, see :func:`unified.checkpoints.trained.heads_of`.
        learnt: heads that the model has.
    """
    found: list[str] = []
    for name, head in learnt.items():
        before, modules = kept.get(name, head), model.task_heads[name].label_modules
        if before.get("head") != head["head"]:
            found.append(f"heads.{name}.")
        elif _labels(before) != _labels(head):
            found += [f"heads.{name}."] if modules is None else [f"heads.{name}.{module}." for module in modules]
    return found


def _labels(head: Mapping[str, Any]) -> list[object]:
    """The labels among the settings of a head; none where it has none, or what a checkpoint keeps is no list."""
    settings = head.get("settings")
    labels = settings.get("labels") if isinstance(settings, Mapping) else None
    return list(labels) if isinstance(labels, list | tuple) else []
