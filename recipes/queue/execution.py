"""Makes one entry of the plan in a folder of its own: locked, interruptible, and resumed where it stopped.

The folder holds what the commands leave, and three files of the queue: ``state.json`` says how far it is, ``log.txt``
has all that its commands printed, and ``lock`` is locked. The commands inherit the lock. So the folder stays locked
until the last of them has ended, even where the queue itself was killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from entries import Entry, filled

from unified.reports.results import write_whole
from unified.runtime.processes import module_command

STATE, LOG, LOCK = "state.json", "log.txt", "lock"
#: Programs that commands name, and the modules that they are.
_MODULES = {"unified": "unified.cli", "fairseq-train": "fairseq_cli.train"}
#: Commands that refuse an output which is there, as where the queue was killed and its command ended in peace.
_REFUSING = ("evaluate", "prepare", "score")
#: Files of these kinds go when the run is finished and no other entry needs its folder.
_LARGE = ("*.pt", "*.safetensors")
#: Seconds between two looks at a command, between two notes of the time it took, and that it has to end.
_LOOK, _NOTE, _END = 0.2, 30, 20
#: Lines of the log that are shown of a command that failed.
_LAST_LINES = 8


class Stopped(Exception):
    """The time is up, or the queue was asked to end; what was at work goes on when the queue is started again."""


@dataclass
class State:
    """Progress of a run.

    Attributes:
        done: commands that have ended well.
        finished: whether all have, and the figures were read.
        failed: why the last try ended; "" where it did not fail.
        seconds, processor_seconds: that all tries took, by the clock and of the processor.
        commits: of the repository, at the starts of all tries; each once.
        threads: threads of the commands.
    """

    done: int = 0
    finished: bool = False
    failed: str = ""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    commits: list[str] = field(default_factory=list)
    threads: int = 1


def read_state(folder: Path) -> State:
    """The state of the run in a folder; that of a run which has not begun where there is none."""
    path = folder / STATE
    return State(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else State()


def write_state(folder: Path, state: State) -> None:
    """Replace the state in a folder, whole or not at all."""
    write_whole(folder / STATE, asdict(state))


@contextmanager
def locked(folder: Path) -> Iterator[int | None]:
    """Lock a folder for a block; gives the lock's file descriptor, or None where another queue is at work in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield stream.fileno()


@dataclass(frozen=True)
class Runner:
    """Runs the commands of entries.

    Attributes:
        value: gives the path that a placeholder stands for.
        root: the checkout whose code the commands run.
        threads: threads of each command.
        stopped: whether the commands shall end now.
    """

    value: Callable[[str], str]
    root: Path
    threads: int
    stopped: Callable[[], bool]

    def make(self, entry: Entry, folder: Path, lock: int, commit: str) -> State:
        """Run the commands that are left; returns the state, in which ``failed`` says why one of them did not end well.

        Raises:
            Stopped: the time is up.
        """
        state = read_state(folder)
        state.failed, state.threads = "", self.threads
        if commit not in state.commits:
            state.commits.append(commit)
        for command in entry.commands[state.done :]:
            words = [filled(word, self.value) for word in replacing(command)]
            status = self._run(words, folder, lock, state)
            if status:
                state.failed = f"status {status} of: {shlex.join(command)}"
                write_state(folder, state)
                return state
            state.done += 1
            write_state(folder, state)
        return state

    def _run(self, words: list[str], folder: Path, lock: int, state: State) -> int:
        """Run one command; its exit status, negative where a signal ended it."""
        program, *rest = words
        start = module_command(_MODULES[program]) if program in _MODULES else [sys.executable]
        with open(folder / LOG, "ab") as log:
            log.write(f"$ {shlex.join(words)}\n".encode())
            log.flush()
            before = _children_seconds()
            process = subprocess.Popen(
                [*start, *rest],
                cwd=folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(lock,),
            )
            _lower_group(process.pid)
            begun = noted = time.monotonic()
            base, processor_base = state.seconds, state.processor_seconds
            try:
                while process.poll() is None:
                    if self.stopped():
                        raise Stopped
                    time.sleep(_LOOK)
                    if time.monotonic() - noted > _NOTE:
                        noted = time.monotonic()
                        state.seconds = round(base + noted - begun, 1)
                        state.processor_seconds = round(processor_base + session_seconds(process.pid), 1)
                        write_state(folder, state)
            finally:
                ended_by_us = session_seconds(process.pid)  # nobody waits for what a command has started
                _end(process)
                state.seconds = round(base + time.monotonic() - begun, 1)
                state.processor_seconds = round(processor_base + max(ended_by_us, _children_seconds() - before), 1)
                write_state(folder, state)
        return process.returncode

    def _environment(self) -> Mapping[str, str]:
        path = os.pathsep.join(filter(None, (str(self.root), os.environ.get("PYTHONPATH"))))
        return {
            **os.environ,
            "PYTHONPATH": path,
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": "ignore",  # fairseq's own libraries warn of each other on dozens of lines
            "OMP_NUM_THREADS": str(self.threads),
        }


def replacing(command: Sequence[str]) -> list[str]:
    """Words of a command with ``--overwrite`` where it would refuse what an earlier try of it has left."""
    overwrites = command[0] == "unified" and command[1] in _REFUSING and "--output" in command
    return [*command, "--overwrite"] if overwrites and "--overwrite" not in command else [*command]


def last_lines(folder: Path) -> str:
    """The end of a run's log."""
    lines = (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line[:300] for line in lines[-_LAST_LINES:])


def remove_checkpoints(folder: Path) -> None:
    """Remove the large files of a finished run."""
    for pattern in _LARGE:
        for path in folder.rglob(pattern):
            path.unlink()


def emptied(folder: Path) -> None:
    """Remove all that a run left, but for the lock that the caller holds."""
    for path in folder.iterdir():
        if path.name != LOCK:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _children_seconds() -> float:
    """Seconds of the processor that commands took which have ended, with all that they started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def session_seconds(leader: int) -> float:
    """Seconds of the processor that the processes of a session took so far, and those that they waited for.

    It is 0 on systems without /proc.
    """
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # a process that has ended meanwhile
            # Behind the name, which may hold spaces and brackets: the session is fourth, four times begin at the 12th.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == leader:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _lower_group(leader: int) -> None:
    """Give a new session the priority of this process as a group.

    Linux shares processors among sessions first where its scheduler groups them, so that a low priority of each process
    alone slows nothing but its own session.
    """
    group = Path(f"/proc/{leader}/autogroup")
    with suppress(OSError):  # systems without groups have no such file, and a process that has ended has none
        group.write_text(str(os.nice(0)), encoding="ascii")


def _end(process: subprocess.Popen) -> None:
    """End a command that is still at work, and whatever it has left behind."""
    with suppress(ProcessLookupError):  # all have ended
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
