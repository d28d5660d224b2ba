"""Which parameters weight decay leaves alone, beside the published rules."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from unified.conversions import bert_names, xlnet_names
from unified.model import PRESETS, UnifiedModel
from unified.model.weight_decay import exempt_from_decay
from unified.tasks.heads import parse_head
from unified.tasks.heads.classification import Classification

BOTH = ("weight", "bias")


def small(name: str, **changes):
    config = PRESETS[name]()
    return replace(config, vocabulary_size=30, layers=2, width=16, heads=2, feed_forward=32, **changes)


def norms(*modules: str) -> set[str]:
    return {f"{module}.{kind}" for module in modules for kind in BOTH}


def layer_norms(kinds: tuple[str, ...]) -> set[str]:
    return norms(*(f"transformer.layers.{i}.{kind}.norm" for i in range(2) for kind in kinds))


def biases(kind: str, *names: str) -> set[str]:
    return {f"transformer.layers.{i}.{kind}.sublayer.{name}.bias" for i in range(2) for name in names}


FEED_FORWARD = biases("feed_forward", "inner", "outer")
ATTENTION = biases("attention", "query_key_value", "output")
HEADS = {"heads.next_sentence.pooler.bias", "heads.next_sentence.classifier.bias", "heads.token.bias"}
TRANSFORM = {"heads.token.dense.bias", *norms("heads.token.norm")}
BERT = {
    *norms("transformer.embeddings.norm"),
    *layer_norms(("attention", "feed_forward")),
    *ATTENTION,
    *FEED_FORWARD,
    *HEADS,
    *TRANSFORM,
}
NEIGHBOR = {*layer_norms(("neighbor_attention",)), *biases("neighbor_attention", "query_key_value", "output")}
BOUNDARY = {
    "heads.boundary.bias",
    "heads.boundary.first.bias",
    "heads.boundary.second.bias",
    *norms("heads.boundary.first_norm", "heads.boundary.second_norm"),
}
XLNET = {*layer_norms(("attention", "feed_forward")), *FEED_FORWARD, *HEADS}


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("unified_lm_tiny", {}, BERT),
        ("bert_tiny", {}, BERT),
        ("spanbert_tiny", {"boundary_offsets": 3}, BERT | BOUNDARY),
        ("anna_tiny", {}, BERT | NEIGHBOR),
        ("xlnet_tiny", {}, XLNET),
    ],
)
def test_what_does_not_decay_by_architecture(name, changes, expected):
    model = UnifiedModel.for_language(small(name, **changes))
    assert exempt_from_decay(model) == expected
    names = dict(model.named_parameters())
    assert expected < names.keys()
    assert all(names[name].dim() > 1 for name in names.keys() - expected - {"transformer.embeddings.query"})


#: The lists of google-research/bert's and zihangdai/xlnet's optimizers; names that match the second list decay anyway.
EXCLUDED, INCLUDED = ("LayerNorm", "layer_norm", "bias"), ("r_s_bias", "r_r_bias", "r_w_bias")


def decays_as_published(name: str) -> bool:
    if any(re.search(pattern, name) for pattern in INCLUDED):
        return True
    return not any(re.search(pattern, name) for pattern in EXCLUDED)


def test_berts_parameters_decay_by_its_codes_rule():
    """Every parameter under its published name, by the published regular expressions."""
    model = UnifiedModel.for_language(small("bert_tiny"))
    published = bert_names.names(layers=2)
    exempt = exempt_from_decay(model)
    for name, _ in model.named_parameters():
        assert {decays_as_published(other) for other in published[name]} == {name not in exempt}, name


def test_xlnets_parameters_decay_by_its_codes_rule():
    """Each parameter is told in the published layout by its value, and so are those that share a matrix here."""
    model = UnifiedModel.for_language(small("xlnet_tiny"))
    state, exempt = {}, exempt_from_decay(model)
    for name, parameter in model.named_parameters():
        state[name] = torch.full_like(parameter.detach(), float(name not in exempt))
    _, converted, rest = xlnet_names.to_xlnet(state, layers=2)
    assert all(name.startswith("heads.next_sentence.") for name in rest)
    assert len(converted) > 30
    for name, values in converted.items():
        assert bool(values.eq(float(decays_as_published(name))).all()), name


@pytest.mark.parametrize("features", [None, "sum_all"])
def test_heads_of_tasks(features):
    """A recurrent network's biases, too, which are called bias_ih_l0 and the like."""
    config, settings = small("bert_tiny"), f", features={features!r}" if features else ""
    task = parse_head(f"tagging(labels=['O', 'B'], recurrent_width=4{settings})").for_items([])
    heads = {"tags": task.head(config)}
    if not features:
        heads["text"] = Classification(("a", "b")).head(config)
    model = UnifiedModel.for_tasks(config, heads)
    exempt = {name for name in exempt_from_decay(model) if name.startswith("heads.")}
    assert exempt == {name for name, _ in model.named_parameters() if name.startswith("heads.") and ".bias" in name}
    assert len(exempt) > 1


def test_a_module_by_itself():
    assert exempt_from_decay(nn.LayerNorm(3)) == {"weight", "bias"}
    assert exempt_from_decay(nn.Linear(3, 3)) == {"bias"}


def test_modules_are_exempt_for_their_own_names_alone():
    """A module that is called like a bias holds weights that decay; the whole may be a norm itself."""
    model = nn.ModuleDict({"bias_of_all": nn.Linear(2, 2), "norm": nn.RMSNorm(2)})
    assert exempt_from_decay(model) == {"bias_of_all.bias", "norm.weight"}
    assert exempt_from_decay(nn.LayerNorm(2)) == {"weight", "bias"}
