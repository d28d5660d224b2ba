"""Claims and locks in detail: the words of differences, files and folders that are made and removed, file locks."""

import json
import os
import stat
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from unified.errors import UnifiedError
from unified.files.claims import FILE_NAME, Claim, claimed_file, claimed_folder
from unified.files.locks import TRAINING, locked_file, locked_model, locked_training

OURS = Claim({"--seed": 1}, {"--data": {"a": "1"}})
OTHER = Claim({"--seed": 1, "--words": "a much longer claim than the other one"})


def refused(block):
    """The message with which a context manager refuses to enter its block."""
    with pytest.raises(UnifiedError) as raised, block:
        pytest.fail("not refused")
    return raised.value.details


# ---------------------------------------------------------------- what differs


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": None}, {}, None),
        ({"a": 1}, {"a": 1.0}, None),
        ({"a": (1, 2)}, {"a": [1, 2]}, None),
        ({"b": 1, "a": 1}, {"a": 2, "b": 2}, "b 1, now 2"),
        ({}, {"a": "é x"}, "no a, now é x"),
        ({"a": ""}, {"a": ["é"]}, 'a "", now ["é"]'),
        ({"a": True}, {}, "a true, now without"),
        ({"a": {"b": None}}, {"a": {}}, 'a {"b": null}, now {}'),
    ],
)
def test_the_first_difference_of_settings_is_told_in_the_users_words(before, now, says):
    assert Claim(now).difference(Claim(before).content) == says


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ({"--data": {"a": "1", "b": "2"}}, {"--data": {"b": "2", "a": "1"}}, None),
        ({"--data": {"a": "1", "b": "2"}}, {"--data": {"a": "1", "b": "3"}}, "other contents of --data (b)"),
        ({}, {"--data": {"a": "1"}}, "other contents of --data (a)"),
        ({"--data": {"a": "1"}}, {}, "other contents of --data (a)"),
        ({"--data": {}}, {}, None),
    ],
)
def test_the_first_difference_of_inputs_is_told(before, now, says):
    assert Claim({}, now).difference(Claim({}, before).content) == says
    assert Claim({"x": 1}, now).difference(Claim({"x": 2}, before).content) == "x 2, now 1"


def test_a_claim_is_json_that_can_be_read(tmp_path):
    claim = Claim({"--é": ("a", 1)})
    assert claim.inputs == {} and claim.content == {"settings": {"--é": ["a", 1]}, "inputs": {}}
    with claimed_file(tmp_path / "out", claim, "go away"):
        text = (tmp_path / "out.claim").read_text(encoding="utf-8")
    assert text == json.dumps(claim.content, indent=2, ensure_ascii=False) and '"--é"' in text
    with pytest.raises(FrozenInstanceError):
        claim.settings = {}


# ---------------------------------------------------------------- folders and files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_folders_that_a_claim_has_made_are_removed_where_nothing_is_begun(tmp_path):
    (tmp_path / "there").mkdir()
    with claimed_folder(tmp_path / "there", OURS, "go away"):
        assert names(tmp_path / "there") == [FILE_NAME] == ["claim.json"]
    assert names(tmp_path) == ["there"] and names(tmp_path / "there") == []
    with claimed_folder(tmp_path / "there" / "x" / "y", OURS, "go away"):
        (tmp_path / "there" / "beside").touch()
    assert names(tmp_path / "there") == ["beside"]
    with claimed_folder(tmp_path / "x" / "y", OURS, "go away"):
        (tmp_path / "x" / "kept").touch()
    assert names(tmp_path / "x") == ["kept"]


def test_a_folder_with_nothing_but_the_claim_of_a_killed_command_is_free(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for left in (json.dumps(OTHER.content), '{"settings', "[]", json.dumps(OTHER.content | {"inputs": {"a": 1}})):
        folder.mkdir(exist_ok=True)
        (folder / FILE_NAME).write_text(left)
        with claimed_folder(folder, OURS, "go away"):
            assert json.loads((folder / FILE_NAME).read_text()) == OURS.content
        assert names(tmp_path) == []


def test_a_caller_may_say_what_a_claim_has_to_explain(tmp_path):
    folder = tmp_path / "run"
    begun = []
    with claimed_folder(folder, OURS, "go away", lambda: bool(begun)):
        begun.append(1)
    assert names(folder) == [FILE_NAME]
    says = f"{folder}: was begun with no --words, now a much longer claim than the other one; go away"
    assert refused(claimed_folder(folder, OTHER, "go away", lambda: True)) == says
    with claimed_folder(folder, OTHER, "go away", lambda: False):
        (folder / "part").touch()
    assert names(folder) == ["part"]
    says = f"{folder}: is there already, and no claim beside it says what made it; go away"
    assert refused(claimed_folder(folder, OURS, "go away")) == says
    (folder / FILE_NAME).write_text('{"settings": [], "inputs": {}}')
    assert refused(claimed_folder(folder, OURS, "go away")) == says and names(folder) == ["part"]
    (tmp_path / "file").touch()
    says = f"{tmp_path}/file: a file, where a folder should be"
    assert refused(claimed_folder(tmp_path / "file", OURS, "go away")) == says
    says = f"{tmp_path}/file/a/b: {tmp_path}/file is a file, where a folder should be"
    assert refused(claimed_folder(tmp_path / "file/a/b", OURS, "go away")) == says


def test_a_folder_that_one_may_not_write_into_is_not_claimed(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    with monkeypatch.context() as closed:
        closed.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)  # the superuser may do all
        says = f"{tmp_path}/new/run: you may not write into {tmp_path}"
        assert refused(claimed_folder(tmp_path / "new/run", OURS, "go away")) == says
        with claimed_folder(tmp_path / "there", OURS, "go away"):
            assert names(tmp_path / "there") == [FILE_NAME]
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / "there")
    says = f"{tmp_path}/there: you may not write into {tmp_path}/there"
    assert refused(claimed_folder(tmp_path / "there", OURS, "go away")) == says


def test_a_file_of_one_byte_is_begun_and_an_empty_one_is_not(tmp_path):
    path = tmp_path / "out"
    for content, left in ((b"", []), (b"x", ["out", "out.claim"])):
        with claimed_file(path, OURS, "go away"):
            path.write_bytes(content)
        assert names(tmp_path) == left
    with claimed_file(path, OURS, "go away"):
        assert names(tmp_path) == ["out", "out.claim"]
    says = f"{path}: was begun with no --words, now a much longer claim than the other one; go away"
    assert refused(claimed_file(path, OTHER, "go away")) == says and names(tmp_path) == ["out", "out.claim"]


def test_a_claim_that_is_removed_within_the_block_is_not_missed(tmp_path):
    path = tmp_path / "out"
    with claimed_file(path, OURS, "go away"):
        (tmp_path / "out.claim").unlink()
    assert names(tmp_path) == []


# ---------------------------------------------------------------- locks


def test_a_lock_file_stays_unless_its_removal_is_asked_for(tmp_path):
    file = tmp_path / "lock"
    before = os.umask(0)
    try:
        with locked_file(file, tmp_path):
            assert stat.S_IMODE(file.stat().st_mode) == 0o666
            assert refused(locked_file(file, tmp_path / "owner")) == (
                f"{tmp_path}/owner: a command is at work on it; wait for its end"
            )
    finally:
        os.umask(before)
    assert names(tmp_path) == ["lock"]
    with locked_file(file, tmp_path, removed=True):
        pass
    assert names(tmp_path) == []
    with locked_file(file, tmp_path, removed=True):
        file.unlink()
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with locked_file(file, tmp_path):
            refused(locked_file(file, tmp_path))
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_model_is_locked_by_a_file_beside_its_folder(tmp_path):
    model = tmp_path / "deep" / "model"
    with locked_model(str(model)):
        assert names(tmp_path / "deep") == [".model.lock"]
        assert refused(locked_model(model)) == f"{model}: a command is at work on it; wait for its end"
    assert names(tmp_path / "deep") == []
    with locked_model(model.parent / "x" / ".." / "model"):
        assert names(tmp_path / "deep") == [".model.lock"]
    with locked_model(None), locked_model(None):
        assert names(tmp_path) == ["deep"]
    (tmp_path / "file").touch()
    assert refused(locked_model(tmp_path / "file" / "x" / "model")) == f"{tmp_path}/file/x: Not a directory"


def test_the_folder_of_a_training_is_made_and_stays(tmp_path):
    folder = tmp_path / "a" / "b"
    for _ in range(2):
        with locked_training(folder):
            assert names(folder) == [TRAINING] == ["training.lock"]
        assert names(folder) == []
