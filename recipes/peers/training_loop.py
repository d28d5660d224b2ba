"""The plain training loop of the published example scripts, with the batches that ours trains on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import get_linear_schedule_with_warmup

from unified.data import randomness
from unified.errors import UnifiedError
from unified.model.weight_decay import exempt_from_decay
from unified.tasks.settings import Training

#: AdamW's, which BERT and ``unified finetune`` take; torch's own is 1e-8. Where gradients are small, it sets the step.
EPSILON = 1e-6
#: Updates from one line of the log to the next.
LOGGED = 50
#: Seconds of training from one snapshot to the next.
SNAPSHOT_SECONDS = 60.0


@dataclass(frozen=True)
class Spent:
    """Cost of a training.

    Attributes:
        updates, examples: how many, in all.
        seconds: of the updates alone.
    """

    updates: int
    examples: int
    seconds: float


def train(
    model: nn.Module,
    inputs: Sequence[dict[str, Any]],
    collate: Callable[[list[dict[str, Any]]], dict[str, torch.Tensor]],
    training: Training,
    updates: int,
    seed: int,
    snapshot: Path,
    snapshot_seconds: float = SNAPSHOT_SECONDS,
) -> Spent:
    """Fine-tune in place: AdamW, a rate that rises linearly and falls linearly to 0, clipped gradients.

    Dropout depends on the seed and the number of the update, so that a run which goes on from a snapshot ends as one
    that was never stopped.

    Args:
        model: gives a loss where it gets labels.
        inputs: of each example.
        collate: makes a batch of some.
        updates: in all.
        snapshot: file from which an interrupted run resumes; written now and then, and at the end.
        snapshot_seconds: seconds of training from one snapshot to the next.

    Raises:
        UnifiedError: the snapshot is of a training with other settings.
    """
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(_parameter_groups(model, training.weight_decay), training.lr, eps=EPSILON)
    schedule = get_linear_schedule_with_warmup(optimizer, round(training.warmup * updates), updates)
    stateful = {"model": model, "optimizer": optimizer, "schedule": schedule}
    settings = {**asdict(training), "updates": updates, "seed": seed, "examples": len(inputs)}
    done = _restore(snapshot, stateful, settings, device) if snapshot.exists() else Spent(0, 0, 0.0)
    model.train()
    kept, losses, began = done.seconds, [], time.monotonic()
    for members in islice(batches(len(inputs), training.batch_size, seed), done.updates, updates):
        torch.manual_seed(seed + done.updates)
        batch = {name: value.to(device) for name, value in collate([inputs[i] for i in members]).items()}
        loss = model(**batch).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.clip)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds = done.seconds + time.monotonic() - began
        done = Spent(done.updates + 1, done.examples + len(members), seconds)
        last = done.updates == updates
        if last or done.updates % LOGGED == 0:
            print(json.dumps({"update": done.updates, "seconds": seconds, "loss": float(np.mean(losses))}), flush=True)
            losses = []
        if last or seconds - kept > snapshot_seconds:
            _keep(snapshot, stateful, settings, done)
            kept = seconds
        began = time.monotonic()
    return done


def batches(examples: int, size: int, seed: int) -> Iterator[np.ndarray]:
    """Numbers of the examples of each update, epoch by epoch without end: those that ``unified finetune`` trains on.

    Where both have equally many examples, the batches are the same ones in the same order: drawn as in
    :class:`fairseq_plugins.dataset.ItemFairseqDataset`, then shuffled as fairseq shuffles them.
    """
    for epoch in count(1):
        order = randomness.generator(seed, epoch, randomness.ORDER).permutation(examples)
        batches = np.split(order, range(size, examples, size))
        np.random.RandomState(seed + epoch).shuffle(batches)
        yield from batches


def _parameter_groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Biases and LayerNorms do not decay."""
    exempt = exempt_from_decay(model)
    parameters: tuple[list, list] = ([], [])
    for name, parameter in model.named_parameters():
        parameters[name in exempt].append(parameter)
    return [{"params": parameters[0], "weight_decay": decay}, {"params": parameters[1], "weight_decay": 0.0}]


def _keep(path: Path, stateful: dict[str, Any], settings: dict[str, Any], done: Spent) -> None:
    """The file is there in full or not at all."""
    states = {name: own.state_dict() for name, own in stateful.items()}
    partial = path.with_suffix(".partial")
    torch.save({**states, "settings": settings, "done": asdict(done)}, partial)
    os.replace(partial, path)


def _restore(path: Path, stateful: dict[str, Any], settings: dict[str, Any], device: torch.device) -> Spent:
    content = torch.load(path, map_location=device, weights_only=True)
    if content["settings"] != settings:
        raise UnifiedError(f"{path}: of a training with other settings; remove it, or name another --output")
    for name, own in stateful.items():
        own.load_state_dict(content[name])
    return Spent(**content["done"])
