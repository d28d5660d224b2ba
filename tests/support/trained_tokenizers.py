"""Tokenizers of every type, trained on random documents, and texts that are hard to divide into tokens."""

import functools

from tests.support.corpora import random_documents
from unified.corpus.tokenizer_source import TokenizerSource

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
