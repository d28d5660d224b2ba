"""Settings of every objective: their defaults, typed out, and what is refused before anything is read."""

from dataclasses import fields

import pytest

from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES, parse_objectives

REPLACED = {"mask_replace_share": 0.8, "random_replace_share": 0.1}
#: Of UniLM's pre-training objectives.
CLOZE = {"ngram_share": 0.2, "ngram_max": 3, "whole_words": False, "mask_share": 0.15, **REPLACED}
#: As the papers have them (UniLM, sec. 2.3; BERT, sec. 3.1 and A.2; SpanBERT, sec. 3; XLNet, sec. 2.3 and A.4; ANNA,
#: sec. 3; T5, sec. 3.3), or as their published programs do.
DEFAULTS = {
    "bidirectional": {**CLOZE, "next_sentence": True},
    "left_to_right": CLOZE,
    "right_to_left": CLOZE,
    "seq2seq": CLOZE,
    "target_cloze": {
        **REPLACED,
        "ngram_share": 0.0,
        "ngram_max": 3,
        "whole_words": False,
        "mask_probability": 0.7,
        "max_predictions": None,
        "mask_source": 0.0,
        "extractive": False,
        "sentence_limit": 0,
    },
    "target_next": {"extractive": False, "sentence_limit": 0},
    "bert": {
        **REPLACED,
        "next_sentence": True,
        "left_to_right": False,
        "short_share": 0.1,
        "mask_share": 0.15,
        "max_predictions": None,
        "whole_words": False,
    },
    "spanbert": {
        **REPLACED,
        "p": 0.2,
        "max_words": 10,
        "mask_share": 0.15,
        "scheme": "geometric",
        "boundary_offsets": 20,
        "next_sentence": False,
        "per_span": True,
    },
    "xlnet": {
        **REPLACED,
        "context": 6,
        "max_span": 5,
        "span_words": False,
        "reuse": None,
        "permutation_size": None,
        "both_directions": True,
        "next_sentence": False,
        "denoising": False,
    },
    "anna": {
        **REPLACED,
        "mask_share": 0.15,
        "span_share": 1 / 3,
        "word_share": 1 / 3,
        "scheme": "noun_phrase",
        "mark_entities": False,
    },
    "prefix_lm": {},
    "bert_style": {"noise_density": 0.15, "random_share": 0.1},
    "deshuffling": {},
    "mass_style": {"noise_density": 0.15},
    "replace_spans": {"noise_density": 0.15, "closing_sentinel": False},
    "drop_tokens": {"noise_density": 0.15},
    "random_spans": {"noise_density": 0.15, "closing_sentinel": False, "mean_span": 3.0},
}
#: Type of a setting -> values that no setting of the type takes.
WRONG = {
    "bool": ("2", "'x'"),
    "float": ("-0.1", "'x'", "nan", "True"),
    "int": ("-1", "1.5", "'x'", "True"),
    "int | None": ("-1", "0", "1.5", "'x'"),
    "str": ("3", "'x'"),
}
CASES = [
    (name, field.name, value)
    for name in OBJECTIVES
    for field in fields(OBJECTIVES[name])
    for value in WRONG[field.type]
]
#: The least value of an integer, 1 where nothing is said; and floats that are no shares.
LEAST = {"ngram_max": 2, "context": 2, "sentence_limit": 0, "boundary_offsets": 0}
NO_SHARES = {"mean_span"}


def test_every_objective_is_listed():
    assert DEFAULTS.keys() == OBJECTIVES.keys()


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name):
    (objective,) = parse_objectives(name).objectives
    assert {field.name: getattr(objective, field.name) for field in fields(objective)} == DEFAULTS[name]


@pytest.mark.parametrize(("name", "setting", "value"), CASES)
def test_a_wrong_value_is_refused_by_the_name_of_its_setting(name, setting, value):
    with pytest.raises(UnifiedError, match=setting):
        parse_objectives(f"{name}({setting}={value})")


@pytest.mark.parametrize("name", OBJECTIVES)
def test_bounds(name):
    for field in fields(OBJECTIVES[name]):
        refused = []
        if field.type == "float" and field.name not in NO_SHARES:
            refused.append(1.01)
        if field.type.startswith("int"):
            least = LEAST.get(field.name, 1)
            refused.append(least - 1)
            parse_objectives(f"{name}({field.name}={least})")
        for value in refused:
            with pytest.raises(UnifiedError, match=field.name):
                parse_objectives(f"{name}({field.name}={value})")
