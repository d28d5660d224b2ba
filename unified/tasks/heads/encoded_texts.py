"""Items of a task as sequences: texts and words, cut where they exceed a row, and counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unified.data.example import Example
from unified.inference.sequences import Codec, first_index, sequence
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.named_entities import named_entities_of
from unified.tasks.heads.passages import token_marks


def encode_texts(items: Sequence[TextItem], codec: Codec) -> tuple[list[Example], np.ndarray]:
    """An example for each item's text or pair of texts, and how many tokens each lost.

    It is read at :func:`unified.inference.sequences.class_index`. The longer of two texts loses
    tokens at its end until both fit (BERT, ``_truncate_seq_pair``).

    Raises:
        UnifiedError: entities are to be marked, and an item does not name them; or sequences are too short for a token
            of each text.
    """
    texts = [text for item in items for text in item.texts.values()]
    if codec.marks_entities:
        spans = [spans for item in items for spans in _spans(item)]
        found: list[tuple[np.ndarray, np.ndarray | None]] = [
            (tokens, token_marks(offsets, of_text))
            for (tokens, offsets), of_text in zip(codec.encode_offsets(texts), spans, strict=True)
        ]
    else:
        found = [(tokens, None) for tokens in codec.encode(texts)]
    encoded = iter(found)
    examples, lost = [], []
    for item in items:
        own = [next(encoded) for _ in item.texts]
        segments = tuple(tokens for tokens, _ in own)
        marks = tuple(mark for _, mark in own if mark is not None)
        max_tokens = codec.room(codec.special_tokens(len(segments)), least=len(segments))
        kept = fitting(segments, max_tokens)
        lost.append(sum(map(len, segments)) - sum(map(len, kept)))
        examples.append(sequence(kept, codec, entities=fitting(marks, max_tokens) if codec.marks_entities else None))
    return examples, np.array(lost, dtype=np.int64)


def _spans(item: TextItem) -> list[Sequence[tuple[int, int]]]:
    """Named entities of each of an item's texts."""
    found = named_entities_of(item)
    return [found[name] for name in item.texts]


def encode_words(
    sentences: Sequence[Sequence[str]], codec: Codec, documents: Sequence[object] | None = None
) -> tuple[list[Example], np.ndarray, int, np.ndarray]:
    """Examples CLS words SEP, read at the first token of each word [BERT, sec. 5.3].

    A sentence too long for a row is divided between words into as many examples as it takes, so that every word is
    read once; a word too long for a row is cut at its end.

    Args:
        documents: what each sentence belongs to; words of its neighbours in the same document then stand around it, as
            many as fit, on both sides alike where the document has them. None for sentences by themselves.

    Returns:
        The examples; int64 (examples,), the sentence of each; how many sentences were divided or cut; and int64
        (sentences,), how many tokens of each were cut.
    """
    runs = _runs(len(sentences), documents)
    pieces = codec.encode_words([[word for i in numbers for word in sentences[i]] for numbers in runs])
    unknown = np.array([codec.vocabulary.special.unknown])
    max_tokens = codec.room(2)
    examples, owners, divided = [], [], 0
    lost = np.zeros(len(sentences), dtype=np.int64)
    for numbers, own in zip(runs, pieces, strict=True):
        # A word of control characters may have no pieces; it is read all the same.
        whole = [word if len(word) else unknown for word in own]
        words = [word[:max_tokens] for word in whole]
        bounds = np.cumsum([0, *map(len, words)])
        first = 0
        for number in numbers:
            behind = first + len(sentences[number])
            counts = _word_counts(list(map(len, words[first:behind])), max_tokens)
            lost[number] = beyond(whole[first:behind], max_tokens)
            divided += len(counts) > 1 or lost[number] > 0
            for count in counts:
                last = first + count
                begin, end = (first, last) if documents is None else _around(bounds, first, last, max_tokens)
                indices = bounds[first:last] - bounds[begin] + first_index(codec)
                examples.append(sequence((np.concatenate(words[begin:end]),), codec, indices))
                owners.append(number)
                first = last
    return examples, np.array(owners), divided, lost


def beyond(words: Sequence[np.ndarray], max_tokens: int) -> int:
    """Tokens that words too long for a row of ``max_tokens`` tokens lose."""
    return sum(len(word) - max_tokens for word in words if len(word) > max_tokens)


def fitting(segments: tuple[np.ndarray, ...], max_tokens: int) -> tuple[np.ndarray, ...]:
    """Cuts segments at their ends to ``max_tokens`` tokens together, the longer of two first."""
    if len(segments) == 1:
        return (segments[0][:max_tokens],)
    first, second = map(len, segments)
    kept_first = min(first, max(max_tokens - second, (max_tokens + 1) // 2))
    return segments[0][:kept_first], segments[1][: max_tokens - kept_first]


def _runs(count: int, documents: Sequence[object] | None) -> list[range]:
    """Numbers of neighbouring sentences of one document; each one alone where documents are not read."""
    if documents is None:
        return [range(i, i + 1) for i in range(count)]
    begins = [i for i in range(count) if not i or documents[i] != documents[i - 1]]
    return [range(begin, end) for begin, end in zip(begins, [*begins[1:], count], strict=True)]


def _around(bounds: np.ndarray, first: int, last: int, max_tokens: int) -> tuple[int, int]:
    """Words ``first`` to ``last`` (exclusive) with words around them, as many as ``max_tokens`` hold; returns alike.

    Args:
        bounds: int64 (words + 1,), where each word of the document begins in its tokens, and its end.
    """
    spare = max_tokens - (bounds[last] - bounds[first])
    before, behind = bounds[first], bounds[-1] - bounds[last]
    left = min(before, max(spare // 2, spare - behind))
    begin = int(np.searchsorted(bounds, bounds[first] - left))  # whole words
    right = spare - (bounds[first] - bounds[begin])
    return begin, int(np.searchsorted(bounds, bounds[last] + right, side="right")) - 1


def _word_counts(sizes: list[int], max_tokens: int) -> list[int]:
    """Counts of words in runs of at most ``max_tokens`` tokens; each word has no more."""
    counts, left = [], 0
    for size in sizes:
        if size > left:
            counts.append(0)
            left = max_tokens
        counts[-1] += 1
        left -= size
    return counts
