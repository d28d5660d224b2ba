"""Checkpoint files: damaged, malicious, killed in mid-write; parameters that do and do not fit."""

import argparse
import os
import pickle
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.support.full_disk import full_disk
from tests.support.tiny_models import model
from unified.checkpoints import fingerprint, load_checkpoint, load_parameters, save
from unified.checkpoints.conversion import decoding
from unified.checkpoints.sources import read_parameters
from unified.checkpoints.trained import find_checkpoint
from unified.errors import UnifiedError
from unified.model import TransformerConfig

CONTENT = {
    "cfg": {"model": {"layers": 2, "norm": "post"}, "task": None, "flags": [True, 1.5, ("a", "b")]},
    "args": argparse.Namespace(arch="unified_lm_tiny"),
    "model": {"weight": torch.arange(500.0).reshape(20, 25), "half": torch.ones(3, dtype=torch.bfloat16)},
}


def same(a: object, b: object) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(CONTENT, tmp_path / "model.pt")
    return tmp_path / "model.pt"


def test_what_is_saved_is_loaded(path):
    assert same(load_checkpoint(path), CONTENT)
    assert os.listdir(path.parent) == ["model.pt"]


def test_values_that_nobody_looks_at_stay_in_the_file(path):
    def is_mapped() -> bool:
        return str(path) in Path("/proc/self/maps").read_text(encoding="utf-8")

    read = load_checkpoint(path)
    assert not is_mapped()
    found = load_checkpoint(path, mapped=True)
    assert is_mapped() and same(found, read)
    found["model"]["weight"] += 1  # the file stays as it is
    assert same(load_checkpoint(path), CONTENT)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UnifiedError, match=r"model\.pt: "):
        load_checkpoint(path, mapped=True)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UnifiedError, match=r"nothing\.pt: no such checkpoint file"):
        load_checkpoint(tmp_path / "nothing.pt")


def test_a_folder_without_a_checkpoint_names_those_of_its_folders_that_hold_one(tmp_path):
    """A recipe of two phases leaves such a folder."""
    for name in ("short", "long", "empty"):
        (tmp_path / name).mkdir()
    for name in ("short/checkpoint_last.pt", "long/checkpoint_last.pt", "long/checkpoint_best.pt"):
        (tmp_path / name).touch()
    with pytest.raises(UnifiedError, match=r"holds neither checkpoint_best.* hold checkpoints: long, short$"):
        find_checkpoint(tmp_path)
    with pytest.raises(UnifiedError, match=r"nor checkpoint_last\.pt$"):
        find_checkpoint(tmp_path / "empty")
    assert find_checkpoint(tmp_path / "long") == tmp_path / "long" / "checkpoint_best.pt"


def test_truncated_files_are_refused_at_any_length(path):
    whole = path.read_bytes()
    for length in {0, 1, 4, 100, len(whole) // 2, len(whole) - 30, len(whole) - 1}:
        path.write_bytes(whole[:length])
        with pytest.raises(UnifiedError, match=r"model\.pt: not a checkpoint, or a truncated or damaged one"):
            load_checkpoint(path)


def test_garbled_files_are_refused_or_harmless(path):
    """Flipped bytes anywhere: one UnifiedError that names the file, or the very content; never other weights."""
    whole = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    rng = np.random.default_rng(0)
    refused = 0
    for trial in range(400):
        garbled = whole.copy()
        places = rng.integers(0, len(whole), size=1 + trial % 4)
        garbled[places] ^= rng.integers(1, 256, size=len(places), dtype=np.uint8)
        path.write_bytes(garbled.tobytes())
        try:
            assert same(load_checkpoint(path), CONTENT)
        except UnifiedError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
            refused += 1
    assert refused > 200


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Detected pickle protocol", "ignore:Defining your `__torch_function__`")
def test_garbled_pickles_with_right_checksums_are_refused(path):
    """The pickle inside is damaged, so that the unpickler itself meets the damage."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in records if name.endswith("data.pkl"))
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(400):
        garbled = np.frombuffer(records[name], dtype=np.uint8).copy()
        garbled[rng.integers(0, len(garbled))] = rng.integers(0, 256)
        with zipfile.ZipFile(path, "w") as archive:
            for record, data in records.items():
                archive.writestr(record, garbled.tobytes() if record == name else data)
        try:
            load_checkpoint(path)
        except UnifiedError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
            refused += 1
    assert refused > 100


class Executes:
    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self):
        return (os.mkdir, (str(self.target),))


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("place", ["in a dictionary", "at the top"])
def test_a_malicious_file_is_refused_and_nothing_runs(tmp_path, monkeypatch, place, archive):
    """Nor does it where torch's default was changed by its environment variable."""
    trap, path = tmp_path / "trap", tmp_path / "evil.bin"
    content = {"model": Executes(trap)} if place == "in a dictionary" else Executes(trap)
    torch.save(content, path, _use_new_zipfile_serialization=archive)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    for read in (partial(load_checkpoint, path, older=not archive), partial(read_parameters, tmp_path)):
        with pytest.raises(UnifiedError, match=r"evil\.bin: refused, .*mkdir.* nothing in it was executed"):
            read()
    assert not trap.exists()
    torch.load(path, weights_only=False)
    assert trap.exists()  # the trap would have worked


def test_tensors_of_a_gpu_arrive_on_the_cpu(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:0")
    torch.save({"weight": torch.arange(3.0)}, tmp_path / "model.bin")
    for found in (load_checkpoint(tmp_path / "model.bin"), read_parameters(tmp_path)):
        assert found["weight"].device.type == "cpu" and found["weight"].tolist() == [0.0, 1.0, 2.0]


def test_bare_pickles_are_refused_unread(tmp_path):
    trap, path = tmp_path / "trap", tmp_path / "evil.pt"
    path.write_bytes(pickle.dumps(Executes(trap)))
    with pytest.raises(UnifiedError, match="not a checkpoint"):
        load_checkpoint(path)
    assert not trap.exists()


@pytest.mark.parametrize("value", [np.float64(1.0), np.arange(3), Path("a"), object])
def test_values_of_other_classes_are_refused(tmp_path, value):
    torch.save({"best": value}, tmp_path / "model.pt")
    with pytest.raises(UnifiedError, match="more than tensors and plain values"):
        load_checkpoint(tmp_path / "model.pt")


@pytest.mark.parametrize("known", [False, True])
def test_the_list_of_allowed_classes_is_as_it_was(path, known):
    """Also where somebody, such as the plug-ins, has allowed before what a checkpoint may hold."""
    listed = torch.serialization.get_safe_globals()
    with torch.serialization.safe_globals([argparse.Namespace] if known and argparse.Namespace not in listed else []):
        before = set(torch.serialization.get_safe_globals())
        load_checkpoint(path)
        assert set(torch.serialization.get_safe_globals()) == before
        assert not known or argparse.Namespace in before


def test_something_that_is_no_dictionary_is_refused(tmp_path):
    torch.save([1, 2], tmp_path / "model.pt")
    with pytest.raises(UnifiedError, match="expected a dictionary, got list"):
        load_checkpoint(tmp_path / "model.pt")


def test_a_failed_save_leaves_the_old_file_alone(path):
    with pytest.raises((AttributeError, pickle.PicklingError)):
        save({"model": lambda: 0}, path)
    assert same(load_checkpoint(path), CONTENT)
    assert os.listdir(path.parent) == ["model.pt"]


@pytest.mark.slow
def test_a_kill_in_mid_write_leaves_the_old_file(path):
    program = textwrap.dedent(
        f"""
        import os, signal, torch
        from unified.checkpoints import save
        write = torch.save
        def half(content, file):
            write(content, file)
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        torch.save = half
        save({{"model": {{}}}}, {str(path)!r})
        """
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == -9
    assert same(load_checkpoint(path), CONTENT)


def test_fingerprints_tell_dictionaries_apart():
    assert fingerprint(["a", "b"]) == fingerprint(("a", "b"))
    assert len({fingerprint(s) for s in (["a", "b"], ["b", "a"], ["ab"], ["a", "c"])}) == 4


# Parameters


class Heads(nn.Module):
    def __init__(self, *names: str, width: int = 4):
        super().__init__()
        self.body = nn.Linear(width, width)
        for name in names:
            self.add_module(name, nn.Linear(width, 2))


def test_all_parameters_arrive():
    mine, theirs = model(seed=1), model(seed=2)
    assert load_parameters(mine, theirs.state_dict()) == ([], [])
    assert all(torch.equal(value, theirs.state_dict()[name]) for name, value in mine.state_dict().items())


def test_whole_heads_may_be_new_or_unused_and_are_named():
    torch.manual_seed(0)
    mine, theirs = Heads("classes", "words"), Heads("words", "spans")
    untouched = mine.classes.weight.clone()
    new, unused = load_parameters(mine, theirs.state_dict(), ["classes."], ["spans."])
    assert new == ["classes.weight", "classes.bias"] and unused == ["spans.weight", "spans.bias"]
    assert torch.equal(mine.classes.weight, untouched)
    assert torch.equal(mine.words.weight, theirs.words.weight) and torch.equal(mine.body.weight, theirs.body.weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("body.bias"), "missing: body.bias"),
        (lambda state: state.pop("words.bias"), "missing: words.bias"),  # allowed as a whole, not in part
        (lambda state: state.update(other=torch.zeros(1)), "unknown: other"),
        (lambda state: state.update({"words.scale": torch.zeros(1)}), "unknown: words.scale"),
        (lambda state: state.update({"body.bias": torch.zeros(5)}), "body.bias: shape 5, the model has 4"),
        (lambda state: state.update({"body.bias": 3}), "body.bias: expected a tensor, got int"),
        (lambda state: state.update({"body.bias": torch.zeros(4).to_sparse()}), "body.bias: expected real numbers, .*"),
    ],
)
def test_everything_else_is_refused_and_changes_nothing(change, message):
    mine, state = Heads("words"), dict(Heads("words").state_dict())
    before = {name: value.clone() for name, value in mine.state_dict().items()}
    change(state)
    with pytest.raises(UnifiedError, match=f"do not fit the model: {message}$"):
        load_parameters(mine, state, ["words."], ["words."])
    assert all(torch.equal(value, before[name]) for name, value in mine.state_dict().items())


def test_a_decoding_scheme_that_there_is_not_is_refused():
    """An export's config.json may name one."""
    config = TransformerConfig(vocabulary_size=30, token_types=6)
    assert decoding(config, None, "cloze")[0] == "cloze" and decoding(config, "nothing", "cloze")[0] == "nothing"
    with pytest.raises(UnifiedError, match="no decoding scheme 'nothhng'; there are cloze, .*'nothing'$"):
        decoding(config, "nothhng", "cloze")


def test_all_problems_are_listed_at_once():
    with pytest.raises(UnifiedError) as caught:
        load_parameters(Heads("words"), Heads("spans", width=6).state_dict())
    for part in ("missing: words.weight", "unknown: spans.bias", "body.weight: shape 6x6, the model has 4x4"):
        assert part in str(caught.value)
    with pytest.raises(UnifiedError, match="; and 31 more$"):
        load_parameters(model(), {})


@pytest.mark.parametrize("rows", [20, 48, 100])
def test_position_tables_are_cut_or_continued_cyclically(rows):
    mine, theirs = model(max_positions=rows), model(seed=1, max_positions=48)
    load_parameters(mine, theirs.state_dict())
    table, source = mine.transformer.embeddings.positions.weight, theirs.transformer.embeddings.positions.weight
    for row in range(rows):
        assert torch.equal(table[row], source[row % 48])


@pytest.mark.parametrize("room", [0, 10_000])
def test_a_full_disk_is_an_error_of_the_system_that_names_the_file(path, room):
    """Not torch's own, which tells of an archive alone."""
    with pytest.raises(OSError, match="File too large") as raised, full_disk(room):
        save({"model": torch.zeros(50_000)}, path)
    assert raised.value.filename == str(path) and same(load_checkpoint(path), CONTENT)
    assert os.listdir(path.parent) == ["model.pt"]


def test_an_error_of_torch_itself_keeps_its_kind(path, monkeypatch):
    def broken(*_):
        raise RuntimeError("of torch")

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(RuntimeError, match="^of torch$"):
        save(CONTENT, path)
