"""Leaks of labels: through layers against every path, by copies of a label, and in objectives of the library."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from docs.examples.suffix_objective import Suffix
from tests.support.mask_samples import random_document
from tests.support.token_files import SPECIAL
from tests.unit.objectives.test_objective_check import OTHERS
from unified import masks
from unified.data import randomness
from unified.data.example import Example, Examples
from unified.data.randomness import Draws
from unified.data.targets import TOKEN, ExampleTargets
from unified.data.texts import UNASKED, Text, Texts
from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES, parse_objectives
from unified.objectives.leaks import leak, leak_of_copies, recoded
from unified.runtime.announcements import log_once
from unified.testing import check_objective, sample_texts


def reaches(visible: np.ndarray) -> np.ndarray:
    """Who reads whom through any number of layers."""
    found = visible.copy()
    for _ in range(len(visible)):
        found |= (found.astype(int) @ visible.astype(int)) > 0
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_leak_is_found_exactly_where_layers_reach_a_label(seed):
    """Next-token predictions under any mask, by every path through any number of layers."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(2, 9))
    mask = random_document(rng, length)
    indices = np.arange(length)
    example = Example(
        "suffix", indices, indices, indices * 0, mask, {TOKEN: ExampleTargets.at(indices[:-1], indices[1:])}
    )
    reached = reaches(mask.dense().numpy() | np.eye(length, dtype=bool))
    found = leak(example, example.targets[TOKEN], indices[:-1], indices[1:])
    assert (found is not None) == bool(reached[np.arange(length - 1), np.arange(1, length)].any())


@dataclass(frozen=True)
class Diffusion(Suffix.__mro__[1]):
    """Block diffusion: a noised text, and behind it the clean one that shows what is hidden, under several masks."""

    name, paired, segments, special_tokens, token_types = "diffusion", False, 1, 0, 1
    writes, heads = "nothing", ("token",)

    fault: str = ""

    def lengths(self, tokens):
        return 2 * tokens

    def __call__(self, text, rng):
        n = len(text.tokens)
        indices = np.flatnonzero(rng.random(n) < 0.7)
        noised = text.tokens.copy()
        if self.fault != "hides nothing":
            noised[indices] = text.special.mask
        tokens, read = np.concatenate([noised, text.tokens]), indices
        if self.fault == "clean first":
            tokens, read = np.concatenate([text.tokens, noised]), indices + n
        targets = {TOKEN: ExampleTargets.at(read, text.tokens[indices])}
        mask = DIFFUSION[self.fault][0](n)
        return Example(self.name, tokens, np.tile(np.arange(n), 2), np.zeros(2 * n, int), mask, targets)


def one_block_too_far(n):
    """A noised block sees its own clean block."""
    right = masks.block_diffusion(n, 2)
    noised = (torch.arange(2 * n) < n).long()
    return masks.AttentionMask(right.query_step + noised, right.key_start, right.key_stop + noised)


DIFFUSION = {
    "": (lambda n: masks.block_diffusion(n, 2), None),
    "all seen": (lambda n: masks.bidirectional(2 * n), "sees its own label at index"),
    "one block too far": (one_block_too_far, "sees its own label at index"),
    "clean first": (lambda n: masks.bidirectional(2 * n), "sees its own label at index"),
    "passed on": (lambda n: masks.sliding_window(2 * n, 3, 3), "sees its own label at index"),
    "hides nothing": (lambda n: masks.block_diffusion(n, 2), "every token that it predicts stands unhidden"),
}


@pytest.mark.parametrize("fault", DIFFUSION)
def test_a_copy_of_the_label_is_found_wherever_it_stands(fault):
    if fault == "":
        check_objective(Diffusion())
        return
    with pytest.raises(UnifiedError, match=f"objective diffusion leaks: .*{DIFFUSION[fault][1]}"):
        check_objective(Diffusion(fault=fault))


@pytest.mark.parametrize("count", [5, 6])
def test_six_examples_that_hide_nothing_are_found(count):
    """Fewer may have hidden nothing by chance."""
    texts = Texts.of([Text(np.arange(20) + SPECIAL.ordinary_start, SPECIAL)] * count)
    problem = leak_of_copies(Diffusion(fault="hides nothing"), texts, Draws(np.arange(count, dtype=np.uint64)))
    assert (problem is not None) == (count == 6)


@dataclass(frozen=True)
class ByToken(Suffix.__mro__[1]):
    """Predicts a token that the next one sees; the second token may decide at which index, or under which mask."""

    name, paired, segments, special_tokens, token_types = "by_token", False, 1, 0, 1
    writes, heads = "nothing", ("token",)

    decides: str = ""
    label: int = 0

    def __call__(self, text, rng):
        n, choice = len(text.tokens), int(text.tokens[1]) % 2
        index = self.label + (1 + choice if self.decides == "index" else 1)
        mask = masks.bidirectional(n) if self.decides == "mask" and choice else masks.left_to_right(n)
        targets = {TOKEN: ExampleTargets.at(np.array([index]), text.tokens[[self.label]])}
        return Example(self.name, text.tokens, np.arange(n), np.zeros(n, int), mask, targets)


@pytest.mark.parametrize("decides, found", [("", True), ("index", False), ("mask", False)])
def test_examples_whose_form_depends_on_tokens_are_not_judged_and_the_log_says_so(decides, found, caplog):
    log_once.cache_clear()
    caplog.set_level(logging.INFO)
    texts = Texts.of([Text(np.arange(5) + SPECIAL.ordinary_start, SPECIAL)])
    problem = leak_of_copies(ByToken(decides=decides), texts, Draws(np.array([1], dtype=np.uint64)))
    assert (problem is not None) == found
    says = "leaks of objective by_token are not judged: its examples depend on what tokens are"
    assert caplog.messages == ([] if found else [says])


def test_every_label_is_looked_for_whatever_stands_in_its_place():
    texts = Texts.of([Text(np.arange(10) + SPECIAL.ordinary_start, SPECIAL)])
    for label in range(9):
        assert leak_of_copies(ByToken(label=label), texts, Draws(np.array([1], dtype=np.uint64))) is not None, label


def test_a_leak_names_the_way():
    indices = np.arange(4)
    targets = ExampleTargets.at(indices[:1], indices[3:])
    example = Example("suffix", indices, indices, indices * 0, masks.sliding_window(4, 1, 1), {TOKEN: targets})
    assert leak(example, targets, np.array([0]), np.array([3])) == (
        "leaks: the prediction at index 0 sees index 1, which sees index 2, which sees its own label at index 3"
    )


@pytest.mark.parametrize("ordinary, recodings", [(100, 10), (10, 18), (2, 56), (1, 56)])
def test_so_many_recodings_that_tokens_are_equal_by_chance_less_than_once_in_ten_to_the_16(ordinary, recodings):
    """Each after the first is equal with a probability of one to the number of ordinary tokens."""
    made = []

    class Counted(Suffix):
        def examples(self, texts, draws):
            made.append(len(texts))
            return super().examples(texts, draws)

    special = replace(SPECIAL, ordinary_stop=SPECIAL.ordinary_start + ordinary)
    texts = Texts.of([Text(np.full(3, SPECIAL.ordinary_start), special)])
    assert leak_of_copies(Counted(), texts, Draws(np.array([1], dtype=np.uint64))) is None
    assert made == [recodings] and max(ordinary, 2) ** (1.0 - recodings) < 1e-16


def test_other_tokens_are_any_ordinary_ones():
    special = replace(SPECIAL, ordinary_stop=SPECIAL.ordinary_start + 50)
    texts = Texts.of([Text(np.array([7, 8]), special), Text(np.array([9]), special)])
    other, ordinary = recoded(texts, 1000), set(range(special.ordinary_start, special.ordinary_stop))
    drawn = other.random_tokens(np.array([1000]), Draws(np.array([1], dtype=np.uint64)))
    assert set(other.tokens.tolist()) == set(drawn.tolist()) == ordinary
    assert len(other) == 2000 and other.lengths[0].tolist() == [2, 1] * 1000


@pytest.mark.parametrize("kind", ["prefix_lm", "target_next", "deshuffling", "random_spans", "xlnet"])
def test_a_mask_that_shows_all_is_a_leak_of_what_is_predicted_in_an_order(kind):
    known = OBJECTIVES[kind]

    class Seen(known):
        def examples(self, texts, draws):
            made = super().examples(texts, draws)
            start = np.minimum(made.steps.key_start, 1)
            return replace(
                made, steps=replace(made.steps, query_step=made.steps.ends.repeat(made.lengths) - 1, key_start=start)
            )

    with pytest.raises(UnifiedError, match=f"objective {kind} leaks: the prediction at index"):
        check_objective(Seen())


def test_texts_of_a_check_follow_one_another_or_not_where_that_is_asked():
    for name, answers in (("bert", {0, 1}), ("bert(next_sentence=False)", {UNASKED})):
        texts = next(sample_texts(parse_objectives(name).objectives[0]))
        assert set(texts.is_next.tolist()) == answers, name


@pytest.mark.parametrize("text", [*OBJECTIVES, *OTHERS])
def test_objectives_of_the_library_are_judged_for_leaks(text):
    """With other tokens and equal random numbers their examples differ by nothing else, so that copies can be told."""
    objective = parse_objectives(text).objectives[0]
    texts = next(sample_texts(objective))
    draws = Draws.of(1, 1, randomness.EXAMPLE, np.arange(len(texts)))
    made = objective.examples(recoded(texts, 2), draws.repeated(2))
    one, other = (Examples.joined([made], half) for half in np.split(np.arange(len(made)), 2))
    assert np.array_equal(one.lengths, other.lengths) and np.array_equal(one.steps.key_start, other.steps.key_start)
    assert one.targets.keys() == other.targets.keys() and len(one.targets[TOKEN]) > 20
    for head in one.targets:
        assert np.array_equal(one.targets[head].output_indices, other.targets[head].output_indices)
    assert (one.targets[TOKEN].labels != other.targets[TOKEN].labels).mean() > 0.3
