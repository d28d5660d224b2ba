"""Files of `--output`: what cannot be written, or is read by the same command, is refused before any work."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from unified.cli import main

#: Commands that read the file `read`, which is no right input: whoever gets as far as reading says something else.
COMMANDS = {
    "score": ["generation", "read", "--references", "read"],
    "tune-lengths": ["read"],
    "generate": ["--model", "nothing", "--input", "read", "--overwrite"],
    "pairs": ["xsum", "read", "--overwrite"],
    "masks": ["plot", "bidirectional", "2", "--tokens", "read", "--overwrite"],
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("read").write_bytes(b"\xff\n")
    Path("folder").mkdir()


def refusal(capsys, command: str, output: str) -> str:
    assert main([command, *COMMANDS[command], "--output", output]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and Path("read").read_bytes() == b"\xff\n" and not list(Path("folder").iterdir())
    return printed.err.removeprefix(f"unified {command}: error: ").removesuffix("\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_is_no_output(capsys, command):
    assert refusal(capsys, command, "folder") == "--output folder: a folder; name a file"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_read_is_no_output(capsys, command):
    assert refusal(capsys, command, "./folder/../read") == (
        "--output folder/../read: a file that the command reads; name another one"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_device_or_a_pipe_is_no_output(capsys, command):
    os.mkfifo("pipe")
    Path("null").symlink_to("/dev/null")
    for name in ("pipe", "null", "/dev/null"):
        says = f"--output {name}: a device or a pipe, which would be replaced; name a file"
        assert refusal(capsys, command, name) == says
    assert Path("pipe").is_fifo() and Path("/dev/null").is_char_device()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_link_to_itself_is_no_output(capsys, command):
    Path("loop").symlink_to("loop")
    assert refusal(capsys, command, "loop") == "loop: a symbolic link that leads back to itself"


def test_what_a_link_leads_to_is_written(capsys):
    Path("gold").write_text("a\nb\n", encoding="utf-8")
    Path("there").write_text("old", encoding="utf-8")
    for name, target in (("link", "there"), ("other", "folder/new")):
        Path(name).symlink_to(target)
        assert main(["score", "classification", "gold", "gold", "--output", name, "--overwrite"]) == 0
        assert os.readlink(name) == target
        assert Path(target).read_text(encoding="utf-8") == capsys.readouterr().out
    Path("run.yaml").touch()
    Path("settings").symlink_to("run.yaml")
    assert main(["score", "classification", "gold", "gold", "--output", "settings"]) == 2
    assert capsys.readouterr().err == (
        "unified score: error: --output settings: belongs to a run or to prepared data; name another file\n"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_in_place_of_a_folder_is_named(capsys, command):
    assert refusal(capsys, command, "read/a/b") == "--output read/a/b: read is a file, where a folder should be"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["closed/a", "closed/a/b"])
def test_a_folder_that_one_may_not_write_into_is_refused_before_any_work(capsys, monkeypatch, command, name):
    closed = Path("closed").absolute()
    closed.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).absolute() != closed)  # the superuser may do all
    assert refusal(capsys, command, name) == f"--output {name}: you may not write into {closed}"


#: Commands that work, and the beginning of what each writes.
WORKING = {
    "score classification gold gold": "{",
    "tune-lengths out": "{",
    "masks plot bidirectional 2": "<svg",
    "pairs scitldr papers.jsonl": "{",
}


@pytest.fixture
def inputs() -> None:
    """What the working commands read."""
    Path("gold").write_text("a\nb\n", encoding="utf-8")
    Path("out").write_text("S-0\tx\nT-0\ta b\nH-0\t-1\ta b\nD-0\t-1\ta b\nP-0\t-1 -1 -1\n", encoding="utf-8")
    Path("papers.jsonl").write_text('{"source": ["a b"], "target": ["a"]}\n', encoding="utf-8")


@pytest.mark.parametrize("line", WORKING)
def test_folders_above_a_file_are_made(inputs, line):
    name = f"new/er/file.{'svg' if line.startswith('masks') else 'jsonl'}"
    assert main([*line.split(), "--output", name]) == 0
    assert Path(name).read_text(encoding="utf-8").startswith(WORKING[line])


@pytest.mark.parametrize("line", WORKING)
def test_a_file_is_replaced_only_where_asked(inputs, capsys, line):
    name = f"file.{'svg' if line.startswith('masks') else 'jsonl'}"
    Path(name).write_text("old", encoding="utf-8")
    assert main([*line.split(), "--output", name]) == 2
    says = f"{name}: exists already; --overwrite replaces it, or give another --output"
    assert capsys.readouterr() == ("", f"unified {line.split()[0]}: error: {says}\n")
    assert Path(name).read_text(encoding="utf-8") == "old"
    assert main([*line.split(), "--output", name, "--overwrite"]) == 0
    assert Path(name).read_text(encoding="utf-8").startswith(WORKING[line])


@pytest.mark.parametrize("words", [["score", "classification", "gold", "gold"], ["tune-lengths", "out"]])
def test_overwrite_has_no_effect_without_an_output(inputs, capsys, words):
    assert main([*words, "--overwrite"]) == 2
    says = "--overwrite has no effect without --output; add --output, or leave --overwrite out"
    assert capsys.readouterr() == ("", f"unified {words[0]}: error: {says}\n")


@pytest.mark.parametrize("line", WORKING)
def test_a_full_disk_leaves_the_file_of_before(inputs, capsys, monkeypatch, line):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    name = f"file.{'svg' if line.startswith('masks') else 'jsonl'}"
    Path(name).write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "fsync", full)
    assert main([*line.split(), "--output", name, "--overwrite"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.splitlines()[-1] == (
        f"unified {line.split()[0]}: error: {name}: no space left on device"
    )
    assert Path(name).read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("name", ["run.yaml", "claim.json", "manifest.json", "checkpoint_last.pt", "results.json"])
def test_files_that_runs_and_prepared_folders_consist_of_are_not_replaced(capsys, name):
    Path(name).write_text('{"command": ["fairseq-train"]}', encoding="utf-8")
    for command, words in (*COMMANDS.items(), ("report", ["folder"]), ("predict", ["cola", "x", "--model", "m"])):
        assert main([command, *words, "--output", name]) == 2
        assert capsys.readouterr().err == (
            f"unified {command}: error: --output {name}: belongs to a run or to prepared data; name another file\n"
        )
    assert Path(name).read_text(encoding="utf-8") == '{"command": ["fairseq-train"]}'


@pytest.mark.parametrize("content", ["old", "{}", '{"command": "x"}'])
def test_scores_may_be_called_as_results_are(content, capsys):
    Path("gold").write_text("a\nb\n", encoding="utf-8")
    Path("results.json").write_text(content, encoding="utf-8")
    assert main(["score", "classification", "gold", "gold", "--output", "results.json", "--overwrite"]) == 0


#: Results of other commands, and of another evaluation.
OTHERS = [
    '{"command": ["fairseq-train", "data"]}',
    '{"command": ["unified", "evaluate", "perplexity"]}',
    '{"chosen": {"folder": "x"}}',
    "damaged",
]


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize("content", OTHERS)
def test_an_evaluation_replaces_no_results_of_something_else(capsys, content, overwrite):
    file = Path("folder/results.json")
    file.write_text(content, encoding="utf-8")
    assert main(["evaluate", "similarity", "read", "--model", "nothing", "--output", "folder", *overwrite]) == 2
    assert capsys.readouterr().err == (
        f"unified evaluate: error: {file}: there already, and not of this evaluation; name another folder for "
        "--output\n"
    )
    assert file.read_text(encoding="utf-8") == content


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_an_evaluation_writes_no_results_into_the_folder_of_a_training(capsys, overwrite):
    """A fine-tuning that finds results in its folder takes itself for finished."""
    Path("folder/claim.json").write_text("{}", encoding="utf-8")
    assert main(["evaluate", "similarity", "read", "--model", "nothing", "--output", "folder", *overwrite]) == 2
    assert capsys.readouterr().err == (
        "unified evaluate: error: --output folder: the folder of a training, which keeps its own results there; name "
        "another\n"
    )


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize("kind", ["minimal-pairs", "perplexity", "similarity"])
def test_an_evaluation_replaces_no_examples_of_something_else(capsys, kind, overwrite):
    file = Path("folder/examples.jsonl")
    file.write_text('{"text": "a"}\n', encoding="utf-8")
    for data in ("read", "folder/examples.jsonl"):
        assert main(["evaluate", kind, data, "--model", "nothing", "--output", "folder", *overwrite]) == 2
        assert capsys.readouterr().err == (
            "unified evaluate: error: folder/examples.jsonl: there already, and no results.json beside it says that an "
            "evaluation made it; name another folder for --output\n"
        )
    assert file.read_text(encoding="utf-8") == '{"text": "a"}\n' and os.listdir("folder") == ["examples.jsonl"]


@pytest.mark.parametrize("data", ["folder/examples.jsonl", "folder", "link"])
def test_an_evaluation_does_not_replace_the_examples_that_it_reads(capsys, data):
    Path("link").symlink_to("folder/examples.jsonl")
    Path("folder/examples.jsonl").write_text('{"text": "a"}\n', encoding="utf-8")
    Path("folder/results.json").write_text('{"command": ["unified", "evaluate", "perplexity"]}', encoding="utf-8")
    assert main(["evaluate", "perplexity", data, "--model", "nothing", "--output", "folder", "--overwrite"]) == 2
    assert capsys.readouterr().err == (
        "unified evaluate: error: folder/examples.jsonl: a file that the command reads; name another folder for "
        "--output\n"
    )


@pytest.mark.parametrize("command", ["export", "convert"])
def test_a_folder_that_cannot_be_made_is_refused_before_a_model_is_read(capsys, command):
    Path("full").mkdir()
    Path("full/file").touch()
    for output, says in {
        "read/x": "read/x: read is a file, where a folder should be",
        "read": "read: a file, where the new folder should be",
        "full": "full: not empty; name a new folder",
    }.items():
        assert main([command, "nothing", output]) == 2
        assert capsys.readouterr().err == f"unified {command}: error: {says}\n"
