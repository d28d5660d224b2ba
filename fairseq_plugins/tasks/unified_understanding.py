"""``--task unified_understanding``: fine-tuning with the head of a task."""

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import register_task
from omegaconf import II, MISSING, open_dict

from fairseq_plugins.dataset import ItemFairseqDataset
from fairseq_plugins.refusals import refusing
from fairseq_plugins.task import DictionaryTask
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tasks import HEADS, Understanding
from unified.tasks.rows import ItemRows
from unified.tokenization import load_tokenizer

logger = logging.getLogger(__name__)


@dataclass
class UnifiedUnderstandingTaskConfig(FairseqDataclass):
    data: str = field(
        default=MISSING, metadata={"help": "folder with train.jsonl and valid.jsonl, a dictionary and its tokenizer"}
    )
    head: ChoiceEnum(sorted(HEADS)) = field(default="classification", metadata={"help": "what is learnt"})
    head_dropout: float = field(default=0.1, metadata={"help": "dropout before the last projection"})
    labels: str = field(
        default="", metadata={"help": "names of classes or tags as JSON; default: those in train.jsonl"}
    )
    tokens_per_sample: int = field(
        default=128, metadata={"help": "row length; a longer text is cut to it, and how many are is logged"}
    )
    padded: bool = field(default=False, metadata={"help": "one example a row, padded, instead of packed rows"})
    seed: int = II("common.seed")


@register_task("unified_understanding", dataclass=UnifiedUnderstandingTaskConfig)
class UnifiedUnderstandingTask(DictionaryTask):
    """Items with labels -> rows -> the loss of a head."""

    def __init__(self, cfg, vocabulary: Vocabulary, understanding: Understanding):
        super().__init__(cfg, vocabulary)
        self.understanding = understanding
        self.tokenizer = load_tokenizer(cfg.data)

    @classmethod
    @refusing()
    def setup_task(cls, cfg, **kwargs):
        folder, kind = Path(cfg.data), HEADS[str(cfg.head)]
        if not folder.is_dir():
            raise UnifiedError(f"{folder}: no such data folder")
        vocabulary = Vocabulary.load(folder / "dict.txt")
        if cfg.labels:
            understanding = kind(labels=tuple(json.loads(cfg.labels)), dropout=cfg.head_dropout)
        else:
            understanding = kind.of(kind.read(folder / "train.jsonl"), cfg.head_dropout)
        return cls(cfg, vocabulary, understanding)

    @refusing()
    def load_dataset(self, split, combine=False, epoch=1, **kwargs):
        """Rows of a split: packed for training, as they lie in the file otherwise."""
        path = Path(self.cfg.data) / f"{split}.jsonl"
        items = self.understanding.read(path)
        length = self.cfg.tokens_per_sample
        try:
            encoded = self.understanding.encode(items, self.tokenizer, self.vocabulary, length)
        except UnifiedError as error:
            raise UnifiedError(f"{path}: {error}") from None
        if encoded.cut:
            logger.info(
                f"{path}: {encoded.cut} of {len(items)} items are cut or divided at --tokens-per-sample {length}"
            )
        rows = ItemRows(encoded.examples, length, self.cfg.seed, packed=split == "train" and not self.cfg.padded)
        self.datasets[split] = ItemFairseqDataset(rows, encoded.targets, self.special, shuffle=split == "train")

    def build_model(self, cfg, from_checkpoint=False):
        if not from_checkpoint:
            with refusing():
                self._settle(cfg)
        return super().build_model(cfg, from_checkpoint)

    def _settle(self, cfg) -> None:
        self.require_positions(cfg)
        with open_dict(cfg):
            cfg.writes = "nothing"

    def get_checkpoint_dict(self) -> dict:
        """What fairseq keeps of this task in a checkpoint: what the scores stand for."""
        labels = list(getattr(self.understanding, "labels", ()))
        return {type(self).__name__: {"head": self.understanding.name, "labels": labels}}
