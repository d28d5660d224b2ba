"""Metrics of generated texts as sums: in whatever batches they come, the scores are those of the official programs."""

import math
from argparse import Namespace
from types import SimpleNamespace

import pytest
import sacrebleu
import torch
from fairseq.logging import metrics
from rouge_score.rouge_scorer import RougeScorer

from fairseq_plugins.evaluation import METRICS, Bleu, GeneratedTexts, Rouge, generation_options
from unified.errors import UnifiedError

HYPOTHESES = ["the cat sat on the mat", "a dog", "", "running dogs ran over the red hill"]
REFERENCES = ["the cat sat on a mat", "the dog barked", "nothing", "dogs were running over the hills"]


def logged(metric, *batches) -> dict:
    """What is logged of hypotheses and references in batches of these sizes, by fairseq's sums of logs."""
    texts = SimpleNamespace(metric=metric)
    logs, start = [], 0
    for size in batches:
        stop = start + size
        logs.append({**metric.update(HYPOTHESES[start:stop], REFERENCES[start:stop]), "loss": 3.0})
        start = stop
    metrics.reset()
    with metrics.aggregate("valid", new_root=True) as found:
        GeneratedTexts.log(texts, logs)
    return found.get_smoothed_values()


@pytest.mark.parametrize("batches", [(4,), (1, 3), (2, 2), (1, 1, 1, 1)])
def test_bleu_is_that_of_the_whole_corpus(batches):
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert logged(Bleu(), *batches)["bleu"] == round(expected, 2) > 0


@pytest.mark.parametrize("batches", [(4,), (1, 3), (1, 1, 1, 1)])
def test_rouge_is_the_mean_of_all_texts(batches):
    names = ["rouge1", "rouge2", "rougeL"]
    scorer = RougeScorer(names, use_stemmer=True)
    scores = [scorer.score(reference, text) for text, reference in zip(HYPOTHESES, REFERENCES, strict=True)]
    found = logged(Rouge(), *batches)
    for name in names:
        assert found[name] == round(25 * sum(score[name].fmeasure for score in scores), 2) > 0
    assert found["rouge"] == found["rougeL"] and Rouge.measures == ("rouge", *names)


@pytest.mark.parametrize("name", METRICS)
def test_without_a_batch_nothing_is_logged(name):
    assert logged(METRICS[name]) == {}


def test_bleu_of_texts_without_a_word_is_zero():
    metrics.reset()
    metric = Bleu()
    with metrics.aggregate("valid", new_root=True) as found:
        metric.compute(metric.update([""], ["nothing"]))
    score = found.get_smoothed_values()["bleu"]
    assert score == 0.0 and not math.isnan(score)
    assert set(METRICS) == {"rouge", "bleu"} and Bleu.measures == ("bleu",)


class Task:
    """Writes rows of numbers as texts, and finds for each source the same numbers first."""

    def inference_step(self, generator, models, sample):
        self.asked = generator, models
        return [[{"tokens": row + 1}, {"tokens": row}] for row in sample["net_input"]["src_tokens"]]

    def text(self, tokens, unknown="<unk>"):
        return " ".join(unknown if token == 0 else str(token) for token in tokens.tolist())


def test_the_best_text_of_each_source_is_compared_with_its_target():
    task = Task()
    texts = GeneratedTexts("bleu", task, "model", "generator")
    texts.begin()
    source = torch.tensor([[1, 2, 3, 4, 5], [2, 3, 4, 5, 6]])
    sums = texts.add({"net_input": {"src_tokens": source}, "target": source + 1})
    assert task.asked == ("generator", ["model"])
    assert sums == {
        **{f"_bleu_counts_{n}": 2 * (5 - n) for n in range(4)},
        **{f"_bleu_totals_{n}": 2 * (5 - n) for n in range(4)},
        "_bleu_sys_len": 10,
        "_bleu_ref_len": 10,
    }


@pytest.mark.parametrize("name", METRICS)
def test_an_unknown_token_is_never_the_one_that_was_wanted(name):
    """What a reference had in its place is lost: it counts as a word that is wrong."""
    task = Task()
    task.inference_step = lambda generator, models, sample: [[{"tokens": row}] for row in sample["target"]]
    sample = {"target": torch.tensor([[1, 2, 3, 4, 0, 5, 6, 7, 8]])}
    found = GeneratedTexts(name, task, "model", "generator").add(sample)
    wanted = METRICS[name].update(["1 2 3 4 right 5 6 7 8"], ["1 2 3 4 wrong 5 6 7 8"])
    assert {key: found[key] for key in wanted if "counts" in key or "rouge" in key} == {
        key: value for key, value in wanted.items() if "counts" in key or "rouge" in key
    }


def test_options_of_generation_are_a_json_object_with_the_names_of_fairseq_generate():
    assert generation_options('{"beam": 3, "lenpen": 0.5}') == Namespace(beam=3, lenpen=0.5)
    assert generation_options("{}") == Namespace()
    assert generation_options('{"lenpen": 1, "sampling": true, "prefix_size": 0}').lenpen == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"beem": 3}', "--eval-generate-args: fairseq-generate has no option 'beem' (did you mean 'beam'?)"),
        ("[1]", "--eval-generate-args '[1]': expected a JSON object"),
        ('{"beam": "x"}', "--eval-generate-args: beam must be of type int, got 'x'"),
        ('{"beam": true}', "--eval-generate-args: beam must be of type int, got True"),
        ('{"lenpen": "1"}', "--eval-generate-args: lenpen must be of type float, got '1'"),
        ('{"sampling": 1}', "--eval-generate-args: sampling must be of type bool, got 1"),
        ('{"beam": 0}', "--eval-generate-args: beam must be at least 1, got 0"),
        ('{"nbest": -1}', "--eval-generate-args: nbest must be at least 1, got -1"),
    ],
)
def test_other_options_are_refused(text, says):
    with pytest.raises(UnifiedError) as raised:
        generation_options(text)
    assert str(raised.value) == says
    with pytest.raises(UnifiedError, match="^--eval-generate-args '{beam': "):
        generation_options("{beam")


def test_bleu_of_texts_without_four_words_in_a_row_is_smoothed_as_sacrebleu_smooths_it():
    metric = Bleu()
    hypotheses, references = ["the cat sat", "a dog ran home now"], ["the cat lay", "a dog ran off again"]
    metrics.reset()
    with metrics.aggregate("valid", new_root=True) as found:
        metric.compute(metric.update(hypotheses, references))
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert found.get_smoothed_values()["bleu"] == round(expected, 2) > 0
    assert metric.update(hypotheses, references)["_bleu_counts_3"] == 0
