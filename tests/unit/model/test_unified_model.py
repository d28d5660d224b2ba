"""The model around the Transformer: its heads, which targets it takes, states in portions, and what stays fixed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.support.tiny_models import example, model
from unified.data.collate import collate
from unified.data.example import Batch
from unified.data.targets import BOUNDARY, EXTRACTIVE, TASK, TOKEN, Targets
from unified.errors import UnifiedError
from unified.model import Transformer, TransformerConfig, UnifiedModel
from unified.model.features import RecurrentHead
from unified.model.heads import LinearHead, NextSentenceHead, SentenceHead, TaskHead
from unified.model.model import NO_TOKEN_HEAD
from unified.model.recurrent import SequenceLSTM

OBJECTIVES = ("a", "b")
CONFIG = TransformerConfig(16, layers=2, width=8, heads=2, dropout=0.0, attention_dropout=0.0, initializer_range=0.3)


def batch(**targets: Targets) -> Batch:
    rows = [[example("a", 5, [1, 3], is_next=1), example("b", 4, [0])], [example("a", 7, [2, 5, 6], is_next=0)]]
    made = collate([*rows, [example("b", 3, [1])]], 12, OBJECTIVES, pad=1)
    return replace(made, targets={**made.targets, **targets}) if targets else made


def targets_of(indices: list[int], columns: int = 1, **inputs) -> Targets:
    count = len(indices)
    return Targets(
        torch.tensor(indices).view(-1, 1).expand(-1, columns) if count else torch.zeros(0, columns, dtype=torch.long),
        torch.zeros(count, dtype=torch.long),
        torch.zeros(count, dtype=torch.long),
        torch.tensor([float(count), 0.0], dtype=torch.float64),
        inputs=inputs,
    )


def refusal(call, *given, **options) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*given, **options)
    return str(raised.value)


class States(TaskHead):
    """Gives the states that it reads."""

    def forward(self, states, reading):
        return states


def task_model(config=CONFIG, **heads) -> UnifiedModel:
    torch.manual_seed(0)
    return UnifiedModel.for_tasks(config, heads or {"states": States()}).eval()


def test_what_cannot_be_built_is_refused_in_these_words():
    lstm = replace(CONFIG, lstm=1)
    features = {"words": RecurrentHead(CONFIG, 3, 0.0, "last", width=4)}
    wants = "a head on the features of a fixed model"
    assert refusal(UnifiedModel.for_tasks, lstm, features) == f"{wants} has an LSTM of its own; leave lstm out"
    both = {**features, "other": LinearHead(CONFIG, 3, 0.0)}
    assert refusal(UnifiedModel.for_tasks, CONFIG, both) == f"{wants} must be the only thing that is learnt"
    assert refusal(UnifiedModel.for_language, replace(CONFIG, lstm=2)) == (
        "lstm 2: the LSTM is for understanding tasks; a language model has none"
    )
    bare = replace(CONFIG, token_head="none")
    assert refusal(UnifiedModel.for_tasks, bare, {"states": States()}, predicts_tokens=True) == (
        "masked language modelling beside tasks needs a model with a token head (token_head)"
    )
    assert set(UnifiedModel.for_tasks(bare, {"states": States()}).heads) == {"states"}
    assert refusal(UnifiedModel.for_language, 3) == "config must be a TransformerConfig, got int"


def test_heads_are_found_by_name_and_kind():
    language = UnifiedModel.for_language(CONFIG)
    assert set(language.prediction_heads) == {"token", "next_sentence"} and language.task_heads == {}
    assert language.head("token") is language.heads["token"]
    assert language.symbols is language.transformer.embeddings.tokens and language.config is CONFIG
    tasks = {"one": LinearHead(CONFIG, 3, 0.0), "two": LinearHead(CONFIG, 2, 0.0)}
    both = UnifiedModel.for_tasks(replace(CONFIG, lstm=1), tasks, predicts_tokens=True)
    assert both.task_heads == tasks and set(both.prediction_heads) == {TOKEN}
    assert type(both.lstm) is SequenceLSTM and language.lstm is None and not both.fixed
    own = {id(parameter) for module in (*tasks.values(), both.lstm) for parameter in module.parameters()}
    assert {id(parameter) for parameter in both.task_parameters()} == own
    assert [*UnifiedModel.for_tasks(CONFIG, tasks).task_parameters()] == [
        parameter for head in tasks.values() for parameter in head.parameters()
    ]


def test_a_head_that_is_missing_is_named():
    bare = UnifiedModel.for_language(replace(CONFIG, token_head="none"))
    assert NO_TOKEN_HEAD == (
        "the model has no token head (token_head 'none'), so it predicts no tokens; it gives features (embed) and can "
        "be fine-tuned"
    )
    assert (
        refusal(bare.head, TOKEN) == refusal(bare.logits, torch.zeros(1, 8)) == refusal(bare, batch()) == NO_TOKEN_HEAD
    )
    assert refusal(bare.head, BOUNDARY) == "the model has no span-boundary head (boundary_offsets is 0)"
    assert refusal(bare.head, EXTRACTIVE) == "the model has no sentence head (sentence_head is False)"
    assert refusal(bare.head, "length") == "the model has no head 'length'"
    language = UnifiedModel.for_language(CONFIG)
    message = "the model has no head 'length', which the batch asks"
    assert refusal(language, batch(length=targets_of([3]))) == message
    assert refusal(language.divisors, batch(length=targets_of([3]))) == message
    assert language(batch(length=targets_of([]))).keys() == language(batch()).keys()


def test_targets_fit_the_head_that_they_ask():
    spans = UnifiedModel.for_language(replace(CONFIG, boundary_offsets=3))
    assert refusal(spans, batch(token=targets_of([3], columns=2))) == (
        "targets of the head 'token' have output_indices of 2 columns; the head reads 1"
    )
    assert refusal(spans, batch(boundary=targets_of([3]))) == (
        "targets of the head 'boundary' have output_indices of 1 column; the head reads 2"
    )
    assert refusal(spans, batch(boundary=targets_of([3], columns=2))) == (
        "targets of the head 'boundary' lack the inputs distances"
    )
    found = spans(batch(boundary=targets_of([3], columns=2, distances=torch.tensor([2]), more=torch.tensor([0]))))
    assert int(found["a_boundary"].count) == 1 and int(spans(batch())["a_boundary"].count) == 0


def test_losses_and_divisors_have_the_names_of_objectives_and_heads():
    language = model(sentence_head=True)
    names = ["a", "b", "a_next_sentence", "b_next_sentence", "a_extractive", "b_extractive"]
    losses, divisors = language(batch()), language.divisors(batch())
    assert list(losses) == list(divisors) == names
    assert [float(divisors[name]) for name in names] == [5, 2, 2, 0, 0, 0]
    assert [int(losses[name].count) for name in names] == [5, 2, 2, 0, 0, 0]
    for name, plain in language(batch(), 0.0).items():
        assert torch.equal(losses[name].total, plain.total), name


def test_padding_and_symbols_that_are_left_out_get_nothing_of_a_smoothed_label():
    language = model()
    language.symbols.scored[[6, 9]] = 0.0
    seen = []
    losses = type(language.heads[TOKEN]).losses
    language.heads[TOKEN].losses = lambda *given: seen.append(given[2]) or losses(language.heads[TOKEN], *given)
    language(batch(), 0.1, pad=3)
    language(batch())
    language(batch(), 0.1)
    assert language.symbols.left_out.nonzero().flatten().tolist() == [6, 9]
    assert seen[2].unsmoothed.nonzero().flatten().tolist() == [6, 9]
    assert (seen[0].smoothing, seen[1].smoothing, seen[1].unsmoothed) == (0.1, 0.0, None)
    assert seen[0].unsmoothed.nonzero().flatten().tolist() == [3, 6, 9] and seen[0].table is language.symbols


@pytest.mark.parametrize("lstm", [0, 1])
@pytest.mark.parametrize("tokens_at_once", [1, 12, 23, 24, 36, 1000])
def test_states_in_portions_are_those_of_the_whole(lstm, tokens_at_once):
    """At least a row at a time where no gradient is wanted; all rows in one pass else."""
    reader = task_model(replace(CONFIG, lstm=lstm))
    asked = batch(**{TASK: targets_of([0, 5, 11, 12, 17, 23, 24, 26]) if not lstm else targets_of([0, 5, 12, 17, 24])})
    indices, passes = asked.targets[TASK].output_indices[:, 0], []
    reader.transformer.embeddings.register_forward_hook(lambda module, given, out: passes.append(len(given[0])))
    whole_batches: list[bool] = []
    reader.transformer.register_forward_pre_hook(lambda module, given: whole_batches.append(given[0] is asked.tokens))
    assert reader.tokens_at_once == 8192
    reader.tokens_at_once = tokens_at_once
    whole = reader.scores(asked, {}, "states")
    expected = reader.hidden(asked)
    if lstm:
        expected = reader.lstm(expected, asked.mask.key_documents(), torch.arange(3 * 12)[indices])
    else:
        expected = expected.flatten(0, 1)[indices]
    torch.testing.assert_close(whole, expected)
    assert passes == [3, 3]
    with torch.no_grad():
        torch.testing.assert_close(reader.scores(asked, {}, "states"), whole)
    rows = min(3, max(1, tokens_at_once // 12))
    assert passes[2:] == [min(rows, 3 - i) for i in range(0, 3, rows)]
    assert whole_batches == [True, True, *[rows == 3] * len(passes[2:])]


def test_the_entities_of_a_batch_reach_attention():
    config = replace(CONFIG, sublayers="entity,feed_forward")
    entities = torch.rand(3, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    asked = replace(batch(**{TASK: targets_of([0, 14])}), entities=entities)
    reader = task_model(config)
    expected = reader.transformer(asked.tokens, asked.positions, asked.token_types, asked.mask, entities=entities)
    torch.testing.assert_close(reader.hidden(asked), expected)
    torch.testing.assert_close(reader.scores(asked, {}, "states"), expected.flatten(0, 1)[[0, 14]])
    fixed = States()
    fixed.layers = (2,)
    features = UnifiedModel(reader.transformer, {"states": fixed})
    torch.testing.assert_close(features.scores(asked, {}, "states")[0], expected.flatten(0, 1)[[0, 14]])


def test_features_of_a_fixed_model_are_the_states_of_its_layers():
    """Without dropout and gradient, also while the head is trained; a model in training stays what it is."""
    head = States()
    head.layers = (0, 2, 1)
    head.weight = nn.Parameter(torch.ones(1))
    fixed = UnifiedModel(Transformer(replace(CONFIG, dropout=0.5)), {"states": head})
    assert fixed.fixed and not any(parameter.requires_grad for parameter in fixed.transformer.parameters())
    assert head.weight.requires_grad
    assert fixed.train() is fixed and fixed.training and head.training and not fixed.transformer.training
    asked = batch(**{TASK: targets_of([0, 5, 12, 30])})
    states: list[torch.Tensor] = []
    last = fixed.transformer(asked.tokens, asked.positions, asked.token_types, asked.mask, hidden_states=states)
    found = fixed.scores(asked, {}, "states")
    expected = [one.flatten(0, 1)[[0, 5, 12, 30]] for one in (states[0], last, states[1])]
    torch.testing.assert_close(found, torch.stack(expected))
    assert not found.requires_grad
    other = task_model().train()
    assert other.transformer.training and other.train(False) is other and not other.transformer.training
    assert all(parameter.requires_grad for parameter in other.parameters())


def test_states_for_features_are_made_without_a_gradient():
    head = States()
    head.layers = (1,)
    fixed = UnifiedModel(Transformer(CONFIG), {"states": head})
    fixed.transformer.requires_grad_(True)
    assert not fixed.scores(batch(**{TASK: targets_of([0])}), {}, "states").requires_grad


def test_heads_that_are_not_asked_get_a_gradient_of_0():
    tasks = {"one": LinearHead(CONFIG, 3, 0.0), "two": LinearHead(CONFIG, 2, 0.0), "three": LinearHead(CONFIG, 2, 0.0)}
    reader = UnifiedModel.for_tasks(CONFIG, tasks)
    idle = reader.idle("two")
    assert float(idle.detach()) == 0.0
    idle.backward()
    assert all(p.grad is not None and not p.grad.any() for name in ("one", "three") for p in tasks[name].parameters())
    assert all(parameter.grad is None for parameter in tasks["two"].parameters())
    alone = UnifiedModel.for_tasks(CONFIG, {"two": tasks["two"]}).idle("two")
    assert float(alone) == 0.0 and not alone.requires_grad


def test_heads_of_your_own_are_made_from_the_configuration():
    made = UnifiedModel.for_language(replace(CONFIG, sentence_head=True), {"mine": NextSentenceHead})
    assert list(made.heads) == ["token", "next_sentence", "extractive", "mine"]
    assert type(made.heads["extractive"]) is SentenceHead and type(made.heads["mine"]) is NextSentenceHead
    assert made.heads["mine"].pooler.in_features == 8


def test_a_head_of_another_kind_is_refused_before_anything_is_built():
    config = TransformerConfig(vocabulary_size=11, layers=1, width=8, heads=2)
    with pytest.raises(UnifiedError, match="^head 'mine' must be a PredictionHead or a TaskHead, got "):
        UnifiedModel(Transformer(config), {"mine": torch.nn.Linear(8, 11)})
