"""Checkpoints as ``fairseq-train --task unified_lm`` writes them, of small random models, with their data folder."""

from __future__ import annotations

from pathlib import Path

import torch

from unified.checkpoints import fingerprint, save
from unified.data.token_files import TokenFileWriter
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import ordinary_symbols
from unified.tokenization.sentencepiece_tokenizer import train_sentencepiece

TEXT = ["The cat sat on the mat.", "A dog, a cat and a bird; the bird sang!", "On Monday the dog barked at the cat."]
SHAPE = {"layers": 2, "width": 32, "heads": 4, "max_positions": 96, "initializer_range": 0.3}


def data_folder(folder: Path, pairs: bool) -> Vocabulary:
    """Character tokenizer, dictionary and, for pairs, a split ``test`` of lower-cased sources and their targets."""
    folder.mkdir()
    tokenizer = train_sentencepiece(TEXT + [line.lower() for line in TEXT], "char")
    tokenizer.save(folder)
    vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    for name in ("dict.source.txt", "dict.target.txt") if pairs else ("dict.txt",):
        vocabulary.save(folder / name)
    if pairs:
        for side, lines in (("source", [line.lower() for line in TEXT]), ("target", TEXT)):
            with TokenFileWriter(folder / f"test.source-target.{side}", "uint16") as writer:
                for line in lines:
                    writer.add([*vocabulary.encode(tokenizer.encode(line)), vocabulary.special.separator])
    return vocabulary


def checkpoint(path: Path, vocabulary: Vocabulary, data: str, writes: str = "cloze", **changes) -> UnifiedModel:
    """Write the file; returns the model in it."""
    torch.manual_seed(7)
    shape = {**SHAPE, **changes}
    model = UnifiedModel.for_language(TransformerConfig(vocabulary_size=len(vocabulary), **shape)).eval()
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {f"core.{name}": value for name, value in model.state_dict().items()}
    state["dictionary_version"] = torch.tensor(fingerprint(vocabulary.symbols))
    settings = {"_name": "unified_lm_tiny", "attention_backend": "flex", "writes": writes, **shape}
    save({"args": None, "cfg": {"_name": None, "model": settings, "task": {"data": data}}, "model": state}, path)
    return model
