"""Configuration of a model that was trained by UNIFIED (unified-lm), for ``transformers``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedConfig


class UnifiedConfig(PreTrainedConfig):
    """Shape of a Transformer, the heads it has, and how it reads and writes texts.

    Args:
        vocabulary_size: rows of the embeddings of symbols.
        layers, width, heads, feed_forward: number of layers, size of states, attention heads, inner size.
        sublayers: sublayers of each layer in order, separated by commas: "self", "neighbor" (no token sees itself),
            "relative_key", "relative_value", "entity", "feed_forward".
        gated: whether the feed-forward sublayer is a gated linear unit.
        positions: "learned" (tables of positions and token types), "relative" (XLNet) or "rotary" (ModernBERT, Llama).
        rotary_theta, local_rotary_theta: with rotary positions, base of the wavelengths, and that of layers with a
            window; 0: the same.
        attention_windows: how many positions on each side attention reads, layer by layer, separated by commas, again
            from the first when the list ends; 0: all.
        attn_type: "bi", or "uni": no token sees what stands behind it, whatever the mask (XLNet).
        mask: how texts are read where no mask is given: "bidirectional", "left_to_right", "right_to_left" or "seq2seq".
        pair_separators: separators between the two texts of a pair, which the tokenizer puts there.
        clamp_len: with relative positions, distances above this count as it; 0: all are told apart.
        clip_distance: greatest distance that "relative_key" and "relative_value" tell from farther ones.
        max_positions, token_types: rows of the tables of positions and of token types; 0 token types: no table.
        boundary_offsets, sentence_head: rows of the span-boundary head's table of distances; whether there is a head
            that chooses sentences.
        activation: "gelu", "gelu_tanh" or "silu".
        linear_without_bias: whether linear maps of the layers and of the token head have no biases.
        token_head: "transform" (dense, activation, norm before the softmax), "plain" or "none".
        dropout, inner_dropout, attention_dropout: rates in training.
        norm: "post" or "pre".
        norm_type: "layer", "layer_without_bias" or "rms".
        embedding_norm: with norm "pre", a norm behind the embeddings in place of the one before the first sublayer.
        norm_epsilon, initializer_range: of the norms; standard deviation of initial weights.
        prediction_heads: names of the heads of language modelling that the file has parameters of.
        task_head: name of the head of fine-tuning that the file has parameters of; "" where it has none.
        classifier_dropout: rate in training before that head's projection.
        decoding: how the model writes: "cloze", "next", "left_to_right", "permutation" or "nothing".
        pair_lengths: ``max_source``, ``max_target`` and ``longest_target`` of fine-tuning on pairs; 0 where whole.
        cls_token_id, pad_token_id, sep_token_id, unk_token_id, mask_token_id: ids of the special symbols.
    """

    model_type = "unified"
    attribute_map = {
        "vocab_size": "vocabulary_size",
        "hidden_size": "width",
        "num_hidden_layers": "layers",
        "num_attention_heads": "heads",
        "intermediate_size": "feed_forward",
        "max_position_embeddings": "max_positions",
        "type_vocab_size": "token_types",
        "layer_norm_eps": "norm_epsilon",
    }

    def __init__(
        self,
        vocabulary_size: int = 8,
        layers: int = 12,
        width: int = 768,
        heads: int = 12,
        feed_forward: int = 3072,
        gated: bool = False,
        sublayers: str = "self,feed_forward",
        positions: str = "learned",
        rotary_theta: float = 10000.0,
        local_rotary_theta: float = 0.0,
        attention_windows: str = "0",
        attn_type: str = "bi",
        mask: str = "bidirectional",
        pair_separators: int = 1,
        clamp_len: int = 0,
        clip_distance: int = 16,
        max_positions: int = 512,
        token_types: int = 6,
        boundary_offsets: int = 0,
        sentence_head: bool = False,
        activation: str = "gelu",
        linear_without_bias: bool = False,
        token_head: str = "transform",
        dropout: float = 0.1,
        inner_dropout: float = 0.0,
        attention_dropout: float = 0.1,
        norm: str = "post",
        norm_type: str = "layer",
        embedding_norm: bool = False,
        norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        prediction_heads: Sequence[str] = ("token",),
        task_head: str = "",
        classifier_dropout: float = 0.1,
        decoding: str = "nothing",
        pair_lengths: Mapping[str, int] | None = None,
        cls_token_id: int = 0,
        pad_token_id: int = 1,
        sep_token_id: int = 2,
        unk_token_id: int = 3,
        mask_token_id: int = 4,
        **more: Any,
    ):
        self.vocabulary_size, self.layers, self.width, self.heads = vocabulary_size, layers, width, heads
        self.feed_forward, self.sublayers, self.positions, self.attn_type = (
            feed_forward,
            sublayers,
            positions,
            attn_type,
        )
        self.gated, self.linear_without_bias, self.attention_windows = gated, linear_without_bias, attention_windows
        self.rotary_theta, self.local_rotary_theta = rotary_theta, local_rotary_theta
        self.norm_type, self.embedding_norm = norm_type, embedding_norm
        self.mask, self.pair_separators = mask, pair_separators
        self.clamp_len, self.clip_distance = clamp_len, clip_distance
        self.max_positions, self.token_types, self.boundary_offsets = max_positions, token_types, boundary_offsets
        self.sentence_head, self.activation, self.token_head = sentence_head, activation, token_head
        self.dropout, self.inner_dropout, self.attention_dropout = dropout, inner_dropout, attention_dropout
        self.norm, self.norm_epsilon, self.initializer_range = norm, norm_epsilon, initializer_range
        self.prediction_heads, self.decoding = list(prediction_heads), decoding
        self.task_head, self.classifier_dropout = task_head, classifier_dropout
        self.pair_lengths = dict(pair_lengths or {"max_source": 0, "max_target": 0, "longest_target": 0})
        self.cls_token_id, self.pad_token_id, self.sep_token_id = cls_token_id, pad_token_id, sep_token_id
        self.unk_token_id, self.mask_token_id = unk_token_id, mask_token_id
        super().__init__(**more)
