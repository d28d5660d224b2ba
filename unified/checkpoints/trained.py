"""From the file that ``fairseq-train`` wrote to the model, its dictionary and the way it writes, without fairseq.

The file is a dictionary: ``cfg["model"]`` holds the fields of :class:`TransformerConfig` and ``writes``,
``cfg["task"]["data"]`` the data folder, ``model`` the parameters, whose names begin with ``core.``.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import fields
from pathlib import Path

from unified.checkpoints.files import fingerprint
from unified.checkpoints.parameters import load_parameters
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation.decoder import SCHEMES
from unified.model import LanguageModel, TransformerConfig

#: Looked for in this order where a folder is given instead of a file.
CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt")
_CORE = "core."
_TOKENS = _CORE + "transformer.embeddings.tokens.weight"
_FINGERPRINT = "dictionary_fingerprint"


def find_checkpoint(path: str | os.PathLike) -> Path:
    """The checkpoint file that ``path`` is, or holds."""
    path = Path(path)
    if not path.is_dir():
        return path
    for name in CHECKPOINTS:
        if (path / name).is_file():
            return path / name
    raise UnifiedError(f"{path}: holds neither {' nor '.join(CHECKPOINTS)}")


def find_data(path: Path, content: dict, data: str | os.PathLike | None = None) -> Path:
    """The folder with the dictionary of a checkpoint, see :meth:`UnifiedLM.from_pretrained`."""
    if data is not None:
        dictionary_file(Path(data))
        return Path(data)
    if _dictionaries(path.parent):
        return path.parent
    trained_on = _plain(_plain(content.get("cfg")).get("task")).get("data")
    if not trained_on:
        raise UnifiedError(f"{path}: says nothing of its data folder; name the folder with its dictionary (data=)")
    folder = Path(str(trained_on).split(os.pathsep)[0])
    if not _dictionaries(folder):
        raise UnifiedError(
            f"{path}: was trained on {folder}, where there is no dictionary now; name its folder (data=)"
        )
    return folder


def _dictionaries(folder: Path) -> list[Path]:
    return sorted(folder.glob("dict.txt")) or sorted(folder.glob("dict.*.txt"))


def dictionary_file(folder: Path) -> Path:
    """The ``dict.txt``, or ``dict.NAME.txt``, of a data folder."""
    found = _dictionaries(folder)
    if not found:
        raise UnifiedError(f"{folder}: holds no dict.txt; give a folder of `unified prepare` or fairseq-preprocess")
    return found[0]


def restore(path: Path, content: dict, folder: Path) -> tuple[LanguageModel, Vocabulary, str]:
    """The model of a loaded checkpoint, the vocabulary in ``folder``, and the name of the decoding scheme.

    Raises:
        UnifiedError: it is no checkpoint of a language model, or dictionary and parameters do not belong together.
    """
    settings = _plain(_plain(content.get("cfg")).get("model"))
    parameters = content.get("model")
    if not settings or not isinstance(parameters, dict) or _TOKENS not in parameters:
        raise UnifiedError(f"{path}: not a checkpoint of a unified_lm model")
    writes = settings.get("writes")
    if writes not in (*SCHEMES, "nothing"):
        raise UnifiedError(f"{path}: does not say how the model writes (writes={writes!r})")
    vocabulary = Vocabulary.load(dictionary_file(folder))
    _check_vocabulary(path, parameters, vocabulary, folder)
    # The backend is a matter of the machine one trained on.
    names = {field.name for field in fields(TransformerConfig)} - {"vocabulary_size", "attention_backend"}
    chosen = {name: settings[name] for name in names & settings.keys()}
    model = LanguageModel(TransformerConfig(vocabulary_size=len(vocabulary), **chosen))
    core = {name.removeprefix(_CORE): value for name, value in parameters.items() if name != _FINGERPRINT}
    load_parameters(model, core, new_allowed_prefixes=["next_sentence_head.pooler.", "next_sentence_head.classifier."])
    return model.eval(), vocabulary, writes


def _check_vocabulary(path: Path, parameters: dict, vocabulary: Vocabulary, folder: Path) -> None:
    rows, saved = len(parameters[_TOKENS]), parameters.get(_FINGERPRINT)
    if rows != len(vocabulary):
        raise UnifiedError(f"{path}: has {rows} symbols, but the dictionary in {folder} has {len(vocabulary)}")
    if saved is not None and int(saved) != fingerprint(vocabulary.symbols):
        raise UnifiedError(f"{path}: was trained with another dictionary than the one in {folder}, of the same size")


def _plain(node: object) -> dict:
    """A node of fairseq's configuration as a dictionary."""
    if isinstance(node, argparse.Namespace):
        return vars(node)
    return node if isinstance(node, dict) else {}
