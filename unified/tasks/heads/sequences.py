"""Texts of a task as sequences: CLS a SEP, or CLS a SEP b SEP, cut where they exceed a row, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from unified.data.example import Example
from unified.data.targets import TASK, ExampleTargets
from unified.masks import TEXT_MASKS, AttentionMask
from unified.objectives.sequences import joined
from unified.objectives.xlnet import CLS_TYPE
from unified.tasks.heads.base import Codec
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.named_entities import named_entities_of
from unified.tasks.heads.passages import token_marks


def encode_texts(items: Sequence[TextItem], codec: Codec) -> tuple[list[Example], np.ndarray]:
    """An example for each item's text or pair of texts, read at :func:`class_place`; and how many tokens each lost.

    The longer of two texts loses tokens at its end until both fit (BERT, ``_truncate_seq_pair``).

    Raises:
        UnifiedError: entities are to be marked, and an item does not name them.
    """
    texts = [text for item in items for text in item.texts.values()]
    if codec.marks_entities:
        spans = [spans for item in items for spans in _spans(item)]
        found = [
            (tokens, token_marks(offsets, own))
            for (tokens, offsets), own in zip(codec.encode_offsets(texts), spans, strict=True)
        ]
    else:
        found = [(tokens, None) for tokens in codec.encode(texts)]
    encoded = iter(found)
    examples, lost = [], []
    for item in items:
        segments, marks = zip(*(next(encoded) for _ in item.texts), strict=True)
        room = codec.longest - 1 - len(segments)
        kept = fitting(segments, room)
        lost.append(sum(map(len, segments)) - sum(map(len, kept)))
        examples.append(sequence(kept, codec, entities=fitting(marks, room) if codec.marks_entities else None))
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
    pieces = iter(codec.encode([word for words in sentences for word in words]))
    unknown = np.array([codec.vocabulary.special.unknown])
    room = codec.longest - 2
    examples, owners, divided = [], [], 0
    lost = np.zeros(len(sentences), dtype=np.int64)
    for numbers in _runs(len(sentences), documents):
        # A word of control characters may have no pieces; it is read all the same.
        found = [[word if len(word) else unknown for word in (next(pieces) for _ in sentences[i])] for i in numbers]
        words = [word[:room] for sentence in found for word in sentence]
        bounds = np.cumsum([0, *map(len, words)])
        first = 0
        for number, sentence in zip(numbers, found, strict=True):
            parts = _parts(list(map(len, words[first : first + len(sentence)])), room)
            lost[number] = beyond(sentence, room)
            divided += len(parts) > 1 or lost[number] > 0
            for count in parts:
                last = first + count
                begin, end = (first, last) if documents is None else _around(bounds, first, last, room)
                places = bounds[first:last] - bounds[begin] + first_place(codec)
                examples.append(sequence((np.concatenate(words[begin:end]),), codec, places))
                owners.append(number)
                first = last
    return examples, np.array(owners), divided, lost


def beyond(words: Sequence[np.ndarray], room: int) -> int:
    """Tokens that words too long for a row of ``room`` tokens lose."""
    return sum(len(word) - room for word in words if len(word) > room)


def sequence(
    segments: tuple[np.ndarray, ...],
    codec: Codec,
    places: np.ndarray | None = None,
    entities: tuple[np.ndarray, ...] | None = None,
) -> Example:
    """CLS and one or two segments, each followed by SEP, under the mask ``codec.mask``.

    With ``codec.cls_last`` CLS stands behind them, with a token type of its own (XLNet).

    Args:
        places: int64 (N,), increasing places that are read; None for :func:`class_place` alone.
        entities: of each segment which tokens lie within named entities, bool; None where nobody says.
    """
    tokens, lengths = joined(segments, codec.vocabulary.special)
    types = np.repeat(codec.token_types[: len(segments)], lengths)
    if codec.cls_last:
        tokens, types = np.roll(tokens, -1), np.append(types[1:], CLS_TYPE)
    sizes = tuple(map(len, segments))
    positions, mask = _positions_and_mask(sizes, codec)
    places = np.array([class_place(sizes, codec)]) if places is None else places
    return Example(
        group="task",
        tokens=tokens,
        positions=positions,
        token_types=types,
        mask=mask,
        targets={TASK: ExampleTargets.at(places, None)},
        entities=None if entities is None else _marks(len(tokens), entities, codec),
    )


def _marks(length: int, entities: tuple[np.ndarray, ...], codec: Codec) -> np.ndarray:
    """Marks of segments along a :func:`sequence`, bool (length,); special symbols lie in no entity."""
    marks, start = np.zeros(length, dtype=bool), first_place(codec)
    for part in entities:
        marks[start : start + len(part)] = part
        start += len(part) + 1
    return marks


def class_place(sizes: Sequence[int], codec: Codec) -> int:
    """Where a :func:`sequence` of segments of these lengths is read as a whole: a special symbol that sees all of it.

    CLS where it does. Under a left-to-right mask a CLS at the front sees itself alone, so the last SEP is read.
    """
    looks = _positions_and_mask(tuple(sizes), codec)[1].query_step
    cls = len(looks) - 1 if codec.cls_last else 0
    return cls if looks[cls] == looks.max() else int(looks.argmax())


def _positions_and_mask(sizes: tuple[int, ...], codec: Codec) -> tuple[np.ndarray, AttentionMask]:
    """Of a :func:`sequence` of segments of these lengths: positions, int64 (T,), and mask; not to be written to."""
    first, second = sizes[0] + 1, sum(sizes[1:]) + len(sizes[1:])
    blocks = (first, second + 1) if codec.cls_last and second else (first + 1, second)
    return _shared(codec.mask, *(blocks if codec.mask == "seq2seq" else (sum(blocks),)))


@lru_cache(4096)
def _shared(mask: str, *lengths: int) -> tuple[np.ndarray, AttentionMask]:
    """Positions and mask of every sequence of texts of these lengths; they are half of what a data set takes."""
    positions = np.arange(sum(lengths))
    positions.flags.writeable = False
    return positions, TEXT_MASKS[mask](*lengths)


def first_place(codec: Codec) -> int:
    """Where the first segment begins in a :func:`sequence`."""
    return 0 if codec.cls_last else 1


def fitting(segments: tuple[np.ndarray, ...], room: int) -> tuple[np.ndarray, ...]:
    """The segments, the longer of two cut first, at their ends, to ``room`` tokens together."""
    if len(segments) == 1:
        return (segments[0][:room],)
    first, second = map(len, segments)
    kept_first = min(first, max(room - second, (room + 1) // 2))
    return segments[0][:kept_first], segments[1][: room - kept_first]


def _runs(count: int, documents: Sequence[object] | None) -> list[range]:
    """Numbers of neighbouring sentences of one document; each by itself where nobody asks for documents."""
    if documents is None:
        return [range(i, i + 1) for i in range(count)]
    begins = [i for i in range(count) if not i or documents[i] != documents[i - 1]]
    return [range(begin, end) for begin, end in zip(begins, [*begins[1:], count], strict=True)]


def _around(bounds: np.ndarray, first: int, last: int, room: int) -> tuple[int, int]:
    """Words ``first`` to ``last`` (exclusive) with words around them, as many as ``room`` tokens hold; returns alike.

    Args:
        bounds: int64 (words + 1,), where each word of the document begins in its tokens, and its end.
    """
    spare = room - (bounds[last] - bounds[first])
    before, behind = bounds[first], bounds[-1] - bounds[last]
    left = min(before, max(spare // 2, spare - behind))
    begin = int(np.searchsorted(bounds, bounds[first] - left))  # whole words
    right = spare - (bounds[first] - bounds[begin])
    return begin, int(np.searchsorted(bounds, bounds[last] + right, side="right")) - 1


def _parts(sizes: list[int], room: int) -> list[int]:
    """Counts of words in runs of at most ``room`` tokens; each word has no more."""
    parts, left = [], 0
    for size in sizes:
        if size > left:
            parts.append(0)
            left = room
        parts[-1] += 1
        left -= size
    return parts
