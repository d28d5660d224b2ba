"""A loaded model of any kind: its files, device and modes, ids and pieces, ensembles, and saved folders."""

import json
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.support.task_folders import language_model, tokenizer, vocabulary
from unified import load
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.inference import trained_model
from unified.inference.language_model import UnifiedLM
from unified.inference.trained_model import TrainedModel, require_alike, tokenizer_of
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization.symbol_tokenizer import SymbolTokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer

KNOWN = vocabulary()
SIZE = len(KNOWN)


def handle(folder=None, others=(), own=None, known=KNOWN, **changes) -> TrainedModel:
    """A small model of random weights; ``own`` is its tokenizer, ``known`` its vocabulary."""
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
        found = UnifiedLM.from_pretrained(path)
        assert found.folder == folder and isinstance(found.tokenizer, WordPieceTokenizer)
    assert refusal(UnifiedLM.from_pretrained, 3).startswith("path: expected the path of a file or folder, got ")
    elsewhere = tmp_path / "data"
    elsewhere.mkdir()
    KNOWN.save(elsewhere / "dict.txt")
    found = UnifiedLM.from_pretrained(folder, elsewhere)
    assert found.folder == elsewhere and isinstance(found.tokenizer, SymbolTokenizer)


def test_without_a_tokenizer_texts_are_symbols_between_white_space(tmp_path):
    KNOWN.save(tmp_path / "dict.txt")
    assert tokenizer_of(tmp_path).encode("w3  w1\nw99") == SymbolTokenizer(KNOWN.symbols).encode("w3 w1 w99")
    tokenizer().save(tmp_path)
    assert tokenizer_of(tmp_path).entries == tokenizer().entries


@pytest.mark.parametrize("mark", ["##", "\u2581", "\u0120"])
def test_a_dictionary_of_pieces_without_their_tokenizer_is_warned_of(tmp_path, mark):
    words = [f"w{i}" for i in range(80)]
    with warnings.catch_warnings():  # special symbols are symbols too; one piece and one mark by itself are none
        warnings.simplefilter("error")
        Vocabulary([*words, f"{mark}a", mark]).save(tmp_path / "dict.txt")
        tokenizer_of(tmp_path)
    Vocabulary([*words, *(f"{mark}{letter}" for letter in "abcdefghijklmnopq")]).save(tmp_path / "dict.txt")
    with pytest.warns(UserWarning, match=f"has pieces of words, such as '{mark}a': .* into that folder") as warned:
        assert isinstance(tokenizer_of(tmp_path), SymbolTokenizer)
    assert str(warned[0].message).startswith(f"{tmp_path} holds no tokenizer")


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
    assert own.decode(ids, "??") == "w3 w1 ?? w29" and own.decode(ids) == "w3 w1 <unk> w29"
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
def test_values_that_are_not_ids_of_the_vocabulary_are_refused(ids, says):
    assert refusal(handle().pieces, ids) == refusal(handle().decode, ids) == says


def test_only_a_text_is_encoded():
    assert refusal(handle().encode, ["w3"]).startswith("text: expected one text, got ")


def test_an_ensemble_refuses_what_only_a_single_model_can_do(tmp_path):
    ensemble = handle(others=[handle(), handle()])
    said = "{} asks a single model; this is an ensemble of 3"
    assert refusal(ensemble.embed, ["w3"]) == said.format("embed")
    assert refusal(ensemble.save_pretrained, tmp_path / "out") == said.format("save_pretrained")
    assert not (tmp_path / "out").exists()
    assert refusal(handle().save_pretrained, 3).startswith("folder: expected the path of a file or folder, got ")


def test_embed_reads_32_texts_at_once_unless_the_user_says_otherwise():
    own, rows = handle(), []
    own.model.transformer.embeddings.register_forward_hook(lambda module, given, states: rows.append(len(states)))
    own.embed(["w3"] * 33)
    own.embed(["w3"] * 33, batch_size=33)
    assert sorted(rows) == [1, 32, 33]


def test_embed_averages_whole_texts_by_default_and_keeps_no_gradients():
    own, texts = handle(), ["w3", "w1 w2 w7"]
    plain = own.embed(texts)
    assert plain.shape == (2, 8) and not plain.requires_grad
    torch.testing.assert_close(plain, own.embed(texts, "mean", normalize=False, max_tokens=0, batch_size=1))
    for changed in (own.embed(texts, "cls"), own.embed(texts, normalize=True), own.embed(texts, max_tokens=2)):
        assert not torch.allclose(changed, plain, rtol=1e-3)
    assert refusal(own.embed, "w3").startswith("texts: ")


def test_a_saved_model_leaves_out_what_is_random_and_keeps_the_rest(tmp_path):
    own = handle()
    state = own.model.state_dict()
    own.untrained = frozenset(name for name in state if name.startswith("heads.next_sentence."))
    own.save_pretrained(str(tmp_path / "out"))
    again = load(tmp_path / "out")
    assert again.untrained == own.untrained and len(own.untrained) == 4
    found = again.model.state_dict()
    for name in state.keys() - own.untrained:
        torch.testing.assert_close(found[name], state[name], rtol=0, atol=0)
    assert again.encode("w3 w1 nowhere") == own.encode("w3 w1 nowhere")


@pytest.mark.parametrize(
    ("form", "dtype", "architecture"),
    [("bert", torch.bfloat16, "BertForPreTraining"), ("unified", torch.float16, "UnifiedForMaskedLM")],
)
def test_a_model_is_saved_in_the_format_and_the_type_that_are_asked_for(tmp_path, form, dtype, architecture):
    handle().save_pretrained(tmp_path / "out", form, dtype)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["architectures"], config["dtype"]) == ([architecture], str(dtype).removeprefix("torch."))
    assert {value.dtype for value in load_file(tmp_path / "out" / "model.safetensors").values()} == {dtype}


def test_a_model_without_a_tokenizer_is_saved_with_the_symbols_of_its_dictionary(tmp_path):
    own = handle(own=SymbolTokenizer(KNOWN.symbols))
    own.save_pretrained(tmp_path / "out", "unified")
    assert load(tmp_path / "out").encode("w3  w1 nowhere") == own.encode("w3 w1 nowhere")


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
    """A model of which nothing is known but the properties that others have to share."""

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


def test_another_number_of_names_than_of_models_is_an_error():
    with pytest.raises(ValueError):
        require_alike(["x"], [Other(), Other()])
