"""Parts shared by exports to ``transformers``: reading a checkpoint of ours, writing a folder of theirs."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from unified.arguments import shown
from unified.checkpoints.heads import OPTIONAL_HEADS, head_of
from unified.checkpoints.parameters import load_parameters
from unified.checkpoints.trained import Checkpoint, Trained, find_checkpoint
from unified.checkpoints.vocabularies import BIASES, BY_SYMBOL, SCORED
from unified.conversions.task_heads import Family
from unified.data.markers import markers_of
from unified.data.targets import BOUNDARY, EXTRACTIVE, PREDICTION_HEADS, TOKEN
from unified.errors import UnifiedError
from unified.files.destination import new_folder
from unified.files.model_folders import CONFIG
from unified.files.whole import write_whole_text
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import Tokenizer, load_tokenizer, tokenizer_files

#: Field of ``config.json`` with what ``transformers`` has no field for: how a model writes, our settings of a head.
OWN_SETTINGS = "unified"
#: Bias of a symbol that our softmax leaves out, for libraries that have no other way to say so. Not -inf, of which
#: weight decay makes NaN; half precision can hold it.
_NEVER = -1e4
#: Name of the file of the parameters.
WEIGHTS = "model.safetensors"
#: safetensors names an error of the system so, within its own words and without the name of the file.
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
#: Types of the weights in a folder.
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Source:
    """A model of ours that is to be exported.

    Attributes:
        name: what messages call it.
        trained: what it holds, its parameters on the CPU.
        tokenizer: its tokenizer; None where it has none.
        dtype: of the parameters in the folder that is made.
    """

    name: str
    trained: Trained
    tokenizer: Tokenizer | None
    dtype: torch.dtype = torch.float32

    @classmethod
    def read(cls, path: Path) -> Source:
        """Reads a checkpoint file or its folder, of a language model or of a fine-tuned model.

        Raises:
            UnifiedError: there is none, its dictionary is missing or another, or its parameters do not fit.
        """
        checkpoint = Checkpoint.load(find_checkpoint(path))
        tokenizer = load_tokenizer(checkpoint.folder) if tokenizer_files(checkpoint.folder) else None
        source = cls(str(checkpoint.path), checkpoint.trained(), tokenizer)
        load_parameters(UnifiedModel.for_language(source.config), source.of_language, OPTIONAL_HEADS)
        return source

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of parameters of heads of tasks, of heads of an objective's own, and of an LSTM below heads."""
        return tuple(
            name
            for name in self.trained.parameters
            if name.startswith("lstm.") or head_of(name) not in (None, *PREDICTION_HEADS)
        )

    @property
    def of_language(self) -> dict[str, torch.Tensor]:
        """Parameters of the Transformer and of the heads of a language model."""
        left_out = set(self.left_out)
        return {name: value for name, value in self.trained.parameters.items() if name not in left_out}

    @property
    def config(self) -> TransformerConfig:
        """The configuration of a language model of :attr:`of_language`.

        A model that was fine-tuned for tasks names heads of its pre-training that it has no longer.
        """
        config, heads = replace(self.trained.config, lstm=0), {head_of(name) for name in self.trained.parameters}
        if TOKEN not in heads:
            config = replace(config, token_head="none")
        if BOUNDARY not in heads:
            config = replace(config, boundary_offsets=0)
        return config if EXTRACTIVE in heads else replace(config, sentence_head=False)

    def exported_head(self, family: Family) -> tuple[str, Mapping[str, Any]] | None:
        """Name and record of the task head that the exported model has; None for the language model's heads.

        It is that of a model with one task, if ``family`` has a class for it and nothing stands below the head.
        """
        if len(self.trained.heads) != 1 or self.trained.config.lstm:
            return None
        ((name, record),) = self.trained.heads.items()
        return None if family.class_of(record) is None else (name, record)

    @property
    def other_mask(self) -> str | None:
        """Why models of ``transformers`` would read texts otherwise; None where they read them in both directions."""
        mask = self.trained.config.mask
        if mask == "bidirectional":
            return None
        return (
            f"the model reads texts under the mask {mask!r}; what it would be written as reads them in both directions "
            "and would give other states"
        )

    def other_tokenizer(self, needed: str) -> str:
        """Why a model cannot be exported whose tokenizer is not one of the ``needed`` ones."""
        has = "another tokenizer" if self.tokenizer else "no tokenizer"
        return f"the model has {has}; the class needs {needed}; the format unified takes any"

    def markers_beyond(self, symbols: Sequence[str]) -> list[str]:
        """Markers of the dictionary that are not among ``symbols``, see :mod:`unified.data.markers`."""
        known = set(symbols)
        return [symbol for symbol in markers_of(self.trained.vocabulary) if symbol not in known]

    def ordered(self, symbols: Sequence[str]) -> dict[str, torch.Tensor]:
        """The parameters, the rows of their tables in the order of ``symbols``.

        A symbol that is not in the dictionary has the row of the unknown one, and the softmax leaves it out.
        """
        parameters, vocabulary = self.trained.parameters, self.trained.vocabulary
        order = torch.tensor([vocabulary.index(symbol) for symbol in symbols])
        found = {name: value[order] if name in BY_SYMBOL else value for name, value in parameters.items()}
        known = set(vocabulary.symbols)
        found[SCORED] = found[SCORED] * torch.tensor([float(symbol in known) for symbol in symbols])
        return found

    def by_rows_of(self, symbols: Sequence[str]) -> dict[str, torch.Tensor]:
        """:meth:`ordered` for libraries whose softmax leaves no symbol out.

        Symbols that ours leaves out have so low a bias that they get no probability.
        """
        found = self.ordered(symbols)
        left_out = found.pop(SCORED) < 0.5
        for name in BIASES:
            if name in found:
                found[name] = found[name].masked_fill(left_out, _NEVER)
        return found


def has_plain_layers(config: TransformerConfig) -> bool:
    """Whether layers are as BERT and XLNet have them: no gate, no window, LayerNorm and linear maps with biases."""
    others = config.gated, config.linear_without_bias, any(config.windows), config.norm_type != "layer"
    return not any(others)


def with_own_fields(config: TransformerConfig, settings: Mapping[str, Any], names: Sequence[str]) -> TransformerConfig:
    """A configuration with those of the fields ``names`` that a ``config.json`` has among our own settings.

    Raises:
        UnifiedError: one has a value that is not built.
    """
    own = settings.get(OWN_SETTINGS) or {}
    return replace(config, **{name: own[name] for name in names if name in own})


def short_name(dtype: torch.dtype) -> str:
    """A dtype as ``config.json`` names it, such as "float16"."""
    return str(dtype).removeprefix("torch.")


def write_folder(
    destination: Path,
    settings: dict[str, Any],
    parameters: Mapping[str, torch.Tensor],
    save_tokenizer: Callable[[Path], object],
    dtype: torch.dtype,
) -> None:
    """``config.json``, ``model.safetensors`` and what ``save_tokenizer`` puts beside them; all of it or nothing.

    Raises:
        UnifiedError: ``dtype`` is none of :data:`DTYPES`, or cannot hold a parameter, whose name is said.
        OSError: a file cannot be written; its ``filename`` is the path below ``destination``.
    """
    if dtype not in DTYPES:
        raise UnifiedError(f"dtype must be one of {', '.join(map(str, DTYPES))}, got {shown(dtype)}")
    found = {name: value.to(dtype).contiguous() for name, value in parameters.items()}
    for name, value in found.items():
        if not value.isfinite().all():
            raise UnifiedError(f"{name} holds values that {short_name(dtype)} cannot hold; export float32 or bfloat16")
    with new_folder(destination, overwrite=False) as folder:
        text = json.dumps({**settings, "dtype": short_name(dtype)}, indent=2) + "\n"
        write_whole_text(folder / CONFIG, text)
        save_tokenizer(folder)
        try:
            save_file(found, folder / WEIGHTS, metadata={"format": "pt"})
        except SafetensorError as error:
            number = _SYSTEM_ERROR.search(str(error))
            if number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(folder / WEIGHTS)) from None
        shutil.copymode(folder / CONFIG, folder / WEIGHTS)  # else its owner alone may read it
