"""A loaded model of any kind: its device and modes, ids and pieces, several models together, and its folder."""

import json

import numpy as np
import pytest
import torch

from tests.support.task_folders import language_model, tokenizer, vocabulary
from unified.checkpoints.trained import find_data
from unified.errors import UnifiedError
from unified.inference import trained_model
from unified.inference.trained_model import CheckpointFiles, TrainedModel, require_alike, tokenizer_of
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization.symbol_tokenizer import SymbolTokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer

KNOWN = vocabulary()
SIZE = len(KNOWN)


def handle(folder=None, others=(), own=None, known=KNOWN, **changes) -> TrainedModel:
    config = TransformerConfig(len(known), **{"layers": 1, "width": 8, "heads": 2, "dropout": 0.5, **changes})
    return TrainedModel(UnifiedModel.for_language(config), known, own or tokenizer(), folder, others)


def refusal(call, *arguments, **options) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments, **options)
    return str(raised.value)


def test_a_checkpoint_is_read_with_its_dictionary_and_tokenizer(tmp_path):
    folder = language_model(tmp_path / "model")
    file = folder / "checkpoint_last.pt"
    for path in (folder, file, str(file)):
        read = CheckpointFiles.read(path)
        assert (read.path, read.folder) == (file, folder) and isinstance(read.tokenizer, WordPieceTokenizer)
        assert read.folder == find_data(file, read.content) and read.content
    elsewhere = tmp_path / "data"
    elsewhere.mkdir()
    KNOWN.save(elsewhere / "dict.txt")
    read = CheckpointFiles.read(folder, elsewhere)
    assert read.folder == elsewhere and isinstance(read.tokenizer, SymbolTokenizer)


def test_without_a_tokenizer_texts_are_symbols_between_white_space(tmp_path):
    KNOWN.save(tmp_path / "dict.txt")
    assert tokenizer_of(tmp_path).encode("w3  w1\nw99") == SymbolTokenizer(KNOWN.symbols).encode("w3 w1 w99")
    tokenizer().save(tmp_path)
    assert tokenizer_of(tmp_path).entries == tokenizer().entries


def test_all_models_move_and_leave_training_together(monkeypatch):
    models = [handle(), handle()]
    ensemble = handle(others=models)
    assert ensemble.others == tuple(models) and ensemble.special == KNOWN.special and ensemble.untrained == frozenset()
    assert not any(one.model.training for one in (ensemble, *models))
    for one in (ensemble, *models):
        one.model.train()
    assert ensemble.eval() is ensemble and not any(one.model.training for one in (ensemble, *models))
    assert ensemble.device == torch.device("cpu")
    asked = []
    monkeypatch.setattr(trained_model, "usable_device", lambda device: asked.append(device) or torch.device("meta"))
    assert ensemble.to("a card") is ensemble and asked == ["a card"]
    assert {one.device.type for one in (ensemble, *models)} == {"meta"}
    quantized = []
    monkeypatch.setattr(trained_model, "quantize", quantized.append)
    assert ensemble.quantize() is ensemble and quantized == [one.model for one in (ensemble, *models)]


def test_texts_become_ids_and_ids_become_pieces_and_texts():
    own, special = handle(), KNOWN.special
    ids = own.encode("w3 w1 nowhere w29")
    assert ids == [KNOWN.index("w3"), KNOWN.index("w1"), special.unknown, KNOWN.index("w29")]
    framed = [special.begin, *ids, special.separator, special.mask, special.pad]
    assert own.pieces(np.array(framed)) == ["w3", "w1", "<unk>", "w29", "<mask>"]
    assert own.pieces(iter([0, SIZE - 1])) == [KNOWN.symbols[SIZE - 1]] and KNOWN.symbols[0] == "<s>"
    assert own.decode([special.begin, *ids[:2], special.separator]) == "w3 w1"
    assert own.decode([]) == "" and own.pieces(torch.tensor([ids[0]])) == ["w3"]


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ("w3", "ids: expected a list of integers, got the text 'w3'"),
        ([1.5], "ids: expected a list of integers, got [1.5]"),
        (3, "ids: expected a list of integers, got 3"),
        ([0, SIZE], f"ids must be from 0 to {SIZE - 1}, got {SIZE}"),
        ([-1], f"ids must be from 0 to {SIZE - 1}, got -1"),
    ],
)
def test_what_are_no_ids_is_refused(ids, says):
    assert refusal(handle().pieces, ids) == refusal(handle().decode, ids) == says


def test_only_a_text_is_encoded():
    assert refusal(handle().encode, ["w3"]).startswith("text")


def test_what_asks_a_single_model_is_refused_to_an_ensemble(tmp_path):
    ensemble = handle(others=[handle(), handle()])
    said = "{} asks a single model; this is an ensemble of 3"
    assert refusal(ensemble.embed, ["w3"]) == said.format("embed")
    assert refusal(ensemble.save_pretrained, tmp_path / "out") == said.format("save_pretrained")
    assert not (tmp_path / "out").exists()


def test_a_text_has_one_vector_by_default_the_mean_of_whole_texts(monkeypatch):
    asked = []
    monkeypatch.setattr(trained_model, "embedded", lambda *given: asked.append(given) or torch.is_grad_enabled())
    own = handle()
    assert own.embed(["w3", "w1 w2"]) is False  # no gradients
    own.embed(["w4"], "cls", normalize=True, max_tokens=5, batch_size=7)
    known = (own.model, KNOWN, own.tokenizer)
    ids = [[KNOWN.index("w3")], [KNOWN.index("w1"), KNOWN.index("w2")]]
    assert asked == [(*known, ids, "mean", False, 0, 32), (*known, [[KNOWN.index("w4")]], "cls", True, 5, 7)]
    assert refusal(own.embed, "w3").startswith("texts")


def test_a_model_is_saved_for_transformers_without_what_is_random(tmp_path, monkeypatch):
    own, asked = handle(), []
    own.untrained = frozenset({"heads.token.bias"})
    monkeypatch.setattr(trained_model, "export", lambda *given: asked.append(given))
    own.save_pretrained(str(tmp_path / "out"))
    ((source, folder, name),) = asked
    assert (source.name, source.dtype, folder, name) == ("this model", torch.float32, tmp_path / "out", None)
    assert source.tokenizer is own.tokenizer and source.trained.vocabulary is KNOWN
    assert (source.trained.config, source.trained.writes) == (own.model.config, "nothing")
    state = own.model.state_dict()
    assert source.trained.parameters.keys() == state.keys() - own.untrained
    assert not any(value.requires_grad for value in source.trained.parameters.values())
    plain = handle(own=SymbolTokenizer(KNOWN.symbols))
    plain.save_pretrained(tmp_path / "out", "unified", torch.float16)
    source, _, name = asked[1]
    assert (source.tokenizer, source.dtype, name) == (None, torch.float16, "unified")


def test_a_saved_model_has_the_numbers_of_its_type(tmp_path):
    handle().save_pretrained(tmp_path / "out", "bert", torch.bfloat16)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == "bfloat16"


def test_models_of_one_vocabulary_and_one_tokenizer_answer_together(tmp_path):
    first, second, third = (tmp_path / name for name in "abc")
    for folder in (first, second, third):
        folder.mkdir()
    tokenizer().save(first)
    tokenizer().save(second)
    tokenizer("more").save(third)
    require_alike(["x", "y", "z"], [handle(first), handle(first), handle(second)])
    require_alike(["x"], [handle(third)])
    said = "y and x cannot answer together: tokenizers differ"
    assert refusal(require_alike, ["x", "y"], [handle(first), handle(third)]) == said
    (tmp_path / "none").mkdir()
    assert refusal(require_alike, ["x", "y"], [handle(tmp_path / "none"), handle(first)]) == said
    require_alike(["x", "y"], [handle(tmp_path / "none"), handle(tmp_path / "none")])
    said = "z and x cannot answer together: vocabularies differ"
    other = handle(first, known=vocabulary("more"))
    assert refusal(require_alike, ["x", "y", "z"], [handle(first), handle(first), other]) == said
    assert refusal(require_alike, [], []) == "an ensemble needs at least one model"


class Other(TrainedModel):
    def __init__(self, **properties):
        self.properties = properties

    def shared_properties(self):
        return self.properties


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ({"schemes": "cloze"}, {"schemes": "next"}, "schemes differ (next and cloze)"),
        ({}, {"labels": ["a"]}, "labels differ (['a'] and None)"),
        ({"labels": 1}, {}, "labels differ (None and 1)"),
        ({"a": "x" * 40}, {"a": "y" * 40}, f"a differ ({'y' * 40} and {'x' * 40})"),
        ({"a": "x" * 40}, {"a": "y" * 41}, "a differ"),
    ],
)
def test_a_difference_is_shown_where_it_fits_into_a_line(one, other, says):
    found = refusal(require_alike, ["first", "second"], [Other(**one), Other(**other)])
    assert found == f"second and first cannot answer together: {says}"


def test_models_and_their_names_are_as_many():
    with pytest.raises(ValueError, match="zip"):
        require_alike(["x"], [Other(), Other()])
