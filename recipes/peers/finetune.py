"""Fine-tune a model of transformers for a task as its example scripts do, on a data folder of ``unified finetune``.

    python recipes/peers/finetune.py TASK --data DATA --model MODEL --output FOLDER [--seed N …]

Writes predictions in the form of our task and results.json under the name "transformers", scored by our task. An
interrupted run goes on where it stopped when it is called again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from choice_head import Choices
from peer_task import Features, PeerTask
from question_head import Questions
from relation_head import Relations
from text_head import Texts
from training_loop import Spent, train
from transformers import PreTrainedModel
from word_head import Words

from unified.errors import UnifiedError
from unified.files.destination import MANIFEST
from unified.reports.results import write_result
from unified.tasks.catalogue import SingleTask, task_named, with_changes
from unified.tasks.evaluation import write_predictions
from unified.tasks.finetuning import data_hash
from unified.tasks.heads import Understanding, parse_head
from unified.tasks.settings import Training

#: The peer's task for each of our heads, by the head's name.
PEERS: dict[str, type[PeerTask]] = {
    "choice": Choices,
    "classification": Texts,
    "regression": Texts,
    "relation": Relations,
    "span": Questions,
    "tagging": Words,
}


def peer_of(task: Understanding, model: Path, longest: int) -> PeerTask:
    """
    Raises:
        UnifiedError: the task has no peer.
    """
    if task.name not in PEERS:
        raise UnifiedError(f"head {task.name}: no peer; there are peers of {', '.join(PEERS)}")
    return PEERS[task.name](task, model, longest)


def settings(arguments: argparse.Namespace, task: SingleTask) -> Training:
    """The task's, with those that were given."""
    names = ("epochs", "batch_size", "lr", "max_length")
    return with_changes(task.training, **{name: getattr(arguments, name) for name in names})


def fine_tuned(
    peer: PeerTask, features: Features, training: Training, updates: int, seed: int, snapshot: Path
) -> tuple[PreTrainedModel, Spent]:
    """A model fine-tuned for a number of updates; its head depends on the seed."""
    torch.manual_seed(seed)
    model = peer.model().to("cuda" if torch.cuda.is_available() else "cpu")
    return model, train(model, features.inputs, peer.collate, training, updates, seed, snapshot)


@torch.no_grad()
def scores_of(model: PreTrainedModel, peer: PeerTask, features: Features, size: int) -> list[torch.Tensor]:
    """The model's scores of each example, in batches of ``size``."""
    model.eval()
    found: list[torch.Tensor] = []
    for start in range(0, len(features), size):
        batch = peer.collate(features.inputs[start : start + size])
        output = model(**{name: value.to(model.device) for name, value in batch.items()})
        found += peer.scores(output).float().cpu().unbind()
    return found


def predicted(
    model: PreTrainedModel, peer: PeerTask, paths: list[Path], output: Path, size: int
) -> dict[str, dict[str, Any]]:
    """Scores of splits with labels, signed, by name; predictions are written."""
    scores = {}
    for path in paths:
        items = peer.task.read(path)
        features = peer.features(items)
        predictions = peer.predictions(items, features, scores_of(model, peer, features, size))
        write_predictions(output, path.stem, predictions, peer.task.official(items, predictions))
        scores[path.stem] = peer.task.signed(items, predictions).scores()
    return scores


def costs(spent: Spent) -> dict[str, Any]:
    """The training's time, as in results.json."""
    return {
        "updates": spent.updates,
        "seconds": round(spent.seconds, 1),
        "seconds_per_update": round(spent.seconds / spent.updates, 4),
        "examples_per_second": round(spent.examples / spent.seconds, 2),
    }


def model_of(folder: Path) -> dict[str, Any]:
    """Description of the model in results.json: its folder, and a hash of all files in it."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.read_bytes())
    return {"name": str(folder), "sha256": digest.hexdigest()}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", metavar="TASK", help="task as `unified finetune` names it")
    parser.add_argument("--data", type=Path, required=True, help="data folder that `unified finetune` has made of TASK")
    parser.add_argument("--model", type=Path, required=True, help="model folder of transformers, with its tokenizer")
    parser.add_argument("--output", type=Path, required=True, help="folder for predictions and results")
    parser.add_argument(
        "--run", dest="run_name", default="transformers", help="name of the run in tables (default: %(default)s)"
    )
    parser.add_argument("--head", help="head and its settings, as for `unified finetune` (default: the task's)")
    parser.add_argument("--epochs", type=int, help="passes over the training data (default: the task's)")
    parser.add_argument("--updates", type=int, help="updates of the training (default: as many as --epochs take)")
    parser.add_argument("--batch-size", type=int, help="items of an update (default: the task's)")
    parser.add_argument("--lr", type=float, help="highest learning rate (default: the task's)")
    parser.add_argument("--max-length", type=int, help="longest sequence, in tokens (default: the task's)")
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="seed of the head's weights, dropout and order of items (default: %(default)s)",
    )
    return parser.parse_args(words)


def check(arguments: argparse.Namespace, task: SingleTask) -> None:
    """
    Raises:
        UnifiedError: a folder does not hold what it should.
    """
    manifest = arguments.data / MANIFEST
    if not manifest.is_file():
        raise UnifiedError(f"--data {arguments.data}: no data folder of `unified finetune`")
    made = json.loads(manifest.read_text(encoding="utf-8")).get("task")
    if made != task.name:
        raise UnifiedError(f"--data {arguments.data}: made of {made}, not of {task.name}")
    if not (arguments.model / "config.json").is_file():
        raise UnifiedError(f"--model {arguments.model}: no model folder of transformers")


def main(words: list[str] | None = None) -> None:
    arguments = parse(words)
    task = task_named(arguments.task)
    check(arguments, task)
    entry = parse_head(arguments.head or task.head)
    training = settings(arguments, task)
    items = entry.head_class.read(arguments.data / "train.jsonl")
    peer = peer_of(entry.for_items(items), arguments.model, training.max_length)
    features = peer.features(items)
    updates = arguments.updates or training.epochs * math.ceil(len(features) / training.batch_size)
    arguments.output.mkdir(parents=True, exist_ok=True)
    snapshot = arguments.output / "state.pt"
    model, spent = fine_tuned(peer, features, training, updates, arguments.seed, snapshot)
    began = time.monotonic()
    scored = [path for path in sorted(arguments.data.glob("*.jsonl")) if path.stem not in ("train", *task.unlabelled)]
    scores = predicted(model, peer, scored, arguments.output, training.batch_size)
    write_result(
        arguments.output,
        task=task.name,
        run=arguments.run_name,
        scores=scores,
        seed=arguments.seed,
        command=[sys.executable, *sys.argv],
        model=model_of(arguments.model),
        settings={"head": arguments.head or task.head, "updates": updates, **asdict(training)},
        data=data_hash(arguments.data),
        published={},
        **costs(spent),
        prediction_seconds=round(time.monotonic() - began, 1),
        training_examples=len(features),
        cut=features.cut,
    )
    snapshot.unlink()
    print(json.dumps(scores, indent=2))


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"peers: error: {error}")
