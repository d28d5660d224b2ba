"""A Python that has torch, fairseq and the library imported before a test asks for it.

A fresh interpreter imports them for six seconds. One process for all workers of pytest imports them once, waits, and
forks itself for every command. A command so still has a process of its own: its own arguments, environment, folder,
streams and exit status. Commands that name the plug-ins by ``--user-dir`` are forked from a second process, itself a
fork of the first, that has imported the plug-ins too. `interpreter()` is a program that is called as Python is; what is
neither a command nor a script of ours, such as ``-c``, it leaves to a fresh Python. `programs()` is a folder for PATH
in which `python`, `unified` and fairseq's commands are such programs.

Tests of what a command imports, of the memory it takes, of variables that are read at import, and of signals other
than a kill use a fresh Python: `FRESH`.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import hashlib
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from argparse import Namespace
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.support import prepared_client

ROOT = Path(__file__).resolve().parents[2]
FRESH = sys.executable
#: With FRESH_PYTHON set nothing is prepared, which suits a pytest that runs a test or two, `trust/mutating`, and one
#: on a card, where a process that has started threads must not be forked.
_PREPARES = sys.platform == "linux" and not os.environ.get("FRESH_PYTHON")

# The program that a test calls.
CLIENT = """#!/bin/sh
exec {python} -S -E -P {module} {python} {address} "$0" "$@"
"""


_calls = count()
_used: list[int] = []  # pipes that the prepared processes read
_started: list[subprocess.Popen] = []  # kept, as one that is dropped while its process lives warns


def interpreter() -> str:
    """The path of a program to call as Python.

    There are two, used in turn: two strings have the same hash in all commands of one, so a command whose result
    depends on the order of a set would give the same result each time.
    """
    return _program(next(_calls) % 2) if _PREPARES else FRESH


@cache
def programs() -> Path:
    """A folder with the commands that an installation has."""
    if not _PREPARES:
        return Path(FRESH).parent
    folder = tempfile.TemporaryDirectory(prefix="programs")
    atexit.register(folder.cleanup)
    calls = {"python": "", "python3": "", "unified": "-m unified.cli "}
    calls.update({f"fairseq-{name}": f"-m fairseq_cli.{name} " for name in ("train", "generate", "preprocess")})
    for name, module in calls.items():
        program = Path(folder.name, name)
        program.write_text(f'#!/bin/sh\nexec {interpreter()} {module}"$@"\n', encoding="utf-8")
        program.chmod(0o755)
    return Path(folder.name)


@cache
def _program(number: int) -> str:
    """The first call in a run of tests starts the process that has everything imported; all of its workers use it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    name = hashlib.sha256(f"{ROOT} {run} {number}".encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"prepared-{name}")
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            _use(folder)
        except OSError:  # nobody has started it yet, or it has ended with those who used it
            _start(folder, number)
    return str(folder / "python")


def _use(folder: Path) -> None:
    """Keep the process of a folder until this one ends: it reads a pipe, which ends with the last who has opened it."""
    _used.append(os.open(folder / "users", os.O_WRONLY | os.O_NONBLOCK))


def _start(folder: Path, number: int) -> None:
    program, address, users = (folder / name for name in ("python", "socket", "users"))
    users.unlink(missing_ok=True)
    os.mkfifo(users, 0o600)
    reader = os.open(users, os.O_RDONLY | os.O_NONBLOCK)
    _use(folder)
    program.write_text(CLIENT.format(python=FRESH, module=prepared_client.__file__, address=address))
    program.chmod(0o755)
    paths = os.pathsep.join([str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE",
                   "PYTHONHASHSEED": str(number + 1), "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}  # fmt: skip
    with socket.socket(socket.AF_UNIX) as plain, socket.socket(socket.AF_UNIX) as plugged:
        for listener, end in ((plain, ""), (plugged, prepared_client.PLUGGED)):
            Path(f"{address}{end}").unlink(missing_ok=True)
            listener.bind(f"{address}{end}")
            listener.listen()
        numbers = [plain.fileno(), plugged.fileno()]
        process = subprocess.Popen(
            [FRESH, "-P", "-m", "tests.support.prepared_python", *map(str, numbers)],
            pass_fds=numbers, stdin=reader, cwd=ROOT, env=environment,
        )  # fmt: skip
    os.close(reader)
    _started.append(process)


class Running(NamedTuple):
    """A command that is at work."""

    worker: int  # its process
    ended: int  # the process's descriptor, which can be read when it has ended
    connection: socket.socket  # to its caller


def serve(listener: socket.socket) -> dict | None:
    """Returns a request in the process that is to fulfil it, and None in the first one when its input has ended."""
    running: list[Running] = []
    inputs = [listener, 0]
    while 0 in inputs or running:
        watched = [one for command in running for one in (command.ended, command.connection)]
        ready, _, _ = select.select([*inputs, *watched], [], [])
        for command in list(running):
            if command.ended in ready:
                answer(command)
                running.remove(command)
            elif command.connection in ready:  # its caller has been killed
                os.kill(command.worker, signal.SIGKILL)
        if 0 in ready:
            inputs.remove(0)
        if listener in ready:
            connection, _ = listener.accept()
            _, streams, _, _ = socket.recv_fds(connection, 1, 3)
            try:
                with connection.makefile("rb") as sent:
                    request = marshal.load(sent)
                worker = os.fork()
            except EOFError:  # its caller has been killed
                worker = None
            if worker == 0:
                for other in (listener, connection, *(command.connection for command in running)):
                    other.close()
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                    os.close(stream)
                return request
            for stream in streams:
                os.close(stream)
            if worker:
                running.append(Running(worker, os.pidfd_open(worker), connection))
    return None


def answer(command: Running) -> None:
    """Send the caller the exit status of a command that has ended."""
    os.close(command.ended)
    status = os.waitstatus_to_exitcode(os.waitpid(command.worker, 0)[1])
    with command.connection as connection:
        try:
            connection.sendall(str(status).encode())
        except OSError:
            pass  # the caller is gone


def prepare() -> None:
    """Import what commands and plug-ins need, and read options once, without the plug-ins and without a set-up log."""
    import logging
    import multiprocessing.spawn  # noqa: F401  keeps the path of the true Python
    import warnings

    sys.modules["pyarrow"] = None  # its import would start threads
    logging.getLogger().addHandler(logging.NullHandler())  # else fairseq sets up a log of its own
    from tests.support.quick_fairseq import import_fairseq

    import_fairseq()
    import fairseq.checkpoint_utils
    import fairseq.data.data_utils_fast
    import fairseq.model_parallel.megatron_trainer
    import fairseq.options
    import fairseq.quantization_utils
    import fairseq.tasks
    import fairseq.trainer  # noqa: F401
    import nltk.stem.porter  # noqa: F401  by each process that reads summaries, and so is the next
    import rouge_score.rouge_scorer  # noqa: F401
    import tokenizers  # noqa: F401
    import torch._dynamo  # noqa: F401  by every optimizer of torch, which takes three seconds
    import torch._inductor.config
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    import unified.checkpoints.vocabularies
    import unified.cli.commands.finetune
    import unified.inference.language_model
    import unified.model.weight_decay
    import unified.planning.pairs
    import unified.tasks.catalogue
    import unified.tasks.heads.auxiliary
    import unified.tasks.jobs
    import unified.tasks.publishing
    import unified.tasks.selection
    import unified.tasks.writing_scores
    import unified.training.model_checks
    import unified.training.row_dataset
    import unified.training.stream_dataset
    import unified.training.target_symbols  # noqa: F401
    from tests.support import quick_composition

    quick_composition.install()
    words = ["data", "--task", "language_modeling", "--arch", "transformer_lm"]
    with warnings.catch_warnings(action="ignore"):
        arguments = fairseq.options.parse_args_and_arch(fairseq.options.get_training_parser(), words)
        convert_namespace_to_omegaconf(arguments)

    logging.getLogger().handlers.clear()
    torch._inductor.config.cpp.cxx = (None, str(ROOT / "tests" / "support" / "quick_compiler"))
    torch._inductor.config.cpp.vec_isa_ok = True  # it compiles a program to see
    torch._inductor.config.compile_threads = 1  # more are processes, which import torch for seconds
    # torch's own function seeds cards, too; without one it notes its caller's stack, for a millisecond of each update.
    torch.manual_seed = torch.default_generator.manual_seed
    for tidying in list(weakref.finalize._registry):  # torch takes its operators apart, for 40 milliseconds
        tidying.atexit = False
    os.fsync = lambda descriptor: None  # as in conftest.py


def import_plugins() -> None:
    """Import what ``--user-dir`` names, and read their options once."""
    import fairseq.options
    import fairseq.utils

    fairseq.utils.import_user_module(Namespace(user_dir=prepared_client.PLUGINS))
    fairseq.options.get_training_parser()


def main(plain: socket.socket, plugged: socket.socket) -> None:
    gc.disable()
    prepare()
    listener, other = plain, plugged
    if os.fork() == 0:
        listener, other = plugged, plain
        import_plugins()
    other.close()
    if len(os.listdir("/proc/self/task")) != 1:
        sys.exit("the imports have started threads: a process that has threads must not be forked")
    gc.freeze()  # a collection in a fork would copy every page
    gc.set_threshold(50_000, 20, 100)  # as in conftest.py
    gc.enable()
    request = serve(listener)
    if request is None:
        if listener is plain:
            os.wait()  # for the process that has the plug-ins
            shutil.rmtree(Path(listener.getsockname()).parent, ignore_errors=True)
        return
    import numpy

    numpy.random.seed()  # a fork has the state of its parent
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    listed = filter(None, request["environment"].get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:0] = [*request["path"], *(folder for folder in listed if folder not in sys.path)]
    sys.executable = request["program"]  # commands that commands start are prepared too
    end(run(request))


def run(request: dict) -> int:
    """The exit status of a module or script that is run as a program."""
    try:
        if "script" in request:
            sys.argv = [request["script"], *request["words"]]
            runpy.run_path(request["script"], run_name="__main__")
        else:
            sys.argv = [request["module"], *request["words"]]
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def end(status: int) -> None:
    """End as Python does, but without a second spent on taking every module apart."""
    threading._shutdown()  # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
