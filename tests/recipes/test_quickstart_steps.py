"""Steps of the quickstart: skipped only when finished, side by side, ended together."""

import sys

import pytest
from steps import Run, Step

PYTHON = sys.executable


def touch(path, more=""):
    return [PYTHON, "-c", f"{more}\nopen({str(path)!r}, 'w').write('made')"]


def test_a_finished_step_is_not_repeated_and_keeps_its_seconds(tmp_path):
    output = tmp_path / "output"
    Run(tmp_path).run(Step("one step", touch(output), output))
    output.write_text("kept")
    again = Run(tmp_path)
    again.run(Step("one step", touch(output), output))
    assert output.read_text() == "kept"
    assert list(again.seconds) == ["one step"]


def test_an_interrupted_step_runs_again_although_its_output_is_there(tmp_path):
    output = tmp_path / "output"
    output.write_text("half")
    Run(tmp_path).run(Step("one step", touch(output), output))
    assert output.read_text() == "made"


def test_steps_side_by_side_run_at_the_same_time(tmp_path):
    """Each waits for what the other makes first: one after the other they would wait in vain and fail."""
    outputs = [tmp_path / "first", tmp_path / "second"]
    begun = [tmp_path / "first.begun", tmp_path / "second.begun"]
    wait = "import os, time\nend = time.time() + 60\nwhile not os.path.exists({0!r}) and time.time() < end:\n    pass\n"
    wait += "open({0!r})"
    steps = [
        Step(mine.name, touch(output, f"open({str(mine)!r}, 'w')\n" + wait.format(str(other))), output)
        for output, mine, other in zip(outputs, begun, reversed(begun), strict=True)
    ]
    Run(tmp_path).run(*steps)
    assert all(output.exists() for output in outputs)


def test_a_failure_ends_the_step_beside_it_and_names_its_log(tmp_path):
    fail = Step("bad", [PYTHON, "-c", "raise SystemExit(3)"], tmp_path / "never")
    slow = Step("slow", touch(tmp_path / "late", "import time; time.sleep(60)"), tmp_path / "late")
    with pytest.raises(SystemExit, match=r"bad failed with status 3; all it printed is in .*bad\.log"):
        Run(tmp_path).run(fail, slow)
    assert not slow.output.exists()
