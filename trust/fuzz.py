"""No damaged file gives a traceback: it is refused in one line that names it, or read as a strict reference reads it.

A case damages a small valid file of one reader in many ways and reads each result in one process. Its name repeats it;
the number of an input that fails, too: `python -m trust.fuzz 'tokenizer.json' 17` reads it again and prints what comes.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType

from trust.cases import Broken, Case, require
from trust.fuzzing.reader import Reader, Refused
from trust.fuzzing.readers import READERS
from unified.errors import UnifiedError

#: Inputs of a case, and of each reader in the sample.
BLOCK, SAMPLE = 500, 250
#: Characters that a refusal may have, and seconds of a processor that an input may take.
LONGEST, SECONDS = 300, 60
#: Bytes of memory that the inputs of a case may take together, beside what Python and its modules take.
MEMORY = 2 << 30
_SHOWN = 4


def cases(full: bool, seed: int) -> list[Case]:
    """All readers with all inputs, 500 a case; the sample has 250 of each reader, other ones for each seed."""
    found = []
    for reader in READERS:
        size = min(BLOCK, reader.inputs) if full else SAMPLE
        first = (seed - 1) * (reader.inputs if full else SAMPLE)
        for start in range(first, first + (reader.inputs if full else SAMPLE), size):
            check = partial(attack, reader, range(start, start + size))
            found.append(Case(f"{reader.name} | inputs {start} to {start + size - 1}", check))
    return found


def attack(reader: Reader, numbers: range, folder: Path, seconds: float = SECONDS) -> dict[str, int]:
    """Reads the inputs of a reader in a process of its own, which a crash may end.

    Raises:
        Broken: names the first inputs that break the promise, those with another reason each.
    """
    notes = folder / "notes.txt"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with contextlib.chdir(folder), open(os.devnull, "w") as nothing:
                os.dup2(nothing.fileno(), 1)
                os.dup2(nothing.fileno(), 2)
                limit_memory(MEMORY)
                _attack_all(reader, numbers, notes, seconds)
            status = 0
        except BaseException:  # it must not go on in two processes
            notes.write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    require(not os.WIFSIGNALED(ended), f"the process was ended by a signal ({ended}) at input {lines[-1:]}")
    require(ended == 0, "\n".join(lines))
    faults = [line for line in lines if line.startswith("input ")]
    require(not faults, f"{len(faults)} kinds of faults in {len(numbers)} inputs: {'; '.join(faults[:_SHOWN])}")
    refused = int(lines[-1].removeprefix("refused "))
    return {"inputs": len(numbers), "refused": refused}


def _attack_all(reader: Reader, numbers: range, notes: Path, seconds: float) -> None:
    """Writes into ``notes`` the number of the input that is read, at last each kind of fault once."""
    reader.make()
    sample = Path(reader.attacked).read_bytes()
    require(accepts(reader, sample, seconds), "the sample is refused")
    faults: dict[str, str] = {}
    refused = 0
    for number in numbers:
        notes.write_text(f"{number}\n", encoding="utf-8")
        try:
            refused += not accepts(reader, reader.mutated(sample, number), seconds)
        except Broken as broken:
            kind = str(broken).partition(" | ")[0]
            faults.setdefault(kind, f"input {number}: {broken}")
    lines = [" ".join(fault.split()) for fault in faults.values()]
    notes.write_text("\n".join([*lines, f"refused {refused}"]), encoding="utf-8")


def accepts(reader: Reader, data: bytes, seconds: float) -> bool:
    """Whether the current folder is read with these bytes in the attacked file; False where it is refused.

    Raises:
        Broken: neither as promised; says the kind of fault, then `` | `` and more.
    """
    Path(reader.attacked).write_bytes(data)
    try:
        with _time_limit(seconds):
            content = reader.read()
    except (UnifiedError, OSError) as refusal:
        check_refusal(str(refusal), Path(reader.attacked).name if reader.named else "")
        return False
    except Broken:
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        frame = [one for one in traceback.extract_tb(error.__traceback__) if "/unified/" in one.filename][-1:]
        where = "".join(f"{Path(one.filename).name}:{one.lineno}" for one in frame)
        raise Broken(f"{type(error).__name__} at {where} | {str(error)[:200]}") from None
    if reader.reference is not None:
        try:
            wanted = reader.reference(data)
        except Refused as reason:
            raise Broken(f"read, but the reference refuses it | {reason} {str(content)[:200]}") from None
        if not equal(content, wanted):
            raise Broken(f"another content than the reference | {str(content)[:300]} | {str(wanted)[:300]}")
    return True


def check_refusal(message: str, name: str) -> None:
    """Requires a refusal to be one line of at most 300 characters that names a file."""
    require(len(message) <= LONGEST, f"a refusal of {len(message):,} characters | {message[:400]}")
    require("\n" not in message and "\r" not in message, f"a refusal of several lines | {message[:400]}")
    require(name in message, f"a refusal that does not name {name} | {message}")
    require(bool(message.strip()), "an empty refusal")
    try:
        message.encode()
    except UnicodeEncodeError:
        raise Broken(f"a refusal that cannot be printed | {message!a}") from None


def equal(one: object, two: object) -> bool:
    """Whether two contents are equal, with numbers that are none taken for equal and True not for 1."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict) and isinstance(two, dict):
        return list(one) == list(two) and all(equal(one[name], two[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(equal(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one):
        return math.isnan(two)
    return one == two


def limit_memory(more: int) -> None:
    """Lets this process take so many bytes of addresses more than it has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Breaks off after so many seconds of a processor, or ten times as many of the clock."""

    def late(signum: int, frame: FrameType | None) -> None:
        raise Broken(f"more than {seconds} seconds")

    limits = {signal.ITIMER_PROF: seconds, signal.ITIMER_REAL: 10 * seconds}
    before = {one: signal.signal(one, late) for one in (signal.SIGPROF, signal.SIGALRM)}
    for timer, limit in limits.items():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer in limits:
            signal.setitimer(timer, 0)
        for one, handler in before.items():
            signal.signal(one, handler)


def main() -> None:
    """Reads one input again, in a new folder, and prints what comes."""
    reader = next(one for one in READERS if one.name == sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        reader.make()
        data = reader.mutated(Path(reader.attacked).read_bytes(), int(sys.argv[2]))
        print(f"{len(data):,} bytes, the first: {data[:500]!r}")
        Path(reader.attacked).write_bytes(data)
        print(reader.read())


if __name__ == "__main__":
    main()
