"""The one Transformer as a fairseq model: a batch in for training, encoder and decoder to the generator."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypedDict

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
    BaseFairseqModel,
    FairseqEncoder,
    FairseqIncrementalDecoder,
    register_model,
    register_model_architecture,
)

from fairseq_plugins.config import Settings, mirror, restore
from fairseq_plugins.parameter_groups import mark_parameters
from fairseq_plugins.refusals import refusal, refusing
from fairseq_plugins.task import KEPT_HEADS, DictionaryTask
from unified.checkpoints import fingerprint, load_parameters
from unified.checkpoints.heads import (
    OPTIONAL_HEADS,
    Heads,
    by_head,
    head_of,
    modules_of_other_labels,
    prefixes,
    start_new_token_head,
    task_head_prefixes,
    with_pooler,
    without_other_labels,
)
from unified.checkpoints.vocabularies import BY_SYMBOL, grown
from unified.data.example import Batch
from unified.errors import UnifiedError
from unified.generation.cache import SourceCache
from unified.generation.decoder import CachedDecoder
from unified.generation.schemes import SCHEMES
from unified.kernels.cpu import accelerate
from unified.model import PRESETS, TransformerConfig, UnifiedModel
from unified.tasks.heads.base import Reading

logger = logging.getLogger(__name__)

UnifiedLMModelConfig = mirror(
    TransformerConfig,
    "UnifiedLMModelConfig",
    without=("vocabulary_size",),
    writes=(
        str,
        "auto",
        "how the model writes text: 'cloze' ([MASK] asks for the next token), 'next' (the last token predicts it), "
        "'left_to_right' (continues a prompt), 'permutation' (continues it by a query stream), 'nothing'; 'auto' "
        "follows the objectives",
    ),
    compile_layers=(
        bool,
        False,
        "train by layers compiled by torch.compile: for GPUs and rows of one length; compiling takes a minute or more",
    ),
)


@register_model("unified_lm", dataclass=UnifiedLMModelConfig)
class UnifiedLMModel(BaseFairseqModel):
    """Wraps :class:`unified.model.UnifiedModel` (``core``), for pre-training and for tasks."""

    def __init__(self, core: UnifiedModel, task: DictionaryTask, writes: str):
        super().__init__()
        self.core = core
        #: A function that finds symbols that training has as targets, see :mod:`unified.training.target_symbols`; None
        #: where the model is not trained. A copy of the model (a moving average) shares it.
        self.target_symbols: Callable[[np.ndarray], np.ndarray] | None = None
        #: Whether the model is read as a checkpoint has it, and not trained: its task heads are then not new.
        self.of_checkpoint = False
        #: Class and settings of each task head that is trained, as checkpoints keep them.
        self.learnt_heads: Heads = {}
        # Equal sizes do not make equal dictionaries. fairseq's moving average (--store-ema) leaves a "version" alone.
        self.symbols = task.target_dictionary.symbols
        self.register_buffer("dictionary_version", torch.tensor(fingerprint(self.symbols)))
        self.encoder = self.decoder = None
        if writes != "nothing":
            decoder = CachedDecoder(core, task.special, SCHEMES[writes])
            self.encoder = SourceEncoder(task.source_dictionary, decoder)
            self.decoder = CachingDecoder(task.target_dictionary, decoder)

    @classmethod
    @refusing()
    def build_model(cls, cfg: Settings, task: DictionaryTask) -> UnifiedLMModel:
        if cfg.writes not in (*SCHEMES, "nothing"):
            raise UnifiedError(f"--writes {cfg.writes}: expected one of {', '.join(SCHEMES)}, nothing or auto")
        config = restore(TransformerConfig, cfg, vocabulary_size=len(task.target_dictionary))
        core = accelerate(task.build_core(config))
        mark_parameters(core)
        if "compile_layers" in cfg and cfg.compile_layers:  # converted checkpoints do not have it
            core.transformer.compile_layers()
        return cls(core, task, cfg.writes)

    @refusing()
    def forward(self, batch: Batch, *, head: str | None = None, reading: Reading | None = None, **keywords: Any) -> Any:
        """Losses by name, see :meth:`UnifiedModel.forward`; where the head of a task is named, its scores.

        Distributed training wants everything that learns to come through here.
        """
        if head is None:
            return self.core(batch, **keywords)
        assert reading is not None  # it comes with the head
        return self.core.scores(batch, reading, head)

    def max_positions(self) -> int | None:
        return None

    def max_decoder_positions(self) -> int:
        """Tokens of the longest row that the model has positions for."""
        return self.core.config.position_limit

    @refusing()
    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, model_cfg: object = None, args: object = None
    ) -> None:
        """Load all parameters; whole heads may be new or unused (both are named), anything else is refused.

        Modules of task heads that are for other labels, or have another size, are new.

        Symbols that the dictionary has behind the checkpoint's, such as markers that a task adds, get new rows.
        """
        state = dict(state_dict)
        saved, kept = int(state.pop("dictionary_version", self.dictionary_version)), state.pop(KEPT_HEADS, {})
        parameters = {key.removeprefix("core."): value for key, value in state.items()}
        parameters, added = grown(parameters, self.symbols, saved, self.core.config.initializer_range)
        if not added and saved != int(self.dictionary_version):
            raise refusal(_other_dictionary(parameters, len(self.symbols)))
        others = modules_of_other_labels(kept, self.learnt_heads, self.core)
        parameters, other = without_other_labels(with_pooler(parameters, self.core), self.core, others)
        heads = prefixes([*parameters, *self.core.state_dict()])
        optional = (*heads, *OPTIONAL_HEADS, *task_head_prefixes(self.core), "lstm.")
        new, unused = load_parameters(self.core, parameters, optional, optional)
        random = [name for name in new if head_of(name) in self.core.task_heads]
        if self.of_checkpoint and random:
            raise refusal(
                f"the checkpoint lacks parameters of its task, which would be random: {', '.join(by_head(random))}"
            )
        readout = start_new_token_head(self.core, new)
        fates = {
            "parameters that the checkpoint lacks, initialised at random": new,
            "parameters of the checkpoint that are unused, left out": by_head(unused),
            "parameters of the checkpoint that are for other labels, left out": other,
        }
        for fate, names in fates.items():
            if names:
                logger.info("%s: %s", fate, ", ".join(names))
        if readout:
            logger.info("the new token head starts by comparing states with embeddings")
        if added:
            logger.info("symbols that the checkpoint lacks, with new rows: %d%s", len(added), _examples(added))
        if strict:  # not the moving average, which is loaded again at every update and follows the model
            self._score_targets()

    def _score_targets(self) -> None:
        """Take symbols that the checkpoint's softmax leaves out into it, where training has them as targets."""
        table = self.core.transformer.embeddings.tokens
        left_out = table.left_out.nonzero().squeeze(1).cpu().numpy()
        if self.target_symbols is None or not left_out.size:
            return
        used = self.target_symbols(left_out)
        table.score(used.tolist())
        if self.core.transformer.config.token_head == "none":
            return  # no softmax over symbols, so there is nothing to say
        logger.info(
            "symbols that the checkpoint's softmax left out: %d; now in it, as targets have them: %d%s",
            len(left_out),
            len(used),
            _examples([self.symbols[i] for i in used]),
        )


class _EncoderOut(TypedDict):
    """Data that fairseq carries from encoder to decoder.

    Attributes:
        cache: of the sources.
        beam: rows of each sentence; None until fairseq has said so.
    """

    cache: SourceCache
    beam: int | None


class SourceEncoder(FairseqEncoder):
    """Runs the source once. Its output is a cache held once per sentence, however many beams read it."""

    def __init__(self, dictionary: Dictionary, decoder: CachedDecoder):
        super().__init__(dictionary)
        self.cached = (decoder,)  # a tuple hides the parameters, which ``core`` already owns

    def forward_torchscript(self, net_input: Mapping[str, torch.Tensor]) -> _EncoderOut:
        """Mask, positions and types all follow from ``src_tokens``; fairseq-interactive passes nothing else."""
        return {"cache": self.cached[0].encode(net_input["src_tokens"]), "beam": None}

    def reorder_encoder_out(self, encoder_out: _EncoderOut, new_order: torch.Tensor) -> _EncoderOut:
        """Keeps the cache of the remaining sentences; the ``beam`` rows of a sentence share one."""
        cache, beam = encoder_out["cache"], encoder_out["beam"]
        sentences = cache.visible.size(0)
        if beam is None:
            return {"cache": cache, "beam": new_order.numel() // sentences}
        if new_order.numel() != sentences * beam:
            cache = cache.select(new_order[::beam] // beam)
        return {"cache": cache, "beam": beam}


class CachingDecoder(FairseqIncrementalDecoder):
    """One step: the last token joins the cache, and the scores of the next token come out."""

    def __init__(self, dictionary: Dictionary, decoder: CachedDecoder):
        super().__init__(dictionary)
        self.cached = (decoder,)

    def forward(
        self,
        prev_output_tokens: torch.Tensor,
        encoder_out: _EncoderOut,
        incremental_state: dict[str, Any],
        **unused: object,
    ) -> Any:
        """int64 (R, step + 1), whose first column is fairseq's start symbol -> logits (R, 1, V)."""
        first = prev_output_tokens.size(1) == 1
        if first:
            beam = prev_output_tokens.size(0) // encoder_out["cache"].visible.size(0)
            incremental_state["state"] = self.cached[0].begin(encoder_out["cache"], beam)
        state = incremental_state["state"]
        state.source = encoder_out["cache"]
        logits = self.cached[0].step(None if first else prev_output_tokens[:, -1], state)
        return logits.unsqueeze(1), None

    def reorder_incremental_state_scripting(self, incremental_state: dict[str, Any], new_order: torch.Tensor) -> None:
        incremental_state["state"].reorder(new_order)

    def max_positions(self) -> int | None:
        return self.cached[0].max_positions


def _other_dictionary(parameters: Mapping[str, torch.Tensor], symbols: int) -> str:
    """Says that a checkpoint belongs to another dictionary than one of so many symbols."""
    rows = len(parameters[BY_SYMBOL[0]]) if BY_SYMBOL[0] in parameters else symbols
    size = "of the same size" if rows == symbols else f"of {rows:,} symbols, that of this data has {symbols:,}"
    return (
        f"the checkpoint was trained with another dictionary {size}; prepare this data with --tokenizer set to the "
        "folder the checkpoint was trained on"
    )


def _examples(symbols: list[str]) -> str:
    """The first few symbols in parentheses; nothing where there are none."""
    return f" ({' '.join(symbols[:8])}{' ...' if len(symbols) > 8 else ''})" if symbols else ""


def _register(name: str, preset: TransformerConfig) -> None:
    plain = TransformerConfig()
    changed = {f.name: getattr(preset, f.name) for f in fields(preset)}
    changed = {key: value for key, value in changed.items() if value != getattr(plain, key)}
    if preset.feed_forward == 4 * preset.width:
        changed.pop("feed_forward", None)  # follows the width, which a flag may change

    def architecture(cfg: Settings) -> None:
        for key, value in changed.items():
            if key not in cfg:
                setattr(cfg, key, value)

    # fairseq's masked_lm, superseded by its roberta, holds the names bert_base and bert_large; here they mean ours.
    for registry in (ARCH_MODEL_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_CONFIG_REGISTRY):
        registry.pop(name, None)
    register_model_architecture("unified_lm", name)(architecture)


for _name, _preset in PRESETS.items():
    _register(_name, _preset())
