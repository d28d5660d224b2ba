"""The exported classes with the head of a task: which state it reads, its scores and its losses."""

from __future__ import annotations

import pytest
import torch

from unified.conversions.modeling.configuration_unified import UnifiedConfig
from unified.conversions.modeling.modeling_unified import (
    UnifiedForMultipleChoice,
    UnifiedForQuestionAnswering,
    UnifiedForSequenceClassification,
    UnifiedForTokenClassification,
)

IDS = torch.tensor([[5, 6, 7, 8, 9], [10, 11, 12, 5, 6]])
REAL = torch.tensor([[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 0], [0, 0, 0, 1, 1]])
LABELS = {0: "a", 1: "b", 2: "c"}


def made(kind, **changes):
    torch.manual_seed(7)
    shape = {"vocabulary_size": 13, "layers": 2, "width": 8, "heads": 2, "feed_forward": 12, "max_positions": 24,
             "initializer_range": 0.5, "task_head": "mine", "id2label": LABELS}  # fmt: skip
    return kind(UnifiedConfig(**{**shape, **changes})).eval()


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def pooled(model, state: torch.Tensor) -> torch.Tensor:
    head = model.heads["mine"]
    return torch.tanh(state @ head.pooler.weight.T + head.pooler.bias) @ head.output.weight.T + head.output.bias


@pytest.mark.parametrize(
    ("mask", "positions", "read"),
    [
        ("bidirectional", "learned", (0, 1)), ("left_to_right", "learned", (3, 4)), ("seq2seq", "learned", (3, 4)),
        ("right_to_left", "learned", (0, 1)), ("bidirectional", "relative", (3, 4)),
    ],
)  # fmt: skip
@torch.no_grad()
def test_a_whole_text_is_read_by_one_state(mask, positions, read):
    model = made(UnifiedForSequenceClassification, mask=mask, positions=positions)
    states = model.transformer(IDS, REAL, SEGMENTS).last_hidden_state
    found = model(IDS, REAL, SEGMENTS)
    close(found.logits, pooled(model, states[torch.arange(2), list(read)]))
    assert found.logits.shape == (2, 3) and found.loss is None


@torch.no_grad()
def test_without_padding_and_segments_the_text_is_one_and_whole():
    model = made(UnifiedForSequenceClassification, mask="left_to_right")
    states = model.transformer(IDS).last_hidden_state
    close(model(IDS).logits, pooled(model, states[:, -1]))
    pair = made(UnifiedForSequenceClassification, mask="seq2seq")
    states = pair.transformer(IDS).last_hidden_state
    close(pair(IDS).logits, pooled(pair, states[:, 0]))  # of one text the first token sees all
    states = pair.transformer(IDS, None, SEGMENTS).last_hidden_state
    close(pair(IDS, None, SEGMENTS).logits, pooled(pair, states[:, -1]))


@torch.no_grad()
def test_classes_have_the_cross_entropy_and_a_number_the_squared_error():
    model, labels = made(UnifiedForSequenceClassification), torch.tensor([2, 0])
    found = model(IDS, labels=labels)
    log_probs = found.logits.log_softmax(-1)
    close(found.loss, -(log_probs[0, 2] + log_probs[1, 0]) / 2)
    number = made(UnifiedForSequenceClassification, id2label={0: "x"}, problem_type="regression")
    found = number(IDS, labels=torch.tensor([0.5, -1.0]))
    assert found.logits.shape == (2, 1)
    close(found.loss, ((found.logits[0, 0] - 0.5) ** 2 + (found.logits[1, 0] + 1.0) ** 2) / 2)


@torch.no_grad()
def test_tags_are_scored_token_by_token():
    model = made(UnifiedForTokenClassification)
    assert [name for name, _ in model.heads["mine"].named_parameters()] == ["output.weight", "output.bias"]
    states, head = model.transformer(IDS, REAL, SEGMENTS).last_hidden_state, model.heads["mine"]
    found = model(IDS, REAL, SEGMENTS)
    close(found.logits, states @ head.output.weight.T + head.output.bias)
    assert found.logits.shape == (2, 5, 3) and found.loss is None
    labels = torch.tensor([[-100, 0, 2, -100, -100], [1, -100, -100, -100, -100]])
    log_probs = found.logits.log_softmax(-1)
    wanted = -(log_probs[0, 1, 0] + log_probs[0, 2, 2] + log_probs[1, 0, 1]) / 3
    with_loss = model(IDS, REAL, SEGMENTS, labels)
    close(with_loss.loss, wanted)
    assert torch.equal(with_loss.logits, found.logits)


@torch.no_grad()
def test_an_answer_has_a_first_and_a_last_token():
    model = made(UnifiedForQuestionAnswering)
    assert model.scores == 2
    states, head = model.transformer(IDS, REAL, SEGMENTS).last_hidden_state, model.heads["mine"]
    first, last = (states @ head.output.weight[i] + head.output.bias[i] for i in (0, 1))
    found = model(IDS, REAL, SEGMENTS)
    close(found.start_logits, first)
    close(found.end_logits, last)


@torch.no_grad()
def test_each_choice_has_a_score():
    model = made(UnifiedForMultipleChoice, mask="left_to_right")
    assert model.scores == 1
    choices = torch.stack([IDS, IDS.flip(0), IDS.roll(1, 1)])[:, :, :4].transpose(0, 1)  # (B, choices, T)
    real, segments = choices * 0 + 1, choices * 0
    real[0, 1, 3], segments[1, 2, 2:] = 0, 1
    found = model(choices, real, segments)
    assert found.logits.shape == (2, 3)
    for b in range(2):
        for c in range(3):
            states = model.transformer(choices[b, c : c + 1], real[b, c : c + 1], segments[b, c : c + 1])
            close(found.logits[b, c], pooled(model, states.last_hidden_state[0, real[b, c].sum() - 1])[0])
    whole = model(choices).logits
    states = model.transformer(choices[1]).last_hidden_state
    close(whole[1], pooled(model, states[:, -1])[:, 0])
