"""Tokenizers of every type, trained on random documents, and texts that are hard to divide into tokens."""

import functools
import json

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.support.corpora import random_documents
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.vocabulary import Vocabulary
from unified.inference.sequences import Codec
from unified.tokenization import ordinary_symbols
from unified.tokenization.json_tokenizer import JsonTokenizer

TOKENIZERS = ["unigram", "bpe", "char", "wordpiece", "anna"]
ODD = [
    "",
    "Ünder  the\tnaïve ﬁsh",
    "½ of 漢字 e\u0301x",
    "a\u00adb \u200b",
    "\u200b",
    "Ω…the ﷺ",
    "x" * 120 + " the end",
]


def train(kind, **options):
    texts = [line for document in random_documents(80) for line in document]
    return TokenizerSource(kind, character_coverage=0.999, **options).train(texts + ["e x 1 2 of"] * 3)


@functools.cache
def trained_tokenizers():
    """Tokenizers by type; `byte_fallback` and `uncased` are further settings of two types."""
    fallback = train("unigram", vocabulary_size=330, byte_fallback=True)
    uncased = train("wordpiece", vocabulary_size=120, lowercase=True)
    return {kind: train(kind) for kind in TOKENIZERS} | {"byte_fallback": fallback, "uncased": uncased}


#: What :func:`byte_level_tokenizer` is trained on.
SENTENCE = "Anna Berg lives in Rome and Rome is old"


def byte_level_tokenizer(add_prefix_space=False, special=()):
    """Byte-level BPE of the library tokenizers, as RoBERTa has it; a word of ``SENTENCE`` behind a space is one piece.

    Args:
        add_prefix_space: whether it puts a space before a text; it has the same pieces.
        special: names of further special symbols.
    """
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>", *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    )  # fmt: skip
    made.train_from_iterator([SENTENCE] * 9, trainer)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    return made


def byte_level_codec(longest, add_prefix_space=False, special=()):
    """Sequences in the pieces of :func:`byte_level_tokenizer`."""
    made = byte_level_tokenizer(add_prefix_space, special)
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = JsonTokenizer(json.loads(made.to_str()), dict(zip(names, names, strict=True)))
    return Codec(tokenizer, Vocabulary(ordinary_symbols(tokenizer)), longest)
