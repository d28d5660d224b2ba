"""Boundary values of every setting: which are accepted, and which are refused before anything is read."""

import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.generation import GenerationConfig
from unified.model.config import TransformerConfig
from unified.model.coreference import SpanRanking
from unified.objectives import OBJECTIVES
from unified.tasks.settings import Training
from unified.tasks.writing import WritingTraining
from unified.training.settings import TrainingSettings

#: The least number above 0, the least above 1, and the greatest integer of 64 bits.
TINY, ABOVE_1, LARGEST = 5e-324, math.nextafter(1, 2), 2**63 - 1
NO_NUMBERS = [math.nan, math.inf, -math.inf, "1", None, True, [1]]


def integers(least, most=LARGEST):
    """Values that an integer of these bounds takes, and values that it does not."""
    return [least, most], [least - 1, most + 1, least + 0.5, f"{least}", None, True, math.nan]


def perhaps(kind):
    """Boundary values of a setting that may also be None."""
    accepted, refused = kind
    return [*accepted, None], [value for value in refused if value is not None]


FLAG = ([True, False], [0, 1, None, "yes", 2, 0.5])
SHARE = ([0, 0.0, TINY, Fraction(1, 3), np.float32(0.5), 1, 1.0], [-TINY, -1, ABOVE_1, 2, *NO_NUMBERS])
SHARE_ABOVE_0 = ([TINY, Fraction(1, 3), np.float32(0.5), 1, 1.0], [0, 0.0, -TINY, -1, ABOVE_1, 2, *NO_NUMBERS])
NOT_BELOW_0 = ([0, 0.0, TINY, 1, 1e300], [-TINY, -1, *NO_NUMBERS])
ABOVE_0 = ([TINY, 1, 1e300], [0, 0.0, -TINY, -1, *NO_NUMBERS])
COUNT, COUNT_OR_0, AT_LEAST_2 = integers(1), integers(0), integers(2)

REPLACED = {"mask_replace_share": SHARE, "random_replace_share": SHARE}
HIDING = {"ngram_share": SHARE, "ngram_max": AT_LEAST_2, "whole_words": FLAG, **REPLACED}
CLOZE = {**HIDING, "mask_share": SHARE_ABOVE_0}
EXTRACTIVE = {"extractive": FLAG, "sentence_limit": COUNT_OR_0}
NOISE = {"noise_density": SHARE_ABOVE_0}
SPANS_OF_NOISE = {**NOISE, "closing_sentinel": FLAG}
#: Name of an objective -> its settings -> values that are accepted, and values that are refused.
OF_OBJECTIVES = {
    "bidirectional": {**CLOZE, "next_sentence": FLAG},
    "left_to_right": CLOZE,
    "right_to_left": CLOZE,
    "seq2seq": CLOZE,
    "target_cloze": {
        **HIDING,
        **EXTRACTIVE,
        "mask_probability": SHARE_ABOVE_0,
        "max_predictions": perhaps(COUNT),
        "mask_source": SHARE,
    },
    "target_next": EXTRACTIVE,
    "bert": {
        **REPLACED,
        "next_sentence": FLAG,
        "left_to_right": FLAG,
        "short_share": SHARE,
        "mask_share": SHARE_ABOVE_0,
        "max_predictions": perhaps(COUNT),
        "whole_words": FLAG,
    },
    "spanbert": {
        **REPLACED,
        "p": SHARE_ABOVE_0,
        "max_words": integers(1, 1 << 20),
        "mask_share": SHARE_ABOVE_0,
        "scheme": (
            ["geometric", "whole_word", "subword", "named_entity", "noun_phrase"],
            ["entity", "Subword", "", None, 1],
        ),
        "boundary_offsets": COUNT_OR_0,
        "next_sentence": FLAG,
        "per_span": FLAG,
    },
    "xlnet": {
        **REPLACED,
        "context": AT_LEAST_2,
        "max_span": integers(1, 1 << 20),
        "span_words": FLAG,
        "reuse": perhaps(COUNT),
        "permutation_size": perhaps(COUNT),
        "both_directions": FLAG,
        "next_sentence": FLAG,
        "denoising": FLAG,
    },
    "anna": {
        **REPLACED,
        "mask_share": SHARE_ABOVE_0,
        "span_share": SHARE,
        "word_share": SHARE,
        "scheme": (["noun_phrase", "entity", "pos", "token"], ["named_entity", "POS", "", None, 1]),
        "mark_entities": FLAG,
    },
    "prefix_lm": {},
    "bert_style": {**NOISE, "random_share": SHARE},
    "deshuffling": {},
    "mass_style": NOISE,
    "replace_spans": SPANS_OF_NOISE,
    "drop_tokens": NOISE,
    "random_spans": {
        **SPANS_OF_NOISE,
        "mean_span": ([1, 1.0, 3.5, 1e300], [0, math.nextafter(1, 0), -1, *NO_NUMBERS]),
    },
}
OF_GENERATION = {
    "beam": perhaps(COUNT),
    "max_length": COUNT,
    "min_length": COUNT_OR_0,
    "nbest": COUNT,
    "length_penalty": (["fairseq", "unilm"], ["FAIRSEQ", "", None, 1]),
    "lenpen": ([-2.0, 0, 0.6, 1, 2.5], [1e300, *NO_NUMBERS]),
    "no_repeat_ngram_size": COUNT_OR_0,
    "no_repeat_ngram_ignore": ([(), [1, 2], frozenset({0})], [[-1], [0.5], ["a"], [None]]),
    "sampling": FLAG,
    "top_k": COUNT_OR_0,
    "top_p": SHARE_ABOVE_0,
    "temperature": ([1e-20, 0.5, 1, 1e300], [0, TINY, 9.9e-21, -1, *NO_NUMBERS]),
    "seed": COUNT_OR_0,
}
OF_PRETRAINING = {
    "tokens_per_sample": integers(1, 16384),
    "max_tokens": integers(512),
    "update_freq": COUNT,
    "max_update": COUNT,
    "warmup_updates": perhaps(integers(0, 19999)),
    "lr": ABOVE_0,
    "seed": integers(0, 2**31 - 1),
}
OF_FINETUNING = {
    "epochs": COUNT,
    "batch_size": COUNT,
    "lr": ABOVE_0,
    "max_length": COUNT,
    "warmup": SHARE,
    "optimizer": (["adam", "adamax"], ["adm", "", None, 1]),
    "weight_decay": NOT_BELOW_0,
    "clip": NOT_BELOW_0,
    "head_lr": perhaps(ABOVE_0),
    "head_weight_decay": perhaps(NOT_BELOW_0),
    "layer_decay": SHARE_ABOVE_0,
    "select": (["last", "best"], ["lst", "", None, 1]),
    "validations": COUNT,
}
OF_WRITING = {
    **OF_FINETUNING,
    "max_source": COUNT,
    "max_target": COUNT,
    "objective": (["target_cloze", "target_next"], [None, 1, "a\n"]),
    "smoothing": ([0, 0.1, math.nextafter(1, 0)], [-TINY, -1, 1, 2, *NO_NUMBERS]),
}
CLASSES = {
    **{name: (OBJECTIVES[name], bounds) for name, bounds in OF_OBJECTIVES.items()},
    "generation": (GenerationConfig, OF_GENERATION),
    "pretraining": (TrainingSettings, OF_PRETRAINING),
    "finetuning": (Training, OF_FINETUNING),
    "writing": (WritingTraining, OF_WRITING),
}
#: Setting -> others with which it may have every value of its range.
WITH = {
    "mask_replace_share": {"random_replace_share": 0},
    "random_replace_share": {"mask_replace_share": 0},
    "span_share": {"word_share": 0},
    "word_share": {"span_share": 0},
    "left_to_right": {"next_sentence": False},
    "sentence_limit": {"extractive": True},
    "max_length": {"min_length": 0},
    "min_length": {"max_length": LARGEST},
    "nbest": {"beam": LARGEST},
    "no_repeat_ngram_ignore": {"no_repeat_ngram_size": 1},
    "top_k": {"sampling": True},
    "top_p": {"sampling": True},
    "temperature": {"sampling": True},
}
CASES = [(name, setting) for name, (_, bounds) in CLASSES.items() for setting in bounds]


def made(name, setting, value):
    """The dataclass with that value, checked."""
    declaring, bounds = CLASSES[name]
    others = {other: given for other, given in WITH.get(setting, {}).items() if other in bounds}
    built = declaring(**{setting: value, **others})
    return built.checked() if isinstance(built, TrainingSettings) else built


def test_the_table_has_every_setting():
    assert OF_OBJECTIVES.keys() == OBJECTIVES.keys()
    for name, (declaring, bounds) in CLASSES.items():
        assert {field.name for field in fields(declaring)} == bounds.keys(), name


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_values_within_the_bounds_are_accepted(name, setting):
    for value in CLASSES[name][1][setting][0]:
        built = made(name, setting, value)
        if value is not None:
            assert getattr(built, setting) == (frozenset(value) if isinstance(value, list | tuple) else value)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_values_beyond_the_bounds_are_refused_by_the_name_of_the_setting(name, setting):
    for value in CLASSES[name][1][setting][1]:
        with pytest.raises(UnifiedError) as raised:
            made(name, setting, value)
            pytest.fail(f"{value!r} is accepted")
        assert setting in str(raised.value).replace("-", "_"), value
        if name in OBJECTIVES:
            assert str(raised.value).startswith(f"{name}: "), value


@pytest.mark.parametrize(
    ("declaring", "setting", "others"),
    [(SpanRanking, "spans_per_word", {}), (TransformerConfig, "rotary_theta", {"positions": "rotary"})],
)
def test_numbers_of_models_that_must_be_above_0(declaring, setting, others):
    accepted, refused = ABOVE_0
    for value in accepted:
        assert getattr(declaring(**{setting: value}, **others), setting) == value
    for value in refused:
        with pytest.raises(UnifiedError, match=setting):
            declaring(**{setting: value}, **others)
