"""Dictionaries, tokenizers, checkpoints, folders of other libraries, and files of prepared folders."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import tokenizers
import torch

from tests.support import tensorflow_files
from tests.support.corpora import random_documents
from tests.support.task_folders import language_model
from trust.fuzzing.mutators import BYTES, JSON, TEXT, json_value
from trust.fuzzing.reader import Mutator, Reader, Refused, sample_file
from trust.fuzzing.settings_mutators import CHECKPOINT, PARAMETERS
from unified import load
from unified.checkpoints.sources import read_parameters
from unified.checkpoints.tensorflow import load_tensorflow
from unified.checkpoints.trained import Trained, write
from unified.conversions.formats import read_folder
from unified.corpus.annotate import KeptAnnotator
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.annotations import Annotations
from unified.data.token_files import TokenFile, TokenFileWriter
from unified.data.vocabulary import Vocabulary
from unified.inference.language_model import UnifiedLM
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.heads.registry import TASK_HEADS
from unified.tokenization import load_tokenizer

_DICT = "a 10\nb 9\nthe 8\n\u2581und 7\n<mask> 1\n# 3\n"
_SHAPE = {"layers": 1, "width": 8, "heads": 2, "max_positions": 16}


def dictionary_symbols(data: bytes) -> object:
    """The symbols of dict.txt: a line each, a count of ASCII digits behind the last blank.

    A carriage return ends a line, too, as in all that Python opens as a text: fairseq reads its dictionaries so.
    """
    try:
        text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Refused(str(error)) from None
    symbols = ["<s>", "<pad>", "</s>", "<unk>"]
    for line in text.removesuffix("\n").split("\n") if text else ():
        match = re.fullmatch(r"(.+) (-?[0-9]{1,18})", line.rstrip().removesuffix(" #fairseq:overwrite"), re.DOTALL)
        if match is None:
            raise Refused(line[:80])
        symbols.append(match[1])
    if len(set(symbols)) < len(symbols):
        raise Refused("a symbol twice")
    return symbols


def _symbols() -> object:
    vocabulary = Vocabulary.load("dict.txt")
    return vocabulary.symbols[: vocabulary.listed]


def _used_tokenizer() -> None:
    tokenizer = load_tokenizer("tokenizer")
    texts = ["The cat sat, on 12\u00b2 mats.", "", "\u00fcber"]
    tokenizer.decode(tokenizer.encode(texts[0]))
    tokenizer.encode_ids(texts)
    tokenizer.encode_offsets(texts)
    for symbol in tokenizer.native_symbols():
        tokenizer.word_start(symbol)


def _trained(kind: str, **options: Any) -> Callable[[], None]:
    def make() -> None:
        texts = [line for document in random_documents(20) for line in document]
        Path("tokenizer").mkdir(exist_ok=True)
        TokenizerSource(kind, character_coverage=0.999, **options).train([*texts, "e x 1 2 of"] * 3).save("tokenizer")

    return make


def json_tokenizer(kind: str) -> Callable[[], None]:
    """The tokenizer.json of a small model that the library tokenizers trains."""

    def make() -> None:
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        texts = [line for document in random_documents(20) for line in document]
        trainer: Any
        if kind == "BPE":
            made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
            trainer = tokenizers.trainers.BpeTrainer(vocab_size=60, special_tokens=special)
            made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
            made.decoder = tokenizers.decoders.ByteLevel()
        else:
            made = tokenizers.Tokenizer(tokenizers.models.Unigram())
            trainer = tokenizers.trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>")
            made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
            made.decoder = tokenizers.decoders.Metaspace()
        made.train_from_iterator(texts, trainer)
        sample_file("tokenizer/tokenizer.json", made.to_str().encode())()
        sample_file("tokenizer/tokenizer_config.json", json.dumps({"bos_token": "<s>"}).encode())()

    return make


def _tokenizer(name: str, file: str, make: Callable[[], None], mutators: tuple[Mutator, ...]) -> Reader:
    return Reader(name, f"tokenizer/{file}", make, _used_tokenizer, mutators)


# Token files and annotations


def _token_items() -> object:
    tokens = TokenFile("train")
    tokens.check_ids(100)
    return [tokens[i].tolist() for i in range(len(tokens))]


def _strict_items(index: bytes, data: bytes) -> object:
    """Items by the definition of the format."""
    if len(index) < 26 or index[:17] != b"MMIDIDX\0\0" + struct.pack("<Q", 1):
        raise Refused("header")
    types = {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 8: "u2", 9: "u4", 10: "u8"}
    code, count = struct.unpack_from("<BQ", index, 17)
    if code not in types or len(index) != 26 + 12 * count:
        raise Refused("size")
    sizes = struct.unpack_from(f"<{count}i", index, 26)
    offsets = struct.unpack_from(f"<{count}q", index, 26 + 4 * count)
    width, at, items = int(types[code][1]), 0, []
    for size, offset in zip(sizes, offsets, strict=True):
        if offset != at or size < 0:
            raise Refused("offset")
        at += size * width
        items.append([int(one) for one in np.frombuffer(data[offset:at], f"<{types[code]}")])
    if at != len(data) or any(not 0 <= token < 100 for item in items for token in item):
        raise Refused("tokens")
    return items


def _make_tokens() -> None:
    for prefix, items in (("train", [[5, 6, 7, 2], [8, 2], [9, 9, 9, 9, 2]]), ("train.entities", [[0, 1], [], [1, 3]])):
        with TokenFileWriter(prefix, "uint16") as writer:
            for item in items:
                writer.add(np.array(item, dtype=np.int64))


def _annotations() -> None:
    tokens = TokenFile("train")
    annotations = Annotations(tokens)
    annotations.check()
    for kind in annotations.kinds:
        annotations.read(kind, np.arange(len(tokens)))


class _Annotator:
    """Finds the first word of each text."""

    description = {"pipeline": "first words"}

    def __call__(self, texts: list[str]) -> dict[str, np.ndarray]:
        return {"entities": np.array([[i, 0, len(text.split()[0])] for i, text in enumerate(texts)])}


_ANNOTATED = ["Anna Berg slept.", "She left."]


def _kept() -> object:
    found = KeptAnnotator(_Annotator(), Path("kept"))(_ANNOTATED)
    return {name: spans.tolist() for name, spans in found.items()}


def _make_kept() -> None:
    KeptAnnotator(_Annotator(), Path("kept"))(_ANNOTATED)
    (made,) = Path("kept").glob("*.npz")
    sample_file("spans.npz", made.read_bytes())()


def _read_kept() -> object:
    (made,) = Path("kept").glob("*.npz") if list(Path("kept").glob("*.npz")) else [Path("kept/none.npz")]
    shutil.copyfile("spans.npz", made)
    return _kept()


def _same_spans(data: bytes) -> object:
    """Kept annotations are read whole or made anew: both give what the annotator gives."""
    return {name: spans.tolist() for name, spans in _Annotator()(_ANNOTATED).items()}


# Models


def _make_language_model() -> None:
    shutil.rmtree("model", ignore_errors=True)
    language_model(Path("model"), writes="left_to_right", **(_SHAPE | {"token_types": 6}))


def _read_language_model() -> None:
    lm = load("model")
    assert isinstance(lm, UnifiedLM)
    lm.embed(["w1 w2"])


def _make_task_model() -> None:
    shutil.rmtree("model", ignore_errors=True)
    language_model(Path("model"), writes="nothing", **_SHAPE)
    heads: dict[str, dict[str, Any]] = {
        "classification": {"labels": ("a", "b"), "positive": "a", "dropout": 0.1},
        "regression": {"dropout": 0.0},
        "choice": {"dropout": 0.1},
        "tagging": {"labels": ("O", "B-X"), "dropout": 0.1, "context": False, "features": None, "recurrent_width": 8},
        "span": {"design": "bert", "labels": (), "max_query": 8, "stride": 4, "nbest": 3, "null_threshold": None},
        "relation": {"labels": ("no_relation", "made"), "design": "markers", "rules": "tacred"},
    }
    tasks = {name: TASK_HEADS[name](**settings) for name, settings in heads.items()}
    config = TransformerConfig(vocabulary_size=len(Vocabulary.load("model/dict.txt")), token_types=2, **_SHAPE)
    model = UnifiedModel.for_tasks(config, {name: task.head(config) for name, task in tasks.items()})
    kept = {name: {"head": name, "settings": settings} for name, settings in heads.items()}
    vocabulary = Vocabulary.load("model/dict.txt")
    trained = Trained(config, "nothing", model.state_dict(), vocabulary, kept, longest=16)
    write(trained, Path("model"))


def _make_export(**changes: Any) -> Callable[[], None]:
    def make() -> None:
        shutil.rmtree("model", ignore_errors=True)
        shutil.rmtree("theirs", ignore_errors=True)
        language_model(Path("model"), **({**_SHAPE, "token_types": 2} | changes))
        load("model").save_pretrained("theirs")

    return make


def read_export() -> None:
    """Reads the folder ``theirs`` and writes what it becomes."""
    shutil.rmtree("made", ignore_errors=True)
    read_folder(Path("theirs")).save(Path("made"))


def wrong_header(data: bytes, rng: random.Random) -> bytes:
    """The JSON header of a safetensors file is damaged, or says another length."""
    if len(data) < 8:
        return data
    size = struct.unpack("<Q", data[:8])[0]
    if rng.random() < 0.2 or size > len(data):
        return struct.pack("<Q", rng.choice((0, 1, size // 2, 2**31, 2**63, 2**64 - 1))) + data[8:]
    header = json_value(data[8 : 8 + size], rng)
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


def _make_parts() -> None:
    tensors = {"a": torch.zeros(2, 3), "b": torch.ones(4)}
    Path("theirs").mkdir(exist_ok=True)
    for part, name in enumerate(tensors):
        safetensors.torch.save_file({name: tensors[name]}, f"theirs/model-{part}.safetensors")
    listed = {"metadata": {}, "weight_map": {name: f"model-{part}.safetensors" for part, name in enumerate(tensors)}}
    sample_file("theirs/model.safetensors.index.json", json.dumps(listed).encode())()


def _make_bin() -> None:
    Path("theirs").mkdir(exist_ok=True)
    torch.save({"a": torch.zeros(2, 3), "b": torch.ones(4)}, "theirs/pytorch_model.bin")


def _make_tensorflow() -> None:
    variables = {"bert/a": np.ones((2, 3), "<f4"), "bert/b": np.arange(4, dtype="<i4")}
    tensorflow_files.write(Path("theirs/bert_model.ckpt"), variables)


def _parameters() -> object:
    return {name: value.tolist() for name, value in read_parameters(Path("theirs")).items()}


HEADER = (*(wrong_header,) * 10, *BYTES)
_FILE = "model/checkpoint_last.pt"

READERS: tuple[Reader, ...] = (
    Reader("dict.txt", "dict.txt", sample_file("dict.txt", _DICT.encode()), _symbols, TEXT, dictionary_symbols),
    _tokenizer("vocab.txt", "vocab.txt", _trained("wordpiece", vocabulary_size=120), TEXT),
    _tokenizer("tokenizer_config.json", "tokenizer_config.json", _trained("wordpiece", vocabulary_size=120), JSON),
    _tokenizer("anna.json", "anna.json", _trained("anna", vocabulary_size=200), JSON),
    _tokenizer("sentencepiece unigram", "tokenizer.model", _trained("unigram", vocabulary_size=60), BYTES),
    _tokenizer("sentencepiece char", "tokenizer.model", _trained("char"), BYTES),
    _tokenizer("tokenizer.json, BPE", "tokenizer.json", json_tokenizer("BPE"), JSON),
    _tokenizer("tokenizer.json, Unigram", "tokenizer.json", json_tokenizer("Unigram"), JSON),
    Reader("index of tokens", "train.idx", _make_tokens, _token_items, BYTES,
           lambda data: _strict_items(data, Path("train.bin").read_bytes()), named=False),
    Reader("tokens", "train.bin", _make_tokens, _token_items, BYTES,
           lambda data: _strict_items(Path("train.idx").read_bytes(), data), named=False),
    Reader("index of annotations", "train.entities.idx", _make_tokens, _annotations, BYTES, named=False),
    Reader("annotations", "train.entities.bin", _make_tokens, _annotations, BYTES, named=False),
    Reader("kept annotations", "spans.npz", _make_kept, _read_kept, BYTES, _same_spans),
    Reader("language model", _FILE, _make_language_model, _read_language_model, CHECKPOINT, inputs=6000),
    Reader("model of tasks", _FILE, _make_task_model, lambda: load("model"), CHECKPOINT, inputs=6000),
    Reader("dictionary of a model", "model/dict.txt", _make_language_model, _read_language_model, TEXT, named=False),
    Reader("config.json of BERT", "theirs/config.json", _make_export(), read_export, JSON, named=False),
    Reader("model.safetensors of BERT", "theirs/model.safetensors", _make_export(), read_export, HEADER, named=False),
    Reader("vocabulary of BERT", "theirs/vocab.txt", _make_export(), read_export, TEXT, named=False),
    Reader("config.json of ModernBERT", "theirs/config.json",
           _make_export(positions="rotary", norm="pre", embedding_norm=True, gated=True, token_types=0,
                        linear_without_bias=True, norm_type="layer_without_bias"), read_export, JSON, named=False),
    Reader("config.json with our code", "theirs/config.json", _make_export(norm="pre"), read_export, JSON, named=False),
    Reader("model.safetensors.index.json", "theirs/model.safetensors.index.json", _make_parts, _parameters, JSON),
    Reader("part of safetensors", "theirs/model-0.safetensors", _make_parts, _parameters, HEADER),
    Reader("pytorch_model.bin", "theirs/pytorch_model.bin", _make_bin, _parameters, PARAMETERS),
    Reader("index of TensorFlow", "theirs/bert_model.ckpt.index", _make_tensorflow,
           partial(load_tensorflow, "theirs/bert_model.ckpt"), BYTES, named=False),
    Reader("data of TensorFlow", "theirs/bert_model.ckpt.data-00000-of-00001", _make_tensorflow,
           partial(load_tensorflow, "theirs/bert_model.ckpt"), BYTES, named=False),
)  # fmt: skip
