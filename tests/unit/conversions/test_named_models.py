"""Names of models: paths, folders of transformers that are converted once, and names of the hub."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub.utils import filter_repo_objects

from unified.checkpoints.conversion import Conversion
from unified.conversions import named_models
from unified.conversions.named_models import checkpoint_named, folder_named
from unified.conversions.named_tokenizers import tokenizer_named
from unified.errors import UnifiedError

BY_HAND = "`hf download {} --local-dir FOLDER` where there is a network makes a folder to name instead"


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


@pytest.fixture
def asked(tmp_path, monkeypatch) -> list:
    """What the hub is asked for: a model, and the files of it that are taken.

    The model's files are those in the folder "there"; what is taken lies in the folder "hub".
    """
    found: list[tuple[str, list[str]]] = []
    for name in ("hub", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "there" / "config.json").write_text('{"model_type": "bert"}')
    monkeypatch.chdir(tmp_path)

    def snapshot(name: str, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        files = sorted(path for path in (tmp_path / "there").rglob("*") if path.is_file())
        names = (str(path.relative_to(tmp_path / "there")) for path in files)
        taken = filter_repo_objects(names, allow_patterns=allow_patterns, ignore_patterns=ignore_patterns)
        found.append((name, []))
        for one in taken:
            (tmp_path / "hub" / one).parent.mkdir(parents=True, exist_ok=True)
            if not (tmp_path / "hub" / one).exists():
                shutil.copy(tmp_path / "there" / one, tmp_path / "hub" / one)
                found[-1][1].append(one)
        return str(tmp_path / "hub")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    return found


@pytest.mark.parametrize("call", [folder_named, tokenizer_named])
def test_a_path_that_is_there_is_itself(call, asked, tmp_path):
    (tmp_path / "some" / "model").mkdir(parents=True)
    assert call("some/model") == Path("some/model") and call(tmp_path / "some") == tmp_path / "some"
    assert asked == []


@pytest.mark.parametrize("call", [folder_named, tokenizer_named])
@pytest.mark.parametrize("name", ["x.pt", "a/x.pt", "a/b/c", "/a", "../a", "-a", ".a", "a b", "here/x", "a/", "a/b/"])
def test_names_of_files_and_of_what_lies_below_a_folder_that_is_here_are_none_of_the_hub(call, asked, tmp_path, name):
    (tmp_path / "here").mkdir()
    assert call(name) == Path(name) and asked == []


@pytest.mark.parametrize("name", ["bert", "google-bert/bert-base-uncased", "a1/b_2.c-d", "A/.b"])
def test_a_name_of_the_hub_is_fetched(asked, tmp_path, name):
    for file in ("vocab.txt", "pytorch_model.bin"):
        (tmp_path / "there" / file).touch()
    assert tokenizer_named(name) == tmp_path / "hub" and asked == [(name, ["config.json", "vocab.txt"])]
    asked.clear()
    assert folder_named(name) == tmp_path / "hub" and asked == [(name, []), (name, []), (name, ["pytorch_model.bin"])]


@pytest.mark.parametrize("weights", ["model.safetensors", "model-00001-of-00002.safetensors"])
def test_of_a_model_of_the_hub_only_the_files_that_are_read_are_fetched(asked, tmp_path, weights):
    read = {"config.json", "tokenizer.json", "spiece.model", "unified_dict.txt", weights}
    others = {"model.fp16.safetensors", "pytorch_model.bin", "adapter.safetensors", "README.md", "model.onnx"}
    others |= {"checkpoint-500/model.safetensors", "1_Pooling/config.json", "onnx/model.json", "x/vocab.txt"}
    for file in read | others:
        (tmp_path / "there" / file).parent.mkdir(exist_ok=True)
        if file != "config.json":
            (tmp_path / "there" / file).touch()
    folder_named("a/b")
    assert {file for _, files in asked for file in files} == read and asked[-1] == ("a/b", [weights])


def test_weights_of_a_type_that_is_not_read_are_not_fetched(asked, tmp_path):
    (tmp_path / "there" / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "there" / "model.safetensors").touch()
    said = refusal(folder_named, "a/b")
    assert "config.json: model_type 'llama'; models of type bert, " in said and asked == [("a/b", ["config.json"])]


def test_what_the_hub_does_not_give_is_refused_with_advice(asked, monkeypatch):
    def failing(error):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
        return refusal(folder_named, "a/b")

    by_hand = BY_HAND.format("a/b")
    assert failing(huggingface_hub.errors.LocalEntryNotFoundError("x")) == (
        "a/b: no such file or folder; the Hugging Face hub, which may have a model of that name, cannot be reached; "
        + by_hand
    )
    for error in (OSError("\n 404: none.\nmore"), ValueError("404: none:.")):
        said = f"a/b: no such file or folder, and the Hugging Face hub does not give it (404: none); {by_hand}"
        assert failing(error) == said
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert refusal(tokenizer_named, "a/b") == (
        "a/b: no such file or folder; to take it for a name of the Hugging Face hub, `pip install '.[hub]'` in the "
        f"library's folder; or {by_hand}"
    )


# Folders of transformers


class Converted:
    """Stands for an imported model; saves an empty checkpoint."""

    def save(self, folder: Path) -> Conversion:
        folder.mkdir(parents=True)
        (folder / "checkpoint_last.pt").touch()
        return Conversion(new=("n",), remarks=("one", "two"))


@pytest.fixture
def theirs(tmp_path, monkeypatch) -> Path:
    """A folder of transformers, and a folder of caches."""
    monkeypatch.setenv("UNIFIED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(named_models, "read_folder", lambda folder: Converted())
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


def test_caches_that_one_may_not_write_are_refused_before_any_work(theirs, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write anywhere
    monkeypatch.setattr(named_models, "read_folder", None)
    said = refusal(checkpoint_named, theirs)
    assert said.startswith(f"{tmp_path / 'cache' / 'theirs'}-")
    assert said.endswith(
        f": you may not write into {tmp_path}; UNIFIED_CACHE may name another folder for converted models"
    )


def test_a_folder_of_transformers_is_converted_until_a_file_of_it_changes(theirs, tmp_path, capsys):
    first = checkpoint_named(theirs)
    assert first.name == "checkpoint_last.pt" and first.parent.parent == tmp_path / "cache"
    assert first.parent.name.startswith("theirs-") and len(first.parent.name) == len("theirs-") + 16
    said = [f"{theirs}: converted, and kept in {first.parent}", f"{theirs}: one", f"{theirs}: two"]
    assert capsys.readouterr().err.splitlines() == said
    assert checkpoint_named(str(theirs)) == first and capsys.readouterr().err == ""
    (theirs / "inner").mkdir()  # no file
    assert checkpoint_named(theirs) == first
    (theirs / "config.json").write_text("{ }")
    second = checkpoint_named(theirs)
    (theirs / "more").touch()
    assert len({first, second, checkpoint_named(theirs)}) == 3


def test_what_another_process_has_converted_in_the_meantime_is_taken(theirs, monkeypatch, capsys):
    first = checkpoint_named(theirs)
    first.parent.rename(first.parent.with_name("elsewhere"))

    def read(folder):
        first.parent.with_name("elsewhere").rename(first.parent)
        raise UnifiedError("not empty")

    monkeypatch.setattr(named_models, "read_folder", read)
    assert checkpoint_named(theirs) == first
    monkeypatch.setattr(named_models, "read_folder", refusing)
    assert checkpoint_named(theirs) == first
    (theirs / "more").touch()
    with pytest.raises(UnifiedError, match="cannot be read"):
        checkpoint_named(theirs)


def refusing(folder):
    raise UnifiedError("cannot be read")


@pytest.mark.parametrize("own", ["checkpoint_best.pt", "checkpoint_last.pt"])
def test_a_folder_with_checkpoints_of_ours_is_ours(theirs, own):
    (theirs / own).touch()
    assert checkpoint_named(theirs) == theirs / own


def test_a_folder_with_results_is_ours(theirs):
    (theirs / "results.json").write_text('{"chosen": {"folder": "run"}}')
    (theirs / "run").mkdir()
    (theirs / "run" / "checkpoint_best.pt").touch()
    assert checkpoint_named(theirs) == theirs / "run" / "checkpoint_best.pt"


def test_the_cache_is_where_the_environment_says(theirs, tmp_path, monkeypatch):
    monkeypatch.delenv("UNIFIED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert checkpoint_named(theirs).parent.parent == tmp_path / "xdg" / "unified"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert checkpoint_named(theirs).parent.parent == tmp_path / "home" / ".cache" / "unified"
