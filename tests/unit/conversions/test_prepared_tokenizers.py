"""`unified prepare --tokenizer FOLDER` and `unified convert FOLDER` read one tokenizer of a folder of transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

from tests.support.published_models import xlnet_pieces
from unified.checkpoints.files import load_checkpoint, save
from unified.checkpoints.trained import Trained, write
from unified.cli import main
from unified.conversions.export import Source
from unified.conversions.formats import read_folder
from unified.conversions.xlnet import export_xlnet
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import Tokenizer, ordinary_symbols
from unified.tokenization.xlnet import XLNetTokenizer
from unified.tokenization.xlnet_json import xlnet_json

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "paris", "is", "a", "##b", "cafe", "##s"]
TEXT = "PARIS is a Café Ab x"


def uncased_bert(folder: Path) -> transformers.BertTokenizer:
    """A small uncased BERT, as transformers writes it, and its tokenizer."""
    theirs = transformers.BertTokenizer({entry: i for i, entry in enumerate(ENTRIES)}, do_lower_case=True)
    theirs.save_pretrained(folder)
    sizes = dict(vocab_size=len(ENTRIES), hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    transformers.BertModel(transformers.BertConfig(**sizes, intermediate_size=4)).save_pretrained(folder)
    return theirs


def read(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizer that `unified prepare` takes, and that of the converted model, which must have one dictionary."""
    imported = read_folder(folder)
    prepared, vocabulary, _ = TokenizerSource(str(folder)).load()
    assert imported.tokenizer is not None and vocabulary.symbols == imported.trained.vocabulary.symbols
    return prepared, imported.tokenizer


@pytest.mark.parametrize("names", ["vocab.txt", "tokenizer.json", "vocab.txt tokenizer.json"])
@pytest.mark.parametrize("settings", [None, {}, {"tokenizer_class": "BertTokenizer"}, {"do_lower_case": True}])
def test_an_uncased_bert_is_uncased_however_its_folder_says_it(tmp_path, names, settings):
    theirs = uncased_bert(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(ENTRIES) + "\n")
    for name in {"vocab.txt", "tokenizer.json"} - set(names.split()):
        (tmp_path / name).unlink()
    (tmp_path / "tokenizer_config.json").unlink()
    if settings is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    for tokenizer in read(tmp_path):
        (ids,) = (one.tolist() for one in tokenizer.encode_ids([TEXT])[:1])
        assert ids == theirs(TEXT, add_special_tokens=False)["input_ids"]


def test_a_cased_vocabulary_that_tokenizer_json_lowers_is_uncased(tmp_path):
    """It counts before the capital letters of vocab.txt, as in transformers."""
    uncased_bert(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join([*ENTRIES[:-1], "S"]) + "\n")
    assert [one.encode("PARIS") for one in read(tmp_path)] == [["paris"], ["paris"]]


def prepared(folder: Path, tokenizer: object, *options: object) -> bytes:
    """The dictionary that `unified prepare` writes into ``folder``."""
    text = folder.with_suffix(".txt")
    text.write_text("a b\n\nb a\n" * 20)
    words = ["prepare", text, "--output", folder, "--workers", 1, "--tokenizer", tokenizer, *options]
    assert main([str(word) for word in words]) == 0
    return (folder / "dict.txt").read_bytes()


def test_the_tokenizer_of_a_run_is_that_of_its_data(tmp_path, capsys):
    """A run holds a copy of its tokenizer for transformers, of other symbols, and no dictionary."""
    data, run = tmp_path / "data", tmp_path / "run"
    wanted = prepared(data, "wordpiece", "--reserve", 3)
    vocabulary = Vocabulary.load(data / "dict.txt")
    config = TransformerConfig(len(vocabulary), layers=1, width=8, heads=2)
    run.mkdir()
    write(Trained(config, "nothing", UnifiedModel.for_language(config).state_dict(), vocabulary), run)
    content = load_checkpoint(run / "checkpoint_last.pt")
    (run / "dict.txt").unlink()
    (run / "vocab.txt").write_text("\n".join(ENTRIES) + "\n")
    content["cfg"]["task"]["data"] = str(data)
    save(content, run / "checkpoint_last.pt")
    assert prepared(tmp_path / "more", run) == wanted
    data.rename(tmp_path / "moved")
    words = ["prepare", tmp_path / "data.txt", "--output", tmp_path / "no", "--tokenizer", run]
    assert main([str(word) for word in words]) == 2
    assert "checkpoint_last.pt: there is no dictionary now in " in capsys.readouterr().err


@pytest.mark.parametrize("has_json", [False, True])
def test_the_pieces_of_an_xlnet_count_beside_its_tokenizer_json(tmp_path, has_json):
    own = XLNetTokenizer(xlnet_pieces())
    vocabulary = Vocabulary(ordinary_symbols(own))
    config = TransformerConfig(len(vocabulary), layers=1, width=8, heads=2, positions="relative", token_head="plain")
    torch.manual_seed(0)
    trained = Trained(config, "permutation", UnifiedModel.for_language(config).state_dict(), vocabulary)
    export_xlnet(Source("the model", trained, own), tmp_path / "out")
    if has_json:  # as transformers 4 saves both
        content = xlnet_json(own)
        named = {"cls_token": "<cls>", "sep_token": "<sep>", "bos_token": "<s>", "eos_token": "</s>"}
        (tmp_path / "out" / "tokenizer.json").write_text(json.dumps(content))
        (tmp_path / "out" / "tokenizer_config.json").write_text(json.dumps(named))
    assert [type(one) for one in read(tmp_path / "out")] == [XLNetTokenizer, XLNetTokenizer]
