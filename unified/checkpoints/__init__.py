"""Checkpoint files: written whole or not at all, read without executing anything in them."""

from unified.checkpoints.files import fingerprint, load_checkpoint, named_damage, save
from unified.checkpoints.parameters import load_parameters

__all__ = ["fingerprint", "load_checkpoint", "load_parameters", "named_damage", "save"]
