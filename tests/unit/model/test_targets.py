"""Targets of batches: the worked example, weights, divisors, and heads that a batch does not ask."""

from __future__ import annotations

import doctest
from dataclasses import replace

import numpy as np
import pytest
import torch

from unified import masks
from unified.data import example as example_module
from unified.data.collate import collate
from unified.data.example import Example, Examples
from unified.data.targets import EXTRACTIVE, TOKEN, ExampleTargets
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel
from unified.model.heads import sum_of_means

OBJECTIVES = ("noised", "plain")


def test_the_example_in_the_docstring_of_batch():
    finder = doctest.DocTestFinder(recurse=False)
    (found,) = finder.find(example_module.Batch, "Batch", globs=vars(example_module).copy())
    assert len(found.examples) >= 10
    assert doctest.DocTestRunner().run(found).failed == 0


def model() -> UnifiedModel:
    torch.manual_seed(0)
    return UnifiedModel.for_language(
        TransformerConfig(vocabulary_size=16, layers=1, width=32, heads=2, dropout=0.0)
    ).eval()


def noised(length: int, hidden: list[int], time: float | None, objective: str = "noised") -> Example:
    """A text with some tokens to predict; with a ``time`` weighted as masked diffusion does, 1 / t over all tokens."""
    tokens = np.random.default_rng(length).integers(4, 16, length)
    indices, types = np.array(hidden), np.zeros(length, dtype=int)
    targets = ExampleTargets(indices[:, None], tokens[indices] // 2)
    if time is not None:
        share = np.full(len(indices), length / len(indices))
        targets = ExampleTargets(targets.output_indices, targets.labels, np.full(len(indices), 1 / time), share)
    return Example(objective, tokens, np.arange(length), types, masks.bidirectional(length), {TOKEN: targets})


NOISED = (noised(6, [1, 4], 0.25), noised(8, [0, 2, 3, 7], 0.8), noised(5, [3], 0.1))


def test_targets_that_do_not_fit_their_head_are_refused():
    one, indices = noised(6, [1], None), np.array([[1, 2]])
    core = UnifiedModel.for_language(
        TransformerConfig(vocabulary_size=16, layers=1, width=8, heads=2, boundary_offsets=2)
    )
    for head, says in (
        ("token", "output_indices of 2 columns; the head reads 1"),
        ("boundary", "lack the inputs dist"),
    ):
        batch = collate(
            [[replace(one, targets={head: ExampleTargets(indices, np.array([5]))})]], None, OBJECTIVES, pad=1
        )
        with pytest.raises(UnifiedError, match=f"targets of the head '{head}' .*{says}"):
            core(batch)


@torch.no_grad()
def test_masked_diffusion_weights_by_time_and_divides_by_all_tokens():
    """The sum over masked tokens of CE / t, over the number of all tokens (Sahoo et al. 2024)."""
    core, expected = model(), 0.0
    for one in NOISED:
        states = core.hidden(collate([[one]], None, OBJECTIVES, pad=1))[0]
        targets = one.targets[TOKEN]
        log_probabilities = core.logits(states[targets.output_indices[:, 0]]).log_softmax(-1)
        expected -= float(
            sum(p[label] for p, label in zip(log_probabilities, targets.labels, strict=True)) * targets.weights[0]
        )
    batch = collate([[NOISED[0], noised(4, [2], None, "plain"), NOISED[1]], [NOISED[2]]], None, OBJECTIVES, pad=1)
    losses, divisors = core(batch), core.divisors(batch)
    assert float(divisors["noised"]) == pytest.approx(6 + 8 + 5) and float(divisors["plain"]) == 1
    mean = sum_of_means({"noised": losses["noised"]}, divisors)
    assert float(mean) == pytest.approx(expected / (6 + 8 + 5), rel=1e-5)
    assert int(losses["noised"].count) == 7, "accuracy counts predictions, whatever they weigh"
    assert float(losses["noised"].nll) == pytest.approx(expected, rel=1e-5)


@torch.no_grad()
def test_a_weighted_mean_does_not_depend_on_how_an_update_is_cut():
    core = model()
    whole = collate([list(NOISED), [noised(4, [2], None, "plain")]], None, OBJECTIVES, pad=1)
    parts = [collate([[one]], None, OBJECTIVES, pad=1) for one in (*NOISED, noised(4, [2], None, "plain"))]
    divisors = core.divisors(whole)
    for name, divisor in divisors.items():
        assert float(sum(core.divisors(part)[name] for part in parts)) == pytest.approx(float(divisor)), name
    total = sum(float(sum_of_means(core(part), divisors)) for part in parts)
    assert total == pytest.approx(float(sum_of_means(core(whole), divisors)), rel=1e-5)


def test_a_head_that_the_model_lacks_is_refused():
    one = noised(6, [1, 4], None)
    batch = collate([[Example(**{**vars(one), "targets": {"length": one.targets[TOKEN]}})]], None, OBJECTIVES, pad=1)
    with pytest.raises(UnifiedError, match="the model has no head 'length', which the batch asks"):
        model()(batch)
    batch = collate([[Example(**{**vars(one), "targets": {EXTRACTIVE: one.targets[TOKEN]}})]], None, OBJECTIVES, pad=1)
    with pytest.raises(UnifiedError, match="the model has no sentence head"):
        model()(batch)


def test_examples_go_together_and_apart_again():
    made = [*NOISED, noised(4, [2], None, "plain"), noised(3, [0], None)]
    made[-1] = Example(**{**vars(made[-1]), "targets": {"length": made[-1].targets[TOKEN]}})
    joined = Examples.joined([Examples.of(made[:2]), Examples.of(made[2:])], np.array([4, 2, 0, 3, 1]))
    for number, own in zip([4, 2, 0, 3, 1], joined.split(), strict=True):
        expected = made[number]
        assert own.objective == expected.objective and own.tokens.tolist() == expected.tokens.tolist()
        for head, targets in own.targets.items():
            if head not in expected.targets:
                assert len(targets) == 0
                continue
            wanted = expected.targets[head]
            assert (
                targets.output_indices.tolist() == wanted.output_indices.tolist()
                and targets.labels.tolist() == wanted.labels.tolist()
            )
            ones = np.ones(len(wanted))
            for name in ("weights", "divisors"):
                value, known = getattr(targets, name), getattr(wanted, name)
                assert (ones if value is None else value).tolist() == (ones if known is None else known).tolist()


def test_targets_of_one_head_that_do_not_fit_together_are_refused():
    one = NOISED[0].targets[TOKEN]
    other = ExampleTargets(one.output_indices, one.labels, inputs={"distances": one.labels})
    with pytest.raises(ValueError, match="must agree in the names of their inputs"):
        ExampleTargets.concatenate([one, other])
    with pytest.raises(ValueError, match="and in having labels"):
        ExampleTargets.concatenate([one, ExampleTargets.at(one.output_indices[:, 0], None)])
