"""The checks for a card: what they compare, how their lines come about, and which tests they run."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import sys
import time
from pathlib import Path

import pytest
import torch

from gpu import check, kernels, steps, suite
from gpu.findings import Check, Finding, Place, within
from unified import masks
from unified.masks import AttentionMask

TESTS = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")


def looks_for_a_card(tree: ast.Module) -> list[int]:
    """Lines of ``not ….cuda.is_available()``."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.UnaryOp) and ast.unparse(node).endswith("cuda.is_available()")
    ]


def test_a_test_that_is_skipped_without_a_card_has_the_marker():
    """No test asks by itself: conftest.py skips those with the marker."""
    found = {
        path.relative_to(TESTS).as_posix(): lines
        for path in sorted(TESTS.rglob("*.py"))
        if (lines := looks_for_a_card(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert list(found) == ["conftest.py"]
    assert looks_for_a_card(ast.parse("skipif(not torch.cuda.is_available(), reason='')"))
    assert len(suite.files_with_marker()) >= 5 and suite.PRECISION in suite.files_with_marker()


@pytest.mark.gpu
def test_a_test_with_the_marker_runs_on_a_card():
    assert torch.cuda.is_available()


def test_every_kind_of_mask_is_compared():
    samples = kernels.samples(64)
    builders = {
        name
        for name in masks.__all__
        if inspect.isfunction(made := getattr(masks, name))
        and made.__module__ == "unified.masks.builders"
        and inspect.signature(made).return_annotation in (AttentionMask, "AttentionMask")
    }
    assert len(builders) >= 12 and builders - set(samples) == set()
    assert all(mask.batched and len(mask.query_step) == 2 for mask in samples.values())


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_differences_find_faults(monkeypatch):
    right = AttentionMask.block_mask
    causal = kernels.samples(160)["left_to_right"]
    assert kernels.wrong_pairs(causal, CPU) == 0
    assert kernels.attention_differences(causal, CPU, torch.float32, 16)["values"] < 1e-5
    monkeypatch.setattr(AttentionMask, "block_mask", lambda mask: right(causal))
    wrong = kernels.wrong_pairs(kernels.samples(160)["bidirectional"], CPU)
    assert wrong == 2 * 128 * 32  # the block of each row that a causal mask hides
    monkeypatch.setattr(AttentionMask, "block_mask", lambda mask: right(mask.without_self()))
    assert kernels.attention_differences(causal, CPU, torch.float32, 16)["values"] > 1e-2
    assert not within("x", float("nan"), 1e-4, "", {}).holds and not within("x", 2e-4, 1e-4, "", {}).holds


def test_a_step_that_looks_at_a_value_is_found():
    meta = torch.ones(2, device="meta")
    assert not steps.looks(lambda: meta + 1)
    assert steps.looks(lambda: bool(meta.sum() > 0))


def test_lines_of_a_check_and_of_one_that_fails_or_takes_too_long(tmp_path):
    """What a process has printed stays; its failure is one more line."""
    line = {"check": "x", "name": "one", "holds": True}
    program = f"print({json.dumps(json.dumps(line))}, flush=True); print('else')\n"
    example = Check("x", lambda place: iter(()), 60)

    def lines(more: str, seconds: float = 60) -> list[dict]:
        return list(check.run(example, [sys.executable, "-c", program + more], seconds))

    assert lines("") == [line]
    first, second = lines("raise SystemExit('no luck')")
    assert first == line and (second["holds"], second["found"]) == (False, "status 1") and "no luck" in second["note"]
    began = time.monotonic()
    *_, late = lines("import time; time.sleep(60)", 1)
    assert late["found"] == "ended after 1 s" and not late["holds"] and time.monotonic() - began < 30
    late = []
    check.run_all([example], "cpu", 1, 0, late.append)
    assert [one["found"] for one in late] == ["not run"]


def test_lines_have_all_fields():
    found = Finding("name", 1, 1, True)
    (line,) = check.found_by(Check("x", lambda place: iter([found]), 1), Place(CPU))
    assert set(line) == {"check", "seconds", *(field.name for field in dataclasses.fields(Finding))}


def test_names_of_checks(capsys):
    assert check.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [one.name for one in check.CHECKS]
    assert [one.name for one in check.chosen(["kernels: b*"])] == ["kernels: block masks", "kernels: bfloat16"]
    with pytest.raises(SystemExit, match="--only flex: no check has such a name; there are surroundings, tests"):
        check.chosen(["flex"])


def test_reports_of_pytest_are_read(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.a" name="test_b[1]"><properties><property name="loss" value="2"/></properties>'
        "</testcase>"
        '<testcase classname="tests.a" name="test_b[2]"><failure message="worse">text</failure></testcase>'
        '<testcase classname="tests.a" name="test_c"><skipped message="no GPU"/></testcase>'
        "</testsuite></testsuites>"
    )
    found = suite.outcomes(report)
    assert found["tests.a.test_b"].counts == {"passed": 1, "failed": 1, "skipped": 0}
    assert found["tests.a.test_b"].notes == ["[2] worse"] and found["tests.a.test_b"].properties == {"[1] loss": "2"}
    assert found["tests.a.test_c"].counts == {"passed": 0, "failed": 0, "skipped": 1}
