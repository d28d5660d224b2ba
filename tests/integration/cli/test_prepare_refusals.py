"""``unified prepare`` on input it cannot use: one line each, and nothing left behind or overwritten."""

import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from tests.support.corpora import random_documents, raw_text, run, tree, write
from tests.support.full_disk import full_disk
from tests.support.prepared_python import FRESH

ROOT = Path(__file__).parents[3]


def refusal(tmp_path, capsys, *arguments):
    """The one line of a refused call, which must leave nothing behind."""
    before = {path.name for path in tmp_path.iterdir()}
    capsys.readouterr()
    assert run(*arguments, "--output", tmp_path / "made" / "data") == 2
    assert not (tmp_path / "made" / "data").exists()
    assert not list((tmp_path / "made").glob(".*")) if (tmp_path / "made").exists() else True
    assert {path.name for path in tmp_path.iterdir()} - {"made"} == before - {"made"}
    lines = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert len(lines) == 1 and lines[0].startswith("unified prepare: error: ")
    return lines[0]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"good\nb\xe9d\n", "a.txt, line 2: not UTF-8 (byte 0xe9 at byte 2 of the line)"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "b"\n', "a.jsonl, line 2: not JSON ("),
        ("a.jsonl", b'\n["text"]\n', "a.jsonl, line 2: not a JSON object but a list"),
        ("a.jsonl", b'{"body": "a", "id": 1}\n', "a.jsonl, line 1: no field 'text'; its fields: 'body', 'id'"),
        ("a.jsonl", b'{"text": 7}\n', "a.jsonl, line 1: field 'text' is an integer, not a text"),
        ("a.jsonl", b'{"text": "\\ud83d"}\n', "a.jsonl, line 1: field 'text' holds half of a surrogate pair"),
        ("a.jsonl", b"[" * 100_000, "a.jsonl, line 1: not JSON (nested too deeply)"),
        ("a.txt", b"", "a.txt: no text"),
        ("a.txt", b"\n \n\t\n", "a.txt: no text"),
        ("a.jsonl", b'{"text": ""}\n', "a.jsonl, line 1: the field 'text' is empty; --skip-empty leaves such rows out"),
    ],
)
def test_bad_documents(tmp_path, capsys, name, content, message, workers):
    path = write(tmp_path / name, content)
    error = refusal(tmp_path, capsys, path, "--workers", workers)
    assert message in error and error.startswith(f"unified prepare: error: {tmp_path}")


def test_line_numbers_of_errors_count_from_the_beginning_of_the_file(tmp_path, capsys):
    path = write(tmp_path / "a.jsonl", '{"text": "good line"}\n' * 76 + "bad\n")
    assert "a.jsonl, line 77: not JSON" in refusal(tmp_path, capsys, path, "--chunk-bytes", 40)
    path = write(tmp_path / "a.txt", b"good line\n" * 76 + b"\xff\n")
    assert "a.txt, line 77: not UTF-8" in refusal(tmp_path, capsys, path, "--chunk-bytes", 40)


@pytest.mark.parametrize("size", [0, -1, 10**20])
def test_a_chunk_holds_at_least_a_byte_and_fits_into_memory(tmp_path, capsys, size):
    """A read of 0 bytes would look like an empty file, one of -1 bytes takes the whole of it."""
    path, says = write(tmp_path / "a.txt", "a line\n"), f"--chunk-bytes must be from 1 to {2**30}, got {size}"
    assert says in refusal(tmp_path, capsys, path, "--chunk-bytes", size)


def test_bad_pairs(tmp_path, capsys):
    three = write(tmp_path / "three", "a\nb\nc\n")
    two = write(tmp_path / "two", "a\nb\n")
    hole = write(tmp_path / "hole", "a\n \nc\n")
    fields = ["--source-field", "s", "--target-field", "t"]
    packed = write(tmp_path / "p.jsonl", '{"s": "a", "t": "b"}\n{"s": "a", "t": ""}\n')
    for arguments, message in [
        ([three, "--target", two], f"{two}: ends after line 2, but {three} goes on"),
        ([two, "--target", three], f"{two}: ends after line 2, but {three} goes on"),
        ([three, "--target", hole], f"{hole}, line 2: the target of a pair is empty; mend it, or"),
        ([hole, "--target", three], f"{hole}, line 2: the source of a pair is empty"),
        ([packed, *fields], "p.jsonl, line 2, field 't': the target of a pair is empty"),
        ([packed, "--source-field", "s"], "--source-field and --target-field go together"),
        ([three, *fields], "three: --source-field needs one file of rows (CSV, TSV, Parquet, JSON lines, a JSON array"),
        (
            [packed, "--target", three],
            "p.jsonl: its name says that it holds fields; --source-field and",
        ),
        ([three, "--target", three, *fields], "use one"),
        ([three, two, "--target", three], "--target: 1 file for 2 files of sources"),
        ([three, "--target", three, "--valid", two], "--valid-target: 0 files for 1 file"),
        ([three, "--valid-target", two], "--valid-target: there are no sources"),
        ([three, "--valid", two, "--valid-target", two], "--valid-target needs --target"),
    ]:
        assert message in refusal(tmp_path, capsys, *arguments), arguments


def test_bad_options_and_missing_files(tmp_path, capsys):
    text = write(tmp_path / "a.txt", "one document\nof two lines\n")
    missing = tmp_path / "missing.txt"
    for arguments, message in [
        ([missing], f"{missing}: no such file"),
        ([tmp_path], f"{tmp_path}: a folder, not a file; name its files, such as {text}"),
        ([text, "--valid", missing], f"{missing}: no such file"),
        ([text, "--tokenizer", missing], "neither one of unigram, bpe, char, wordpiece, anna nor an existing file"),
        ([text, "--tokenizer", text], r"no [UNK] among its 2 entries"),
        (
            [text, "--tokenizer", tmp_path],
            "holds no tokenizer; one of tokenizer.model, vocab.txt, anna.json, xlnet.model, spiece.model, "
            "tokenizer.json is needed",
        ),
        ([text, "--valid-share", "1"], "--valid-share is at least 0 and below 1, got 1.0"),
        ([text, "--valid-share", "-0.1"], "--valid-share is at least 0 and below 1, got -0.1"),
        ([text, "--valid-share", "nan"], "--valid-share is at least 0 and below 1, got nan"),
        ([text, "--valid-share", "0.1", "--valid", text], "--valid and --valid-share both say"),
        ([text, "--valid-share", "0.001"], "--valid-share 0.001 leaves the valid split empty"),
        ([text, "--valid-share", "0.999"], "--valid-share 0.999 leaves the train split empty"),
        ([text, "--workers", "0"], "--workers must be at least 1, got 0"),
        ([text, "--tokenizer", "bpe", "--vocabulary-size", "9999"], "the bpe tokenizer cannot be trained"),
        ([text, "--tokenizer", "bpe", "--sample-megabytes", "0"], "--sample-megabytes must be at least 1"),
    ]:
        assert message in refusal(tmp_path, capsys, *arguments), arguments


def test_a_dictionary_that_does_not_match_its_tokenizer_is_refused(tmp_path, capsys):
    text = write(tmp_path / "a.txt", raw_text(random_documents(10)))
    run(text, "--output", tmp_path / "data")
    dictionary = tmp_path / "data" / "dict.txt"
    lines = dictionary.read_text(encoding="utf-8").split("\n")
    for changed in (lines[:3] + lines[4:], lines[1:2] + lines[:1] + lines[2:], [*lines[:20], "new 1", *lines[20:]]):
        dictionary.write_text("\n".join(changed), encoding="utf-8")
        error = refusal(tmp_path, capsys, text, "--tokenizer", tmp_path / "data")
        assert "dict.txt: does not match the tokenizer beside it: symbol " in error


def test_a_destination_with_content_is_refused_and_stays_as_it_is(tmp_path, capsys):
    text, other = write(tmp_path / "a.txt", "one\n"), write(tmp_path / "b.txt", "other\n")
    data = tmp_path / "data"
    data.mkdir()
    assert run(text, "--output", data) == 0  # an empty folder is as good as none
    first = tree(data)
    assert run(other, "--output", data) == 2
    assert "not empty; give another --output, or --overwrite" in capsys.readouterr().err
    assert tree(data) == first
    bad = write(tmp_path / "c.txt", b"\xff\n")
    assert run(bad, "--output", data, "--overwrite") == 2
    assert tree(data) == first
    write(data / "checkpoint.pt", b"precious")
    assert run(other, "--output", data, "--overwrite") == 2
    assert "holds checkpoint.pt, which manifest.json there does not list" in capsys.readouterr().err
    (data / "checkpoint.pt").unlink()
    assert run(other, "--output", data, "--overwrite", "--valid", text) == 0
    assert tree(data)["train.bin"] != first["train.bin"] and "valid.bin" in tree(data)
    assert run(text, "--output", text) == 2
    assert "a.txt: a file, where the new folder should be" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt", "c.txt", "data"]


def test_a_folder_without_manifest_is_never_overwritten(tmp_path, capsys):
    text = write(tmp_path / "a.txt", "one\n")
    for manifest in (None, "{}", "not json"):
        if manifest:
            write(tmp_path / "home" / "manifest.json", manifest)
        else:
            (tmp_path / "home").mkdir()
            write(tmp_path / "home" / "letter.doc", "dear")
        assert run(text, "--output", tmp_path / "home", "--overwrite") == 2
        assert "holds letter.doc" in capsys.readouterr().err


@pytest.mark.parametrize("interruption", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_leaves_no_folder_and_no_process(tmp_path, interruption):
    small = raw_text(random_documents(100))
    run(write(tmp_path / "small.txt", small), "--output", tmp_path / "small")
    text = write(tmp_path / "a.txt", (small + "\n") * 1500)
    command = ["-m", "unified.cli", "prepare", text, "--tokenizer", str(tmp_path / "small"), "--workers", "2"]
    command += ["--output", str(tmp_path / "data")]
    # A shell that runs tests in the background has programs ignore the interrupt, and so would this one.
    heeded = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([FRESH, *command], stderr=subprocess.PIPE, text=True, cwd=ROOT, preexec_fn=heeded)
    unfinished = f".data.{process.pid}.partial"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        data = tmp_path / unfinished / f".train.bin.{process.pid}.partial"
        if data.exists() and data.stat().st_size:
            break
        time.sleep(0.005)
    workers = children(process.pid)
    assert len(workers) == 2
    process.send_signal(interruption)
    errors = process.communicate()[1]
    assert not (tmp_path / "data").exists()
    assert "Traceback" not in errors
    if interruption == signal.SIGINT:
        assert process.returncode == 130 and not (tmp_path / unfinished).exists()
        says = f"interrupted; nothing is written to {tmp_path / 'data'}, and the same command begins anew"
        assert errors.splitlines()[-1] == says
    else:
        assert not (tmp_path / unfinished / "train.bin").exists()
    while any(is_alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [pid for pid in workers if is_alive(pid)]


def test_what_a_killed_run_left_is_named_and_kept(tmp_path, capsys):
    left, other = tmp_path / ".data.1.partial", tmp_path / ".data2.1.partial"
    for folder in (left, other):
        folder.mkdir()
        write(folder / "train.bin", "half")
    assert run(write(tmp_path / "a.txt", raw_text(random_documents(50))), "--output", tmp_path / "data") == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note:")]
    assert len(notes) == 1 and str(left) in notes[0]
    assert (left / "train.bin").read_text() == "half"


def children(pid):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_full_disk_names_the_file_in_the_folder_that_was_given(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = write(Path("a.txt"), raw_text(random_documents(100)))
    with full_disk(3000):
        assert run(text, "--output", "data") == 2
    assert capsys.readouterr().err.splitlines()[-1] == "unified prepare: error: data/train.bin: file too large"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
