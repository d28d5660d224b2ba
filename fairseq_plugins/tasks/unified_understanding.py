"""``--task unified_understanding``: fine-tuning with the head of a task, or of several."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from fairseq.criterions import FairseqCriterion
from fairseq.models import BaseFairseqModel
from fairseq.tasks import register_task
from omegaconf import II, MISSING, open_dict

from fairseq_plugins.config import Settings
from fairseq_plugins.dataset import Sample
from fairseq_plugins.exports import ExportConfig
from fairseq_plugins.items import HeadsFairseqDataset, ItemFairseqDataset, TrainingOrder
from fairseq_plugins.refusals import refusing, require_in
from fairseq_plugins.task import DictionaryTask
from fairseq_plugins.trust import is_given
from fairseq_plugins.validation_scores import Predictions, averaged_measures
from unified.arguments import Range, shown
from unified.checkpoints.heads import Heads
from unified.checkpoints.trained import heads_of
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.objectives.corruption import maskable
from unified.tasks.heads import TASK_HEADS, Encoded, HeadEntry, Understanding, parse_heads
from unified.tasks.heads.base import require_markable
from unified.tasks.heads.batches import packed_length
from unified.tasks.heads.registry import FROM_DATA, restored_task
from unified.tasks.heads.returned import cut_note, encoded_items, predicted_items
from unified.tokenization import load_tokenizer

logger = logging.getLogger(__name__)


@dataclass
class UnifiedUnderstandingTaskConfig(ExportConfig):
    """Options of ``--task unified_understanding``."""

    data: str = field(
        default=MISSING,
        metadata={
            "help": "folder with train.jsonl and valid.jsonl, a dictionary and its tokenizer; for several heads these "
            "files are in a folder each, called like the head"
        },
    )
    head: str = field(
        default="classification",
        metadata={
            "help": f"what is learnt: {', '.join(sorted(TASK_HEADS))}, or package.module:Class; with settings in "
            "parentheses where they differ from the defaults, such as 'classification(dropout=0.05)'; labels are those "
            "in train.jsonl where none are set; several tasks at once as 'name=head(setting=value):weight, …', the "
            "weight being how often an epoch reads the task's items"
        },
    )
    average_measures: str = field(
        default="",
        metadata={
            "help": "the measures of several heads that 'average' is the mean of, as 'cola=matthews, mrpc=f1'; a head "
            "that is not named has its first one"
        },
    )
    tokens_per_sample: int = field(
        default=128, metadata={"help": "most tokens of a sequence; the log counts items that are cut or divided for it"}
    )
    auxiliary_masking: float = field(
        default=0.0,
        metadata={
            "help": "weight of masked language modelling on the tasks' own texts beside their losses, against "
            "forgetting [UniLM, sec. 3.3]; 0 does without"
        },
    )
    padded: bool = field(default=False, metadata={"help": "read one example a row, padded, instead of packed rows"})
    seed: int = II("common.seed")
    cpu: bool = II("common.cpu")
    update_freq: list[int] = II("optimization.update_freq")
    max_valid_steps: int | None = II("dataset.max_valid_steps")
    best_checkpoint_metric: str = II("checkpoint.best_checkpoint_metric")
    maximize_best_checkpoint_metric: bool = II("checkpoint.maximize_best_checkpoint_metric")


@register_task("unified_understanding", dataclass=UnifiedUnderstandingTaskConfig)
class UnifiedUnderstandingTask(DictionaryTask):
    """Items with labels -> examples -> the loss of a head, and official scores of its predictions."""

    def __init__(self, cfg: UnifiedUnderstandingTaskConfig, vocabulary: Vocabulary, entries: tuple[HeadEntry, ...]):
        super().__init__(cfg, vocabulary)
        require_in(Range(least=0), "--auxiliary-masking", cfg.auxiliary_masking)
        self.entries = {entry.name: entry for entry in entries}
        self.tasks: dict[str, Understanding[Any]] = {
            entry.name: entry.for_items(entry.head_class.read(self._file(entry.name, "train"))) for entry in entries
        }
        self.tokenizer = load_tokenizer(cfg.data)
        self.items: dict[str, dict[str, list[Any]]] = {}
        measures = averaged_measures(cfg.average_measures, self.tasks)
        self.predictions = Predictions(self.tasks, self.items, measures)
        self._check_metric(cfg.best_checkpoint_metric, cfg.maximize_best_checkpoint_metric)

    @classmethod
    @refusing()
    def setup_task(cls, cfg: UnifiedUnderstandingTaskConfig, **kwargs: Any) -> Self:
        folder = Path(cfg.data)
        if not folder.is_dir():
            raise UnifiedError(f"{folder}: no such data folder")
        if cfg.max_valid_steps is not None:
            raise UnifiedError("--max-valid-steps: scores are of all items of a split; leave it out")
        of_checkpoint = kwargs.get("from_checkpoint", False)
        heads = parse_heads(cfg.head, own_classes=not of_checkpoint or is_given("head"))
        task = cls(cfg, Vocabulary.load(folder / "dict.txt"), heads)
        task.of_checkpoint = of_checkpoint
        return task

    def _check_metric(self, metric: str, maximize: bool) -> None:
        """Refuses to choose checkpoints by a metric that validation does not log, or by the worst value of one."""
        scores, losses = self.predictions.names(), ["loss"]
        losses += [f"{head}_loss" for head in self.entries] if len(self.entries) > 1 else []
        if metric not in (*scores, *losses):
            raise UnifiedError(
                f"--best-checkpoint-metric {metric} is not measured in validation (known: {', '.join(scores + losses)})"
            )
        if (metric in scores) != maximize:
            word = "needs" if metric in scores else "cannot go with"
            raise UnifiedError(f"--best-checkpoint-metric {metric} {word} --maximize-best-checkpoint-metric")

    @property
    def masked(self) -> bool:
        """Whether training batches come with a masked copy."""
        return self.cfg.auxiliary_masking > 0

    def _file(self, head: str, split: str) -> Path:
        folder = Path(self.cfg.data)
        return (folder if len(self.entries) == 1 else folder / head) / f"{split}.jsonl"

    @refusing()
    def load_dataset(self, split: str, combine: bool = False, epoch: int = 1, **kwargs: Any) -> None:
        """Examples of a split: in random order for training, whole items together otherwise."""
        self.items[split] = {}
        datasets = [self._dataset(head, split) for head in self.entries]
        self.datasets[split] = datasets[0] if len(datasets) == 1 else HeadsFairseqDataset(datasets)

    def _dataset(self, head: str, split: str) -> ItemFairseqDataset:
        task, training = self.tasks[head], None
        if split == "train" and not self.of_checkpoint:
            training = TrainingOrder(self.cfg.seed, self.entries[head].weight, task.longest_run, self.masked)
        return ItemFairseqDataset(
            self._encoded(head, split),
            together=task.together or training is None,
            row_length=None if self.cfg.padded else self.row_length,
            special=self.special,
            split=split,
            head=head,
            training=training,
        )

    def _encoded(self, head: str, split: str) -> Encoded:
        path, task = self._file(head, split), self.tasks[head]
        items = self.items[split][head] = task.read(path)
        try:
            encoded = encoded_items(task, items, self.codec)
        except UnifiedError as error:
            raise UnifiedError(f"{path}: {error}") from None
        longer = cut_note(task, encoded, len(items), self.cfg.tokens_per_sample)
        for note in (*([longer] if longer else []), *encoded.remarks):
            logger.info(f"{path}: {note}")
        return encoded

    def build_model(self, cfg: Settings, from_checkpoint: bool = False) -> BaseFairseqModel:
        if not from_checkpoint:
            with refusing():
                self.require_positions(cfg)
            with open_dict(cfg):
                cfg.writes = "nothing"
        model = super().build_model(cfg, from_checkpoint)
        device = torch.device("cuda" if torch.cuda.is_available() and not self.cfg.cpu else "cpu")
        self.row_length = packed_length(model.core.transformer, self.cfg.tokens_per_sample, device)
        if not from_checkpoint:
            model.target_symbols = lambda symbols: self.target_symbols(symbols)
            model.learnt_heads = self.kept_heads()
        return model

    def target_symbols(self, symbols: np.ndarray) -> np.ndarray:
        """The given symbols that masked language modelling has as targets: those in the tasks' texts."""
        if not self.masked:
            return symbols[:0]
        found = [symbols[:0]]
        for head, task in self.tasks.items():
            examples = encoded_items(task, task.read(self._file(head, "train")), self.codec).examples
            found += [example.tokens[maskable(example.tokens, self.special)] for example in examples]
        return np.intersect1d(symbols, np.concatenate(found))

    def build_core(self, config: TransformerConfig) -> UnifiedModel:
        """The Transformer with the heads of all tasks."""
        heads = {name: task.head(config) for name, task in self.tasks.items()}
        if config.reads_entities:
            for task in self.tasks.values():
                require_markable(type(task))
        core = UnifiedModel.for_tasks(config, heads, predicts_tokens=self.masked)
        self.codec = Codec.for_model(config, self.tokenizer, self.vocabulary, self.cfg.tokens_per_sample)
        return core

    @refusing()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Called for a checkpoint that is validated, which keeps what the scores of its heads mean.

        Raises:
            SystemExit: they mean something else in this data folder.
        """
        for name, kept in state.get("heads", {}).items():
            if name in self.tasks:
                trained = restored_task(name, kept)
                _require_same_head(name, trained, self.tasks[name])
                _require_same_settings(name, trained, self.tasks[name])

    def require_same_meaning(self, extra_state: Mapping[str, Any], heads_may_differ: bool) -> None:
        kept = heads_of({"extra_state": extra_state})
        for name in kept.keys() & self.tasks.keys():
            _require_same_head(name, restored_task(name, kept[name]), self.tasks[name])
        if kept and [*kept] != [*self.tasks] and not heads_may_differ:
            raise UnifiedError(
                f"--head: the heads are {', '.join(kept)} in the checkpoint, {', '.join(self.tasks)} in this run"
            )

    def begin_valid_epoch(self, epoch: int, model: BaseFairseqModel) -> None:
        super().begin_valid_epoch(epoch, model)
        self.predictions.clear()

    def valid_step(
        self, sample: Sample, model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> tuple[torch.Tensor, int, dict[str, Any]]:
        """The loss of a validation batch; its predictions are kept until the whole split is scored."""
        model.eval()
        with torch.no_grad():
            loss, size, log, scores = criterion.judged(model, sample)
        split, head, members = sample["split"], sample["head"], sample["members"].cpu().numpy()
        encoded, items = self._dataset_of(split, head).encoded, self.items[split][head]
        owners = np.unique(encoded.owners[members]).tolist()
        own = [items[owner] for owner in owners]
        with refusing():
            found = predicted_items(self.tasks[head], own, encoded, members, scores, sample["reading"])
        # A batch of training stands in where a process has none of its own.
        if split != "train" or self.of_checkpoint:
            self.predictions.add(split, head, dict(zip(owners, found, strict=True)))
        return loss, size, {**log, "share": len(owners) / sum(map(len, self.items[split].values()))}

    def _dataset_of(self, split: str, head: str) -> ItemFairseqDataset:
        dataset = self.datasets[split]
        if isinstance(dataset, ItemFairseqDataset):
            return dataset
        return next(own for own in dataset.datasets if own.head == head)

    def reduce_metrics(self, logging_outputs: Sequence[Mapping[str, Any]], criterion: FairseqCriterion) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        shares = [float(log["share"]) for log in logging_outputs if "share" in log]
        if shares:
            self.predictions.log(sum(shares))

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """State in fairseq's checkpoints: of this task the meaning of each head's scores."""
        return {**super().get_checkpoint_dict(), type(self).__name__: self.kept_heads()}

    def kept_heads(self) -> Heads:
        """Class and settings of each head, as checkpoints keep them."""
        return {name: {"head": task.name, "settings": asdict(task)} for name, task in self.tasks.items()}


def _require_same_head(name: str, trained: Understanding[Any], own: Understanding[Any]) -> None:
    """Refuse a head of another class, or whose scores are of other labels, than in the checkpoint."""
    if type(trained) is not type(own):
        raise UnifiedError(f"--head: {name!r} is {own.name} in this run, but {trained.name} in the checkpoint")
    before, now = asdict(trained), asdict(own)
    for setting in filter(before.__contains__, FROM_DATA):
        for number, (old, new) in enumerate(zip_longest(before[setting], now[setting]), 1):
            if old != new:
                raise UnifiedError(
                    f"--head: {setting.removesuffix('s')} {number} of {name!r} is {_named(old)} in the checkpoint, "
                    f"{_named(new)} in this run; labels are those in train.jsonl where --head sets none"
                )


def _named(label: str | None) -> str:
    return "none" if label is None else shown(label)


def _require_same_settings(name: str, trained: Understanding[Any], own: Understanding[Any]) -> None:
    """Refuse a head with another setting than in the checkpoint."""
    for setting, before in asdict(trained).items():
        now = asdict(own)[setting]
        if now != before:
            raise UnifiedError(
                f"--head: the checkpoint's {name!r} has {setting} {shown(before)}, this run has {shown(now)}"
            )
