"""fairseq's flags made from our dataclasses, so that no field is written twice."""

from __future__ import annotations

import dataclasses
import os
import typing
from typing import TYPE_CHECKING, Any, TypeVar

from fairseq.dataclass import FairseqDataclass
from fairseq.file_io import PathManager
from omegaconf import DictConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: Parsed options, by name as attributes; the class of a model's options is made at run time (:func:`mirror`).
Settings = Any
#: Name of the checkpoint that a training goes on from, in its folder; fairseq's default of ``--restore-file``.
LAST_CHECKPOINT = "checkpoint_last.pt"
_Ours = TypeVar("_Ours", bound="DataclassInstance")


def mirror(
    source: type[Any], name: str, without: tuple[str, ...] = (), **more: tuple[Any, object, str]
) -> type[FairseqDataclass]:
    """A FairseqDataclass with the fields, defaults and help sentences of ``source``.

    Args:
        source: a dataclass of ours whose fields carry ``metadata={"help": ...}``.
        name: name of the new class.
        without: fields that are no flags.
        more: further fields, ``name=(type, default, help)``.
    """
    types = typing.get_type_hints(source)
    fields = [
        (field.name, types[field.name], dataclasses.field(default=field.default, metadata=dict(field.metadata)))
        for field in dataclasses.fields(source)
        if field.name not in without
    ]
    fields += [
        (key, value_type, dataclasses.field(default=default, metadata={"help": sentence}))
        for key, (value_type, default, sentence) in more.items()
    ]
    return dataclasses.make_dataclass(name, fields, bases=(FairseqDataclass,))


def restore(target: type[_Ours], config: Settings, **fixed: Any) -> _Ours:
    """The instance of our dataclass ``target`` that a parsed config stands for; fields that it lacks have defaults."""
    names = {field.name for field in dataclasses.fields(target)} - set(fixed)
    return target(**{name: getattr(config, name) for name in names if name in config}, **fixed)


def trains(cfg: DictConfig) -> bool:
    """Whether a command trains a model for a task of ours.

    Commands that read a model name it by ``--path``, and tasks of others have no ``--no-export``.

    Args:
        cfg: all options of the command.
    """
    return cfg.common_eval.path is None and "no_export" in cfg.task


def last_checkpoint(cfg: DictConfig) -> str:
    """Path of the checkpoint that a training goes on from when its command is given again.

    Args:
        cfg: fairseq's options of checkpoints.
    """
    stem, suffix = os.path.splitext(LAST_CHECKPOINT)
    return os.path.join(cfg.save_dir, f"{stem}{cfg.checkpoint_suffix or ''}{suffix}")


def other_training(cfg: DictConfig) -> str | None:
    """The checkpoint of another training that this one begins with; None where it goes on from its own, or from none.

    A checkpoint in the folder that the training saves into is its own.

    Args:
        cfg: fairseq's options of checkpoints.
    """
    if cfg.restore_file != LAST_CHECKPOINT:
        own = os.path.dirname(os.path.abspath(cfg.restore_file)) == os.path.abspath(cfg.save_dir)
        return None if own else cfg.restore_file
    if PathManager.exists(last_checkpoint(cfg)):
        return None
    return cfg.continue_once or cfg.finetune_from_model
