"""Settings of every objective: their defaults, typed out, and what is refused before anything is read."""

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from unified.arguments import setting
from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES, Mixture, parse_objectives
from unified.objectives.bert import Bert
from unified.objectives.corruption import Cloze
from unified.objectives.unilm import LeftToRight
from unified.testing import check_objective

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


#: What else an integer needs to have an effect.
BESIDE = {"sentence_limit": "extractive=True", "ngram_max": "ngram_share=1.0", "permutation_size": "context=2"}


@pytest.mark.parametrize(
    ("name", "setting"),
    [(name, field.name) for name in OBJECTIVES for field in fields(OBJECTIVES[name]) if field.type.startswith("int")],
)
def test_the_greatest_integer_that_is_accepted_makes_examples(name, setting):
    most = 2**20 if setting in ("max_words", "max_span") else 2**63 - 1
    beside = f", {BESIDE[setting]}" if setting in BESIDE else ""
    (objective,) = parse_objectives(f"{name}({setting}={most}{beside})").objectives
    check_objective(objective)
    with pytest.raises(UnifiedError, match=f"^{name}: {setting} must be "):
        parse_objectives(f"{name}({setting}={most + 1}{beside})")


# ---------------------------------------------------------------- objectives of users


@dataclass(frozen=True)
class Own(LeftToRight):
    name: ClassVar[str] = "own"

    sizes: tuple[int, ...] = (1,)
    first: float = setting(0.5, least=0, most=1)
    second: float = setting(0.25, above=0, most=1)
    third: float = setting(0.0, least=0, most=1)
    order: str = setting("random", one_of=("random", "sorted"))
    owner: str | None = None

    def __post_init__(self):
        super().__post_init__()
        self.require_shares("first", "second", "third")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("sizes=[1, 'a']", "own: sizes must be a list of integers, got (1, 'a')"),
        ("first=1.5", "own: first must be from 0 to 1, got 1.5"),
        ("second=0", "own: second must be above 0 and at most 1, got 0"),
        ("order='sort'", "own: order must be one of random, sorted, got 'sort' (did you mean 'sorted'?)"),
        ("owner=3", "own: owner must be a text or None, got 3"),
        ("first=0.75, third=0.1", "own: first + second + third must be at most 1, got 0.75 + 0.25 + 0.1"),
        ("mask_share=0", "own: mask_share must be above 0 and at most 1, got 0"),
        ("ngram_max=1", "own: ngram_max must be at least 2, got 1"),
    ],
)
def test_fields_of_an_own_objective_are_checked_as_they_are_declared(settings, says):
    with pytest.raises(UnifiedError) as raised:
        parse_objectives(f"{__name__}:Own({settings})")
    assert str(raised.value) == says


def test_a_list_of_an_own_objective_is_a_tuple():
    (own,) = parse_objectives(f"{__name__}:Own(sizes=[1, 2], first=0.75)").objectives
    assert own == Own(sizes=(1, 2), first=0.75)


def test_shares_that_add_up_to_1_but_for_rounding_are_accepted():
    Own(first=0.7, second=0.1, third=0.2)
    Own(first=0.7, second=0.1, third=0.2 + 1e-10)
    with pytest.raises(UnifiedError, match="^own: first [+] second [+] third must be at most 1, got "):
        Own(first=0.7, second=0.1, third=0.2 + 1e-8)


def test_settings_without_an_objective_are_named_by_their_class():
    with pytest.raises(UnifiedError, match="^Cloze: ngram_max must be at least 2, got 1$"):
        Cloze(ngram_max=1)


def test_numbers_of_any_type_are_written_so_that_they_can_be_read_again():
    objective = Bert(mask_share=np.float32(0.25), short_share=Fraction(1, 4), max_predictions=np.int64(7))
    written = str(Mixture((objective,), (1,)))
    assert written == "bert(short_share=0.25, mask_share=0.25, max_predictions=7):1"
    assert parse_objectives(written).objectives == (objective,)
