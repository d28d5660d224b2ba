"""``--task unified_understanding``: fine-tuning with the head of a task."""

import logging
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from omegaconf import II, MISSING, open_dict

from fairseq_plugins.dataset import ItemFairseqDataset
from fairseq_plugins.refusals import refusing
from fairseq_plugins.scores import Predictions
from fairseq_plugins.task import DictionaryTask
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tasks import HEADS, Codec, Understanding, parse_head
from unified.tokenization import load_tokenizer

logger = logging.getLogger(__name__)


@dataclass
class UnifiedUnderstandingTaskConfig(FairseqDataclass):
    data: str = field(
        default=MISSING, metadata={"help": "folder with train.jsonl and valid.jsonl, a dictionary and its tokenizer"}
    )
    head: str = field(
        default="classification",
        metadata={
            "help": f"what is learnt: {', '.join(sorted(HEADS))}; with settings in parentheses where they differ from "
            "the defaults, such as 'classification(dropout=0.05)'; labels are those in train.jsonl where none are set"
        },
    )
    tokens_per_sample: int = field(
        default=128, metadata={"help": "places of a sequence; how many items are cut or divided for it is logged"}
    )
    padded: bool = field(default=False, metadata={"help": "one example a row, padded, instead of packed rows"})
    seed: int = II("common.seed")
    max_valid_steps: int | None = II("dataset.max_valid_steps")


@register_task("unified_understanding", dataclass=UnifiedUnderstandingTaskConfig)
class UnifiedUnderstandingTask(DictionaryTask):
    """Items with labels -> examples -> the loss of a head, and official scores of its predictions."""

    def __init__(self, cfg, vocabulary: Vocabulary, understanding: Understanding):
        super().__init__(cfg, vocabulary)
        self.understanding = understanding
        self.tokenizer = load_tokenizer(cfg.data)
        self.cls_last = False
        self.items: dict[str, list] = {}
        self.predictions = Predictions(understanding, self.items)

    @classmethod
    @refusing()
    def setup_task(cls, cfg, **kwargs):
        folder, (kind, task_of) = Path(cfg.data), parse_head(cfg.head)
        if not folder.is_dir():
            raise UnifiedError(f"{folder}: no such data folder")
        if cfg.max_valid_steps:
            raise UnifiedError("--max-valid-steps: scores are of all items of a split; leave it out")
        vocabulary = Vocabulary.load(folder / "dict.txt")
        return cls(cfg, vocabulary, task_of(kind.read(folder / "train.jsonl")))

    def heads(self, config) -> dict[str, torch.nn.Module]:
        """Modules of the model's heads by name."""
        return {self.understanding.name: self.understanding.head(config)}

    @refusing()
    def load_dataset(self, split, combine=False, epoch=1, **kwargs):
        """Examples of a split: in random order for training, whole items together otherwise."""
        path = Path(self.cfg.data) / f"{split}.jsonl"
        items, length = self.understanding.read(path), self.cfg.tokens_per_sample
        try:
            encoded = self.understanding.encode(items, Codec(self.tokenizer, self.vocabulary, length, self.cls_last))
        except UnifiedError as error:
            raise UnifiedError(f"{path}: {error}") from None
        if encoded.cut:
            logger.info(
                f"{path}: {encoded.cut} of {len(items)} items are cut or divided at --tokens-per-sample {length}"
            )
        self.items[split] = items
        self.datasets[split] = ItemFairseqDataset(
            encoded,
            together=self.understanding.together or split != "train",
            longest_run=self.understanding.longest_run if split == "train" else None,
            row_length=None if self.cfg.padded else length,
            special=self.special,
            seed=self.cfg.seed if split == "train" else None,
            name=split,
            head=self.understanding.name,
        )

    def build_model(self, cfg, from_checkpoint=False):
        if not from_checkpoint:
            with refusing():
                self.require_positions(cfg)
            with open_dict(cfg):
                cfg.writes = "nothing"
        self.cls_last = cfg.positions == "relative"
        return super().build_model(cfg, from_checkpoint)

    def begin_valid_epoch(self, epoch, model):
        super().begin_valid_epoch(epoch, model)
        self.predictions.clear()

    def valid_step(self, sample, model, criterion):
        model.eval()
        with torch.no_grad():
            loss, size, log, scores = criterion.judged(model, sample)
        split, members = sample["split"], sample["members"].cpu().numpy()
        encoded, items = self.datasets[split].encoded, self.items[split]
        owners = np.unique(encoded.owners[members]).tolist()
        own = [items[owner] for owner in owners]
        found = self.understanding.predict(own, encoded, members, scores, sample["reading"])
        if split != "train":  # whose first batch stands in where a process has none of its own
            self.predictions.add(split, dict(zip(owners, found, strict=True)))
        return loss, size, {**log, "share": len(owners) / len(items)}

    def reduce_metrics(self, logging_outputs, criterion):
        super().reduce_metrics(logging_outputs, criterion)
        shares = [float(log["share"]) for log in logging_outputs if "share" in log]
        if shares:
            self.predictions.log(sum(shares))

    def get_checkpoint_dict(self) -> dict:
        """What fairseq keeps of this task in a checkpoint: what the scores stand for."""
        return {type(self).__name__: {"head": self.understanding.name, "settings": asdict(self.understanding)}}
