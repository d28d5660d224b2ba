"""Files of augmentation and of a published model: their names, their encoding, and numbers that are none."""

import io
import json
import math
from pathlib import Path

import pytest

from tests.support.tiny_models import model, vocabulary
from unified import UnifiedLM
from unified.errors import UnifiedError
from unified.tasks import publishing
from unified.tasks.augmentation.outcome import write_squad
from unified.tasks.augmentation.pipeline import COUNTS, GENERATED
from unified.tasks.augmentation.stages import Stages
from unified.tasks.composing import ask
from unified.tokenization.symbol_tokenizer import SymbolTokenizer


@pytest.fixture
def encodings(monkeypatch) -> None:
    """A method of a path that opens a text file without an encoding fails: another machine's default is not UTF-8."""

    def text_encoding(encoding: str | None, stacklevel: int = 2) -> str:
        assert encoding is not None, "a text file is opened without an encoding"
        return encoding

    monkeypatch.setattr(io, "text_encoding", text_encoding)


def test_the_files_of_an_augmentation_have_the_names_of_the_manual():
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "augmentation.md").read_text(encoding="utf-8")
    assert GENERATED.as_posix() == "generated/train-v2.0.json" and f"`{GENERATED.as_posix()}`" in text
    assert f"`{COUNTS}`" in text


def test_a_stage_may_hold_numbers_that_are_none(tmp_path, encodings):
    """Scores of models are kept as they are."""
    stages = Stages(tmp_path, 2)
    stages.first("scores", lambda: [{"é": math.nan}, {"é": -math.inf}])
    ((first,), (second,)) = stages.rows("scores")
    assert math.isnan(first["é"]) and second == {"é": -math.inf}


def test_generated_questions_are_written_in_utf8(tmp_path, encodings):
    kept = {"kept": [{"question": "é?", "text": "é", "start": 0}]}
    write_squad(tmp_path / "a.json", [({"id": "0.0", "text": "é"}, kept, {"unanswerable": []})])
    content = json.loads((tmp_path / "a.json").read_bytes().decode("utf-8"))
    assert content["data"][0]["paragraphs"][0]["context"] == "é"


def test_the_card_of_a_published_model_is_written_in_utf8(tmp_path, monkeypatch, encodings):
    class Loaded:
        def save_pretrained(self, folder):
            folder.mkdir()
            (folder / "config.json").write_text('{"of": "é"}', encoding="utf-8")

    monkeypatch.setattr(publishing, "load", lambda folder: Loaded())
    monkeypatch.setattr(publishing, "read_results", list)
    monkeypatch.setattr(publishing, "model_card", lambda results, config, folder: f"{results} {config['of']} {folder}")
    (tmp_path / ".export").mkdir()  # of a process that was killed
    (tmp_path / ".export" / "model.safetensors").write_bytes(b"half")
    publishing.publish(tmp_path, ["a"])
    assert (tmp_path / "README.md").read_bytes().decode("utf-8") == f"['a'] é {tmp_path}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "config.json"]


def test_what_is_asked_about_is_a_text():
    words = vocabulary()
    lm = UnifiedLM(model(), words, SymbolTokenizer(words.symbols), "cloze", "folder")
    for arguments, name in (((3, "w1"), "passage"), ((["w1"], "w1"), "passage"), (("w1 w2", 3), "answer")):
        with pytest.raises(UnifiedError) as raised:
            ask(lm, *arguments)
        assert str(raised.value).startswith(f"{name}: expected one text, got ")
