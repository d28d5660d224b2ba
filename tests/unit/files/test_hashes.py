"""Hashes of files and data sets: equal contents have equal ones, under names that tell the files apart."""

import hashlib
from pathlib import Path

from unified.files.hashes import data_hashes, file_hash, hashes


def test_files_of_one_name_are_numbered(tmp_path):
    paths = []
    for name in "abc":
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "m.pt")
        paths[-1].write_text(name)
    found = hashes(paths)
    digests = [hashlib.sha256(name.encode()).hexdigest() for name in "abc"]
    assert list(found.items()) == list(zip(("m.pt", "m.pt (1)", "m.pt (2)"), digests, strict=True)) and hashes([]) == {}


def test_data_are_known_by_the_bytes_of_files_and_the_rows_of_the_hub(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a")
    rows = {"hub:owner/a": [{"x": 1, "y": "b"}], "hub:owner/b": [{"y": "b", "x": 1}], "hub:owner/c": [{"x": 2}]}
    monkeypatch.setattr("unified.files.rows.hub_entries", lambda name: (("row", row) for row in rows[name]))
    found = data_hashes(["hub:owner/a", tmp_path / "a.txt", *(Path(name) for name in rows if name != "hub:owner/a")])
    assert found.keys() == {"a.txt", *rows} and found["a.txt"] == hashes([tmp_path / "a.txt"])["a.txt"]
    assert found["hub:owner/a"] == found["hub:owner/b"] != found["hub:owner/c"]
    assert data_hashes(iter([])) == {}


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"\r\n\xff")
    for path in (tmp_path / "a", str(tmp_path / "a")):
        assert file_hash(path) == hashlib.sha256(b"\r\n\xff").hexdigest()
