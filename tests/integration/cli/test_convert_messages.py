"""``unified convert`` says what is, in words and options that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.published_models import KINDS, published
from unified import UnifiedLM
from unified.cli import main
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tokenization import tokenizer_files


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        published(kind, folder / kind)
    return folder


def refusal(capsys, *words) -> str:
    capsys.readouterr()
    assert main(["convert", *map(str, words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_is_missed_only_where_there_is_none(models, tmp_path, capsys, kind):
    words = ["--from", "bert" if kind == "unilm" else kind, str(models / kind / "theirs"), str(tmp_path / "ours")]
    assert main(["convert", *words]) == 0
    assert ("without a tokenizer" in capsys.readouterr().out) == (not tokenizer_files(tmp_path / "ours"))
    if kind == "roberta":
        said = refusal(capsys, "--to", "bert", tmp_path / "ours", tmp_path / "out")
        assert said.endswith(
            "ours: holds no tokenizer; an export to that format needs a WordPiece tokenizer (vocab.txt)"
        )
        return
    back = "xlnet" if kind == "xlnet" else "bert"
    assert main(["convert", "--to", back, str(tmp_path / "ours"), str(tmp_path / "back")]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'back'}\n"
    assert main(["convert", "--vocabulary", str(tmp_path / "ours"), str(tmp_path / "ours"), str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"wrote {tmp_path / 'new'}"


def test_a_name_of_the_hub_is_no_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refusal(capsys, "--from", "bert", "bert-base-uncased", "out")
    assert said.endswith("bert-base-uncased: no such folder; a model of the Hugging Face hub comes into one by "
                         "`hf download NAME --local-dir FOLDER`")  # fmt: skip


def test_a_file_that_is_missing_is_called_missing(models, tmp_path, capsys):
    said = refusal(capsys, "--from", "bert", models / "bert" / "ours", tmp_path / "out")
    assert said.endswith("ours/config.json: no such file")


def test_a_folder_of_transformers_is_to_be_converted_first(models):
    with pytest.raises(UnifiedError, match="a folder of transformers becomes one by `unified convert`"):
        UnifiedLM.from_pretrained(models / "bert" / "theirs")


def test_another_dictionary_is_made_by_prepare(models, tmp_path, capsys):
    (tmp_path / "data").mkdir()
    Vocabulary(["ein", "anderes", "Wort"]).save(tmp_path / "data" / "dict.txt")
    said = refusal(capsys, "--vocabulary", tmp_path / "data", models / "roberta" / "ours", tmp_path / "out")
    assert "make the data with `unified prepare --tokenizer FOLDER`, the checkpoint's folder" in said
