"""Checks of what Python users pass: texts, lists, paths, numbers, fields of dataclasses; rows by length."""

import math
from collections import Counter
from dataclasses import FrozenInstanceError, dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Optional, Union

import numpy as np
import pytest

from unified.arguments import (
    Range,
    as_option,
    by_length,
    check_all_settings,
    check_settings_of,
    counted,
    finite,
    has_lone_surrogate,
    require_integer,
    require_list,
    require_path,
    require_text,
    require_texts,
    setting,
    shown,
)
from unified.errors import UnifiedError


def refusal(function, *arguments):
    with pytest.raises(UnifiedError) as raised:
        function(*arguments)
    return str(raised.value)


# ---------------------------------------------------------------- ranges and fields


def test_a_setting_becomes_an_option():
    assert as_option("tokens_per_sample") == "--tokens-per-sample"


@pytest.mark.parametrize(
    ("allowed", "says", "fits", "misfits"),
    [
        (Range(), "finite", [-1e300, 0, 1e300, 10**400], []),
        (Range(least=1), "at least 1", [1, 1.5, 1e9, 10**400], [0.999, -1e300, -(10**400)]),
        (Range(most=0.5), "at most 0.5", [0.5, -1e300], [0.501, 10**400]),
        (Range(above=0), "above 0", [5e-324, 1, 10**400], [0, 0.0, -5e-324]),
        (Range(below=1), "below 1", [0.999, -1e300], [1, 1.0, 2]),
        (Range(least=0.25, most=1_000_000), "from 0.25 to 1,000,000", [0.25, 1_000_000], [0.2, 1_000_000.5]),
        (Range(least=0, below=1), "at least 0 and below 1", [0, 0.999], [1, -1e-9, 2]),
        (Range(above=0, most=1), "above 0 and at most 1", [5e-324, 1], [0, 1.001]),
        (Range(above=-1e-20, below=3), "above -1e-20 and below 3", [0, 2.9], [-1e-20, 3]),
    ],
)
def test_a_range_says_what_a_number_must_be(allowed, says, fits, misfits):
    assert str(allowed) == says
    assert [allowed.misfit(value) for value in fits] == [None] * len(fits)
    assert [allowed.misfit(value) for value in misfits] == [says] * len(misfits)
    assert {allowed.misfit(value) for value in (math.inf, -math.inf, math.nan)} == {"finite"}
    with pytest.raises(FrozenInstanceError):
        allowed.least = 3


@dataclass
class Settings:
    rate: float = setting(0.5, "of learning", least=0, below=1)
    size: int = setting(3, least=1, most=7)
    open: float | None = setting(None, above=0)
    kind: str | None = setting("first", one_of=("first", "second"))
    plain: str = setting("any")


def test_a_setting_has_its_default_and_its_sentence():
    assert vars(Settings()) == {"rate": 0.5, "size": 3, "open": None, "kind": "first", "plain": "any"}
    assert [one.metadata["help"] for one in fields(Settings)] == ["of learning", "", "", "", ""]


def test_a_setting_is_held_to_its_range_and_to_its_choices():
    check_settings_of(Settings, {"rate": 0, "size": 7, "open": 1e300, "kind": None, "plain": "x"})
    check_settings_of(Settings, {"kind": "second", "open": None})
    for name, value, says in (
        ("rate", 1.0, "rate must be at least 0 and below 1, got 1.0"),
        ("size", 8, "size must be from 1 to 7, got 8"),
        ("open", 0, "open must be above 0, got 0"),
        ("open", "1", "open must be a number or None, got '1'"),
        ("kind", "secnd", "kind must be one of first, second, got 'secnd' (did you mean 'second'?)"),
        ("kind", "", "kind must be one of first, second, got ''"),
        ("kind", 1, "kind must be a text or None, got 1"),
    ):
        assert refusal(check_settings_of, Settings, {name: value}) == says
    assert refusal(check_settings_of, Settings, {"size": 0}, "--{}".format) == "--size must be from 1 to 7, got 0"


def test_all_settings_of_an_instance_are_checked():
    check_all_settings(Settings())
    assert refusal(check_all_settings, Settings(open=-1)) == "open must be above 0, got -1"
    assert refusal(check_all_settings, Settings(plain=1), "my {}".format) == "my plain must be a text, got 1"


@dataclass
class Fields:
    integer: int = 1
    number: float = 1.0
    flag: bool = False
    text: str = ""
    texts: tuple[str, ...] = ()
    integers: tuple[int, ...] = ()
    numbers: tuple[float, ...] = ()
    pair: tuple[int, str] = (1, "a")
    perhaps: Optional[int] = None  # noqa: UP045  -- the older spelling, which somebody's own class may have
    either: Union[int, str] = 1  # noqa: UP007
    newer: float | None = None
    others: list[int] = field(default_factory=list)
    none: None = None


TAKEN = {
    "integer": [0, -(2**63), 2**63 - 1, np.int64(3)],
    "number": [0, 0.5, -1e300, np.float32(2), Fraction(1, 3), 2**63 - 1, -(2**63)],
    "flag": [True, False],
    "text": ["", "a b", "Ünder"],
    "texts": [(), ("a", "b")],
    "integers": [(), (1, 2)],
    "numbers": [(), (1, 0.5)],
    "pair": [(1, "a"), ("a", 1), ()],
    "perhaps": [None, 3],
    "either": [3, "a"],
    "newer": [None, 3, 0.5],
    "others": [[], ["a"], None, 3],
    "none": [None],
}
REFUSED = {
    "integer": ([True, 1.0, "1", None, np.float64(1), 2**63, -(2**63) - 1], "an integer"),
    "number": ([False, "1", None, math.nan, math.inf, -math.inf, 1j, 2**63, -(2**63) - 1], "a number"),
    "flag": ([0, 1, "yes", None, np.bool_(True)], "True or False"),
    "text": ([1, None, b"a", "a\n", "\x00", "a\ud800"], "a text"),
    "texts": (["a", ["a"], (1,), ("a", None), ("a", "b\n")], "a list of texts"),
    "integers": ([[1], 1, (1, "a"), (True,)], "a list of integers"),
    "numbers": ([[0.5], 0.5, (0.5, "a"), (math.nan,)], "a list of numbers"),
    "pair": ([[1, "a"], "a"], "a list"),
    "perhaps": ([True, "a", 0.5, 2**63], "an integer or None"),
    "either": ([None, 0.5, True, "\n"], "an integer or a text"),
    "newer": (["a", math.nan, True], "a number or None"),
    "others": ([2**63, -(2**63) - 1], "a value of at most 64 bits"),
    "none": ([0, False, ""], "None"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_field_takes_what_it_is_annotated_for(name):
    for value in TAKEN[name]:
        check_settings_of(Fields, {name: value})
    values, what = REFUSED.get(name, ([], ""))
    for value in values:
        assert refusal(check_settings_of, Fields, {name: value}) == f"{name} must be {what}, got {shown(value)}"


def test_annotations_that_cannot_be_resolved_are_passed_over_and_ranges_are_not():
    @dataclass
    class Own:
        helper: "Nowhere" = None  # noqa: F821  -- somebody's own class may name what only type checkers import
        size: "int" = setting(3, least=1)

    check_settings_of(Own, {"helper": 3, "size": 2})
    check_settings_of(Own, {"size": "not looked at"})
    assert refusal(check_settings_of, Own, {"size": 0}) == "size must be at least 1, got 0"
    assert refusal(check_settings_of, Own, {"size": 2**63}) == (
        "size must be a value of at most 64 bits, got an integer of more than 64 bits"
    )


def test_finite_numbers_are_told_from_everything_else():
    """Integers of any size come from JSON; those beyond all floats have no value here."""
    assert [finite(value) for value in (3, -0.5, "1e3", " 2 ", 10**300)] == [3.0, -0.5, 1000.0, 2.0, 1e300]
    others = (True, None, "x", "", "nan", float("inf"), "-inf", 10**400, "9" * 400, [1], 1j, b"1")
    assert [finite(value) for value in others] == [None] * len(others)


# ---------------------------------------------------------------- values in messages


class Long:
    def __init__(self, size):
        self.size = size

    def __repr__(self):
        return "r" * self.size


def test_values_are_shown_as_python_writes_them_until_they_are_long():
    assert [shown(value) for value in (3, -0.5, None, "a", [1, "b"])] == ["3", "-0.5", "None", "'a'", "[1, 'b']"]
    assert shown("x" * 58) == repr("x" * 58) and len(shown("x" * 59)) == 60 and "..." in shown("x" * 59)
    assert shown(Long(60)) == "r" * 60 and len(shown(Long(61))) == 60 and "..." in shown(Long(61))
    assert shown([[[1]]]) == "[[[1]]]" and shown([[[[1]]]]) == "[[[[...]]]]"
    exact, longer = ["x" * 56, "y" * 56], ["x" * 56, "y" * 57]
    assert shown(exact) == repr(exact) and len(repr(exact)) == 120
    assert shown(longer) == repr(longer)[:120] + "..."
    assert shown(2**63 - 1) == str(2**63 - 1) and shown(-(2**63)) == str(-(2**63))
    assert shown(2**63) == shown(-(2**63) - 1) == "an integer of more than 64 bits"
    assert shown((10**5000,)) == "a tuple" and shown({"a": 10**5000}) == "a dict"


# ---------------------------------------------------------------- arguments


def test_texts_and_lists_of_them():
    assert require_text("prompt", "a") == "a" and require_texts("texts", ("a", "")) == ["a", ""]
    assert require_texts("texts", iter(["a"])) == ["a"] and require_list("rows", {3: 4}.keys()) == [3]
    assert refusal(require_text, "prompt", 3) == "prompt: expected one text, got int 3"
    assert refusal(require_text, "prompt", ["a"]) == "prompt: expected one text, got list ['a']"
    assert refusal(require_texts, "texts", ["a", None]) == "texts[1]: expected one text, got NoneType None"
    assert refusal(require_texts, "texts", ["\U0001f600", "a \ud83d"]) == (
        "texts[1]: holds half of a surrogate pair, such as a part of an emoji"
    )
    assert refusal(require_texts, "texts", "ab") == "texts: expected a list of texts, got one text; put it in a list"
    assert refusal(require_list, "rows", {"a": 1}) == "rows: expected a list of texts, got dict {'a': 1}"
    assert refusal(require_list, "rows", 3) == "rows: expected a list of texts, got int 3"


def test_a_long_value_is_described_by_60_characters():
    assert refusal(require_text, "a", Long(60)) == f"a: expected one text, got Long {'r' * 60}"
    assert refusal(require_text, "a", Long(61)) == f"a: expected one text, got Long {shown(Long(61))}"


def test_paths(tmp_path):
    assert require_path("model", "a/b") == "a/b" and require_path("model", tmp_path / "c") == f"{tmp_path}/c"
    assert require_path("model", Path()) == "."
    says = "model: expected the path of a file or folder, got"
    for value, described in (("", "str ''"), (None, "NoneType None"), (b"a", "bytes b'a'"), (3, "int 3")):
        assert refusal(require_path, "model", value) == f"{says} {described}"


def test_integers_have_a_least_value():
    assert require_integer("beams", 3, 3) == 3 and require_integer("beams", -1, -1) == -1
    converted = require_integer("beams", np.int32(7), 1)
    assert converted == 7 and type(converted) is int
    for value in (2, True, 3.0, "3", None):
        assert refusal(require_integer, "beams", value, 3) == f"beams must be an integer of at least 3, got {value!r}"
    assert refusal(require_integer, "beams", True, 0) == "beams must be an integer of at least 0, got True"


def test_rows_by_length_are_all_rows_longest_first_in_full_batches():
    rng = np.random.default_rng(0)
    for _ in range(60):
        rows = ["x" * int(size) for size in rng.integers(0, 6, size=rng.integers(0, 20))]
        size = int(rng.integers(1, 8))
        batches = by_length(rows, size)
        order = [index for batch in batches for index in batch]
        assert Counter(order) == Counter(range(len(rows)))
        keys = [(-len(rows[index]), index) for index in order]
        assert keys == sorted(keys)  # rows of one length stay in their order
        assert all(len(batch) == size for batch in batches[:-1]) and all(0 < len(batch) <= size for batch in batches)
    for size in (0, -1, True, 2.0, None):
        assert refusal(by_length, ["a"], size) == f"batch_size must be an integer of at least 1, got {size!r}"
    assert by_length(["a", "bb"], 1) == [[1], [0]]


def test_things_are_counted_in_the_singular_and_the_plural():
    assert [counted(number, "pair") for number in (0, 1, 2, 2000)] == ["0 pairs", "1 pair", "2 pairs", "2,000 pairs"]
    assert [counted(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]


def test_half_of_a_surrogate_pair_is_found():
    texts = {"": False, "é 😀 \u2028": False, "a\ud83d": True, "\ude00": True}
    assert {text: has_lone_surrogate(text) for text in texts} == texts
