"""A tiny model of transformers with random weights, and a task for it, for the debug size without downloads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel

from unified.tasks.heads.items import TextItem, write_items
from unified.tasks.writing import WritingItem

WORDS = tuple(f"w{i}" for i in range(30))


def make_model(folder: Path, words: tuple[str, ...] = WORDS) -> None:
    """Two layers of 32 over a vocabulary of ``words``, as a folder of transformers."""
    folder.mkdir(parents=True)
    vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"[unused{i}]" for i in range(1, 9)), *words)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "BertTokenizer", "do_lower_case": true, "model_max_length": 512}\n', encoding="utf-8"
    )
    torch.manual_seed(1)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = BertConfig(vocab_size=len(vocabulary), **shape, max_position_embeddings=160, initializer_range=0.1)
    BertModel(config).save_pretrained(folder)


def make_items(folder: Path, real: Path | None = None) -> None:
    """train.jsonl and valid.jsonl of a classification: does w0 occur? In half of the texts it does."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    for split, count in (("train", 320), ("valid", 64)):
        items = []
        for i in range(count):
            words = rng.choice(WORDS[1:], rng.integers(2, 12)).tolist()
            if i % 2:
                words[rng.integers(len(words))] = WORDS[0]
            items.append(TextItem(str(i), " ".join(words), None, "yes" if WORDS[0] in words else "no"))
        write_items(folder / f"{split}.jsonl", items)


def make_texts(folder: Path, real: Path | None = None) -> None:
    """train.jsonl and valid.jsonl of writing: the first words once more, of sources that may have two parts."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(2)
    for split, count in (("train", 160), ("valid", 24)):
        texts = [" ".join(rng.choice(WORDS, 8)) for _ in range(2 * count)]
        items = [
            WritingItem(str(i), text if i % 2 else (text, other), " ".join(text.split()[:3]))
            for i, (text, other) in enumerate(zip(texts[::2], texts[1::2], strict=True))
        ]
        write_items(folder / f"{split}.jsonl", items)
