"""Values that training and validation log: what they are of, and how they are computed."""

import math
from types import SimpleNamespace

import pytest
import sacrebleu
import torch
from fairseq.logging import metrics
from rouge_score.rouge_scorer import RougeScorer

from fairseq_plugins.criterions.unified_lm import UnifiedLMCriterion
from fairseq_plugins.dataset import batch_fields
from fairseq_plugins.evaluation import METRICS
from tests.support.tiny_models import example, model
from unified.data.collate import collate

WRITTEN = ["the cat sat", "far away ran the dog", "nothing", "the bird sang on the roof of a house"]
WANTED = ["the cats sat down", "the dog ran away", "all of it", "the bird sang on the roof of the house"]


class Wrapped(torch.nn.Module):
    """A model of fairseq as far as its criterion knows it."""

    def __init__(self):
        super().__init__()
        self.core = model()

    def forward(self, batch, smoothing, pad, memory):
        return self.core(batch, smoothing, pad=pad, memory=memory)


def test_labels_are_smoothed_in_training_alone():
    """So the losses of validation, by which a checkpoint is chosen, are those of the model's probabilities."""
    task = SimpleNamespace(
        loss_names=("a", "b"), mixture=SimpleNamespace(names=("a", "b")), special=SimpleNamespace(pad=1)
    )
    rows = [[example("a", 5, [1, 3], is_next=1), example("b", 4, [0])]]
    sample = {**batch_fields(collate(rows, 12, ("a", "b"), pad=1)), "ntokens": 9, "nsentences": 1}
    wrapped, found = Wrapped(), {}
    for smoothing in (0.0, 0.5):
        criterion = UnifiedLMCriterion(task, smoothing, "objectives")
        for training in (False, True):
            loss, _, log = criterion.train(training)(wrapped, sample)
            assert (log["ntokens"], log["nsentences"]) == (9, 1)  # fairseq's own log counts by them
            found[smoothing, training] = float(loss.detach())
    assert found[0.5, False] == found[0.0, False] == found[0.0, True] < found[0.5, True]


@pytest.mark.parametrize(("nll", "predictions"), [(5.0, 4.0), (10_000.0, 2.0)])
def test_a_logged_perplexity_is_the_exponential_of_the_mean_loss(nll, predictions):
    with metrics.aggregate() as logged:
        UnifiedLMCriterion.reduce_metrics(
            [{"a:nll": nll, "a:divisor": predictions, "a:count": predictions, "a:correct": 1}]
        )
    limit = 2.0**30  # of a model that has diverged
    assert logged.get_smoothed_values()["a_ppl"] == pytest.approx(
        min(math.exp(min(nll / predictions, 99)), limit), abs=0.01
    )


@pytest.mark.parametrize("count", [2, 4])  # two of them share no four words, which BLEU smooths
@pytest.mark.parametrize("name", METRICS)
def test_scores_of_written_texts_are_of_all_batches(name, count):
    metric, totals = METRICS[name], {}
    for batch in (slice(0, 1), slice(1, count)):
        for key, value in metric.update(WRITTEN[batch], WANTED[batch]).items():
            totals[key] = totals.get(key, 0.0) + float(value)
    with metrics.aggregate() as logged:
        metric.compute({})  # no batch, nothing to log
        metric.compute(totals)
    found = logged.get_smoothed_values()
    expected = {"bleu": sacrebleu.corpus_bleu(WRITTEN[:count], [WANTED[:count]]).score}
    if name == "rouge":
        kinds = ("rouge1", "rouge2", "rougeL")
        scorer = RougeScorer(kinds, use_stemmer=True)
        pairs = [scorer.score(*pair) for pair in list(zip(WANTED, WRITTEN, strict=True))[:count]]
        expected = {kind: 100 * sum(one[kind].fmeasure for one in pairs) / count for kind in kinds}
        expected["rouge"] = expected["rougeL"]
    assert set(metric.measures) == set(expected)
    assert {measure: found[measure] for measure in expected} == pytest.approx(expected, abs=0.006)
