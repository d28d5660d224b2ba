"""The extractive oracle of Zhou et al. 2018 against its definition, combination by combination."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from itertools import combinations

import pytest
from nltk.stem.porter import PorterStemmer
from rouge_score import rouge_scorer
from rouge_score.rouge_scorer import RougeScorer

from tests.support.corpora import jsonl
from unified.cli import main
from unified.tasks.datasets.summaries.combinations import best_combination
from unified.tasks.datasets.summaries.greedy import greedy_oracle

STEM = PorterStemmer().stem
#: Inflected words, of more than three letters, which rouge-score stems as well.
WORDS = "running runs walked walking houses house nations national happily happy cities city quickly trains".split()


def ngrams(sentences):
    """Bigrams of stemmed words, by rouge-score, summed over sentences."""
    total = Counter()
    for sentence in sentences:
        words = [STEM(word) for word in re.findall("[a-z0-9]+", sentence.lower())]
        total += rouge_scorer._create_ngrams(words, 2)
    return total


def score(sentences, summary):
    return rouge_scorer._score_ngrams(ngrams(summary), ngrams(sentences)).fmeasure


def of_size(sentences, summary, candidates, size):
    """Score and numbers of the best combination, the first one of equally good ones."""
    scored = [(score([sentences[i] for i in chosen], summary), chosen) for chosen in combinations(candidates, size)]
    best = max(value for value, _ in scored)
    return best, next(list(chosen) for value, chosen in scored if value > best - 1e-12)


def by_brute_force(sentences, summary, max_sentences=5):
    candidates = [i for i, sentence in enumerate(sentences) if ngrams([sentence]) & ngrams(summary)]
    best, taken = 0.0, []
    for size in range(1, len(candidates) + 1):
        if size > max_sentences:
            return taken, True
        value, chosen = of_size(sentences, summary, candidates, size)
        if value <= best + 1e-12:
            break
        best, taken = value, chosen
    return taken, False


def random_case(rng, vocabulary, most):
    def sentence(longest):
        return " ".join(rng.choices(vocabulary, k=rng.randint(0, longest)))

    return [sentence(8) for _ in range(rng.randint(0, most))], [sentence(9) for _ in range(rng.randint(0, 4))]


@pytest.mark.slow
@pytest.mark.parametrize("words", [2, 5, 14])
def test_it_is_its_definition(words):
    rng, sizes = random.Random(words), Counter()
    vocabulary = [*WORDS[:words], "...", "\u6f22"]
    for _ in range(150):
        sentences, summary = random_case(rng, vocabulary, 7)
        found = best_combination(sentences, summary)
        assert found == by_brute_force(sentences, summary), (sentences, summary)
        sizes[len(found[0])] += 1
    assert sizes[0] > 10 and sizes[1] > 10 and sizes[2] > 10 and sum(sizes[n] for n in (3, 4, 5)) > 0


@pytest.mark.slow
def test_no_combination_is_better_than_the_search_says():
    """No combination of a size that is tried is better; in most cases none at all is."""
    rng, best_of_all, cases = random.Random(9), 0, 0
    for _ in range(60):
        sentences, summary = random_case(rng, WORDS[:8], 7)
        found, _ = best_combination(sentences, summary)
        value = score([sentences[i] for i in found], summary)
        numbers = range(len(sentences))
        every = {size: of_size(sentences, summary, numbers, size)[0] for size in range(1, len(sentences) + 1)}
        assert all(value >= every[size] - 1e-12 for size in every if size <= len(found) + 1)
        if every and max(every.values()):
            cases += 1
            best_of_all += value >= max(every.values()) - 1e-12
    assert cases > 30 and best_of_all > 0.9 * cases


def test_a_single_sentence_has_the_rouge_of_rouge_score():
    """The score of one sentence and a summary of one sentence is rouge-score's ROUGE-2 with stemming."""
    rng, scorer, nonzero = random.Random(2), RougeScorer(["rouge2"], use_stemmer=True), 0
    for _ in range(300):
        first, second, summary = (" ".join(rng.choices(WORDS[:6], k=rng.randint(2, 7))) for _ in range(3))
        values = [scorer.score(summary, text)["rouge2"].fmeasure for text in (first, second)]
        assert values == pytest.approx([score([text], [summary]) for text in (first, second)])
        found, _ = best_combination([first, second], [summary], max_sentences=1)
        assert found == ([] if not max(values) else [values.index(max(values))])
        nonzero += max(values) > 0
    assert nonzero > 200


def test_typed_out():
    # A bigram across the ends of sentences counts neither in the source nor in the summary.
    assert best_combination(["w1 a", "b w2"], ["x a b y"]) == ([], False)
    assert best_combination(["a b"], ["x a", "b y"]) == ([], False)
    # "c d" alone has 2/(1 + 3); both have 4/(2 + 3); with "c d e f", 4/(4 + 3) would be less.
    assert best_combination(["q", "a b", "c d", "c d e f"], ["a b", "x c d"]) == ([1, 2], False)
    # "a b" alone has 2/(1 + 3), and with the other sentence 4/(1 + 4 + 3), which is no more.
    assert best_combination(["a b", "c d x y z"], ["a b", "c d", "e f"]) == ([0], False)
    # A second "a b" matches nothing more: the summary has one.
    assert best_combination(["a b", "a b"], ["a b c"]) == ([0], False)
    assert best_combination(["a b", "a b"], ["a b a b"]) == ([0, 1], False)
    assert best_combination(["Running trains!"], ["running TRAIN"]) == ([0], False)
    assert best_combination([], ["a b"]) == best_combination(["a b"], []) == ([], False)
    # All candidates together may be the best choice.
    assert best_combination(["a b", "c d", "e f"], ["a b", "c d", "e f"]) == ([0, 1, 2], False)


def test_words_are_stemmed_once():
    """Porter's stem of a stem may be another word's."""
    word, other = "university", "univ"
    assert STEM(word) != STEM(other) == STEM(STEM(word))
    assert best_combination([f"a {word}"], [f"a {other}"]) == ([], False)


@pytest.mark.parametrize("times", [200, 300, 40_000, 70_000])
def test_a_bigram_may_come_as_often_as_it_likes(times):
    texts = ["a " * (times + 1)] * 2
    assert best_combination(texts, texts[:1]) == ([0], False)
    assert best_combination(texts, texts) == ([0, 1], False)


def test_a_source_may_have_many_sentences():
    assert best_combination(["a b c"] * 33_000 + ["a b"], ["a b"]) == ([33_000], True)


def test_a_greedy_choice_may_be_worse():
    """The first sentence is the best one alone, and the two others are better together."""
    sentences, summary = ["a b x c d", "a b", "c d"], ["a b q c d"]
    assert score([sentences[0]], summary) > max(score([text], summary) for text in sentences[1:])
    assert greedy_oracle(sentences, summary[0]) == [0]
    assert best_combination(sentences, summary)[0] == [1, 2]


def test_limits_are_stated():
    sentences = [f"a{i} b{i}" for i in range(8)]
    assert best_combination(sentences, sentences) == ([0, 1, 2, 3, 4], True)
    assert best_combination(sentences, sentences, max_sentences=8) == (list(range(8)), False)
    assert best_combination(sentences, sentences, max_sentences=2) == ([0, 1], True)
    assert best_combination(sentences, sentences, max_combinations=28) == ([0, 1], True)  # 56 triples
    assert best_combination(sentences, sentences[:2], max_sentences=3) == ([0, 1], False)  # two are the best anyway


@pytest.mark.slow
def test_the_recipe_learns_its_choice(tmp_path):
    """`unified finetune cnn_dailymail` and `unified pairs --oracle` mark the same sentences, for all that fit."""
    from tests.support.task_folders import language_model, read_and_written
    from unified.tasks.catalogue import task_named
    from unified.tasks.finetuning import Start
    from unified.tasks.jobs import job_of

    # Greedily, the first sentence would be taken, which has the most words of the summary.
    rows = [{"article": "w1 w2 x w3 w4 .\nw1 w2 .\nw3 w4 .", "highlights": "w1 w2\nw3 w4"}] * 3
    for name in ("train", "valid"):
        jsonl(tmp_path / f"{name}.jsonl", rows)
    more = ["colour", "has", "is", "which", ".", "?", "|"]
    start = Start.of(language_model(tmp_path / "start", *more, max_positions=768))
    job = job_of(task_named("cnn_dailymail"), task_named("cnn_dailymail").training, start, tmp_path / "run")
    (item, *_) = read_and_written(job, tmp_path)["train"]
    words = [
        "pairs",
        "cnn_dailymail",
        str(tmp_path / "train.jsonl"),
        "--output",
        str(tmp_path / "out.jsonl"),
        "--oracle",
    ]
    assert main(words) == 0
    assert item.oracle == (1, 2) and '"oracle": [1, 2]' in (tmp_path / "out.jsonl").read_text().splitlines()[0]
    assert "extractive=True" in job.training.objective and "sentence_limit" not in job.training.objective


@pytest.mark.slow
def test_real_abstracts(unified_data, tmp_path):
    path = str(unified_data / "scitldr" / "dev.jsonl.xz")
    assert main(["pairs", "scitldr", path, "--oracle", "--output", str(tmp_path / "out.jsonl"), "--workers", "1"]) == 0
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    for pair in found[:25]:
        starts = [*pair["sentences"], len(pair["source"]) + 1]
        sentences = [pair["source"][a : b - 1] for a, b in zip(starts, starts[1:], strict=False)]
        assert pair["oracle"] == by_brute_force(sentences, [pair["target"]])[0]
    assert sum(len(pair["oracle"]) for pair in found) > 619
