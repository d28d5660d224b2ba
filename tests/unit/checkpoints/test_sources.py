"""Settings of a model's folder that are of the wrong kind are refused before anything is built."""

import json

import pytest

from unified.checkpoints.sources import read_config
from unified.errors import UnifiedError

RIGHT = {
    "model_type": "unified", "hidden_size": 8, "architectures": ["A"], "id2label": {"0": "no"}, "pad_token_id": None,
    "layer_types": ["full_attention"], "rope_parameters": {"full_attention": {"rope_type": "default"}},
    "unified": {"head": {"head": "tagging", "settings": {}}, "longest": 24, "writes": "cloze", "pair_lengths": {}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model_type": 5}, "model_type"),
        ({"hidden_size": "8"}, "hidden_size"),
        ({"architectures": "A"}, "architectures"),
        ({"architectures": [5]}, "architectures"),
        ({"id2label": ["no"]}, "id2label"),
        ({"id2label": {"0": None}}, "id2label"),
        ({"pad_token_id": "0"}, "pad_token_id"),
        ({"layer_types": [None]}, "layer_types"),
        ({"rope_parameters": {"full_attention": {"rope_type": 5}}}, "rope_type"),
        ({"rope_parameters": {"full_attention": {"rope_theta": "1"}}}, "rope_theta"),
        ({"rope_parameters": {"sliding_attention": 5}}, "sliding_attention"),
        ({"unified": {"head": {"head": 5, "settings": {}}}}, "head"),
        ({"unified": {"head": {"head": "tagging", "settings": []}}}, "settings"),
        ({"unified": {"head": "tagging"}}, "head"),
        ({"unified": {"longest": "24"}}, "longest"),
        ({"unified": {"writes": 5}}, "writes"),
        ({"unified": {"pair_lengths": 5}}, "pair_lengths"),
        ({"pair_lengths": []}, "pair_lengths"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"n_layer": 1001}, "n_layer"),
        ({"n_head": 0}, "n_head"),
        ({"global_attn_every_n_layers": 0}, "global_attn_every_n_layers"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(tmp_path, change, named):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(RIGHT))
    assert read_config(path) == RIGHT
    path.write_text(json.dumps(RIGHT | change))
    with pytest.raises(UnifiedError, match=f"config.json: .*{named}"):
        read_config(path)
