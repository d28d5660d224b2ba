"""Groups of parameters that belong to heads, and what a model takes of them from another one."""

from __future__ import annotations

import torch
from torch import nn

from unified.checkpoints.heads import (
    by_head,
    head_of,
    heads_of_objectives,
    modules_of_other_labels,
    prefixes,
    start_new_token_head,
    task_head_prefixes,
    with_pooler,
    without_other_labels,
)
from unified.model import TransformerConfig, UnifiedModel
from unified.model.heads import LinearHead, PooledHead
from unified.model.span_heads import BertSpanHead, UnilmSpanHead

CONFIG = TransformerConfig(vocabulary_size=120, layers=1, width=8, heads=2, initializer_range=0.25)
NAMES = [
    "transformer.norm.weight", "heads.token.bias", "heads.token.dense.weight", "heads.spans_own.output.weight",
    "heads.next_sentence.pooler.weight", "lstm.weight", "headstrong.x", "transformer.heads.token.weight",
]  # fmt: skip


def tasks(labels: int = 3, **heads: nn.Module) -> UnifiedModel:
    """A model with a pooled head "topic", a linear one "tag", and others."""
    own = {"topic": PooledHead(CONFIG, labels, 0.0), "tag": LinearHead(CONFIG, 5, 0.0), **heads}
    return UnifiedModel.for_tasks(CONFIG, own, predicts_tokens=True)


def test_a_head_is_the_second_part_of_a_name_that_begins_with_heads():
    heads = [None, "token", "token", "spans_own", "next_sentence", None, None, None]
    assert [head_of(name) for name in NAMES] == heads
    assert head_of("heads.token") is None  # a module, not a parameter of one


def test_parameters_are_counted_by_head_and_others_are_named():
    assert by_head(NAMES) == [
        "transformer.norm.weight", "heads.token (2 parameters)", "heads.spans_own (1 parameter)",
        "heads.next_sentence (1 parameter)", "lstm.weight", "headstrong.x", "transformer.heads.token.weight",
    ]  # fmt: skip
    assert by_head([]) == []


def test_heads_of_an_objective_are_neither_the_librarys_nor_those_of_tasks():
    names = [*NAMES, "heads.extractive.x", "heads.boundary.x", "heads.other.a", "heads.other.b", "heads.tag.output"]
    assert heads_of_objectives(names, ["tag"]) == ["spans_own", "other"]
    assert heads_of_objectives(names, []) == ["spans_own", "other", "tag"]


def test_each_head_has_one_prefix():
    assert prefixes(NAMES) == ("heads.token.", "heads.spans_own.", "heads.next_sentence.")
    assert prefixes(["transformer.x"]) == ()


def test_task_heads_and_their_modules_have_prefixes():
    assert task_head_prefixes(tasks()) == (
        "heads.topic.", "heads.tag.", "heads.topic.pooler.", "heads.topic.dropout.", "heads.topic.output.",
        "heads.tag.dropout.", "heads.tag.output.",
    )  # fmt: skip


def test_a_new_token_head_begins_as_the_identity_and_a_loaded_one_stays():
    model = tasks()
    before = model.heads["token"].dense.weight.clone()
    assert start_new_token_head(model, ["heads.topic.output.weight", "lstm.x"]) is False
    assert start_new_token_head(model, []) is False
    assert torch.equal(model.heads["token"].dense.weight, before)
    assert start_new_token_head(model, ["lstm.x", "heads.token.bias"]) is True
    assert torch.equal(model.heads["token"].dense.weight, 0.25 * torch.eye(8))


def test_a_model_without_a_token_head_has_none_to_start():
    model = UnifiedModel.for_tasks(CONFIG, {"tag": LinearHead(CONFIG, 5, 0.0)})
    assert start_new_token_head(model, ["heads.token.bias"]) is False


def test_each_pooled_task_begins_with_the_pooler_of_next_sentence_prediction():
    state = UnifiedModel.for_language(CONFIG).state_dict()
    found = with_pooler(state, tasks(second=PooledHead(CONFIG, 2, 0.0)))
    pooler = {f"heads.next_sentence.pooler.{part}" for part in ("weight", "bias")}
    added = {f"heads.{head}.pooler.{part}" for head in ("topic", "second") for part in ("weight", "bias")}
    assert found.keys() == state.keys() - pooler | added
    for name in added:
        assert found[name] is state[f"heads.next_sentence.pooler.{name.rpartition('.')[2]}"]
    assert all(found[name] is state[name] for name in state.keys() - pooler)


def test_without_a_pooled_task_or_a_pooler_nothing_changes():
    state = UnifiedModel.for_language(CONFIG).state_dict()
    linear = UnifiedModel.for_tasks(CONFIG, {"tag": LinearHead(CONFIG, 5, 0.0)})
    assert with_pooler(state, linear) == dict(state)
    lacking = {name: value for name, value in state.items() if ".pooler." not in name}
    found = with_pooler(lacking, tasks())
    assert found == lacking and found is not lacking


def test_modules_of_task_heads_with_another_size_are_left_out_whole():
    state = tasks(labels=4).state_dict()
    kept, left_out = without_other_labels(state, tasks(labels=3))
    assert left_out == ["heads.topic.output.weight", "heads.topic.output.bias"]
    assert kept.keys() == state.keys() - set(left_out)
    assert all(kept[name] is state[name] for name in kept)


def test_a_module_goes_whole_where_one_of_its_parameters_differs():
    state = {**tasks().state_dict(), "heads.topic.output.bias": torch.zeros(9)}
    assert without_other_labels(state, tasks())[1] == ["heads.topic.output.weight", "heads.topic.output.bias"]


def test_other_sizes_elsewhere_stay_to_be_refused():
    """Only heads of tasks may differ; so may names that the model has not."""
    state = {**tasks().state_dict(), "transformer.embeddings.norm.bias": torch.zeros(2), "unknown": torch.zeros(1)}
    kept, left_out = without_other_labels(state, tasks())
    assert left_out == [] and kept == state


def test_modules_for_other_labels_are_left_out_although_they_have_the_size():
    state = tasks().state_dict()
    kept, left_out = without_other_labels(state, tasks(), ["heads.topic.output.", "heads.tag."])
    assert left_out == [f"heads.{head}.output.{part}" for head in ("topic", "tag") for part in ("weight", "bias")]
    assert kept.keys() == state.keys() - set(left_out)


def test_the_modules_of_a_head_that_are_for_its_labels_begin_anew_with_other_ones():
    model = tasks(short=BertSpanHead(CONFIG), asked=UnilmSpanHead(CONFIG, 3))

    def heads(labels, head="own"):
        return {name: {"head": head, "settings": {"labels": labels}} for name in model.task_heads}

    assert modules_of_other_labels({}, heads(("a",)), model) == []  # of a language model
    assert modules_of_other_labels(heads(["a", "b"]), heads(("a", "b")), model) == []
    changed = ["heads.topic.output.", "heads.tag.", "heads.asked.answer_type."]
    for labels in (("b", "a"), ("a", "c"), ("a",), (), 5):
        assert modules_of_other_labels(heads(labels), heads(("a", "b")), model) == changed
    without = {name: {"head": "own"} for name in model.task_heads}
    assert modules_of_other_labels(without, heads(("a", "b")), model) == changed
    assert modules_of_other_labels(without, without, model) == []
    every = ["heads.topic.", "heads.tag.", "heads.short.", "heads.asked."]
    assert modules_of_other_labels(heads(("a", "b"), "other"), heads(("a", "b")), model) == every
