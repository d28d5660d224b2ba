"""Tiny models of transformers with random weights, and rows for them."""

import torch
import transformers

from unified import masks
from unified.masks import AttentionMask

VOCABULARY = 40
_SIZES = {
    "vocab_size": VOCABULARY,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
}
_IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_SLIDING = {"layer_types": ["full_attention", "sliding_attention"]}


def _grouped(width: int) -> dict:
    return {**_SIZES, **_IDS, "hidden_size": width, "num_key_value_heads": 2, "head_dim": width // 4}


#: Name -> a function of the width that makes the configuration; each sort of layer that the model has is there.
CONFIGS = {
    "bert": lambda width: transformers.BertConfig(**_SIZES, hidden_size=width, pad_token_id=0),
    "roberta": lambda width: transformers.RobertaConfig(
        **_SIZES, hidden_size=width, bos_token_id=0, eos_token_id=2, pad_token_id=1
    ),
    "modernbert": lambda width: transformers.ModernBertConfig(
        **_SIZES, **_IDS, **_SLIDING, hidden_size=width, cls_token_id=1, sep_token_id=2, local_attention=4
    ),
    "llama": lambda width: transformers.LlamaConfig(**_SIZES, **_IDS, hidden_size=width, num_key_value_heads=2),
    "qwen3": lambda width: transformers.Qwen3Config(
        **_grouped(width), **_SLIDING, use_sliding_window=True, sliding_window=3
    ),
    "gemma3": lambda width: transformers.Gemma3TextConfig(**_grouped(width), **_SLIDING, sliding_window=3),
    "gpt2": lambda width: transformers.GPT2Config(
        **_IDS,
        vocab_size=VOCABULARY,
        n_embd=width,
        n_layer=2,
        n_head=4,
        n_positions=32,
        scale_attn_by_inverse_layer_idx=True,
    ),
}
MASKED = ("bert", "roberta", "modernbert")
CAUSAL = ("llama", "qwen3", "gemma3", "gpt2")


def tiny(name: str, attention: str = "unified", width: int = 16) -> transformers.PreTrainedModel:
    """A language model in evaluation, always the same numbers, larger than they start, so that masks tell."""
    torch.manual_seed(3)
    config = CONFIGS[name](width)
    config.initializer_range = 0.3
    kind = transformers.AutoModelForMaskedLM if name in MASKED else transformers.AutoModelForCausalLM
    return kind.from_config(config, attn_implementation=attention).eval()


def packed(rows: list[list[AttentionMask]], length: int) -> tuple[AttentionMask, torch.Tensor]:
    """(B, length) masks, and positions that begin anew with each text, int64 (B, length)."""
    positions = torch.zeros(len(rows), length, dtype=torch.long)
    for of_row, row in zip(positions, rows, strict=True):
        found = torch.cat([torch.arange(mask.query_length) for mask in row])
        of_row[: len(found)] = found
    return masks.pack_rows(rows, length), positions
