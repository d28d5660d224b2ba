"""What exports to ``transformers`` share: reading a checkpoint of ours, and writing a folder of theirs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from unified.checkpoints.files import load_checkpoint
from unified.checkpoints.heads import OPTIONAL_HEADS, TOKEN_HEAD, head_of
from unified.checkpoints.parameters import load_parameters
from unified.checkpoints.trained import find_checkpoint, find_data, read
from unified.checkpoints.vocabularies import BIASES, BY_SYMBOL, SCORED
from unified.data.markers import markers_of
from unified.data.targets import PREDICTION_HEADS
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.files.destination import new_folder
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import Tokenizer, tokenizer_files

#: Bias of a symbol that our softmax leaves out, for libraries that have no other way to say so. Not -inf, of which
#: weight decay makes NaN; half precision can hold it.
_NEVER = -1e4


@dataclass(frozen=True)
class Source:
    """A checkpoint of ours.

    Attributes:
        path: the file.
        data: the folder with its dictionary and tokenizer.
        config, parameters, vocabulary: what it holds; of heads those of a language model.
        left_out: names of parameters of other heads, of tasks or of an objective's own, and of an LSTM below them.
    """

    path: Path
    data: Path
    config: TransformerConfig
    parameters: dict[str, torch.Tensor]
    vocabulary: Vocabulary
    left_out: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Source:
        """Reads a checkpoint file or its folder, of a language model or of a fine-tuned model.

        Raises:
            UnifiedError: there is none, its dictionary is missing or another, or its parameters do not fit; or it reads
                texts under a mask that models of ``transformers`` would not apply.
        """
        path = find_checkpoint(path)
        content = load_checkpoint(path)
        data = find_data(path, content)
        trained = read(path, content, data)
        if trained.config.mask != "bidirectional":
            raise UnifiedError(
                f"{path}: the model reads texts under the mask {trained.config.mask!r}; what it would be written as "
                "reads them in both directions and would give other states"
            )
        of_tasks = tuple(
            name
            for name in trained.parameters
            if name.startswith("lstm.") or head_of(name) not in (None, *PREDICTION_HEADS)
        )
        parameters = {name: value for name, value in trained.parameters.items() if name not in of_tasks}
        config = replace(trained.config, lstm=0)
        if not any(name.startswith(TOKEN_HEAD) for name in parameters):
            config = replace(config, token_head="none")
        load_parameters(UnifiedModel.for_language(config), parameters, OPTIONAL_HEADS)
        return cls(path, data, config, parameters, trained.vocabulary, of_tasks)

    def tokenizer_file(self, name: str, what: str) -> Path:
        """The file ``name`` of the tokenizer that the exported folder needs, ``what`` in words.

        Raises:
            UnifiedError: the data folder has another tokenizer, or none.
        """
        path = self.data / name
        if not path.is_file():
            found = " and ".join(tokenizer_files(self.data)) or "no tokenizer"
            raise UnifiedError(f"{self.data}: holds {found}; an export to that format needs {what} ({name})")
        return path

    def markers_beyond(self, tokenizer: Tokenizer) -> list[str]:
        """Markers of the dictionary that the tokenizer lacks, see :mod:`unified.data.markers`."""
        known = set(tokenizer.native_symbols())
        return [symbol for symbol in markers_of(self.vocabulary) if symbol not in known]

    def by_rows_of(self, symbols: Sequence[str]) -> dict[str, torch.Tensor]:
        """The parameters, the rows of their tables in the order of ``symbols``.

        Symbols that the softmax leaves out have so low a bias that they get no probability.
        """
        order = torch.tensor([self.vocabulary.index(symbol) for symbol in symbols])
        found = {name: value[order] if name in BY_SYMBOL else value for name, value in self.parameters.items()}
        left_out = found.pop(SCORED) < 0.5
        for name in BIASES:
            if name in found:
                found[name] = found[name].masked_fill(left_out, _NEVER)
        return found


def write_folder(
    destination: Path,
    settings: dict[str, Any],
    parameters: dict[str, torch.Tensor],
    save_tokenizer: Callable[[Path], object],
) -> None:
    """``config.json``, ``model.safetensors`` and what ``save_tokenizer`` puts beside them; all of it or nothing."""
    with new_folder(destination, overwrite=False) as folder:
        (folder / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        save_tokenizer(folder)
        save_file(parameters, folder / "model.safetensors", metadata={"format": "pt"})
