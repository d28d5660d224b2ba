"""Whole folders of RoBERTa: states, scores and heads are those of transformers; what is told of them, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from unified import masks
from unified.checkpoints import load_parameters
from unified.checkpoints.conversion import Conversion
from unified.checkpoints.heads import OPTIONAL_HEADS
from unified.conversions.roberta import as_bert, read_transformers_roberta
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization.json_tokenizer import JsonTokenizer

ENTRIES = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{i}" for i in range(9)), "<mask>"]
TOKENIZER = JsonTokenizer(
    {"model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {entry: i for i, entry in enumerate(ENTRIES)}},
     "pre_tokenizer": {"type": "WhitespaceSplit"}},
    {entry: entry for entry in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")},
)  # fmt: skip
#: Named here, as transformers imports a class where it is first named.
CLASSES = {
    name: getattr(transformers, name)
    for name in (
        "RobertaForMaskedLM", "RobertaModel", "RobertaForSequenceClassification", "RobertaForTokenClassification",
        "RobertaForQuestionAnswering",
    )
}  # fmt: skip
UNUSED = "2 rows of positions that no token has"
IDS = torch.tensor([[0, 5, 13, 7, 7, 2]])


def saved(folder: Path, name: str, **changes):
    """A folder of a tiny model with random parameters, and the model."""
    torch.manual_seed(9)
    config = transformers.RobertaConfig(
        vocab_size=len(ENTRIES), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
        type_vocab_size=1, layer_norm_eps=1e-5, **{"max_position_embeddings": 12, **changes},
    )  # fmt: skip
    model = CLASSES[name](config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder)
    TOKENIZER.save(folder)
    return model


def change(folder: Path, *removed: str, **settings) -> None:
    path = folder / "config.json"
    kept = {name: value for name, value in (json.loads(path.read_text()) | settings).items() if name not in removed}
    path.write_text(json.dumps(kept))


def refusal(folder: Path) -> str:
    with pytest.raises(UnifiedError) as raised:
        read_transformers_roberta(folder)
    return str(raised.value)


@pytest.mark.parametrize(
    ("pad", "said"),
    [
        (None, "None; positions begin behind it, so it must be at least 0"),
        (-1, "-1; positions begin behind it, so it must be at least 0"),
        (0, "0 is '<s>' in tokenizer.json; `transformers` would count no position for it"),
        (4, "4 is 'w0' in tokenizer.json; `transformers` would count no position for it"),
    ],
)
def test_the_id_of_padding_is_that_of_the_tokenizer(tmp_path, pad, said):
    saved(tmp_path, "RobertaModel")
    change(tmp_path, pad_token_id=pad)
    assert refusal(tmp_path) == f"config.json: pad_token_id {said}"


def test_the_id_of_padding_is_1_where_settings_lack_it_and_may_be_behind_all_entries(tmp_path):
    saved(tmp_path, "RobertaForMaskedLM", max_position_embeddings=20)
    table = load_file(tmp_path / "model.safetensors")["roberta.embeddings.position_embeddings.weight"]
    for pad, removed in ((1, ()), (1, ("pad_token_id",)), (len(ENTRIES), ()), (len(ENTRIES) + 1, ())):
        change(tmp_path, *removed, pad_token_id=pad)
        read = read_transformers_roberta(tmp_path)
        assert read.told == Conversion(left_out=(f"{pad + 1} rows of positions that no token has",))
        assert read.trained.config.max_positions == 19 - pad
        assert torch.equal(read.trained.parameters["transformer.embeddings.positions.weight"], table[pad + 1 :])


@torch.no_grad()
def states_of(trained) -> tuple[UnifiedModel, torch.Tensor]:
    """Our model of what was read, and its states of the text :data:`IDS`."""
    model = UnifiedModel.for_language(trained.config)
    kept = {name: value for name, value in trained.parameters.items() if name.split(".")[1] not in trained.heads}
    load_parameters(model, kept, OPTIONAL_HEADS)
    symbols = TOKENIZER.native_symbols()
    tokens = torch.tensor([[trained.vocabulary.index(symbols[i]) for i in IDS[0]]])
    positions, mask = torch.arange(6)[None], masks.batch([masks.bidirectional(6)])
    return model, model.eval().transformer(tokens, positions, positions * 0, mask)


@torch.no_grad()
def test_a_masked_language_model_gives_the_numbers_of_transformers(tmp_path):
    theirs = saved(tmp_path, "RobertaForMaskedLM")
    read = read_transformers_roberta(str(tmp_path))
    assert read.trained.config == TransformerConfig(
        len(ENTRIES) + 100, layers=2, width=8, heads=2, feed_forward=12, max_positions=10, token_types=2,
        norm_epsilon=1e-5,
    )  # fmt: skip
    assert read.told == Conversion(left_out=(UNUSED,))
    assert (read.trained.writes, read.trained.heads) == ("nothing", {})
    assert read.tokenizer.native_symbols() == ENTRIES
    model, states = states_of(read.trained)
    wanted = theirs(IDS, output_hidden_states=True)
    torch.testing.assert_close(states, wanted.hidden_states[-1], atol=1e-5, rtol=1e-5)
    own = [read.trained.vocabulary.index(entry) for entry in ENTRIES]
    torch.testing.assert_close(model.logits(states[0])[:, own], wanted.logits[0], atol=1e-4, rtol=1e-4)
    types = read.trained.parameters["transformer.embeddings.token_types.weight"]
    assert torch.equal(types[0], types[1])


@torch.no_grad()
def test_an_encoder_has_a_pooler_and_no_token_head(tmp_path):
    theirs = saved(tmp_path, "RobertaModel")
    read = read_transformers_roberta(tmp_path)
    remark = "it has no token head: the model gives features and can be fine-tuned, but predicts no tokens"
    assert read.told == Conversion(left_out=(UNUSED,), remarks=(remark,))
    _, states = states_of(read.trained)
    torch.testing.assert_close(states, theirs(IDS).last_hidden_state, atol=1e-5, rtol=1e-5)
    pooler = read.trained.parameters["heads.next_sentence.pooler.weight"]
    assert torch.equal(pooler, theirs.pooler.dense.weight)


@pytest.mark.parametrize(
    ("name", "head", "projection", "settings"),
    [
        ("RobertaForSequenceClassification", "classification", "classifier.out_proj",
         {"labels": ("a", "b", "c"), "dropout": 0.3}),
        ("RobertaForTokenClassification", "tagging", "classifier", {"labels": ("a", "b", "c"), "dropout": 0.3}),
        ("RobertaForQuestionAnswering", "span", "qa_outputs", {}),
    ],
)  # fmt: skip
@torch.no_grad()
def test_the_head_of_a_task_comes_along(tmp_path, name, head, projection, settings):
    labels = {} if head == "span" else {"id2label": {0: "a", 1: "b", 2: "c"}}
    theirs = saved(tmp_path, name, classifier_dropout=0.3, **labels)
    read = read_transformers_roberta(tmp_path)
    assert read.trained.heads == {head: {"head": head, "settings": settings}} and read.trained.longest == 10
    assert read.told == Conversion(left_out=(UNUSED,))
    modules = {"output": theirs.get_submodule(projection)}
    if head == "classification":
        modules["pooler"] = theirs.classifier.dense
    wanted = {
        f"heads.{head}.{mine}.{kind}": value for mine, module in modules.items()
        for kind, value in module.named_parameters()
    }  # fmt: skip
    found = {name: value for name, value in read.trained.parameters.items() if name.startswith("heads.")}
    assert found.keys() == wanted.keys() and all(torch.equal(found[name], value) for name, value in wanted.items())
    _, states = states_of(read.trained)
    torch.testing.assert_close(states, theirs.roberta(IDS).last_hidden_state, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("asked", "writes", "types"),
    [(None, "nothing", 1), ("nothing", "nothing", 1), (None, "left_to_right", 6), ("cloze", "cloze", 6)],
)
def test_it_writes_as_it_is_asked_where_it_has_the_token_types(tmp_path, asked, writes, types):
    saved(tmp_path, "RobertaForMaskedLM")
    path = tmp_path / "model.safetensors"
    if types > 1:
        state = load_file(path) | {"roberta.embeddings.token_type_embeddings.weight": torch.randn(types, 8)}
        save_file(state, path)
        change(tmp_path, type_vocab_size=types)
    read = read_transformers_roberta(tmp_path, asked)
    assert read.trained.writes == writes and bool(read.told.remarks) is (types > 1)


def test_heads_beside_a_transformer_without_a_prefix_keep_their_names():
    tables = {f"embeddings.{kind}_embeddings.weight": torch.ones(4, 1) for kind in ("position", "token_type")}
    heads = ("lm_head.dense.bias", "lm_head.layer_norm.bias", "lm_head.bias", "classifier.dense.bias",
             "classifier.out_proj.bias", "qa_outputs.bias")  # fmt: skip
    found, _ = as_bert(tables | {name: torch.tensor([float(i)]) for i, name in enumerate(heads)}, {})
    assert {name: int(value) for name, value in found.items() if "embeddings" not in name} == {
        "cls.predictions.transform.dense.bias": 0, "cls.predictions.transform.LayerNorm.bias": 1,
        "cls.predictions.bias": 2, "bert.pooler.dense.bias": 3, "classifier.bias": 4, "qa_outputs.bias": 5,
    }  # fmt: skip


@pytest.mark.parametrize("model_type", ["roberta", "xlm-roberta", "camembert"])
def test_the_types_that_are_read(tmp_path, model_type):
    saved(tmp_path, "RobertaForMaskedLM")
    change(tmp_path, model_type=model_type)
    assert read_transformers_roberta(tmp_path).trained.config.layers == 2


def test_what_is_no_folder_of_a_roberta_is_refused(tmp_path):
    saved(tmp_path, "RobertaForMaskedLM")
    for model_type in ("bert", None):
        change(tmp_path, model_type=model_type)
        said = f"config.json: model_type {model_type!r}; --from roberta reads roberta, xlm-roberta, camembert"
        assert refusal(tmp_path) == said
    change(tmp_path, model_type="roberta")
    (tmp_path / "tokenizer.json").unlink()
    assert refusal(tmp_path) == (
        f"{tmp_path}: holds no tokenizer.json, which `AutoTokenizer.from_pretrained(...).save_pretrained(...)` writes"
    )
    (tmp_path / "config.json").unlink()
    assert "config.json" in refusal(tmp_path)
