"""The words of refusals: how much of a message stays, missing fields, and problems that are named together."""

import difflib
import pickle

import pytest

from unified.errors import (
    EmptyField,
    Interrupted,
    MissingField,
    Problems,
    SeveralProblems,
    TrainingFailed,
    UnifiedError,
    WrongField,
    first_few,
    naming,
    nearest,
    one_line,
    require_fields,
)


def test_a_long_message_keeps_its_first_195_and_its_last_100_characters():
    text = "".join(chr(0x4E00 + number) for number in range(1000))
    for length in (299, 300):
        assert one_line(text[:length]) == text[:length]
    for length in (301, 302, 1000):
        assert one_line(text[:length]) == f"{text[:195]} ... {text[:length][-100:]}"


def test_white_space_becomes_one_blank_and_of_30_000_characters_the_ends_are_looked_at():
    assert one_line(" a\n\t b\u2003c\x1cd\r\n") == "a b c d" and one_line("") == ""
    assert one_line("a" + " " * 29_998 + "b") == "a b"
    assert one_line("a" + " " * 29_999 + "b") == "a ... b"
    text = "".join(chr(0x4E00 + number % 20_000) for number in range(40_000))
    assert one_line(text) == f"{text[:195]} ... {text[-100:]}"


def test_half_of_a_character_is_written_as_its_code():
    assert str(UnifiedError("a\ud800\n b")) == "a\\ud800 b" and UnifiedError("a\n  b").details == "a\n  b"


def test_an_empty_field_is_named_also_by_another_process():
    error = EmptyField("text\n")
    again = pickle.loads(pickle.dumps(error))
    for one in (error, again):
        assert str(one) == one.details == "the field 'text\\n' is empty" and one.args == ("text\n",)
    long = EmptyField("x" * 400)
    assert len(str(long)) == 300 and long.details == f"the field {'x' * 400!r} is empty"


def test_a_wrong_field_is_named_also_by_another_process():
    error = WrongField("text", "must be\na text")
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert (one.name, one.problem) == ("text", "must be\na text")
        assert (str(one), one.details) == ("'text' must be a text", "'text' must be\na text")


def test_a_refusal_is_a_value_error():
    for kind in (TrainingFailed, Interrupted, EmptyField, WrongField, MissingField, SeveralProblems):
        assert issubclass(kind, UnifiedError)
    assert issubclass(UnifiedError, ValueError)


# ---------------------------------------------------------------- fields


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("text", ["txt", "id"]), "no field 'text' (did you mean 'txt'?); its fields: 'txt', 'id'"),
        (("text", []), "no field 'text'; its fields: none"),
        (("text", [], "field", "--text"), "no field 'text'; its fields: none"),
        (("text", ["id"], "field", "--text"), "no field 'text'; its fields: 'id'; --text names the one to read"),
        (("q", ["id"], "column"), "no column 'q'; its columns: 'id'"),
        (("q", list("12345678")), f"no field 'q'; its fields: {', '.join(map(repr, '12345678'))}"),
        (("q", list("123456789")), f"no field 'q'; its fields: {', '.join(map(repr, '12345678'))}, ..."),
    ],
)
def test_a_missing_field_is_told_with_eight_that_are_there(given, says):
    error = MissingField(*given)
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == says and error.name == given[0]
    assert error.problem == f"no {given[2] if len(given) > 2 else 'field'} {given[0]!r}"


def test_the_details_of_a_missing_field_name_all_fields_that_are_there():
    """`--verbose` prints them, and a file's name is put in front of them."""
    assert MissingField("text", ["id", "txt"]).details == (
        "no field 'text' (did you mean 'txt'?); its fields: 'id', 'txt'"
    )
    names = [f"column {number}" for number in range(100)]
    error = MissingField("q", names, "column", "--text-field")
    there = ", ".join(map(repr, names))
    assert error.details == f"no column 'q'; its columns: {there}; --text-field names the one to read"
    with pytest.raises(UnifiedError) as raised, naming("a.csv"):
        raise error
    assert raised.value.details == f"a.csv: {error.details}"


def test_a_record_must_have_all_fields_and_the_first_that_lacks_is_named():
    require_fields({"a": None, "b": 0}, "b", "a")
    require_fields({})
    with pytest.raises(MissingField) as raised:
        require_fields({"a": 1, "b": 2}, "a", "y", "x")
    assert str(raised.value) == "no field 'y'; its fields: 'a', 'b'"
    assert str(EmptyField("text")) == "the field 'text' is empty"


def test_a_missing_field_may_be_a_number():
    """A list that is an object instead is asked for its field 0."""
    assert str(MissingField(0, ["a", "00"])) == "no field 0; its fields: 'a', '00'"


def test_a_name_is_looked_for_in_the_message_alone(tmp_path):
    """The file's last part counts, as messages may shorten the path; what is no refusal goes through."""
    path = tmp_path / "a.txt"
    for message, says in (
        ("a.txt: wrong", "a.txt: wrong"),
        ("wrong\n b", f"{path}: wrong\n b"),
        ("b.txt", f"{path}: b.txt"),
    ):
        with pytest.raises(UnifiedError) as raised, naming(path):
            raise UnifiedError(message)
        assert raised.value.details == says
    with pytest.raises(ZeroDivisionError), naming(path):
        raise ZeroDivisionError
    with naming(path):
        pass


# ---------------------------------------------------------------- several problems


def of(*added):
    problems = Problems()
    problems.extend(added)
    return problems


@pytest.mark.parametrize(
    ("places", "named"),
    [
        (["line 3"], "line 3"),
        (["somewhere"], "somewhere"),
        (["line 3", "line 5"], "2 lines (3, 5)"),
        (["a.txt, row 3", "a.txt, row 4", "a.txt, row x-1"], "a.txt, 3 rows (3, 4, x-1)"),
        (["item 1", "item 2", "item 3", "item 4"], "4 items (1, 2, 3, ...)"),
        (["here", "there"], "2 times (here, there)"),
        (["here", "there", "anywhere", "else"], "4 times (here, there, anywhere, ...)"),
        ([f"line {n}" for n in range(1, 1201)], "1,200 lines (1, 2, 3, ...)"),
        ([f"at {n}." for n in range(1, 1201)], "1,200 times (at 1., at 2., at 3., ...)"),
        (["a\nb, line 3", "a\nb, line 4"], "a\nb, 2 lines (3, 4)"),
    ],
)
def test_equal_problems_are_told_once_with_their_places(places, named):
    problems = of(*((place, "wrong") for place in places))
    assert str(problems) == f"{named}: wrong" and len(problems) == len(places)


def test_problems_of_two_files_and_different_ones_are_told_apart():
    problems = of(("a, line 1", "wrong"), ("b, line 1", "wrong"), ("a, line 2", "bad"), ("a, line 3", "wrong"))
    assert str(problems) == "a, 2 lines (1, 3): wrong; b, line 1: wrong; a, line 2: bad"


def test_a_field_that_rows_lack_is_one_problem_whatever_else_they_have():
    problems = of(
        ("line 1", MissingField("q", ["a"])), ("line 2", MissingField("q", ["b"])), ("line 3", "no field 'q'")
    )
    assert str(problems) == "3 lines (1, 2, 3): no field 'q'; its fields: 'a'"


def test_ten_different_problems_are_named_and_the_others_counted():
    ten = [(f"line {n}", f"wrong {n}") for n in range(10)]
    named = "; ".join(f"{place}: {problem}" for place, problem in ten)
    assert str(of(*ten)) == named
    more = [(f"line {n % 7}", f"wrong {n % 13}") for n in range(10, 1400)]
    problems = of(*ten, *more)
    assert len(problems) == 1400
    counted = sum(1 for n in range(10, 1400) if n % 13 > 9)
    assert str(problems).endswith(f"; and {counted} more") and ": wrong 9; and" in str(problems)
    with pytest.raises(SeveralProblems) as raised:
        problems.check()
    said = str(raised.value)
    inside, _, rest = said.partition("; and ")
    assert len(said) <= 300 and int(rest.removesuffix(" more").replace(",", "")) + sum(
        int(part.split(" ")[0].replace(",", "")) for part in inside.split("; ")
    ) == len(problems)


def test_a_refusal_has_what_stands_before_and_behind_and_none_comes_of_no_problem():
    of().check("before", "behind")
    with pytest.raises(SeveralProblems) as raised:
        of(("line 1", "a"), ("line 2", "b")).check(before="x: ", behind="; then")
    assert str(raised.value) == raised.value.details == "x: line 1: a; line 2: b; then"
    with pytest.raises(SeveralProblems) as raised:
        of(("line 1", "a")).check()
    assert str(raised.value) == "line 1: a" == str(SeveralProblems("", [("line 1: a", 1)], 0))


def test_as_many_problems_are_told_as_fit_into_300_characters():
    first = "a" * 200
    for rest, fits in ((98, True), (99, False)):
        error = SeveralProblems("", [(first, 2), ("b" * rest, 3)], 0)
        assert str(error) == (f"{first}; {'b' * rest}" if fits else f"{first}; and 3 more")
        assert error.details == f"{first}; {'b' * rest}"
    assert str(SeveralProblems("", [("a", 2), ("b", 3), (first * 2, 4)], 1)) == "a; b; and 5 more"
    long = SeveralProblems("x: ", [("a" * 400, 1), ("b", 5)], 1000, "; behind")
    assert str(long) == one_line(f"x: {'a' * 400}; and 1,005 more; behind")
    assert str(long).endswith("a; and 1,005 more; behind") and len(str(long)) == 300


def test_several_problems_come_whole_from_another_process():
    error = SeveralProblems("x: ", [("a" * 400, 1), ("b", 5)], 1000, "; behind")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.details) == (SeveralProblems, str(error), error.details)


def test_the_first_few_of_a_list_are_named():
    letters = list("abcdefghijkl")
    assert first_few(letters[:10]) == "; ".join("abcdefghij") and first_few([]) == ""
    assert first_few(letters) == f"{'; '.join('abcdefghij')}; and 2 more"
    assert first_few(letters[:3], 2) == "a; b; and 1 more" and first_few(letters[:2], 2) == "a; b"


@pytest.mark.parametrize(
    ("name", "known", "ratio", "hint"),
    [
        ("abcdefghij", "abcdefgxyz", 0.7, " (did you mean 'abcdefgxyz'?)"),
        ("abcde", "abcxy", 0.6, ""),
        ("abcdefghi", "abcdefxyz", 2 / 3, ""),
    ],
)
def test_a_known_name_is_hinted_at_where_seven_tenths_are_equal(name, known, ratio, hint):
    assert difflib.SequenceMatcher(None, name, known).ratio() == pytest.approx(ratio)
    assert nearest(name, iter([known])) == hint and nearest(name, []) == ""
    assert nearest(name, [known, name[:-1] + "!"]) == f" (did you mean {name[:-1] + '!'!r}?)"
