"""Commands of a prepared Python end, speak and die as those of a fresh one do."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.fairseq_runs import ROOT
from tests.support.prepared_python import FRESH, interpreter


def both(*words, **keywords) -> list[tuple]:
    """Exit status, output and errors of a prepared and of a fresh Python."""
    runs = [
        subprocess.run([python, *map(str, words)], capture_output=True, text=True, **keywords)
        for python in (interpreter(), FRESH)
    ]
    return [(run.returncode, run.stdout, run.stderr) for run in runs]


@pytest.mark.parametrize(
    "words", [("masks", "show", "seq2seq", 2, 2), ("nothing",), ("score", "generation", "absent"), ("plugin-dir",)]
)
def test_status_and_streams_are_those_of_a_fresh_process(words, tmp_path):
    """Started in another folder, where the file that one of them misses is looked for."""
    prepared, fresh = both("-P", "-m", "unified.cli", *words, cwd=tmp_path)
    assert prepared == fresh


def test_the_environment_is_that_of_the_call():
    """argparse breaks lines where COLUMNS says."""
    environment = {**os.environ, "COLUMNS": "60", "PYTHONPATH": str(ROOT)}
    prepared, fresh = both("-m", "unified.cli", "prepare", "--help", env=environment)
    assert prepared == fresh and prepared[0] == 0 and max(map(len, prepared[1].splitlines()[:5])) <= 60


def test_what_is_no_command_of_ours_is_left_to_a_fresh_python():
    code = "import sys; print(sys.executable, 'torch' in sys.modules); sys.exit('ended')"
    prepared, fresh = both("-c", code)
    assert prepared == fresh == (1, f"{FRESH} False\n", "ended\n")


@pytest.mark.parametrize(
    ("words", "says"), [(["--user-dir", ROOT / "fairseq_plugins"], "--batch-size"), ([], "unified_lm")]
)
def test_plugins_are_there_where_the_command_names_them(words, says):
    """Without the option that names their folder they are unknown; with it, something else is missing."""
    command = [interpreter(), "-m", "fairseq_cli.train", "data", *map(str, words), "--task", "unified_lm"]
    command += ["--arch", "unified_lm_tiny", "--criterion", "unified_lm"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode and says in result.stderr and ("invalid choice" in result.stderr) == (not words)


def test_plugins_are_imported_as_in_a_fresh_process(tmp_path):
    words = ["-m", "fairseq_cli.train", tmp_path, "--user-dir", ROOT / "fairseq_plugins", "--task", "unified_lm"]
    words += ["--arch", "unified_lm_tiny", "--criterion", "unified_lm", "--batch-size", 1, "--cpu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    prepared, fresh = both(*words, cwd=tmp_path, env=environment)
    assert prepared[0] == fresh[0] == 1 and prepared[2].splitlines()[-1] == fresh[2].splitlines()[-1]
    assert fresh[2].splitlines()[-1].startswith("unified_lm: error: ")


def test_a_killed_command_is_gone():
    """The streams of a finished process end, which they do not while a process holds them."""
    words = [interpreter(), "-m", "fairseq_cli.interactive", "--help"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode in (-9, 0)


def test_commands_one_after_another_have_other_hashes_of_strings():
    first, second = interpreter(), interpreter()
    assert first != second and interpreter() == first


def test_a_server_that_has_ended_is_named(tmp_path):
    """A program whose server is not there fails at once and says why."""
    true = Path(interpreter())
    (tmp_path / "python").write_text(true.read_text().replace(str(true.parent), str(tmp_path)))
    words = ["sh", tmp_path / "python", "-m", "unified.cli", "plugin-dir"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and "the prepared Python of the tests has ended" in result.stderr


def test_workers_of_one_run_use_the_same_processes():
    run = {"PYTEST_XDIST_TESTRUNUID": os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))}
    code = "from tests.support.prepared_python import interpreter; print(interpreter(), interpreter())"
    result = subprocess.run([FRESH, "-c", code], cwd=ROOT, env={**os.environ, **run}, capture_output=True, text=True)
    assert set(result.stdout.split()) == {interpreter(), interpreter()}, result.stderr
    assert subprocess.run([interpreter(), "-m", "unified.cli", "--version"], capture_output=True).returncode == 0
