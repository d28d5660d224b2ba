"""Tiny models of every body and decoding scheme, and the code that an export brings along."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from tests.support.task_folders import WORDS, tokenizer
from unified import UnifiedLM
from unified.conversions.modeling.modeling_unified import UnifiedForMaskedLM
from unified.data.vocabulary import Vocabulary
from unified.generation.lengths import PairLengths
from unified.model import TransformerConfig, UnifiedModel

#: Settings of models that no class of transformers has, by what is special in them.
BODIES: dict[str, dict] = {
    "UniLM": {},
    "pre-norm": {"norm": "pre", "activation": "gelu_tanh", "token_head": "plain"},
    "neighbor": {"sublayers": "neighbor,self,feed_forward"},
    "two of each": {"sublayers": "self,feed_forward,neighbor,self,neighbor,feed_forward"},
    "relative keys": {"sublayers": "relative_key,feed_forward", "clip_distance": 3},
    "relative values": {"sublayers": "self,relative_value,feed_forward", "clip_distance": 2},
    "entities": {"sublayers": "entity,feed_forward"},
    "relative": {"positions": "relative"},
    "rotary": {
        "positions": "rotary",
        "gated": True,
        "linear_without_bias": True,
        "norm": "pre",
        "embedding_norm": True,
        "norm_type": "layer_without_bias",
        "norm_epsilon": 1e-5,
        "rotary_theta": 500.0,
        "local_rotary_theta": 20.0,
        "attention_windows": "0,2",
        "token_types": 0,
        "layers": 3,
    },
    "rotary, with token types": {
        "positions": "rotary",
        "activation": "silu",
        "norm_type": "rms",
        "norm": "pre",
        "token_head": "plain",
        "sublayers": "neighbor,self,feed_forward",
        "attention_windows": "3,0",
    },
    "windows": {"attention_windows": "2,0", "gated": True},
    "one way": {"positions": "relative", "attn_type": "uni", "clamp_len": 3, "norm": "pre", "token_head": "plain"},
}


@dataclass(frozen=True)
class Exported:
    """A model of ours, and the same as its own code makes it from an export.

    Attributes:
        lm: ours.
        theirs: in eval mode.
        folder: of the export.
        ids: int64 (V,), their id of each of our symbols.
    """

    lm: UnifiedLM
    theirs: UnifiedForMaskedLM
    folder: Path
    ids: torch.Tensor

    def symbols(self, ids: torch.Tensor) -> list[str]:
        """Our symbols of their ids."""
        own = {int(one): symbol for one, symbol in zip(self.ids, self.lm.vocabulary.symbols, strict=True)}
        return [own[int(one)] for one in ids]


#: Another order than that of the tokenizer, a word more, and one less.
KNOWN = Vocabulary([*WORDS[:0:-1], "more"])


def language_model(
    writes: str = "cloze", lengths: PairLengths | None = None, known: Vocabulary = KNOWN, **changes
) -> UnifiedLM:
    """Random weights, biases included, drawn wide, so that predictions differ clearly; texts end often."""
    torch.manual_seed(1)
    vocabulary = known
    shape = {"layers": 2, "width": 32, "heads": 4, "max_positions": 40, "initializer_range": 0.25}
    config = TransformerConfig(vocabulary_size=len(vocabulary), **{**shape, **changes})
    model = UnifiedModel.for_language(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    bias = model.heads["token"].bias.data
    bias[vocabulary.special.separator] += 2.5
    bias[vocabulary.special.unknown] -= 20  # special to transformers, which leaves it out of texts
    return UnifiedLM(model, vocabulary, tokenizer(), writes, Path("nowhere"), lengths or PairLengths())


def exported(lm: UnifiedLM, folder: Path) -> Exported:
    """Save a model with its code, and load that here, as the library's own module."""
    lm.save_pretrained(folder, "unified")
    theirs = UnifiedForMaskedLM.from_pretrained(folder).eval()
    native = lm.tokenizer.native_symbols() if lm.tokenizer else lm.vocabulary.symbols
    symbols = [*native, *(symbol for symbol in lm.vocabulary.symbols if symbol not in native)]
    ids = torch.tensor([symbols.index(symbol) for symbol in lm.vocabulary.symbols])
    return Exported(lm, theirs, folder, ids)
