"""Settings of generation: defaults, bounds on both sides, and a user's keywords."""

import math
from dataclasses import fields

import pytest

from tests.support.tiny_models import vocabulary
from unified.errors import UnifiedError
from unified.generation import GenerationConfig

DEFAULTS = {
    "beam": None,
    "max_length": 128,
    "min_length": 1,
    "nbest": 1,
    "length_penalty": "fairseq",
    "lenpen": 1.0,
    "no_repeat_ngram_size": 0,
    "no_repeat_ngram_ignore": frozenset(),
    "sampling": False,
    "top_k": 0,
    "top_p": 1.0,
    "temperature": 1.0,
    "seed": 0,
}


def test_defaults_are_those_of_the_manual_and_each_option_has_a_sentence():
    assert vars(GenerationConfig()) == DEFAULTS
    assert all(len(option.metadata["help"]) > 20 for option in fields(GenerationConfig))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("beam", 1),
        ("max_length", 1),
        ("nbest", 1),
        ("min_length", 0),
        ("no_repeat_ngram_size", 0),
        ("top_k", 0),
        ("seed", 0),
    ],
)
def test_the_least_of_each_number_is_taken_and_one_less_is_refused(name, least):
    others = {"min_length": 0, "sampling": True}
    assert getattr(GenerationConfig(**{**others, name: least}), name) == least
    with pytest.raises(UnifiedError) as raised:
        GenerationConfig(**{**others, name: least - 1})
    assert str(raised.value) == f"{name} must be at least {least}, got {least - 1}"


def test_limits_that_meet_are_taken():
    GenerationConfig(min_length=4, max_length=4)
    GenerationConfig(nbest=3, beam=3)
    GenerationConfig(sampling=True, top_p=1.0)
    GenerationConfig(sampling=True, top_p=1e-9, temperature=1e-9)
    for value in (math.inf, -math.inf, math.nan):
        with pytest.raises(UnifiedError, match=f"^temperature must be a number, got {value}$"):
            GenerationConfig(temperature=value)
    for wrong in ({"temperature": -1.0}, {"temperature": 0.0}):
        with pytest.raises(
            UnifiedError, match="^temperature must be above 0, got .*; for the most probable use beam=1$"
        ):
            GenerationConfig(**wrong)
    for value in (1e-21, 5e-324):
        with pytest.raises(UnifiedError, match="^temperature must be at least 1e-20, got .*; for the most probable "):
            GenerationConfig(temperature=value)
    GenerationConfig(temperature=1e-20)
    for top_p in (1.0001, 0.0, -0.5):
        with pytest.raises(UnifiedError, match="^top_p must be above 0 and at most 1, got "):
            GenerationConfig(sampling=True, top_p=top_p)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"top_k": 2}, "top_k 2"), ({"top_p": 0.5}, "top_p 0.5"), ({"top_k": 2, "top_p": 0.5}, "top_k 2")],
)
def test_what_is_drawn_needs_sampling(options, named):
    assert GenerationConfig(sampling=True, **options).sampling
    with pytest.raises(UnifiedError, match=f"^{named} says what is drawn from; it needs sampling$"):
        GenerationConfig(**options)


def test_ignored_ids_become_a_set():
    for wrong in (5, "w3"):
        with pytest.raises(UnifiedError, match=f"^no_repeat_ngram_ignore must be a list of ids, got {wrong!r}$"):
            GenerationConfig(no_repeat_ngram_ignore=wrong, no_repeat_ngram_size=2)
    found = GenerationConfig(no_repeat_ngram_size=1, no_repeat_ngram_ignore=[3, 4, 3])
    assert found.no_repeat_ngram_ignore == frozenset({3, 4})


def test_what_blocking_leaves_alone_needs_blocking():
    with pytest.raises(UnifiedError) as raised:
        GenerationConfig(no_repeat_ngram_ignore=[3])
    assert str(raised.value) == (
        "no_repeat_ngram_ignore names what no_repeat_ngram_size never blocks; it needs a size of at least 1"
    )


def test_a_users_keywords_may_name_symbols():
    words = vocabulary()
    found = GenerationConfig.of_options(words, no_repeat_ngram_size=2, no_repeat_ngram_ignore=["w3", 5])
    ids = frozenset({words.index("w3"), 5})
    assert found == GenerationConfig(no_repeat_ngram_size=2, no_repeat_ngram_ignore=ids)
    assert GenerationConfig.of_options(words) == GenerationConfig()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"beams": 2}, "unknown option 'beams' (did you mean 'beam'?); generation knows " + ", ".join(DEFAULTS)),
        ({"no_repeat_ngram_ignore": "w3"}, "no_repeat_ngram_ignore must be a list of symbols or ids, got 'w3'"),
        ({"no_repeat_ngram_ignore": 3}, "no_repeat_ngram_ignore must be a list of symbols or ids, got 3"),
        ({"no_repeat_ngram_ignore": ["w99"]}, "no_repeat_ngram_ignore: 'w99' is not a symbol of the dictionary"),
        ({"no_repeat_ngram_size": 1, "no_repeat_ngram_ignore": [None]}, "an id of no_repeat_ngram_ignore must be an "
         "integer of at least 0, got None"),
        ({"no_repeat_ngram_size": 1, "no_repeat_ngram_ignore": [2.5]}, "an id of no_repeat_ngram_ignore must be an "
         "integer of at least 0, got 2.5"),
        ({"no_repeat_ngram_size": 1, "no_repeat_ngram_ignore": ["w3", -1]}, "an id of no_repeat_ngram_ignore must be "
         "an integer of at least 0, got -1"),
        ({"no_repeat_ngram_ignore": [len(vocabulary())]}, "no_repeat_ngram_ignore: the dictionary has ids from 0 to "
         f"{len(vocabulary()) - 1}, got {len(vocabulary())}"),
    ],
)  # fmt: skip
def test_unknown_keywords_and_symbols_are_refused(options, says):
    with pytest.raises(UnifiedError) as raised:
        GenerationConfig.of_options(vocabulary(), **options)
    assert str(raised.value) == says
