"""Limits of what a checkpoint's settings may choose: no module to import, nothing that fairseq evaluates as Python.

fairseq-validate builds the task, the model and the criterion that a checkpoint names. Many of fairseq's own pass their
settings to ``eval``, such as the layers of ``fconv``; and an objective may be a class of any module.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from fairseq import checkpoint_utils, tasks
from fairseq.distributed import utils as distributed_utils
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.registry import REGISTRIES

from fairseq_plugins.config import Settings
from fairseq_plugins.refusals import refusing
from unified.errors import UnifiedError
from unified.notation import is_import_path
from unified.runtime.processes import guarded_children

#: Options of the command that loads a checkpoint and its task, which stand in for what the checkpoint says.
_given: ContextVar[Mapping[str, object] | None] = ContextVar("given", default=None)


def is_given(option: str) -> bool:
    """True where the command line sets an option, instead of the checkpoint.

    Args:
        option: its name as fairseq stores it, such as ``objectives``.
    """
    return option in (_given.get() or {})


def check_model(cfg: Settings) -> None:
    """Refuse the settings of a model in a checkpoint where it is one of fairseq's own, or names a module to import."""
    _check("model", {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}, cfg)
    backend = str(_settings(cfg).get("attention_backend"))
    if is_import_path(backend) and not is_given("attention_backend"):
        raise UnifiedError(
            f"the checkpoint names the attention backend {backend} of another library, and no checkpoint chooses what "
            "is imported; where you trust it, name it yourself: --model-overrides \"{'attention_backend': '...'}\""
        )


def check_criterion(cfg: Settings) -> None:
    """Refuse the settings of a criterion in a checkpoint where it is one of fairseq's own."""
    _check("criterion", REGISTRIES["criterion"]["registry"], cfg)


def install() -> None:
    """Wraps the functions of fairseq that build objects named by a checkpoint; fairseq looks them up at every call."""
    checkpoint_utils.load_model_ensemble_and_task = noting_options(checkpoint_utils.load_model_ensemble_and_task)
    tasks.setup_task = checking_tasks(tasks.setup_task)
    distributed_utils.call_main = guarded_children()(distributed_utils.call_main)


def noting_options(load: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's function that loads models, during which :func:`is_given` knows the options of the command."""

    def load_model_ensemble_and_task(
        filenames: list[str], arg_overrides: Mapping[str, object] | None = None, *arguments: Any, **keywords: Any
    ) -> Any:
        token = _given.set(arg_overrides)
        try:
            return load(filenames, arg_overrides, *arguments, **keywords)
        finally:
            _given.reset(token)

    return load_model_ensemble_and_task


def checking_tasks(setup: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's function that makes a task, which refuses one of fairseq's own where a checkpoint names it."""

    def setup_task(cfg: Settings, **keywords: Any) -> Any:
        if keywords.get("from_checkpoint"):
            with refusing():
                _check("task", tasks.TASK_REGISTRY, cfg)
        return setup(cfg, **keywords)

    return setup_task


def _check(registry: str, known: Mapping[str, type[Any]], cfg: Settings) -> None:
    names = _names(registry, cfg)
    if not names:
        raise UnifiedError(f"the checkpoint names a {registry} None, which is not known")
    for name in names:
        if name not in known:
            raise UnifiedError(f"the checkpoint names a {registry} {name!r}, which is not known")
        if known[name].__module__.partition(".")[0] == "fairseq":
            raise UnifiedError(
                f"the checkpoint names the {registry} {name!r} of fairseq itself, whose settings may be evaluated as "
                "Python; where you trust it, leave --user-dir out"
            )


def _names(registry: str, cfg: Settings) -> list[str]:
    """All names of objects that fairseq may build."""
    if isinstance(cfg, str):
        return [cfg]
    settings = _settings(cfg)
    return [settings[key] for key in ("_name", registry, "arch") if isinstance(settings.get(key), str)]


def _settings(cfg: Settings) -> Mapping[str, Any]:
    """The settings in a checkpoint by name; none where only a name stands there."""
    if isinstance(cfg, str):
        return {}
    return vars(cfg) if isinstance(cfg, Namespace) else cfg or {}
