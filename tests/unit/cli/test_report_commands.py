"""`unified report`, `unified results` and `unified plugin-dir`: what they ask of the library, write and print."""

from __future__ import annotations

import importlib.util
import json
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest

import fairseq_plugins
from tests.support.commands import exit_status
from unified.cli.commands.plugin_dir import folder
from unified.errors import UnifiedError
from unified.reports.results import write_result

# ---------------------------------------------------------------- report


@pytest.fixture
def asked(tmp_path, monkeypatch) -> list[tuple]:
    """What is asked of the report of a run, in whose place a page stands."""
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    found: list[tuple] = []
    made = SimpleNamespace(html=lambda: "<p>é</p>\n")
    monkeypatch.setattr("unified.tasks.run_report.report_of", lambda *given: found.append(given) or made)
    return found


def test_a_page_is_written_into_the_folder_of_the_run_or_where_an_option_says(asked, capsys):
    assert exit_status("report", "run") == 0
    assert exit_status("report", "run", "--samples", "1", "--seed", "0", "--output", "page.htm") == 0
    assert asked == [(Path("run"), 8, 1), (Path("run"), 1, 0)]
    assert capsys.readouterr() == ("wrote run/report.html\nwrote page.htm\n", "")
    assert [path.name for path in Path("run").iterdir()] == ["report.html"]
    assert Path("run/report.html").read_bytes() == Path("page.htm").read_bytes() == "<p>é</p>\n".encode()


def test_the_name_of_the_page_is_printed_for_programs(asked, capsys):
    for options, name in (([], "run/report.html"), (["--output", "x"], "x")):
        assert exit_status("report", "run", "--json", *options) == 0
        assert json.loads(capsys.readouterr().out) == {"output": name} and Path(name).is_file()


@pytest.mark.parametrize("samples", [0, -1])
def test_at_least_one_sample_is_shown(asked, samples):
    with pytest.raises(UnifiedError) as refused:
        exit_status("report", "run", "--samples", str(samples))
    assert str(refused.value) == f"--samples must be an integer of at least 1, got {samples}"
    assert asked == [] and list(Path("run").iterdir()) == []


def test_folders_above_the_page_are_made(asked):
    assert exit_status("report", "run", "--output", "new/er/page.html") == 0
    assert Path("new/er/page.html").read_text(encoding="utf-8") == "<p>é</p>\n"


def test_the_page_of_a_run_is_made_anew_and_another_file_is_replaced_only_where_asked(asked):
    for words in ((), ("--output", "page.html", "--overwrite")):
        path = Path("page.html" if words else "run/report.html")
        path.write_text("before", encoding="utf-8")
        assert exit_status("report", "run", *words) == 0
        assert path.read_text(encoding="utf-8") == "<p>é</p>\n"
    for words, says in (
        (("--output", "page.html"), "page.html: exists already; --overwrite replaces it, or give another --output"),
        (("--overwrite",), "--overwrite has no effect without --output; add --output, or leave --overwrite out"),
    ):
        with pytest.raises(UnifiedError) as refused:
            exit_status("report", "run", *words)
        assert str(refused.value) == says
    assert len(asked) == 2


@pytest.mark.parametrize(("options", "name"), [(["--output", "run"], "run"), ([], "run/report.html")])
def test_a_folder_in_place_of_the_page_is_refused_before_the_page_is_made(asked, options, name):
    Path(name).mkdir(exist_ok=True)
    with pytest.raises(UnifiedError) as refused:
        exit_status("report", "run", *options)
    assert str(refused.value) == f"--output {name}: a folder; name a file" and asked == []


# ---------------------------------------------------------------- results of runs


@pytest.fixture
def runs(tmp_path, monkeypatch) -> None:
    """Two seeds of one run, and a run of another name that learnt at another rate."""
    monkeypatch.chdir(tmp_path)
    for run, seed, lr, accuracy in (("ours", 1, 1.0, 90.0), ("ours", 2, 1.0, 92.0), ("peer", 1, 2.0, 80.0)):
        made = Path(f"{run}{seed}")
        made.mkdir()
        write_result(
            made, task="films", run=run, scores={"valid": {"accuracy": accuracy, "f1": accuracy / 2}}, seed=seed,
            command=["x"], model={"name": "m", "sha256": None}, settings={"lr": lr}, data={}, published={},
        )  # fmt: skip


OF_MEANS = (
    "In brackets the 95 % interval of the mean by Student's t over n seeds: it says what other seeds would give on the "
    "same items, and takes their scores for normally distributed."
)


@pytest.mark.parametrize(
    ("options", "head", "ours", "peer"),
    [
        ("", "run | seeds | accuracy | f1", "ours | 1, 2 | 91.00 ± 1.41 | 45.50 ± 0.71", "peer | 1 | 80.00 | 40.00"),
        ("--measures f1", "run | seeds | f1", "ours | 1, 2 | 45.50 ± 0.71", "peer | 1 | 40.00"),
        (
            "--differences --measures f1", "run | differs in | seeds | f1", "ours | lr 1 | 1, 2 | 45.50 ± 0.71",
            "peer | lr 2 | 1 | 40.00",
        ),
        (  # the quantile of t with one degree of freedom is tan(0.475 pi) = 12.71, the standard error is 0.5
            "--intervals --measures f1", "run | seeds | f1", "ours | 1, 2 | 45.50 ± 0.71 [39.15, 51.85; n = 2]",
            "peer | 1 | 40.00",
        ),
    ],
)  # fmt: skip
def test_options_reach_the_tables_of_runs(runs, capsys, options, head, ours, peer):
    assert exit_status("results", ".", *options.split()) == 0
    lines = ["### films, valid", "", f"| {head} |", "|---" * (head.count("|") + 1) + "|", f"| {ours} |", f"| {peer} |"]
    assert capsys.readouterr().out.splitlines() == lines + (["", OF_MEANS] if "--intervals" in options else [])


def test_tables_of_runs_are_printed_for_programs(runs, capsys):
    assert exit_status("results", "ours1", "peer1", "--json", "--differences", "--measures", "f1") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() == {"tables"}
    ((ours, peer),) = [one["runs"] for one in printed["tables"]]
    assert [ours["scores"]["f1"]["mean"], peer["scores"]["f1"]["mean"]] == [45.0, 40.0]
    assert (ours["differs_in"], peer["differs_in"]) == ("lr 1", "lr 2") and ours["scores"].keys() == {"f1"}


def test_lines_of_benchmarks_are_no_results(tmp_path):
    """``python benchmarks/report.py`` reads them."""
    line = json.dumps({"benchmark": "b", "unit": "ratio", "ratio": 2}) + "\n"
    (tmp_path / "one.json").write_text(line)
    (tmp_path / "two.json").write_text(line * 2)
    for path, says in (
        (tmp_path, f"no results.json in {tmp_path}; `unified finetune` and `unified evaluate` write them"),
        (tmp_path / "one.json", "not a file of results as this version writes them: task is missing"),
        (tmp_path / "two.json", "two.json, line 2: not JSON"),
    ):
        with pytest.raises(UnifiedError) as refused:
            exit_status("results", str(path))
        assert says in str(refused.value)


# ---------------------------------------------------------------- plug-ins


def test_the_folder_of_the_plug_ins_is_that_of_the_package(capsys):
    there = Path(fairseq_plugins.__file__).parent
    assert folder() == there and there.is_absolute()
    assert exit_status("plugin-dir") == 0
    assert capsys.readouterr().out == f"{there}\n"
    assert exit_status("plugin-dir", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"folder": str(there)}


def test_a_link_to_the_plug_ins_is_followed(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = ModuleSpec("fairseq_plugins", None, is_package=True)
    found.submodule_search_locations = [str(tmp_path / "link"), "elsewhere"]
    monkeypatch.setattr(importlib.util, "find_spec", {"fairseq_plugins": found}.get)
    assert folder() == (tmp_path / "real").resolve()


@pytest.mark.parametrize("found", [None, ModuleSpec("fairseq_plugins", None), ModuleSpec("x", None, is_package=True)])
def test_plug_ins_that_are_not_installed_are_missed(monkeypatch, found):
    """There is no package of that name, a module has it, or the package has no folder."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    with pytest.raises(UnifiedError) as refused:
        folder()
    assert str(refused.value) == (
        "the package fairseq_plugins is not installed; run `pip install .` in the library's folder"
    )
