"""Types of options that are numbers: what each takes, and the refusal of everything else."""

import argparse
import math

import pytest

from unified.cli.values import non_negative, positive, run_name, several, share, threads, training_seed, weight

NO_NUMBERS = ["", " ", "one", "0x1", "1,5", "--1"]


@pytest.mark.parametrize(("read", "least"), [(non_negative, 0), (positive, 1), (several, 2)])
def test_an_integer_is_taken_from_its_least_value_on(read, least):
    assert [read(str(number)) for number in (least, least + 1, 10**30)] == [least, least + 1, 10**30]
    assert read("007") == 7 and type(read("7")) is int
    for text in (*NO_NUMBERS, str(least - 1), "-1", "+1", "1.0", "1e3", "²", "½", "1_000"):
        with pytest.raises(argparse.ArgumentTypeError) as refused:
            read(text)
        assert str(refused.value) == f"must be an integer of at least {least}, got {text!r}"


def test_a_seed_of_a_training_is_one_that_numpy_takes_in_every_epoch():
    assert [training_seed(text) for text in ("0", "1", "2147483647")] == [0, 1, 2**31 - 1]
    for text in (*NO_NUMBERS, "-1", "+1", "1.0", "2147483648", "9" * 20):
        with pytest.raises(argparse.ArgumentTypeError) as refused:
            training_seed(text)
        assert str(refused.value) == f"must be an integer from 0 to 2147483647, got {text!r}"


@pytest.mark.parametrize("least", [0, 1])
def test_threads_are_no_more_than_a_system_makes(least):
    assert [threads(text, least) for text in (str(least), "4096")] == [least, 4096] and threads("0") == 0
    for text in (*NO_NUMBERS, str(least - 1), "4097", "4294967296"):
        with pytest.raises(argparse.ArgumentTypeError) as refused:
            threads(text, least)
        assert str(refused.value) == f"must be an integer from {least} to 4096, got {text!r}"


def test_a_share_lies_between_nothing_and_all_both_included():
    for text in ("0", "1", "0.25", "1e-9", "-0.0"):
        assert share(text) == float(text) and type(share(text)) is float
    for text in (*NO_NUMBERS, "-1e-9", "1.0001", "2", "nan", "inf", "-1"):
        with pytest.raises(argparse.ArgumentTypeError) as refused:
            share(text)
        assert str(refused.value) == f"must be a number from 0 to 1, got {text!r}"


def test_a_weight_is_finite_and_not_below_zero():
    for text in ("0", "1", "0.5", "1e300", "-0.0"):
        assert weight(text) == float(text) and math.isfinite(weight(text))
    for text in (*NO_NUMBERS, "-1e-9", "-1", "nan", "inf", "-inf", "1e999"):
        with pytest.raises(argparse.ArgumentTypeError) as refused:
            weight(text)
        assert str(refused.value) == f"must be a number of at least 0, got {text!r}"


def test_the_name_of_a_run_is_one_line_with_something_to_see_in_it():
    for text in ("ours", "a b", " x", "é|1"):
        assert run_name(text) == text
    for text in ("", " ", "\u3000", "a\nb", "a\n", "a\tb", "\x1b[0m"):
        with pytest.raises(argparse.ArgumentTypeError) as refused:
            run_name(text)
        assert str(refused.value) == f"must be a name in one line, got {text!r}"
