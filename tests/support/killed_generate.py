"""The command `unified generate`, which is killed as soon as its fifth chunk is there."""

import os
import signal
import sys
from pathlib import Path

from unified.cli import main
from unified.inference import several_processes

write = several_processes.write_atomically


def write_and_die(path: Path, pieces) -> None:
    write(path, pieces)
    if path.name == "000004.txt":
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    several_processes.write_atomically = write_and_die
    main(["generate", *sys.argv[1:]])
