"""A file appears whole, after it has reached the disk; whatever fails leaves the old one and nothing beside it."""

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.support.full_disk import full_disk
from unified.errors import UnifiedError
from unified.files.whole import open_output, resolved, to_disk, whole_file, write_whole_bytes, write_whole_text


def test_the_content_and_then_the_name_reach_the_disk(tmp_path, monkeypatch):
    path, seen = tmp_path / "a.b", []
    path.write_bytes(b"old")
    fsync = os.fsync

    def flushed(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        seen.append((is_folder, {one.name: one.read_bytes() for one in tmp_path.iterdir()}))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", flushed)
    with whole_file(path) as stream:
        stream.write(b"\xff\r\n")
        assert path.read_bytes() == b"old"
    written = {f".a.b.{os.getpid()}.partial": b"\xff\r\n", "a.b": b"old"}
    assert seen == [(False, written), (True, {"a.b": b"\xff\r\n"})]


@pytest.mark.parametrize(("call", "left"), [("fsync", b"old"), ("replace", b"new"), (None, b"old")])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_error_leaves_the_old_file_or_the_new_one_and_nothing_else(tmp_path, monkeypatch, call, left, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted(*arguments):
        original(*arguments)
        raise error("why")

    if call:
        original = getattr(os, call)
        monkeypatch.setattr(os, call, interrupted)
    with pytest.raises(error, match="^why$"), whole_file(path) as stream:
        stream.write(b"new")
        if call is None:
            raise error("why")
    monkeypatch.undo()
    assert path.read_bytes() == left and os.listdir(tmp_path) == ["file"]


def test_the_first_error_is_told_where_nothing_can_be_removed(tmp_path, monkeypatch):
    def refused(*arguments):
        raise PermissionError("no")

    monkeypatch.setattr(os, "unlink", refused)
    monkeypatch.setattr(type(tmp_path), "unlink", refused)
    with pytest.raises(ValueError, match="^first$"), whole_file(tmp_path / "file"):
        raise ValueError("first")


def test_a_folder_that_does_not_exist_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError) as raised, whole_file(tmp_path / "none" / "file"):
        pytest.fail("the file cannot be opened")
    assert raised.value.filename == str(tmp_path / "none" / "file")


def test_text_that_waits_in_a_buffer_is_flushed_first(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))
    with (tmp_path / "file").open("w") as stream:
        stream.write("abc")
        to_disk(stream)
    assert sizes == [3]


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_an_error_of_writing_names_the_file(tmp_path, size):
    """The system tells it for a few bytes when the buffer is emptied, and for many at once."""
    path = tmp_path / "file"
    with pytest.raises(OSError, match="File too large") as raised, whole_file(path) as stream, full_disk(5):
        stream.write(b"x" * size)
        stream.flush()
    assert raised.value.filename == str(path) and os.listdir(tmp_path) == []


@pytest.mark.parametrize(("call", "error"), [("fsync", errno.ENOSPC), ("replace", errno.EISDIR)])
def test_an_error_of_the_disk_or_of_the_new_name_names_the_file(tmp_path, monkeypatch, call, error):
    def refused(*arguments):
        raise OSError(error, "no")

    monkeypatch.setattr(os, call, refused)
    with pytest.raises(OSError, match="no") as raised, whole_file(tmp_path / "file"):
        pass
    assert raised.value.filename == str(tmp_path / "file")


def test_errors_of_the_block_itself_keep_their_names(tmp_path):
    with pytest.raises(FileNotFoundError) as raised, whole_file(tmp_path / "file"):
        open(tmp_path / "other", "rb")
    assert raised.value.filename == str(tmp_path / "other")


def test_a_text_is_written_in_utf_8_with_its_ends_of_lines(tmp_path):
    write_whole_text(tmp_path / "file", "é\r\nb\n")
    assert (tmp_path / "file").read_bytes() == b"\xc3\xa9\r\nb\n"


def test_no_file_stays_open(tmp_path):
    before = os.dup(0)  # the lowest number that is free
    os.close(before)
    with whole_file(tmp_path / "file"):
        pass
    after = os.dup(0)
    os.close(after)
    assert after == before


def test_bytes_are_written_as_they_are(tmp_path):
    write_whole_bytes(tmp_path / "file", b"\xff\r\n")
    assert (tmp_path / "file").read_bytes() == b"\xff\r\n"


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_replaced(tmp_path, kind):
    path = tmp_path / "it"
    (os.mkdir if kind == "folder" else os.mkfifo)(path)
    with pytest.raises(UnifiedError, match=f"^{path}: a folder, a device or a pipe, which would be replaced"):
        write_whole_text(path, "text")
    assert not path.is_file() and os.listdir(tmp_path) == ["it"]


def test_a_file_is_written_in_place_anew_or_behind_what_it_holds(tmp_path):
    path = tmp_path / "file"
    for mode, content, whole in (("w", b"long", b"long"), ("a", b"er", b"longer"), ("w", b"new", b"new")):
        before = path.stat().st_ino if path.exists() else None
        with open_output(path, mode) as stream:
            stream.write(content)
        assert path.read_bytes() == whole and before in (None, path.stat().st_ino)


@pytest.mark.parametrize("name", [None, "out"])
def test_an_error_of_a_file_written_in_place_names_it_as_the_user_does(tmp_path, name):
    path = tmp_path / "out.partial"
    called = path if name is None else tmp_path / name
    with (
        pytest.raises(OSError, match="File too large") as raised,
        full_disk(),
        open_output(path, "a", called) as stream,
    ):
        stream.write(b"x")
    assert raised.value.filename == str(called)
    with pytest.raises(FileNotFoundError) as raised:
        open_output(tmp_path / "none" / "file", name=called)
    assert raised.value.filename == str(called)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_device_is_named(tmp_path):
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"), open_output(Path("/dev/full")) as stream:
        stream.write(b"x")


def test_links_are_followed_to_what_need_not_be_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to("far/away")
    assert (
        resolved("link/new") == tmp_path.resolve() / "far/away/new" and resolved(Path("a")) == tmp_path.resolve() / "a"
    )


@pytest.mark.parametrize("there", [True, False])
def test_what_a_link_leads_to_is_replaced(tmp_path, there):
    """Beside which the new content is written: a name on another file system could not be taken at once."""
    target, link, chain = tmp_path / "far" / "it", tmp_path / "link", tmp_path / "chain"
    target.parent.mkdir()
    link.symlink_to("far/it")
    chain.symlink_to("link")
    if there:
        target.write_bytes(b"old")
    with whole_file(chain) as stream:
        stream.write(b"new")
        assert sorted(os.listdir(target.parent)) == [f".it.{os.getpid()}.partial", "it"][: 1 + there]
        assert not there or target.read_bytes() == b"old"
    assert target.read_bytes() == b"new" and os.listdir(target.parent) == ["it"]
    assert (os.readlink(link), os.readlink(chain)) == ("far/it", "link")
    assert sorted(os.listdir(tmp_path)) == ["chain", "far", "link"]


def test_errors_of_a_link_name_it(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UnifiedError) as refused:
        write_whole_text(tmp_path / "loop", "text")
    assert str(refused.value) == f"{tmp_path / 'loop'}: a symbolic link that leads back to itself"
    (tmp_path / "link").symlink_to("none/it")
    with pytest.raises(FileNotFoundError) as raised:
        write_whole_text(tmp_path / "link", "text")
    assert raised.value.filename == str(tmp_path / "link")
    (tmp_path / "none").mkdir()
    with pytest.raises(OSError, match="File too large") as raised, full_disk(5):
        write_whole_text(tmp_path / "link", "longer")
    assert raised.value.filename == str(tmp_path / "link") and os.listdir(tmp_path / "none") == []
    assert sorted(os.listdir(tmp_path)) == ["link", "loop", "none"]
