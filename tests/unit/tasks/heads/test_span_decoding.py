"""Predicted answers against a search through every span of every window, and their scores by the official rules."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import torch

from unified.data.vocabulary import Vocabulary
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.model.span_heads import BEAMS, Beams, SpanScores
from unified.tasks.heads.batches import assembled, units_of
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.heads.span_decoding import Window, spans_by_sums, spans_of_beams
from unified.tasks.metrics import score_squad_v1, score_squad_v2
from unified.tokenization.wordpiece import WordPieceTokenizer

WORDS = [f"w{i}" for i in range(12)]
CODEC = Codec(WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]), Vocabulary(WORDS), longest=18)


def random_items(count, seed, labelled=True):
    rng = np.random.default_rng(seed)
    items = []
    for i in range(count):
        context = " ".join(rng.choice(WORDS, rng.integers(1, 40)))
        answers = (Answer(context.split()[0], 0),) if i % 3 else ()
        question = " ".join(rng.choice(WORDS, rng.integers(1, 5)))
        items.append(QuestionItem(str(i), question, context, answers, impossible=None if answers else True))
    return items if labelled else [QuestionItem(item.id, item.question, item.context) for item in items]


def random_scores(design, reading, seed, kinds=2):
    """Scores of a head that knows nothing; half of the numbers repeat, so that spans tie."""
    generator = torch.Generator().manual_seed(seed)
    sizes = reading["sizes"]
    start, end = torch.randn(2, int(sizes.sum()), generator=generator)
    start = torch.where(torch.rand(len(start), generator=generator) < 0.5, start.round(), start)
    if design == "bert":  # no answer is about as good as the best of many spans
        start[sizes.cumsum(0) - sizes + reading["cls"]] += 3.0
        return SpanScores(start, end.round())
    if design == "unilm":
        bias = torch.tensor([0.0, 0.7])[:kinds]
        return SpanScores(start, end, torch.randn(len(sizes), kinds, generator=generator) + bias)
    shape = (len(sizes), BEAMS, BEAMS)
    starts = torch.stack([torch.randint(0, int(size) + 2, shape[:2], generator=generator)[0] for size in sizes])
    ends = torch.stack([torch.randint(0, int(size) + 2, shape[1:], generator=generator) for size in sizes])
    scores = torch.randn(shape, generator=generator)
    scores[torch.rand(shape, generator=generator) < 0.2] = -torch.inf
    kinds = torch.randn(len(sizes), 1, generator=generator)
    return SpanScores(start, None, kinds, Beams(starts, ends, scores))


def every_span(task, design, encoded, members, own, scores, sizes):
    """(score, window, first, last) of all spans of a question that may be its answer, best first."""
    found = []
    firsts = np.cumsum(sizes) - sizes
    for number, index in enumerate(own):
        window = encoded.notes[members[index]]
        size, begin = len(window.offsets), int(firsts[index]) + window.first
        if design == "xlnet":
            beams = [
                (float(scores.beams.scores[index, k, j]), int(scores.beams.starts[index, k]) - window.first,
                 int(scores.beams.ends[index, k, j]) - window.first)
                for k in range(BEAMS) for j in range(BEAMS)
            ]  # fmt: skip
        else:
            beams = [
                (float(scores.start[begin + a]) + float(scores.end[begin + b]), a, b)
                for a in range(size) for b in range(size)
            ]  # fmt: skip
        for score, a, b in beams:
            allowed = 0 <= a <= b < size and b - a + 1 <= task.max_answer and np.isfinite(score)
            if allowed and window.central[a]:
                found.append((score, number, a, b))
    return sorted(found, key=lambda span: (-span[0], *span[1:]))


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


class Searched(NamedTuple):
    """A prediction and what a search through all spans finds for the same scores."""

    item: QuestionItem
    prediction: dict
    spans: list[tuple[float, int, int]]  # (score, first and last character) of the best, best first
    nothing: float  # the chance that there is no answer


@cache
def searched(design: str, seed: int) -> list[Searched]:
    items = random_items(25, seed)
    task = SpanAnswers(("",), design=design, stride=5, max_answer=4, nbest=6, max_query=4)
    encoded = task.encode(items, CODEC)
    chosen = np.random.default_rng(seed).permutation(len(items))[:18]  # of a batch; in another order than the items
    members = np.concatenate([np.flatnonzero(encoded.owners == i) for i in chosen])
    members, _, reading = assembled(encoded, members, 40, 1)
    scores = random_scores(design, reading, seed)
    own_items = [items[i] for i in sorted(chosen)]
    predictions = task.predict(own_items, encoded, members, scores, reading)
    sizes = reading["sizes"].numpy()
    firsts = np.cumsum(sizes) - sizes
    found = []
    for number, item, prediction in zip(sorted(chosen), own_items, predictions, strict=True):
        indices = sorted(np.flatnonzero(encoded.owners[members] == number), key=lambda index: members[index])
        spans, seen = [], set()
        for score, window, a, b in every_span(task, design, encoded, members, indices, scores, sizes):
            offsets = encoded.notes[members[indices[window]]].offsets
            start, end = int(offsets[a, 0]), int(offsets[b, 1])
            if item.context[start:end] not in seen and len(spans) < task.nbest:
                seen.add(item.context[start:end])
                spans.append((score, start, end))
        cls = [int(firsts[index]) + encoded.head_inputs["cls"][members[index]][0] for index in indices]
        if design == "bert":
            lowest = min(float(scores.start[index]) + float(scores.end[index]) for index in cls)
            nothing = sigmoid(lowest - spans[0][0]) if spans else 1
        elif design == "unilm":
            nothing = min(float(scores.answer_types[index].softmax(-1)[1]) for index in indices)
        else:
            nothing = min(sigmoid(float(scores.answer_types[index, 0])) for index in indices)
        found.append(Searched(item, prediction, spans, nothing))
    return found


def spans_listed(prediction: dict) -> list[dict]:
    return [entry for entry in prediction["nbest"] if "start" in entry]


DESIGNS_AND_SEEDS = pytest.mark.parametrize(
    ("design", "seed"), [(design, seed) for design in ("bert", "unilm", "xlnet") for seed in range(4)]
)


@pytest.mark.slow
@DESIGNS_AND_SEEDS
def test_the_best_spans_are_those_of_a_search_through_all(design, seed):
    for item, prediction, spans, _ in searched(design, seed):
        assert prediction["id"] == item.id
        listed = spans_listed(prediction)
        assert [(entry["start"], entry["end"]) for entry in listed] == [span[1:] for span in spans]
        assert all(entry["text"] == item.context[entry["start"] : entry["end"]] for entry in listed)


@pytest.mark.slow
@DESIGNS_AND_SEEDS
def test_probabilities_are_a_softmax_beside_the_chance_of_no_answer(design, seed):
    for _, prediction, spans, nothing in searched(design, seed):
        assert prediction["no_answer"] == pytest.approx(nothing, rel=1e-5)
        weights = np.exp([span[0] for span in spans])
        expected = (1 - nothing) * weights / weights.sum()
        listed = spans_listed(prediction)
        assert [entry["probability"] for entry in listed] == pytest.approx(expected.tolist(), abs=2e-6)
        if spans:
            assert sum(entry["probability"] for entry in prediction["nbest"]) == pytest.approx(1, abs=1e-4)


@pytest.mark.slow
@DESIGNS_AND_SEEDS
def test_the_answer_is_the_best_span_or_none(design, seed):
    given = {True: 0, False: 0}
    for _, prediction, spans, nothing in searched(design, seed):
        none = nothing > 0.5 or not spans
        given[none] += 1
        best = spans_listed(prediction)[0] if spans else {"text": ""}
        assert prediction["answer"] == ("" if none else best["text"])
        assert ("start" in prediction) is not none
        assert prediction["best_non_null"] == {name: best[name] for name in ("text", "start", "end") if name in best}
    assert min(given.values()) > 0


def test_the_highest_sums_of_random_windows():
    """Also where nothing may start, windows are empty or short, and fewer spans exist than asked for."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        sizes, longest = rng.integers(0, 9, rng.integers(1, 4)), int(rng.integers(1, 6))
        starts = [np.where(rng.random(size) < 0.3, -np.inf, rng.integers(-3, 4, size)) for size in sizes]
        ends = [rng.integers(-3, 4, size).astype(float) for size in sizes]
        spans = sorted(
            (-(starts[w][a] + ends[w][b]), w, a, b)
            for w, size in enumerate(sizes) for a in range(size) for b in range(a, min(size, a + longest))
            if np.isfinite(starts[w][a])
        )  # fmt: skip
        count = int(rng.integers(1, 30))
        found = spans_by_sums(starts, ends, longest, count)
        columns = zip((-found.scores).tolist(), found.windows, found.firsts, found.lasts, strict=True)
        assert list(columns) == spans[:count]


def test_beams_outside_the_passage_are_no_spans():
    windows = [Window(2, np.zeros((4, 2), dtype=np.int64), np.array([True, True, False, True]))]
    starts = np.array([[2, 4, 1, 5, 9]])  # 4 is not central, 1 is before the passage, 9 behind it
    ends = np.array([[[2, 3, 5, 1, 6], [5] * 5, [3] * 5, [5, 2, 6, 9, 5], [9] * 5]])
    scores = np.arange(25, dtype=np.float64).reshape(1, 5, 5)
    found = spans_of_beams(starts, ends, scores, windows, longest=3)
    assert list(zip(found.firsts.tolist(), found.lasts.tolist(), found.scores.tolist(), strict=True)) == [
        (3, 3, 19.0), (3, 3, 15.0), (0, 1, 1.0), (0, 0, 0.0)
    ]  # fmt: skip


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_the_threshold_decides(threshold):
    items = random_items(30, 9)
    task = SpanAnswers(("",), design="unilm", null_threshold=threshold, stride=5)
    encoded = task.encode(items, CODEC)
    members, _, reading = assembled(encoded, np.arange(len(encoded.examples)), None, 1)
    predictions = task.predict(items, encoded, members, random_scores("unilm", reading, 1), reading)
    answered = [prediction["answer"] != "" for prediction in predictions]
    assert answered == [prediction["no_answer"] <= threshold for prediction in predictions]
    assert any(answered) == (threshold > 0) and all(answered) == (threshold == 1)


def test_yes_and_no_outweigh_spans():
    items = [QuestionItem(str(i), "w1", "w1 w2 w3", (), choice=choice) for i, choice in enumerate(("yes", "no") * 2)]
    items += [
        QuestionItem("4", "w1", "w1 w2", (), choice="unknown"),
        QuestionItem("5", "w1", "w1 w2", (Answer("w1", 0),)),
    ]
    task = SpanAnswers.of(items, design="unilm", rules="coqa")
    assert task.labels == ("no", "unknown", "yes") and task.measures == ("f1", "exact")
    encoded = task.encode(items, CODEC)
    members, _, reading = assembled(encoded, np.arange(6), None, 1)
    assert reading["answer_types"].tolist() == [3, 1, 3, 1, 2, 0]
    # Rows of span, no, unknown and yes.
    chances = [[0.3, 0.1, 0.2, 0.4], [0.2, 0.5, 0.1, 0.2], [0.5, 0.1, 0.1, 0.3]]
    chances += [[0.1, 0.3, 0.55, 0.05], [0.31, 0.1, 0.49, 0.1], [0.9, 0.0, 0.1, 0.0]]
    logits = torch.log(torch.tensor(chances))
    size = int(reading["sizes"].sum())
    scores = SpanScores(torch.arange(size) * 1.0, torch.arange(size) * 1.0, logits)
    found = task.predict(items, encoded, members, scores, reading)
    assert [one["answer"] for one in found] == ["yes", "no", "w3", "unknown", "w2", "w2"]
    assert [one["best_non_null"]["text"] for one in found] == ["yes", "no", "w3", "no", "w2", "w2"]
    assert [one["no_answer"] for one in found] == pytest.approx([0.2, 0.1, 0.1, 0.55, 0.49, 0.1])
    assert found[2]["start"] == 6 and "start" not in found[0]
    assert found[0]["nbest"][0] == {"text": "yes", "probability": 0.4}
    for one in found:
        assert sum(entry["probability"] for entry in one["nbest"]) == pytest.approx(1, abs=1e-5)
    # Each answer has one reference: the mean of exact matches, and here of F1.
    assert task.score(items, found) == {"em": 100 * 2 / 6, "f1": 100 * 2 / 6, "turns": 6, "exact": 100 * 2 / 6}


@pytest.mark.parametrize("choices", [("yes", "no"), ("yes", "no", "unknown")])
def test_a_model_that_has_learnt_all_windows_answers_right_whatever_the_others_say(choices):
    """Windows from which training learns no type of answer may claim any."""
    rng, items = np.random.default_rng(7), []
    for i in range(60):
        words = [f"w{number}" for number in rng.integers(0, 12, rng.integers(1, 60))]
        words[rng.integers(len(words))] = "w11"
        context = " ".join(words)
        answer = (Answer("w11", context.index("w11")),) if i % 2 else ()
        choice = None if answer else choices[i // 2 % len(choices)]
        items.append(QuestionItem(str(i), "w1", context, answer, choice=choice))
    task = SpanAnswers.of(items, design="unilm", stride=5, rules="coqa")
    assert task.labels == tuple(sorted(choices))
    encoded = task.encode(items, CODEC)
    members, _, reading = assembled(encoded, rng.permutation(len(encoded.examples)), None, 1)
    start, end = torch.from_numpy(rng.normal(0, 0.1, (2, int(reading["sizes"].sum()))))
    firsts = reading["sizes"].cumsum(0) - reading["sizes"]
    for scores, column in ((start, 0), (end, 1)):
        scores[firsts + reading["labels"][:, column]] += 20
    elsewhere = reading["answer_types"] < 0
    claimed = torch.from_numpy(rng.integers(0, 1 + len(choices), len(members)))
    nothing = 1 + task.labels.index("unknown") if "unknown" in choices else claimed
    types = torch.where(elsewhere, nothing, reading["answer_types"])
    assert elsewhere.any() and len(members) > 100
    logits = 20.0 * torch.nn.functional.one_hot(types, 1 + len(choices))
    found = task.predict(items, encoded, members, SpanScores(start, end, logits), reading)
    assert [one["answer"] for one in found] == [item.choice or "w11" for item in items]


def test_scores_are_the_official_ones():
    items = random_items(40, 3)
    task = SpanAnswers(("",), stride=5)
    assert task.measures == ("best_f1", "best_exact", "f1", "exact")
    encoded = task.encode(items, CODEC)
    members, _, reading = assembled(encoded, np.arange(len(encoded.examples)), None, 1)
    predictions = task.predict(items, encoded, members, random_scores("bert", reading, 2), reading)
    found = task.score(items, predictions)
    gold = {item.id: [answer.text for answer in item.answers] for item in items}
    answers = {one["id"]: one["answer"] for one in predictions}
    assert {name: found[name] for name in ("exact", "f1", "HasAns_f1", "NoAns_f1", "total")}.items() <= score_squad_v2(
        gold, answers
    ).items()
    # The best of all thresholds, each tried by itself.
    spans = {one["id"]: one["best_non_null"]["text"] for one in predictions}
    chances = {one["id"]: one["no_answer"] for one in predictions}
    tried = [
        score_squad_v2(gold, {i: "" if chances[i] > threshold else spans[i] for i in spans})["f1"]
        for threshold in [-1.0, *chances.values()]
    ]
    assert found["best_f1"] == pytest.approx(max(tried)) and found["best_f1"] > found["f1"]
    at_best = [{**one, "answer": "" if chances[one["id"]] > found["best_f1_thresh"] else spans[one["id"]]}
               for one in predictions]  # fmt: skip
    assert task.score(items, at_best)["f1"] == pytest.approx(found["best_f1"])


def test_equal_ids_are_two_questions_and_squad_1_asks_for_spans_alone():
    task = SpanAnswers(stride=5)
    answerable = [item for item in random_items(40, 3) if item.answers]
    twice = [QuestionItem("x", item.question, item.context, item.answers) for item in answerable]
    encoded = task.encode(twice, CODEC)
    members, _, reading = assembled(encoded, np.arange(len(encoded.examples)), None, 1)
    predictions = task.predict(twice, encoded, members, random_scores("bert", reading, 2), reading)
    assert all("no_answer" not in one and one["answer"] for one in predictions)
    found = task.score(twice, predictions)
    texts = {str(i): [answer.text for answer in item.answers] for i, item in enumerate(twice)}
    expected = score_squad_v1(texts, {str(i): one["answer"] for i, one in enumerate(predictions)})
    assert found == expected | {"exact": expected["exact_match"]}
    assert set(SpanAnswers(rules="2.0").score(twice, predictions)) >= {"exact", "f1", "HasAns_total"}


@pytest.mark.slow
@pytest.mark.parametrize("design", ["bert", "unilm", "xlnet"])
@pytest.mark.parametrize(("cls_last", "passage_first"), [(False, None), (True, None), (False, True), (True, False)])
@torch.no_grad()
def test_a_passage_is_answered_alike_alone_and_packed(design, cls_last, passage_first):
    """With a random model, labelled or not: neither the batch nor the answers in the data change a prediction."""
    codec = Codec(CODEC.tokenizer, CODEC.vocabulary, 18, cls_last)
    task = SpanAnswers(("",), design=design, stride=5, max_answer=4, passage_first=passage_first)
    config = TransformerConfig(
        vocabulary_size=len(codec.vocabulary), layers=2, width=32, heads=2, initializer_range=0.3, token_types=3
    )
    torch.manual_seed(0)
    model = UnifiedModel.for_tasks(config, {"span": task.head(config)}).eval()

    def predictions(items, members, encoded, row_length):
        members, batch, reading = assembled(encoded, members, row_length, 1)
        owners = np.unique(encoded.owners[members])
        return task.predict([items[i] for i in owners], encoded, members, model.scores(batch, reading, "span"), reading)

    items = random_items(12, 4)
    together = task.encode(items, codec)
    found = predictions(items, np.random.default_rng(0).permutation(len(together.examples)), together, 60)
    plain = random_items(12, 4, labelled=False)
    encoded = task.encode(plain, codec)
    alone = [predictions(plain, unit, encoded, None)[0] for unit in units_of(encoded.owners, together=True)]
    assert len(found) == len(alone) == 12
    for one, other in zip(found, alone, strict=True):
        assert one["id"] == other["id"] and one["answer"] == other["answer"]
        assert one["no_answer"] == pytest.approx(other["no_answer"], abs=1e-5)
        for a, b in zip(one["nbest"], other["nbest"], strict=True):
            assert a["probability"] == pytest.approx(b["probability"], abs=1e-4)
