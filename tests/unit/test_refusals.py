"""Refusals: one line of at most 300 characters that names the file; settings by kinds and ranges of their fields."""

import pickle
from dataclasses import dataclass

import pytest

from unified.arguments import check_settings_of, finite, number_setting, shown
from unified.errors import LONGEST_REFUSAL, MissingField, Problems, SeveralProblems, UnifiedError, naming, one_line


def test_a_refusal_is_one_line_that_keeps_its_ends():
    message = str(UnifiedError("a.txt, line 3:\n got " + "x" * 10_000 + "; do this instead"))
    assert len(message) == LONGEST_REFUSAL and message.startswith("a.txt, line 3: got x") and "\n" not in message
    assert " ... x" in message and message.endswith("x; do this instead")
    assert one_line("x" * 300) == "x" * 300 and len(one_line("x" * 301)) == 300 and len(one_line("x" * 10**7)) == 300
    one_line("half \ud800").encode()


def test_of_several_problems_those_are_named_that_fit():
    problems = Problems()
    for number in range(12):
        problems.add(f"line {number}", f"problem {number} " + "x" * 60)
    with pytest.raises(SeveralProblems) as caught:
        problems.check("a.txt: ")
    message = str(caught.value)
    assert len(message) <= LONGEST_REFUSAL and "problem 2 " in message and "problem 3 " not in message
    assert message.endswith("; and 9 more")
    assert "problem 9 " in caught.value.details and caught.value.details.endswith("; and 2 more")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.details) == (message, caught.value.details)


def test_numbers_are_told_from_what_is_none():
    """Integers of any size come from JSON; those beyond all floats have no value here."""
    assert [finite(value) for value in (3, -0.5, "1e3", " 2 ", 10**300)] == [3.0, -0.5, 1000.0, 2.0, 1e300]
    no_numbers = (True, None, "x", "", "nan", float("inf"), "-inf", 10**400, "9" * 400, [1], 1j, b"1")
    assert [finite(value) for value in no_numbers] == [None] * len(no_numbers)


def test_a_missing_field_may_be_a_number():
    """A list that is an object instead is asked for its field 0."""
    assert str(MissingField(0, ["a", "00"])) == "no field 0; its fields: 'a', '00'"


def test_refusals_name_a_file_once():
    for inside, says in (("wrong", "b/a.txt: wrong"), ("a.txt, line 3: wrong", "a.txt, line 3: wrong")):
        with pytest.raises(UnifiedError) as caught, naming("b/a.txt"):
            raise UnifiedError(inside)
        assert str(caught.value) == says


@dataclass(frozen=True)
class Settings:
    names: tuple[str, ...] = ()
    rate: float = number_setting(0.1, 0, below=1)
    size: int = number_setting(3, 1, 1000)
    word: str | None = None
    flag: bool = False


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rate": 2}, r"rate must be in \[0, 1\), got 2"),
        ({"rate": float("nan")}, "rate must be a number, got nan"),
        ({"rate": True}, "rate must be a number, got True"),
        ({"rate": 10**400}, "rate must be a number, got an integer of more than 64 bits"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"size": 1001}, "size must be at most 1,000, got 1001"),
        ({"size": 2.0}, "size must be an integer, got 2.0"),
        ({"word": 3}, "word must be a text or None, got 3"),
        ({"names": "ab"}, "names must be a list of texts, got 'ab'"),
        ({"names": ("a", 1)}, "names must be a list of texts"),
        ({"flag": 1}, "flag must be True or False, got 1"),
    ],
)
def test_settings_are_what_their_fields_declare(settings, says):
    with pytest.raises(UnifiedError, match=says):
        check_settings_of(Settings, settings)


def test_settings_that_are_right_are_taken():
    check_settings_of(Settings, {"names": ("a",), "rate": 0, "size": 1000, "word": None, "flag": True})


def test_values_are_shown_in_little_space():
    deep = "x"
    for _ in range(60):
        deep = [deep] * 10  # as YAML's names of lists make it
    assert len(shown(deep)) < 200 and shown([1, 2]) == "[1, 2]" and shown(10**5000) == "an integer of more than 64 bits"
    assert shown([10**5000]) == "a list" and len(shown("x" * 10**6)) < 200
