"""Folders at their edges: heads that a file lacks or has besides, rows without an entry, and the text of files."""

from __future__ import annotations

import json
import locale
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from tests.support.published_models import xlnet_pieces
from tests.support.task_folders import tokenizer
from unified.checkpoints.conversion import Conversion
from unified.checkpoints.trained import Trained
from unified.conversions import formats
from unified.conversions.bert import export_bert, read_bert
from unified.conversions.export import Source
from unified.conversions.modern_bert import export_modern_bert, read_modern_bert
from unified.conversions.modern_bert_names import from_modern_bert, to_modern_bert
from unified.conversions.tokenizers import MARKS, bert_tokenizer_files, every_symbol_files, xlnet_tokenizer_files
from unified.conversions.xlnet import export_xlnet, read_xlnet
from unified.data.vocabulary import SENTINELS, Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import ordinary_symbols
from unified.tokenization.json_tokenizer import JsonTokenizer
from unified.tokenization.sentencepiece_tokenizer import train_sentencepiece
from unified.tokenization.wordpiece import WordPieceTokenizer
from unified.tokenization.xlnet import XLNetTokenizer

#: Named here, as transformers imports a class where it is first named.
MODERN_BERT, MODERN_CONFIG = transformers.ModernBertForMaskedLM, transformers.ModernBertConfig
PIECES = XLNetTokenizer(xlnet_pieces())
FOLDED = train_sentencepiece(["a bad cat sat"] * 9, "char", lowercase=True)
BODIES = {
    "bert": {"token_types": 2},
    "xlnet": {"positions": "relative", "token_head": "plain", "inner_dropout": 0.1},
    "modernbert": {"positions": "rotary", "gated": True, "norm": "pre", "embedding_norm": True, "token_types": 0,
                   "norm_type": "layer_without_bias", "linear_without_bias": True},
}  # fmt: skip
EXPORTS = {"bert": export_bert, "modernbert": export_modern_bert, "xlnet": export_xlnet}
READERS = {"bert": read_bert, "modernbert": read_modern_bert, "xlnet": read_xlnet}
NEXT = tuple(f"heads.next_sentence.{part}.{kind}" for part in ("pooler", "classifier") for kind in ("weight", "bias"))
NO_TOKENS = "it has no token head: the model gives features and can be fine-tuned, but predicts no tokens"
SCORED = "transformer.embeddings.tokens.scored"


def source(family: str, own=None, more: tuple[str, ...] = (), heads=None, **changes) -> Source:
    """A model with random parameters, over the symbols of its tokenizer and ``more``."""
    own = own or (PIECES if family == "xlnet" else tokenizer())
    known = Vocabulary([*ordinary_symbols(own), *more])
    shape = {"layers": 1, "width": 8, "heads": 2, "feed_forward": 12, "max_positions": 20, **BODIES[family]}
    config = TransformerConfig(len(known), **{**shape, **changes})
    torch.manual_seed(2)
    state = UnifiedModel.for_language(config).state_dict()
    parameters = {n: v if n.endswith(".scored") else torch.randn(v.shape) for n, v in state.items()}
    return Source("the model", Trained(config, "nothing", parameters, known, heads or {}, 9 if heads else None), own)


def with_parameters(own: Source, lacking: tuple[str, ...] = (), **more: torch.Tensor) -> Source:
    kept = {name: value for name, value in own.trained.parameters.items() if not name.startswith(lacking)}
    return replace(own, trained=replace(own.trained, parameters=kept | more))


def span(name: str, **more: torch.Tensor) -> dict[str, torch.Tensor]:
    """Parameters of a head of two scores for each token."""
    return {f"heads.{name}.output.weight": torch.randn(2, 8), f"heads.{name}.output.bias": torch.randn(2), **more}


def settings_of(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text())


def change_state(folder: Path, **more: torch.Tensor) -> None:
    path = folder / "model.safetensors"
    save_file(load_file(path) | more, path)


# Heads


def test_heads_that_a_file_lacks_are_new_or_said_to_be_missing(tmp_path):
    export_bert(with_parameters(source("bert"), ("heads.next_sentence.",)), tmp_path / "masked")
    assert settings_of(tmp_path / "masked")["architectures"] == ["BertForMaskedLM"]
    assert read_bert(tmp_path / "masked").told == Conversion(new=NEXT)
    for family, architecture in (("bert", "BertModel"), ("xlnet", "XLNetModel"), ("modernbert", "ModernBertModel")):
        folder = tmp_path / family
        EXPORTS[family](with_parameters(source(family), ("heads.token.", "heads.next_sentence.classifier.")), folder)
        assert settings_of(folder)["architectures"] == [architecture]
        read = READERS[family](folder)
        assert read.trained.config.token_head == "none" and read.trained.writes == "nothing"
        assert read.told == Conversion(new=NEXT[2:] if family == "bert" else (), remarks=(NO_TOKENS,))


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_settings_of_a_head_that_transformers_has_no_field_for_come_back(tmp_path, family):
    record = {"head": "span", "settings": {"longest_answer": 7, "names": ("a", ("b",))}}
    own = with_parameters(source(family, heads={"mine": record}), **span("mine"))
    EXPORTS[family](own, tmp_path / "out")
    assert READERS[family](tmp_path / "out").trained.heads == {"span": record}


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_a_head_of_which_the_class_holds_a_part_has_no_record(tmp_path, family):
    """UniLM's head of answers says of which type they are, too, and what is read back has no such part."""
    record = {"head": "span", "settings": {"design": "unilm", "labels": ("no", "yes")}}
    types = {"heads.mine.answer_type.weight": torch.ones(3, 8), "heads.mine.answer_type.bias": torch.ones(3)}
    own = with_parameters(source(family, heads={"mine": record}), **span("mine"), **types)
    told = EXPORTS[family](own, tmp_path / "out")
    lengths = {"max_source": 0, "max_target": 0, "longest_target": 0}
    noted = settings_of(tmp_path / "out")["unified"]
    assert noted.items() >= {"writes": "nothing", "pair_lengths": lengths}.items() and "head" not in noted
    assert types.keys() <= set(told.left_out) and "heads.mine.output.weight" not in told.left_out
    assert READERS[family](tmp_path / "out").trained.heads == {"span": {"head": "span", "settings": {}}}


def test_heads_beside_that_of_a_task_are_not_read(tmp_path):
    record = {"head": "span", "settings": {}}
    export_bert(with_parameters(source("bert", heads={"mine": record}), **span("mine")), tmp_path / "out")
    pooler = {"bert.pooler.dense.weight": torch.ones(8, 8), "bert.pooler.dense.bias": torch.ones(8)}
    pairs = {"cls.seq_relationship.weight": torch.ones(2, 8), "cls.seq_relationship.bias": torch.ones(2)}
    change_state(tmp_path / "out", **pooler, **pairs)
    read = read_bert(tmp_path / "out")
    assert {name for name in read.trained.parameters if name.startswith("heads.")} == {
        "heads.span.output.weight", "heads.span.output.bias",
    }  # fmt: skip
    assert read.told == Conversion(left_out=tuple(pooler))


# Rows


@pytest.mark.parametrize(("family", "task"), [("bert", False), ("bert", True), ("modernbert", False)])
def test_rows_that_no_entry_has_are_left_out_and_counted(tmp_path, family, task):
    heads = {"mine": {"head": "span", "settings": {}}} if task else None
    own = with_parameters(source(family, heads=heads), **(span("mine") if task else {}))
    scored = own.trained.parameters[SCORED]
    scored[[i for i, symbol in enumerate(own.trained.vocabulary.symbols) if symbol in SENTINELS]] = 0.0
    EXPORTS[family](own, tmp_path / "out")
    size = settings_of(tmp_path / "out")["vocab_size"]
    before = READERS[family](tmp_path / "out")
    config = settings_of(tmp_path / "out") | {"vocab_size": size + 3}
    (tmp_path / "out" / "config.json").write_text(json.dumps(config))
    state = load_file(tmp_path / "out" / "model.safetensors")
    longer = {name: torch.cat([value, value[:3]]) for name, value in state.items() if len(value) == size}
    change_state(tmp_path / "out", **longer)
    read = READERS[family](tmp_path / "out")
    assert read.told == Conversion(left_out=("3 rows that no entry of the vocabulary has",))
    assert read.trained.config == before.trained.config
    found, wanted = read.trained.parameters, before.trained.parameters
    assert all(torch.equal(found[name], value) for name, value in wanted.items())


def test_a_symbol_with_half_a_score_keeps_its_bias():
    own = source("bert")
    own.trained.parameters[SCORED][[5, 6, 7]] = torch.tensor([0.5, 0.49, 0.75])
    symbols = own.trained.vocabulary.symbols[4:8]
    bias = own.trained.parameters["heads.token.bias"]
    assert own.by_rows_of(symbols)["heads.token.bias"].tolist() == [
        float(bias[4]),
        float(bias[5]),
        -1e4,
        float(bias[7]),
    ]


@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("maps", [False, True])
def test_biases_of_norms_and_of_linear_maps_are_told_apart(norms, maps):
    theirs = MODERN_BERT(
        MODERN_CONFIG(
            vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
            pad_token_id=1, bos_token_id=0, cls_token_id=0, eos_token_id=2, sep_token_id=2, norm_bias=norms,
            **dict.fromkeys(("attention_bias", "mlp_bias", "classifier_bias"), maps),
        )
    ).state_dict()  # fmt: skip
    config = TransformerConfig(
        11, **{**BODIES["modernbert"], "layers": 2, "width": 8, "heads": 2, "feed_forward": 12,
               "norm_type": "layer" if norms else "layer_without_bias", "linear_without_bias": not maps},
    )  # fmt: skip
    found, new = from_modern_bert(theirs, config)
    wanted = UnifiedModel.for_language(config).state_dict()
    language = {name for name in wanted if not name.startswith("heads.next_sentence.")}
    assert found.keys() == language - {"transformer.embeddings.query", SCORED} and new == []
    _, back, _ = to_modern_bert(found, config)
    assert back.keys() == theirs.keys() - {"decoder.weight"}


# Tokenizers


def test_added_tokens_of_a_file_keep_their_settings_and_their_place(tmp_path):
    added = [{"id": 4, "content": "[MASK]", "special": True, "lstrip": True, "rstrip": False, "normalized": False,
              "single_word": False}]  # fmt: skip
    own = JsonTokenizer(
        {"model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "[CLS]": 1, "é": 2, "b": 3}},
         "pre_tokenizer": {"type": "WhitespaceSplit"}, "added_tokens": added},
        {"[UNK]": "<unk>", "[CLS]": "<s>", "[MASK]": "<mask>"},
    )  # fmt: skip
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")  # files are UTF-8 whatever the language of the system
    try:
        bert_tokenizer_files(source("bert", own, ("[unused1]",))).save(tmp_path)
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    text = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    assert '"é"' in text and text.count("\n") == 1
    found = json.loads(text)["added_tokens"]
    assert [one["content"] for one in found[:5]] == ["[UNK]", "[CLS]", "[MASK]", "<pad>", "</s>"]
    assert [one["id"] for one in found] == [0, 1, *range(4, 4 + len(found) - 2)]
    assert found[2] == added[0] and not any(one["lstrip"] for one in found if one is not found[2])


def test_a_sentinel_that_the_tokenizer_has_is_not_written_twice():
    own = WordPieceTokenizer([*tokenizer().entries, SENTINELS[0]], lowercase=False)
    model = source("bert", own)
    assert own.native_symbols()[-1] == SENTINELS[0]
    assert bert_tokenizer_files(model).symbols == [*own.native_symbols(), *SENTINELS[1:]]


def test_markers_of_an_xlnet_have_the_numbers_behind_its_pieces(tmp_path):
    xlnet_tokenizer_files(source("xlnet", more=("[unused8]", "[unused7]"))).save(tmp_path)
    text, size = (tmp_path / "tokenizer_config.json").read_text(), len(PIECES.native_symbols())
    added = {str(size + i): {"content": f"[unused{7 + i}]", "special": True} for i in (0, 1)}
    wanted = {"tokenizer_class": "XLNetTokenizer", "added_tokens_decoder": added}
    assert text == json.dumps(wanted, indent=2) + "\n"


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_how_the_files_of_a_tokenizer_divide_texts_in_another_way_is_told(tmp_path, family):
    assert EXPORTS[family](source(family, FOLDED), tmp_path / "out").remarks == (MARKS,)


def test_markers_that_an_xlnet_adds_to_its_pieces_come_back_behind_all_other_symbols(tmp_path):
    own = source("xlnet", more=("[unused8]", "[unused7]"))
    export_xlnet(own, tmp_path / "out")
    read, known = read_xlnet(tmp_path / "out").trained, own.trained.vocabulary
    assert read.vocabulary.symbols == [*Vocabulary(ordinary_symbols(PIECES)).symbols, "[unused7]", "[unused8]"]
    for name in (SCORED.replace("scored", "weight"), "heads.token.bias"):
        rows = [i for i, symbol in enumerate(read.vocabulary.symbols) if symbol not in SENTINELS]
        wanted = own.trained.parameters[name][[known.index(read.vocabulary.symbols[i]) for i in rows]]
        assert torch.equal(read.parameters[name][rows], wanted)


def test_settings_of_a_tokenizer_are_indented_and_a_model_of_words_says_its_version(tmp_path):
    bert_tokenizer_files(source("bert")).save(tmp_path)
    text = (tmp_path / "tokenizer_config.json").read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"
    every_symbol_files(replace(source("bert"), tokenizer=None)).save(tmp_path)
    found = json.loads((tmp_path / "tokenizer.json").read_text())
    assert found["version"] == "1.0"
    words = Tokenizer(WordLevel(found["model"]["vocab"], "<unk>"))
    assert found["model"] == json.loads(words.to_str())["model"]


def test_an_xlnet_is_read_by_its_pieces_or_else_by_tokenizer_json(tmp_path):
    entries = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "a", "b"]
    own = JsonTokenizer(
        {"model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {one: i for i, one in enumerate(entries)}},
         "pre_tokenizer": {"type": "WhitespaceSplit"}},
        {"<cls>": "<s>", "<pad>": "<pad>", "<sep>": "</s>", "<unk>": "<unk>", "<mask>": "<mask>"},
    )  # fmt: skip
    for folder, tokenizer_of in ((tmp_path / "json", own), (tmp_path / "pieces", PIECES)):
        model = source("xlnet", tokenizer_of)
        export_xlnet(model, folder)
        if tokenizer_of is PIECES:
            own.save(folder)
        read = read_xlnet(folder)
        assert type(read.tokenizer) is type(tokenizer_of)
        assert read.tokenizer.native_symbols() == tokenizer_of.native_symbols()
        assert read.trained.config == model.trained.config


# Which format


def test_an_xlnet_with_its_own_tokenizer_leaves_as_one(tmp_path):
    formats.export(source("xlnet"), tmp_path / "out")
    assert settings_of(tmp_path / "out")["model_type"] == "xlnet"
