"""Files of checkpoints: whole or not there, on the disk before they get their names, and refused by name."""

import os
import shutil
import stat
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from fairseq_plugins import checkpoints
from fairseq_plugins.checkpoints import copy_atomically, remove_parts
from fairseq_plugins.task import DictionaryTask

FOLDER = "folder"


@pytest.fixture
def steps(monkeypatch):
    """What happens to files in order: what is flushed to the disk, with its size, and what gets another name."""
    found, fsync, replace = [], os.fsync, os.replace

    def flushed(descriptor):
        status = os.fstat(descriptor)
        found.append(("fsync", FOLDER if stat.S_ISDIR(status.st_mode) else status.st_size))
        fsync(descriptor)

    def renamed(source, target):
        found.append(("rename", os.path.basename(source), os.path.basename(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    return found


def test_a_copy_is_on_the_disk_before_it_has_its_name(tmp_path, steps):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"x" * ((1 << 22) + 1))  # the last byte waits in a buffer
    target.write_text("old")
    assert copy_atomically(str(source), str(target), overwrite=True) == str(target)
    assert target.read_bytes() == source.read_bytes() and len(list(tmp_path.iterdir())) == 2
    assert steps == [
        ("fsync", (1 << 22) + 1),
        ("rename", f".target.{os.getpid()}.partial", "target"),
        ("fsync", FOLDER),
    ]


def test_a_file_that_is_there_is_not_copied_over_unless_that_is_said(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("new")
    copy_atomically(str(source), str(target))
    assert target.read_text() == "new"
    source.write_text("newer")
    for options in ({}, {"overwrite": False}):
        with pytest.raises(FileExistsError) as raised:
            copy_atomically(str(source), str(target), **options)
        assert str(raised.value) == f"{target} exists and overwrite is False"
    assert target.read_text() == "new"


def test_a_checkpoint_is_on_the_disk_before_it_has_its_name(tmp_path, steps):
    save = checkpoints.saving_whole(lambda *given, **options: pytest.fail("fairseq's own is not called"))
    path = tmp_path / "checkpoint_last.pt"
    save({"numbers": torch.arange(100_000)}, str(path))
    part = f".checkpoint_last.pt.{os.getpid()}.partial"
    assert torch.load(path, weights_only=True)["numbers"][-1] == 99_999
    assert steps == [("fsync", path.stat().st_size), ("rename", part, "checkpoint_last.pt"), ("fsync", FOLDER)]


def test_fairseqs_own_writing_in_the_background_stays_its_own(tmp_path):
    asked = []
    save = checkpoints.saving_whole(lambda *given, **options: asked.append((given, options)) or "handle")
    path = str(tmp_path / "file")
    assert save("content", path, async_write=True) == "handle"
    assert asked == [(("content", path), {"async_write": True})] and not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, TypeError])
def test_an_interruption_and_other_errors_stay_what_they_are_and_leave_no_part(tmp_path, monkeypatch, error):
    def stopped(reader, writer, size):
        writer.write(b"half")
        raise error("why")

    (tmp_path / "source").touch()
    monkeypatch.setattr(shutil, "copyfileobj", stopped)
    with pytest.raises(error, match="^why$"):
        copy_atomically(str(tmp_path / "source"), str(tmp_path / "target"))
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_an_error_of_the_system_is_a_refusal_that_says_what_helps(tmp_path, monkeypatch):
    source, target = tmp_path / "source", str(tmp_path / "target")
    source.touch()

    def full(*given):
        raise OSError(28, "No space left on device")

    def nameless(*given):
        raise OSError("odd")

    advice = "the checkpoints before it are whole: the same command goes on from the last one"
    for fail, why in ((full, "No space left on device"), (nameless, "odd")):
        monkeypatch.setattr(shutil, "copyfileobj", fail)
        with pytest.raises(SystemExit) as raised:
            copy_atomically(str(source), target)
        assert str(raised.value) == f"unified_lm: error: {target}: {why}; {advice}"


def test_parts_of_checkpoints_alone_are_removed(tmp_path):
    gone = [".checkpoint_last.pt.12.partial", ".checkpoint_1_10.pt.7.partial"]
    kept = ["checkpoint_last.pt", ".other.pt.7.partial", "checkpoint.pt.7.partial", "train.log"]
    for name in (*gone, *kept):
        (tmp_path / name).touch()
    remove_parts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_a_damaged_checkpoint_is_refused_by_its_name(tmp_path):
    path = tmp_path / "model.pt"
    path.write_text("no checkpoint")
    load = checkpoints.naming_damage(lambda path, *more, **options: torch.load(path, weights_only=True))
    with pytest.raises(SystemExit, match=f"^unified_lm: error: {path}: "):
        load(str(path), {"a": 1}, load_on_all_ranks=True)
    torch.save({"whole": 1}, path)
    whole = checkpoints.naming_damage(lambda *given, **options: (given, options))
    assert whole(str(path), 2, three=3) == ((str(path), 2), {"three": 3})


class Task(DictionaryTask):
    """Notes when a checkpoint is about to be written."""

    def __init__(self):
        self.told = 0

    def before_saving(self):
        self.told += 1


@pytest.mark.parametrize(("no_save", "told"), [(False, 1), (True, 0)])
def test_a_task_of_ours_is_told_of_a_checkpoint_before_it_is_written_with_whole_paths(
    tmp_path, monkeypatch, no_save, told
):
    """Paths of data folders, which are saved."""
    ours, seen = Task(), []
    monkeypatch.chdir(tmp_path)

    def saved(cfg, trainer, *given, **options):
        seen.append((ours.told, trainer.cfg.task.data))
        return given, options

    save = checkpoints.announcing_saves(saved)
    for task in (ours, "of somebody else"):
        config = OmegaConf.create({"task": {"data": f"data{os.pathsep}/more"}})
        found = save(SimpleNamespace(no_save=no_save), SimpleNamespace(task=task, cfg=config), 1, 2, three=3)
        assert found == ((1, 2), {"three": 3})
    data = f"data{os.pathsep}/more"
    assert seen == [(told, f"{tmp_path}/{data}" if told else data), (told, data)]


@pytest.mark.parametrize("state", [{}, {"task_state": {"pair_lengths": 1}}])
def test_a_task_and_its_model_are_given_what_a_checkpoint_keeps_of_its_heads(state):
    """fairseq gives it to a training that goes on alone."""
    heads = {"classification": {"head": "classification", "settings": {"labels": ("a", "b")}}}
    content = {**state, "model": {"a": 1}, "extra_state": {"UnifiedUnderstandingTask": heads}}
    load = checkpoints.handing_over_heads(lambda *given, **options: {**content, "given": given, **options})
    found = load("model.pt", 1, two=2)
    assert (found["given"], found["two"]) == (("model.pt", 1), 2)
    assert found["task_state"] == {**state.get("task_state", {}), "heads": heads}
    assert found["model"] == {"a": 1, "kept_heads": heads}
    language_model = {**state, "extra_state": {}}
    assert checkpoints.handing_over_heads(lambda path: language_model)("model.pt") == language_model


def test_a_missing_file_of_a_path_is_refused_in_one_line(tmp_path):
    """fairseq ended in a traceback."""
    path = str(tmp_path / "checkpoint_best.pt")
    for given, says in {path: f"--path: Model file not found: {path}", None: "--path must name a checkpoint"}.items():
        with pytest.raises(SystemExit) as raised:
            checkpoint_utils.load_model_ensemble_and_task([given])
        assert str(raised.value) == f"unified_lm: error: {says}"
