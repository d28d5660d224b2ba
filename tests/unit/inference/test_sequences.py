"""Texts as sequences under each mask, typed out; and which symbol sees all of one."""

from dataclasses import replace

import numpy as np
import pytest
import transformers

from tests.support.corpora import random_documents
from tests.support.tiny_models import vocabulary
from tests.support.trained_tokenizers import (
    ODD,
    SENTENCE,
    TOKENIZERS,
    byte_level_codec,
    byte_level_tokenizer,
    trained_tokenizers,
)  # fmt: skip
from unified import masks
from unified.data.targets import TASK
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.inference.sequences import Codec, class_index, first_index, second_index, sequence, token_types_under
from unified.masks import TEXT_MASKS
from unified.model import TransformerConfig
from unified.objectives.xlnet import CLS_TYPE
from unified.tokenization import ordinary_symbols
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

WORDS = vocabulary()
CLS, SEP = WORDS.special.begin, WORDS.special.separator
ONE, TWO = (np.array([7, 8, 9]),), (np.array([7, 8, 9]), np.array([10, 11]))


def config(**changes) -> TransformerConfig:
    return TransformerConfig(**{"vocabulary_size": len(WORDS), "token_types": 6, **changes})


def codec(**changes) -> Codec:
    return Codec.for_model(config(**changes), SymbolTokenizer(WORDS.symbols), WORDS, 40)


#: (mask, positions) -> token types of one text and of two, and where each of them is read.
TYPES = {
    "bidirectional": ([0] * 5, [0] * 5 + [1] * 3, 0, 0),
    "left_to_right": ([2] * 5, [2] * 8, 4, 7),
    "right_to_left": ([3] * 5, [3] * 8, 0, 0),
    "seq2seq": ([4] * 5, [4] * 5 + [5] * 3, 0, 7),
}


@pytest.mark.parametrize("mask", TYPES)
def test_cls_and_each_text_with_a_separator_behind_it(mask):
    one, two, reads_one, reads_two = TYPES[mask]
    own = codec(mask=mask)
    for texts, tokens, types, read in (
        (ONE, [CLS, 7, 8, 9, SEP], one, reads_one),
        (TWO, [CLS, 7, 8, 9, SEP, 10, 11, SEP], two, reads_two),
    ):
        found = sequence(texts, own)
        assert found.tokens.tolist() == tokens and found.token_types.tolist() == types
        assert found.positions.tolist() == list(range(len(tokens))) and found.objective == "task"
        sizes = [len(text) for text in texts]
        assert found.targets[TASK].output_indices.ravel().tolist() == [read] == [class_index(sizes, own)]
        blocks = (5, len(tokens) - 5) if mask == "seq2seq" else (len(tokens),)
        assert found.mask == TEXT_MASKS[mask](*blocks)
        seen = found.mask.dense()[read]
        assert seen.all() and found.entities is None
    assert first_index(own) == 1


def test_a_codec_by_itself_reads_as_bert_does():
    own = codec()
    assert Codec(own.tokenizer, own.vocabulary, own.longest) == own
    assert not own.cls_last and not own.marks_entities and own.mask == "bidirectional"


def test_two_token_types_are_those_of_the_texts_whatever_the_mask():
    for mask in TYPES:
        assert sequence(TWO, codec(mask=mask, token_types=2)).token_types.tolist() == [0] * 5 + [1] * 3
        assert token_types_under(mask, config(token_types=5)) == (0, 1)
        assert token_types_under(mask, config(positions="relative")) == (0, 1)


def test_the_last_symbol_stands_for_all_in_models_with_relative_positions():
    own = codec(positions="relative")
    found = sequence(TWO, own)
    assert found.tokens.tolist() == [7, 8, 9, SEP, 10, 11, SEP, CLS]
    assert found.token_types.tolist() == [0] * 4 + [1] * 3 + [CLS_TYPE]
    assert found.targets[TASK].output_indices.ravel().tolist() == [7] and first_index(own) == 0
    prefix = sequence(TWO, codec(positions="relative", mask="seq2seq"))
    assert prefix.mask == masks.seq2seq(4, 4) and prefix.targets[TASK].output_indices.ravel().tolist() == [7]
    alone = sequence(ONE, codec(positions="relative", mask="seq2seq"))
    assert alone.mask == masks.seq2seq(5, 0)
    with pytest.raises(UnifiedError) as raised:
        codec(positions="relative", mask="right_to_left")
    assert str(raised.value) == (
        "mask 'right_to_left' needs positions 'learned' or 'rotary': with 'relative' ones CLS stands at the end "
        "(XLNet), where it would see itself alone"
    )


@pytest.mark.parametrize("mask", TYPES)
def test_a_second_separator_between_two_texts_belongs_to_the_first(mask):
    """As RoBERTa has it; a text alone is followed by one."""
    _, types, _, read = TYPES[mask]
    own = codec(mask=mask, pair_separators=2)
    assert sequence(ONE, own).tokens.tolist() == [CLS, 7, 8, 9, SEP]
    found = sequence(TWO, own)
    assert found.tokens.tolist() == [CLS, 7, 8, 9, SEP, SEP, 10, 11, SEP]
    assert found.token_types.tolist() == [types[0], *types]
    assert found.positions.tolist() == list(range(9))
    assert found.mask == TEXT_MASKS[mask](*((6, 3) if mask == "seq2seq" else (9,)))
    assert found.targets[TASK].output_indices.ravel().tolist() == [read and 8] == [class_index([3, 2], own)]
    inside = (np.array([True, False, True]), np.array([False, True]))
    marks = sequence(TWO, replace(own, marks_entities=True), entities=inside).entities
    assert np.flatnonzero(marks).tolist() == [1, 3, 7]


@pytest.mark.parametrize(("changes", "one", "two", "second"), [
    ({}, 2, 3, 5), ({"pair_separators": 2}, 2, 4, 6), ({"positions": "relative"}, 2, 3, 4),
])  # fmt: skip
def test_special_symbols_are_counted_and_the_second_text_is_found(changes, one, two, second):
    own = codec(**changes)
    assert (own.special_tokens(1), own.special_tokens(2)) == (one, two)
    assert [len(sequence(texts, own).tokens) for texts in (ONE, TWO)] == [3 + one, 5 + two]
    assert second_index(3, own) == second == sequence(TWO, own).tokens.tolist().index(10)


def test_what_is_read_can_be_named():
    found = sequence(TWO, codec(), np.array([1, 2, 6]))
    assert found.targets[TASK].output_indices.ravel().tolist() == [1, 2, 6]


def test_entities_are_marked_within_the_texts():
    """No special symbol lies in one."""
    own = codec(sublayers="entity,feed_forward", token_types=2)
    assert own.marks_entities and not codec().marks_entities
    inside = (np.array([True, False, True]), np.array([False, True]))
    marks = sequence(TWO, own, entities=inside).entities
    assert marks.dtype == bool and marks.tolist() == [False, True, False, True, False, False, True, False]


def test_positions_and_masks_of_like_sequences_are_shared_and_cannot_be_written_to():
    text = np.full(1234, 7)  # longer than what other tests read, whose positions may be kept already
    first, second = sequence((text, text), codec()), sequence((text + 1, text), codec())
    assert first.positions is second.positions and first.mask is second.mask
    assert first.positions.tolist() == list(range(2 * 1234 + 3))
    with pytest.raises(ValueError, match="read-only"):
        first.positions[0] = 1


def test_texts_are_encoded_at_once_and_apart():
    own = codec()
    texts = ["w1 w2", "", "w0"]
    first = WORDS.index("w0")
    assert [ids.tolist() for ids in own.encode(texts)] == [[first + 1, first + 2], [], [first]]
    assert all(ids.dtype == np.int64 for ids in own.encode(texts))
    assert own.encode([]) == [] == own.encode_offsets([])


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_words_of_byte_level_tokenizers_have_the_ids_of_transformers(add_prefix_space):
    """The first word begins as a text does, with a mark where the tokenizer puts one before every text."""
    own = byte_level_codec(40, add_prefix_space)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level_tokenizer(add_prefix_space=True))
    odd = ["Berg", "'s", "$5", "naïve", "漢字", "is", "e\u0301", "\u200b", "It's"]
    sentences = [SENTENCE.split(), ["Rome"], [], odd]
    numbers = own.vocabulary.encode(own.tokenizer.native_symbols())
    for words, found in zip(sentences, own.encode_words(sentences), strict=True):
        read = theirs(words, is_split_into_words=True)
        ids, of_word = numbers[read["input_ids"]], np.array(read.word_ids(), dtype=object)
        for i, word in enumerate(found[0 if add_prefix_space else 1 :], 0 if add_prefix_space else 1):
            assert word.tolist() == ids[of_word == i].tolist(), words[i]
        assert all(word.dtype == np.int64 for word in found)
        joined = own.encode([" ".join(words)])[0]
        assert np.concatenate([np.zeros(0, dtype=np.int64), *found]).tolist() == joined.tolist()


@pytest.mark.parametrize("kind", [*TOKENIZERS, "byte_fallback", "uncased"])
def test_words_of_other_tokenizers_have_the_ids_that_they_have_by_themselves(kind):
    tokenizer = trained_tokenizers()[kind]
    own = Codec(tokenizer, Vocabulary(ordinary_symbols(tokenizer)), 40)
    sentences = [line.split() for document in random_documents(9, seed=4) for line in document]
    sentences += [text.split() for text in ODD]
    for words, found in zip(sentences, own.encode_words(sentences), strict=True):
        assert [ids.tolist() for ids in found] == [ids.tolist() for ids in own.encode(words)]


def test_no_texts_have_no_words():
    assert codec().encode_words([]) == [] and codec().encode_words([[], []]) == [[], []]


@pytest.mark.parametrize(("special", "least"), [(2, 1), (3, 2)])
def test_a_sequence_has_room_for_the_tokens_that_a_task_needs(special, least):
    own = codec()
    assert own.room(special, least) == 40 - special == own.room(special)
    assert replace(own, longest=special + least).room(special, least) == least
    for longest, tokens in ((special + least - 1, f"{special + least - 1} tokens"), (1, "1 token"), (0, "0 tokens")):
        with pytest.raises(UnifiedError) as refused:
            replace(own, longest=longest).room(special, least)
        assert str(refused.value) == (
            f"sequences of {tokens} are too short, those of this task need {special + least}; raise --max-length of "
            "`unified finetune` (--tokens-per-sample of fairseq-train)"
        )
