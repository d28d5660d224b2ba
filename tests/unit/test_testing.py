"""The texts that ``unified.testing`` makes for a check, and what the check finds beside wrong examples."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from docs.examples.suffix_objective import Suffix
from tests.support.token_files import Reads
from unified import masks
from unified.data import randomness
from unified.data.annotations import KINDS, SOURCE_KINDS, TAGS, columns
from unified.data.example import Examples
from unified.data.randomness import Draws
from unified.data.targets import TOKEN, ExampleTargets
from unified.data.texts import UNASKED
from unified.errors import UnifiedError
from unified.objectives import Mixture
from unified.testing import check_objective, sample_texts

SIZES = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 17), (60, 1), (40, 50), (100, 120)]
#: 2,000 words stand behind the four first symbols.
WORDS = range(4, 2004)


@dataclass(frozen=True)
class Wants(Reads):
    annotations: tuple[str, ...] = ()
    both_directions: bool = False


# ---------------------------------------------------------------- the texts


def test_texts_have_two_segments_and_where_one_is_enough_there_are_such_too():
    for segments, expected in (
        (1, [[*zip(*SIZES, strict=True)], [[first for first, _ in SIZES]]]),
        (2, [[*zip(*SIZES, strict=True)]]),
    ):
        batches = list(sample_texts(Wants(segments=segments)))
        assert [[tuple(part) for part in batch.lengths.tolist()] for batch in batches] == [
            [tuple(part) for part in parts] for parts in expected
        ]
        for batch in batches:
            for text in batch.texts():
                tokens = [*text.tokens.tolist(), *([] if text.second is None else text.second.tolist())]
                assert len(set(tokens)) == len(tokens) and set(tokens) <= set(WORDS)
                assert (text.special.ordinary_start, text.special.ordinary_stop) == (4, 2004)
                assert text.spans == {} and text.is_next is None and not text.backward
        drawn = np.concatenate([batch.tokens for batch in batches])
        assert drawn.min() < 30 and drawn.max() > 1970 and 900 < drawn.mean() < 1100


def test_words_begin_at_three_of_five_tokens_where_that_is_known():
    for batch in sample_texts(Wants()):
        assert len(batch.word_starts) == len(batch.tokens) and 0.5 < batch.word_starts.mean() < 0.7
    assert [batch.word_starts for batch in sample_texts(Wants(), word_starts=False)] == [None, None]


def test_second_segments_follow_in_every_other_text_and_half_of_all_stand_in_reverse():
    (batch,) = sample_texts(Wants(segments=2, wants_random_second=True, both_directions=True))
    assert batch.is_next.tolist() == [1, 0] * 4 and batch.backward.tolist() == [True, True, False, False] * 2
    (batch,) = sample_texts(Wants(segments=2))
    assert batch.is_next.tolist() == [UNASKED] * 8 and not batch.backward.any()


def test_the_seed_decides_and_is_1():
    def tokens(*more):
        return np.concatenate([batch.tokens for batch in sample_texts(Wants(), True, *more)]).tolist()

    assert tokens() == tokens(1) != tokens(2)


def test_spans_of_each_kind_are_those_of_a_text():
    """They are sorted, lie in one segment, are not all there is, and have a tag where the kind has one."""
    kinds = (*KINDS, *SOURCE_KINDS)
    for batch in sample_texts(Wants(annotations=kinds)):
        assert set(batch.spans) == set(kinds)
        for text in batch.texts():
            first, total = len(text.tokens), len(text.tokens) + (0 if text.second is None else len(text.second))
            sentences = [(start, min(start + 5, first)) for start in range(0, first, 5)]
            assert list(map(tuple, text.spans["sentences"].tolist())) == sentences
            assert list(map(tuple, text.spans["oracle"].tolist())) == sentences[::2]
            for kind in KINDS:
                spans = text.spans[kind]
                assert spans.shape[1] == columns(kind) and len(spans)
                bounds = spans[:, :2].ravel().tolist()
                assert bounds == sorted(bounds) and bounds[0] == 0 and bounds[-1] <= total
                assert (spans[:, 0] < spans[:, 1]).all()
                assert not ((spans[:, 0] < first) & (spans[:, 1] > first)).any()
                assert total < 20 or 0.15 < (spans[:, 1] - spans[:, 0]).sum() / total < 0.85
        tags = batch.spans["parts_of_speech"].bounds[:, 2]
        assert tags.min() == 0 and tags.max() == len(TAGS) - 1 and len(set(tags.tolist())) > 10
        lengths = np.diff(batch.spans["entities"].bounds[:, :2]).ravel()
        assert 2 < lengths.mean() < 5  # three of ten tokens begin or end a span


def test_every_other_stretch_of_a_text_is_a_span():
    """About half of all tokens; parts of speech and others alike."""
    for kind in KINDS:
        inside = total = 0
        for seed in range(1, 9):
            for batch in sample_texts(Wants(annotations=(kind,)), True, seed):
                bounds = batch.spans[kind].bounds
                inside, total = inside + int((bounds[:, 1] - bounds[:, 0]).sum()), total + len(batch.tokens)
        assert 0.44 < inside / total < 0.6


# ---------------------------------------------------------------- the check


def refusal(objective, **options):
    with pytest.raises(UnifiedError) as raised:
        check_objective(objective, **options)
    return raised.value.details


@dataclass(frozen=True)
class Falls(Suffix):
    """Declares fewer tokens for a text of ``behind`` tokens than for a shorter one."""

    behind: int = 0

    def lengths(self, tokens):
        return super().lengths(tokens) - 2 * (tokens >= self.behind)


def test_lengths_may_not_fall_up_to_texts_of_999_tokens():
    says = "objective suffix: lengths falls as texts grow; it must not"
    assert refusal(Falls(behind=2)) == refusal(Falls(behind=999)) == says
    check_objective(Falls(behind=1000))

    class Level(Suffix):
        def lengths(self, tokens):
            return np.full_like(tokens, 400)

    check_objective(Level())


@pytest.mark.parametrize("lengths", [None, 10_000, np.array([3]), np.array(["a", "b", "c"])])
def test_lengths_are_an_array_of_one_number_for_each_text(lengths):
    class Strange(Suffix):
        def lengths(self, tokens):
            return lengths

    says = "objective suffix: lengths must return an array of one number for each of those it is given, got"
    assert refusal(Strange()).startswith(says)
    with pytest.raises(UnifiedError, match="^objective mine: lengths must return"):
        Mixture((Strange(),), (1.0,), ("mine",))


class Silent(Suffix):
    """Predicts nothing."""

    def __call__(self, text, rng):
        return replace(
            super().__call__(text, rng), targets={TOKEN: ExampleTargets.at(*np.zeros((2, 0), dtype=np.int64))}
        )


def test_an_objective_that_predicts_nothing_is_refused():
    assert refusal(Silent()) == "objective suffix predicts nothing in 8 texts"


@dataclass(frozen=True)
class Called(Suffix):
    """Makes something else of one text than of many."""

    returns: str = ""

    def examples(self, texts, draws):
        return Suffix(self.share).examples(texts, draws)

    def __call__(self, text, rng):
        example = super().__call__(text, rng)
        return (
            example
            if not self.returns
            else replace(example, objective="other")
            if self.returns == "other"
            else [example]
        )


def test_what_a_call_makes_is_checked_too():
    check_objective(Called())
    assert refusal(Called(returns="list")) == "objective suffix returns list when called; expected an Example"
    assert "made an example of the objective 'other'" in refusal(Called(returns="other"))


class Leaking(Called):
    """Shows all tokens to all of them, in the examples of many texts alone."""

    def examples(self, texts, draws):
        made = super().examples(texts, draws).split()
        return Examples.of([replace(one, mask=masks.bidirectional(len(one.tokens))) for one in made])


def test_what_is_made_of_many_texts_is_checked():
    assert refusal(Leaking()).startswith("objective suffix leaks: ")


@dataclass(frozen=True)
class Careless(Suffix):
    """Draws from elsewhere, changes its text, makes too many tokens or is no example."""

    fault: str = ""

    def __call__(self, text, rng):
        if self.fault == "randomness":
            share = np.random.default_rng().random()
            return Suffix(share=max(share, 0.01))(text, rng)
        if self.fault == "text":
            text.tokens[0] = 7
        return super().__call__(text, rng)


@pytest.mark.parametrize(
    "fault, message", [("randomness", "makes another example of the same text"), ("text", "changes the text")]
)
def test_careless_objectives_are_found(fault, message):
    assert refusal(Careless(fault=fault)).startswith(f"objective suffix {message}")


@dataclass
class Mutable(Suffix.__mro__[1]):
    """Not frozen."""

    name, paired, segments, special_tokens, token_types = "mutable", False, 1, 1, 6
    writes, heads = "nothing", ("token",)

    def __call__(self, text, rng):
        return replace(Suffix()(text, rng), objective=self.name)


def test_an_objective_is_a_frozen_dataclass():
    assert refusal(Mutable()) == "objective mutable is not a frozen dataclass"


@dataclass(frozen=True)
class Alternates(Suffix):
    """Makes of the same text and the same random numbers another mask, or other positions, now and then."""

    changes: str = ""
    calls: ClassVar[list[int]] = []

    def examples(self, texts, draws):
        made = Suffix(self.share).examples(texts, draws)
        self.calls.append(1)
        if len(self.calls) % 2 or len(texts) != len(SIZES):
            return made
        changed = []
        for one in made.split():
            if self.changes == "positions":
                changed.append(replace(one, positions=one.positions[::-1].copy()))
            else:
                changed.append(replace(one, mask=replace(one.mask, key_start=one.mask.key_start.clone())))
        return Examples.of(changed)

    def __call__(self, text, rng):
        return Suffix(self.share)(text, rng)


def test_an_objective_that_draws_from_elsewhere_is_refused_whatever_changes():
    says = (
        "objective suffix makes another example of the same text and the same random numbers; take them from the "
        "generator that it is given, and from nowhere else"
    )
    assert refusal(Alternates(changes="positions")) == says
    check_objective(Alternates())  # an equal mask is no other example


def test_declarations_are_checked_before_examples():
    class Contradicts(Suffix):
        segments = 3

    assert refusal(Contradicts()) == "objective suffix: segments must be 1 or 2, got 3"

    class Lacks(Suffix):
        def unmet(self, supply):
            return None if supply.word_starts is False else "it wants no words"

    assert refusal(Lacks()) == "objective suffix: it wants no words"


def test_where_words_begin_may_be_missing_if_the_objective_says_that_it_needs_it():
    seen = []

    class Words(Suffix):
        def unmet(self, supply):
            seen.append((supply.word_starts, supply.longest, supply.annotations, supply.special.ordinary_stop))
            return None if supply.word_starts else "it wants words"

        def __call__(self, text, rng):
            assert text.word_starts is not None
            return super().__call__(text, rng)

    check_objective(Words())
    assert seen == [(True, 220, (), 2004), (False, 220, (), 2004)]


def test_the_seed_decides_what_examples_draw():
    drawn = []

    class Drawing(Suffix):
        def examples(self, texts, draws):
            drawn.append(draws.uniforms("share").tolist())
            return super().examples(texts, draws)

    def numbers(**options):
        drawn.clear()
        check_objective(Drawing(), **options)
        return list(drawn)

    first = numbers()
    assert first and len(set(first[0])) == len(SIZES)  # each text has numbers of its own
    assert first == numbers(seed=1) != numbers(seed=5)
    in_a_run = Draws.of(1, 1, randomness.EXAMPLE, np.arange(len(SIZES)))  # in its first epoch
    assert first[0] == in_a_run.uniforms("share").tolist()
