"""The model as fairseq builds and calls it: its options, the named sizes, and its two ways through."""

from argparse import Namespace
from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch
from fairseq import models
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    MODEL_REGISTRY,
)
from omegaconf import OmegaConf

from fairseq_plugins.config import restore
from fairseq_plugins.dictionary import fairseq_dictionary
from fairseq_plugins.models.unified_lm import UnifiedLMModel, UnifiedLMModelConfig
from fairseq_plugins.parameter_groups import Role
from tests.support.tiny_models import example, vocabulary
from unified.checkpoints import fingerprint
from unified.data.collate import collate
from unified.data.targets import TASK, ExampleTargets
from unified.errors import UnifiedError
from unified.generation.schemes import SCHEMES
from unified.model import PRESETS, TransformerConfig, UnifiedModel
from unified.model.transformer import Transformer
from unified.tasks.heads import Classification

WORDS = vocabulary()
SHAPE = {"layers": 1, "width": 16, "heads": 2, "max_positions": 20, "dropout": 0.0, "initializer_range": 0.3}
HEAD = Classification(("a", "b"), dropout=0.0)


class Task:
    """What the model asks of its task."""

    special = WORDS.special
    source_dictionary, target_dictionary = fairseq_dictionary(WORDS), fairseq_dictionary(WORDS)

    def __init__(self, build_core=UnifiedModel.for_language):
        self.build_core = build_core


def built(writes="cloze", task=None, **changes) -> UnifiedLMModel:
    options = UnifiedLMModelConfig(**{**SHAPE, "writes": writes, **changes})
    return models.build_model(OmegaConf.structured({**vars(options), "_name": "unified_lm"}), task or Task())


def batch():
    return collate([[example("a", 5, [1, 3]), example("b", 4, [0])]], 12, ("a", "b"), pad=WORDS.special.pad)


def test_a_decoding_scheme_that_there_is_not_is_refused():
    with pytest.raises(SystemExit, match="--writes foo: expected one of cloze, .*, nothing or auto"):
        built("foo")


def test_the_options_are_the_settings_of_a_transformer_and_two_more():
    assert UnifiedLMModelConfig.__name__ == "UnifiedLMModelConfig"
    options = {field.name: field.default for field in fields(UnifiedLMModelConfig) if field.name != "_name"}
    assert (options.pop("writes"), options.pop("compile_layers")) == ("auto", False)
    settings = {field.name: field.default for field in fields(TransformerConfig)}
    del settings["vocabulary_size"]
    assert options == settings
    assert MODEL_REGISTRY["unified_lm"] is UnifiedLMModel
    assert MODEL_DATACLASS_REGISTRY["unified_lm"] is UnifiedLMModelConfig


@pytest.mark.parametrize("name", PRESETS)
def test_a_named_size_has_the_settings_of_its_name(name):
    """Also where fairseq has another model of that name. The feed-forward follows a width that the command gives."""
    assert ARCH_MODEL_REGISTRY[name] is UnifiedLMModel and ARCH_MODEL_NAME_REGISTRY[name] == "unified_lm"
    preset = PRESETS[name]()
    cfg = Namespace()
    ARCH_CONFIG_REGISTRY[name](cfg)
    assert restore(TransformerConfig, cfg) == preset
    width = 5 * preset.heads * 8
    given = Namespace(width=width, heads=preset.heads, layers=3, dropout=0.375)
    ARCH_CONFIG_REGISTRY[name](given)
    found = restore(TransformerConfig, given)
    assert (found.width, found.layers, found.dropout) == (width, 3, 0.375)
    follows = preset.feed_forward == 4 * preset.width
    assert found.feed_forward == (4 * width if follows else preset.feed_forward)


def test_a_model_of_the_options_is_over_the_dictionary_of_its_task():
    model = built(width=32)
    assert model.core.config == TransformerConfig(**{**SHAPE, "width": 32}, vocabulary_size=len(WORDS))
    assert model.symbols == WORDS.symbols and model.max_decoder_positions() == 20 and model.max_positions() is None
    assert int(model.dictionary_version) == fingerprint(WORDS.symbols)
    saved = set(model.state_dict())
    assert saved == {f"core.{name}" for name in model.core.state_dict()} | {"dictionary_version"}
    assert model.target_symbols is None
    assert model.core.transformer.embeddings.tokens.weight.param_group == Role(layer=0)


@pytest.mark.parametrize("writes", ["cloze", "next", "left_to_right"])
def test_a_model_that_writes_has_an_encoder_and_a_decoder_of_its_scheme(writes):
    model = built(writes)
    (decoder,) = model.decoder.cached
    assert model.encoder.cached == (decoder,) and decoder.scheme == SCHEMES[writes]
    assert decoder.model is model.core and decoder.special == WORDS.special
    assert model.encoder.dictionary is Task.source_dictionary and model.decoder.dictionary is Task.target_dictionary
    assert not [*model.encoder.parameters(), *model.decoder.parameters()]
    assert model.decoder.max_positions() == 20


def test_a_model_that_does_not_write_has_neither():
    model = built("nothing")
    assert model.encoder is None and model.decoder is None


@pytest.mark.parametrize(
    ("given", "compiled"), [({}, 0), ({"compile_layers": False}, 0), ({"compile_layers": True}, 1)]
)
def test_layers_are_compiled_where_the_settings_have_the_option_and_ask_for_it(monkeypatch, given, compiled):
    """Settings of converted checkpoints do not have it."""
    calls = []
    monkeypatch.setattr(Transformer, "compile_layers", lambda self: calls.append(self))
    UnifiedLMModel.build_model(OmegaConf.create({**SHAPE, "writes": "nothing", **given}), Task())
    assert len(calls) == compiled


def test_a_model_that_cannot_be_built_is_refused_in_one_line():
    def refused(config):
        raise UnifiedError("not like this")

    with pytest.raises(SystemExit) as raised:
        built(task=Task(refused))
    assert str(raised.value) == "unified_lm: error: not like this"
    with pytest.raises(SystemExit, match="^unified_lm: error: .*width"):
        built(width=17)


def test_without_a_head_a_batch_gives_its_losses():
    model = built("nothing").eval()
    own = batch()
    found = model(own, smoothing=0.5, pad=WORDS.special.pad)
    expected = model.core(own, smoothing=0.5, pad=WORDS.special.pad)
    assert list(found) == list(expected) == ["a", "b", "a_next_sentence", "b_next_sentence"]
    for name, one in expected.items():
        assert all(torch.equal(*pair) for pair in zip(found[name], one, strict=True))
    assert float(found["a"].total.detach()) != float(model(own)["a"].total.detach())


def test_with_a_head_it_gives_the_scores_of_that_head():
    heads = {"one": HEAD, "other": HEAD}

    def core(config):
        return UnifiedModel.for_tasks(config, {name: head.head(config) for name, head in heads.items()})

    model = built("nothing", Task(core)).eval()
    one = example("a", 5, [])
    own = collate([[SimpleNamespace(**{**vars(one), "targets": {TASK: ExampleTargets.at(one.positions[:1], None)}})]],
                  None, ("a",), pad=WORDS.special.pad)  # fmt: skip
    for name in heads:
        assert torch.equal(model(own, head=name, reading={}), model.core.scores(own, {}, name))
    assert not torch.equal(model(own, head="one", reading={}), model(own, head="other", reading={}))


def test_a_batch_that_asks_for_more_than_the_model_has_is_refused_in_one_line():
    model = built("nothing")
    own = batch()
    asking = SimpleNamespace(**{**vars(own), "targets": {"chance": own.targets["token"]}})
    with pytest.raises(SystemExit) as raised:
        model(asking)
    assert str(raised.value) == "unified_lm: error: the model has no head 'chance', which the batch asks"
