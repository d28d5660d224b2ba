"""fairseq's RoBERTa: names of its parameters, its settings and defaults, and what is refused."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import torch

from unified.checkpoints.roberta import read_roberta
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel

WORDS = ["17", "5", "262", "madeupword0000"]
SETTINGS = {
    "encoder_layers": 2, "encoder_embed_dim": 8, "encoder_attention_heads": 2, "encoder_ffn_embed_dim": 12,
    "max_positions": 10,
}  # fmt: skip
ENCODER = "encoder.sentence_encoder."


def parameters(rows: int = 4 + len(WORDS) + 1) -> dict[str, torch.Tensor]:
    """Random ones, named and shaped as fairseq 0.12's RobertaModel has them."""
    torch.manual_seed(0)
    shapes = {
        f"{ENCODER}embed_tokens.weight": (rows, 8), f"{ENCODER}embed_positions.weight": (12, 8),
        f"{ENCODER}layernorm_embedding.weight": (8,), f"{ENCODER}layernorm_embedding.bias": (8,),
        "encoder.lm_head.weight": (rows, 8), "encoder.lm_head.bias": (rows,),
        "encoder.lm_head.dense.weight": (8, 8), "encoder.lm_head.dense.bias": (8,),
        "encoder.lm_head.layer_norm.weight": (8,), "encoder.lm_head.layer_norm.bias": (8,),
    }  # fmt: skip
    for i in range(2):
        linears = {f"self_attn.{one}_proj": (8, 8) for one in ("q", "k", "v", "out")} | {"fc1": (12, 8), "fc2": (8, 12)}
        for name, shape in linears.items():
            shapes |= {f"{ENCODER}layers.{i}.{name}.weight": shape, f"{ENCODER}layers.{i}.{name}.bias": shape[:1]}
        for name in ("self_attn_layer_norm", "final_layer_norm"):
            shapes |= {f"{ENCODER}layers.{i}.{name}.{part}": (8,) for part in ("weight", "bias")}
    made = {name: torch.randn(shape) for name, shape in shapes.items()}
    return made | {"encoder.lm_head.weight": made[f"{ENCODER}embed_tokens.weight"].clone()}


def folder(path: Path, state: dict, settings: dict | None = None, name: str = "model.pt", archive: bool = True) -> Path:
    path.mkdir(exist_ok=True)
    args = argparse.Namespace(**SETTINGS) if settings is None else settings
    torch.save({"model": state, "args": args}, path / name, _use_new_zipfile_serialization=archive)
    (path / "dict.txt").write_text("".join(f"{word} 1\n" for word in WORDS))
    return path


def refusal(path: Path, *more) -> str:
    with pytest.raises(UnifiedError) as raised:
        read_roberta(path, *more)
    return str(raised.value)


def test_parameters_settings_and_symbols_arrive(tmp_path):
    theirs = parameters()
    read = read_roberta(folder(tmp_path, theirs))
    own, vocabulary = read.trained, Vocabulary(WORDS)
    assert own.config == TransformerConfig(
        vocabulary_size=len(vocabulary), layers=2, width=8, heads=2, feed_forward=12, max_positions=10, token_types=2,
        pair_separators=2, dropout=0.1, attention_dropout=0.1, norm_epsilon=1e-5,
    )  # fmt: skip
    assert own.writes == "nothing" and read.tokenizer is None and own.vocabulary.symbols == vocabulary.symbols
    assert read.told.left_out == () and read.told.remarks == ()
    assert read.told.new == tuple(
        f"heads.next_sentence.{module}.{part}" for module in ("pooler", "classifier") for part in ("weight", "bias")
    )
    wanted = UnifiedModel.for_language(own.config).state_dict()
    assert own.parameters.keys() == wanted.keys() - set(read.told.new)
    found = own.parameters
    table = theirs[f"{ENCODER}embed_tokens.weight"]
    assert torch.equal(found["transformer.embeddings.tokens.weight"][: len(table)], table)
    assert torch.equal(found["heads.token.bias"][: len(table)], theirs["encoder.lm_head.bias"])
    scored = found["transformer.embeddings.tokens.scored"]
    assert scored.tolist() == [1.0] * len(table) + [0.0] * (len(vocabulary) - len(table))
    assert torch.equal(found["transformer.embeddings.positions.weight"], theirs[f"{ENCODER}embed_positions.weight"][2:])
    assert torch.equal(found["transformer.embeddings.token_types.weight"], torch.zeros(2, 8))
    names = {
        "transformer.embeddings.norm": f"{ENCODER}layernorm_embedding", "heads.token.dense": "encoder.lm_head.dense",
        "heads.token.norm": "encoder.lm_head.layer_norm",
    }  # fmt: skip
    parts = {
        "attention.sublayer.output": "self_attn.out_proj", "attention.norm": "self_attn_layer_norm",
        "feed_forward.sublayer.inner": "fc1", "feed_forward.sublayer.outer": "fc2",
        "feed_forward.norm": "final_layer_norm",
    }  # fmt: skip
    for i in range(2):
        names |= {f"transformer.layers.{i}.{mine}": f"{ENCODER}layers.{i}.{other}" for mine, other in parts.items()}
    for part in ("weight", "bias"):
        assert all(torch.equal(found[f"{mine}.{part}"], theirs[f"{other}.{part}"]) for mine, other in names.items())
        for i in range(2):
            joint = torch.cat([theirs[f"{ENCODER}layers.{i}.self_attn.{one}_proj.{part}"] for one in "qkv"])
            assert torch.equal(found[f"transformer.layers.{i}.attention.sublayer.query_key_value.{part}"], joint)


def older(state: dict) -> dict:
    """Names as published in 2019: ``decoder.``, ``emb_layer_norm``, joint projections; a version, a head of pairs."""
    found = {}
    for name, value in state.items():
        if "self_attn.q_proj." in name:
            stem, part = name.split("q_proj.")
            name, value = f"{stem}in_proj_{part}", torch.cat([state[f"{stem}{one}_proj.{part}"] for one in "qkv"])
        elif "self_attn.k_proj." in name or "self_attn.v_proj." in name:
            continue
        found[name.replace("encoder.", "decoder.", 1).replace("layernorm_embedding", "emb_layer_norm")] = value
    return found | {"decoder.sentence_encoder.version": torch.tensor([3.0]), "classification_heads.x": torch.ones(1)}


def test_names_and_format_of_older_files_are_read(tmp_path):
    new = read_roberta(folder(tmp_path / "new", parameters()))
    old = read_roberta(folder(tmp_path / "old", older(parameters()), name="any.pt", archive=False))
    assert old.told.left_out == ("classification_heads.x",) and old.told.new == new.told.new
    assert old.trained.parameters.keys() == new.trained.parameters.keys()
    assert all(torch.equal(value, new.trained.parameters[name]) for name, value in old.trained.parameters.items())


def test_settings_are_in_args_or_in_cfg_and_dropouts_are_taken_over(tmp_path):
    settings = SETTINGS | {"dropout": 0.3, "attention_dropout": 0.2}
    for content in ({"args": argparse.Namespace(**settings)}, {"cfg": {"model": argparse.Namespace(**settings)}},
                    {"cfg": {"model": settings}}, {"args": settings}):  # fmt: skip
        torch.save({"model": parameters(), **content}, folder(tmp_path, {}) / "model.pt")
        config = read_roberta(tmp_path).trained.config
        assert (config.dropout, config.attention_dropout) == (0.3, 0.2)


def test_a_model_without_a_token_head_gives_features(tmp_path):
    state = {name: value for name, value in parameters().items() if "lm_head" not in name}
    read = read_roberta(folder(tmp_path, state))
    assert read.trained.config.token_head == "none" and len(read.told.remarks) == 1


def test_two_token_types_serve_no_writing(tmp_path):
    path = folder(tmp_path, parameters())
    assert read_roberta(path, "nothing").trained.writes == "nothing"
    assert refusal(path, "cloze").startswith("--writes cloze takes 6 token types, the model has 2; ")


@pytest.mark.parametrize(
    ("name", "value", "usual"),
    [
        ("activation_fn", "relu", "gelu"),
        ("encoder_normalize_before", True, False),
        ("layernorm_embedding", False, True),
        ("untie_weights_roberta", True, False),
        ("no_token_positional_embeddings", True, False),
        ("encoder_learned_pos", False, True),
    ],
)
def test_settings_of_another_transformer_are_refused(tmp_path, name, value, usual):
    said = f"{tmp_path / 'model.pt'}: {name} {value!r}; only RoBERTa's {usual!r} is built"
    assert refusal(folder(tmp_path, parameters(), SETTINGS | {name: value})) == said
    assert read_roberta(folder(tmp_path, parameters(), SETTINGS | {name: usual})).trained.config.layers == 2


@pytest.mark.parametrize("name", SETTINGS)
def test_a_missing_setting_is_named(tmp_path, name):
    settings = {other: value for other, value in SETTINGS.items() if other != name}
    said = f"{tmp_path / 'model.pt'}: no {name} among its settings; is it a RoBERTa?"
    assert refusal(folder(tmp_path, parameters(), settings)) == said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"args": argparse.Namespace()}, "not a checkpoint of fairseq, it has no 'model' with named parameters"),
        ({"model": [1]}, "not a checkpoint of fairseq, it has no 'model' with named parameters"),
        ({"model": {3: 1}}, "not a checkpoint of fairseq, it has no 'model' with named parameters"),
        ({"model": {}}, "not a checkpoint of fairseq, it has no settings of a model"),
        ({"model": {}, "cfg": 3}, "not a checkpoint of fairseq, it has no settings of a model"),
        ({"model": {}, "cfg": {"model": 3}}, "not a checkpoint of fairseq, it has no settings of a model"),
    ],
)
def test_what_is_no_checkpoint_of_fairseq_is_refused(tmp_path, content, said):
    torch.save(content, folder(tmp_path, {}) / "model.pt")
    assert refusal(tmp_path) == f"{tmp_path / 'model.pt'}: {said}"


def test_the_rows_must_be_those_of_the_dictionary_and_the_mask(tmp_path):
    for rows in (8, 10):
        said = f"{tmp_path / 'model.pt'}: {rows} rows of symbols, but dict.txt and <mask> make 9"
        assert refusal(folder(tmp_path, parameters(rows))) == said


def test_a_dictionary_may_list_the_mask_itself(tmp_path):
    """Then nothing is added behind it."""
    path = folder(tmp_path, parameters(rows=9))
    (path / "dict.txt").write_text("".join(f"{word} 1\n" for word in [*WORDS, "<mask>"]))
    assert read_roberta(path).trained.vocabulary.symbols[:9] == ["<s>", "<pad>", "</s>", "<unk>", *WORDS, "<mask>"]


def test_of_several_files_it_must_be_model_pt(tmp_path):
    path = folder(tmp_path, parameters())
    torch.save({}, path / "another.pt")
    assert read_roberta(path).trained.config.layers == 2
    (path / "model.pt").rename(path / "third.pt")
    assert refusal(path) == f"{path / 'model.pt'}: no such checkpoint file"


def test_other_parameters_and_shapes_are_refused(tmp_path):
    state = parameters() | {"x": torch.ones(1)}
    assert refusal(folder(tmp_path, state)) == "not the parameters of a RoBERTa of 2 layers: unknown: x"
    projection = f"{ENCODER}layers.1.self_attn."
    state = older(parameters()) | {f"{projection}in_proj_bias".replace("encoder.", "decoder.", 1): torch.zeros(4)}
    names = ", ".join(f"{projection}{one}_proj.bias" for one in "qkv")
    said = f"not the parameters of a RoBERTa of 2 layers: different shapes: {names}"
    assert refusal(folder(tmp_path, state)) == said
    state = parameters() | {"encoder.lm_head.weight": torch.zeros(9, 8)}
    assert "the softmax must be tied to the embeddings" in refusal(folder(tmp_path, state))
    said = f"{tmp_path / 'model.pt'}: the parameters do not fit the configuration: "
    assert refusal(folder(tmp_path, parameters(), SETTINGS | {"max_positions": 9})).startswith(said)
