"""The configuration that an exported folder has: its defaults, its other names, and what it keeps."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import transformers

from unified.conversions.modeling.configuration_unified import UnifiedConfig
from unified.model import TransformerConfig

#: What a model of the library has not, and its default.
MORE = {
    "vocabulary_size": 8, "prediction_heads": ["token"], "task_head": "", "classifier_dropout": 0.1,
    "decoding": "nothing", "pair_lengths": {"max_source": 0, "max_target": 0, "longest_target": 0}, "cls_token_id": 0,
    "pad_token_id": 1, "sep_token_id": 2, "unk_token_id": 3, "mask_token_id": 4,
}  # fmt: skip
#: No value is a default, and no two numbers are the same.
OTHERS = {
    "vocabulary_size": 31, "layers": 3, "width": 32, "heads": 4, "feed_forward": 33, "gated": True,
    "sublayers": "neighbor,feed_forward", "positions": "rotary", "rotary_theta": 77.0, "local_rotary_theta": 78.0,
    "attention_windows": "0,5", "attn_type": "uni", "mask": "seq2seq", "pair_separators": 2, "clamp_len": 6,
    "clip_distance": 7, "max_positions": 34, "token_types": 9, "boundary_offsets": 10, "sentence_head": True,
    "activation": "silu", "linear_without_bias": True, "token_head": "plain", "dropout": 0.2, "inner_dropout": 0.3,
    "attention_dropout": 0.4, "norm": "pre", "norm_type": "rms", "embedding_norm": True, "norm_epsilon": 1e-3,
    "initializer_range": 0.5, "prediction_heads": ["token", "boundary"], "task_head": "mine",
    "classifier_dropout": 0.6, "decoding": "cloze",
    "pair_lengths": {"max_source": 11, "max_target": 12, "longest_target": 13}, "cls_token_id": 14,
    "pad_token_id": 15, "sep_token_id": 16, "unk_token_id": 17, "mask_token_id": 18,
}  # fmt: skip
NAMES = {
    "vocab_size": "vocabulary_size", "hidden_size": "width", "num_hidden_layers": "layers",
    "num_attention_heads": "heads", "intermediate_size": "feed_forward", "max_position_embeddings": "max_positions",
    "type_vocab_size": "token_types", "layer_norm_eps": "norm_epsilon",
}  # fmt: skip


def test_the_defaults_are_those_of_a_model_of_the_library():
    own = {name: value for name, value in asdict(TransformerConfig()).items() if name not in ("attention_backend",
                                                                                              "lstm")}  # fmt: skip
    assert own.keys() | MORE.keys() == OTHERS.keys()
    config = UnifiedConfig()
    assert {name: getattr(config, name) for name in OTHERS} == own | MORE
    assert UnifiedConfig.model_type == config.to_dict()["model_type"] == "unified"


def test_every_setting_is_kept_and_read_again_from_its_file(tmp_path):
    config = UnifiedConfig(**OTHERS)
    assert {name: getattr(config, name) for name in OTHERS} == OTHERS
    config.save_pretrained(tmp_path)
    again = UnifiedConfig.from_pretrained(tmp_path)
    assert {name: getattr(again, name) for name in OTHERS} == OTHERS
    assert again.to_dict() == config.to_dict()


@pytest.mark.parametrize(("theirs", "ours"), NAMES.items())
def test_a_size_has_the_name_of_other_configurations_too(theirs, ours):
    assert theirs in transformers.BertConfig().to_dict()
    config = UnifiedConfig(**{ours: 21})
    assert getattr(config, theirs) == 21
    setattr(config, theirs, 22)
    assert getattr(config, ours) == 22
    assert UnifiedConfig(**{theirs: 23}).to_dict()[ours] == 23


def test_what_transformers_knows_of_every_model_is_kept_too():
    config = UnifiedConfig(id2label={0: "bad", 1: "so so", 2: "good"}, problem_type="regression", architectures=["X"])
    assert config.id2label == {0: "bad", 1: "so so", 2: "good"}
    assert (config.problem_type, config.architectures) == ("regression", ["X"])
    assert len(UnifiedConfig().id2label) == 2


def test_lists_and_lengths_are_copies_of_what_was_given():
    heads, lengths = ("token", "extractive"), {"max_source": 1, "max_target": 2, "longest_target": 3}
    config = UnifiedConfig(prediction_heads=heads, pair_lengths=lengths)
    lengths["max_source"] = 9
    assert config.prediction_heads == ["token", "extractive"]
    assert config.pair_lengths == {"max_source": 1, "max_target": 2, "longest_target": 3}
