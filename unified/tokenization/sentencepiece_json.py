"""A sentencepiece model as the content of a ``tokenizer.json``, which the library ``tokenizers`` reads.

The fields of a model are those of ``sentencepiece_model.proto``, read here without protobuf.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from unified.errors import UnifiedError
from unified.files.protobuf import message_fields
from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer

_SPACE = "\u2581"
#: Numbers of fields: the training settings and the normalizer in a model, and what is read of the two.
_TRAINER, _NORMALIZER = 2, 3
_MODEL_TYPE, _BYTE_FALLBACK, _SPACE_BEHIND = 3, 35, 24
_CHARACTER_MAP, _DUMMY_PREFIX, _REMOVE_EXTRA, _ESCAPE = 2, 3, 4, 5
_UNIGRAM, _BPE, _CHARACTERS = 1, 2, 4
#: Characters at which Python divides texts, see :func:`unified.tokenization.base.single_spaced`.
_WHITE_SPACE = r"[\s\x1c-\x1f]+"


def sentencepiece_json(tokenizer: SentencePieceTokenizer) -> dict[str, Any]:
    """The content of a ``tokenizer.json`` that divides texts like ``tokenizer``; nothing is put around them.

    Texts with combining marks may differ, see :func:`drops_marks`.

    Raises:
        UnifiedError: the model has rules that ``tokenizers`` lacks.
    """
    fields = _fields(tokenizer.model)
    trainer, normalizer = (_fields(fields.get(number, b"")) for number in (_TRAINER, _NORMALIZER))
    model_type = trainer.get(_MODEL_TYPE, _UNIGRAM)
    usual = {_DUMMY_PREFIX: 1, _REMOVE_EXTRA: 1, _ESCAPE: 1}
    if model_type not in (_UNIGRAM, _BPE, _CHARACTERS) or trainer.get(_SPACE_BEHIND, 0):
        raise UnifiedError("the sentencepiece model divides words in a way that tokenizer.json cannot say")
    if any(normalizer.get(number, value) != value for number, value in usual.items()):
        raise UnifiedError("the sentencepiece model keeps white space in a way that tokenizer.json cannot say")
    processor = tokenizer.processor
    pieces = tokenizer.entries
    unknown, fallback = processor.unk_id(), bool(trainer.get(_BYTE_FALLBACK, 0))
    if model_type == _UNIGRAM:
        scores = [(piece, processor.get_score(i)) for i, piece in enumerate(pieces)]
        made = Tokenizer(models.Unigram(scores, unknown, fallback))
    else:
        ids = {piece: i for i, piece in enumerate(pieces)}
        texts = {p: i for p, i in ids.items() if not (processor.is_control(i) or processor.is_unknown(i))}
        merges = _merges(texts) if model_type == _BPE else []
        model = models.BPE(ids, merges, unk_token=pieces[unknown], fuse_unk=True, byte_fallback=fallback)
        made = Tokenizer(model)
    steps: list[normalizers.Normalizer] = [normalizers.Replace(Regex(_WHITE_SPACE), " ")]
    if normalizer.get(_CHARACTER_MAP):
        steps.append(normalizers.Precompiled(normalizer[_CHARACTER_MAP]))
    made.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()])
    made.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, "always")
    bytes_back = [decoders.ByteFallback(), decoders.Fuse()] if fallback else [decoders.Fuse()]
    made.decoder = decoders.Sequence([decoders.Replace(_SPACE, " "), *bytes_back, decoders.Strip(" ", 1, 0)])
    return json.loads(made.to_str())


def drops_marks(tokenizer: SentencePieceTokenizer) -> bool:
    """True where the ``tokenizer.json`` may divide texts with combining marks in another way than the model.

    A model that replaces characters takes the longest sequence that it has a rule for. The library ``tokenizers`` takes
    the shortest one at the beginning of a character with its marks, and drops the marks behind it: of "É" as "E" and
    U+0301 a model that lowers case keeps the accent, and ``tokenizers`` makes "e". It has no normalizer that says it.
    """
    return bool(_fields(_fields(tokenizer.model).get(_NORMALIZER, b"")).get(_CHARACTER_MAP))


def _merges(ids: Mapping[str, int]) -> list[tuple[str, str]]:
    """All ways to put a piece together from two, the first made piece first, as sentencepiece prefers them."""
    found = [
        (number, ids[piece[:cut]], piece[:cut], piece[cut:])
        for piece, number in ids.items()
        for cut in range(1, len(piece))
        if piece[:cut] in ids and piece[cut:] in ids
    ]
    return [(left, right) for *_, left, right in sorted(found)]


def _fields(message: bytes) -> dict[int, Any]:
    """The last value of each field of a message: an integer, or bytes."""
    return dict(message_fields(message))
