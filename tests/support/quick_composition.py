"""Composes fairseq's configuration as hydra does, in a fifth of the time.

hydra looks for groups in folders and packages, reads each of 290 values by a grammar, and sets it. fairseq keeps all of
its groups in hydra's store, and most values are the defaults.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegaconf import DictConfig

_ABSENT = object()


@cache
def install() -> None:
    """Have fairseq compose its configuration so in this process, and in those that it forks."""
    import fairseq.dataclass.utils as composing
    from omegaconf.errors import OmegaConfBaseException

    def quickly(name: str, overrides: list[str], strict: bool):
        try:
            return compose(overrides)
        except (KeyError, OmegaConfBaseException):  # hydra says what is wrong
            return compose_by_hydra(overrides)

    composing.compose = quickly
    composing.initialize = lambda config_path: nullcontext()


def compose(overrides: list[str]) -> DictConfig:
    """The configuration of texts such as ``task=unified_lm``, which chooses a group's entry, and ``task.memory=3``."""
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf, open_dict

    texts = list(map(_parsed, overrides))
    entries = dict(_default_entries()) | {group: entry for group, field, entry in texts if not field}
    store = ConfigStore.instance().repo
    configuration = deepcopy(_groups())
    with open_dict(configuration):
        for group, entry in entries.items():
            configuration[group] = store[group][f"{entry}.yaml"].node
    defaults = OmegaConf.to_container(configuration)
    for group, field, value in texts:
        # Most have the value that is there. 1, 1.0 and True are equal, and differ when written.
        if field and repr(defaults[group].get(field, _ABSENT)) != repr(value):
            OmegaConf.update(configuration, f"{group}.{field}", value, merge=True)
    return configuration


def compose_by_hydra(overrides: list[str]) -> DictConfig:
    """The configuration of these texts as hydra itself composes it."""
    import hydra

    with warnings.catch_warnings(action="ignore"):
        with hydra.initialize_config_module("fairseq.config", version_base="1.1"):
            return hydra.compose("config", overrides=overrides)


@cache
def _groups():
    """fairseq's configuration without any choice; to be copied, not changed."""
    from fairseq.dataclass.configs import FairseqConfig
    from omegaconf import OmegaConf

    return OmegaConf.structured(FairseqConfig)


@cache
def _default_entries() -> tuple[tuple[str, str], ...]:
    """Each group of which fairseq chooses an entry itself where nobody names one, and this entry."""
    import fairseq
    import yaml

    path = Path(fairseq.__file__).parent / "config" / "config.yaml"
    chosen = [one for one in yaml.safe_load(path.read_text(encoding="utf-8"))["defaults"] if isinstance(one, dict)]
    return tuple((group, entry) for one in chosen for group, entry in one.items() if entry)


@cache
def _parsed(text: str) -> tuple[str, str, object]:
    """Group, field ('' for the choice of an entry) and value, which hydra's grammar reads; most texts come again."""
    override = _parser().parse_rule(text, "override")
    group, _, field = override.key_or_group.partition(".")
    return group, field, override.value()


@cache
def _parser():
    from hydra.core.override_parser.overrides_parser import OverridesParser

    return OverridesParser.create()
