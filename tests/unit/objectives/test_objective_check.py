"""The first examples of every objective are compared with what it declares, in rows and in ``unified.testing``."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from docs.examples.suffix_objective import Suffix
from tests.support.token_files import SPECIAL, Reads, numbered_documents, random_sizes, write_documents
from unified import masks
from unified.data.example import Example, Examples
from unified.data.randomness import Draws
from unified.data.targets import TOKEN, ExampleTargets
from unified.data.texts import Text, Texts
from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES, Mixture, parse_objectives
from unified.objectives.check import check_examples, check_first_examples, check_lengths, check_sentinels
from unified.objectives.xlnet import XLNet
from unified.planning.documents import DocumentTexts
from unified.testing import check_objective, sample_texts
from unified.training.row_dataset import RowDataset
from unified.training.stream_dataset import RunningText, StreamDataset

#: Settings under which objectives do something else.
OTHERS = (
    "anna(scheme='pos')",
    "anna(scheme='entity', mark_entities=True)",
    "bert(next_sentence=False, left_to_right=True)",
    "bidirectional(next_sentence=False)",
    "replace_spans(closing_sentinel=True)",
    "seq2seq(whole_words=True)",
    "spanbert(scheme='named_entity', next_sentence=True)",
    "target_cloze(extractive=True, mask_source=0.2)",
    "target_next(extractive=True)",
    "xlnet(denoising=True)",
    "xlnet(next_sentence=True, span_words=True)",
)


@pytest.mark.parametrize("text", [*OBJECTIVES, *OTHERS, "docs.examples.suffix_objective:Suffix(share=0.3)"])
def test_every_objective_of_the_library_keeps_what_it_declares(text):
    check_objective(parse_objectives(text).objectives[0])


# ---------------------------------------------------------------- what is found


@dataclass(frozen=True)
class Wrong(Suffix):
    """The example of the documentation with one thing changed."""

    fault: str = ""

    def __call__(self, text, rng) -> Example:
        return FAULTS[self.fault][0](super().__call__(text, rng))


def change(**functions):
    """Changes fields of an example, each by a function of what is there."""
    return lambda example: replace(
        example, **{name: function(getattr(example, name)) for name, function in functions.items()}
    )


def retarget(**functions):
    """Changes fields of what the head ``token`` predicts."""
    return lambda example: replace(example, targets={TOKEN: change(**functions)(example.targets[TOKEN])})


def ask(head: str):
    """Asks one more head, at the first token."""
    none = np.zeros(1, dtype=int)
    return lambda example: replace(example, targets={**example.targets, head: ExampleTargets.at(none, none)})


def everything_seen(example):
    return replace(example, mask=masks.bidirectional(len(example.tokens)))


def one_more_seen(mask):
    """What appears looks one step too far, so that it passes on what follows it."""
    step = torch.where(mask.key_start == masks.GIVEN, masks.GIVEN, mask.key_start + 1)
    return masks.AttentionMask(step, mask.key_start, mask.key_stop + 1)


def longer(example):
    """Three tokens more than declared."""
    more = np.zeros(3, dtype=np.int64)
    grown = {name: np.concatenate([getattr(example, name), more]) for name in ("tokens", "positions", "token_types")}
    return replace(example, **grown, mask=masks.bidirectional(len(grown["tokens"])))


#: <sentinel_5> of the vocabulary in `unified.testing`.
SMALL_SENTINEL = 2105 - 100 + 5

FAULTS = {
    "objective": (change(objective=lambda _: "other"), "made an example of the objective 'other'"),
    "dtype": (change(positions=lambda p: p.astype(float)), "made positions of dtype float64; expected int64"),
    "shape": (change(token_types=lambda t: t[:-1]), "made .* token_types for .* tokens"),
    "labels": (retarget(labels=lambda found: found[:-1]), "made .* labels for .* predictions? of the head 'token'"),
    "no labels": (retarget(labels=lambda _: None), "made no labels for the head 'token'"),
    "kind of labels": (retarget(labels=lambda p: p * 0.5), "made labels of dtype float64 for the head 'token'"),
    "output_indices": (
        retarget(output_indices=lambda p: p[:, 0]),
        r"made output_indices of shape .* for the head 'token'; expected \(N, k\)",
    ),
    "weights": (retarget(weights=lambda _: np.ones(999)), "made .* weights for .* predictions? of the head 'token'"),
    "divisors": (retarget(divisors=lambda _: np.ones(999)), "made .* divisors for .* predictions? of the head 'token'"),
    "kind of output_indices": (
        retarget(output_indices=lambda p: p * 1.0),
        "made output_indices of dtype float64 for the head 'token'; expected int64",
    ),
    "no divisors": (
        lambda example: retarget(divisors=lambda _: np.zeros(len(example.targets[TOKEN])))(example),
        "made divisors for the head 'token' that are all 0",
    ),
    "infinite divisors": (
        lambda example: retarget(divisors=lambda _: np.full(len(example.targets[TOKEN]), np.inf))(example),
        "made divisors for the head 'token' that are negative or not finite",
    ),
    "length": (longer, "made .* tokens of .*; its special_tokens, or lengths, allows"),
    "first sentinel": (
        retarget(labels=lambda found: np.full_like(found, SMALL_SENTINEL - 5)),
        "has sentinel 0 as a target; its target_sentinels allows 0",
    ),
    "last sentinel": (
        retarget(labels=lambda found: np.full_like(found, SMALL_SENTINEL + 94)),
        "has sentinel 99 as a target; its target_sentinels allows 0",
    ),
    "square weights": (
        lambda example: retarget(weights=lambda _: np.ones((len(example.targets[TOKEN]), 1)))(example),
        r"made weights of shape \(.*, 1\) and dtype float64 for the head 'token'; expected numbers \(N,\)",
    ),
    "weights that are flags": (
        lambda example: retarget(weights=lambda _: np.ones(len(example.targets[TOKEN]), dtype=bool))(example),
        r"made weights of shape \(.*,\) and dtype bool for the head 'token'; expected numbers \(N,\)",
    ),
    "square labels": (
        retarget(labels=lambda found: found[:, None]),
        r"made labels of shape \(.*, 1\) and dtype int64 for the head 'token'; expected numbers \(N,\)",
    ),
    "negative weights": (
        lambda example: retarget(weights=lambda _: -np.ones(len(example.targets[TOKEN])))(example),
        "made weights for the head 'token' that are negative or not finite",
    ),
    "tokens": (change(tokens=lambda t: t + 10**6), "has 10.* among its tokens; the vocabulary has 2105"),
    "negative": (
        retarget(labels=lambda found: found - 10**6),
        "has -99.* among the labels of the head 'token'; the vocabulary has 2105",
    ),
    "types": (change(token_types=lambda t: t + 1), "has 6 among its token_types; its token_types declares 6"),
    "positions": (change(positions=lambda p: p - 1), "has -1 among its positions; rows have 221"),
    "indices": (
        retarget(output_indices=lambda p: p + 2),
        "has .* among the indices of the head 'token' in an example of .* tokens",
    ),
    "order": (
        retarget(output_indices=lambda p: p[::-1], labels=lambda found: found[::-1]),
        "has indices of the head 'token' that do not increase",
    ),
    "twice": (
        retarget(output_indices=lambda p: np.maximum(p - 1, p[:1])),
        "has indices of the head 'token' that do not increase",
    ),
    "pairs": (ask("next_sentence"), "makes predictions for the head 'next_sentence'; its heads declares"),
    "boundaries": (
        ask("boundary"),
        "for the head 'boundary'",
    ),
    "sentences": (
        ask("extractive"),
        "for the head 'extractive'",
    ),
    "stream": (change(query_stream=lambda _: True), "makes examples with a query stream; its query_stream declares"),
    "sentinel": (
        retarget(labels=lambda found: np.full_like(found, SMALL_SENTINEL)),
        "has sentinel 5 as a target; its target_sentinels allows 0",
    ),
    "seen": (everything_seen, "leaks: the prediction at index 0 sees its own label at index 1"),
    "passed on": (
        change(mask=one_more_seen),
        "leaks: the prediction at index .* sees its own label at index",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_named(fault):
    with pytest.raises(UnifiedError, match=f"objective suffix .*{FAULTS[fault][1]}") as refusal:
        check_objective(Wrong(fault=fault))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "mask, reason",
    [
        (masks.bidirectional, "targets must appear at a step of at least 1, but token .* is given from the start"),
        (lambda n: masks.sliding_window(n, 1), "targets must see all that is visible at the step before they appear"),
    ],
)
def test_a_query_stream_that_cannot_be_made_is_named(mask, reason):
    class Streamed(Suffix):
        query_stream = True

        def __call__(self, text, rng):
            made = super().__call__(text, rng)
            return replace(made, mask=mask(len(made.tokens)), query_stream=True)

    with pytest.raises(UnifiedError, match=f"objective suffix makes examples whose query stream cannot be.*: {reason}"):
        check_objective(Streamed())


def test_weights_and_divisors_may_be_zero_for_some():
    @dataclass(frozen=True)
    class Weighted(Suffix):
        def __call__(self, text, rng):
            made = super().__call__(text, rng)
            some = np.arange(len(made.targets[TOKEN])) > 0
            own = replace(made.targets[TOKEN], weights=some * 1.0, divisors=1.0 - some)
            return replace(made, targets={TOKEN: own})

    check_objective(Weighted())


@dataclass(frozen=True)
class Few(Suffix):
    """Makes no example of the last text."""

    def examples(self, texts, draws):
        made = super().examples(texts, draws)
        return Examples.joined([made], np.arange(len(made) - 1))


def test_every_text_has_an_example():
    texts = next(sample_texts(Suffix()))
    made = Few().examples(texts, Draws.from_generator(np.random.default_rng(0), len(texts)))
    with pytest.raises(UnifiedError, match=f"^made {len(texts) - 1} examples of {len(texts)} texts$"):
        check_examples(Few(), texts, made, 300)


@pytest.mark.parametrize(
    ("name", "head", "changes", "message"),
    [
        ("bert", "next_sentence", {"labels": 2}, "has 2 among the labels of the head 'next_sentence'; expected 0 or 1"),
        (
            "spanbert",
            "boundary",
            {"distances": 20},
            "has the distance 20 for the head 'boundary'; its",
        ),
    ],
)
def test_what_other_heads_may_not_be_asked(name, head, changes, message):
    (objective,) = parse_objectives(name).objectives
    texts = next(sample_texts(objective))
    made = objective.examples(texts, Draws.from_generator(np.random.default_rng(0), len(texts)))
    check_examples(objective, texts, made, 300)
    targets, ((field, value),) = made.targets[head], changes.items()
    if field == "labels":
        wrong = replace(targets, labels=np.full_like(targets.labels, value))
    else:
        wrong = replace(targets, inputs={**targets.inputs, field: np.full_like(targets.inputs[field], value)})
    with pytest.raises(UnifiedError, match=f"^{message}"):
        check_examples(objective, texts, replace(made, targets={**made.targets, head: wrong}), 300)


@dataclass(frozen=True)
class Counting(Suffix):
    """Declares as many sentinels as a text has tokens."""

    def target_sentinels(self, tokens):
        return tokens


def test_sentinels_are_those_that_the_longest_text_allows_or_that_stand_in_a_text():
    sentinel = SPECIAL.first_sentinel + 4
    texts = Texts.of([Text(np.array([5, 6, 7]), SPECIAL), Text(np.array([8, 9, 5, sentinel]), SPECIAL)])
    made = Suffix(share=1.0).examples(texts, Draws.from_generator(np.random.default_rng(0), 2))
    assert sentinel in made.targets[TOKEN].labels
    check_sentinels(Suffix(), made, texts)
    for number, objective, allowed in ((4, Counting(), 4), (0, Suffix(), 0)):
        labels = np.full_like(made.targets[TOKEN].labels, SPECIAL.first_sentinel + number)
        wrong = replace(made, targets={TOKEN: replace(made.targets[TOKEN], labels=labels)})
        others = Texts.of([Text(np.array([5, 6, 7]), SPECIAL), Text(np.array([8, 9, 5, 6]), SPECIAL)])
        with pytest.raises(UnifiedError, match=f"has sentinel {number} as a target; .* allows {allowed}"):
            check_sentinels(objective, wrong, others)
    labels = np.full_like(made.targets[TOKEN].labels, SPECIAL.first_sentinel + 3)
    check_sentinels(Counting(), replace(made, targets={TOKEN: replace(made.targets[TOKEN], labels=labels)}), others)
    markers = np.full_like(made.targets[TOKEN].labels, SPECIAL.first_sentinel + SPECIAL.sentinel_count)  # no sentinels
    check_sentinels(Suffix(), replace(made, targets={TOKEN: replace(made.targets[TOKEN], labels=markers)}), others)


def test_an_example_longer_than_allowed_is_named():
    texts = next(sample_texts(Suffix()))
    made = Suffix().examples(texts, Draws.from_generator(np.random.default_rng(0), len(texts)))
    allowed = made.lengths.copy()
    check_lengths(Suffix(), made, allowed, texts.lengths.sum(0))
    allowed[1] -= 1
    message = f"^made {made.lengths[1]} tokens of {texts.lengths.sum(0)[1]}; .* allows {allowed[1]}"
    with pytest.raises(UnifiedError, match=message):
        check_lengths(Suffix(), made, allowed, texts.lengths.sum(0))


@dataclass(frozen=True)
class Unmarked(Suffix):
    """Says that it marks entities, and marks none."""

    mark_entities: bool = True


def test_entities_that_are_declared_must_be_marked():
    with pytest.raises(UnifiedError, match="objective suffix declares mark_entities, and its examples have no entit"):
        check_objective(Unmarked())


# ---------------------------------------------------------------- rows and streams


@pytest.fixture
def file(tmp_path):
    return write_documents(tmp_path / "train", numbered_documents(random_sizes(np.random.default_rng(0), 12, 8, 12)))


def test_rows_are_not_made_of_an_objective_that_breaks_its_word(file):
    texts = DocumentTexts(file, SPECIAL)
    for fault, message in (("passed on", "suffix leaks"), ("types", "suffix has 6 among its token_types")):
        with pytest.raises(UnifiedError, match=f"objective {message}"):
            RowDataset(texts, Mixture((Reads(), Wrong(fault=fault)), (1.0, 1.0)), 64, seed=1)
    assert len(RowDataset(texts, Mixture((Reads(), Suffix()), (1.0, 1.0)), 64, seed=1)) > 0


#: Their sentinels are those of the small vocabulary.
SMALL = {"sentinel", "first sentinel", "last sentinel"}


@pytest.mark.parametrize("fault", sorted({*FAULTS} - SMALL))
def test_a_refusal_names_the_objective_as_the_mixture_does(file, fault):
    mixture = Mixture((Suffix(), Wrong(fault=fault)), (1.0, 1.0), ("first", "second"))
    with pytest.raises(UnifiedError, match="^objective second "):
        RowDataset(DocumentTexts(file, SPECIAL), mixture, 64, seed=1)


@pytest.mark.parametrize("fault", ["shape", "labels", "square weights"])
def test_what_is_wrong_later_in_a_run_is_named_too(file, fault, monkeypatch):
    """Rows whose first examples are right are made; then the objective makes others."""
    rows = RowDataset(DocumentTexts(file, SPECIAL), Mixture((Suffix(),), (1.0,), ("second",)), 64, seed=1)
    make = Suffix.__call__
    monkeypatch.setattr(Suffix, "__call__", lambda self, text, rng: FAULTS[fault][0](make(self, text, rng)))
    with pytest.raises(UnifiedError, match=f"^objective second {FAULTS[fault][1]}"):
        rows.examples(range(len(rows)))


def test_what_is_wrong_later_in_a_stream_is_named_too(file, monkeypatch):
    rows = StreamDataset(RunningText(file, SPECIAL), OneByOne(), None, 32, seed=1, name="mine")
    monkeypatch.setattr(OneByOne, "__call__", lambda self, text, rng: None)
    with pytest.raises(UnifiedError, match="^objective mine returns NoneType when called"):
        rows.examples([0])


@dataclass(frozen=True)
class OneByOne(Suffix):
    """Reads streams, text by text."""

    reads_streams = True


def test_first_examples_are_made_twice(monkeypatch):
    """To see whether they are the same; the search for leaks makes those of other tokens."""
    seen, make = [], Suffix.__call__
    texts = next(sample_texts(Suffix()))
    monkeypatch.setattr(
        Suffix, "__call__", lambda self, text, rng: seen.append(text.tokens.tolist()) or make(self, text, rng)
    )
    check_first_examples(Suffix(), texts, Draws.from_generator(np.random.default_rng(0), len(texts)), 300)
    own = [text.tokens.tolist() for text in texts.texts()]
    assert [tokens for tokens in seen if tokens in own and len(tokens) > 2] == [one for one in own if len(one) > 2] * 2


@dataclass(frozen=True)
class Faulty(Suffix):
    """Draws from elsewhere, or changes its text."""

    fault: str = "randomness"

    def __call__(self, text, rng):
        if self.fault == "text":
            text.tokens[:] = text.special.unknown
        return super().__call__(replace(text, tokens=_ELSEWHERE.permutation(text.tokens)), rng)


_ELSEWHERE = np.random.default_rng(3)


@pytest.mark.parametrize(
    "fault, message",
    [("randomness", "makes another example of the same text"), ("text", "changes the text that it is")],
)
def test_rows_are_not_made_of_an_objective_that_draws_from_elsewhere(file, fault, message):
    with pytest.raises(UnifiedError, match=f"^objective suffix {message}"):
        RowDataset(DocumentTexts(file, SPECIAL), Mixture((Faulty(fault=fault),), (1.0,)), 64, seed=1)


def test_a_refused_declaration_names_the_objective_as_the_mixture_does():
    with pytest.raises(UnifiedError, match="^objective second: token_types must be .*, got 0"):
        Mixture((Suffix(), NoTypes()), (1.0, 1.0), ("first", "second"))


@dataclass(frozen=True)
class NoTypes(Suffix):
    token_types: int = 0


@dataclass(frozen=True)
class WrongStreams(XLNet):
    """XLNet whose queries see what they predict."""

    def examples(self, texts, draws):
        made = super().examples(texts, draws)
        steps = replace(made.steps, query_step=made.steps.query_step + 1, key_stop=made.steps.key_stop + 1)
        return replace(made, steps=replace(steps, ends=steps.ends + 1))


def test_streams_are_not_made_of_an_objective_that_breaks_its_word(file):
    with pytest.raises(UnifiedError, match="objective xlnet leaks"):
        StreamDataset(RunningText(file, SPECIAL), WrongStreams(), None, 32, seed=1)
    with pytest.raises(UnifiedError, match="objective mine leaks"):
        StreamDataset(RunningText(file, SPECIAL), WrongStreams(), None, 32, seed=1, name="mine")
    with pytest.raises(UnifiedError, match="objective mine: reuse 16 leaves no room"):
        StreamDataset(RunningText(file, SPECIAL), XLNet(reuse=16), None, 18, seed=1, name="mine")
    with pytest.raises(UnifiedError, match="objective mine reads single texts"):
        StreamDataset(RunningText(file, SPECIAL), Suffix(), None, 32, seed=1, name="mine")
