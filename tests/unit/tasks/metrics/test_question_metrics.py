"""Scores of generated questions beside sacrebleu, rouge-score, pycocoevalcap and their definition."""

import json
import lzma
import math
import random

import numpy as np
import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer
from tokenizers.pre_tokenizers import BertPreTokenizer

from tests.unit.tasks.metrics.test_metrics import WORDS, lcs, sentences, systems
from unified import __version__
from unified.tasks.datasets.squad_json import read_squad_file
from unified.tasks.metrics import score_question_generation
from unified.tasks.metrics.question_generation import QuestionScores, from_bert_words, group_by_source, penn_treebank


def test_of_two_predictions_for_one_source_the_last_counts():
    grouped = group_by_source(["first", "other", "last"], ["r1", "r2", "r3"], ["A line .", "b", "a line . "])
    assert grouped == {"a line .": ("last", ["r1", "r3"]), "b": ("other", ["r2"])}
    several = group_by_source(["first", "other", "last"], [["r1", "r2"], "r3", ("r4",)], ["s", "t", "S"])
    assert several == {"s": ("last", ["r1", "r2", "r4"]), "t": ("other", ["r3"])}
    scores = score_question_generation(["x", "o p", "what is it"], ["what is it", "o p", "z"], ["s", "t", "s"])
    assert (scores.questions, scores.sources) == (3, 2)
    assert scores.bleu1 == pytest.approx(100) and scores.rougeL == pytest.approx(100)


def test_question_bleu_agrees_with_sacrebleu_without_smoothing():
    rng = random.Random(4)
    hypotheses, first, second = systems(rng, 200)
    sources = [f"source {i}" for i in range(200)]
    single = score_question_generation(hypotheses, first, sources)
    expected = sacrebleu.corpus_bleu(hypotheses, [first], smooth_method="none", tokenize="none")
    assert expected.score > 10
    assert single.bleu4 == pytest.approx(expected.score, abs=1e-5)
    assert single.bleu1 == pytest.approx(expected.precisions[0] * expected.bp, abs=1e-5)
    several = score_question_generation(hypotheses * 2, first + second, sources * 2)
    expected = sacrebleu.corpus_bleu(hypotheses, [first, second], smooth_method="none", tokenize="none")
    assert several.bleu4 == pytest.approx(expected.score, abs=1e-5)


def test_scores_of_questions_are_signed():
    one = score_question_generation(["who is it"], ["who is he"], ["s"])
    assert one.signature == (
        "nrefs:1|tok:none+spaces|groups:source,last-hypothesis|bleu:qgevalcap,smooth-1e-15,closest-length|"
        f"rougeL:qgevalcap,beta-1.2|version:{__version__}"
    )
    several = score_question_generation(["a", "b", "c"], ["r"] * 3, ["s", "s", "t"], form="penn-treebank")
    assert several.signature.startswith("nrefs:var|tok:penn-treebank+spaces|")
    assert several.to_dict()["signature"] == several.signature


def perturbed_questions(rng: random.Random) -> tuple[list[str], list[list[str]]]:
    """Some hypotheses, each with one to three references that share words with it."""
    hypotheses = sentences(rng, rng.randint(1, 8))
    groups = []
    for hypothesis in hypotheses:
        words = hypothesis.split()
        group = [[w if rng.random() < 0.8 else rng.choice(WORDS) for w in words] for _ in range(rng.randint(1, 3))]
        groups.append([" ".join(noisy[: rng.randint(1, 12)] + noisy[:1] * rng.randint(0, 2)) for noisy in group])
    return hypotheses, groups


def pooled(hypotheses: list[str], groups: list[list[str]]) -> QuestionScores:
    rows = [(h, r, str(i)) for i, (h, group) in enumerate(zip(hypotheses, groups, strict=True)) for r in group]
    return score_question_generation(*map(list, zip(*rows, strict=True)))


@pytest.mark.slow
def test_bleu_of_perturbed_questions_is_sacrebleus():
    """500 sets, with as many references as each question has; BLEU-n from sacrebleu's precisions."""
    rng = random.Random(14)
    compared = 0
    for _ in range(500):
        hypotheses, groups = perturbed_questions(rng)
        streams = [[group[k] if k < len(group) else None for group in groups] for k in range(max(map(len, groups)))]
        theirs = sacrebleu.corpus_bleu(hypotheses, streams, smooth_method="none", tokenize="none")
        scores = pooled(hypotheses, groups)
        for n in range(1, 5):
            if min(theirs.precisions[:n]) > 0:  # without a match, 0 there and almost 0 here
                expected = theirs.bp * math.exp(sum(map(math.log, theirs.precisions[:n])) / n)
                assert getattr(scores, f"bleu{n}") == pytest.approx(expected, abs=1e-5)
                compared += 1
    assert compared > 1700


def test_rouge_of_perturbed_questions_is_rouge_scores():
    """1,500 pairs with one reference, of whose precision and recall this ROUGE-L has another mean than F1."""
    rng, scorer = random.Random(15), RougeScorer(["rougeL"])
    hypotheses, references, _ = systems(rng, 1500)
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        theirs = scorer.score(reference, hypothesis)["rougeL"]
        precision, recall = theirs.precision, theirs.recall
        expected = 2.44 * precision * recall / (recall + 1.44 * precision) if precision else 0
        found = score_question_generation([hypothesis], [reference], ["s"]).rougeL
        assert found == pytest.approx(100 * expected, abs=1e-10)


def test_scores_of_perturbed_questions_are_pycocoevalcaps():
    """500 sets; the package, of the extra ``meteor``, has the code that nqg's program took."""
    bleu = pytest.importorskip("pycocoevalcap.bleu.bleu").Bleu()
    rouge = pytest.importorskip("pycocoevalcap.rouge.rouge").Rouge()
    rng = random.Random(16)
    for _ in range(500):
        hypotheses, groups = perturbed_questions(rng)
        wanted, found = dict(enumerate(groups)), {i: [hypothesis] for i, hypothesis in enumerate(hypotheses)}
        expected = [*bleu.compute_score(wanted, found, verbose=0)[0], rouge.compute_score(wanted, found)[0]]
        scores = pooled(hypotheses, groups)
        ours = [scores.bleu1, scores.bleu2, scores.bleu3, scores.bleu4, scores.rougeL]
        assert ours == pytest.approx([100 * value for value in expected], abs=1e-9)


def test_question_rouge_is_the_definition():
    rng = random.Random(5)
    hypotheses, first, second = systems(rng, 50)
    sources = [f"source {i}" for i in range(50)]
    expected = []
    for hypothesis, *group in zip(hypotheses, first, second, strict=True):
        words = hypothesis.split()
        precision = max(lcs(words, r.split()) / len(words) for r in group)
        recall = max(lcs(words, r.split()) / len(r.split()) for r in group)
        expected.append((1 + 1.44) * precision * recall / (recall + 1.44 * precision) if precision else 0.0)
    scores = score_question_generation(hypotheses * 2, first + second, sources * 2)
    assert scores.rougeL == pytest.approx(100 * np.mean(expected))


def test_penn_treebank_by_hand():
    text = "Who's (he), and what didn't \"they\" say?"
    assert penn_treebank(text) == "who 's -lrb- he -rrb- , and what did n't `` they '' say ?"


@pytest.mark.slow
def test_penn_treebank_makes_the_published_references(unified_data):
    """Nearly all official questions, once tokenized, are among Du's tokenized ones."""
    with lzma.open(unified_data / "squad" / "dev-v1.1.json.xz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    questions = [qa["question"] for a in articles for paragraph in a["paragraphs"] for qa in paragraph["qas"]]
    with lzma.open(unified_data / "squad_qg" / "nqg-dev.tgt.txt.xz", "rt", encoding="utf-8") as file:
        published = {line.rstrip("\n") for line in file}
    found = sum(penn_treebank(question.strip()) in published for question in questions)
    assert found / len(questions) > 0.98


def test_bert_words_by_hand():
    """UniLM's program writes this for the words of BERT's tokenizer."""
    text = "Who ' s ( he ) , and what didn ' t \" they \" in the U . S . & co - pay [UNK] for 3 , 000 or 1 . 5 ?"
    expected = "who 's -lrb- he -rrb- , and what did n't `` they '' in the u.s. &amp; co-pay unk for 3,000 or 1.5 ?"
    assert from_bert_words(text) == expected


@pytest.mark.slow
def test_bert_words_take_the_published_form(unified_data):
    """Questions of the dev set in BERT's words; taken for plain text, a sixth of them would not be equal."""
    with lzma.open(unified_data / "squad_qg" / "nqg-dev.tgt.txt.xz", "rt", encoding="utf-8") as file:
        published = [line.rstrip("\n") for line in file]
    paragraphs = read_squad_file(unified_data / "squad" / "dev-v1.1.json.xz")
    parted = [
        " ".join(word for word, _ in BertPreTokenizer().pre_tokenize_str(question.text))
        for paragraph in paragraphs
        for question in paragraph.questions
    ]
    equal = [
        sum(form(words) == wanted for words, wanted in zip(parted, published, strict=True)) / len(published)
        for form in (from_bert_words, penn_treebank)
    ]
    assert equal[0] > 0.965 and equal[1] < 0.83
