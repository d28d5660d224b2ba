"""The command `unified generate`, which is killed as soon as its fifth chunk is there."""

import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

from unified.cli import main
from unified.inference import several_processes

open_whole = several_processes.whole_file


@contextmanager
def write_and_die(path: Path):
    with open_whole(path) as stream:
        yield stream
    if path.name == "000004.txt":
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    several_processes.whole_file = write_and_die
    main(["generate", *sys.argv[1:]])
