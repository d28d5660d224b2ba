"""The peer of fine-tuning: its command, and that it takes the steps that ours takes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import debug
import numpy as np
import pytest
import torch
from text_head import Texts
from torch import nn
from training_loop import batches, train

from fairseq_plugins.items import ItemFairseqDataset, TrainingOrder
from fairseq_plugins.optimizer import OnePassAdamW
from tests.recipes.test_recipes import load
from tests.support.peer_items import MAKE, VOCABULARY, texts
from unified.checkpoints import load_checkpoint
from unified.checkpoints.heads import task_head_prefixes, with_pooler
from unified.checkpoints.parameters import load_parameters
from unified.conversions.bert import read_bert
from unified.errors import UnifiedError
from unified.files.destination import write_manifest
from unified.inference.sequences import Codec
from unified.model import UnifiedModel
from unified.reports.result_tables import tables
from unified.reports.results import read_results
from unified.tasks.catalogue import task_named
from unified.tasks.finetuning import Start
from unified.tasks.heads import TASK_HEADS, Classification, parse_head
from unified.tasks.heads.batches import assembled
from unified.tasks.heads.items import write_items
from unified.tasks.jobs import job_of
from unified.tasks.settings import Training

PEERS = Path(__file__).resolve().parents[2] / "recipes" / "peers"


@pytest.fixture(scope="module")
def peers():
    return load(PEERS / "finetune.py")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("peers") / "model"
    debug.make_model(folder, VOCABULARY)
    return folder


def data_folder(path: Path, head: str, rng: np.random.Generator) -> Path:
    """A folder as `unified finetune` leaves it, without what the peer does not read."""
    path.mkdir()
    for split, count in (("train", 21), ("valid", 10)):
        write_items(path / f"{split}.jsonl", MAKE[head](count, rng))
    write_manifest(path, {"task": head})
    return path


SETTINGS = {"span": "span(stride=8)", "relation": "relation(negative='none')"}


@pytest.mark.parametrize("head", MAKE)
def test_every_head_is_trained_predicts_and_is_scored(peers, model, tmp_path, head, capsys):
    data, output = data_folder(tmp_path / "data", head, np.random.default_rng(1)), tmp_path / "run"
    setting = SETTINGS.get(head, head)
    peers.main([
        head, "--head", setting, "--data", str(data), "--model", str(model), "--output", str(output), "--updates", "2",
        "--batch-size", "4", "--max-length", "32", "--seed", "3",
    ])  # fmt: skip
    printed = capsys.readouterr().out
    result = read_results([output])[0]
    assert (result["run"], result["seed"], result["updates"], result["task"]) == ("transformers", 3, 2, head)
    assert (
        list(result["scores"]) == ["valid"]
        and json.loads(printed[printed.rindex('{\n  "valid"') :]) == result["scores"]
    )
    items = TASK_HEADS[head].read(data / "valid.jsonl")
    predictions = [json.loads(line) for line in (output / "predictions.valid.jsonl").read_text().splitlines()]
    assert [one["id"] for one in predictions] == [item.id for item in items]
    task = parse_head(setting).for_items(TASK_HEADS[head].read(data / "train.jsonl"))
    assert result["scores"]["valid"] == task.signed_score(items, predictions)
    assert task.measures[0] in tables([result]) and not (output / "state.pt").exists()


def test_as_many_updates_as_ours(model, peers, tmp_path):
    """21 items in batches of 4, three epochs."""
    read_bert(model).save(tmp_path / "start")
    data = data_folder(tmp_path / "data", "classification", np.random.default_rng(1))
    items = Classification.read(data / "train.jsonl")
    task, start = task_named("classification"), Start.of(tmp_path / "start")
    planned = job_of(task, Training(batch_size=4, max_length=16), start, tmp_path).updates({"train": items}, 4)
    words = ["--data", str(data), "--model", str(model), "--output", str(tmp_path / "run")]
    peers.main(["classification", *words, "--batch-size", "4"])
    assert read_results([tmp_path / "run"])[0]["updates"] == planned == 18


def test_what_cannot_be_trained_is_refused(peers, model, tmp_path):
    data = data_folder(tmp_path / "data", "classification", np.random.default_rng(1))
    rest = ["--model", str(model), "--output", str(tmp_path / "run")]
    for words, says in (
        (["tagging", "--data", str(data), *rest], "made of classification, not of tagging"),
        (["tagging", "--data", str(tmp_path), *rest], "no data folder of `unified finetune`"),
        (["classification", "--data", str(data), *rest[:1], str(tmp_path), *rest[2:]], "no model folder"),
    ):
        with pytest.raises(UnifiedError, match=says):
            peers.main(words)
    other = type("Other", (Classification,), {"name": "other"})
    with pytest.raises(UnifiedError, match="head other: no peer; there are peers of"):
        peers.peer_of(other(("a", "b")), model, 32)


def test_batches_are_those_that_fairseq_trains_on(model, tmp_path):
    """Two epochs of 45 items in batches of 8: the same items in the same order."""
    from fairseq.data.iterators import EpochBatchIterator

    read_bert(model).save(tmp_path / "start")
    start, items = Start.of(tmp_path / "start"), texts(45, np.random.default_rng(7))
    encoded = Classification.of(items).encode(items, Codec(start.tokenizer, start.vocabulary, 32))
    found = batches(len(items), 8, seed=11)
    for epoch in (1, 2):
        data = ItemFairseqDataset(
            encoded, False, None, start.vocabulary.special, "train", "classification", TrainingOrder(11)
        )
        data.set_epoch(epoch)
        parts = data.batch_by_size(data.ordered_indices(), max_sentences=8)
        iterator = EpochBatchIterator(data, data.collater, parts, seed=11, epoch=epoch)
        for sample, members in zip(iterator.next_epoch_itr(shuffle=True), islice(found, len(parts)), strict=True):
            assert sample["id"].tolist() == members.tolist()


def test_ours_takes_the_same_steps(model, tmp_path):
    """Without dropout and with one head to start from, losses and gradients stay equal over twelve updates.

    The decay of weights is off, since there it spares biases, and epsilon is theirs.
    """
    read_bert(model).save(tmp_path / "start")
    start, items = Start.of(tmp_path / "start"), texts(40, np.random.default_rng(10))
    task = replace(Classification.of(items), dropout=0.0)
    config = replace(start.config, dropout=0.0, attention_dropout=0.0)
    peer = Texts(task, model, 24)
    features = peer.features(items)
    theirs = peer.model_class.from_pretrained(
        model, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    ours = UnifiedModel.for_tasks(config, {"classification": task.head(config)})
    saved = load_checkpoint(start.checkpoint)["model"]
    state = {name.removeprefix("core."): value for name, value in saved.items() if name != "dictionary_version"}
    load_parameters(ours, with_pooler(state, ours), task_head_prefixes(ours), ("heads.token.", "heads.next_sentence."))
    ours.heads["classification"].output.load_state_dict(theirs.classifier.state_dict())
    training = Training(batch_size=8, lr=1e-3, weight_decay=0.0)
    encoded = task.encode(items, Codec(start.tokenizer, start.vocabulary, 24))
    optimizer = OnePassAdamW(ours.parameters(), lr=1e-3, eps=1e-8, weight_decay=0.0, fused=True)
    losses = []
    for number, members in enumerate(islice(batches(len(items), 8, seed=2), 12)):
        _, batch, reading = assembled(encoded, members, 24, start.vocabulary.special.pad)
        loss = task.loss(ours.scores(batch, reading, "classification"), reading)
        losses.append(float(loss.total / loss.count))
        ours.zero_grad()
        (loss.total / loss.count).backward()
        nn.utils.clip_grad_norm_(ours.parameters(), 1.0)
        # Rises over one update in ten of twelve, then falls.
        optimizer.param_groups[0]["lr"] = 1e-3 * (0 if number == 0 else (12 - number) / 11)
        optimizer.step()
    found = []

    class Watched(nn.Module):
        def forward(self, **batch):
            output = theirs(**batch)
            found.append(output.loss.item())
            return output

    watched = Watched()
    watched.theirs = theirs
    train(watched, features.inputs, peer.collate, training, 12, 2, tmp_path / "state.pt")
    assert max(losses) - min(losses) > 0.05 and found == pytest.approx(losses, abs=2e-5)


def test_an_interrupted_training_ends_as_one_that_was_not(model, tmp_path):
    items = texts(30, np.random.default_rng(12))
    peer = Texts(Classification.of(items), model, 32)
    features, training = peer.features(items), Training(batch_size=8, lr=1e-3)
    models, calls = [], []
    for stop in (99, 5):
        torch.manual_seed(4)
        models.append(peer.model())

        def collate(inputs, stop=stop):
            calls.append(len(inputs))
            if len(calls) == stop:
                raise KeyboardInterrupt
            return peer.collate(inputs)

        arguments = (features.inputs, collate, training, 7, 1, tmp_path / f"{stop}.pt", 0.0)
        calls.clear()
        if stop < 7:
            with pytest.raises(KeyboardInterrupt):
                train(models[-1], *arguments)
            models[-1] = peer.model()  # another head, which the snapshot replaces
        spent = train(models[-1], *arguments)
        assert (spent.updates, spent.examples) == (7, sum(map(len, islice(batches(30, 8, seed=1), 7))))
    for one, other in zip(models[0].state_dict().values(), models[1].state_dict().values(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(UnifiedError, match="of a training with other settings"):
        train(models[1], *arguments[:3], 8, 1, tmp_path / "5.pt")


def test_biases_and_norms_do_not_decay(model, tmp_path):
    """With gradients of 0 decay alone moves parameters: by the rates' sum times the decay."""
    items = texts(8, np.random.default_rng(13))
    peer = Texts(Classification.of(items), model, 32)
    built = peer.model()
    for parameter in built.parameters():
        nn.init.constant_(parameter, 0.5)
        parameter.register_hook(torch.zeros_like)
    training = Training(batch_size=8, lr=1e-2, weight_decay=0.5, warmup=0.5)
    train(built, peer.features(items).inputs, peer.collate, training, 4, 1, tmp_path / "state.pt")
    factor = math.prod(1 - 0.5 * 1e-2 * rate for rate in (0, 0.5, 1, 0.5))
    for name, parameter in built.named_parameters():
        kept = name.endswith("bias") or "LayerNorm" in name
        assert torch.allclose(parameter, torch.tensor(0.5 if kept else 0.5 * factor), rtol=1e-5), name
