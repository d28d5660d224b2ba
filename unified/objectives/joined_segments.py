"""Sequences CLS a SEP and CLS a SEP b SEP, which most objectives read, and the token types of their segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unified.data.annotations import ORACLE, SENTENCES, SOURCE_KINDS, Spans, how_to_annotate
from unified.data.example import Examples
from unified.data.extents import Extents
from unified.data.targets import EXTRACTIVE, ExampleTargets
from unified.data.text import Text
from unified.data.texts import UNASKED, Texts
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.masks import steps
from unified.masks.steps import Steps
from unified.objectives.contract import Objective

#: UniLM's segment ids. ``FIRST`` and ``SECOND`` are the two segments of a bidirectional sequence.
FIRST = 0
SECOND = 1
LEFT_TO_RIGHT = 2
RIGHT_TO_LEFT = 3
SOURCE = 4
TARGET = 5


class MayPredictNext(Objective):
    """Base of objectives with a field ``next_sentence``: two segments and a prediction from CLS, or one and none."""

    next_sentence: bool

    @property
    def segments(self) -> int:
        return 2 if self.next_sentence else 1

    @property
    def wants_random_second(self) -> bool:
        return self.next_sentence

    @property
    def special_tokens(self) -> int:
        return 1 + self.segments

    @property
    def heads(self) -> tuple[str, ...]:
        return ("token", "next_sentence") if self.next_sentence else ("token",)

    def pair_labels(self, texts: Texts) -> np.ndarray | None:
        """Labels of the head ``next_sentence`` for examples of ``texts``, int64 (n,); None where it learns nothing.

        Raises:
            UnifiedError: a text does not say whether its second segment follows.
        """
        if not self.next_sentence:
            return None
        if (texts.is_next == UNASKED).any():
            raise UnifiedError(f"{self.name}: next-sentence prediction needs Text.is_next; set next_sentence=False")
        return texts.is_next


@dataclass(frozen=True)
class Sequences:
    """Result of :func:`joined` for n texts, in flat arrays.

    Attributes:
        tokens: int64 (T,), of one sequence after another.
        blocks: int64 (k, n), lengths of the blocks, CLS counted with the first.
        extents: of the sequences.
        is_text: bool (T,), True for the tokens of the texts, False for the special symbols around them.
    """

    tokens: np.ndarray
    blocks: np.ndarray
    extents: Extents
    is_text: np.ndarray

    @classmethod
    def of(cls, texts: Texts, segments: int, name: str) -> Sequences:
        """The sequences of the first ``segments`` segments of the texts.

        Raises:
            UnifiedError: two are needed, but the texts have one.
        """
        if segments > len(texts.lengths):
            raise _lacks_second(name)
        texts = texts if segments == 2 else texts.first_segments()
        blocks = texts.lengths + 1
        blocks[0] += 1
        extents = Extents(blocks.sum(0))
        return cls._filled(texts, blocks, extents, extents.starts)

    @classmethod
    def cls_last(cls, texts: Texts, name: str) -> Sequences:
        """``first SEP second SEP CLS`` of each text, CLS a block by itself (XLNet).

        Raises:
            UnifiedError: the texts have one segment.
        """
        if len(texts.lengths) == 1:
            raise _lacks_second(name)
        blocks = np.concatenate([texts.lengths + 1, np.ones((1, len(texts)), dtype=np.int64)])
        extents = Extents(blocks.sum(0))
        return cls._filled(texts, blocks, extents, extents.stops - 1)

    @classmethod
    def _filled(cls, texts: Texts, blocks: np.ndarray, extents: Extents, begins: np.ndarray) -> Sequences:
        """The sequences with CLS at the indices ``begins``, int64 (n,), and else SEP at the end of each block."""
        is_text = np.ones(extents.total, dtype=bool)
        is_text[begins] = is_text[Extents(blocks.T.ravel()).stops - 1] = False
        tokens = np.full(extents.total, texts.special.separator)
        tokens[begins] = texts.special.begin
        tokens[is_text] = texts.tokens
        return cls(tokens, blocks, extents, is_text)

    def token_types(self, types: Sequence[int]) -> np.ndarray:
        """int64 (T,), one of ``types`` for each block."""
        return np.repeat(np.tile(types, len(self.extents)), self.blocks.T.ravel())

    def seq2seq_steps(self) -> Steps:
        """All see the first block, the second is seen left to right."""
        return steps.seq2seq(self.blocks[0], self.blocks[1:].sum(0))

    def word_starts(self, texts: Texts, name: str) -> np.ndarray:
        """``Texts.word_starts`` along the sequences, bool (T,); special symbols are words by themselves.

        Raises:
            UnifiedError: the texts do not say where words begin.
        """
        require_word_starts(texts, name)
        starts = np.ones(self.extents.total, dtype=bool)
        starts[self.is_text] = (texts.first_segments() if len(self.blocks) == 1 else texts).word_starts
        return starts


class MayExtract(Objective):
    """Base of objectives on pairs with a field ``extractive``: sentences of the source are classified beside it.

    The state of a sentence's first token says whether an extractive summary takes the sentence [UniLM, sec. 3.1].
    Sentences whose first token is cut off drop out; all others count, or the first ``sentence_limit`` of them if that
    is above 0.
    """

    extractive: bool
    sentence_limit: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sentence_limit and not self.extractive:
            raise UnifiedError(f"{self.name}: sentence_limit={self.sentence_limit} needs extractive=True")

    @property
    def heads(self) -> tuple[str, ...]:
        return ("token", "extractive") if self.extractive else ("token",)

    @property
    def annotations(self) -> tuple[str, ...]:
        return SOURCE_KINDS if self.extractive else ()

    def with_sentences(self, examples: Examples, texts: Texts) -> Examples:
        """The examples of ``texts``, which begin with CLS and the source, with the sentences of it to classify.

        Raises:
            UnifiedError: the texts do not say where their sentences are.
        """
        if not self.extractive:
            return examples
        sources = texts.first_segments()
        starts = Extents(sources.lengths[0]).starts
        sentences, taken = (annotated_spans(sources, kind, self.name) for kind in (SENTENCES, ORACLE))
        counts = np.minimum(sentences.counts, self.sentence_limit) if self.sentence_limit else sentences.counts
        first = Extents(sentences.counts).firsts(counts)
        labels = np.isin(sentences.shifted(starts).bounds[first, 0], taken.shifted(starts).bounds[:, 0])
        behind_cls = sentences.bounds[first, 0] + 1
        targets = ExampleTargets.at(behind_cls, labels.astype(np.int64))
        return examples.with_targets(EXTRACTIVE, targets, counts)


def both_segments(text: Text, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of both segments, int64 (n,) and (m,).

    Raises:
        UnifiedError: the text has one; begins with ``name``, that of the objective.
    """
    if text.second is None:
        raise _lacks_second(name)
    return text.tokens, text.second


def _lacks_second(name: str) -> UnifiedError:
    return UnifiedError(f"{name}: needs two segments, but the text has one (Text.second is None)")


def joined(segments: tuple[np.ndarray, ...], special: SpecialTokens, between: int = 1) -> tuple[np.ndarray, list[int]]:
    """CLS and one or two segments, each followed by SEP; and the lengths of the blocks, CLS counted with the first.

    Args:
        between: how many SEP follow the first of two segments.
    """
    lengths = [len(segment) + 1 for segment in segments]
    lengths[0] += 1 if len(segments) == 1 else between
    tokens = np.full(sum(lengths), special.separator)
    tokens[0] = special.begin
    tokens[1 : 1 + len(segments[0])] = segments[0]
    if len(segments) == 2:
        tokens[lengths[0] : -1] = segments[1]
    return tokens, lengths


def require_word_starts(texts: Texts, name: str) -> np.ndarray:
    """``Texts.word_starts``; texts that do not say where words begin are refused.

    Raises:
        UnifiedError: names the objective.
    """
    if texts.word_starts is None:
        raise UnifiedError(
            f"{name}: whole words are wanted, but this text does not say where words begin (Text.word_starts is "
            "None); prepare the data with a tokenizer"
        )
    return texts.word_starts


def annotated_spans(texts: Texts, kind: str, name: str) -> Spans:
    """Annotated spans of ``texts``, each text's counted over its segments.

    Raises:
        UnifiedError: the texts have no annotation of this kind, or a span reaches beyond its text.
    """
    if kind not in texts.spans:
        raise UnifiedError(
            f"{name}: needs the annotation {kind}, but this text has none (Text.spans); prepare the data with "
            f"{how_to_annotate([kind])}"
        )
    spans = texts.spans[kind]
    if (spans.bounds[:, 1] > texts.lengths.sum(0)[spans.owners]).any():
        raise UnifiedError(f"{name}: a span of {kind} reaches beyond its text (Text.spans)")
    return spans


def sequence_spans(texts: Texts, kind: str, blocks: np.ndarray, name: str) -> Spans:
    """Annotated spans of ``texts`` along their sequences, each counted from its sequence's first token.

    Args:
        blocks: int64 (k, n), lengths of the blocks of each sequence, CLS counted with the first.

    Raises:
        UnifiedError: as :func:`annotated_spans`.
    """
    texts = texts.first_segments() if len(blocks) == 1 else texts
    spans, lengths = annotated_spans(texts, kind, name), texts.lengths
    in_first = spans.bounds[:, 0] < lengths[0][spans.owners]
    return spans.moved(np.where(in_first, 1, blocks[0][spans.owners] - lengths[0][spans.owners]))
