"""Loads a file's parameters into a module, and names those that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from unified.errors import UnifiedError, first_few
from unified.model.embeddings import MOST_TOKEN_TYPES, extend_positions, extend_token_types

#: Ends of the names of tables that may have another number of rows than the module's.
POSITIONS, TOKEN_TYPES = "embeddings.positions.weight", "embeddings.token_types.weight"
_SHOWN = 8
_FIRST_VALUES = (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)
ModuleT = TypeVar("ModuleT", bound=nn.Module)


def load_parameters(
    module: nn.Module,
    state_dict: Mapping[str, torch.Tensor],
    new_allowed_prefixes: Iterable[str] = (),
    unused_allowed_prefixes: Iterable[str] = (),
) -> tuple[list[str], list[str]]:
    """Copy ``state_dict`` into ``module``; only whole heads may be missing or left over.

    A position table of another length is cut, or continued cyclically, to the module's rows; a token-type table of two
    rows is extended to more as UniLM does, see :func:`extend_token_types`.

    Args:
        new_allowed_prefixes: a submodule whose names start so may be missing as a whole; it stays as it is.
        unused_allowed_prefixes: parameters of the file whose names start so may be left over, all of them.

    Returns:
        Names of the module's parameters that were not in the file, and names in the file that were not used.

    Raises:
        UnifiedError: names are missing or unknown, or shapes differ; one message lists them, the module is untouched.
    """
    fitting, new, unused = _fitting(module.state_dict(), state_dict, new_allowed_prefixes, unused_allowed_prefixes)
    module.load_state_dict(fitting, strict=False)
    return new, unused


def _fitting(
    own: Mapping[str, torch.Tensor],
    state_dict: Mapping[str, torch.Tensor],
    new_allowed_prefixes: Iterable[str],
    unused_allowed_prefixes: Iterable[str],
) -> tuple[dict[str, torch.Tensor | None], list[str], list[str]]:
    """Returns the values of a file for the parameters ``own``, and both lists of :func:`load_parameters`."""
    new = [name for name in own if name not in state_dict]
    unused = [name for name in state_dict if name not in own]
    problems = [f"missing: {name}" for name in new if not _whole(name, new_allowed_prefixes, present=state_dict)]
    problems += [f"unknown: {name}" for name in unused if not _whole(name, unused_allowed_prefixes, present=own)]
    fitting: dict[str, torch.Tensor | None] = {}
    for name, wanted in own.items():
        if name in state_dict:
            value, problem = _fit(name, state_dict[name], wanted)
            fitting[name] = value
            problems += [problem] if problem else []
    if problems:
        raise UnifiedError(f"the checkpoint's parameters do not fit the model: {listed(problems)}")
    return fitting, new, unused


def without_values(built: Callable[[], nn.Module]) -> dict[str, torch.Tensor]:
    """The parameters and buffers of the module that ``built`` makes, on the device ``meta``: they take no memory."""
    with torch.device("meta"), _NoFirstValues():
        return built().state_dict()


class _NoFirstValues(TorchFunctionMode):
    """Draws no first values for parameters: where they have no memory, torch imports its compiler for it (1.7 s)."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _FIRST_VALUES:
            return kwargs["tensor"]  # torch passes all arguments of these by name
        return func(*args, **kwargs)


def loaded(
    built: Callable[[], ModuleT],
    state_dict: Mapping[str, torch.Tensor],
    new_allowed_prefixes: Iterable[str] = (),
    unused_allowed_prefixes: Iterable[str] = (),
) -> tuple[ModuleT, list[str]]:
    """A module with the parameters of a file, which takes memory only where they fit it.

    Args:
        built: makes the module; it is called twice, first without memory for its parameters.

    Returns:
        The module, and names of its parameters that were not in the file, as of :func:`load_parameters`.

    Raises:
        UnifiedError: as :func:`load_parameters`; or a table of positions has another number of rows than the file's.
    """
    own = without_values(built)
    for name in filter(state_dict.__contains__, own):
        value = state_dict[name]
        if name.endswith(POSITIONS) and isinstance(value, torch.Tensor) and value.shape != own[name].shape:
            raise UnifiedError(f"{name}: shape {shape_name(value)}, the settings say {shape_name(own[name])}")
    _fitting(own, state_dict, new_allowed_prefixes, unused_allowed_prefixes)
    module = built()
    new, _ = load_parameters(module, state_dict, new_allowed_prefixes, unused_allowed_prefixes)
    return module, new


def _whole(name: str, prefixes: Iterable[str], present: Iterable[str]) -> bool:
    """Whether ``name`` belongs to an allowed module of which the other side has nothing at all."""
    return any(name.startswith(prefix) and not any(p.startswith(prefix) for p in present) for prefix in prefixes)


def _fit(name: str, value: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor | None, str | None]:
    """The value to load, or why there is none."""
    wrong = wrong_kind(value)
    if wrong is not None:
        return None, f"{name}: {wrong}"
    if name.endswith(POSITIONS) and value.dim() == 2 and value.shape[1:] == wanted.shape[1:] and len(value):
        return extend_positions(value, len(wanted)), None
    if name.endswith(TOKEN_TYPES) and value.shape == (2, *wanted.shape[1:]) and 2 < len(wanted) <= MOST_TOKEN_TYPES:
        return extend_token_types(value, len(wanted)), None
    if value.shape != wanted.shape:
        return None, f"{name}: shape {shape_name(value)}, the model has {shape_name(wanted)}"
    return value, None


def wrong_kind(value: object) -> str | None:
    """Says why a value is no tensor of real numbers, whatever its shape; None where it is one."""
    if not isinstance(value, torch.Tensor):
        return f"expected a tensor, got {type(value).__name__}"
    if value.is_complex() or value.layout != torch.strided:
        return "expected real numbers, one beside the other"
    return None


def listed(problems: Sequence[str]) -> str:
    """One line with the first few, and how many more there are."""
    return first_few(problems, _SHOWN)


def shape_name(tensor: torch.Tensor) -> str:
    """Shape of a tensor as text, such as 3x768."""
    return "x".join(map(str, tensor.shape)) or "scalar"
