"""What a test calls as Python: it has the prepared process run a command, or leaves it to a fresh Python.

Every command starts one. A Python without its site packages runs it, and it imports little: that takes 30 milliseconds.
"""

from __future__ import annotations

import marshal
import os
import socket
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What their names begin with.
_PROGRAMS = ("exact_training", "built_commands", "fairseq_options", "fairseq_roberta", "killed_generate")
COMMANDS = ("fairseq_cli.", "unified.cli", *(f"tests.support.{name}" for name in _PROGRAMS))
SCRIPTS = (f"{ROOT}/recipes/", f"{ROOT}/tools/")  # the folders that hold them

PLUGINS = f"{ROOT}/fairseq_plugins"
PLUGGED = ".plugged"  # what the address of the process ends with that has imported them

LIMIT = 600  # seconds that a command may take, as a test may


def call(python: str, address: str, program: str, *words: str) -> None:
    """Be the program: have the prepared process run a command, and end as the command ends."""
    guarded = words[:1] == ("-P",)
    rest = words[guarded:]
    guarded = guarded or bool(os.environ.get("PYTHONSAFEPATH"))
    script = os.path.realpath(rest[0]) if rest and rest[0].endswith(".py") else ""
    if rest[:1] == ("-m",) and rest[1].startswith(COMMANDS):
        what, rest, path = {"module": rest[1]}, rest[2:], [os.getcwd()]
    elif script.startswith(SCRIPTS):
        what, rest, path = {"script": rest[0]}, rest[1:], [os.path.dirname(script)]
    else:
        os.execv(python, [python, *words])
    request = {**what, "words": rest, "path": [] if guarded else path, "folder": os.getcwd(),
               "environment": dict(os.environ), "program": program}  # fmt: skip
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(LIMIT)  # when this process ends, so does the command
        try:
            connection.connect(f"{address}{PLUGGED if PLUGINS in words else ''}")
        except OSError as error:
            sys.exit(f"the prepared Python of the tests has ended: {error}; its errors are in the output of pytest")
        socket.send_fds(connection, [b" "], [0, 1, 2])
        connection.sendall(marshal.dumps(request))
        answer = connection.recv(16)
    status = int(answer) if answer else 1
    if status < 0:
        die_of(-status)
    os._exit(status)


def die_of(number: int) -> None:
    """End by a signal, as the command did."""
    import signal

    if number != signal.SIGKILL:  # which has no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    call(*sys.argv[1:])
