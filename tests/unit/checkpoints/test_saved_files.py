"""What reaches the disk before a checkpoint counts as saved, and fields of settings that must be of their kind."""

import json

import pytest

from unified.checkpoints.sources import read_config
from unified.errors import UnifiedError

#: Fields of ``config.json`` of BERT, MiniLM, ModernBERT and XLNet in ``transformers`` and of XLNet's own file.
INTEGERS = """vocab_size num_hidden_layers hidden_size num_attention_heads intermediate_size type_vocab_size
max_position_embeddings n_head d_model d_head n_layer d_inner n_token clamp_len global_attn_every_n_layers
local_attention""".split()
NUMBERS = """hidden_dropout_prob attention_probs_dropout_prob layer_norm_eps initializer_range embedding_dropout
mlp_dropout attention_dropout norm_eps dropout""".split()
FLAGS = """attention_bias mlp_bias classifier_bias decoder_bias tie_word_embeddings norm_bias is_decoder
same_length""".split()
TEXTS = "hidden_act hidden_activation classifier_activation ff_activation attn_type".split()
#: Fields that may be null.
OPTIONAL_NUMBERS = "classifier_dropout summary_last_dropout global_rope_theta local_rope_theta".split()
OPTIONAL_TEXTS = """model_type position_embedding_type problem_type summary_type summary_activation decoding
task_head""".split()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [(name, "1") for name in (*INTEGERS, *NUMBERS, *OPTIONAL_NUMBERS, *FLAGS)]
    + [(name, 1) for name in (*TEXTS, *OPTIONAL_TEXTS)]
    + [(name, None) for name in (*NUMBERS, *TEXTS)],
)
def test_every_field_that_is_read_must_be_of_its_kind(tmp_path, name, wrong):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"other": wrong, name: wrong}))
    with pytest.raises(UnifiedError, match=f"^{path}: '{name}' must be "):
        read_config(path)


@pytest.mark.parametrize("name", [*OPTIONAL_NUMBERS, *FLAGS, *OPTIONAL_TEXTS, "d_head"])
def test_a_field_may_say_nothing(tmp_path, name):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({name: None}))
    assert read_config(path) == {name: None}
