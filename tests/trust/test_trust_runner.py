"""The runner of the campaigns: what it counts, what fails, and what it does not run twice."""

import json

import pytest

from trust.cases import Broken, Case
from trust.run import run, summary


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
