"""The peer of fine-tuning: its command, and that it takes the steps that ours takes."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from itertools import islice
from pathlib import Path

import debug
import numpy as np
import pytest
import torch
from text_head import Texts
from torch import nn
from training_loop import batches, train
from transformers import BertModel, BertTokenizer

from fairseq_plugins.items import ItemFairseqDataset, TrainingOrder
from tests.recipes.test_recipes import load
from tests.support import fairseq_runs as fairseq
from tests.support.peer_items import MAKE, VOCABULARY, texts
from tests.support.prepared_python import interpreter
from unified import load as load_model
from unified import masks
from unified.checkpoints import load_checkpoint
from unified.conversions.bert import read_bert
from unified.errors import UnifiedError
from unified.files.destination import write_manifest
from unified.inference.sequences import Codec
from unified.reports.result_tables import tables
from unified.reports.results import read_results
from unified.tasks.catalogue import task_named
from unified.tasks.finetuning import Start
from unified.tasks.heads import TASK_HEADS, Classification, parse_head
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
    assert result["scores"]["valid"] == task.signed(items, predictions).scores()
    assert task.measures[0] in tables([result]) and not (output / "state.pt").exists()


def test_questions_are_compared_by_a_score_that_no_threshold_changes(peers, model, tmp_path):
    """The measure of SQuAD 2.0 in the queue's table: ours and the peer decide by thresholds of their own."""
    measure = load(PEERS.parent / "queue" / "tables.py").parity.MEASURES["squad2.0"]
    data, output = data_folder(tmp_path / "data", "span", np.random.default_rng(3)), tmp_path / "run"
    words = ["--data", str(data), "--model", str(model), "--output", str(output), "--head", SETTINGS["span"]]
    peers.main(["span", *words, "--updates", "2", "--batch-size", "4", "--max-length", "32"])
    scored = read_results([output])[0]["scores"]["valid"][measure]
    read = TASK_HEADS["span"].read
    items, task = read(data / "valid.jsonl"), parse_head(SETTINGS["span"]).for_items(read(data / "train.jsonl"))
    predictions = [json.loads(line) for line in (output / "predictions.valid.jsonl").read_text().splitlines()]
    chosen = task.with_threshold(task.best_threshold(items, predictions), "valid")
    for one in (chosen, task.with_threshold(0.0), task.with_threshold(1.0)):
        assert one.score(items, one.decided(predictions))[measure] == pytest.approx(scored)


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


@pytest.mark.parametrize("head", ["classification", "regression", "tagging", "choice", "relation"])
def test_ours_takes_the_same_steps(peers, model, tmp_path, head):
    """Both as shipped but without dropout, from equal weights: `unified finetune` and the peer end at equal weights.

    Decay and epsilon are those of a comparison. The first update has a rate of 0, so that the checkpoint after it has
    the weights that ours began with.
    """
    setting = {"relation": "relation(negative='none', dropout=0)"}.get(head, f"{head}(dropout=0)")
    read_bert(model).save(tmp_path / "start")
    (tmp_path / "items").mkdir()
    items = MAKE[head](40, np.random.default_rng(10))
    for split, some in (("train", items), ("valid", items[:4])):
        write_items(tmp_path / "items" / f"{split}.jsonl", some)
    words = [
        "finetune", head, "--data", tmp_path / "items", "--init", tmp_path / "start", "--output",
        tmp_path / "ours", "--head", setting, "--epochs", 2, "--batch-size", 8, "--lr", 1e-3,
        "--max-length", 40, "--select", "last", "--fairseq",
        "--dropout 0 --attention-dropout 0 --save-interval-updates 1 --disable-validation",
    ]  # fmt: skip
    command = [interpreter(), "-m", "unified.cli", *map(str, words)]
    result = subprocess.run(command, cwd=fairseq.ROOT, env=fairseq.environment(), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    first, last = (load_checkpoint(tmp_path / "ours" / f"checkpoint_{name}.pt")["model"] for name in ("1_1", "last"))
    output = f"core.heads.{head}.output."
    peer = peers.peer_of(parse_head(setting).for_items(items), model, 40)
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    theirs = peer.model_class.from_pretrained(model, **peer.settings(), **without)
    theirs.classifier.load_state_dict({name: first[output + name] for name in ("weight", "bias")})
    features = peer.features(items)
    train(theirs, features.inputs, peer.collate, Training(batch_size=8, lr=1e-3), 10, 1, tmp_path / "state.pt")
    theirs.bert.save_pretrained(tmp_path / "theirs")
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(model / name, tmp_path / "theirs")
    read_bert(tmp_path / "theirs").save(tmp_path / "read")
    found = load_checkpoint(tmp_path / "read" / "checkpoint_last.pt")["model"]
    found |= {output + name: value for name, value in theirs.classifier.state_dict().items()}
    compared = found.keys() & last.keys() - {"dictionary_version"}
    assert len(compared) == 32 and not features.cut
    if head == "choice":  # a bias is the same for all choices, so that it has a gradient of 0 but for rounding
        compared -= {output + "bias"}
    for name in compared:
        # Only rows of symbols that both models have are compared: our table has further ones, which nothing reads.
        entries = slice(peer.tokenizer.vocab_size if name.endswith("embeddings.tokens.weight") else None)
        change, difference = (last[name] - first[name])[entries], (found[name] - last[name])[entries]
        assert difference.norm() <= 1e-3 * change.norm(), name


def test_dropout_is_drawn_at_the_same_places_and_rates(model, tmp_path):
    """Final states of many draws vary alike on both sides, and otherwise where a rate is 0.15 instead of 0.1."""
    scaled = BertModel.from_pretrained(model)
    for name, weights in scaled.named_parameters():  # each token attends to few others, so that it matters which
        if ".query." in name or ".key." in name:
            weights.data *= 8
    scaled.save_pretrained(tmp_path / "model")
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(model / name, tmp_path / "model")
    read_bert(tmp_path / "model").save(tmp_path / "start")
    lm, text = load_model(tmp_path / "start"), " ".join(debug.WORDS[:12])
    special = lm.vocabulary.special
    ids = [special.begin, *map(lm.vocabulary.index, lm.tokenizer.encode(text)), special.separator]
    own = torch.tensor(ids).repeat(4000, 1)
    theirs = torch.tensor(BertTokenizer.from_pretrained(model)(text)["input_ids"]).repeat(4000, 1)
    lm.model.train()

    def ratio(**rates: float) -> float:
        """Sum of the variances of ours over that of the peer's."""
        peer = BertModel.from_pretrained(tmp_path / "model", attn_implementation="eager", **rates).train()
        torch.manual_seed(1)
        with torch.no_grad():
            found = lm.model.transformer(
                own, torch.arange(own.size(1)).expand_as(own), torch.zeros_like(own), masks.bidirectional(own.size(1))
            )
            return float(found.var(0).sum() / peer(input_ids=theirs).last_hidden_state.var(0).sum())

    assert ratio() == pytest.approx(1, abs=0.015)
    assert ratio(hidden_dropout_prob=0.15) < 0.97 and ratio(attention_probs_dropout_prob=0.15) < 0.97


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
