"""Folders of XLNet and RoBERTa as transformers and fairseq write them."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch
import transformers

from tests.support.published_models import published
from trust.fuzzing.model_files import HEADER, json_tokenizer, read_export
from trust.fuzzing.mutators import BYTES, JSON, TEXT
from trust.fuzzing.reader import Reader
from trust.fuzzing.settings_mutators import CHECKPOINT

_SHAPE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}


def _make_xlnet() -> None:
    _make("xlnet")


def _make_roberta() -> None:
    """RoBERTa of transformers: a byte-level tokenizer, parameters and settings."""
    shutil.rmtree("theirs", ignore_errors=True)
    json_tokenizer("BPE")()
    symbols = json.loads(Path("tokenizer/tokenizer.json").read_text())["model"]["vocab"]
    config = transformers.RobertaConfig(
        vocab_size=len(symbols), max_position_embeddings=18, type_vocab_size=1, pad_token_id=1, **_SHAPE
    )
    torch.manual_seed(0)
    transformers.RobertaForMaskedLM(config).save_pretrained("theirs")
    for file in Path("tokenizer").iterdir():
        shutil.copy(file, "theirs")


def _make_fairseq_roberta() -> None:
    """A RoBERTa of fairseq, whose settings are a dictionary, as those of newer files."""
    _make("roberta")
    with torch.serialization.safe_globals([argparse.Namespace]):
        content = torch.load("theirs/model.pt", weights_only=True)
    settings = vars(content.pop("args"))
    torch.save(content | {"cfg": {"model": settings}}, "theirs/model.pt")


def _make(kind: str) -> None:
    for folder in ("made", "theirs"):
        shutil.rmtree(folder, ignore_errors=True)
    published(kind, Path("made"))
    Path("made/theirs").rename("theirs")


READERS: tuple[Reader, ...] = (
    Reader("config.json of XLNet", "theirs/config.json", _make_xlnet, read_export, JSON, named=False),
    Reader("model.safetensors of XLNet", "theirs/model.safetensors", _make_xlnet, read_export, HEADER, named=False),
    Reader("pieces of XLNet", "theirs/spiece.model", _make_xlnet, read_export, BYTES, named=False),
    Reader("config.json of RoBERTa", "theirs/config.json", _make_roberta, read_export, JSON, named=False),
    Reader("tokenizer.json of RoBERTa", "theirs/tokenizer.json", _make_roberta, read_export, JSON, named=False),
    Reader("RoBERTa of fairseq", "theirs/model.pt", _make_fairseq_roberta, read_export, CHECKPOINT, named=False),
    Reader("dictionary of fairseq's RoBERTa", "theirs/dict.txt", _make_fairseq_roberta, read_export, TEXT, named=False),
)
