"""Read by every Python that starts with this folder on its path: counts some calls, and kills at one of them.

TRUST_CALLS names a folder in which a file for each function has a byte for each of its calls, in all processes of a
command. TRUST_KILL, such as ``os.replace:3:before``, kills the group of processes before the third call or after it;
``middle`` is for functions that write, and writes one half.
"""

import functools
import os
import shutil
import signal

NAMES = {"os.replace": os, "os.rename": os, "os.fsync": os, "shutil.copyfileobj": shutil}


def _kill():
    os.killpg(0, signal.SIGKILL)


def _half(reader, writer, length=0):
    content = reader.read()
    writer.write(content[: len(content) // 2])
    writer.flush()
    _kill()


def _counted(name, function, calls, aim):
    @functools.wraps(function)
    def call(*arguments, **keywords):
        descriptor = os.open(os.path.join(calls, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, b".")
        number = os.fstat(descriptor).st_size
        os.close(descriptor)
        when = aim.get((name, number))
        if when == "before":
            _kill()
        if when == "middle":
            _half(*arguments, **keywords)
        result = function(*arguments, **keywords)
        if when == "after":
            _kill()
        return result

    return call


if "TRUST_CALLS" in os.environ:
    _aim = {}
    if os.environ.get("TRUST_KILL"):
        _name, _number, _when = os.environ["TRUST_KILL"].split(":")
        _aim[_name, int(_number)] = _when
    for _name, _module in NAMES.items():
        _function = _name.rpartition(".")[2]
        setattr(_module, _function, _counted(_name, getattr(_module, _function), os.environ["TRUST_CALLS"], _aim))
