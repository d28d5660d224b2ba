"""Questions with windows of their passages as examples, and which questions are refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.support.refusals import refused
from tests.unit.tasks.heads.test_passages import WORDS, words  # noqa: F401
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.tasks.heads.passages import windows
from unified.tasks.heads.questions import Answer, QuestionItem, question_item
from unified.tasks.heads.span import SpanAnswers


@pytest.mark.slow
@pytest.mark.parametrize("cls_last", [False, True])
@pytest.mark.parametrize("design", ["bert", "unilm", "xlnet"])
@pytest.mark.parametrize("order", [None, False, True])
def test_examples_of_questions(words, design, cls_last, order):  # noqa: F811
    """Everything about the examples of random items, read back from them, in both orders of question and passage."""
    passage_first = cls_last if order is None else order
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
    task = SpanAnswers.of(items, design=design, max_query=5, stride=4, passage_first=order)
    assert task.labels == ("",)
    codec = Codec(words.tokenizer, words.vocabulary, 16, cls_last)
    encoded = task.encode(items, codec)
    lost = [max(0, len(f"{item.history or ''} {item.question}".split()) - 5) for item in items]
    assert list(encoded.lost) == lost and 10 < np.count_nonzero(lost) < 60
    several = [item.id for item in items if len(item.answers) > 1]
    assert several[:3] == ["3", "6", "9"]
    assert encoded.remarks == [
        "15 of 60 questions count as unanswerable, and scores follow the rules of SQuAD 2.0: 15 items (0, 4, 8, ...): "
        "no answer is given",
        f"{len(several)} of 60 questions have an answer that cannot be learnt, and another that is: {len(several)} "
        "items (3, 6, 9, ...): the answer is not in the passage",
        f"of {np.count_nonzero(lost)} of 60 items question and history have more than 5 tokens; the rest is not read",
    ]
    held, divided = Counter(), 0
    for number, item in enumerate(items):
        own = np.flatnonzero(encoded.owners == number)
        divided += len(own) > 1
        question, tokens = item.question.split()[:5], item.context.split()
        said = (item.history or "").split()
        query = [*said[len(said) - min(len(said), 5 - len(question)) :], *question]
        expected = windows(len(tokens), 16 - 3 - len(query), 4)
        assert len(own) == len(expected)
        for member, (first, size) in zip(own, expected, strict=True):
            example, window = encoded.examples[member], encoded.notes[member]
            part = tokens[first : first + size]
            one, other = (part, query) if passage_first else (query, part)
            both = [*one, "</s>", *other, "</s>"]
            joined = [*both, "<s>"] if cls_last else ["<s>", *both]
            assert [codec.vocabulary.symbols[i] for i in example.tokens] == joined
            types = [0] * (len(one) + 1) + [1] * (len(other) + 1)
            types = [*types, 2] if cls_last else [0, *types]
            assert example.token_types.tolist() == types and len(example.tokens) <= 16
            read = [joined[index] for index in example.targets["task"].output_indices[:, 0]]
            if design == "xlnet":
                assert sorted(read) == sorted(["<s>", *part])
            else:
                assert read == joined
            assert read[encoded.head_inputs["cls"][member][0]] == "<s>"
            assert read[window.first : window.first + size] == part
            assert [item.context[slice(*index)] for index in window.offsets.tolist()] == part
            (start, end), answer_type = (
                encoded.head_inputs["labels"][member][0],
                encoded.head_inputs["answer_types"][member][0],
            )
            if item.impossible:
                assert answer_type == 1 and read[start] == read[end] == "<s>"
            elif answer_type == 0:
                held[number] += 1
                assert " ".join(read[start : end + 1]) == item.answers[-1].text
            else:
                assert answer_type == -1 and read[start] == read[end] == "<s>"
                answer = item.answers[-1]
                begin = len(item.context[: answer.start].split())
                assert begin < first or begin + len(answer.text.split()) > first + size
    assert divided == encoded.cut > 20
    # Of the longest answers some fit into no window of four tokens; all others are in one at least.
    assert all(
        held[i] for i, item in enumerate(items) if not item.impossible and len(item.answers[-1].text.split()) < 3
    )
    assert any(count > 1 for count in held.values())


def test_questions_that_cannot_be_learnt_count_in_no_loss(words):  # noqa: F811
    lost = QuestionItem("1", "w1", "w1 w2", (Answer("w2", 0),))
    task = SpanAnswers()
    others = [
        QuestionItem("2", "w1", "w1 w2", (Answer("w2", 3),)),
        QuestionItem("q-7", "w1", "w1 w2", (Answer("w9"), Answer("w2"))),
        QuestionItem("q-9", "w1", "w1 w2", (Answer("w9"),)),
        QuestionItem("q-8", "w1", "w1 w2", (), references=("two",)),
    ]
    encoded = task.encode([lost, *others], words)
    unasked = [[-1, -1]]
    assert [target.tolist() for target in encoded.head_inputs["labels"]] == [
        unasked,
        [[4, 4]],
        unasked,
        unasked,
        unasked,
    ]
    assert [answer_type.tolist() for answer_type in encoded.head_inputs["answer_types"]] == [[0]] * 5
    assert encoded.remarks == [
        "4 of 5 questions cannot be learnt from and count in no loss: item 1: the answer stands elsewhere in the "
        "passage; 2 items (q-7, q-9): the answer is not in the passage; item q-8: no part of the passage is marked as "
        "the answer"
    ]
    assert not task.encode(others[:1], words).remarks
    unlabelled = task.encode([QuestionItem("1", "w1", "\u200b")], words)
    assert set(unlabelled.head_inputs) == {"cls"} and len(unlabelled.examples) == 1
    assert len(unlabelled.notes[0].offsets) == 0


def test_an_answer_without_a_start_is_found_in_other_capitals_and_spaces():
    """Against all parts of the passage: whole words come first, then what is as written, then what stands first."""
    rng, seen = np.random.default_rng(5), Counter()
    for _ in range(300):
        context = "".join(rng.choice([*"aAbB.(", " ", "\n"], 14)) + "x"
        text = "".join(rng.choice([*"aAb.(", " "], rng.integers(1, 5)))
        if not text.strip():
            continue
        (found,) = question_item({"question": "q", "context": context, "answers": [text]}, 1, labelled=True).answers
        parts = [(i, context[i:j]) for i in range(15) for j in range(i + 1, 16)]
        exact = [(part, i) for i, part in parts if part == text]
        equal = [(part, i) for i, part in parts if part == part.strip() and
                 part.lower().split() == text.lower().split()]  # fmt: skip

        def is_whole(place: tuple[str, int], context: str = context) -> bool:
            (part, i), around = place, f" {context} "
            joined = (around[i] + part[0], part[-1] + around[i + len(part) + 1])
            return not any(pair.isalnum() for pair in joined)

        whole = [*filter(is_whole, exact), *filter(is_whole, equal)]
        assert (found.text, found.start) == [*whole, *exact, *equal, (text, None)][0]
        seen[bool(exact), bool(equal), bool(whole)] += 1
    cases = ((True, True, True), (True, True, False), (False, True, True), (False, True, False), (False, False, False))
    assert min(seen[case] for case in cases) > 5, seen


@pytest.mark.parametrize("history", [0, 7])
def test_a_question_leaves_room_for_one_token_of_its_passage(words, history):  # noqa: F811
    said = "w3 " * history or None
    items = [
        QuestionItem("7", "w1 " * (count - history), "w1 w2", (Answer("w2", 3),), history=said) for count in (16, 17)
    ]
    encoded = SpanAnswers().encode(items[:1], words)
    assert [len(example.tokens) for example in encoded.examples] == [20, 20]
    assert refused(SpanAnswers().encode, items[1:], words) == (
        "item 7: sequences of 20 tokens leave no room for the passage beside a question of 17; allow longer sequences, "
        "or set a lower max_query"
    )


def test_refusals(words):  # noqa: F811
    nothing = QuestionItem("8", "w1", "w1", (), impossible=True)
    with pytest.raises(UnifiedError, match="item 8 has no answer; no training item is like that"):
        SpanAnswers().encode([nothing], words)
    maybe = QuestionItem("9", "w1", "w1", (), choice="maybe")
    with pytest.raises(UnifiedError, match="item 9 has the answer 'maybe', which stands in no passage; no training"):
        SpanAnswers(("yes",), design="unilm").encode([maybe], words)
    for settings, says in (
        ({"design": "brt"}, r"design must be one of bert, unilm, xlnet, got 'brt' \(did you mean 'bert'\?\)"),
        ({"rules": "3"}, "rules must be one of 1.1, 2.0, coqa, got '3'"),
        ({"passage_first": 1}, "passage_first must be True or False or None, got 1"),
        ({"stride": 0}, "stride must be at least 1, got 0"),
        ({"nbest": 1.5}, "nbest must be an integer, got 1.5"),
        ({"null_threshold": 2}, "null_threshold must be from 0 to 1, got 2"),
        ({"labels": ("", "yes")}, r"some answers stand in no passage \(yes\); only the design 'unilm'"),
        ({"labels": ("no",), "design": "xlnet"}, "only the design 'unilm'"),
    ):
        with pytest.raises(UnifiedError, match=says):
            SpanAnswers(**settings)


def test_bad_items_are_reported(tmp_path):
    path = tmp_path / "train.jsonl"
    good = '"question": "q", "context": "c d", "answers": [{"text": "d", "start": 2}]'
    wrong = {
        '"context": "c"': "no field 'question'",
        '"question": " ", "context": "c"': "'question' must be",
        '"question": "q", "context": 3': "'context' must be",
        '"question": "q", "context": "c"': "no field 'answers'; its fields: 'question', 'context'",
        '"question": "q", "context": "c", "answers": {}': "'answers' must be a list or a text",
        '"question": "q", "context": "c", "answers": [{"start": 0}]': "an answer must have a 'text'",
        '"question": "q", "context": "c", "answers": [{"text": "c", "start": "0"}]': "'start' of the answer 'c'",
        '"question": "q", "context": "c", "answers": [{"text": "c", "start": true}]': "'start' of the answer 'c'",
        f'{good}, "impossible": 1': "'impossible' must be true or false",
        f'{good}, "impossible": true': "'impossible' is true, but there is an answer",
    }
    path.write_text("\n".join([f"{{{good}}}", *(f"{{{line}}}" for line in wrong)]))
    with pytest.raises(UnifiedError) as caught:
        SpanAnswers.read(path)
    for number, problem in enumerate(wrong.values(), 2):
        assert f"line {number}: {problem}" in caught.value.details
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


@pytest.mark.parametrize("passage_first", [False, True])
def test_tokens_within_named_entities_are_marked_in_each_window(words, passage_first):  # noqa: F811
    """A window's example marks what a whole reading of its texts would, of what it holds."""
    codec = replace(words, longest=11, marks_entities=True)
    item = QuestionItem(
        "1", "w1 w2 w3", "w4 w5 w6 w7 w8 w9 w10 w11", (Answer("w5", 3),), history="w12 w13",
        named_entities={"question": ((3, 5),), "context": ((3, 8), (18, 21)), "history": ((4, 7),)},
    )  # fmt: skip
    marked = {"w2", "w5", "w6", "w10", "w13"}
    task = SpanAnswers.of([item], max_query=4, stride=3, passage_first=passage_first)
    encoded = task.encode([item], codec)
    read = [[codec.vocabulary.symbols[token] for token in example.tokens] for example in encoded.examples]
    assert len(read) == 3 and {symbol for one in read for symbol in one} >= marked
    for symbols, example in zip(read, encoded.examples, strict=True):
        assert "w12" not in symbols and example.entities.tolist() == [symbol in marked for symbol in symbols]
    (plain, *_) = task.encode([item], replace(codec, marks_entities=False)).examples
    assert plain.entities is None
