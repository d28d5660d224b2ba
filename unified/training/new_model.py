"""The model that a training of objectives begins with: new, or a trained one with the heads that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unified.checkpoints import load_parameters
from unified.checkpoints.heads import prefixes
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.inference.language_model import UnifiedLM
from unified.kernels.cpu import accelerate
from unified.model import TransformerConfig, UnifiedModel
from unified.model.embeddings import SymbolTable
from unified.objectives.mixture import Mixture
from unified.training.model_checks import adapted, require_positions
from unified.training.pretraining import preset_named, sized
from unified.training.target_symbols import target_symbols

#: Advice for a folder that is given as a new model.
_FURTHER = "unified.load gives a trained one to go on from"


def new_model(
    model: str | TransformerConfig | UnifiedLM,
    vocabulary: Vocabulary,
    mixture: Mixture,
    row_length: int,
    files: Sequence[TokenFile],
) -> UnifiedModel:
    """A separate model with the heads that objectives need; new parameters are drawn from torch's random numbers.

    Args:
        model: a preset, a configuration, or a trained model, whose parameters are copied.
        vocabulary: of the data.
        row_length: tokens of a row.
        files: all texts of the training.

    Raises:
        UnifiedError: the model does not go with the vocabulary, the rows or the objectives.
    """
    config = _config(model, vocabulary, mixture, row_length)
    require_positions(config, row_length, str)
    built = accelerate(UnifiedModel.for_language(adapted(config, mixture, str), mixture.own_heads))
    if isinstance(model, UnifiedLM):
        state = model.model.state_dict()
        heads = prefixes([*state, *built.state_dict()])
        load_parameters(built, state, heads, heads)
        score_targets(built.symbols, files, mixture, vocabulary, row_length)
    return built


def _config(
    model: str | TransformerConfig | UnifiedLM, vocabulary: Vocabulary, mixture: Mixture, row_length: int
) -> TransformerConfig:
    if isinstance(model, str):
        return sized(preset_named(model, str, _FURTHER), len(vocabulary), row_length, mixture)
    if isinstance(model, TransformerConfig):
        if model.vocabulary_size not in (0, len(vocabulary)):
            raise UnifiedError(
                f"model: vocabulary_size is {model.vocabulary_size}, but the dictionary of the data has "
                f"{len(vocabulary)} symbols; leave it out"
            )
        return replace(model, vocabulary_size=len(vocabulary))
    if not isinstance(model, UnifiedLM):
        raise UnifiedError(
            "model must be the name of a preset, a TransformerConfig or a UnifiedLM (UnifiedLM.from_pretrained loads "
            f"one), got {model!r}"
        )
    if model.others:
        raise UnifiedError(f"model: an ensemble of {1 + len(model.others)} models cannot be trained; give one of them")
    if model.vocabulary.symbols != vocabulary.symbols:
        raise UnifiedError(
            f"model: its dictionary, from {model.folder}, is not that of the data; prepare the text by "
            f"`unified prepare --tokenizer {model.folder}`"
        )
    return model.model.config


def score_targets(
    table: SymbolTable, files: Sequence[TokenFile], mixture: Mixture, vocabulary: Vocabulary, row_length: int
) -> None:
    """Take symbols that the softmax of a model leaves out into it, where training has them as targets."""
    left_out = table.left_out.nonzero().squeeze(1).cpu().numpy().astype(np.int64)
    if left_out.size:
        table.score(target_symbols(left_out, files, mixture, vocabulary.special, row_length).tolist())
