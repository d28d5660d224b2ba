"""Reads a file of ``fairseq-train`` without fairseq: the model, its dictionary and how it writes.

It also writes such a file, for checkpoints that come from elsewhere.

The file is a dictionary: ``cfg["model"]`` holds the fields of :class:`TransformerConfig` and ``writes``,
``cfg["task"]["data"]`` the data folder, ``model`` the parameters, whose names begin with ``core.``.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import torch

from unified.arguments import require_integer, shown
from unified.checkpoints.files import fingerprint, load_checkpoint, save
from unified.checkpoints.heads import OPTIONAL_HEADS, heads_of_objectives
from unified.checkpoints.parameters import loaded
from unified.data.prepared_folder import require_data_folder
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError, naming
from unified.files.hashes import hashes
from unified.files.model_folders import CHECKPOINTS
from unified.generation.lengths import PairLengths
from unified.generation.schemes import SCHEMES
from unified.kernels.cpu import accelerate
from unified.model import TransformerConfig, UnifiedModel
from unified.reports.results import FILE_NAME, chosen_run, read_results
from unified.tokenization import PATTERNS, Tokenizer

logger = logging.getLogger(__name__)

#: Advice where a checkpoint's dictionary is not found.
_WHERE = f"copy dict.txt and the tokenizer's files ({PATTERNS}) beside it, or give data= to unified.load"
_CORE = "core."
_TOKENS = _CORE + "transformer.embeddings.tokens.weight"
_FINGERPRINT = "dictionary_version"  #: of fairseq_plugins.models
_TASKS = "UnifiedUnderstandingTask"  #: what fairseq_plugins.tasks keeps of the heads


def find_checkpoint(path: str | os.PathLike[str]) -> Path:
    """The checkpoint file that ``path`` is, or that the folder ``path`` holds.

    A folder with results gives the checkpoint that was scored, the folder of a grid that of the chosen run; any other
    folder its best checkpoint, or else its last.

    Raises:
        UnifiedError: the folder holds no checkpoint; names those of its folders that do.
    """
    path = Path(path)
    path = chosen_run(path / FILE_NAME) or path
    if not path.is_dir():
        return path
    for name in (*_scored(path), *CHECKPOINTS):
        if (path / name).is_file():
            return path / name
    inner = sorted({file.parent.name for name in CHECKPOINTS for file in path.glob(f"*/{name}")})
    instead = f"; name one of its folders that hold checkpoints: {', '.join(inner)}" if inner else ""
    raise UnifiedError(f"{path}: holds neither {' nor '.join(CHECKPOINTS)}{instead}")


def _scored(folder: Path) -> list[str]:
    """Names of the checkpoint files that the results of a folder are scores of.

    Where a run has several tasks, each has its results in a folder of its own.
    """
    own = folder / FILE_NAME
    results = read_results([own]) if own.is_file() else []
    for path in () if results else sorted(folder.glob(f"*/{FILE_NAME}")):
        results += [result for result in read_results([path]) if "together" in result]
    return [f"checkpoint_{result['checkpoint']}.pt" for result in results if "checkpoint" in result]


def find_data(path: Path, content: dict[str, Any], data: str | os.PathLike[str] | None = None) -> Path:
    """The folder with the dictionary of a checkpoint, see :func:`unified.load`."""
    if data is not None:
        dictionary_file(Path(data))
        return Path(data)
    if _dictionaries(path.parent):
        return path.parent
    trained_on = _task(content).get("data")
    if not isinstance(trained_on, str) or not trained_on or not trained_on.isprintable():
        raise UnifiedError(f"{path}: no dict.txt is beside it, and it names no data folder; {_WHERE}")
    folder = Path(trained_on.split(os.pathsep)[0])
    for found in (folder, path.parent / "data"):  # as `unified finetune` has it, wherever it was moved
        if _dictionaries(found):
            return found
    raise UnifiedError(f"{path}: there is no dictionary now in {folder}, on which it was trained; {_WHERE}")


def _dictionaries(folder: Path) -> list[Path]:
    return sorted(folder.glob("dict.txt")) or sorted(folder.glob("dict.*.txt"))


def dictionary_file(folder: Path) -> Path:
    """The ``dict.txt``, or ``dict.NAME.txt``, of a data folder."""
    require_data_folder(folder)
    found = _dictionaries(folder)
    if not found:
        raise UnifiedError(f"{folder}: holds no dict.txt; give a folder of `unified prepare` or fairseq-preprocess")
    return found[0]


@dataclass(frozen=True)
class Trained:
    """Contents of a checkpoint.

    Attributes:
        config: of the model, with the backend "auto": that is a matter of the machine one trained on.
        writes: the name of the decoding scheme, or "nothing".
        parameters: by the names of :class:`UnifiedModel`.
        vocabulary: what the rows of its tables stand for.
        heads: of a fine-tuned model: the class of each task head and its settings, see :func:`heads_of`.
        longest: tokens of the longest sequences that a fine-tuned model was trained on; None for a language model.
        lengths: of the pairs that it was fine-tuned on; all 0 where it has learned no pairs.
        objectives: what it was trained on last, in the notation of ``--objectives``; empty where nothing says it.
    """

    config: TransformerConfig
    writes: str
    parameters: dict[str, torch.Tensor]
    vocabulary: Vocabulary
    heads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    longest: int | None = None
    lengths: PairLengths = field(default_factory=PairLengths)
    objectives: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint file that has been loaded.

    Attributes:
        path: of the file.
        content: what it holds.
        folder: where its dictionary and its tokenizer are.
    """

    path: Path
    content: dict[str, Any]
    folder: Path

    @classmethod
    def load(cls, path: Path, data: str | os.PathLike[str] | None = None, mapped: bool = False) -> Checkpoint:
        """Loads a file and finds the folder with its dictionary.

        Args:
            data: the folder with the dictionary, see :func:`unified.load`.
            mapped: as in :func:`unified.checkpoints.files.load_safely`.

        Raises:
            UnifiedError: a file is missing or damaged.
        """
        content = load_checkpoint(path, mapped=mapped)
        return cls(path, content, find_data(path, content, data))

    def trained(self) -> Trained:
        """Reads what the file holds, and the dictionary.

        Raises:
            UnifiedError: it is no checkpoint of a language model, or dictionary and parameters do not belong together.
        """
        path, content = self.path, self.content
        settings = _plain(_plain(content.get("cfg")).get("model"))
        parameters = content.get("model")
        if not settings or not isinstance(parameters, dict) or _TOKENS not in parameters:
            raise UnifiedError(f"{path}: not a checkpoint of a unified_lm model")
        for name, value in parameters.items():
            if not isinstance(name, str) or not isinstance(value, torch.Tensor):
                raise UnifiedError(f"{path}: the parameter {shown(name)} is {shown(value)}, not a tensor by a name")
        writes = settings.get("writes")
        if not isinstance(writes, str) or writes not in (*SCHEMES, "nothing"):
            raise UnifiedError(f"{path}: does not say how the model writes (writes={shown(writes)})")
        vocabulary = Vocabulary.load(dictionary_file(self.folder))
        _check_vocabulary(path, parameters, vocabulary, self.folder)
        names = {field.name for field in fields(TransformerConfig)} - {"vocabulary_size", "attention_backend"}
        config = TransformerConfig(vocabulary_size=len(vocabulary), **{n: settings[n] for n in names & settings.keys()})
        core = {name.removeprefix(_CORE): value for name, value in parameters.items() if name != _FINGERPRINT}
        heads = heads_of(content)
        longest = sequence_length(content) if heads else None
        objectives = trained_objectives(content)
        return Trained(config, writes, core, vocabulary, heads, longest, pair_lengths(content), objectives)


def restore(checkpoint: Checkpoint) -> tuple[UnifiedModel, Trained, list[str]]:
    """The model of a checkpoint, what the file holds, and names of the parameters that it lacks, which are random.

    Raises:
        UnifiedError: as :meth:`Checkpoint.trained`, or the parameters do not fit the model.
    """
    path = checkpoint.path
    with naming(path):
        trained = checkpoint.trained()
        own = heads_of_objectives(trained.parameters, trained.heads)
        if own:
            logger.info("%s: left out, as only training reads it: %s", path, ", ".join(f"head {name}" for name in own))
        unused = [f"heads.{name}." for name in own]
        built = partial(UnifiedModel.for_language, trained.config)
        model, new = loaded(built, trained.parameters, OPTIONAL_HEADS, unused)
    return accelerate(model).eval(), trained, new


def heads_of(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """``head`` and ``settings`` of each task that a checkpoint was fine-tuned for; none for a language model."""
    return {name: _plain(head) for name, head in _plain(_plain(content.get("extra_state")).get(_TASKS)).items()}


def sequence_length(content: dict[str, Any]) -> int:
    """Tokens of the longest sequences that a checkpoint was trained on."""
    return require_integer("tokens_per_sample", _task(content).get("tokens_per_sample"), 1)


def contents(checkpoints: Sequence[Path], vocabulary: Vocabulary, tokenizer: Tokenizer | None) -> dict[str, str]:
    """SHA-256 of checkpoints, their dictionary and their tokenizer, by the names of their files."""
    with tempfile.TemporaryDirectory() as name:
        vocabulary.save(Path(name) / "dict.txt")
        if tokenizer is not None:
            tokenizer.save(Path(name))
        return hashes([*checkpoints, *sorted(Path(name).iterdir())])


def pair_lengths(content: dict[str, Any]) -> PairLengths:
    """Lengths of the pairs that a checkpoint was fine-tuned on; all 0 where it has learned no pairs."""
    return PairLengths.of_state(_plain(content.get("task_state")))


def trained_objectives(content: dict[str, Any]) -> str:
    """The objectives that a checkpoint was trained on, in the notation of ``--objectives``; empty if it names none."""
    objectives = _task(content).get("objectives") or ""
    if not isinstance(objectives, str):
        raise UnifiedError(f"objectives must be a text, got {shown(objectives)}")
    return objectives


def require_no_training(folder: Path) -> None:
    """Refuse a folder of which :func:`find_checkpoint` would take another checkpoint than :func:`write` writes.

    Raises:
        UnifiedError: names the file that says so.
    """
    for name in (FILE_NAME, CHECKPOINTS[0]):
        if (folder / name).exists():
            raise UnifiedError(f"{folder}: holds a training ({name}); name another folder for the model")


def write(trained: Trained, folder: Path) -> None:
    """Writes ``dict.txt`` and ``checkpoint_last.pt`` into ``folder``, as ``fairseq-train`` would, without an optimizer.

    Equal contents make equal files, whatever the folder is called: a run knows the checkpoint that it began from by its
    hash.
    """
    settings = {name: value for name, value in asdict(trained.config).items() if name != "vocabulary_size"}
    state = {f"{_CORE}{name}": value for name, value in trained.parameters.items()}
    state[_FINGERPRINT] = torch.tensor(fingerprint(trained.vocabulary.symbols))
    task: dict[str, Any] = {"_name": "unified_lm", "data": ""}  # dict.txt stands beside it
    if trained.objectives:
        task["objectives"] = trained.objectives
    of_tasks = {}
    if trained.heads:
        task |= {"_name": "unified_understanding", "tokens_per_sample": trained.longest}
        of_tasks = {_TASKS: {name: dict(head) for name, head in trained.heads.items()}}
    content = {
        "args": None,
        "cfg": {
            "_name": None,
            "model": {"_name": "unified_lm", "writes": trained.writes, **settings},
            "task": task,
        },
        "model": state,
        "criterion": None,
        "optimizer_history": [{"optimizer_name": None, "lr_scheduler_state": {"best": None}, "num_updates": 0}],
        "task_state": {} if trained.lengths == PairLengths() else trained.lengths.state(),
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0, "shuffle": True}, **of_tasks},
        "last_optimizer_state": None,
    }
    trained.vocabulary.save(folder / "dict.txt")
    save(content, folder / CHECKPOINTS[1])


def _check_vocabulary(path: Path, parameters: dict[str, Any], vocabulary: Vocabulary, folder: Path) -> None:
    table, saved = parameters[_TOKENS], parameters.get(_FINGERPRINT)
    if table.dim() != 2 or saved is not None and (saved.numel() != 1 or saved.is_complex()):
        raise UnifiedError(f"{path}: its table of symbols is no matrix, or {_FINGERPRINT} no number")
    rows = len(table)
    if rows != len(vocabulary):
        raise UnifiedError(f"{path}: has {rows} symbols, but the dictionary in {folder} has {len(vocabulary)}")
    if saved is not None and saved.item() != fingerprint(vocabulary.symbols):
        raise UnifiedError(f"{path}: was trained with another dictionary than the one in {folder}, of the same size")


def _task(content: dict[str, Any]) -> dict[str, Any]:
    """Settings of the task that a checkpoint was trained on."""
    return _plain(_plain(content.get("cfg")).get("task"))


def _plain(node: object) -> dict[str, Any]:
    """A node of fairseq's configuration as a dictionary."""
    if isinstance(node, argparse.Namespace):
        return vars(node)
    return node if isinstance(node, dict) else {}
