"""Data folders that are cut short, garbled or do not fit their dictionary, through fairseq-train and -generate."""

import shutil

import numpy as np
import pytest

from tests.support import fairseq_runs as fairseq

# What is wrong -> (file, what to do with its bytes, words of the message)
DAMAGES = {
    "tokens cut short": ("train.bin", lambda data: data[: len(data) // 2], "train.bin"),
    "tokens missing": ("train.bin", None, "train.bin"),
    "index cut short": ("train.idx", lambda data: data[: len(data) // 2], "train.idx"),
    "index of no fairseq": ("train.idx", lambda data: b"NOT AN INDEX" + data[12:], "train.idx"),
    "index garbled": ("train.idx", lambda data: data[:26] + bytes(reversed(data[26:])), "train"),
    "index empty": ("train.idx", lambda data: b"", "train.idx"),
    "index of validation missing": ("valid.idx", None, "valid"),
    "dictionary missing": ("dict.txt", None, "dict.txt"),
    "dictionary without counts": ("dict.txt", lambda data: data.replace(b" ", b""), "dict.txt"),
    "dictionary not text": ("dict.txt", lambda data: b"\xff\xfe\x00" + data, "dict.txt"),
    "dictionary too short": ("dict.txt", lambda data: data[: data.index(b"\n") + 1], "dict.txt"),
    "tokens of another dictionary": ("train.bin", lambda data: b"\xff" * len(data), "dict.txt"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return fairseq.documents(tmp_path_factory.mktemp("documents"), np.random.default_rng(0))


def damaged(data, folder, name, change):
    shutil.copytree(data, folder)
    if change is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(change((data / name).read_bytes()))
    return folder


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_folder_ends_in_one_line_that_names_the_file(data, tmp_path, kind):
    name, change, says = DAMAGES[kind]
    folder = damaged(data, tmp_path / "bin", name, change)
    few = ("--save-dir", tmp_path / "model", "--batch-size", 4, "--max-update", 2)
    assert says in fairseq.refusal_to_train(folder, *fairseq.PLUGINS, *fairseq.TINY, *few)
    assert not list((tmp_path / "model").glob("*.pt"))
