"""``--task unified_lm``: language modelling by any objective, on documents or on pairs."""

import logging
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import FairseqDataset, encoders
from fairseq.models import BaseFairseqModel
from fairseq.optim import FairseqOptimizer
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task

from fairseq_plugins.config import Settings
from fairseq_plugins.dataset import PairFairseqDataset, RowFairseqDataset, Sample, Side, StreamFairseqDataset, cut_item
from fairseq_plugins.epochs import EpochRows
from fairseq_plugins.evaluation import GeneratedTexts, generation_options
from fairseq_plugins.generation_checks import check_generation
from fairseq_plugins.generator import ForcedScorer, UnifiedSequenceGenerator
from fairseq_plugins.language_checks import check_folders, check_options, check_training_splits, settle_model
from fairseq_plugins.language_options import UnifiedLMTaskConfig
from fairseq_plugins.lengths import TaskLengths
from fairseq_plugins.memory import StreamMemory
from fairseq_plugins.refusals import refusing
from fairseq_plugins.task import DictionaryTask
from fairseq_plugins.tokenizer import FolderTokenizer
from fairseq_plugins.training_checks import require_batch_size
from fairseq_plugins.trust import is_given
from fairseq_plugins.writing_validation import OfficialScores
from unified.arguments import counted
from unified.data.prepared_folder import DataFolder
from unified.data.targets import TOKEN
from unified.data.token_files import TokenFile
from unified.data.vocabulary import UNKNOWN
from unified.errors import UnifiedError
from unified.generation import SCHEMES
from unified.generation.config import require_temperature
from unified.generation.penalties import require_exponent
from unified.generation.schemes import NO_ENTITIES_IN_WRITING, NO_SCHEME
from unified.model import TransformerConfig, UnifiedModel
from unified.model.model import NO_TOKEN_HEAD
from unified.objectives import DEFAULT_FINETUNING, DEFAULT_PRETRAINING, parse_objectives
from unified.planning.pairs import cut_note
from unified.tokenization import word_starts
from unified.training.row_dataset import RowDataset, longest_text
from unified.training.settings import require_a_row
from unified.training.splits import document_texts, open_split, pair_texts
from unified.training.stream_dataset import RunningText, StreamDataset
from unified.training.target_symbols import target_symbols

logger = logging.getLogger(__name__)


@register_task("unified_lm", dataclass=UnifiedLMTaskConfig)
class UnifiedLMTask(DictionaryTask):
    """Data folder -> rows -> losses by objective; sources -> generated targets."""

    def __init__(self, cfg: UnifiedLMTaskConfig, folders: list[DataFolder], own_classes: bool = True):
        super().__init__(cfg, folders[0].vocabulary())
        self.folders = folders
        self.folder = folders[0]
        default = DEFAULT_FINETUNING if self.folder.paired else DEFAULT_PRETRAINING
        self.mixture = parse_objectives(cfg.objectives or default, own_classes)
        self.tokenizer = FolderTokenizer.of(self.folder.path)
        self.lengths = TaskLengths(cfg.max_source, cfg.max_target)
        self.continues = False  #: whether the model of a checkpoint continues prompts
        self._least_to_write = 1  #: ``--min-len`` of the generator that was built last
        self._said_what_is_cut = False
        self.official: OfficialScores | None = None
        self.generated: list[GeneratedTexts | OfficialScores] = []
        self.stream_memory: StreamMemory | None = None
        self.token_files: set[str] = set()  # prefixes of those that have been loaded

    @classmethod
    @refusing()
    def setup_task(cls, cfg: UnifiedLMTaskConfig, **kwargs: Any) -> Self:
        paths = utils.split_paths(cfg.data)
        of_checkpoint = kwargs.get("from_checkpoint", False)
        folders = [DataFolder.open(path, cfg.source_lang, cfg.target_lang) for path in paths]
        task = cls(cfg, folders, own_classes=not of_checkpoint or is_given("objectives"))
        task.of_checkpoint = of_checkpoint
        check_folders(folders, task.vocabulary)
        check_options(cfg, task.mixture, task.folder.paired)
        if len(folders) > 1 and not of_checkpoint:  # a single one is read at once
            check_training_splits(folders, task.vocabulary, task.mixture, cfg, task._word_starts())
        if cfg.eval_task and not of_checkpoint:
            if cfg.max_valid_steps is not None:
                raise UnifiedError("--max-valid-steps: scores of --eval-task are of all pairs of a split; leave it out")
            task.official = OfficialScores(cfg.eval_task, cfg.eval_items)
        return task

    # Names and symbols

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Names under which losses are logged."""
        return self.mixture.loss_names

    # Data

    def has_sharded_data(self, split: str) -> bool:
        """Whether training goes through several data folders, one in each epoch."""
        return len(self.folders) > 1

    @refusing()
    def load_dataset(self, split: str, combine: bool = False, epoch: int = 1, **kwargs: Any) -> None:
        """Rows of a split; for pairs outside training, single pairs that can also be generated from.

        fairseq-generate gets pairs without losses: it does not say how the model was trained.
        """
        folder = self.folders[(epoch - 1) % len(self.folders)] if split == "train" else self.folder
        files = open_split(folder, split, self.vocabulary)
        self.token_files |= set(folder.prefixes(split))
        # Training and validation draw different masks even where they hold the same text.
        seed = self.cfg.seed if split == "train" else self.cfg.seed + 1
        if self.cfg.memory and split == "train":
            self.datasets[split] = self._streams(files[0], seed)
            return
        if not folder.paired:
            documents = document_texts(files[0], self.vocabulary, self._word_starts())
            rows = RowDataset(documents, self.mixture, self.cfg.tokens_per_sample, seed, packed=not self.cfg.padded)
            self.datasets[split] = RowFairseqDataset(rows, self.special, shuffle=split == "train")
            return
        if self.lengths.from_checkpoint and not self.of_checkpoint:
            self.datasets[split] = self._to_generate(split, files[0], files[1])
            return
        lengths = self.lengths.of_split(files, self._max_pair_length())
        texts = pair_texts(files, self.vocabulary, self._word_starts(), lengths)
        for side, note in texts.cut().items():
            logger.info(f"{split}: {note} ({self.lengths.why(side, self.cfg.tokens_per_sample)})")
        packed = split == "train" and not self.cfg.padded
        rows = RowDataset(texts, self.mixture, self.cfg.tokens_per_sample, seed, packed=packed)
        if split == "train":
            self.datasets[split] = RowFairseqDataset(rows, self.special, shuffle=True)
        else:
            # References stay whole: what is generated is compared with them, whatever training cuts.
            sides = Side(files[0], lengths.max_source), Side(files[1], 0)
            self.datasets[split] = PairFairseqDataset(*sides, self.special, losses=rows)
            if self.official:
                self.official.require(len(files[0]))

    def _to_generate(self, split: str, source: TokenFile, target: TokenFile) -> PairFairseqDataset:
        """Sources, cut as in training, with their whole references."""
        limit = self._source_limit()
        note = cut_note(source, "sources", limit)
        if note:
            logger.info(f"{split}: {note} ({self.lengths.why('source', self.cfg.tokens_per_sample)})")
        sources = Side(source, limit or 0)
        self._check_sources(sources.sizes)
        return PairFairseqDataset(sources, Side(target, 0), self.special)

    def _check_sources(self, sizes: Sequence[int] | np.ndarray) -> None:
        """Refuse texts to write from, of so many tokens with their separators, that leave too few positions."""
        self.lengths.check_source(int(np.max(sizes, initial=1)) - 1, self.continues, self._least_to_write)

    def _source_limit(self) -> int | None:
        """Tokens of a source that are read in generation; prompts are read whole where no option says otherwise."""
        return self.cfg.max_source or None if self.continues else self.lengths.source_limit()

    def _max_pair_length(self) -> int:
        """Tokens of a source and its target together that a row holds."""
        return longest_text(self.mixture, self.cfg.tokens_per_sample)

    def _streams(self, file: TokenFile, seed: int) -> StreamFairseqDataset:
        text, ((name, objective),) = RunningText(file, self.special), self.mixture
        rows = StreamDataset(text, objective, self._word_starts(), self.cfg.tokens_per_sample, seed, name=name)
        self.stream_memory = self.stream_memory or StreamMemory(self.cfg.memory, rows.advance)
        return StreamFairseqDataset(rows, self.special, shuffle=True)

    def get_batch_iterator(
        self,
        dataset: FairseqDataset,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        num_shards: int = 1,
        epoch: int = 1,
        **keywords: Any,
    ) -> EpochRows:
        """Batches in the data's order; there are as many streams as all processes together have rows in a batch."""
        if not isinstance(dataset, StreamFairseqDataset):
            return super().get_batch_iterator(dataset, max_tokens, max_sentences, num_shards, epoch, **keywords)
        with refusing():
            require_batch_size(max_tokens, max_sentences)
        by_tokens = max_tokens // dataset.rows.row_length if max_tokens else None
        rows = min(count for count in (by_tokens, max_sentences) if count)
        dataset.split(rows * num_shards)
        iterator = super().get_batch_iterator(dataset, None, rows, num_shards, epoch, **keywords)
        iterator.disable_shuffling, iterator.shuffle = True, False
        return iterator

    def _word_starts(self) -> np.ndarray | None:
        return word_starts(self.tokenizer.tokenizer, self.vocabulary) if self.tokenizer else None

    @refusing()
    def build_dataset_for_inference(
        self, src_tokens: list[torch.Tensor], src_lengths: object, **kwargs: Any
    ) -> PairFairseqDataset:
        """Dataset for fairseq-interactive, from int64 tensors that end with the separator.

        Longer ones are cut, which is said once. Those that leave too few positions are refused.
        """
        limit, sources = self._source_limit(), [tokens.numpy() for tokens in src_tokens]
        if limit and any(len(source) > limit + 1 for source in sources):
            if not self._said_what_is_cut:
                logger.warning(
                    f"sources are cut to their first {counted(limit, 'token')} "
                    f"({self.lengths.why('source', self.cfg.tokens_per_sample)})"
                )
            self._said_what_is_cut = True
            sources = [cut_item(source, limit) for source in sources]
        self._check_sources([len(source) for source in sources])
        return PairFairseqDataset(sources, None, self.special)

    # Model

    def build_model(self, cfg: Settings, from_checkpoint: bool = False) -> BaseFairseqModel:
        if not from_checkpoint:
            with refusing():
                self.settle(cfg)
        model = super().build_model(cfg, from_checkpoint)
        if from_checkpoint:
            self.lengths.load_positions(model.max_decoder_positions())
            self.continues = model.decoder is not None and model.decoder.cached[0].scheme.prompt
        else:
            model.target_symbols = lambda symbols: self.target_symbols(symbols)
        self.generated = []
        if self.cfg.eval_generate:
            generator = self.build_generator([model], generation_options(self.cfg.eval_generate_args))
            self.generated.append(GeneratedTexts(str(self.cfg.eval_generate), self, model, generator))
        if self.official:
            own = self.vocabulary, cfg.writes, self.folder.path, self.lengths.trained
            self.official.write_with(model.core, *own)
            self.generated.append(self.official)
        return model

    def build_core(self, config: TransformerConfig) -> UnifiedModel:
        """The model that this task trains."""
        return UnifiedModel.for_language(config, self.mixture.own_heads)

    def target_symbols(self, symbols: np.ndarray) -> np.ndarray:
        """The given symbols that training or validation has as targets, see :mod:`unified.training.target_symbols`."""
        train = {prefix for folder in self.folders for prefix in folder.prefixes("train")}
        files = [TokenFile(prefix) for prefix in sorted(train | self.token_files)]
        return target_symbols(symbols, files, self.mixture, self.special, self.cfg.tokens_per_sample)

    def settle(self, cfg: Settings) -> None:
        """Fills in the settings that a new model takes from the task; the checkpoint will carry them."""
        if self.folder.paired:
            files = [tuple(map(TokenFile, folder.prefixes("train"))) for folder in self.folders]
            self.lengths.choose(files, self._max_pair_length())
        self.require_positions(cfg)
        if self.cfg.max_tokens is not None and not self.cfg.padded:
            require_a_row(self.cfg.max_tokens, self.cfg.tokens_per_sample)
        settle_model(cfg, self.mixture, self.cfg.memory)

    def train_step(
        self,
        sample: Sample,
        model: BaseFairseqModel,
        criterion: FairseqCriterion,
        optimizer: FairseqOptimizer,
        update_num: int,
        ignore_grad: bool = False,
    ) -> tuple[torch.Tensor, Any, dict[str, Any]]:
        # A dummy batch stands in for one that this process does not have: no stream goes on by it.
        if self.stream_memory is not None and not ignore_grad:
            sample = self.stream_memory.attach(sample, next(model.parameters()))
        return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)

    def begin_update(self, again: bool) -> None:
        if self.stream_memory is not None:
            self.stream_memory.begin_update(again)

    def before_saving(self) -> None:
        """Called in every process before one of them writes a checkpoint."""
        if self.stream_memory is not None:
            self.stream_memory.gather()

    def state_dict(self) -> dict[str, Any]:
        """State in a checkpoint that generation from it and fairseq-validate need."""
        return {**super().state_dict(), **self.lengths.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Called for each checkpoint that is generated from or validated; not when training goes on."""
        self.lengths.load(state)

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """State in fairseq's checkpoints: of this task the memory of all streams."""
        kept = super().get_checkpoint_dict()
        if self.stream_memory is None:
            return kept
        return {**kept, type(self).__name__: {"memory": self.stream_memory.state()}}

    def set_checkpoint_dict(self, state: dict[str, Any]) -> None:
        """Restores this task's state from a checkpoint: the memory of streams."""
        if self.stream_memory is not None and "memory" in state:
            self.stream_memory.load(state["memory"])

    def begin_valid_epoch(self, epoch: int, model: BaseFairseqModel) -> None:
        super().begin_valid_epoch(epoch, model)
        for scores in self.generated:
            scores.begin()

    def valid_step(
        self, sample: Sample, model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> tuple[torch.Tensor, Any, dict[str, Any]]:
        """The losses of a validation batch, and the logged scores of texts written for it."""
        loss, sample_size, log = super().valid_step(sample, model, criterion)
        if sample.get("target") is not None:
            for scores in self.generated:
                log.update(scores.add(sample))
        return loss, sample_size, log

    def text(self, tokens: torch.Tensor, unknown: str = UNKNOWN) -> str:
        """Plain text of a row of ids; symbols joined by blanks where the folder has no tokenizer.

        Args:
            unknown: the symbol that stands for an unknown token.
        """
        pieces = self.dictionary.string(tokens, extra_symbols_to_ignore={self.special.pad}, unk_string=unknown)
        return self.tokenizer.decode(pieces) if self.tokenizer else pieces

    def reduce_metrics(self, logging_outputs: Sequence[Mapping[str, Any]], criterion: FairseqCriterion) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        for scores in self.generated:
            scores.log(logging_outputs)

    # Generation

    @refusing()
    def build_generator(
        self,
        models: list[BaseFairseqModel],
        args: Settings,
        seq_gen_cls: object = None,
        extra_gen_cls_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> SequenceGenerator | ForcedScorer:
        if any(model.core.config.reads_entities for model in models):
            raise UnifiedError(NO_ENTITIES_IN_WRITING)
        if any(TOKEN not in model.core.heads for model in models):
            raise UnifiedError(NO_TOKEN_HEAD)
        if any(model.decoder is None for model in models):
            raise UnifiedError(NO_SCHEME)
        schemes = {model.decoder.cached[0].scheme for model in models}
        if len(schemes) > 1:
            names = [name for name, scheme in SCHEMES.items() if scheme in schemes]
            raise UnifiedError(
                f"--path: models of different decoding schemes ({', '.join(names)}) cannot write together"
            )
        if self.datasets and not self.folder.paired:
            raise UnifiedError(
                f"{self.folder.path} holds documents, from which fairseq-generate has nothing to generate; continue "
                "prompts with fairseq-interactive or `unified generate`"
            )
        check_generation(vars_of(args))
        if vars_of(args).get("score_reference", False):
            for dataset in self.datasets.values():
                self.lengths.check_pairs(dataset.sources.sizes, dataset.targets.sizes)
            return ForcedScorer(models)
        self._least_to_write = vars_of(args).get("min_len", 1)
        if self.lengths.from_checkpoint and not self.of_checkpoint:
            for dataset in self.datasets.values():
                self._check_sources(dataset.sources.sizes)
        extra = dict(extra_gen_cls_kwargs or {})
        unilm = str(self.cfg.length_penalty) == "unilm"
        if unilm:
            args = Namespace(**{**vars_of(args), "unnormalized": True})
        require_temperature("--temperature", vars_of(args).get("temperature", 1.0))
        # Longer texts may have no penalty where two tokens have one: how long they become is not known here.
        require_exponent("--lenpen", "unilm" if unilm else "fairseq", vars_of(args).get("lenpen", 1.0), 2)
        most = 0 if self.continues else self.lengths.most_to_write()
        most = most and max(most, self._least_to_write)
        extra.update(ngram_ignore=self._ignored_symbols(), unilm_lenpen=unilm, max_target=most)
        return super().build_generator(models, args, UnifiedSequenceGenerator, extra, **kwargs)

    def _ignored_symbols(self) -> frozenset[int]:
        symbols = self.cfg.no_repeat_ngram_ignore.split()
        unknown = [symbol for symbol in symbols if symbol not in self.dictionary]
        if unknown:
            raise UnifiedError(f"--no-repeat-ngram-ignore names symbols that dict.txt lacks: {' '.join(unknown)}")
        return frozenset(self.dictionary.index(symbol) for symbol in symbols)

    def build_bpe(self, args: Settings | None) -> Any:
        """fairseq's --bpe where given, else the tokenizer that came with the data folder."""
        return encoders.build_bpe(args) if args is not None else self.tokenizer


def vars_of(args: Settings) -> dict[str, Any]:
    """The options of a parsed namespace or config node, by name."""
    return dict(vars(args)) if isinstance(args, Namespace) else dict(args)
