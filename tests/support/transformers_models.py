"""Tiny models of transformers with random weights, and rows for them."""

import torch
import transformers

from unified import masks
from unified.masks import AttentionMask

VOCABULARY = 40
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
}
_IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_GROUPED = {**_SIZES, **_IDS, "num_key_value_heads": 2, "head_dim": 4}
_SLIDING = {"layer_types": ["full_attention", "sliding_attention"]}

#: Name -> configuration; each layer of a sort that the model has is there.
CONFIGS = {
    "bert": lambda: transformers.BertConfig(**_SIZES, pad_token_id=0),
    "roberta": lambda: transformers.RobertaConfig(**_SIZES, **{**_IDS, "pad_token_id": 1}),
    "modernbert": lambda: transformers.ModernBertConfig(
        **_SIZES, **_IDS, **_SLIDING, cls_token_id=1, sep_token_id=2, local_attention=4
    ),
    "llama": lambda: transformers.LlamaConfig(**_SIZES, **_IDS, num_key_value_heads=2),
    "qwen3": lambda: transformers.Qwen3Config(**_GROUPED, **_SLIDING, use_sliding_window=True, sliding_window=3),
    "gemma3": lambda: transformers.Gemma3TextConfig(**_GROUPED, **_SLIDING, sliding_window=3),
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=16,
        n_layer=2,
        n_head=4,
        n_positions=32,
        scale_attn_by_inverse_layer_idx=True,
        **_IDS,
    ),
}
MASKED = ("bert", "roberta", "modernbert")
CAUSAL = ("llama", "qwen3", "gemma3", "gpt2")


def tiny(name: str, attention: str = "unified") -> transformers.PreTrainedModel:
    """A language model in evaluation, always the same numbers, larger than they start, so that masks tell."""
    torch.manual_seed(3)
    config = CONFIGS[name]()
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
