"""Options from a YAML file: what it may hold, what wins over it, and the file that repeats a run."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path

import pytest
import yaml

from unified.cli.configuration import FILE_NAME, add_config_argument, config_first, require_run_folder, write_run
from unified.errors import UnifiedError
from unified.files.claims import FILE_NAME as CLAIM


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of each kind that a command has."""
    parser.add_argument("task")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--data", required=True)
    parser.add_argument("--lr", "--learning-rate", type=float)
    parser.add_argument("-b", "--batch-size", type=int, default=8)
    parser.add_argument("--select", choices=("last", "best"))
    parser.add_argument("--layers", type=int, choices=(2, 12))
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    add_config_argument(parser)


def parsed(tmp_path: Path, content: str, *words: str) -> argparse.Namespace:
    (tmp_path / "run.yaml").write_text(content, encoding="utf-8")
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser)
    return parser.parse_args(config_first(["--config", str(tmp_path / "run.yaml"), *words]))


def refusal(tmp_path: Path, content: str) -> str:
    """What follows the name of the file."""
    with pytest.raises(UnifiedError) as refused:
        parsed(tmp_path, content, "sst2")
    return str(refused.value).removeprefix(f"{tmp_path / 'run.yaml'}: ")


def test_a_file_gives_what_the_command_line_would_give(tmp_path):
    content = (
        "data: a folder\nlr: 1e-4\nbatch-size: 16\nselect: best\nlayers: 12\nseeds: [1, 2]\nfp16: true\nfiles: a.txt\n"
    )
    words = "--data|a folder|--lr|1e-4|-b|16|--select|best|--layers|12|--seeds|1|2|--fp16".split("|")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    direct = vars(parser.parse_args(["sst2", "a.txt", *words]))
    found = vars(parsed(tmp_path, content, "sst2", "a.txt"))
    assert found.pop("config") is None and direct.pop("config") is None
    assert found == direct
    assert type(found["lr"]) is float and found["batch_size"] == 16 and found["seeds"] == [1, 2]


def test_what_the_command_line_says_wins_and_null_says_nothing(tmp_path):
    content = "data: there\nbatch-size: 16\nlr: null\nfp16: null\n"
    found = parsed(tmp_path, content, "sst2", "--batch-size", "4", "--data", "here")
    assert (found.data, found.batch_size, found.lr, found.fp16) == ("here", 4, None, False)
    assert parsed(tmp_path, "data: there\n", "sst2").batch_size == 8


def test_what_the_command_line_says_wins_where_the_name_of_the_option_is_cut(tmp_path):
    (tmp_path / "run.yaml").write_text("data: there\nlr: 1\n", encoding="utf-8")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for words in (["--conf", str(tmp_path / "run.yaml")], [f"--confi={tmp_path / 'run.yaml'}"]):
        assert parser.parse_args(config_first(["finetune", "sst2", "--lr", "2", *words])[1:]).lr == 2


def test_of_several_files_the_later_one_wins_and_the_command_line_over_all_wherever_it_stands(tmp_path):
    contents = {
        "a": "data: a\nlr: 1\nbatch-size: 1\nfp16: true\nselect: best\n",
        "b": "lr: 2\nbatch-size: 2\nfp16: false\nselect: null\n",
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.yaml").write_text(content, encoding="utf-8")
    files = [f"--config={tmp_path / 'a.yaml'}", f"--conf={tmp_path / 'b.yaml'}"]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for words in (
        ["--batch-size", "3", "sst2", *files],
        [*files, "sst2", "--batch-size", "3"],
        [files[0], "sst2", "--batch-size", "3", files[1]],
    ):
        found = parser.parse_args(config_first(["finetune", *words])[1:])
        assert (found.data, found.lr, found.batch_size, found.fp16, found.select) == ("a", 2, 3, False, "best")


def test_an_option_that_the_file_gives_is_no_longer_required_and_another_one_is(tmp_path):
    assert parsed(tmp_path, "data: there\n", "sst2").data == "there"
    assert parsed(tmp_path, "data: there\ntask: sst2\nfiles: []\n").task == "sst2"
    for content in ("lr: 1\n", "data: null\n", ""):
        with pytest.raises((SystemExit, argparse.ArgumentError)):
            parsed(tmp_path, content, "sst2")


def test_one_value_is_a_list_of_one_and_texts_stay_as_they_are(tmp_path):
    assert parsed(tmp_path, "data: x\nseeds: 3\n", "sst2").seeds == [3]
    assert parsed(tmp_path, "data: 7\n", "sst2").data == "7"
    assert parsed(tmp_path, "data: 'true'\n", "sst2").data == "true"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("dta: x", "no option 'dta' (did you mean 'data'?)"),
        ("zzzzzz: x", "no option 'zzzzzz'"),
        ("learning-rate: 1", "no option 'learning-rate'"),
        ("batch_size: 1", "no option 'batch_size' (did you mean 'batch-size'?)"),
        ("b: 1", "no option 'b'"),
        ("3: x", "no option 3"),
        ("config: x", "no option 'config'"),
        ("help: true", "no option 'help'"),
        ("dry-run: true", "no option 'dry-run'"),
        ("json: true", "no option 'json'"),
        ("quiet: true", "no option 'quiet'"),
        ("verbose: true", "no option 'verbose'"),
        ("fp16: 1", "fp16: must be true or false, got 1"),
        ("fp16: 'yes'", "fp16: must be true or false, got 'yes'"),
        ("data: true", "data: must be a text or a number, got True; put it in quotes if it is a text"),
        ("data: [a]", "data: must be a text or a number, got ['a']; put it in quotes if it is a text"),
        ("data: {a: b}", "data: must be a text or a number, got {'a': 'b'}; put it in quotes if it is a text"),
        ("seeds: [1, no]", "seeds: must be a text or a number, got False; put it in quotes if it is a text"),
        ("seeds: [1, x]", "seeds: 'x' is no value of it"),
        ("lr: fast", "lr: 'fast' is no value of it"),
        ("batch-size: 1.5", "batch-size: 1.5 is no value of it"),
        ("select: bst", "select: must be one of last, best, got 'bst' (did you mean 'best'?)"),
        ("select: 1", "select: must be one of last, best, got 1"),
        ("layers: 3", "layers: must be one of 2, 12, got 3"),
    ],
)
def test_a_name_or_a_value_that_no_option_has_is_refused(tmp_path, content, says):
    assert refusal(tmp_path, content) == says


def test_a_type_that_refuses_by_its_own_words_is_refused_like_others(tmp_path):
    def never(text: str) -> int:
        raise argparse.ArgumentTypeError("never")

    (tmp_path / "a.yaml").write_text("n: 1\n", encoding="utf-8")
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=never)
    add_config_argument(parser)
    with pytest.raises(UnifiedError) as refused:
        parser.parse_args(["--config", str(tmp_path / "a.yaml")])
    assert str(refused.value) == f"{tmp_path / 'a.yaml'}: n: 1 is no value of it"


@pytest.mark.parametrize(
    ("words", "moved"),
    [
        ("", ""),
        ("finetune sst2 --lr 1", "finetune sst2 --lr 1"),
        ("finetune sst2 --lr 1 --config f --fp16", "finetune --config f sst2 --lr 1 --fp16"),
        ("finetune sst2 --lr 1 --config=f --fp16", "finetune --config=f sst2 --lr 1 --fp16"),
        ("-q finetune sst2 --config f", "-q finetune --config f sst2"),
        ("finetune --config f sst2", "finetune --config f sst2"),
        ("finetune sst2 --configuration f", "finetune sst2 --configuration f"),
        ("finetune --config=a --lr 1 --config=b", "finetune --config=a --config=b --lr 1"),
        ("finetune --lr 1 --config a sst2 --conf b", "finetune --config a --conf b --lr 1 sst2"),
        ("finetune sst2 --config a --config", "finetune --config a --config sst2"),
        ("-q finetune --lr 1 --config a -- --config b", "-q finetune --config a --lr 1 -- --config b"),
        ("--config f finetune sst2 --lr 1", "--config f finetune sst2 --lr 1"),
        ("-q --config=f finetune sst2", "-q --config=f finetune sst2"),
        ("finetune --lr 1 --config", "finetune --config --lr 1"),
        ("finetune sst2 --lr 1 --conf f --fp16", "finetune --conf f sst2 --lr 1 --fp16"),
        ("finetune sst2 --lr 1 --c=f --fp16", "finetune --c=f sst2 --lr 1 --fp16"),
        ("finetune sst2 --lr 1 -- f", "finetune sst2 --lr 1 -- f"),
        ("--config", "--config"),
        ("-q --config=f", "-q --config=f"),
        ("--config f -q", "--config f -q"),
    ],
)
def test_the_file_is_read_before_all_other_options(words, moved):
    given = words.split()
    assert config_first(given) == moved.split() and given == words.split()


def test_the_file_of_a_run_gives_the_run_again(tmp_path):
    """All settings that were given or are defaults, in the order of the options, and no others."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    words = ["sst2", "a b.txt", "--data", "café", "--lr", "2e-5", "--seeds", "1", "2", "--fp16", "--dry-run", "--quiet"]
    args = parser.parse_args(words)
    args.command = "finetune"
    write_run(tmp_path, args, add_arguments)
    path = tmp_path / FILE_NAME
    text = path.read_text(encoding="utf-8")
    assert path.name == "run.yaml" and text.splitlines()[0] == f"# unified finetune --config {path}"
    assert list(yaml.safe_load(text).items()) == [
        ("task", "sst2"), ("files", ["a b.txt"]), ("data", "café"), ("lr", 2e-5), ("batch-size", 8),
        ("seeds", [1, 2]), ("fp16", True),
    ]  # fmt: skip
    assert "data: café\n" in text
    long = argparse.Namespace(**{**vars(args), "data": "word " * 300 + "end"})
    write_run(tmp_path, long, add_arguments)
    assert f"data: {'word ' * 300}end\n" in path.read_text(encoding="utf-8")  # one option is one line


def test_a_full_disk_leaves_the_file_of_before(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / FILE_NAME).write_text("data: before\n", encoding="utf-8")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_run(tmp_path, argparse.Namespace(command="sst2", data="now"), lambda own: own.add_argument("--data"))
    assert (tmp_path / FILE_NAME).read_text(encoding="utf-8") == "data: before\n"
    assert os.listdir(tmp_path) == [FILE_NAME]


def test_a_folder_of_something_else_is_no_folder_of_a_run(tmp_path):
    folder = tmp_path / "run"
    require_run_folder(folder)
    (folder / "data").mkdir(parents=True)
    for name in (FILE_NAME.replace("run", "another"), "model.safetensors"):
        require_run_folder(folder)  # items, a claim and hidden files say nothing
        (folder / CLAIM).write_text("{}", encoding="utf-8")
        (folder / ".keep").write_text("", encoding="utf-8")
        require_run_folder(folder)
        (folder / name).write_text("x", encoding="utf-8")
        with pytest.raises(UnifiedError) as refused:
            require_run_folder(folder)
        said = f"--output {folder}: holds {name}, and no {FILE_NAME} says that a run made it; name another folder"
        assert str(refused.value) == said
        (folder / name).unlink()
    for name in "abcd":
        (folder / name).write_text("x", encoding="utf-8")
    with pytest.raises(UnifiedError, match=r"holds a, b, c, and no run.yaml says that a run made them; name another"):
        require_run_folder(folder)
    (folder / FILE_NAME).write_text("x", encoding="utf-8")
    require_run_folder(folder)
