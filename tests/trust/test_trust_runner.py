"""The runner of the campaigns: what it counts, what fails, and what it does not run twice."""

import json

import pytest

from trust import mutation
from trust.cases import Broken, Case, hash_of
from trust.run import CODE, ROOT, run, summary, untried


class Attacked:
    """Cases that note their calls; the one named "bad" is broken until it is mended."""

    def __init__(self):
        self.calls, self.mended = [], False

    def case(self, name: str) -> Case:
        def check(folder):
            assert list(folder.iterdir()) == [], "a case begins with an empty folder"
            (folder / "mark").touch()
            self.calls.append(name)
            if name == "bad" and not self.mended:
                raise Broken("a bit is lost")
            if name == "crash" and not self.mended:
                raise ZeroDivisionError
            return {"kills": 2}

        return Case(name, check)

    def all(self) -> dict:
        return {"kills": [self.case(name) for name in ("good", "bad", "crash")], "other": [self.case("good")]}


def test_failures_are_counted_and_their_folders_kept(tmp_path, capsys):
    totals = run(Attacked().all(), tmp_path)
    assert totals == {"kills": {"cases": 3, "failed": 2, "kills": 2}, "other": {"cases": 1, "failed": 0, "kills": 2}}
    assert summary(totals).splitlines()[0] == "kills: 3 cases, 2 failed, 2 kills"
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [line["passed"] for line in lines] == [True, False, False, True]
    assert lines[1]["error"] == "a bit is lost" and "ZeroDivisionError" in lines[2]["error"]
    assert sorted(str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("mark")) == ["kills/1", "kills/2"]
    assert "FAILED: a bit is lost" in capsys.readouterr().out


@pytest.mark.parametrize("cut", [0, 1, 30])
def test_what_has_passed_is_not_run_again(tmp_path, cut):
    """Also when the last line was cut by a kill: its case runs again."""
    attacked = Attacked()
    run(attacked.all(), tmp_path)
    file = tmp_path / "results.jsonl"
    file.write_bytes(file.read_bytes()[: -cut or None])
    attacked.calls.clear()
    attacked.mended = True
    totals = run(attacked.all(), tmp_path)
    assert attacked.calls == ["bad", "crash"] + ["good"] * (cut > 1)
    assert totals == {"kills": {"cases": 3, "failed": 0, "kills": 6}, "other": {"cases": 1, "failed": 0, "kills": 2}}
    assert all(text.startswith("{") for text in file.read_text().splitlines())


@pytest.mark.parametrize(
    ("kills", "groups"),
    [
        ({"a | 1": 0, "a | 2": 1, "b | 1": 0}, []),
        ({"a | 1": 0, "a | 2": 0, "b | 1": 1}, ["a"]),
        ({"a | 1": 0, "b | 1": 0}, ["all"]),
        ({"a | 1": 0}, []),
    ],
)
def test_a_kill_may_miss_but_not_all_of_a_command(kills, groups, tmp_path, capsys):
    assert untried("kills", {name: {"kills": number} for name, number in kills.items()}) == groups
    cases = [Case(name, lambda folder, number=number: {"kills": number}) for name, number in kills.items()]
    for _ in range(2):  # also where all cases have passed before
        totals = run({"kills": cases, "bombs": cases}, tmp_path)
        assert totals["kills"]["failed"] == len(groups) and totals["bombs"]["failed"] == 0
        said = capsys.readouterr().out
        assert all(f"kills | {group} | FAILED: kills are 0 in all of its cases" in said for group in groups)


def test_the_hash_of_the_code_is_of_all_its_files_but_results(tmp_path):
    assert {"unified", "fairseq_plugins", "trust"} < set(CODE) and all((ROOT / folder).is_dir() for folder in CODE)
    files = ["unified/page.html.j2", "unified/a.py", "trust/list.txt"]
    for name in (*files, "trust/results/x/results.jsonl", "unified/__pycache__/a.pyc", "docs/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    before = hash_of(tmp_path, ("unified", "trust"))
    for name in ("trust/results/x/results.jsonl", "unified/__pycache__/a.pyc", "docs/a.txt"):
        (tmp_path / name).write_text("two")
    assert hash_of(tmp_path, ("unified", "trust")) == before
    for name in files:
        (tmp_path / name).write_text("two")
        assert hash_of(tmp_path, ("unified", "trust")) != before
        (tmp_path / name).write_text("one")


def test_mutation_is_run_again_by_other_tests():
    (name,) = [case.name for case in mutation.cases(False, 1)]
    assert name.endswith(f"seed 1, tests {hash_of(ROOT, ['tests'])}")
