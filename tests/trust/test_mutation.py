"""Mutation testing on a tiny project of which it is known what its tests miss."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from trust.mutating import forks
from trust.mutating.collected import give_code
from trust.mutating.coverage_map import Coverage
from trust.mutating.operators import mutants_of
from trust.mutating.record import Record
from trust.mutation import EQUIVALENT, UNTRIED, Results, drawn, equivalents, main, put_on_record, status

ROOT = Path(__file__).resolve().parents[2]

CODE = '''"""Rules."""

from functools import cache

from small.bounds import LEAST

LIMIT = 3
UNREAD = 7


def twice(function):
    return lambda number: 2 * function(number)


@twice
def below(number: int, limit: int = LIMIT) -> int:
    """Counts 0 and 1."""
    return LEAST <= number < limit


def unused(number):
    return number


def at_import(number):
    return number + 7


def forever(number):
    while number > 0:
        number = number - 1
    return number
'''

TESTS = """import pytest
from small import rules


@pytest.fixture(scope="module")
def two():
    return rules.below(2)


MADE = rules.at_import(1)


def test_made():
    assert MADE == 8


def test_far():
    assert rules.below(0) == rules.below(1) == 2 and rules.below(9) == 0


def test_fixture(two):
    assert two == 2


def test_end():
    assert rules.forever(3) == 0


def test_clock(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: -1e6)
    assert rules.below(0) == 2


def test_template():  # as templates run: lines of a file that is no module
    exec(compile("made = 1", rules.__file__.replace("rules.py", "page.html"), "exec"))
"""

#: Mistakes that the tests above do not notice: 3 is in none of them.
EDGE = {"line 7, constant: 3 -> 4", "line 18, comparison: < -> <="}
MISSED = {*EDGE, "line 8, constant: 7 -> 8", "line 22, return value: number -> None"}

RUN = """
import sys
from pathlib import Path
from trust import mutation
from trust.mutating import forks
forks.preload(("pytest",))
root = Path(sys.argv[1])
modules = ["small/bounds.py", "small/rules.py"]
lines = mutation.run(modules, ["tests/test_rules.py"], 0, 1, root / "kept", root, ["small"], spare=2)
print(mutation.report(lines))
"""


LOOPS = """
import resource, sys
from pathlib import Path
from trust.mutating import forks
tests = [f"test_loop.py::{name}" for name in ("test_first", "test_second", "test_forever")]
most = forks.TimeOfEachTest(dict.fromkeys(tests, 2.0))
for words in (tests[:2], tests):
    print(forks.run_pytest(Path(sys.argv[1]), words, 300, plugins=[most]).status)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime < 60)
"""


@pytest.fixture
def project(tmp_path):
    for name, text in (
        ("small/__init__.py", ""),
        ("small/rules.py", CODE),
        ("small/bounds.py", "LEAST = 0\n"),
        ("small/page.html", "made"),
        ("tests/test_rules.py", TESTS),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".gitignore").write_text("kept\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def mutated(project):
    words = [sys.executable, "-c", RUN, str(project)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("git"), reason="git lists the files of the project")
def test_what_tests_miss_is_found_and_nothing_is_run_twice(project):
    said = mutated(project)
    lines = [json.loads(line) for line in (project / "kept" / "results.jsonl").read_text().splitlines()]
    assert {line["said"] for line in lines if line["status"] in ("survived", "no tests")} == MISSED
    assert {line["line"] for line in lines if line["status"] == "no tests"} == {22}
    (slow,) = [line for line in lines if line["said"] == "line 31, arithmetic: - -> +"]
    assert slow["status"] == "timed out"
    assert (project / "small" / "rules.py").read_text() == CODE
    assert any("decorator removed" in line["said"] and line["status"] == "killed" for line in lines)
    # With another test only what was missed runs again, and what it sees is noticed.
    more = TESTS + "\n\ndef test_edge():\n    assert rules.below(3) == 0\n"
    (project / "tests" / "test_rules.py").write_text(more)
    again = [line.split(" | ") for line in mutated(project) if line.startswith("small/rules.py | ")]
    assert {mistake for _, mistake, *_ in again} == MISSED
    assert {mistake for _, mistake, status, _ in again if status == "killed"} == EDGE
    assert said[-1].startswith(f"all: {len(lines)} mutants, ")
    # What is on record is not run again, though its results are lost.
    record = Record(project / "tried.jsonl")
    kept = Results(project / "kept" / "results.jsonl", "")
    assert len(put_on_record(["small/bounds.py", "small/rules.py"], kept, record, project)) == 2
    record.write(["small/bounds.py", "small/rules.py"])
    kept.file.unlink()
    again = [line.split(" | ")[1] for line in mutated(project) if line.startswith("small/rules.py | ")]
    assert {*again} == MISSED - EDGE
    # Lines are noted again where a module that the tests import has changed or what tests share, not where another has.
    for changed, text, noted in (
        ("small/apart.py", "UNREAD = 1\n", False),
        ("small/bounds.py", "LEAST = 0  # another text\n", True),
        ("tests/conftest.py", "", True),
    ):
        (project / changed).write_text(text)
        assert any(line.startswith("lines of tests/test_rules.py ") for line in mutated(project)) == noted


@pytest.mark.skipif(not shutil.which("git"), reason="git lists the files of the project")
@pytest.mark.parametrize("body", ["open('once', 'x')", "assert os.getpid() == PID"])
def test_mistakes_that_were_noticed_by_tests_that_fail_without_them_are_not_kept(project, body):
    """One fails from its second run on, the other in a fork of the process that has collected it."""
    # It takes a second, so that quicker tests notice the mistakes in bounds.py before it.
    before = "\n\nimport os, time\nPID = os.getpid()\n\n\ndef test_wrong():\n    rules.alone(1)\n    time.sleep(1)\n"
    wrong = f"{before}    {body}\n"
    (project / "tests" / "test_rules.py").write_text(TESTS + wrong)
    with (project / "small" / "rules.py").open("a") as rules:  # what no other test runs
        rules.write("\n\ndef alone(number):\n    return number + 1\n")
    said = mutated(project)
    lines = (project / "kept" / "results.jsonl").read_text().splitlines()
    assert {json.loads(line)["module"] for line in lines} == {"small/bounds.py"}
    (at,) = [number for number, line in enumerate(said) if line.endswith("; its mistakes will be run again")]
    assert said[at].startswith("small/rules.py: tests fail without a mistake") and "test_wrong" in "".join(said[at:])
    (untried,) = re.findall(r", ([0-9]+) not tried$", said[-1])
    assert 10 < int(untried) == int(re.search(r"^all: ([0-9]+) mutants", said[-1])[1]) - len(lines)


def test_mistakes_that_were_not_tried_make_the_status_1():
    assert status(Counter({"killed": 98, "survived": 2})) == 0
    assert status(Counter({"killed": 97, "survived": 3})) == 1
    assert status(Counter({"killed": 999, UNTRIED: 1})) == 1


def test_functions_get_the_code_of_another_source():
    source = (
        "class Rules:\n"
        "    least = 1\n"
        "    @property\n"
        "    def two(self):\n        return self.least + 1\n"
        "    def more(self):\n        return [self.two + number for number in (1, 2)]\n"
        "def far():\n    def near():\n        return 5\n    return near()\n"
        "def far_again():\n    return 6\n"
        "def counting(call):\n    return lambda number: call() + number\n"
        "counted = counting(far)\n"
        "gone = far_again.__name__\n"
        "del far_again\n"
    )
    space = {}
    exec(compile(source, "rules.py", "exec"), space)
    functions = [space["far"], space["Rules"].__dict__["two"].fget, space["Rules"].more, space["counted"]]
    for old, new, found, values in (
        ("least + 1", "least + 2", True, (3, [4, 5], 5, 6)),
        ("(1, 2)", "(1,)", True, (2, [3], 5, 6)),
        ("return 5", "return 7", True, (2, [3, 4], 7, 8)),
        ("return 6", "return 8", False, (2, [3, 4], 5, 6)),
        ("call() + number", "call() - number", True, (2, [3, 4], 5, 4)),
        ("least = 1", "least = 9", False, (2, [3, 4], 5, 6)),
    ):
        other = source.replace(old, new)
        assert give_code(functions, "rules.py", source, other) == found, old
        rules = space["Rules"]()
        assert (rules.two, rules.more(), space["far"](), space["counted"](1)) == values, old
        assert give_code(functions, "rules.py", other, source) == found
    assert give_code(functions, "not_imported.py", source, source.replace("return 6", "return 8"))


def test_every_kind_of_mistake_is_made_and_no_text_is_touched():
    found = {(one.operator, one.before, one.after) for one in mutants_of(CODE)}
    assert ("decorator removed", "@twice", "nothing") in found
    assert ("comparison", "<", "<=") in found
    assert not any("Rules" in before or "Counts" in before or "int" in before for _, before, _ in found)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("f(a, b=c, **d)\n", {"pass", "f(a, **d)"}),
        ("f(a=b)\n", {"pass", "f()"}),
        ("x = a < b <= c\n", {"x = a <= b <= c", "x = a < b < c"}),
        ("x = a not in b\n", {"x = a in b"}),
        ("x = a or b or c\n", {"x = a and b and c"}),
        ("x = ('é', # -\n a - b)\n", {"x = ('éXX', # -\n a - b)", "x = ('é', # -\n a + b)"}),
        ("x = -zip(a, b, strict=True)\n", {"x = zip(a, b, strict=True)"}),
        ("x = {'a': True, 'two words': 0.5}\n", {
            "x = {'aXX': True, 'two words': 0.5}", "x = {'a': False, 'two words': 0.5}",
            "x = {'a': True, 'two words': 1.0}"}),
        ("a.b = c\n", {"pass"}),
        ("a += 1\n", {"pass", "a -= 1", "a += 2"}),
        ("def f(x: int = 3) -> 'T':\n  'text'\n  raise ValueError(f'{x} is 4')\n", {
            "def f(x: int = 4) -> 'T':\n  'text'\n  raise ValueError(f'{x} is 4')",
            "def f(x: int = 3) -> 'T':\n  'text'\n  pass"}),
        ("@cache\n@register('a')\ndef f():\n  return None\n", {
            "@cache\n\ndef f():\n  return None", "@cache\n@register('aXX')\ndef f():\n  return None"}),
        ("if a:\n  logger.info('x', 3)\n  assert b > 4\n", {"if (not a):\n  logger.info('x', 3)\n  assert b > 4"}),
        ("@dataclass(frozen=True)\nclass A:\n  b: int = 1\n", {
            "\nclass A:\n  b: int = 1", "@dataclass(frozen=True)\nclass A:\n  b: int = 2"}),
        ("import a\n__all__ = ['b']\nT = TypeVar('T', bound='B')\nx: int | None\nwarn('c', 2)\n", set()),
    ],
)  # fmt: skip
def test_mutants_typed_out(source, expected):
    assert {one.applied(source).removesuffix("\n") for one in mutants_of(source) if one.is_valid(source)} == expected


def test_a_test_that_takes_too_long_ends_before_the_time_of_all_is_up(tmp_path):
    """In the fork, the time of each test begins anew."""
    (tmp_path / "test_loop.py").write_text(
        "import time\n"
        "def test_first():\n    begun = time.process_time()\n    while time.process_time() < begun + 1.5: pass\n"
        "def test_second():\n    test_first()\n"
        "def test_forever():\n    while True: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", LOOPS, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["survived", "timed out", "True"], done.stderr


def test_a_line_that_a_kill_has_cut_is_run_again(tmp_path):
    mutants = mutants_of(CODE)[:2]
    results = Results(tmp_path / "results.jsonl", "code")
    for mutant in mutants:
        results.add("small/rules.py", mutant, "survived", 12)
    results.file.write_text(results.file.read_text()[:-9])
    again = Results(results.file, "code")
    assert [again.of("small/rules.py", mutant, 12) is None for mutant in mutants] == [False, True]
    assert Results(results.file, "other code").of("small/rules.py", mutants[0], 12) is None


def test_what_was_missed_is_run_again_with_more_seconds_of_tests_and_what_was_noticed_is_not(tmp_path):
    missed, seen = mutants_of(CODE)[:2]
    results = Results(tmp_path / "results.jsonl", "code")
    results.add("small/rules.py", missed, "survived", 12)
    results.add("small/rules.py", seen, "killed", 12)
    again = Results(results.file, "code")
    kept = [[again.of("small/rules.py", one, seconds) is not None for one in (missed, seen)] for seconds in (12, 13)]
    assert kept == [[True, True], [False, True]]


def test_code_that_was_compiled_of_a_mistake_is_not_run_behind_it(tmp_path):
    """Sources of one size, read within one second."""
    file = tmp_path / "one.py"
    file.write_text("print(1)\n")
    words, environment = [sys.executable, "-c", "import one"], {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def printed():
        return subprocess.run(words, env=environment, capture_output=True, check=True).stdout

    for expected in (b"2\n", b"3\n", b"4\n"):
        assert printed() == b"1\n"
        (compiled,) = (tmp_path / "__pycache__").iterdir()
        code, written = compiled.read_bytes(), file.stat().st_mtime_ns
        with forks.changed(file, f"print({expected.decode().strip()})\n"):
            assert printed() == expected
            late = compiled.read_bytes()
        assert compiled.read_bytes() == code and file.stat().st_mtime_ns == written
        compiled.write_bytes(late)  # as a process does that has outlived its test


def test_the_record_holds_for_the_parts_of_a_module_that_stay_as_they_are(tmp_path):
    source = (
        "LEAST = 0\n\n\n@cache\n@traced\ndef below(number):\n    return number < LEAST\n\n\ndef two():\n    return 2\n"
    )
    mutants = mutants_of(source)
    missed = [one for one in mutants if one.operator == "comparison" or "2 -> 3" in one.said]
    noticed = {(one.part, one.key) for one in mutants if one not in missed}
    written = Record(tmp_path / "tried.jsonl")
    written.add("small/rules.py", mutants, noticed)
    written.add("small/gone.py", mutants, noticed)
    written.write(["small/new.py", "small/rules.py"])
    record = Record(written.file)
    assert record.noticed("small/rules.py", mutants) == noticed and not record.noticed("small/gone.py", mutants)
    # Another line before a part changes nothing; another decorator or line in it makes all of it new.
    for old, new, stay in (
        ("LEAST = 0", "import os\n\nLEAST = 0", {1, 5, 7, 11}),
        ("@traced", "@counted", {1, 11}),
        ("return 2", "return 2  # two", {1, 5, 7}),
    ):
        changed = mutants_of(source.replace(old, new))
        found = record.noticed("small/rules.py", changed)
        was = {one.said: one.line for one in mutants}
        assert {was[one.said] for one in changed if (one.part, one.key) in found} == stay, old
    fewer = [one for one in mutants if one.line != 11 or one in missed]
    assert {one.line for one in fewer if (one.part, one.key) in record.noticed("small/rules.py", fewer)} == {1, 5, 7}


def test_what_was_noticed_of_a_module_is_put_on_record(tmp_path):
    (tmp_path / "rules.py").write_text(CODE)
    *mutants, last = drawn("rules.py", CODE, 0, 0, set())
    results, record = Results(tmp_path / "results.jsonl", "code"), Record(tmp_path / "tried.jsonl")
    assert put_on_record(["rules.py"], results, record, tmp_path) == [] and record.parts == {}
    for number, mutant in enumerate(mutants):
        results.add("rules.py", mutant, ("killed", "timed out", "survived", "no tests")[number % 4], 12)
    missed = len(mutants) // 4 + (len(mutants) + 1) // 4
    noticed = {(one.part, one.key) for number, one in enumerate(mutants) if number % 4 < 2}
    for untried in (1, 0):
        (said,) = put_on_record(["rules.py"], Results(results.file, ""), record, tmp_path)
        assert said == f"rules.py: {len(mutants_of(CODE))} mistakes, {missed} missed, {untried} not tried"
        seen = {(one.part, one.key) for one in mutants_of(CODE)} & record.noticed("rules.py", mutants_of(CODE))
        assert seen == noticed
        results.add("rules.py", last, "killed", 12)
        noticed.add((last.part, last.key))


@pytest.mark.parametrize("words", [["--seconds", "0"], ["--seconds", "-1"], ["--sample", "-1"]])
def test_less_than_nothing_cannot_be_asked_for(words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mutation", "--show", "unified/errors.py", *words])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err.endswith("--sample must be at least 0, --seconds more than 0\n")


def test_constants_are_tried_on_the_tests_of_the_package_that_import_the_module():
    files = ["unit/a/b/test_x.py", "unit/a/test_y.py", "unit/c/test_z.py", "unit/test_top.py", "unit/a/b/c/test_w.py"]
    tests = {f"tests/{file}::test": 1.0 + number for number, file in enumerate(files)}
    importers = {1: {f"tests/{file}" for file in files}}
    modules = {"unified/a/b/one.py": ["x", "y"], "unified/c/one.py": ["z"], "unified/one.py": ["top"]}
    for module, found in modules.items():
        covered = Coverage(tests, importers={module: importers})
        assert covered.concerned(module, []) == [one for one in tests if one.split("test_")[1].split(".")[0] in found]
    covered = Coverage(
        tests, tests={"a/one.py": {3: {"tests/unit/c/test_z.py::test"}}}, importers={"a/one.py": importers}
    )
    assert covered.concerned("a/one.py", []) == ["tests/unit/a/test_y.py::test", "tests/unit/c/test_z.py::test"]
    assert covered.runs_at_import("a/one.py", [2, 1]) and not covered.runs_at_import("a/one.py", [2, 3])


def test_the_tests_of_a_module_come_before_those_of_its_package_and_quick_ones_before_slow_ones():
    files = ["integration/test_one.py", "unit/a/test_two.py", "unit/a/test_one_more.py", "unit/test_one.py"]
    tests = {f"tests/{file}::{name}": 1.0 + number for number, file in enumerate(files) for name in ("x", "y")}
    tests["tests/unit/a/test_one_more.py::y"] = 0.1
    covered = Coverage(tests, tests={"unified/a/one.py": {3: {*tests}}})
    found = [one.removeprefix("tests/") for one in covered.concerned("unified/a/one.py", [3])]
    others = ("unit/a/test_two.py", "integration/test_one.py", "unit/test_one.py")
    own = [f"unit/a/test_one_more.py::{name}" for name in "yx"]
    assert found == own + [f"{file}::{name}" for file in others for name in "xy"]
    covered.seconds["tests/unit/a/test_two.py::y"] = 0.5  # a quarter of those of the module's slow test is enough
    found = covered.concerned("unified/a/one.py", [3])
    assert [one.rpartition("/")[2] for one in found[:3]] == [
        "test_one_more.py::y", "test_two.py::y", "test_one_more.py::x",
    ]  # fmt: skip


def test_the_nth_case_of_a_test_beside_those_of_the_module_comes_behind_others_that_take_n_times_n_as_long():
    file = "tests/unit/a/test_two.py"
    cases = [f"{file}::cases[{case}]" for case in "abc"]
    tests = {**dict.fromkeys(cases, 1.0), f"{file}::other": 3.5, f"{file}::slow": 8.0}
    covered = Coverage(tests, tests={"unified/a/one.py": {3: {*tests}}})
    expected = [cases[0], f"{file}::other", cases[1], f"{file}::slow", cases[2]]
    assert covered.concerned("unified/a/one.py", [3]) == expected
    covered.tests["unified/a/two.py"] = covered.tests["unified/a/one.py"]
    assert covered.concerned("unified/a/two.py", [3]) == [*cases, f"{file}::other", f"{file}::slow"]


def test_equal_mistakes_in_equal_lines_are_numbered_in_the_order_of_the_module():
    source = "def first(a):\n    return 0, 0\n\n\ndef second(a):\n    return 0, 0\n"
    said = [(one.line, one.said) for one in mutants_of(source) if one.operator == "constant"]
    numbers = ["", " (2)", " (3)", " (4)"]
    assert said == [(2 + 4 * (i > 1), f"constant: 0 -> 1{number}") for i, number in enumerate(numbers)]


def test_every_entry_of_the_list_of_equivalent_mutants_names_one():
    listed = equivalents()
    lines = [line for line in EQUIVALENT.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    assert len(lines) == 4 * len(listed), "some entries stand twice"
    found = {
        (module, one.text, one.said)
        for module in {module for module, _, _ in listed}
        for one in mutants_of((ROOT / module).read_text(encoding="utf-8"))
    }
    assert listed <= found, listed - found


def test_constants_are_tried_on_quick_tests_first_whether_they_run_the_module_or_not():
    tests = {"tests/unit/a/test_one.py::slow": 9.0, "tests/unit/a/test_one.py::quick": 0.1}
    covered = Coverage(tests, {}, {"unified/a/one.py": {5: {"tests/unit/a/test_one.py::slow"}}})
    covered.importers = {"unified/a/one.py": {1: {"tests/unit/a/test_one.py"}}}
    assert covered.concerned("unified/a/one.py", [])[0].endswith("quick")
    assert covered.concerned("unified/a/one.py", [5]) == ["tests/unit/a/test_one.py::slow"]


@pytest.mark.parametrize("near", ["test_bert_files.py::test", "test_all.py::test_bert", "test_all.py::test[bert-1]"])
def test_a_test_is_near_to_a_module_whose_name_begins_a_word_of_its_own_or_of_its_file(near):
    tests = {"tests/unit/a/test_roberta.py::test": 1.0, f"tests/unit/a/{near}": 2.0}
    covered = Coverage(tests, {}, {"unified/a/bert.py": {5: {*tests}}})
    assert covered.concerned("unified/a/bert.py", [5])[0] == f"tests/unit/a/{near}"
