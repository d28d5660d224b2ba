"""Options of generation on their way through fairseq's task to its search."""

from argparse import Namespace

import pytest
import torch

from fairseq_plugins.generator import ForcedScorer
from fairseq_plugins.models.unified_lm import UnifiedLMModel
from fairseq_plugins.tasks.unified_lm import UnifiedLMTask, UnifiedLMTaskConfig
from tests.support import tiny_models
from tests.support.token_files import write

SOURCE = torch.tensor([[4, 5, 6, 2]])
SAMPLE = {"net_input": {"src_tokens": SOURCE, "src_lengths": torch.tensor([4])}}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of one pair."""
    folder = tmp_path_factory.mktemp("pairs")
    for language in ("source", "target"):
        tiny_models.vocabulary().save(folder / f"dict.{language}.txt")
    for split in ("train", "valid"):
        for side in ("source", "target"):
            write(folder / f"{split}.source-target.{side}", [[4, 5, 6, 2]])
    return folder


@pytest.fixture
def searched(data):
    """Hypotheses for ``SOURCE`` of a random model, by options of the task and of the search."""

    def search(options, **of_task):
        settings = UnifiedLMTaskConfig(
            data=str(data), tokens_per_sample=40, max_tokens=None, update_freq=[1], best_checkpoint_metric="loss",
            maximize_best_checkpoint_metric=False, seed=1, objectives="target_cloze", **of_task,
        )  # fmt: skip
        task = UnifiedLMTask.setup_task(settings)
        core = tiny_models.model()
        core.heads["token"].bias.data[[7, 2]] += torch.tensor([8.0, 7.0])  # one symbol again and again, several lengths
        model = UnifiedLMModel(core, task, "cloze").eval()
        generator = task.build_generator([model], Namespace(**options))
        return generator, generator.generate([model], SAMPLE)[0] if "score_reference" not in options else model

    return search


def test_unilms_length_penalty_ranks_what_the_search_finds(searched):
    options = {"beam": 6, "max_len_b": 8, "lenpen": 2.0}
    _, plain = searched({**options, "unnormalized": True})
    _, ranked = searched(options, length_penalty="unilm")
    found = {tuple(one["tokens"].tolist()): float(one["score"]) for one in ranked}
    totals = {tuple(one["tokens"].tolist()): float(one["positional_scores"].sum()) for one in plain}
    expected = {tokens: total / ((5 + len(tokens)) / 6) ** 2 for tokens, total in totals.items()}
    assert found == pytest.approx(expected, rel=1e-5)
    assert list(found) == sorted(expected, key=expected.get, reverse=True) != list(totals), "the penalty changes ranks"


def test_symbols_that_blocking_ignores_come_again(searched):
    options = {"beam": 3, "max_len_b": 8, "min_len": 6, "no_repeat_ngram_size": 1}

    def repeated(**of_task):
        rows = [one["tokens"].tolist() for one in searched(options, **of_task)[1]]
        return {token for row in rows for token in row if row.count(token) > 1}

    assert repeated() == set() and repeated(no_repeat_ngram_ignore="w3") == {7}
    with pytest.raises(SystemExit, match="--no-repeat-ngram-ignore names symbols that dict.txt lacks: xyz"):
        searched(options, no_repeat_ngram_ignore="w3 xyz")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_comes_twice(searched, size):
    options = {"beam": 3, "max_len_b": 12, "min_len": 10}

    def repeats(**more):
        rows = [one["tokens"].tolist() for one in searched({**options, **more})[1]]
        ngrams = [[tuple(row[i : i + size]) for i in range(len(row) - size + 1)] for row in rows]
        return [len(some) - len(set(some)) for some in ngrams]

    assert max(repeats()) > 0 and set(repeats(no_repeat_ngram_size=size)) == {0}


def test_references_are_scored_by_the_models_decoder(searched):
    scorer, model = searched({"score_reference": True})
    assert isinstance(scorer, ForcedScorer)
    ((forced,),) = scorer.generate([model], {**SAMPLE, "target": torch.tensor([[5, 6, 2]])})
    written, expected = [], []
    for token in (5, 6, 2):
        logits = tiny_models.next_logits(model.core, scorer.decoder.special, "cloze", SOURCE[0], written)
        expected.append(float(logits.log_softmax(-1)[token].detach()))
        written.append(token)
    assert forced["positional_scores"].tolist() == pytest.approx(expected, abs=1e-5)
    assert float(forced["score"]) == pytest.approx(sum(expected) / 3, abs=1e-5)
