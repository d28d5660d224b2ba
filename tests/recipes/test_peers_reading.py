"""The peer of fine-tuning: what it reads of items, as ours does, and what it answers."""

from __future__ import annotations

import math
import re
from pathlib import Path

import debug
import numpy as np
import pytest
import torch
from choice_head import Choices
from question_head import Questions
from relation_head import Relations
from text_head import Texts
from word_head import Words

from tests.support.peer_items import LABELS, VOCABULARY, choices, questions, relations, texts, words
from unified.conversions.bert import read_bert
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.tasks.finetuning import Start
from unified.tasks.heads import Classification, Tagging
from unified.tasks.heads.choice import Choice, ChoiceItem
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.relation import Relation
from unified.tasks.heads.span import SpanAnswers


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("peers") / "model"
    debug.make_model(folder, VOCABULARY)
    return folder


@pytest.mark.parametrize("longest", [9, 13, 32])
def test_texts_are_read_as_ours_are(model, tmp_path, longest):
    """Tokens, types, labels and the number of cut items are the same.

    Where two long texts share an odd number of tokens, transformers gives the odd one to the second text; ours, as
    BERT, to the first. Sizes here are even.
    """
    read_bert(model).save(tmp_path / "start")
    start, items = Start.of(tmp_path / "start"), texts(150, np.random.default_rng(2))
    task = Classification.of(items)
    encoded = task.encode(items, Codec(start.tokenizer, start.vocabulary, longest))
    peer = Texts(task, model, longest)
    features = peer.features(items)
    special = {"<s>": "[CLS]", "</s>": "[SEP]"}
    for example, target, read in zip(encoded.examples, encoded.head_inputs["labels"], features.inputs, strict=True):
        symbols = [start.vocabulary.symbols[token] for token in example.tokens]
        assert peer.tokenizer.convert_ids_to_tokens(read["input_ids"]) == [special.get(one, one) for one in symbols]
        assert read["token_type_ids"] == example.token_types.tolist() and read["labels"] == target[0]
    assert features.cut == encoded.cut and (features.cut > 0) == (longest < 32)


def test_words_have_their_label_at_their_first_token(model):
    items = words(60, np.random.default_rng(4))
    peer = Words(Tagging(LABELS), model, 16)
    features = peer.features(items)
    scores = []
    for item, read in zip(items, features.inputs, strict=True):
        tokens, expected, left = ["[CLS]"], [-100], 14
        for word, tag in zip(item.words, item.tags, strict=True):
            pieces = {"abc": ["a", "##bc"], "ab": ["a", "##b"]}.get(word, [word])[:left]
            left -= len(pieces)
            tokens += pieces
            expected += [LABELS.index(tag), -100][: len(pieces)]
        assert peer.tokenizer.convert_ids_to_tokens(read["input_ids"]) == [*tokens, "[SEP]"]
        assert read["labels"] == [*expected, -100]
        scores.append(torch.tensor([[float(label == i) for i in range(3)] for label in read["labels"]]))
    found = peer.predictions(items, features, scores)
    unread = 0
    for item, one, indices in zip(items, found, features.notes, strict=True):
        assert one["tags"] == ["O" if index is None else tag for tag, index in zip(item.tags, indices, strict=True)]
        unread += None in indices
    assert features.cut == unread > 0


def test_entities_stand_between_marks(model):
    """Without the marks the words are left; between those of an entity stand its own, and the first of both is read."""
    items = relations(60, np.random.default_rng(8))
    peer = Relations(Relation(("a", "b", "none"), negative="none"), model, 64)
    features = peer.features(items)
    assert peer.model().get_input_embeddings().num_embeddings == len(peer.tokenizer) == len(debug.WORDS) + 13 + 3
    for item, read in zip(items, features.inputs, strict=True):
        tokens = peer.tokenizer.convert_ids_to_tokens(read["input_ids"])
        for number, entity in enumerate(item.entities):
            begin = tokens.index(f"[unused{2 * number + 1}]")
            assert read["marks"][number] == begin
            inside = tokens[begin + 1 : tokens.index(f"[unused{2 * number + 2}]")]
            assert together(inside) == list(item.words[entity.start : entity.stop])
        assert together(tokens[1:-1]) == list(item.words)
        assert peer.task.labels[read["labels"]] == item.label


def test_a_vocabulary_without_marks_is_refused(tmp_path):
    debug.make_model(tmp_path / "model")
    path = tmp_path / "model" / "vocab.txt"
    path.write_text(re.sub(r"\[unused([4-8])\]", r"y\1", path.read_text()))
    with pytest.raises(UnifiedError, match=r"needs four entries \[unusedK\] as marks, found \[1, 2, 3\]$"):
        Relations(Relation(("a", "none"), negative="none"), tmp_path / "model", 64)


def together(tokens: list[str]) -> list[str]:
    """Words of their pieces; marks are left out."""
    return " ".join(token for token in tokens if token[0] != "[").replace(" ##", "").split()


def test_choices_are_read_with_the_context_each(model):
    items = choices(30, np.random.default_rng(9))
    peer = Choices(Choice(), model, 64)
    features = peer.features(items)
    batch = peer.collate(features.inputs)
    assert batch["input_ids"].shape[:2] == (30, 4) and batch["labels"].tolist() == [item.label for item in items]
    for item, row in zip(items, batch["input_ids"], strict=True):
        for choice, tokens in zip(item.choices, row, strict=True):
            expected = f"[CLS] {item.context} [SEP] {'w1 ' if item.question else ''}{choice} [SEP]"
            assert peer.tokenizer.decode(tokens).replace(" [PAD]", "").replace("[PAD]", "") == expected
    scores = [torch.eye(4)[item.label] for item in items]
    assert [one["label"] for one in peer.predictions(items, features, scores)] == [item.label for item in items]
    with pytest.raises(UnifiedError, match="item 30 has 2 choices; the peer needs equally many of all"):
        peer.features([*items, ChoiceItem("30", "w1", ("w2", "w3"), None, 0)])


def test_parts_of_passages_and_the_answers_in_them(model):
    """Each window holds its characters; windows share 8 tokens; a target is the answer, or CLS if it is not there."""
    items, longest, stride = questions(80, np.random.default_rng(5)), 32, 8
    peer = Questions(SpanAnswers(("",), stride=stride), model, longest)
    features = peer.features(items)
    held = 0
    for number, item in enumerate(items):
        own = [i for i, window in enumerate(features.notes) if window.item == number]
        behind = None
        for i in own:
            window, read = features.notes[i], features.inputs[i]
            assert len(read["input_ids"]) == longest
            tokens = peer.tokenizer.convert_ids_to_tokens(read["input_ids"])
            assert tokens[window.first - 1] == "[SEP]" and tokens[window.first + len(window.offsets)] == "[SEP]"
            for index, (start, end) in enumerate(window.offsets, window.first):
                assert tokens[index].removeprefix("##") == item.context[start:end]
            if behind is not None:
                assert (window.offsets[:stride] == behind[-stride:]).all()
            behind = window.offsets
            start, end = read["start_positions"], read["end_positions"]
            if start:
                held += 1
                characters = window.offsets[start - window.first, 0], window.offsets[end - window.first, 1]
                answer = item.answers[0]
                assert characters == (answer.start, answer.start + len(answer.text))
            else:
                inside = [a for a in item.answers if window.offsets[0, 0] <= a.start]
                assert end == 0 and not any(a.start + len(a.text) <= window.offsets[-1, 1] for a in inside)
        assert features.notes[own[0]].offsets[0, 0] == 0 and behind[-1, 1] == len(item.context)
    assert held > 50 and features.cut == sum(
        sum(window.item == number for window in features.notes) > 1 for number in range(len(items))
    )


def published_answer(item, windows, scores, nbest: int, longest: int) -> tuple[str, float]:
    """The loops of the example script: best text, and the difference of the null score and the best span's."""
    candidates, null = [], None
    for window, own in zip(windows, scores, strict=True):
        offsets: list = [None] * len(own)
        offsets[window.first : window.first + len(window.offsets)] = window.offsets.tolist()
        start_scores, end_scores = own[:, 0].tolist(), own[:, 1].tolist()
        score = start_scores[0] + end_scores[0]
        null = score if null is None or score < null else null
        for start in sorted(range(len(own)), key=lambda i: -start_scores[i])[:nbest]:
            for end in sorted(range(len(own)), key=lambda i: -end_scores[i])[:nbest]:
                if offsets[start] is None or offsets[end] is None or end < start or end - start + 1 > longest:
                    continue
                text = item.context[offsets[start][0] : offsets[end][1]]
                candidates.append((start_scores[start] + end_scores[end], text))
    if not candidates:
        return "", math.inf
    best = max(candidates, key=lambda one: one[0])
    return best[1], null - best[0]


@pytest.mark.parametrize("labels", [("",), ()])
def test_answers_are_those_of_the_published_loops(model, labels):
    rng = np.random.default_rng(6)
    items = questions(60, rng)
    peer = Questions(SpanAnswers(labels, stride=8, nbest=5, max_answer=4), model, 32)
    features = peer.features([item for item in items])
    scores = [torch.from_numpy(rng.normal(size=(32, 2)).astype(np.float32)) for _ in range(len(features))]
    for own in scores:
        own[0] += 0.6  # CLS: about half of the questions have no answer
    nothing = 0
    for number, (item, found) in enumerate(zip(items, peer.predictions(items, features, scores), strict=True)):
        own = [i for i, window in enumerate(features.notes) if window.item == number]
        text, difference = published_answer(
            item, [features.notes[i] for i in own], [scores[i].double() for i in own], 5, 4
        )
        if labels and difference > 0:
            text, nothing = "", nothing + 1
        assert found["answer"] == text and len(found["nbest"]) <= 5 + len(labels)
        if labels:
            assert found["no_answer"] == pytest.approx(1 / (1 + math.exp(-difference)), abs=1e-5)
        if text:
            assert item.context[found["start"] : found["end"]] == text
    assert bool(nothing) == bool(labels) and nothing < 50


def test_a_question_that_leaves_too_little_room_is_refused(model):
    peer = Questions(SpanAnswers(("",), stride=8), model, 16)
    with pytest.raises(UnifiedError, match="item 1: sequences of 16 tokens leave no room for more than 8 of"):
        peer.features([QuestionItem("1", "w1 w2 w3 w4 w5", "w1 w2", (Answer("w1", 0),))])
    with pytest.raises(UnifiedError, match="item 2: the peer knows no conversations"):
        peer.features([QuestionItem("2", "w1", "w1 w2", (), choice="yes")])
