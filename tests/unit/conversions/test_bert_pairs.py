"""Two texts under a BERT have the token types and separators that the folder's tokenizer gives in transformers."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch
import transformers
from transformers import PreTrainedTokenizerBase

from unified import load
from unified.conversions.formats import read_folder
from unified.tokenization.pair_template import read_pair_template

WORDS = ["a", "good", "film", "the", "bad", "cat", "sat"]
ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
FIRST, SECOND = "a good film", "the bad cat sat"
UNTYPED = ["input_ids", "attention_mask"]
TYPED = [*UNTYPED, "token_type_ids"]
NOT_READ = "token types that tokenizer.json gives to two texts, which are read with 0 and 1"
NOT_GIVEN = "the row of token type 1, which its tokenizer gives to no text"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNIFIED_CACHE", str(tmp_path / "cache"))


def model(rows: int) -> transformers.BertForSequenceClassification:
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(ENTRIES), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        type_vocab_size=rows, max_position_embeddings=50, id2label={0: "x", 1: "y", 2: "z"},
    )  # fmt: skip
    made = transformers.BertForSequenceClassification(config).eval()
    for name, parameter in made.named_parameters():
        if "LayerNorm" not in name:
            torch.nn.init.normal_(parameter, std=0.5)
    return made


def saved(
    folder: Path,
    rows: int,
    name: str | None = None,
    given: list[str] | None = None,
    types: tuple[int, ...] = (0, 0, 0, 1, 1),
    separators: int = 1,
) -> transformers.BertForSequenceClassification:
    """A folder of a tiny BERT with random parameters.

    Args:
        rows: of its table of token types.
        name: class of its tokenizer; None does not say.
        given: what the tokenizer gives a model; None does not say.
        types: that ``tokenizer.json`` gives to CLS, the first text, SEP, the second text, and SEP.
        separators: between the two.
    """  # fmt: skip
    made = model(rows)
    made.save_pretrained(folder)
    transformers.BertTokenizer({entry: i for i, entry in enumerate(ENTRIES)}).save_pretrained(folder)
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    pair = content["post_processor"]["pair"]
    for piece, one in zip(pair, types, strict=True):
        (part,) = piece.values()
        part["type_id"] = one
    pair[2:3] *= separators
    path.write_text(json.dumps(content))
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text()) | {"tokenizer_class": name, "model_input_names": given}
    path.write_text(json.dumps({field: value for field, value in settings.items() if value is not None}))
    return made


@torch.no_grad()
def theirs(made: transformers.BertForSequenceClassification, folder: Path) -> list[float]:
    encoded = transformers.AutoTokenizer.from_pretrained(folder)(FIRST, SECOND, return_tensors="pt")
    return made(**encoded).logits.softmax(-1)[0].tolist()


def ours(folder: Path) -> list[float]:
    (found,) = load(folder).predict([{"text": FIRST, "second": SECOND}])
    return [*found["probabilities"].values()]


def cases():
    """Classes, what they give, rows and types of a template that a model of ours can have."""
    names = [None, "BertTokenizer", "ElectraTokenizer", "DistilBertTokenizer", "PreTrainedTokenizerFast"]
    for name, given, separators in itertools.product(names, [None, UNTYPED, TYPED], [1, 2]):
        for rows, types in [(2, (0, 0, 0, 1, 1)), (2, (0,) * 5), (3, (0, 0, 0, 2, 2)), (1, (0,) * 5)]:
            yield rows, name, given, types, separators


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_two_texts_are_read_as_transformers_reads_them_also_after_an_export(tmp_path, case):
    made = saved(tmp_path / "theirs", *case)
    try:
        wanted = theirs(made, tmp_path / "theirs")
    except IndexError:
        pytest.skip("the tokenizer gives a token type that has no row")
    own = load(tmp_path / "theirs")
    assert ours(tmp_path / "theirs") == pytest.approx(wanted, abs=2e-6)
    if own.model.config.pair_separators == 1:
        own.save_pretrained(tmp_path / "again")
        again = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "again").eval()
        assert theirs(again, tmp_path / "again") == pytest.approx(wanted, abs=2e-6)


CLASSES = (
    "Bert", "ConvBert", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader", "DistilBert", "Electra", "LayoutLM",
    "Lxmert", "MobileBert", "SqueezeBert",
)  # fmt: skip


@pytest.mark.parametrize("name", [*CLASSES, "PreTrained"])
def test_classes_have_the_template_and_give_the_types_that_they_have_and_give_in_transformers(tmp_path, name):
    saved(tmp_path, 2, f"{name}TokenizerFast", types=(0, 0, 0, 0, 0), separators=2)
    path = tmp_path / "tokenizer_config.json"
    for given in (None, TYPED):
        named = {} if given is None else {"model_input_names": given}
        path.write_text(json.dumps(json.loads(path.read_text()) | named))
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
        pair = PreTrainedTokenizerBase.__call__(tokenizer, FIRST, SECOND)
        separators = pair["input_ids"][:-1].count(tokenizer.sep_token_id)
        template = read_pair_template(tmp_path, "TokenizersBackend")
        assert (1 if template.between is None else len(template.between)) == separators
        assert template.second_type == pair.get("token_type_ids", [0])[-1]


@pytest.mark.parametrize("types", [(0, 0, 0, 1, 0), (1, 1, 1, 0, 0), (0, 0, 1, 1, 1), (0, 0, 0, 2, 2)])
def test_token_types_that_no_model_is_built_for_are_named(tmp_path, types):
    made = saved(tmp_path, 2, "PreTrainedTokenizerFast", TYPED, types)
    read = read_folder(tmp_path)
    assert NOT_READ in read.told.left_out
    table = made.bert.embeddings.token_type_embeddings.weight
    assert torch.equal(read.trained.parameters["transformer.embeddings.token_types.weight"], table)


def test_a_row_of_token_types_that_no_text_has_is_named(tmp_path):
    made = saved(tmp_path / "none", 3, "PreTrainedTokenizerFast", UNTYPED)
    read = read_folder(tmp_path / "none")
    assert NOT_GIVEN in read.told.left_out
    first, _, third = made.bert.embeddings.token_type_embeddings.weight
    table = torch.stack([first, first, third])
    assert torch.equal(read.trained.parameters["transformer.embeddings.token_types.weight"], table)
    for rows, name, given in ((2, "BertTokenizer", TYPED), (1, "BertTokenizer", UNTYPED)):
        saved(tmp_path / f"{rows}", rows, name, given)
        assert not {NOT_READ, NOT_GIVEN} & set(read_folder(tmp_path / f"{rows}").told.left_out)


def test_of_one_row_both_texts_have_it(tmp_path):
    """Where transformers fails, as its tokenizer gives a second type."""
    made = saved(tmp_path, 1, "BertTokenizer")
    (row,) = made.bert.embeddings.token_type_embeddings.weight
    found = read_folder(tmp_path).trained
    assert found.config.token_types == 2
    assert torch.equal(found.parameters["transformer.embeddings.token_types.weight"], torch.stack([row, row]))
