"""Commands that are killed and started again give, bit for bit, what they give without a kill.

A case runs a command to its end, then again with a kill, and again, until a run is not hit by its kill or ends without
one. Of trainings each loss line, the parameters and the optimizer's state of all checkpoints, and the contents of the
other files are compared, but for dates and measured seconds; of other commands all bytes.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.golden import data
from tests.support.corpora import random_documents, raw_text, write
from tests.support.task_folders import language_model
from trust.cases import Case, require
from trust.killing import aims, run
from unified.files.locks import TRAINING

#: Kills of a case, one after another, before a run that may end.
KILLS = 3
#: Cases of a command in the full set. Of 3 kills a case about two hit, so that 7 commands are killed 100 times.
CASES = 7
#: Names in a loss line that measure the machine.
_MEASURED = ("wps", "ups", "wall", "train_wall", "gb_free")
#: Fields of a results.json that say when it was made, and how long it took where nothing was killed.
_CLOCK = ("date", "seconds")
#: Matches the path of a file in a folder that unified.files.destination.new_folder has not finished.
_UNFINISHED = re.compile(r"(^|/)\.[^/]+\.(partial|old)/")


@dataclass(frozen=True)
class Command:
    """A command that can be killed.

    Attributes:
        name: in the names of cases.
        prepare: makes in a folder what the command reads; returns its words, in which OUTPUT stands for its output.
        differ: the first difference of two outputs, in words; None where they are equal.
        trains: whether it goes on behind its last checkpoint; its loss lines are compared, too.
    """

    name: str
    prepare: Callable[[Path], list[object]]
    differ: Callable[[Path, Path], str | None]
    trains: bool = False


OUTPUT = "OUTPUT"


def cases(full: bool, seed: int) -> list[Case]:
    """Cases of every command; the sample has one of three of them."""
    rng = random.Random(seed)
    chosen = COMMANDS if full else sorted(rng.sample(COMMANDS, 3), key=COMMANDS.index)
    numbers = range(seed, seed + (CASES if full else 1))
    return [Case(f"{command.name} | seed {n}", partial(kill, command, n)) for command in chosen for n in numbers]


def kill(command: Command, seed: int, folder: Path) -> dict[str, int]:
    """Runs a case; counts its kills and the values that were compared."""
    words, rng = command.prepare(folder), random.Random(f"{command.name} {seed}")
    whole = run(_with_output(words, folder / "whole"), folder / "calls")
    require(whole.status == 0, f"the command fails without a kill: {whole.output[-500:]}")
    compared, done = 0, 0
    for number, aim in enumerate([*aims(whole, KILLS, rng), None]):
        ended = run(_with_output(words, folder / "killed"), folder / f"calls{number}", aim)
        if ended.status == -9:
            done += 1
            continue
        # A kill behind its last step leaves all that it makes, which it then refuses to make again.
        whole_already = not command.trains and "--overwrite" in ended.output
        require(ended.status == 0 or whole_already, f"after {done} kills it does not end well: {ended.output[-500:]}")
        break
    difference = command.differ(folder / "whole", folder / "killed")
    require(difference is None, f"after {done} kills: {difference}")
    if command.trains:
        compared = compare_lines(folder / "whole" / "train.log", folder / "killed" / "train.log")
    return {"kills": done, "loss lines": compared}


def _with_output(words: list[object], output: Path) -> list[object]:
    return [output if word == OUTPUT else word for word in words]


def loss_lines(log: Path) -> list[dict[str, object]]:
    """Lines of single updates in a log, without what measures the machine and without a line that a kill has cut."""
    found = []
    for text in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if "| train_inner | {" in text and text.endswith("}"):
            line = json.loads(text[text.index("{") :])
            found.append({name: value for name, value in line.items() if name not in _MEASURED})
    return found


def compare_lines(whole: Path, killed: Path) -> int:
    """Requires each line of a log with kills to be that of its update in a whole one, all met; returns their number."""
    expected = {line["num_updates"]: line for line in loss_lines(whole)}
    require(bool(expected), f"{whole} has no loss line, so nothing is compared")
    found = loss_lines(killed)
    for line in found:
        own = expected.get(line["num_updates"])
        require(line == own, f"update {line['num_updates']} logs {line} instead of {own}")
    missing = expected.keys() - {line["num_updates"] for line in found}
    require(not missing, f"updates without a line: {sorted(missing)}")
    return len(found)


def differing_training(whole: Path, killed: Path) -> str | None:
    """The first file of two trainings that is in one alone, or in which they differ by more than the clock.

    Checkpoints hold times, so only their parameters and the optimizer's state are compared; the log is compared by
    :func:`compare_lines`. Two things that a kill leaves are no output: the file by which a training locked its folder,
    which the next training takes away, and folders that were not finished, which a note says to remove.
    """
    difference = _difference(_trained(whole), _trained(killed))
    if difference is not None:
        return difference
    for path in sorted(whole.rglob("*.pt")):
        name = path.relative_to(whole).as_posix()
        one, two = (torch.load(folder / name, weights_only=True) for folder in (whole, killed))
        for part in ("model", "last_optimizer_state"):
            if part not in one:
                return f"{name} has no {part}, so nothing is compared"
            where = _differing_values(one[part], two.get(part), part)
            if where is not None:
                return f"{name}: {where} differs"
    return None


def _trained(folder: Path) -> dict[str, bytes]:
    """Contents of a training's files, without times, its lock and folders that were not finished."""
    contents = _contents(folder).items()
    return {
        name: _without_times(name, text) for name, text in contents if name != TRAINING and not _UNFINISHED.search(name)
    }


def _without_times(name: str, content: bytes) -> bytes:
    """What of a training's file does not depend on the clock, nor on whether the training was killed."""
    if name.endswith((".pt", ".log")):
        return b""
    if name == "results.json":
        results = json.loads(content)
        return json.dumps({key: results[key] for key in results if key not in _CLOCK}).encode()
    if name == "README.md":
        return re.sub(rb"^\| date \|.*$", b"", content, flags=re.MULTILINE)
    return content


def _differing_values(one: Any, two: Any, where: str) -> str | None:
    """Name of the first of nested values, tensors among them, that is not equal bit for bit; None where all are."""
    if isinstance(one, torch.Tensor):
        return None if isinstance(two, torch.Tensor) and torch.equal(one, two) else where
    if type(one) is not type(two):
        return where
    if isinstance(one, dict):
        if one.keys() != two.keys():
            return where
        pairs = [(f"{where}.{name}", one[name], two[name]) for name in one]
    elif isinstance(one, (list, tuple)):
        if len(one) != len(two):
            return where
        pairs = [(f"{where}.{number}", *values) for number, values in enumerate(zip(one, two, strict=True))]
    else:
        return None if one == two else where
    return next((found for name, *values in pairs if (found := _differing_values(*values, name)) is not None), None)


def differing_files(whole: Path, killed: Path) -> str | None:
    """The first file with other bytes of two outputs, files or folders, which may name their own path."""
    return _difference(_contents(whole), _contents(killed))


def _difference(one: Mapping[str, bytes], two: Mapping[str, bytes]) -> str | None:
    """The first name of two outputs, without kills and with them, that is in one alone or has other contents."""
    for name in sorted(one.keys() | two.keys()):
        if name not in one or name not in two:
            return f"{name} is there {'without' if name in one else 'after'} kills alone"
        if one[name] != two[name]:
            return f"{name} has other contents"
    return None


def _contents(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    own = str(path).encode()
    found = {}
    for file in files:
        name = file.name if file == path else file.relative_to(path).as_posix()
        found["output" if file == path else name] = file.read_bytes().replace(own, b"OUTPUT")
    return found


# Commands

_SMALL = ["--tokens-per-sample", 32, "--max-tokens", 128, "--device", "cpu"]
_OFTEN = "--log-interval 1 --save-interval-updates 4 --layers 1 --width 16 --heads 2 --num-workers 1"


def _pretrain(
    folder: Path, objectives: str, kind: str = "documents", model: str = "tiny", more: str = ""
) -> list[object]:
    prepared = data.FOLDERS[kind](folder)
    return [
        "unified.cli", "pretrain", prepared, "--output", OUTPUT, "--model", model, "--objectives", objectives,
        "--max-update", 40, *_SMALL, "--fairseq", f"{_OFTEN} {more}",
    ]  # fmt: skip


def _texts(folder: Path, rows: int = 60) -> Path:
    rng, words = np.random.default_rng(1), [f"w{number}" for number in range(10)]
    texts = [" ".join(rng.choice(words, rng.integers(2, 9))) for _ in range(rows)]
    return write(folder / "texts.txt", "".join(f"{text}\n" for text in texts))


def _items(folder: Path) -> Path:
    lines = Path(_texts(folder)).read_text(encoding="utf-8").splitlines()
    for split, own in (("train", lines[:40]), ("valid", lines[40:])):
        rows = [{"id": str(n), "text": text, "label": "yes" if "w1" in text else "no"} for n, text in enumerate(own)]
        write(folder / "items" / f"{split}.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    return folder / "items"


def _finetune(folder: Path) -> list[object]:
    (folder / "items").mkdir()
    return [
        "unified.cli", "finetune", "classification", "--data", _items(folder), "--output", OUTPUT,
        "--init", language_model(folder / "model"), "--epochs", 3, "--max-length", 16, "--batch-size", 4,
        "--device", "cpu", "--fairseq", "--log-interval 1 --save-interval-updates 4 --num-workers 1",
    ]  # fmt: skip


def _generate(folder: Path) -> list[object]:
    model = language_model(folder / "model", writes="left_to_right", token_types=6)
    return [
        "unified.cli", "generate", "--input", _texts(folder), "--output", OUTPUT, "--model", model, "--chunk", 4,
        "--workers", 2, "--max-length", 5, "--prompt", "--beam", 2,
    ]  # fmt: skip


def _prepare(folder: Path) -> list[object]:
    text = write(folder / "corpus.txt", raw_text(random_documents(2000)))
    return ["unified.cli", "prepare", text, "--output", OUTPUT, "--tokenizer", "char", "--workers", 2]


COMMANDS = [
    Command("prepare", _prepare, differing_files),
    Command("generate", _generate, differing_files),
    Command("pretrain a mixture", lambda folder: _pretrain(folder, "bidirectional:20,seq2seq:20,bert:1"),
            differing_training, trains=True),
    Command("pretrain an encoder with padding", lambda folder: _pretrain(folder, "bert", more="--padded"),
            differing_training, trains=True),
    Command("pretrain with a memory",
            lambda folder: _pretrain(folder, "xlnet", model="xlnet_tiny", more="--memory 24 --inner-dropout 0.1"),
            differing_training, trains=True),
    Command("pretrain a writing task", lambda folder: _pretrain(folder, "target_cloze", kind="pairs"),
            differing_training, trains=True),
    Command("finetune", _finetune, differing_training, trains=True),
]  # fmt: skip
