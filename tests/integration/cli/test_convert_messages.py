"""``unified convert`` says what is, in words and options that it has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.published_models import KINDS, published
from unified.cli import main
from unified.data.vocabulary import Vocabulary
from unified.tokenization import tokenizer_files


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        published(kind, folder / kind)
    return folder


def refusal(capsys, *words, command: str = "convert") -> str:
    capsys.readouterr()
    assert main([command, *map(str, words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_is_missed_only_where_there_is_none(models, tmp_path, capsys, kind):
    words = ["--from", "bert" if kind == "unilm" else kind, str(models / kind / "theirs"), str(tmp_path / "ours")]
    assert main(["convert", *words]) == 0
    assert ("without a tokenizer" in capsys.readouterr().out) == (not tokenizer_files(tmp_path / "ours"))
    if kind == "roberta":
        said = refusal(capsys, tmp_path / "ours", tmp_path / "out", "--format", "bert", command="export")
        reason = (
            "the model has no tokenizer; the class needs WordPiece (vocab.txt), sentencepiece (tokenizer.model) or "
            "tokenizer.json; the format unified takes any"
        )
        assert said.endswith(reason)
        assert main(["export", str(tmp_path / "ours"), str(tmp_path / "back")]) == 0
        assert f"written as the format 'unified': {reason}" in capsys.readouterr().out
        return
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "back")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"wrote {tmp_path / 'back'}"
    assert main(["convert", "--vocabulary", str(tmp_path / "ours"), str(tmp_path / "ours"), str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"wrote {tmp_path / 'new'}"


def test_a_name_of_the_hub_that_cannot_be_had(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.jsonl").write_text('{"text": "a"}\n')
    by_hand = "`hf download nobody/bert --local-dir FOLDER` where there is a network makes a folder to name instead"
    words = [["convert", "nobody/bert", "out"], ["predict", "classification", "items.jsonl", "--model", "nobody/bert"]]
    for command, *more in words:
        said = refusal(capsys, *more, command=command)
        assert "nobody/bert: no such file or folder" in said
        with_network, without = "the Hugging Face hub does not give it (", "cannot be reached"
        assert with_network in said or without in said
        assert said.endswith(by_hand)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # as if it were not installed
    said = refusal(capsys, "nobody/bert", "out")
    assert "to take it for a name of the Hugging Face hub, `pip install '.[hub]'` in the library's folder; or " in said
    assert said.endswith(by_hand)


def test_a_path_is_no_name_of_the_hub(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for name in ("models/bert", "bert.pt", str(tmp_path / "bert"), "a/b/c"):
        assert refusal(capsys, name, "out").endswith(f"{name}: no such folder")


def test_a_file_that_is_missing_is_called_missing(models, tmp_path, capsys):
    said = refusal(capsys, "--from", "bert", models / "bert" / "ours", tmp_path / "out")
    assert said.endswith("ours/config.json: no such file")


def test_formats_that_are_not_read_are_named(tmp_path, capsys):
    assert "holds no config.json of transformers, no bert_config.json" in refusal(capsys, tmp_path, tmp_path / "out")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    said = refusal(capsys, tmp_path, tmp_path / "out")
    assert said.endswith(
        "config.json: model_type 'gpt2'; models of type bert, roberta, xlm-roberta, camembert, xlnet, "
        "modernbert, unified are read"
    )


def test_another_dictionary_is_made_by_prepare(models, tmp_path, capsys):
    (tmp_path / "data").mkdir()
    Vocabulary(["ein", "anderes", "Wort"]).save(tmp_path / "data" / "dict.txt")
    said = refusal(capsys, "--vocabulary", tmp_path / "data", models / "roberta" / "ours", tmp_path / "out")
    assert "make the data with `unified prepare --tokenizer FOLDER`, the checkpoint's folder" in said
