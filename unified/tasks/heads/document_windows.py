"""Long documents as independent windows: each is read by itself, all tokens are read (Joshi et al. 2019)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from unified.inference.sequences import Codec, first_index, sequence
from unified.tasks.heads.base import Encoded
from unified.tasks.heads.documents import DocumentItem
from unified.tasks.heads.encoded_texts import beyond
from unified.tasks.metrics.conll import Mention


def encode_documents(items: Sequence[DocumentItem], codec: Codec) -> Encoded:
    """Windows of documents, read at all their tokens but CLS and SEP.

    Sentences stay whole where they fit into a window; a longer one is divided between words, and a word too long for
    a window is cut at its end. Words, sentences, speakers and chains are numbered through all documents of the
    data, so that a number means the same whatever documents are in a batch:

    - ``words``, ``sentences``, ``speakers`` and ``windows`` (this one within its document), int64, of each token;
    - ``mentions``, int64 (M, 3), where chains are known: first word, last word and chain, from 1, of those that begin
      in the window.

    Returns:
        ``notes`` are the number of the document's first word; ``cut`` counts documents with a divided sentence or a
        cut word, ``lost`` the tokens that a document's words lost.
    """
    max_tokens = codec.room(2)
    pieces = codec.encode_words([item.words for item in items])
    unknown = np.array([codec.vocabulary.special.unknown])
    labelled = all(item.chains is not None for item in items)
    examples, owners, notes, lost, cut = [], [], [], [], 0
    head_inputs: dict[str, list[np.ndarray]] = {name: [] for name in ("words", "sentences", "speakers", "windows")}
    head_inputs |= {"mentions": []} if labelled else {}
    before: Counter[str] = Counter()  # how many of each the documents before have
    for owner, (item, words) in enumerate(zip(items, pieces, strict=True)):
        # A word of control characters may have no pieces; it is read all the same.
        tokens = [word if len(word) else unknown for word in words]
        sizes = np.array([min(len(word), max_tokens) for word in tokens])
        lengths = np.array([len(sentence) for sentence in item.sentences])
        starts, whole = window_starts(sizes, lengths, max_tokens)
        lost.append(beyond(tokens, max_tokens))
        cut += not whole or lost[-1] > 0
        of_words = {
            "words": np.arange(len(sizes)),
            "sentences": np.repeat(np.arange(len(lengths)), lengths),
            "speakers": _speakers(item),
        }
        chains = item.chains or ()
        mentions = _mentions(chains)
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(sizes)], strict=True)):
            window = np.concatenate([word[:max_tokens] for word in tokens[start:end]])
            examples.append(sequence((window,), codec, first_index(codec) + np.arange(len(window))))
            owners.append(owner)
            notes.append(before["words"])
            for name, numbers in of_words.items():
                head_inputs[name].append(np.repeat(before[name] + numbers[start:end], sizes[start:end]))
            head_inputs["windows"].append(np.full(len(window), number))
            if labelled:
                begun = mentions[(mentions[:, 0] >= start) & (mentions[:, 0] < end)]
                head_inputs["mentions"].append(begun + (before["words"], before["words"], before["chains"]))
        before.update({name: int(numbers.max()) + 1 for name, numbers in of_words.items()})
        before["chains"] += len(chains)
    return Encoded(examples, np.array(owners), head_inputs, cut, lost, notes)


def window_starts(sizes: np.ndarray, lengths: np.ndarray, max_tokens: int) -> tuple[list[int], bool]:
    """First sentences of windows that take one sentence after another while they fit.

    Args:
        sizes: int64 (W,), tokens of each word, at most ``max_tokens``.
        lengths: int64 (sentences,), words of each.
        max_tokens: tokens of a window.

    Returns:
        First word of each window, and whether every sentence is in one window.
    """
    total = np.append(0, np.cumsum(sizes))  # tokens before each word
    starts, whole = [0], True
    ends = np.cumsum(lengths)
    for begin, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        if begin > starts[-1] and total[end] - total[starts[-1]] > max_tokens:
            starts.append(begin)
        while total[end] - total[starts[-1]] > max_tokens:
            starts.append(int(np.searchsorted(total, total[starts[-1]] + max_tokens, side="right")) - 1)
            whole = False
    return starts, whole


def _speakers(item: DocumentItem) -> np.ndarray:
    """Number of the speaker of each word, int64 (W,); an unnamed speaker has a number too."""
    if item.speakers is None:
        return np.zeros(len(item.words), dtype=np.int64)
    number: dict[str | None, int] = {}
    return np.array([number.setdefault(name, len(number)) for names in item.speakers for name in names])


def _mentions(chains: Sequence[Sequence[Mention]]) -> np.ndarray:
    """First word, last word and chain of every mention, int64 (M, 3)."""
    rows = [(start, end, chain) for chain, mentions in enumerate(chains, 1) for start, end in mentions]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 3)
