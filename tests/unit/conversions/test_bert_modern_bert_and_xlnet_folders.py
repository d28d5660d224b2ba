"""Whole folders of BERT, XLNet and ModernBERT: all settings that are written, and what is read back from them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from tests.support import tensorflow_files
from tests.support.published_models import xlnet_pieces
from tests.support.task_folders import WORDS, tokenizer
from unified.checkpoints.conversion import Conversion
from unified.checkpoints.sources import read_parameters
from unified.checkpoints.trained import Trained
from unified.conversions.bert import export_bert, read_bert, read_tokenizer
from unified.conversions.export import Source
from unified.conversions.modern_bert import export_modern_bert, read_modern_bert
from unified.conversions.xlnet import export_xlnet, read_xlnet
from unified.data.vocabulary import MASK, Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import ordinary_symbols
from unified.tokenization.xlnet import XLNetTokenizer

PIECES = XLNetTokenizer(xlnet_pieces())
TOKENIZERS = {"bert": tokenizer(), "modernbert": tokenizer(), "xlnet": PIECES}
EXPORTS = {"bert": export_bert, "modernbert": export_modern_bert, "xlnet": export_xlnet}
READERS = {"bert": read_bert, "modernbert": read_modern_bert, "xlnet": read_xlnet}
#: No number is a default of this library, of transformers or of a reader, which would hide that it is not read; UniLM's
#: six token types are.
SHAPE = {
    "layers": 3, "width": 8, "heads": 2, "feed_forward": 12, "activation": "gelu_tanh", "dropout": 0.25,
    "attention_dropout": 0.125, "norm_epsilon": 1e-3, "initializer_range": 0.0625,
}  # fmt: skip
FAMILIES = {
    "bert": {"max_positions": 20, "token_types": 6, "inner_dropout": 0.375},
    "modernbert": {
        "max_positions": 20, "token_types": 0, "positions": "rotary", "gated": True, "norm": "pre",
        "embedding_norm": True, "norm_type": "layer_without_bias", "linear_without_bias": True, "inner_dropout": 0.5,
        "rotary_theta": 900.0, "local_rotary_theta": 700.0, "attention_windows": "0,4,4",
    },
    "xlnet": {
        "positions": "relative", "token_head": "plain", "clamp_len": 7, "inner_dropout": 0.375, "max_positions": 20,
        "token_types": 3,
    },
}  # fmt: skip
QUERY = "transformer.embeddings.query"
NEXT = tuple(f"heads.next_sentence.{part}.{kind}" for part in ("pooler", "classifier") for kind in ("weight", "bias"))
#: What a model of ours has and the class of a family has not.
OTHERS = {"bert": (), "modernbert": (QUERY, *NEXT), "xlnet": NEXT}
LENGTHS = PairLengths(5, 4, 3)
NOTED = {"pair_lengths": {"max_source": 5, "max_target": 4, "longest_target": 3}}
#: Fields of ours that a class has none for, and that are written beside what it knows.
OWN_FIELDS = {
    "bert": {"inner_dropout": 0.375},
    "xlnet": {"attention_dropout": 0.125, "inner_dropout": 0.375, "max_positions": 20, "token_types": 3},
}


def source(family: str, heads=None, writes="nothing", lengths=PairLengths(), **changes) -> Source:  # noqa: B008
    own = TOKENIZERS[family]
    vocabulary = Vocabulary(ordinary_symbols(own))
    config = TransformerConfig(len(vocabulary), **{**SHAPE, **FAMILIES[family], **changes})
    torch.manual_seed(0)
    state = UnifiedModel.for_language(config).state_dict()
    parameters = {n: v if n.endswith(".scored") else torch.randn(v.shape) for n, v in state.items()}
    for name in heads or {}:
        parameters |= {f"heads.{name}.pooler.weight": torch.randn(8, 8), f"heads.{name}.pooler.bias": torch.randn(8)}
        parameters |= {f"heads.{name}.output.weight": torch.randn(1, 8), f"heads.{name}.output.bias": torch.randn(1)}
    trained = Trained(config, writes, parameters, vocabulary, heads or {}, 17, lengths)
    return Source("the model", trained, own)


def settings_of(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def change(folder: Path, **settings) -> None:
    (folder / "config.json").write_text(json.dumps(settings_of(folder) | settings), encoding="utf-8")


def test_all_settings_of_bert_are_written(tmp_path):
    told = export_bert(source("bert", writes="cloze", lengths=LENGTHS), tmp_path / "out")
    settings = settings_of(tmp_path / "out")
    assert settings.pop("vocab_size") == len(TOKENIZERS["bert"].native_symbols()) + 100  # sentinels
    assert settings == {
        "architectures": ["BertForPreTraining"], "model_type": "bert", "hidden_size": 8, "num_hidden_layers": 3,
        "num_attention_heads": 2, "intermediate_size": 12, "hidden_act": "gelu_new", "hidden_dropout_prob": 0.25,
        "attention_probs_dropout_prob": 0.125, "max_position_embeddings": 20, "type_vocab_size": 6,
        "initializer_range": 0.0625, "layer_norm_eps": 1e-3, "pad_token_id": 0, "dtype": "float32",
        "unified": {"writes": "cloze", **NOTED, **OWN_FIELDS["bert"]},
    }  # fmt: skip
    assert told == Conversion()


def test_all_settings_of_xlnet_are_written(tmp_path):
    told = export_xlnet(source("xlnet", writes="permutation", lengths=LENGTHS), tmp_path / "out")
    assert settings_of(tmp_path / "out") == {
        "architectures": ["XLNetLMHeadModel"], "model_type": "xlnet", "vocab_size": len(PIECES.native_symbols()),
        "d_model": 8, "n_layer": 3, "n_head": 2, "d_head": 4, "d_inner": 12, "ff_activation": "gelu_new",
        "dropout": 0.25, "initializer_range": 0.0625, "layer_norm_eps": 1e-3, "untie_r": True, "attn_type": "bi",
        "bi_data": False, "clamp_len": 7, "same_length": False, "dtype": "float32",
        "unified": {"writes": "permutation", **NOTED, **OWN_FIELDS["xlnet"]},
    }  # fmt: skip
    assert set(told.left_out) == set(OTHERS["xlnet"])
    export_xlnet(source("xlnet", clamp_len=0), tmp_path / "endless")
    assert settings_of(tmp_path / "endless")["clamp_len"] == -1


def test_all_settings_of_modern_bert_are_written(tmp_path):
    told = export_modern_bert(source("modernbert", lengths=LENGTHS), tmp_path / "out")
    settings = settings_of(tmp_path / "out")
    assert settings.pop("vocab_size") == len(TOKENIZERS["bert"].native_symbols()) + 100
    assert settings == {
        "architectures": ["ModernBertForMaskedLM"], "model_type": "modernbert", "hidden_size": 8,
        "intermediate_size": 12, "num_hidden_layers": 3, "num_attention_heads": 2, "hidden_activation": "gelu_new",
        "classifier_activation": "gelu_new", "max_position_embeddings": 20, "initializer_range": 0.0625,
        "norm_eps": 1e-3, "norm_bias": False, "attention_bias": False, "mlp_bias": False, "classifier_bias": False,
        "decoder_bias": True, "embedding_dropout": 0.25, "attention_dropout": 0.125, "mlp_dropout": 0.5,
        "local_attention": 8, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 900.0},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 700.0}},
        "tie_word_embeddings": True, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3,
        "pad_token_id": 0, "dtype": "float32",
        "unified": {"writes": "nothing", "pair_lengths": {"max_source": 5, "max_target": 4, "longest_target": 3}},
    }  # fmt: skip
    assert told.left_out == OTHERS["modernbert"]
    plain = source("modernbert", norm_type="layer", linear_without_bias=False, attention_windows="0")
    export_modern_bert(plain, tmp_path / "plain")
    settings = settings_of(tmp_path / "plain")
    assert all(settings[name] for name in ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"))
    assert settings["local_attention"] == 128 and settings["layer_types"] == ["full_attention"] * 3


@pytest.mark.parametrize(("family", "writes"), [("bert", "cloze"), ("modernbert", "nothing"), ("xlnet", "permutation")])
def test_a_folder_is_loaded_by_transformers_and_read_back_as_the_same_model(tmp_path, family, writes):
    own = source(family, writes=writes, lengths=LENGTHS)
    EXPORTS[family](own, tmp_path / "out")
    (architecture,) = settings_of(tmp_path / "out")["architectures"]
    _, report = getattr(transformers, architecture).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    back = READERS[family](str(tmp_path / "out"))
    assert back.trained.config == own.trained.config
    assert (back.trained.writes, back.trained.lengths, back.trained.heads) == (writes, own.trained.lengths, {})
    assert back.trained.vocabulary.symbols == own.trained.vocabulary.symbols
    assert back.tokenizer.native_symbols()[:30] == own.tokenizer.native_symbols()[:30]
    wanted, vocabulary = own.trained.parameters, own.trained.vocabulary
    if family == "xlnet":  # whose class has no rows for sentinels
        rows = [vocabulary.index(symbol) for symbol in PIECES.native_symbols()]
        read = back.trained.parameters
        assert len(rows) == len(vocabulary) - 100 and sum(len(value) == len(vocabulary) for value in read.values()) == 3
        for state in (wanted, read):
            state |= {name: value[rows] for name, value in state.items() if len(value) == len(vocabulary)}
    for name, value in back.trained.parameters.items():
        if name == QUERY and family == "modernbert":  # which starts from the embedding of [MASK]
            row = vocabulary.index(MASK)
            assert torch.equal(value, wanted["transformer.embeddings.tokens.weight"][row])
        else:
            assert torch.equal(value, wanted[name]), name
    assert wanted.keys() - back.trained.parameters.keys() == set(OTHERS[family]) - {QUERY}
    assert back.told.left_out == ()
    assert back.told.remarks == (() if writes == "nothing" else (f"it writes by the scheme {writes!r}",))


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_the_one_head_of_a_task_is_written_with_its_record_and_read_back(tmp_path, family):
    record = {"head": "choice", "settings": {"dropout": 0.375}}
    own = source(family, {"mine": record}, lengths=LENGTHS)
    told = EXPORTS[family](own, tmp_path / "out")
    settings = settings_of(tmp_path / "out")
    prefix = {"bert": "Bert", "xlnet": "XLNet"}[family]
    assert settings["architectures"] == [f"{prefix}ForMultipleChoice"]
    assert settings["unified"] == {"head": record, "longest": 17, **OWN_FIELDS[family]}
    back = READERS[family](tmp_path / "out")
    assert replace(back.trained.config, token_head=own.config.token_head) == own.config
    assert back.trained.heads == {"choice": record} and back.trained.longest == 17
    assert (back.trained.writes, back.trained.config.width, back.told) == ("nothing", 8, Conversion())
    heads = {n: v for n, v in back.trained.parameters.items() if n.startswith("heads.")}
    assert heads.keys() == {
        f"heads.choice.{part}.{kind}" for part in ("pooler", "output") for kind in ("weight", "bias")
    }
    assert all(torch.equal(v, own.trained.parameters[n.replace("choice", "mine")]) for n, v in heads.items())
    below = {name for name in own.trained.parameters if name.startswith("transformer.")}
    assert below <= back.trained.parameters.keys() and "heads.token.bias" in told.left_out
    change(tmp_path / "out", unified={"head": record})
    longest = READERS[family](tmp_path / "out").trained
    assert longest.longest == longest.config.max_positions


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_heads_of_several_tasks_are_left_out(tmp_path, family):
    record = {"head": "choice", "settings": {}}
    told = EXPORTS[family](source(family, {"one": record, "two": record}), tmp_path / "out")
    assert {name for name in told.left_out if ".one." in name or ".two." in name} == {
        f"heads.{name}.{part}.{kind}"
        for name in ("one", "two") for part in ("pooler", "output") for kind in ("weight", "bias")
    }  # fmt: skip
    assert READERS[family](tmp_path / "out").trained.heads == {}


@pytest.mark.parametrize("family", EXPORTS)
def test_what_a_class_cannot_hold_is_refused_by_name_and_nothing_is_written(tmp_path, family):
    with pytest.raises(UnifiedError) as raised:
        EXPORTS[family](source(family, mask="left_to_right"), tmp_path / "out")
    assert str(raised.value).startswith("the model: the model reads texts under the mask 'left_to_right'")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("family", "noted", "asked", "found"),
    [
        ("bert", "cloze", None, "cloze"), ("bert", "cloze", "nothing", "nothing"),
        ("bert", None, None, "left_to_right"),
        ("bert", "nothing", None, "nothing"), ("bert", "nothing", "cloze", "cloze"),
        ("modernbert", None, None, "nothing"), ("modernbert", "nothing", None, "nothing"),
        ("modernbert", "cloze", None, "cloze"), ("modernbert", "cloze", "nothing", "nothing"),
        ("xlnet", None, None, "permutation"), ("xlnet", "permutation", "nothing", "nothing"),
        ("xlnet", "nothing", None, "nothing"), ("xlnet", "nothing", "permutation", "permutation"),
    ],
)  # fmt: skip
def test_a_model_writes_as_asked_or_as_noted_or_as_usual(tmp_path, family, noted, asked, found):
    EXPORTS[family](source(family), tmp_path / "out")
    change(tmp_path / "out", unified=None if noted is None else {"writes": noted})
    read = READERS[family](tmp_path / "out", asked)
    assert (read.trained.writes, read.trained.lengths) == (found, PairLengths())


def test_a_bert_of_fewer_token_types_usually_writes_nothing(tmp_path):
    export_bert(source("bert", token_types=5), tmp_path / "out")
    change(tmp_path / "out", unified={})
    assert read_bert(tmp_path / "out").trained.writes == "nothing"


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_lengths_of_pairs_come_back_and_heads_that_a_folder_lacks_are_new(tmp_path, family):
    own = source(family, lengths=LENGTHS)
    kept = {name: value for name, value in own.trained.parameters.items() if name not in NEXT}
    EXPORTS[family](replace(own, trained=replace(own.trained, parameters=kept)), tmp_path / "out")
    read = READERS[family](tmp_path / "out")
    assert read.trained.lengths == LENGTHS
    assert read.told == Conversion(new=NEXT if family == "bert" else ())  # ModernBERT has no such head


def test_a_modern_bert_with_the_head_of_a_task_is_refused(tmp_path):
    export_modern_bert(source("modernbert"), tmp_path / "out")
    change(tmp_path / "out", architectures=["ModernBertForSequenceClassification"])
    with pytest.raises(UnifiedError) as raised:
        read_modern_bert(tmp_path / "out")
    assert str(raised.value) == (
        f"{tmp_path / 'out'}: architectures 'ModernBertForSequenceClassification' in config.json; ModernBertModel and "
        "ModernBertForMaskedLM are read, whose heads this library has"
    )
    change(tmp_path / "out", architectures=None)
    assert read_modern_bert(tmp_path / "out").trained.config.layers == 3


def test_the_pieces_of_an_xlnet_are_as_many_as_its_settings_say(tmp_path):
    export_xlnet(source("xlnet"), tmp_path / "out")
    size = len(PIECES.native_symbols())
    change(tmp_path / "out", vocab_size=size + 1)
    with pytest.raises(UnifiedError) as raised:
        read_xlnet(tmp_path / "out")
    assert str(raised.value) == f"{tmp_path / 'out'}: {size} pieces in its tokenizer, {size + 1} in its settings"
    (tmp_path / "out" / "spiece.model").unlink()
    with pytest.raises(UnifiedError, match=r"spiece\.model"):
        read_xlnet(tmp_path / "out")


def test_an_xlnet_that_lowers_case_is_read_from_tokenizer_json_alone(tmp_path):
    export_xlnet(source("xlnet"), tmp_path)
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text('{"tokenizer_class": "XLNetTokenizer", "do_lower_case": true}')
    with pytest.raises(UnifiedError) as raised:
        read_xlnet(tmp_path)
    assert str(raised.value) == (
        f"{settings}: do_lower_case true, which is not read beside spiece.model; put tokenizer.json, which "
        "`AutoTokenizer.from_pretrained(...).save_pretrained(...)` writes, in its place"
    )
    model = PIECES.processor
    vocabulary = [(piece, model.get_score(i)) for i, piece in enumerate(PIECES.entries)]
    theirs = transformers.XLNetTokenizer(vocab=vocabulary, do_lower_case=True)
    theirs.save_pretrained(tmp_path)
    (tmp_path / "spiece.model").unlink()
    ours = read_xlnet(tmp_path).tokenizer
    assert ours.encode("A BIG Cat") == theirs.tokenize("A BIG Cat") == ours.encode("a big cat")
    export_xlnet(source("xlnet"), tmp_path / "cased")
    (tmp_path / "cased" / settings.name).write_text('{"do_lower_case": false}')
    assert type(read_xlnet(tmp_path / "cased").tokenizer) is XLNetTokenizer


@pytest.mark.parametrize(
    ("more", "said", "lowercase"),
    [((), None, True), (("Word",), None, False), ((), False, False), (("Word",), True, True), ((), True, True)],
)
def test_a_vocabulary_is_cased_as_its_settings_say_or_where_it_has_capitals(tmp_path, more, said, lowercase):
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *more]) + "\n")
    if said is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": said}))
    assert read_tokenizer(tmp_path).lowercase is lowercase


def test_a_folder_without_a_vocabulary_is_no_berts(tmp_path):
    with pytest.raises(UnifiedError) as raised:
        read_tokenizer(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}: holds neither tokenizer.json nor vocab.txt, one of which BERT's folders have"
    )


@pytest.mark.parametrize(
    ("special", "more"),
    [({}, "<s> <mask> <pad>"), ({"cls_token": "[BOS]", "sep_token": "[EOS]"}, "[BOS] [EOS] </s>"), ({}, "##s")],
)
@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
def test_special_symbols_have_the_rows_that_transformers_gives_them(tmp_path, special, more, name):
    entries = ["[PAD]", "[UNK]", "w", *more.split(), "[CLS]", "[SEP]", "[MASK]"]
    theirs = transformers.BertTokenizer({entry: i for i, entry in enumerate(entries)}, **special)
    theirs.save_pretrained(tmp_path)
    if name == "vocab.txt":
        (tmp_path / "tokenizer.json").unlink()
        (tmp_path / name).write_text("\n".join(entries) + "\n")
    sizes = dict(hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4)
    model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=len(entries), **sizes))
    model.save_pretrained(tmp_path)
    trained = read_bert(tmp_path).trained
    ours = trained.parameters["transformer.embeddings.tokens.weight"][trained.vocabulary.encode(["<s>", "w", "</s>"])]
    assert ours.equal(model.bert.embeddings.word_embeddings.weight[theirs("w")["input_ids"]])
    masks = trained.vocabulary.special.mask, trained.vocabulary.special.pad
    rows = model.bert.embeddings.word_embeddings.weight[[theirs.mask_token_id, theirs.pad_token_id]]
    assert trained.parameters["transformer.embeddings.tokens.weight"][list(masks)].equal(rows)


@pytest.mark.parametrize("missing", ["[CLS]", "[SEP]"])
def test_a_wordpiece_without_an_entry_for_cls_or_sep_is_no_berts(tmp_path, missing):
    entries = [entry for entry in ["[UNK]", "[CLS]", "[SEP]", "w"] if entry != missing]
    (tmp_path / "vocab.txt").write_text("\n".join(entries) + "\n")
    with pytest.raises(UnifiedError) as raised:
        read_tokenizer(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}: its vocabulary has no [CLS] or no [SEP], and tokenizer_config.json names no entry of it as "
        "cls_token or sep_token"
    )


def tensorflow_variables(family: str, parameters: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Parameters of ``transformers`` as the published code names and lays them out, of what the test needs."""
    found = {}
    for name, value in parameters.items():
        if name.startswith(("cls.predictions.decoder", "lm_loss.weight")):  # copies of the embeddings
            continue
        path = re.sub(r"layer/(\d+)/", r"layer_\1/", name.replace(".", "/"))
        path = re.sub(r"(?i)(layer_?norm)/weight$", r"LayerNorm/gamma", path)
        path = re.sub(r"(?i)(layer_?norm)/bias$", r"LayerNorm/beta", path)
        path = re.sub(r"_embeddings?/weight$", lambda found: found[0].removesuffix("/weight"), path)
        path = path.replace("cls/predictions/bias", "cls/predictions/output_bias")
        path = re.sub(r"seq_relationship/weight$", "seq_relationship/output_weights", path)
        path = re.sub(r"seq_relationship/bias$", "seq_relationship/output_bias", path)
        if family == "xlnet":
            path = f"model/{path}".replace("word_embedding", "word_embedding/lookup_table")
            path = path.replace("mask_emb", "mask_emb/mask_emb")
            path = re.sub(r"rel_attn/([qkvor])$", r"rel_attn/\1/kernel", path)
        if path.endswith("/weight"):
            path, value = path.removesuffix("weight") + "kernel", value.T
        found[path] = np.ascontiguousarray(value.numpy())
    return found if family == "bert" else stacked(found)


def stacked(variables: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """XLNet's vectors of all layers in one variable each."""
    own = re.compile(r"(model/transformer)/layer_\d+/rel_attn/(r_w_bias|r_r_bias|r_s_bias|seg_embed)")
    found = {name: value for name, value in variables.items() if not own.fullmatch(name)}
    for vector in ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed"):
        layers = [value for name, value in variables.items() if name.endswith(f"rel_attn/{vector}")]
        found[f"model/transformer/{vector}"] = np.stack(layers)
    return found


@pytest.mark.parametrize("family", ["bert", "xlnet"])
@pytest.mark.parametrize(("said", "activation"), [(None, "gelu_tanh"), ("gelu", "gelu_tanh"), ("silu", "silu")])
def test_a_tensorflow_checkpoint_has_settings_and_an_activation_of_its_own(tmp_path, family, said, activation):
    """The published code approximates GELU by tanh; a file of PyTorch beside the checkpoint comes first."""
    folder = tmp_path / "out"
    EXPORTS[family](source(family), folder)
    variables = tensorflow_variables(family, read_parameters(folder))
    head = {"bert": "output_weights", "xlnet": "model/classification_x/logit/kernel"}[family]
    others = {name: np.zeros(2, "<f4") for name in (head, "beta1_power", "a/adam_m", "b/adam_m")}
    tensorflow_files.write(folder / "model.ckpt", variables | others | {"global_step": np.array(7, "<i8")})
    field = {"bert": "hidden_act", "xlnet": "ff_activation"}[family]
    settings = {name: value for name, value in settings_of(folder).items() if name not in ("unified", field)}
    if family == "xlnet":  # which names the size of its vocabulary otherwise
        settings["n_token"] = settings.pop("vocab_size")
    (folder / f"{family}_config.json").write_text(json.dumps(settings if said is None else settings | {field: said}))
    change(folder, **{field: "silu", "unified": None})
    first = READERS[family](folder)
    assert first.trained.config.activation == "silu" and first.told.left_out == ()
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UnifiedError, match=r"pytorch_model\.bin"):  # it is no file of torch
        READERS[family](folder)
    (folder / "pytorch_model.bin").unlink()
    read = READERS[family](folder)
    assert read.trained.config == replace(first.trained.config, activation=activation)
    assert read.trained.parameters.keys() == first.trained.parameters.keys()
    for name, value in first.trained.parameters.items():
        if len(value) != len(read.trained.vocabulary):  # rows of new symbols are drawn at random
            assert torch.equal(read.trained.parameters[name], value), name
    assert set(read.told.left_out) == {"beta1_power", "adam_m of 2 variables", "global_step", head}
