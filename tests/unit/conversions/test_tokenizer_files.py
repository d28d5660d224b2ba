"""Tokenizers as files for transformers: symbols and their rows, special symbols, and what is put around texts."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer

from tests.support.published_models import xlnet_pieces
from tests.support.task_folders import WORDS, tokenizer
from unified.checkpoints.trained import Trained
from unified.conversions.bert import read_tokenizer
from unified.conversions.export import Source
from unified.conversions.tokenizers import (
    MARKS,
    TokenizerFiles,
    bert_tokenizer_files,
    every_symbol_files,
    json_tokenizer_files,
    no_bert_tokenizer,
    no_xlnet_tokenizer,
    xlnet_tokenizer_files,
)
from unified.data.vocabulary import SENTINELS, Vocabulary
from unified.inference.sequences import Codec, sequence
from unified.model import TransformerConfig
from unified.tokenization import load_tokenizer, ordinary_symbols
from unified.tokenization.anna import AnnaTokenizer
from unified.tokenization.json_tokenizer import JsonTokenizer
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from unified.tokenization.symbol_tokenizer import SymbolTokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer
from unified.tokenization.xlnet import XLNetTokenizer

SCORED = "transformer.embeddings.tokens.scored"
WORDPIECE = tokenizer()
BARE = WordPieceTokenizer(["[UNK]", "a", "b"])
PIECES = train_sentencepiece(["a bad cat sat"] * 9, "char")
ANNA = AnnaTokenizer(["[UNK]", "[CLS]", "[SEP]", *"abc.", "##a", "##b", "##c"], ["ab.c"], "all")
XLNET = XLNetTokenizer(xlnet_pieces())
JSON = JsonTokenizer(
    {"model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "[CLS]": 1, "a": 2, "b": 3}},
     "pre_tokenizer": {"type": "WhitespaceSplit"}},
    {"[UNK]": "<unk>", "[CLS]": "<s>"},
)  # fmt: skip
POSITIONS = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]",
             "mask_token": "[MASK]"}  # fmt: skip
RELATIVE = {"positions": "relative", "token_head": "plain"}
OTHERS = {"sep_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}


def source(own, *more: str, longest: int | None = None, learnt: tuple[str, ...] = (), **changes) -> Source:
    """A model over the dictionary of ``own`` and ``more`` symbols, of which the sentinels ``learnt`` have rows."""
    vocabulary = Vocabulary([*(ordinary_symbols(own) if own else []), *more])
    config = replace(TransformerConfig(len(vocabulary), layers=1, width=8, heads=2, max_positions=77), **changes)
    scored = torch.tensor([float(one not in SENTINELS or one in learnt) for one in vocabulary.symbols])
    return Source("model", Trained(config, "nothing", {SCORED: scored}, vocabulary, longest=longest), own)


def saved(files: TokenizerFiles, folder: Path) -> dict[str, dict]:
    """The JSON files that are written, by name; others are checked to be there by their names alone."""
    folder.mkdir()
    files.save(folder)
    return {one.name: json.loads(one.read_text()) if one.suffix == ".json" else {} for one in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    ("own", "bert", "xlnet"),
    [(WORDPIECE, True, False), (JSON, True, True), (PIECES, True, False), (XLNET, False, True), (ANNA, False, False),
     (None, False, False)],
    ids=["wordpiece", "json", "sentencepiece", "xlnet", "anna", "none"],
)  # fmt: skip
def test_which_tokenizer_goes_with_which_class(own, bert, xlnet):
    model = source(own)
    needed = "WordPiece (vocab.txt), sentencepiece (tokenizer.model) or tokenizer.json"
    assert no_bert_tokenizer(model) == (None if bert else model.other_tokenizer(needed))
    needed = "XLNet's tokenizer (xlnet.model or tokenizer.json)"
    assert no_xlnet_tokenizer(model) == (None if xlnet else model.other_tokenizer(needed))


@pytest.mark.parametrize(("longest", "most"), [(None, 77), (33, 33)])
def test_wordpiece_is_written_as_vocab_txt_with_learnt_sentinels_and_markers(tmp_path, longest, most):
    model = source(WORDPIECE, "[unused2]", "[unused1]", longest=longest, learnt=SENTINELS[3:4])
    files = bert_tokenizer_files(model)
    more = [SENTINELS[3], "[unused1]", "[unused2]"]
    assert files.symbols == [*WORDPIECE.native_symbols(), *more]
    found = saved(files, tmp_path / "x")
    assert list(found) == ["tokenizer_config.json", "vocab.txt"]
    assert (tmp_path / "x" / "vocab.txt").read_text().splitlines() == [*WORDPIECE.entries, *more]
    assert found["tokenizer_config.json"] == {
        "tokenizer_class": "BertTokenizer", "do_lower_case": False, "strip_accents": None,
        "tokenize_chinese_chars": True, "model_max_length": most,
    }  # fmt: skip


@pytest.mark.parametrize("call", [bert_tokenizer_files, json_tokenizer_files, every_symbol_files])
@pytest.mark.parametrize("kept", [["[UNK]"], ["[MASK]", "[UNK]", "[CLS]"], ["[UNK]", "[SEP]", "[PAD]"]], ids=str)
def test_special_symbols_that_wordpiece_lacks_are_written_and_read_again(tmp_path, call, kept):
    """A folder without an entry for CLS or SEP would be no BERT's."""
    own = WordPieceTokenizer([*kept, "a", "##b"], lowercase=True)
    files = call(source(own))
    assert {"<s>", "</s>", "<pad>", "<unk>", "<mask>"} <= set(files.symbols)
    saved(files, tmp_path / "x")
    read = read_tokenizer(tmp_path / "x")
    assert read.native_symbols() == files.symbols and read.encode("Ab [CLS]") == own.encode("Ab [CLS]")


def test_all_sentinels_are_written_where_nothing_says_which_are_learnt():
    model = source(WORDPIECE)
    bare = replace(model, trained=replace(model.trained, parameters={}))
    assert bert_tokenizer_files(bare).symbols == [*WORDPIECE.native_symbols(), *SENTINELS]
    assert bert_tokenizer_files(model).symbols == WORDPIECE.native_symbols()


def template(cls: str, separator: str, ids: tuple[int, int]) -> dict:
    def one(symbol: str, segment: int) -> dict:
        return {"SpecialToken": {"id": symbol, "type_id": segment}}

    first, second = ({"Sequence": {"id": side, "type_id": i}} for i, side in enumerate("AB"))
    single = [one(cls, 0), first, one(separator, 0)]
    special = zip((cls, separator), ids, strict=True)
    return {
        "type": "TemplateProcessing", "single": single, "pair": [*single, second, one(separator, 1)],
        "special_tokens": {symbol: {"id": symbol, "ids": [i], "tokens": [symbol]} for symbol, i in special},
    }  # fmt: skip


def test_the_template_of_two_texts_has_the_separators_of_the_model(tmp_path):
    model = source(JSON, pair_separators=2)
    assert no_bert_tokenizer(model) is None
    bert_tokenizer_files(model).save(tmp_path)
    read = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    two = read.encode("a", "b")
    assert two.tokens == ["[CLS]", "a", "</s>", "</s>", "b", "</s>"] and two.type_ids == [0, 0, 0, 0, 1, 1]
    assert read.encode("a").tokens == ["[CLS]", "a", "</s>"]


@pytest.mark.parametrize("trims", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_offsets_are_without_the_space_before_a_word_where_a_robertas_are(tmp_path, trims, before):
    """Whichever answer or entity a model marks, the text is the same as with the tokenizer of transformers."""
    entries = ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "\u0120", "\u0120a", "<mask>"]
    ids, options = {entry: i for i, entry in enumerate(entries)}, {"add_prefix_space": before}
    theirs = transformers.RobertaTokenizer(ids, [("\u0120", "a")], trim_offsets=trims, **options)
    theirs.save_pretrained(tmp_path / "theirs")
    own = load_tokenizer(tmp_path / "theirs")
    for copy in ("one", "two"):  # what left once leaves again
        saved(bert_tokenizer_files(source(own, pair_separators=2)), tmp_path / copy)
        ours = transformers.AutoTokenizer.from_pretrained(tmp_path / copy)
        for texts in (["a b  ab a"], [" a", "b a "], ["b"]):
            found, wanted = (one(*texts, return_offsets_mapping=True) for one in (ours, theirs))
            assert found["input_ids"] == wanted["input_ids"] and found["offset_mapping"] == wanted["offset_mapping"]
        own = load_tokenizer(tmp_path / copy)


def test_a_vocab_txt_cannot_say_that_two_separators_stand_between_two_texts():
    said = "vocab.txt stands for one separator between two texts, and the model reads 2"
    assert no_bert_tokenizer(source(WORDPIECE, pair_separators=2)) == said


@pytest.mark.parametrize("call", [bert_tokenizer_files, json_tokenizer_files])
def test_another_tokenizer_is_written_as_tokenizer_json_with_all_special_symbols(tmp_path, call):
    model = source(JSON, "[unused1]", learnt=SENTINELS[:1])
    files = call(model)
    assert files.symbols == ["<unk>", "<s>", "a", "b", "<pad>", "</s>", "<mask>", SENTINELS[0], "[unused1]"]
    found = saved(files, tmp_path / "x")
    assert list(found) == ["tokenizer.json", "tokenizer_config.json"]
    written = found["tokenizer.json"]
    entries = ["[UNK]", "[CLS]", "<pad>", "</s>", "<mask>", SENTINELS[0], "[unused1]"]
    assert [(one["id"], one["content"], one["special"]) for one in written["added_tokens"]] == [
        (i, entry, True) for i, entry in zip((0, 1, 4, 5, 6, 7, 8), entries, strict=True)
    ]
    assert written["post_processor"] == template("[CLS]", "</s>", (1, 5))
    assert written["truncation"] is None and written["padding"] is None and written["model"] == JSON.content["model"]
    named = {"cls_token": "[CLS]", "unk_token": "[UNK]", **OTHERS}
    assert found["tokenizer_config.json"] == {
        "tokenizer_class": "PreTrainedTokenizerFast", **named, "model_max_length": 77,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
    }  # fmt: skip
    read = Tokenizer.from_file(str(tmp_path / "x" / "tokenizer.json"))
    one, two = read.encode("a<mask>b"), read.encode("a", "b c")
    assert one.tokens == ["[CLS]", "a", "<mask>", "b", "</s>"]
    assert two.tokens == ["[CLS]", "a", "</s>", "b", "[UNK]", "</s>"] and two.type_ids == [0, 0, 0, 1, 1, 1]


def test_added_tokens_of_a_file_stay_as_they_are():
    content = {**JSON.content, "added_tokens": [{"id": 1, "content": "[CLS]", "special": True, "lstrip": True}]}
    own = JsonTokenizer({**content, "added_tokens": content["added_tokens"]}, JSON.special)
    files = bert_tokenizer_files(source(own))
    assert files.symbols == ["<unk>", "<s>", "a", "b", "<pad>", "</s>", "<mask>"]
    assert own.content == content


@pytest.mark.parametrize("call", [bert_tokenizer_files, every_symbol_files])
def test_a_symbol_gets_another_entry_where_its_name_is_that_of_another_symbol(tmp_path, call):
    model = {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"</s>": 0, "a": 1, "<unk>": 2}}
    settings = {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": model}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    own = load_tokenizer(tmp_path)
    assert own.native_symbols() == ["<s>", "a", "<unk>"]
    files = call(source(own))
    found = saved(files, tmp_path / "x")
    assert found["tokenizer_config.json"]["cls_token"] == "</s>"
    assert found["tokenizer_config.json"]["sep_token"] == "[</s>]"
    read = Tokenizer.from_file(str(tmp_path / "x" / "tokenizer.json"))
    assert read.get_vocab_size() == len(files.symbols)
    assert [files.symbols[i] for i in read.encode("a").ids] == ["<s>", "a", "</s>"]
    assert load_tokenizer(tmp_path / "x").native_symbols() == files.symbols


def test_files_that_drop_marks_come_with_a_remark():
    folded = train_sentencepiece(["a bad cat sat"] * 9, "char", lowercase=True)
    for files in (bert_tokenizer_files, json_tokenizer_files, every_symbol_files):
        assert files(source(folded)).remarks == (MARKS,)
        assert files(source(PIECES)).remarks == files(source(WORDPIECE)).remarks == ()
    assert every_symbol_files(source(folded)).with_another(lambda folder: None).remarks == (MARKS,)


def test_a_sentencepiece_model_is_written_as_tokenizer_json(tmp_path):
    files = bert_tokenizer_files(source(PIECES))
    assert files.symbols == [*PIECES.native_symbols(), "<mask>"]
    saved(files, tmp_path / "x")
    read = Tokenizer.from_file(str(tmp_path / "x" / "tokenizer.json"))
    for text in ("a cat", "  bad\tsat ", "Ω"):
        pieces = ["<unk>" if piece == "Ω" else piece for piece in PIECES.encode(text)]
        assert read.encode(text).tokens == ["<s>", *pieces, "</s>"]


@pytest.mark.parametrize("symbol", [SENTINELS[0], "[unused1]"])
def test_a_symbol_that_is_a_control_piece_of_a_sentencepiece_model_gets_an_entry_of_its_own(tmp_path, symbol):
    """A control piece comes out of no text, so the tokenizer has no symbol for it."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a bad cat sat"] * 9), model_writer=made, model_type="char", vocab_size=20,
        hard_vocab_limit=False, control_symbols=[symbol], minloglevel=3,
    )  # fmt: skip
    own = SentencePieceTokenizer(made.getvalue())
    model = source(own, learnt=SENTINELS[:1]) if symbol in SENTINELS else source(own, symbol)
    files = bert_tokenizer_files(model)
    assert files.symbols == [*own.native_symbols(), "<pad>", "<mask>", symbol]
    saved(files, tmp_path / "x")
    read = Tokenizer.from_file(str(tmp_path / "x" / "tokenizer.json"))
    assert read.id_to_token(files.symbols.index(symbol)) == f"[{symbol}]"


def test_wordpiece_is_written_as_tokenizer_json_where_that_is_asked_for(tmp_path):
    own = WordPieceTokenizer(["[UNK]", "[CLS]", "w", "##s"], lowercase=True)
    files = json_tokenizer_files(source(own, "[unused1]", learnt=SENTINELS[:1]))
    assert files.symbols == ["<unk>", "<s>", "w", "##s", "<pad>", "</s>", "<mask>", SENTINELS[0], "[unused1]"]
    found = saved(files, tmp_path / "x")
    assert found["tokenizer_config.json"].items() >= POSITIONS.items()
    read = Tokenizer.from_file(str(tmp_path / "x" / "tokenizer.json"))
    assert read.encode("Ws [MASK] x").tokens == ["[CLS]", "w", "##s", "[MASK]", "[UNK]", "[SEP]"]
    assert read.decode([2, 3, 2]) == "ws w"
    assert found["tokenizer.json"]["decoder"] == {"type": "WordPiece", "prefix": "##", "cleanup": False}


# XLNet's class


def test_xlnets_model_is_written_under_the_name_of_transformers(tmp_path):
    files = xlnet_tokenizer_files(source(XLNET))
    assert files.symbols == XLNET.native_symbols() and list(saved(files, tmp_path / "x")) == ["spiece.model"]
    assert (tmp_path / "x" / "spiece.model").read_bytes() == XLNET.model
    files = xlnet_tokenizer_files(source(XLNET, "[unused7]"))
    size = len(XLNET.native_symbols())
    assert files.symbols == [*XLNET.native_symbols(), "[unused7]"]
    assert saved(files, tmp_path / "y")["tokenizer_config.json"] == {
        "tokenizer_class": "XLNetTokenizer",
        "added_tokens_decoder": {str(size): {"content": "[unused7]", "special": True}},
    }


def test_a_tokenizer_json_of_an_xlnet_pads_at_the_left_and_gets_special_symbols_and_markers(tmp_path):
    files = xlnet_tokenizer_files(source(JSON, "[unused7]", **RELATIVE))
    more = ["<pad>", "</s>", "<mask>", "[unused7]"]
    assert files.symbols == [*JSON.native_symbols(), *more]
    found = saved(files, tmp_path / "x")
    assert found["tokenizer_config.json"]["padding_side"] == "left"
    assert [one["content"] for one in found["tokenizer.json"]["added_tokens"]] == ["[UNK]", "[CLS]", *more]


# A folder with code of its own


@pytest.mark.parametrize("own", [WORDPIECE, JSON, PIECES, XLNET, ANNA, None])
def test_every_symbol_of_the_dictionary_has_a_row_behind_those_of_the_tokenizer(tmp_path, own):
    model = source(own, "[unused1]", "w99")
    files, known = every_symbol_files(model), model.trained.vocabulary.symbols
    native = own.native_symbols() if own else known
    assert files.symbols == [*native, *(symbol for symbol in known if symbol not in native)]
    found = saved(files, tmp_path / "x")
    names = {"tokenizer.json", "tokenizer_config.json"}
    names |= {"anna.json"} if own is ANNA else {"spiece.model"} if own is XLNET else set()
    assert found.keys() == names and found["tokenizer_config.json"]["clean_up_tokenization_spaces"] is False
    read = Tokenizer.from_file(str(tmp_path / "x" / "tokenizer.json"))
    assert read.get_vocab_size() == len(files.symbols)
    for symbol in ("[unused1]", "w99", SENTINELS[5]):
        if own is not WORDPIECE:
            assert read.token_to_id(symbol) == files.symbols.index(symbol)


def test_xlnets_tokenizer_beside_relative_positions_is_that_of_its_class(tmp_path):
    files = every_symbol_files(source(XLNET, **RELATIVE))
    assert files.symbols == [*XLNET.native_symbols(), *SENTINELS]
    found = saved(files, tmp_path / "x")
    assert list(found) == ["spiece.model", "tokenizer_config.json"]
    assert found["tokenizer_config.json"]["tokenizer_class"] == "XLNetTokenizer"


BERTS = JsonTokenizer({**JSON.content, "post_processor": template("[CLS]", "a", (1, 2))}, JSON.special)


@pytest.mark.parametrize("own", [WORDPIECE, BARE, BERTS, PIECES, XLNET, ANNA, None])
@pytest.mark.parametrize("changes", [{}, {"pair_separators": 2}, RELATIVE], ids=["learned", "two", "relative"])
@pytest.mark.parametrize("call", [every_symbol_files, bert_tokenizer_files, xlnet_tokenizer_files])
def test_texts_are_joined_in_transformers_as_the_model_reads_them(tmp_path, own, changes, call):
    """Special symbols and token types, of one text and of two."""
    model = source(own, **changes)
    if call is bert_tokenizer_files and ("positions" in changes or no_bert_tokenizer(model)):
        pytest.skip("not exported as a BERT")
    if call is xlnet_tokenizer_files and ("positions" not in changes or no_xlnet_tokenizer(model)):
        pytest.skip("not exported as an XLNet")
    if own is XLNET and "positions" in changes:
        pytest.skip("written as spiece.model, which transformers reads with protobuf alone")
    files, trained = call(model), model.trained
    saved(files, tmp_path / "x")
    kind = "xlnet" if call is xlnet_tokenizer_files else "bert"
    (tmp_path / "x" / "config.json").write_text(json.dumps({"model_type": kind}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "x")
    reader = own or SymbolTokenizer(trained.vocabulary.symbols)
    codec = Codec.for_model(trained.config, reader, trained.vocabulary, 40)
    for texts in (["a"], ["a", "b a"]):
        wanted = sequence(tuple(codec.encode(texts)), codec)
        given = theirs(*texts, return_token_type_ids=True)
        symbols = [trained.vocabulary.symbols[i] for i in wanted.tokens]
        assert [files.symbols[i] for i in given["input_ids"]] == symbols
        assert given["token_type_ids"] == wanted.token_types.tolist()


def test_a_model_without_a_tokenizer_divides_texts_at_white_space(tmp_path):
    model = source(None, "a", "b.")
    saved(every_symbol_files(model), tmp_path / "x")
    read, symbols = Tokenizer.from_file(str(tmp_path / "x" / "tokenizer.json")), model.trained.vocabulary.symbols
    assert read.encode(" a b.\tb").ids == [0, symbols.index("a"), symbols.index("b."), 3, 2]


def test_annas_tokenizer_is_written_alone_where_tokenizer_json_cannot_say_it(tmp_path):
    own = AnnaTokenizer(["[UNK]", "a", "."], [".a"], "all")
    files = every_symbol_files(source(own))
    assert list(saved(files, tmp_path / "x")) == ["anna.json"]
    assert load_tokenizer(tmp_path / "x").words == [".a"]
    saved(every_symbol_files(source(ANNA)), tmp_path / "y")
    read = Tokenizer.from_file(str(tmp_path / "y" / "tokenizer.json"))
    for text in ("ab.c (ab.c)", "abc", "ab.ca"):
        ids = [ANNA.native_symbols()[i] for i in read.encode(text, add_special_tokens=False).ids]
        assert ids == ANNA.encode(text)


def test_a_relative_model_has_its_first_symbol_behind_texts(tmp_path):
    files = every_symbol_files(source(None, *WORDS, **RELATIVE))
    saved(files, tmp_path / "x")
    read = Tokenizer.from_file(str(tmp_path / "x" / "tokenizer.json"))
    one, two = read.encode("w1"), read.encode("w1", "w2")
    assert (one.tokens, one.type_ids) == (["w1", "</s>", "<s>"], [0, 0, 2])
    assert (two.tokens, two.type_ids) == (["w1", "</s>", "w2", "</s>", "<s>"], [0, 0, 1, 1, 2])
