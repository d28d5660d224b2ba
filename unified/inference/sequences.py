"""Texts as sequences of a trained model: CLS a SEP, or CLS a SEP b SEP, under the mask that the model reads with.

RoBERTa reads two texts as CLS a SEP SEP b SEP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unified.arguments import counted
from unified.data.example import Example
from unified.data.targets import TASK, ExampleTargets
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.masks import TEXT_MASKS, AttentionMask
from unified.model.config import TransformerConfig
from unified.objectives.joined_segments import FIRST, LEFT_TO_RIGHT, RIGHT_TO_LEFT, SECOND, SOURCE, TARGET, joined
from unified.objectives.xlnet import CLS_TYPE
from unified.tokenization import Tokenizer, original_offsets

#: Token types of a first and a second text by mask, in models with UniLM's six, which name the objective.
_UNILM_TYPES = {
    "bidirectional": (FIRST, SECOND),
    "left_to_right": (LEFT_TO_RIGHT, LEFT_TO_RIGHT),
    "right_to_left": (RIGHT_TO_LEFT, RIGHT_TO_LEFT),
    "seq2seq": (SOURCE, TARGET),
}


def token_types_under(mask: str, config: TransformerConfig) -> tuple[int, int]:
    """Token types of the first and the second text of a sequence that a model reads under a mask of ``TEXT_MASKS``."""
    named = config.token_types > TARGET and not config.relative
    return _UNILM_TYPES[mask] if named else (FIRST, SECOND)


@dataclass(frozen=True)
class Codec:
    """Converter of texts to a model's sequences.

    Attributes:
        tokenizer, vocabulary: of the model.
        longest: tokens of a sequence, at most.
        cls_last: CLS stands at the end, as XLNet has it, instead of the beginning.
        marks_entities: sequences say which tokens lie within named entities, which the model's attention reads.
        mask: name of the mask of a sequence, one of :data:`unified.masks.TEXT_MASKS`.
        token_types: of the first and the second text of a sequence.
        pair_separators: how many SEP stand between two texts.
    """

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    longest: int
    cls_last: bool = False
    marks_entities: bool = False
    mask: str = "bidirectional"
    token_types: tuple[int, int] = (FIRST, SECOND)
    pair_separators: int = 1

    @classmethod
    def for_model(cls, config: TransformerConfig, tokenizer: Tokenizer, vocabulary: Vocabulary, longest: int) -> Codec:
        """The codec of a model of this shape.

        Raises:
            UnifiedError: no special symbol would see the whole text.
        """
        if config.relative and config.mask == "right_to_left":
            raise UnifiedError(
                "mask 'right_to_left' needs positions 'learned' or 'rotary': with 'relative' ones CLS stands at the "
                "end (XLNet), where it would see itself alone"
            )
        return cls(
            tokenizer,
            vocabulary,
            longest,
            cls_last=config.relative,
            marks_entities=config.reads_entities,
            mask=config.mask,
            token_types=token_types_under(config.mask, config),
            pair_separators=config.pair_separators,
        )

    def special_tokens(self, segments: int) -> int:
        """Number of special symbols in a :func:`sequence` of one or two segments."""
        return 2 if segments == 1 else 2 + self.pair_separators

    def room(self, special: int, least: int = 1) -> int:
        """Tokens that a sequence has for texts beside its special symbols.

        Args:
            special: how many these are.
            least: tokens that a task needs, such as one of each text.

        Raises:
            UnifiedError: there are fewer.
        """
        if self.longest < special + least:
            raise UnifiedError(
                f"sequences of {counted(self.longest, 'token')} are too short, those of this task need "
                f"{special + least}; raise --max-length of `unified finetune` (--tokens-per-sample of fairseq-train)"
            )
        return self.longest - special

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        """Ids of each text, without special symbols, int64."""
        if not texts:
            return []
        native, sizes = self.tokenizer.encode_ids(texts)
        ids = self.vocabulary.encode(self.tokenizer.native_symbols())
        return np.split(ids[native].astype(np.int64), np.cumsum(sizes)[:-1])

    def encode_words(self, texts: Sequence[Sequence[str]]) -> list[list[np.ndarray]]:
        """Ids of each word of texts that are divided into words, without special symbols, int64.

        A word has the ids that it has in a text with a blank between any two words. The first word of a text has no
        blank before it, as the first word of any text.
        """
        ids = iter(self.encode([f" {word}" if i else word for words in texts for i, word in enumerate(words)]))
        return [[next(ids) for _ in words] for words in texts]

    def encode_offsets(self, texts: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Ids of each text, int64 (n,), and the characters of each token in the text as it is, int64 (n, 2).

        The first character and the one behind the last.

        Raises:
            UnifiedError: the tokenizer does not tell.
        """
        if not texts:
            return []
        native, sizes, offsets = self.tokenizer.encode_offsets(texts)
        ids = self.vocabulary.encode(self.tokenizer.native_symbols())[native].astype(np.int64)
        ends = np.cumsum(sizes)[:-1]
        found = zip(texts, np.split(ids, ends), np.split(offsets, ends), strict=True)
        return [(tokens, original_offsets(text, own)) for text, tokens, own in found]


def sequence(
    segments: tuple[np.ndarray, ...],
    codec: Codec,
    output_indices: np.ndarray | None = None,
    entities: tuple[np.ndarray, ...] | None = None,
) -> Example:
    """CLS and one or two segments, each followed by SEP, under the mask ``codec.mask``.

    The first of two is followed by ``codec.pair_separators`` of them, which have its token type.

    With ``codec.cls_last`` CLS stands behind them, with a token type of its own (XLNet).

    Args:
        output_indices: int64 (N,), increasing indices of the tokens that are read; None for :func:`class_index` alone.
        entities: of each segment which tokens lie within named entities, bool; None where nobody says.
    """
    tokens, lengths = joined(segments, codec.vocabulary.special, codec.pair_separators)
    types = np.repeat(codec.token_types[: len(segments)], lengths)
    if codec.cls_last:
        tokens, types = np.roll(tokens, -1), np.append(types[1:], CLS_TYPE)
    sizes = tuple(map(len, segments))
    positions, mask = _positions_and_mask(sizes, codec)
    output_indices = np.array([class_index(sizes, codec)]) if output_indices is None else output_indices
    return Example(
        objective="task",
        tokens=tokens,
        positions=positions,
        token_types=types,
        mask=mask,
        targets={TASK: ExampleTargets.at(output_indices, None)},
        entities=None if entities is None else _marks(len(tokens), entities, codec),
    )


def _marks(length: int, entities: tuple[np.ndarray, ...], codec: Codec) -> np.ndarray:
    """Marks of segments along a :func:`sequence`, bool (length,); special symbols lie in no entity."""
    marks, start = np.zeros(length, dtype=bool), first_index(codec)
    for part in entities:
        marks[start : start + len(part)] = part
        start += len(part) + codec.pair_separators
    return marks


def class_index(sizes: Sequence[int], codec: Codec) -> int:
    """Index in a :func:`sequence` of segments of these lengths of the special symbol that sees all of it.

    CLS where it does. Under a left-to-right mask a CLS at the front sees itself alone, so the last SEP is read.
    """
    looks = _positions_and_mask(tuple(sizes), codec)[1].query_step
    cls = len(looks) - 1 if codec.cls_last else 0
    return cls if looks[cls] == looks.max() else int(looks.argmax())


def _positions_and_mask(sizes: tuple[int, ...], codec: Codec) -> tuple[np.ndarray, AttentionMask]:
    """Positions, int64 (T,), and mask of a :func:`sequence` of such segments; shared, so never written to."""
    between, second = (1, 0) if len(sizes) == 1 else (codec.pair_separators, sizes[1] + 1)
    first = sizes[0] + between
    blocks = (first, second + 1) if codec.cls_last and second else (first + 1, second)
    return _shared(codec.mask, *(blocks if codec.mask == "seq2seq" else (sum(blocks),)))


@lru_cache(4096)
def _shared(mask: str, *lengths: int) -> tuple[np.ndarray, AttentionMask]:
    """Positions and mask of all sequences with these lengths, shared because they take half of a data set's memory."""
    positions = np.arange(sum(lengths))
    positions.flags.writeable = False
    return positions, TEXT_MASKS[mask](*lengths)


def first_index(codec: Codec) -> int:
    """Index at which the first segment begins in a :func:`sequence`."""
    return 0 if codec.cls_last else 1


def second_index(first_size: int, codec: Codec) -> int:
    """Index at which the second segment begins in a :func:`sequence`, behind a first one of that length."""
    return first_index(codec) + first_size + codec.pair_separators
