"""`unified.train` against its updates written out with torch, and what it takes where nothing or nonsense is given."""

import math

import numpy as np
import pytest
import torch

import unified
from tests.support.token_files import numbered_documents, random_sizes, write, write_documents
from unified.data.collate import collate
from unified.data.prepared_folder import DataFolder
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.model import PRESETS
from unified.objectives import DEFAULT_FINETUNING, DEFAULT_PRETRAINING, parse_objectives
from unified.training import loop
from unified.training.batches import updates_of_epoch
from unified.training.new_model import new_model
from unified.training.settings import TrainingSettings
from unified.training.splits import open_split, training_rows

SMALL = PRESETS["unified_lm_tiny"](layers=1, width=16, heads=2, feed_forward=32, dropout=0.2)
NUMBERS = {"tokens_per_sample": 32, "max_tokens": 64, "updates": 1, "device": "cpu"}


def words_of(path, *names):
    for name in names:
        Vocabulary([f"w{number}" for number in range(600)]).save(path / name)
    return path


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents"
    path.mkdir()
    write_documents(path / "train", numbered_documents(random_sizes(np.random.default_rng(0), 10, 3, 9)))
    return words_of(path, "dict.txt")


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs"
    path.mkdir()
    for side in ("source", "target"):
        write(path / f"train.source-target.{side}", [[7, 8, 9, 2], [5, 6, 2]])
    return words_of(path, "dict.source.txt", "dict.target.txt")


def refused(*arguments, **options) -> str:
    with pytest.raises(UnifiedError) as raised:
        unified.train(*arguments, **{**NUMBERS, **options})
    return str(raised.value)


# ---------------------------------------------------------------- the updates


def written_out(path, names, settings):
    """The history and the model of a training, from the definitions of AdamW, of the schedule and of the losses."""
    folder, mixture = DataFolder.open(path, None, None), parse_objectives(names)
    words = folder.vocabulary()
    rows, _ = training_rows(folder, open_split(folder, "train", words), words, mixture, settings)
    torch.manual_seed(settings.seed)
    model = new_model(SMALL, words, mixture, settings.tokens_per_sample, []).train()
    parameters = dict(model.named_parameters())
    means = {name: (torch.zeros_like(own), torch.zeros_like(own)) for name, own in parameters.items()}
    (first, second), history, epoch, left = settings.betas, [], 0, []
    for update in range(settings.max_update):
        if not left:
            epoch += 1
            left = list(updates_of_epoch(rows, epoch, settings.max_tokens, settings.update_freq))
        batches = [
            collate([rows[row] for row in batch], rows.row_length, mixture.names, words.special.pad)
            for batch in left.pop(0)
        ]
        torch.manual_seed(settings.seed + update)
        found = [model(batch) for batch in batches]
        counts = {name: float(sum(model.divisors(batch)[name] for batch in batches)) for name in found[0]}
        nats = {name: sum(losses[name].total for losses in found) / max(counts[name], 1) for name in counts}
        model.zero_grad()
        sum(nats.values()).backward()
        rate = settings.rate(update)
        norm = math.sqrt(sum(float(own.grad.double().pow(2).sum()) for own in parameters.values()))
        with torch.no_grad():
            for name, own in parameters.items():
                gradient = own.grad * min(1.0, settings.clip_norm / (norm + 1e-6))
                if own.dim() > 1:  # neither a bias nor of a norm
                    own *= 1 - rate * settings.weight_decay
                one, two = means[name]
                one.lerp_(gradient, 1 - first)
                two.lerp_(gradient**2, 1 - second)
                step = (one / (1 - first ** (update + 1))) / (
                    (two / (1 - second ** (update + 1))).sqrt() + settings.eps
                )
                own -= rate * step
        bits = {f"{name}_loss": nats[name].item() / math.log(2) for name, count in counts.items() if count}
        history.append({"update": update + 1, "lr": rate, "loss": sum(bits.values()), **bits})
    assert epoch > 1
    return history, model


@pytest.mark.parametrize("update_freq", [1, 3])
def test_updates_are_those_of_the_definitions(documents, monkeypatch, update_freq):
    """Of AdamW with other numbers than torch's, so that each of them shows, over the end of an epoch."""
    for name, value in {"weight_decay": 0.3, "clip_norm": 0.2, "betas": (0.6, 0.8), "eps": 1e-2}.items():
        monkeypatch.setattr(TrainingSettings, name, value)
    settings = TrainingSettings(32, 64, update_freq, 9, 2, 0.1, 5).checked()
    expected, model = written_out(documents, "bidirectional,left_to_right", settings)
    lm = unified.train(
        SMALL, documents, "bidirectional,left_to_right", updates=9, tokens_per_sample=32, max_tokens=64,
        update_freq=update_freq, lr=0.1, warmup_updates=2, seed=5, device="cpu",
    )  # fmt: skip
    assert [row.keys() for row in lm.history] == [row.keys() for row in expected]
    for found, wanted in zip(lm.history, expected, strict=True):
        assert found == pytest.approx(wanted, rel=1e-5)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(lm.model.state_dict()[name], value, rtol=1e-4, atol=1e-5)


def test_a_step_of_the_optimizer_is_one_kernel(documents, monkeypatch):
    asked = []
    step = torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda own: asked.append(own.param_groups) or step(own))
    unified.train(SMALL, documents, "left_to_right", **NUMBERS)
    assert [group["fused"] for group in asked[0]] == [True, True]


# ---------------------------------------------------------------- random numbers


def test_only_the_seed_decides_and_the_random_numbers_outside_stay_as_they_are(documents):
    found = []
    for outside in (1, 2):
        torch.manual_seed(outside)
        state = torch.get_rng_state()
        found.append(unified.train(SMALL, documents, "left_to_right", **NUMBERS, seed=4).history)
        assert torch.equal(torch.get_rng_state(), state)
    assert found[0] == found[1]


def test_those_of_a_card_stay_too(documents, monkeypatch):
    class Asked(Exception):
        pass

    def fork_rng(devices):
        raise Asked(devices)

    monkeypatch.setattr(torch.random, "fork_rng", fork_rng)
    for name, devices in (("cuda", [torch.device("cuda")]), ("cpu", []), ("meta", [])):
        monkeypatch.setattr(loop, "usable_device", torch.device)
        with pytest.raises(Asked) as raised:
            unified.train(SMALL, documents, "left_to_right", **{**NUMBERS, "device": name})
        assert raised.value.args == (devices,)


# ---------------------------------------------------------------- what is given


def test_by_default_a_model_learns_what_the_data_are_for(documents, pairs):
    assert unified.train(SMALL, documents, **NUMBERS).objectives == DEFAULT_PRETRAINING
    assert unified.train(SMALL, pairs, **NUMBERS).objectives == DEFAULT_FINETUNING
    assert DEFAULT_PRETRAINING != DEFAULT_FINETUNING


def test_objectives_that_do_not_fit_the_data_are_refused(documents, pairs):
    assert refused(SMALL, documents, "target_cloze") == (
        f"objectives 'target_cloze' does not fit {documents}, which holds documents"
    )
    assert refused(SMALL, pairs, "bidirectional") == (
        f"objectives 'bidirectional' does not fit {pairs}, which holds source/target pairs"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"updates": 0}, "updates must be at least 1, got 0"),
        ({"update_freq": 0}, "update_freq must be at least 1, got 0"),
        ({"warmup_updates": 1}, "warmup_updates must be from 0 to below updates 1, got 1"),
        (
            {"max_tokens": 31},
            "max_tokens 31 is less than one row of tokens_per_sample 32; raise the first or lower the second",
        ),
        ({"save_every": 0}, "save_every must be an integer of at least 1, got 0"),
        ({"save_every": 1.0}, "save_every must be an integer of at least 1, got 1.0"),
        ({"output": 3}, "output: expected the path of a file or folder, got int 3"),
    ],
)
def test_arguments_are_refused_under_their_names(documents, options, says):
    assert refused(SMALL, documents, **options) == says


def test_data_are_a_folder(tmp_path):
    assert refused(SMALL, 3) == "data: expected the path of a file or folder, got int 3"
    assert refused(SMALL, tmp_path / "none").startswith(f"{tmp_path / 'none'}")


def test_a_folder_that_is_not_empty_is_left_alone(documents, tmp_path):
    """Even one that says that all in it was written by a program."""
    folder = tmp_path / "model"
    folder.mkdir()
    unified.train(SMALL, documents, "left_to_right", **NUMBERS, output=folder)
    before = sorted(folder.iterdir())
    assert before and refused(SMALL, documents, output=folder) == f"{folder}: not empty; name a new folder"
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.json").write_text('{"outputs": {}}')
    assert refused(SMALL, documents, output=other) == f"{other}: not empty; name a new folder"
    assert sorted(folder.iterdir()) == before and len(list(other.iterdir())) == 1
