"""A new folder appears whole or not at all, replaces only files of its own manifest, and has a manifest itself."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.support.full_disk import full_disk
from unified.errors import UnifiedError
from unified.files.destination import (
    MANIFEST,
    check_destination,
    describe,
    manifest_outputs,
    new_folder,
    write_manifest,
)
from unified.files.whole import resolved, write_whole_text


def made(destination: Path, files: dict[str, str], overwrite: bool = False) -> None:
    """A folder with these files and a manifest of them."""
    with new_folder(destination, overwrite) as partial:
        for name, text in files.items():
            (partial / name).parent.mkdir(exist_ok=True)
            (partial / name).write_text(text)
        write_manifest(partial, {})


def texts(folder: Path) -> dict[str, str]:
    """The texts of all files but the manifest, by their paths."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def refusal(destination: Path, overwrite: bool, *advice: str) -> str:
    """The message with which both functions refuse a destination."""
    with pytest.raises(UnifiedError) as refused:
        check_destination(destination, overwrite, *advice)
    with pytest.raises(UnifiedError) as again, new_folder(destination, overwrite, *advice):
        raise AssertionError("the block must not be entered")
    assert str(refused.value) == str(again.value)
    return str(refused.value)


def test_a_folder_appears_when_the_block_ends_well(tmp_path):
    destination = tmp_path / "above" / "more" / "new"
    with new_folder(str(destination), overwrite=False) as partial:
        assert partial == tmp_path / "above" / "more" / f".new.{os.getpid()}.partial" and partial.is_dir()
        (partial / "a").write_text("x")
        assert not destination.exists()
    assert texts(destination) == {"a": "x"} and os.listdir(destination.parent) == ["new"]


def test_nothing_is_left_where_the_block_fails(tmp_path):
    made(tmp_path / "old", {"a": "before"})
    for name in ("new", "old"):
        with pytest.raises(KeyError), new_folder(tmp_path / name, overwrite=True) as partial:
            (partial / "a").write_text("half")
            raise KeyError
    assert os.listdir(tmp_path) == ["old"] and texts(tmp_path / "old") == {"a": "before"}


def test_files_are_on_the_disk_before_the_folder_has_its_name(tmp_path, monkeypatch):
    synced, destination = [], tmp_path / "new"

    def fsync(number: int) -> None:
        assert not destination.exists()
        synced.append(os.fstat(number).st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    made(destination, {"a": "x", "in/b": "y"})
    files = [destination / "a", destination / "in" / "b", destination / MANIFEST]
    assert {path.stat().st_ino for path in files} <= set(synced)


def test_a_folder_whose_manifest_lists_all_its_files_is_replaced_whole(tmp_path):
    made(tmp_path / "new", {"a": "1", "in/b": "1"})
    made(tmp_path / "new", {"c": "2"}, overwrite=True)
    assert texts(tmp_path / "new") == {"c": "2"} and os.listdir(tmp_path) == ["new"]


def test_a_folder_that_is_replaced_has_another_name_until_the_new_one_is_there(tmp_path, monkeypatch):
    made(tmp_path / "new", {"a": "1"})
    rename, seen = os.rename, []

    def noted(before: Path, after: Path) -> None:
        rename(before, after)
        seen.append({path.name: texts(path) for path in tmp_path.iterdir()})

    monkeypatch.setattr(os, "rename", noted)
    made(tmp_path / "new", {"a": "2"}, overwrite=True)
    old = f".new.{os.getpid()}.old"
    assert seen == [{old: {"a": "1"}, f".new.{os.getpid()}.partial": {"a": "2"}}, {old: {"a": "1"}, "new": {"a": "2"}}]


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_empty_folder_is_taken(tmp_path, overwrite):
    (tmp_path / "new").mkdir()
    check_destination(tmp_path / "new", overwrite)
    check_destination(tmp_path / "none", overwrite)
    made(tmp_path / "new", {"a": "x"}, overwrite)
    assert texts(tmp_path / "new") == {"a": "x"} and os.listdir(tmp_path) == ["new"]


def test_nothing_is_replaced_unless_that_is_asked_for(tmp_path):
    made(tmp_path / "new", {"a": "1"})
    assert refusal(tmp_path / "new", False) == f"{tmp_path / 'new'}: not empty; name a new folder"
    assert refusal(tmp_path / "new", False, "say --overwrite") == f"{tmp_path / 'new'}: not empty; say --overwrite"
    (tmp_path / "file").write_text("x")
    for overwrite in (False, True):
        assert refusal(tmp_path / "file", overwrite) == f"{tmp_path / 'file'}: a file, where the new folder should be"
        says = f"{tmp_path / 'file/a/new'}: {tmp_path / 'file'} is a file, where a folder should be"
        assert refusal(tmp_path / "file/a/new", overwrite) == says
    assert texts(tmp_path / "new") == {"a": "1"}


@pytest.mark.parametrize("foreign", ["b", "in/b", "empty/", "link", "broken"])
def test_a_folder_with_anything_that_its_manifest_does_not_list_is_never_replaced(tmp_path, foreign):
    folder = tmp_path / "new"
    made(folder, {"a": "1", "z": "1", "in/a": "1"})
    if foreign.endswith("/"):
        (folder / foreign).mkdir()
    elif foreign in ("link", "broken"):
        (folder / foreign).symlink_to(tmp_path if foreign == "link" else tmp_path / "nowhere")
    else:
        (folder / foreign).write_text("mine")
    assert refusal(folder, True) == (
        f"{folder}: holds {foreign.rstrip('/')}, which manifest.json there does not list, so it will not be replaced; "
        "move it away or name another folder"
    )


@pytest.mark.parametrize("manifest", [None, "nothing", '{"outputs": {"a": {}}}', '{"files": {}}'])
def test_without_a_manifest_of_ours_every_file_is_foreign(tmp_path, manifest):
    (tmp_path / "a").write_text("mine")
    if manifest is not None:
        (tmp_path / MANIFEST).write_text(manifest)
    assert refusal(tmp_path, True).startswith(f"{tmp_path}: holds a, which manifest.json there does not list")


@pytest.mark.parametrize("name", [None, "z"])
def test_a_manifest_of_another_program_is_never_replaced(tmp_path, name):
    (tmp_path / MANIFEST).write_text('{"name": "a page of the web"}')
    if name is not None:
        (tmp_path / name).write_text("mine")
    assert refusal(tmp_path, True) == (
        f"{tmp_path}: holds a manifest.json that this library did not write, so it will not be replaced; move it away "
        "or name another folder"
    )


@pytest.mark.parametrize("name", ["new", "there", "far/away/new"])
def test_a_folder_that_one_may_not_write_into_is_refused_before_any_work(tmp_path, monkeypatch, name):
    (tmp_path / "there").mkdir()
    for may in (os.R_OK, os.W_OK, os.X_OK):  # making a file takes both rights: to write and to search
        # The superuser may do all.
        monkeypatch.setattr(os, "access", lambda path, mode, may=may: Path(path) != tmp_path or mode & may == mode)
        with pytest.raises(UnifiedError) as refused:
            check_destination(tmp_path / name, overwrite=True)
        assert str(refused.value) == f"{tmp_path / name}: you may not write into {tmp_path}"
        check_destination(tmp_path / "there" / "new", overwrite=False)


def test_a_link_leads_into_a_folder_that_one_may_not_write_into(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "link").symlink_to("closed/new")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / "closed")
    with pytest.raises(UnifiedError) as refused:
        check_destination(tmp_path / "link", overwrite=False)
    assert str(refused.value) == f"{tmp_path / 'link'}: you may not write into {tmp_path / 'closed'}"


def test_a_link_may_lie_in_a_folder_that_one_may_not_write_into(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "link").symlink_to("../new")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / "closed")
    check_destination(tmp_path / "closed" / "link", overwrite=False)


@pytest.mark.parametrize("name", ["new", "far/new"])
def test_a_folder_that_the_system_does_not_make_is_named_as_the_user_names_it(name):
    folder = Path("/proc") / name  # where even the superuser makes nothing
    with pytest.raises(OSError, match="No such file or directory") as refused, new_folder(folder, overwrite=False):
        pytest.fail("it begins")
    assert refused.value.filename == str(folder)


def test_a_link_to_itself_is_no_folder(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("other")
    (tmp_path / "other").symlink_to("loop")
    for path in (loop, loop / "new"):
        for refuse in (resolved, lambda path: check_destination(path, overwrite=True)):
            with pytest.raises(UnifiedError) as refused:
                refuse(path)
            assert str(refused.value) == f"{path}: a symbolic link that leads back to itself"
        with pytest.raises(UnifiedError), new_folder(path, overwrite=True):
            pytest.fail("it begins")
    assert sorted(os.listdir(tmp_path)) == ["loop", "other"]


def test_a_device_is_no_folder():
    with pytest.raises(UnifiedError, match="^/dev/null/new: /dev/null is a file, where a folder should be$"):
        check_destination(Path("/dev/null/new"), overwrite=False)


def test_a_folder_that_another_run_left_is_named_and_stays(tmp_path, capsys):
    for name in (".a[b].7.partial", ".a[b].12.partial", ".ab.7.partial", ".a[b].7.old"):
        (tmp_path / name).mkdir()
    made(tmp_path / "a[b]", {})
    assert capsys.readouterr().err.splitlines() == [
        f"note: {tmp_path / left} was left by a run that was killed, unless one is at work; remove it by hand"
        for left in (".a[b].12.partial", ".a[b].7.partial")
    ]
    assert (tmp_path / ".a[b].7.partial").is_dir()


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_written_into_the_destination_meanwhile_stays(tmp_path, overwrite):
    with pytest.raises(UnifiedError) as refused, new_folder(tmp_path / "new", overwrite, "say --overwrite") as partial:
        (partial / "a").write_text("x")
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "thesis").write_text("mine")
    says = {False: "not empty; say --overwrite", True: f"holds thesis, which {MANIFEST} there does not list"}
    assert str(refused.value).startswith(f"{tmp_path / 'new'}: {says[overwrite]}")
    assert refused.value.details.endswith(f"; what was made is complete in {partial}, rename it")
    assert texts(tmp_path) == {"new/thesis": "mine", f"{partial.name}/a": "x"}


@pytest.mark.parametrize("left", [[".partial"], [".old"], [".partial", ".2.old"]])
def test_what_a_killed_run_of_the_same_number_left_stays(tmp_path, left):
    called = f".new.{os.getpid()}"
    made(tmp_path / "new", {"a": "1"})
    for ending in left:
        (tmp_path / (called + ending)).mkdir()
        (tmp_path / (called + ending) / "a").write_text(ending)
    with new_folder(tmp_path / "new", overwrite=True) as partial:
        assert partial == tmp_path / f"{called}.{1 + len(left)}.partial"
        (partial / "a").write_text("2")
        write_manifest(partial, {})
    assert sorted(os.listdir(tmp_path)) == sorted([*(called + ending for ending in left), "new"])
    assert texts(tmp_path) == {"new/a": "2", **{f"{called}{ending}/a": ending for ending in left}}


def test_a_manifest_has_size_and_hash_of_every_other_file(tmp_path):
    (tmp_path / "in").mkdir()
    contents = {"b": b"", "a": b"x" * 70_000, "in/c": "é".encode()}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    write_manifest(tmp_path, {"command": "été", "seed": 1})
    outputs = {
        name: {"bytes": len(contents[name]), "sha256": hashlib.sha256(contents[name]).hexdigest()}
        for name in ("a", "b", "in/c")
    }
    expected = json.dumps({"command": "été", "seed": 1, "outputs": outputs}, indent=2, ensure_ascii=False) + "\n"
    assert (tmp_path / "manifest.json").read_bytes() == expected.encode()
    assert manifest_outputs(tmp_path) == {name: one["sha256"] for name, one in outputs.items()}
    assert describe(str(tmp_path / "a")) == outputs["a"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{}", "damaged, 'outputs' is missing; make the folder anew"),
        ('{"outputs": []}', "damaged, 'outputs' must be an object; make the folder anew"),
        ('{"outputs": {"a": {}}}', "damaged, 'sha256' of 'a' of 'outputs' is missing; make the folder anew"),
        ('{"outputs": {"a": {"sha256": 1}}}', "damaged, 'sha256' of 'a' of 'outputs' must be a text; make the folder "
         "anew"),
        ("[]", "not a JSON object"),
    ],
)  # fmt: skip
def test_a_damaged_manifest_is_refused(tmp_path, content, says):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UnifiedError) as refused:
        manifest_outputs(tmp_path)
    assert str(refused.value) == f"{tmp_path / 'manifest.json'}: {says}"
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(UnifiedError, match=r"manifest\.json: no such file or folder$"):
        manifest_outputs(tmp_path)


def test_a_file_that_cannot_be_written_is_named_below_the_folder_that_the_user_gave(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="File too large") as raised, new_folder("new", overwrite=False) as partial:
        (partial / "in").mkdir()
        with full_disk():
            write_whole_text(partial / "in" / "a", "x")
    assert raised.value.filename == os.path.join("new", "in", "a") and os.listdir() == []
    with pytest.raises(FileNotFoundError) as raised, new_folder("new", overwrite=False):
        open("of another folder", "rb")
    assert raised.value.filename == "of another folder"
    with pytest.raises(OSError, match="odd") as raised, new_folder("new", overwrite=False):
        raise OSError("odd")
    assert raised.value.filename is None


def test_a_folder_that_does_not_reach_the_disk_names_its_file(tmp_path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space") as raised, new_folder(tmp_path / "new", overwrite=False) as partial:
        (partial / "a").touch()
        monkeypatch.setattr(os, "fsync", full)
    assert raised.value.filename == str(tmp_path / "new" / "a")
