"""The extractive loss: a head on first tokens of sentences, its formula and its gradient."""

import numpy as np
import pytest
import torch

from tests.support.asked import sentences
from tests.support.tiny_models import model
from tests.support.tiny_models import vocabulary as tiny_vocabulary
from unified.data.collate import collate
from unified.data.text import Text
from unified.errors import UnifiedError
from unified.objectives.contract import loss_names
from unified.objectives.unilm import TargetCloze


def examples(objective=None, count=6):
    """Examples over the small vocabulary, sentences at random indices."""
    objective = objective or TargetCloze(extractive=True)
    special, rng = tiny_vocabulary().special, np.random.default_rng(5)
    made = []
    for _ in range(count):
        bounds = np.unique(np.append(rng.integers(0, 8, 3), [0, 8]))
        spans = np.stack([bounds[:-1], bounds[1:]], axis=1)
        tokens, second = rng.integers(5, 16, 8), rng.integers(5, 16, 3)
        taken = spans[rng.random(len(spans)) < 0.5]
        made.append(objective(Text(tokens, special, second, spans={"sentences": spans, "oracle": taken}), rng))
    return made


def test_the_loss_is_its_formula():
    core = model(sentence_head=True)
    made = examples()
    batch = collate([[example] for example in made], None, ("target_cloze",), pad=1)
    states = core.hidden(batch)
    head, total, count, correct = core.heads["extractive"], 0.0, 0, 0
    for row, example in enumerate(made):
        for index, label in sentences(example).tolist():
            h = states[row, index] @ head.dense.weight.T + head.dense.bias
            h = 0.5 * h * (1 + torch.erf(h / 2**0.5))
            h = (h - h.mean()) / (h.var(unbiased=False) + core.config.norm_epsilon).sqrt()
            scores = (h * head.norm.weight + head.norm.bias) @ head.classifier.weight.T + head.classifier.bias
            total -= scores.log_softmax(0)[label]
            correct += int(scores.argmax() == label)
            count += 1
    loss = core(batch, smoothing=0.1, pad=1)["target_cloze_extractive"]  # smoothing is for words
    assert (int(loss.count), int(loss.correct)) == (count, correct) and 0 < correct < count
    torch.testing.assert_close(loss.total, total, rtol=1e-5, atol=1e-4)
    ours = torch.autograd.grad(loss.total, list(core.parameters()), allow_unused=True, retain_graph=True)
    theirs = torch.autograd.grad(total, list(core.parameters()), allow_unused=True)
    reached = 0
    for mine, other, (name, _) in zip(ours, theirs, core.named_parameters(), strict=True):
        if mine is None or not mine.any():
            assert other is None or not other.any(), name
        else:
            torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)
            reached += 1
    assert reached > 20


def test_packed_is_as_alone():
    core, made = model(sentence_head=True), examples()
    names = ("target_cloze", "target_cloze_extractive")
    alone = [core(collate([[example]], None, ("target_cloze",), pad=1)) for example in made]
    packed = core(collate([made[:4], made[4:]], 60, ("target_cloze",), pad=1))
    for name in names:
        torch.testing.assert_close(
            packed[name].total, sum(losses[name].total for losses in alone), rtol=1e-4, atol=1e-4
        )
        assert packed[name].count == sum(losses[name].count for losses in alone)


def test_the_head_takes_part_whatever_a_batch_holds():
    core = model(sentence_head=True)
    losses = core(collate([examples(TargetCloze())], None, ("target_cloze",), pad=1))
    assert int(losses["target_cloze_extractive"].count) == 0
    sum(loss.total for loss in losses.values()).backward()
    assert all(parameter.grad is not None for parameter in core.heads["extractive"].parameters())


def test_a_model_without_the_head_says_so_and_loses_nothing():
    made = examples()
    with_head, without = model(sentence_head=True), model()
    without.load_state_dict({k: v for k, v in with_head.state_dict().items() if not k.startswith("heads.extractive.")})
    with pytest.raises(UnifiedError, match="the model has no sentence head"):
        without(collate([made], None, ("target_cloze",), pad=1))
    plain = without(collate([examples(TargetCloze())], None, ("target_cloze",), pad=1))
    assert list(plain) == ["target_cloze", "target_cloze_next_sentence"]
    assert list(loss_names(TargetCloze())) == ["target_cloze"]
    assert list(loss_names(TargetCloze(extractive=True))) == ["target_cloze", "target_cloze_extractive"]
    both = with_head(collate([examples(TargetCloze())], None, ("target_cloze",), pad=1))
    torch.testing.assert_close(both["target_cloze"].total, plain["target_cloze"].total)


# ---------------------------------------------------------------- through fairseq-train
