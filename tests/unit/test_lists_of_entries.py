"""Lists in the notation ``name=type(setting=value, …):weight``: entries, weights, settings, and what is refused."""

import random
from collections import namedtuple
from dataclasses import FrozenInstanceError, dataclass, field

import pytest

from unified.errors import UnifiedError
from unified.notation import (
    SHAPE,
    check_settings,
    imported,
    is_import_path,
    parse_entries,
    read_settings,
    require_distinct,
    split_entries,
)


def refusal(problem):
    return UnifiedError(f"thing: {problem}")


def refused(function, *arguments, **options):
    with pytest.raises(UnifiedError) as raised:
        function(*arguments, **options)
    return str(raised.value)


# ---------------------------------------------------------------- entries


def parts(text, **options):
    return [(one.name, one.type, one.inside, one.weight) for one in parse_entries(text, "head", **options)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ", []),
        ("a", [(None, "a", "", 1)]),
        ("a, b:2", [(None, "a", "", 1), (None, "b", "", 2)]),
        ("x=a:0.5", [("x", "a", "", 0.5)]),
        (" x = a : 1e3 ", [("x", "a", "", 1000)]),
        ("a()", [(None, "a", "", 1)]),
        ("a():3", [(None, "a", "", 3)]),
        ("a(b=1, c=(2, 3)) : 4, d", [(None, "a", "b=1, c=(2, 3)", 4), (None, "d", "", 1)]),
        ("x=a(b=':,)('):2", [("x", "a", "b=':,)('", 2)]),
        ("squad2.0(x=[1]):.5", [(None, "squad2.0", "x=[1]", 0.5)]),
        ("p.q:C(b=1):2", [(None, "p.q:C", "b=1", 2)]),
        (r"a(b='\\'), c", [(None, "a", r"b='\\'", 1), (None, "c", "", 1)]),  # a backslash, and the end of the text
    ],
)
def test_entries_have_a_name_a_type_settings_and_a_weight(text, expected):
    assert parts(text) == expected


@pytest.mark.parametrize(
    ("text", "classes", "expected"),
    [
        ("p.q:C", True, (None, "p.q:C", "", 1)),
        ("p.q:C:2", True, (None, "p.q:C", "", 2)),
        ("x=p.q: C :2", True, None),
        ("p.q:3", True, (None, "p.q", "", 3)),
        ("known:3", True, (None, "known", "", 3)),
        ("x=known:3", True, ("x", "known", "", 3)),
        ("x=p:C", True, ("x", "p:C", "", 1)),
        ("p.q:2", False, (None, "p.q", "", 2)),
    ],
)
def test_behind_a_colon_stands_a_class_or_a_weight(text, classes, expected):
    if expected is None:
        assert refused(parse_entries, text, "head", ["known"], classes=classes) == f"head {text!r}: expected {SHAPE}"
    else:
        assert parts(text, known=["known"], classes=classes) == [expected]


def test_behind_a_colon_stands_a_weight_where_no_class_may_be_named():
    says = "head 'p:C': the weight after the colon must be a number, got 'C'"
    assert refused(parse_entries, "p:C", "head") == refused(parse_entries, "p:C", "head", ["p"], classes=True) == says
    assert refused(parse_entries, "x=p:C", "head", ["p"], classes=True).endswith("must be a number, got 'C'")
    assert refused(parse_entries, "p:C:D", "head", classes=True).endswith("must be a number, got 'D'")
    assert refused(parse_entries, "p:1:2", "head", classes=True).endswith("must be a number, got '1:2'")


@pytest.mark.parametrize("weight", ["-0.1", "inf", "nan", "-inf", "-1"])
def test_a_weight_is_a_finite_number(weight):
    says = f"task 'a:{weight}': the weight must be a finite number"
    assert refused(parse_entries, f"b, a:{weight}", "task") == f"{says} above 0, got {weight}"
    assert refused(parse_entries, f"a:{weight}", "task", zero=True) == f"{says} of at least 0, got {weight}"


def test_a_weight_may_be_zero_where_that_is_allowed():
    assert parts("a:0", zero=True) == [(None, "a", "", 0)] and parts("a:1e-300, b:0.5", zero=True)[1][3] == 0.5
    assert (
        refused(parse_entries, "a:0.0", "task") == "task 'a:0.0': the weight must be a finite number above 0, got 0.0"
    )
    assert refused(parse_entries, "a(b=1):", "task").endswith("the weight after the colon must be a number, got ''")


@pytest.mark.parametrize("text", ["=a", "x=", "x=y=a", "a b", "1-x=a", "a.b=c d", "(b=1)", ":2", "ä=a(", "a:Ä(b=1)"])
def test_an_entry_of_another_shape_is_refused(text):
    closed = text + ")" * text.endswith("(")
    assert refused(parse_entries, closed, "head", classes=True) == f"head {closed!r}: expected {SHAPE}"
    assert SHAPE == "[name=]type[(setting=value, …)][:weight]"


def test_nothing_but_a_weight_stands_behind_settings():
    assert refused(parse_entries, "a(b=1) c", "head") == f"head 'a(b=1) c': 'c' after the settings; expected {SHAPE}"


def test_an_entry_gives_its_settings_and_refusals_that_name_it():
    (entry,) = parse_entries("x=a(b=1, c='d'):2", "head")
    assert entry.settings == {"b": 1, "c": "d"} and entry.type_with_settings == "a(b=1, c='d')"
    assert (entry.what, entry.text) == ("head", "x=a(b=1, c='d'):2")
    assert str(entry.refusal("wrong")) == "head \"x=a(b=1, c='d'):2\": wrong"
    (bare,) = parse_entries("y=a:3", "head")
    assert bare.type_with_settings == "a" and bare.settings == {}
    with pytest.raises(FrozenInstanceError):
        bare.weight = 1
    (wrong,) = parse_entries("a(1)", "head")
    with pytest.raises(UnifiedError) as raised:
        print(wrong.settings)
    assert str(raised.value).startswith("head 'a(1)': settings must be name=value, ")


def test_names_must_differ():
    require_distinct("head", [])
    require_distinct("head", ["a", "b"])
    says = "two heads are called b; give each a name of its own, as in other=b"
    assert refused(require_distinct, "head", ["a", "b", "c", "b"]) == says


# ---------------------------------------------------------------- cuts at commas


def random_entry(rng, depth=0):
    """Text with brackets that pair and quoted signs, whose commas all stand inside."""
    made = ""
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(4) if depth < 3 else 0
        if kind == 1:
            opened, closed = rng.choice(["()", "[]", "{}"])
            made += opened + ",".join(random_entry(rng, depth + 1) for _ in range(rng.randint(1, 3))) + closed
        elif kind == 2:
            mark = rng.choice("'\"")
            other = "'\"".replace(mark, "")
            signs = [*"a,([{)]}", other, "\\" + mark, "\\\\"]  # the last two: a mark and a backslash that are escaped
            made += mark + "".join(rng.choice(signs) for _ in range(rng.randint(0, 4))) + mark
        else:
            made += rng.choice("ab=:. ") + rng.choice("cd")
    return made


def test_a_list_is_cut_at_the_commas_outside_of_brackets_and_quotation_marks():
    rng = random.Random(0)
    for _ in range(400):
        entries = [random_entry(rng).strip() for _ in range(rng.randint(1, 5))]
        spaced = rng.choice([",", " , ", ",\n"]).join(entries)
        assert split_entries(f" {spaced} ", "heads") == entries


def test_no_other_character_has_a_meaning():
    plain = sorted({*map(chr, range(33, 256))} - {*"()[]{},'\""} - {c for c in map(chr, range(256)) if c.isspace()})
    assert split_entries(",".join(plain), "heads") == plain and len(plain) > 200


@pytest.mark.parametrize("text", ["a(", "a)", "a(b,c", "a'b", 'a"b', "a'b\\'", "a(']", "a)(", "(a))(", "[a))]", "a,b("])
def test_brackets_and_quotation_marks_must_pair(text):
    says = f"heads {text!r}: a bracket or quotation mark is not closed or not opened"
    assert refused(split_entries, text, "heads") == says


def test_no_entry_may_be_missing_and_1000_may_be_there():
    assert split_entries(" , ,", "heads") == split_entries("", "heads") == []
    for text in ("a,", ",a", "a,,b", "a, ,b"):
        assert refused(split_entries, text, "heads") == f"heads {text!r}: nothing stands on one side of a comma"
    assert split_entries(",".join("a" * 1000), "heads") == ["a"] * 1000
    says = "heads: 1,001 are listed; at most 1,000 may be"
    assert refused(split_entries, ",".join("a" * 1001), "heads") == says
    assert refused(parse_entries, ",".join("a" * 1001), "head") == says


# ---------------------------------------------------------------- settings


def test_settings_are_python_literals():
    assert read_settings("", refusal) == {}
    text = "a=1, b=-0.5, c='x, y=(', d=(1, [2, {'e': None}]), f=True,"
    assert read_settings(text, refusal) == {"a": 1, "b": -0.5, "c": "x, y=(", "d": (1, [2, {"e": None}]), "f": True}


@pytest.mark.parametrize(
    "text",
    ["1", "a", "a=1, 2", "**{'a': 1}", "a=", "a=1)(b=2", "a=1).b(c=2", "=1", "a b", "\0", "*a", "-" * 9999 + "1"],
)
def test_settings_of_another_form_are_refused(text):
    says = "thing: settings must be name=value, separated by commas, values Python literals"
    assert refused(read_settings, text, refusal) == says


@pytest.mark.parametrize("value", ["b", "print()", "1 + 1", "{[]: 1}", "f'{a}'", "[x for x in ()]", "lambda: 1"])
def test_values_that_are_no_literals_are_refused(value):
    assert refused(read_settings, f"c=1, a={value}", refusal) == "thing: the value of a is not a Python literal"


def test_a_setting_that_is_set_twice_is_refused():
    assert refused(read_settings, "a=1, b=2, a=1", refusal) == "thing: a is set twice"


def test_settings_are_the_fields_and_data_may_give_those_without_a_default():
    @dataclass
    class Own:
        needed: int
        size: int = 3
        made: list[int] = field(default_factory=list)
        after: int = field(default=0, init=False)

    check_settings(Own, "own", ["needed"], refusal)
    for settings in (["size"], ["needed"], []):
        check_settings(Own, "own", iter(settings), refusal, from_data=iter(["needed", "other"]))
    check_settings(Own, "own", ["needed", "size", "made"], refusal)
    listed = "its settings are needed, size, made"
    assert (
        refused(check_settings, Own, "own", ["needed", "siz"], refusal)
        == f"thing: no setting 'siz' (did you mean 'size'?); {listed}"
    )
    assert refused(check_settings, Own, "own", ["needed", "after"], refusal) == f"thing: no setting 'after'; {listed}"
    says = f"thing: no setting 'other'; {listed}"
    assert refused(check_settings, Own, "own", iter(["other"]), refusal, ["needed", "other"]) == says
    assert refused(check_settings, Own, "own", ["size"], refusal) == (
        "thing: the setting needed has no default; write own(needed=…)"
    )

    @dataclass
    class Bare:
        pass

    assert refused(check_settings, Bare, "bare", ["x"], refusal) == "thing: no setting 'x'; it has none"
    other = namedtuple("other", "x")
    assert refused(check_settings, other, "other", ["x"], refusal) == (
        "thing: other is not a dataclass; its settings are fields: write @dataclass(frozen=True)"
    )


# ---------------------------------------------------------------- import paths


def test_an_import_path_is_a_module_and_a_name():
    for path in ("a:B", "a.b_c.d1:_E2", "_:_"):
        assert is_import_path(path)
    for text in (
        "a",
        "a:",
        ":B",
        "a.:B",
        ".a:B",
        "a:B:C",
        "a:B.C",
        "1a:B",
        "a:1B",
        "a b:C",
        "a:B ",
        "ä:B",
        "a-b:C",
        "",
    ):
        assert not is_import_path(text)


def test_an_import_that_fails_is_explained():
    assert imported("collections:namedtuple", "thing", (), refusal) is namedtuple
    shown = "known are x, y, and any package.module:Class"
    assert refused(imported, "none", "thing", ["x", "y"], refusal) == f"thing: no such thing; {shown}"
    assert refused(imported, "none", "thing", ["x"], refusal, "file.py:name").endswith(
        "known are x, and any file.py:name"
    )
    assert refused(imported, "no_such:B", "thing", [], refusal) == (
        "thing: module no_such cannot be imported (No module named 'no_such'); PYTHONPATH=. in front of the command "
        "finds modules of the current folder"
    )
    assert refused(imported, "email.no_such:B", "thing", [], refusal) == (
        "thing: module email.no_such cannot be imported (No module named 'email.no_such')"
    )
    assert refused(imported, "email:none", "thing", [], refusal) == "thing: module email has no 'none'"
