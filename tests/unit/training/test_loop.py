"""`unified.train`: when it saves, what it says, and what the trained model knows of itself."""

import weakref
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import unified
from tests.support.token_files import numbered_documents, random_sizes, write_documents
from unified import UnifiedLM
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.model import PRESETS
from unified.training import loop


@pytest.fixture
def folder(tmp_path):
    """Ten short documents of numbered symbols."""
    path = tmp_path / "data"
    path.mkdir()
    sizes = random_sizes(np.random.default_rng(0), 10, 6, 9)
    file = write_documents(path / "train", numbered_documents(sizes))
    Vocabulary([f"w{number}" for number in range(int(np.asarray(file.slice(0, len(file))).max()))]).save(
        path / "dict.txt"
    )
    return path


def trained(folder, **options) -> UnifiedLM:
    model = PRESETS["unified_lm_tiny"](layers=1, width=16, heads=2, feed_forward=32, dropout=0.0)
    numbers = {"tokens_per_sample": 32, "max_tokens": 64, "updates": 7, "device": "cpu", **options}
    return unified.train(model, folder, "bidirectional", **numbers)


@pytest.mark.parametrize(
    ("save_every", "saved"),
    [(None, [7]), (1, [1, 2, 3, 4, 5, 6, 7]), (2, [2, 4, 6, 7]), (3, [3, 6, 7]), (7, [7]), (99, [7])],
)
def test_it_saves_as_often_as_asked_and_at_the_end(folder, tmp_path, monkeypatch, save_every, saved):
    found, updates = [], []
    clip = torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *given: updates.append(1) or clip(*given))
    monkeypatch.setattr(UnifiedLM, "save", lambda lm, output: found.append((len(updates), output)))
    trained(folder, output=tmp_path / "model", save_every=save_every)
    assert found == [(count, tmp_path / "model") for count in saved]


def test_it_ends_where_gradients_are_not_finite_and_keeps_what_it_has_saved(folder, tmp_path, monkeypatch):
    found, updates = [], []
    clip = torch.nn.utils.clip_grad_norm_

    def norm_of(*given):
        updates.append(1)
        return clip(*given) if len(updates) < 4 else torch.tensor(float("inf"))

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", norm_of)
    monkeypatch.setattr(UnifiedLM, "save", lambda lm, output: found.append(len(updates)))
    message = r"update 4: its gradients are not finite \(bidirectional_loss \d\.\d+, bidirectional_next_sentence_loss "
    with pytest.raises(UnifiedError, match=message):
        trained(folder, output=tmp_path / "model", save_every=1)
    assert found == [1, 2, 3]


def test_without_a_folder_nothing_is_saved(folder, monkeypatch):
    monkeypatch.setattr(UnifiedLM, "save", lambda lm, output: pytest.fail("saved"))
    trained(folder, save_every=2)


def test_the_model_knows_what_it_has_learnt_and_how(folder):
    lm = trained(folder)
    assert lm.objectives == "bidirectional" and not lm.model.training
    assert [row["update"] for row in lm.history] == list(range(1, 8))
    rates = [row["lr"] for row in lm.history]
    assert rates == [3e-4 * (1 - update / 7) for update in range(7)]  # a twentieth of seven updates is none
    losses = ["loss", "bidirectional_loss", "bidirectional_next_sentence_loss"]
    assert set(lm.history[0]) == {"update", "lr", *losses}
    for row in lm.history:
        assert row["loss"] == pytest.approx(row[losses[1]] + row[losses[2]])


def test_progress_names_the_work_and_the_loss(folder, monkeypatch):
    said = []

    class Progress:
        def __init__(self, *given):
            said.append(given)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            said.append("end")

        def advance(self, text):
            said.append(text)

    monkeypatch.setattr(loop, "StepProgress", Progress)
    lm = trained(folder, updates=2)
    assert said == [("training", 2, "updates"), *(f"loss {row['loss']:.3f}" for row in lm.history), "end"]


def test_a_card_is_taken_where_there_is_one(folder, monkeypatch):
    asked = []

    def usable(device):
        asked.append(device)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # else torch asks a card that is not there
        return torch.device("cpu")

    monkeypatch.setattr(loop, "usable_device", usable)
    for there, device in ((True, None), (False, None), (True, "cpu"), (False, "mps")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        trained(folder, device=device, updates=1)
    assert asked == ["cuda", "cpu", "cpu", "mps"]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_the_least_numbers_are_zeros_while_it_trains(folder, monkeypatch, zeros, fails):
    """A CPU takes many times as long for them. Afterwards they are what they were, whatever happened."""

    def zero() -> bool:
        return float((np.full(1, 1e-30, np.float32) * np.float32(1e-10))[0]) == 0.0

    seen, clip = [], torch.nn.utils.clip_grad_norm_

    def observed(*given):
        seen.append(zero())
        return torch.tensor(float("inf")) if fails else clip(*given)

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", observed)
    if not torch.set_flush_denormal(zeros):
        pytest.skip("this processor knows no such mode")
    try:
        with pytest.raises(UnifiedError) if fails else nullcontext():
            trained(folder, updates=1)
        assert seen == [True] and zero() is zeros
    finally:
        torch.set_flush_denormal(False)


def test_losses_are_freed_when_their_gradients_are_there(folder, monkeypatch):
    """Else two steps' tensors would be in memory at once."""
    held, left = [], []
    add, clip = loop.sum_of_means, torch.nn.utils.clip_grad_norm_

    def observed(losses, divisors):
        held.extend(weakref.ref(one.total) for one in losses.values())
        return add(losses, divisors)

    monkeypatch.setattr(loop, "sum_of_means", observed)
    monkeypatch.setattr(
        torch.nn.utils, "clip_grad_norm_", lambda *given: left.append([one() for one in held]) or clip(*given)
    )
    trained(folder, updates=2)
    assert len(left) == 2 and left[1] == [None] * len(held)


def test_a_run_depends_on_its_seed_alone(folder):
    first, same, other = (trained(folder, seed=seed).history for seed in (3, 3, 4))
    assert first == same != other
