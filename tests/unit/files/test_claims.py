"""Claims of folders and files: the same command goes on, another one is refused, and a refusal leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.support import fairseq_runs as fairseq
from tests.support.locales import plain_locale
from unified.errors import UnifiedError
from unified.files.claims import FILE_NAME, Claim, claimed_file, claimed_folder

OURS = Claim({"--seed": 1, "--rate": 3e-05, "--head": None}, {"--data": {"train.jsonl": "a", "valid.jsonl": "b"}})
OTHERS = {
    "--seed 1, now 2": Claim({**OURS.settings, "--seed": 2}, OURS.inputs),
    "--rate 3e-05, now 0.0001": Claim({**OURS.settings, "--rate": 1e-4}, OURS.inputs),
    "no --head, now span": Claim({**OURS.settings, "--head": "span"}, OURS.inputs),
    "--rate 3e-05, now without": Claim({"--seed": 1, "--head": None}, OURS.inputs),
    "other contents of --data (valid.jsonl)": Claim(
        OURS.settings, {"--data": {"train.jsonl": "a", "valid.jsonl": "c"}}
    ),
    "other contents of --data (test.jsonl)": Claim(
        OURS.settings, {"--data": {**OURS.inputs["--data"], "test.jsonl": "d"}}
    ),
}


def test_the_same_claim_goes_on_and_others_are_refused(tmp_path):
    folder = tmp_path / "deep" / "run"
    with pytest.raises(RuntimeError), claimed_folder(folder, OURS, "do otherwise"):
        (folder / "part").write_text("half")
        raise RuntimeError
    with claimed_folder(folder, OURS, "do otherwise"):
        assert (folder / "part").read_text() == "half"
    content = (folder / FILE_NAME).read_bytes()
    for difference, other in OTHERS.items():
        with pytest.raises(UnifiedError) as refusal, claimed_folder(folder, other, "do otherwise"):
            pytest.fail("not refused")
        assert str(refusal.value) == f"{folder}: was begun with {difference}; do otherwise"
        assert (folder / FILE_NAME).read_bytes() == content


def test_two_at_once_are_refused(tmp_path):
    for claimed, path in ((claimed_folder, tmp_path / "folder"), (claimed_file, tmp_path / "file")):
        with claimed(path, OURS, "do otherwise"):
            with pytest.raises(UnifiedError, match="a command is at work on it"):
                with claimed(path, OURS, "do otherwise"):
                    pytest.fail("not refused")


def test_what_begins_nothing_leaves_nothing(tmp_path):
    """Neither folders nor files, whether a block ends well or is refused; then another claim may come."""
    for claim in (OURS, *OTHERS.values()):
        for claimed, path in ((claimed_folder, tmp_path / "deep" / "folder"), (claimed_file, tmp_path / "file")):
            with claimed(path, claim, "do otherwise"):
                pass
            with pytest.raises(UnifiedError, match="bad input"), claimed(path, claim, "do otherwise"):
                raise UnifiedError("bad input")
        with claimed_file(tmp_path / "file", claim, "do otherwise"):
            (tmp_path / "file").touch()
    assert not list(tmp_path.iterdir())


def test_what_came_without_a_claim_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    for claimed, path, content in (
        (claimed_folder, tmp_path / "folder", tmp_path / "folder" / "part"),
        (claimed_file, tmp_path / "file", tmp_path / "file"),
    ):
        content.write_text("of others")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(UnifiedError, match="is there already, and no claim beside it says what made it; go away"):
            with claimed(path, OURS, "go away"):
                pytest.fail("not refused")
        assert sorted(tmp_path.rglob("*")) == [*before, *([] if path.is_dir() else [])]
    with claimed_folder(tmp_path / "folder", OURS, "go away", lambda: False):
        pass  # nothing that only a claim explains
    with pytest.raises(UnifiedError, match="a file, where a folder should be"):
        with claimed_folder(tmp_path / "file", OURS, "go away"):
            pytest.fail("not refused")


def test_a_claim_cut_short_is_none(tmp_path):
    """A kill while it was written came before anything else was."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / FILE_NAME).write_text('{"settings": {"--se')
    with claimed_folder(tmp_path / "run", OURS, "go away"):
        (tmp_path / "run" / "part").touch()
    assert json.loads((tmp_path / "run" / FILE_NAME).read_text()) == OURS.content


def test_a_claim_is_utf_8_and_on_the_disk_before_the_work_begins(tmp_path, monkeypatch):
    """So a machine that loses its power leaves no work without a claim."""
    claim, synced, file = Claim({"--data": "café"}), [], tmp_path / "run" / FILE_NAME
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(json.loads(file.read_text(encoding="utf-8"))))
    with plain_locale(), claimed_folder(tmp_path / "run", claim, "go away"):
        assert synced == [claim.content]


def test_a_finished_file_has_no_claim(tmp_path):
    partial = tmp_path / "out.partial"
    with claimed_file(partial, OURS, "go away"):
        partial.write_text("all")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.partial", "out.partial.claim"]
        partial.rename(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_kill_keeps_the_claim_and_frees_the_lock(tmp_path):
    program = textwrap.dedent(
        f"""
        import os, signal
        from pathlib import Path
        from unified.files.claims import Claim, claimed_folder
        folder = Path({str(tmp_path / "run")!r})
        with claimed_folder(folder, Claim({{"--seed": 1}}), "go away"):
            (folder / "part").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    killed = subprocess.run([sys.executable, "-c", program], env=fairseq.environment())
    assert killed.returncode == -signal.SIGKILL
    with pytest.raises(UnifiedError, match="was begun with --seed 1, now 2"):
        with claimed_folder(tmp_path / "run", Claim({"--seed": 2}), "go away"):
            pytest.fail("not refused")
    with claimed_folder(tmp_path / "run", Claim({"--seed": 1}), "go away"):
        pass
