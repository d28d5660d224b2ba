"""``unified.train``: pre-training as a plain loop, with the batches, random numbers and losses of ``fairseq-train``."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count, islice
from pathlib import Path

import torch

from unified.arguments import require_integer, require_path
from unified.data.collate import collate_flat
from unified.data.example import Batch
from unified.data.prepared_folder import DataFolder
from unified.errors import UnifiedError
from unified.files.destination import check_destination
from unified.files.locks import locked_model
from unified.inference.language_model import UnifiedLM
from unified.inference.trained_model import tokenizer_of
from unified.model import TransformerConfig, UnifiedModel
from unified.model.heads import sum_of_means
from unified.model.weight_decay import exempt_from_decay
from unified.objectives import DEFAULT_FINETUNING, DEFAULT_PRETRAINING, parse_objectives
from unified.runtime.devices import usable_device
from unified.runtime.progress import StepProgress
from unified.training.batches import updates_of_epoch
from unified.training.model_checks import require_content, scheme_of
from unified.training.new_model import new_model
from unified.training.row_dataset import RowDataset
from unified.training.settings import TrainingSettings
from unified.training.splits import open_split, training_rows


def train(
    model: str | TransformerConfig | UnifiedLM,
    data: str | os.PathLike[str],
    objectives: str | None = None,
    *,
    updates: int = TrainingSettings.max_update,
    tokens_per_sample: int = TrainingSettings.tokens_per_sample,
    max_tokens: int = TrainingSettings.max_tokens,
    update_freq: int = TrainingSettings.update_freq,
    lr: float = TrainingSettings.lr,
    warmup_updates: int | None = None,
    seed: int = TrainingSettings.seed,
    device: str | torch.device | None = None,
    output: str | os.PathLike[str] | None = None,
    save_every: int | None = None,
) -> UnifiedLM:
    """Train a language model, in float32; arguments mean what the options of ``unified pretrain`` mean.

    Args:
        model: a size such as "small" or another preset, a configuration, or a model to go on from, which does not
            change.
        data: folder of ``unified prepare``.
        objectives: what it learns, such as "bidirectional:2,seq2seq:1"; None: what ``unified pretrain`` would take.
        updates: number of updates.
        warmup_updates: updates in which the learning rate rises; None: a twentieth of all.
        device: None: a GPU where there is one.
        output: folder for the model, new or empty; None: it is not saved.
        save_every: updates between two saved models, each of which replaces the one before; None: at the end alone.

    Returns:
        The trained model. Its ``history`` has a dictionary for each update: ``update``, ``lr``, ``loss`` and the
        losses of the objectives that the update has predictions of, in bits and under the names of fairseq's log.

    Raises:
        UnifiedError: an argument is wrong, data or model do not go with the objectives, or ``output`` is not empty,
            or another training writes into it; or gradients are not finite: what was saved before stays.
    """
    settings = TrainingSettings(tokens_per_sample, max_tokens, update_freq, updates, warmup_updates, lr, seed)
    settings = settings.checked(lambda name: {"max_update": "updates"}.get(name, name))
    if save_every is not None:
        require_integer("save_every", save_every, 1)
    target = usable_device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if output is not None:
        check_destination(Path(require_path("output", output)), overwrite=False)
    folder = DataFolder.open(require_path("data", data), None, None)
    if objectives is None:
        objectives = DEFAULT_FINETUNING if folder.paired else DEFAULT_PRETRAINING
    mixture = parse_objectives(objectives)
    require_content(mixture, objectives, str(data), folder.paired, str)
    vocabulary, tokenizer = folder.vocabulary(), tokenizer_of(folder.path)
    files = open_split(folder, "train", vocabulary)
    rows, lengths = training_rows(folder, files, vocabulary, mixture, settings)
    history: list[dict[str, float]] = []
    generators = torch.random.fork_rng([target] if target.type == "cuda" else [])
    with generators, _least_numbers_as_zeros(), locked_model(output):
        torch.manual_seed(seed)
        learner = new_model(model, vocabulary, mixture, tokens_per_sample, files).to(target)
        scheme = scheme_of(learner.config, mixture)
        lm = UnifiedLM(learner, vocabulary, tokenizer, scheme, folder.path, lengths)
        lm.objectives = objectives
        with StepProgress("training", updates, "updates") as progress:
            for figures in _steps(learner.train(), rows, settings, target):
                history.append(figures)
                progress.advance(f"loss {figures['loss']:.3f}")
                done = len(history)
                if output is not None and (done == updates or save_every and done % save_every == 0):
                    lm.save(output)
    lm.history = history
    return lm.eval()


@contextmanager
def _least_numbers_as_zeros() -> Iterator[None]:
    """Numbers below 1e-38, for which a CPU takes many times as long, are zeros within, and as they were afterwards."""
    least = torch.full((1,), torch.finfo(torch.float32).tiny, dtype=torch.float32)
    before = (least / 2).item() == 0.0  # torch does not say
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def _steps(
    model: UnifiedModel, rows: RowDataset, settings: TrainingSettings, device: torch.device
) -> Iterator[dict[str, float]]:
    """Makes one update after another; yields its figures for the history."""
    optimizer = _optimizer(model, settings)
    epochs = (updates_of_epoch(rows, epoch, settings.max_tokens, settings.update_freq) for epoch in count(1))
    for update, micro_batches in enumerate(islice(chain.from_iterable(epochs), settings.max_update)):
        torch.manual_seed(settings.seed + update)  # the dropout of an update does not depend on the updates before
        for group in optimizer.param_groups:
            group["lr"] = settings.rate(update)
        optimizer.zero_grad()
        batches = [_batch(rows, numbers).to(device) for numbers in micro_batches]
        # Each objective's mean is over the whole update, so that its division into batches changes no gradient.
        divisors = _summed([model.divisors(batch) for batch in batches])
        parts = []
        for batch in batches:
            losses = model(batch)
            sum_of_means(losses, divisors).backward()
            parts.append({name: one.nll for name, one in losses.items()})
            del losses  # else they and their graph would live until the next ones are there
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        bits = {name: nll.item() / math.log(2) for name, nll in _summed(parts).items()}
        means = {f"{name}_loss": bits[name] / n for name in bits if (n := divisors[name].item())}
        if not norm.isfinite():  # fairseq-train ends here, too
            found = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
            raise UnifiedError(
                f"update {update + 1}: its gradients are not finite ({found}); lower lr or raise warmup_updates"
            )
        optimizer.step()
        yield {"update": update + 1, "lr": settings.rate(update), "loss": sum(means.values()), **means}


def _batch(rows: RowDataset, numbers: Sequence[int]) -> Batch:
    examples, per_row = rows.examples(numbers)
    return collate_flat(examples, per_row, rows.row_length, rows.objective_names, rows.texts.special.pad)


def _summed(parts: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: torch.stack([part[name] for part in parts]).sum() for name in parts[0]}


def _optimizer(model: UnifiedModel, settings: TrainingSettings) -> torch.optim.Optimizer:
    """AdamW, whose learning rate each update sets; biases and LayerNorms do not decay."""
    exempt = exempt_from_decay(model)
    decaying = [parameter for name, parameter in model.named_parameters() if name not in exempt]
    others = [parameter for name, parameter in model.named_parameters() if name in exempt]
    groups = [{"params": decaying, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=settings.betas, eps=settings.eps, fused=True)
