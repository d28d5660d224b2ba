"""Base class and helpers of the plug-ins' tasks."""

from collections.abc import Mapping
from typing import Any

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset
from fairseq.distributed import utils as distributed_utils
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask

from fairseq_plugins.best_checkpoints import METRIC
from fairseq_plugins.config import Settings
from fairseq_plugins.dictionary import fairseq_dictionary
from fairseq_plugins.early_stopping import counted_validations
from fairseq_plugins.epochs import EpochRows
from fairseq_plugins.refusals import refusing
from fairseq_plugins.training_checks import require_batch_size
from fairseq_plugins.trust import check_criterion, check_model
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.kernels.cpu import keep_freed_memory
from unified.runtime.sockets import place_sockets
from unified.training.batches import Cut
from unified.training.model_checks import require_positions

#: Name under which a model gets, among the parameters of a checkpoint, what that keeps of its heads.
KEPT_HEADS = "kept_heads"


class DictionaryTask(FairseqTask):
    """A task with one dictionary for everything, whose datasets have settled all lengths themselves."""

    def __init__(self, cfg: Settings, vocabulary: Vocabulary):
        super().__init__(cfg)
        # A CPU takes many times as long for numbers below 1e-38, such as gradients of antecedents that are ruled out
        # and moments of tokens that were not met for 800 updates.
        torch.set_flush_denormal(True)
        if not torch.cuda.is_available():
            keep_freed_memory()
        self.vocabulary = vocabulary
        self.dictionary = fairseq_dictionary(vocabulary)
        self.special = vocabulary.special
        #: Whether the settings came from a checkpoint (fairseq-validate).
        self.of_checkpoint = False

    def before_saving(self) -> None:
        """Called in every process before one of them writes a checkpoint; tasks that have something to gather do so."""

    def begin_update(self, again: bool) -> None:
        """Called in every process before an update is computed; tasks that keep something from batch to batch do so.

        Args:
            again: whether it is the same update, whose gradients have overflowed (``--amp``).
        """

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """State that fairseq's checkpoints keep in ``extra_state``."""
        metric = self.cfg.best_checkpoint_metric
        return {METRIC: metric, **counted_validations(metric)}

    def require_same_meaning(self, extra_state: Mapping[str, Any], heads_may_differ: bool) -> None:
        """Refuse a checkpoint that a training goes on from where its parameters mean something else in this run.

        Args:
            extra_state: what the checkpoint keeps besides parameters and optimizer, :meth:`get_checkpoint_dict` in it.
            heads_may_differ: whether the model may have other heads than the checkpoint; the optimizer's state of a
                head that is the same goes to another one if the heads or their order differ.

        Raises:
            UnifiedError: names what differs.
        """

    def build_model(self, cfg: Settings, from_checkpoint: bool = False) -> BaseFairseqModel:
        # Not decorated: fairseq looks at the signature to decide whether to pass ``from_checkpoint``.
        if from_checkpoint:
            with refusing():
                check_model(cfg)
        model = super().build_model(cfg, from_checkpoint)
        model.of_checkpoint = from_checkpoint
        return model

    def build_criterion(self, cfg: Settings, from_checkpoint: bool = False) -> FairseqCriterion:
        if self.of_checkpoint:
            with refusing():
                check_criterion(cfg)
                _require_one_process()
        return super().build_criterion(cfg, from_checkpoint)

    def get_batch_iterator(
        self,
        dataset: FairseqDataset,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        num_shards: int = 1,
        epoch: int = 1,
        **keywords: Any,
    ) -> EpochRows:
        """Batches of an epoch, whose position in a checkpoint is kept in rows."""
        with refusing():  # fairseq-validate, which has no default of either
            require_batch_size(max_tokens, max_sentences)
        iterator = super().get_batch_iterator(
            dataset,
            max_tokens=max_tokens,
            max_sentences=max_sentences,
            num_shards=num_shards,
            epoch=epoch,
            **keywords,
        )
        if iterator.num_workers:
            with refusing():
                place_sockets()
        update_freq = self.cfg.update_freq[min(epoch, len(self.cfg.update_freq)) - 1]
        return EpochRows(iterator, Cut(max_tokens, max_sentences, num_shards * update_freq), update_freq)

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        return self.dictionary

    def max_positions(self) -> None:
        return None

    def require_positions(self, model: Settings) -> None:
        """Refuse rows longer than the position table of a model's settings."""
        require_positions(model, self.cfg.tokens_per_sample)


def _require_one_process() -> None:
    """Refuse fairseq-validate by several processes: of those with fewer batches it hands over some that are empty."""
    processes = distributed_utils.get_data_parallel_world_size()
    if processes > 1:
        raise UnifiedError(f"--distributed-world-size must be 1 for fairseq-validate, got {processes}")
