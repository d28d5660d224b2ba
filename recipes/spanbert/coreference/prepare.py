"""Documents of CoNLL-2012 as the data of a task: train.jsonl and valid.jsonl.

    python recipes/spanbert/coreference/prepare.py data/coref train.english.v4_gold_conll dev.english.v4_gold_conll \\
        --model models/spanbert
    python recipes/spanbert/coreference/prepare.py data/coref --debug

Files may be compressed. The dictionary and the tokenizer of the model that is fine-tuned come into the same folder.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tasks.documents import DocumentItem, read_conll
from unified.tasks.items import write_items
from unified.tokenization import load_tokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer

NAMES, VERBS = ("anna", "ben", "carl", "dora"), ("saw", "met", "liked", "drew", "fed", "heard", "knew", "told")
WORDS = (*NAMES, *VERBS, "old", "itself", ".")


def debug_document(number: int, rng: np.random.Generator) -> DocumentItem:
    """Sentences such as "anna met old ben ." and "old dora drew itself .": equal names are a chain."""
    sentences, chains, word = [], {}, 0
    for _ in range(rng.integers(4, 9)):
        first, second = rng.choice(NAMES, 2)
        words = []
        for name, end in ((first, rng.choice(VERBS)), (first if rng.random() < 0.3 else second, ".")):
            mention = ["itself"] if words and name == first else [["old"], []][rng.integers(2)] + [name]
            chains.setdefault(name, []).append((word, word + len(mention) - 1))
            words += [*mention, end]
            word += len(mention) + 1
        sentences.append(tuple(map(str, words)))
    linked = tuple(tuple(chain) for chain in chains.values() if len(chain) > 1)
    return DocumentItem(f"(debug/{number}); part 000", tuple(sentences), chains=linked)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="documents of CoNLL-2012 as the data of a task")
    parser.add_argument("data", type=Path, metavar="DATA", help="folder to write to")
    parser.add_argument("files", type=Path, nargs="*", metavar="TRAIN VALID", help="files in the format of CoNLL-2012")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="with the dictionary and the tokenizer of a model")
    parser.add_argument("--debug", action="store_true", help="generated documents, with a dictionary and a tokenizer")
    options = parser.parse_args(arguments)
    if len(options.files) != (0 if options.debug else 2) or options.debug == bool(options.model):
        parser.error("expected the files TRAIN and VALID and --model FOLDER, or --debug alone")
    try:
        if options.debug:
            rng = np.random.default_rng(0)
            documents = [debug_document(i, rng) for i in range(320)]
            parts = {"train": documents[20:], "valid": documents[:20]}
            tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS], lowercase=False)
            vocabulary = Vocabulary(WORDS)
        else:
            parts = dict(zip(("train", "valid"), map(read_conll, options.files), strict=True))
            tokenizer, vocabulary = load_tokenizer(options.model), Vocabulary.load(options.model / "dict.txt")
    except UnifiedError as error:
        print(f"prepare.py: error: {error}", file=sys.stderr)
        return 2
    options.data.mkdir(parents=True, exist_ok=True)
    tokenizer.save(options.data)
    vocabulary.save(options.data / "dict.txt")
    for name, items in parts.items():
        write_items(options.data / f"{name}.jsonl", items)
        words, mentions = sum(len(i.words) for i in items), sum(len(chain) for i in items for chain in i.chains)
        print(f"{name}: {len(items)} documents, {words} words, {mentions} mentions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
