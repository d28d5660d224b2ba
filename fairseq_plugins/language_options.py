"""Options of ``--task unified_lm``."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional

from fairseq.dataclass import ChoiceEnum
from omegaconf import II, MISSING

from fairseq_plugins.exports import ExportConfig
from unified.objectives import DEFAULT_FINETUNING, DEFAULT_PRETRAINING

if TYPE_CHECKING:
    Metric = str
    Penalty = str
else:  # fairseq's names for flags with choices; their values are texts
    Metric = ChoiceEnum(["rouge", "bleu"])
    Penalty = ChoiceEnum(["fairseq", "unilm"])


@dataclass
class UnifiedLMTaskConfig(ExportConfig):
    """Options of ``--task unified_lm``."""

    data: str = field(default=MISSING, metadata={"help": "folder made by `unified prepare` or fairseq-preprocess"})
    objectives: Optional[str] = field(
        default=None,
        metadata={
            "help": "objectives and their weights, such as 'bidirectional:2,seq2seq(mask_share=0.2):1'; default: "
            f"UniLM's mixture ({DEFAULT_PRETRAINING}) on documents, {DEFAULT_FINETUNING} on pairs"
        },
    )
    source_lang: Optional[str] = field(
        default=None,
        metadata={
            "help": "name of the source side of pairs; default: read from the file names",
            "argparse_alias": "-s",
        },
    )
    target_lang: Optional[str] = field(
        default=None,
        metadata={
            "help": "name of the target side of pairs; default: read from the file names",
            "argparse_alias": "-t",
        },
    )
    tokens_per_sample: int = field(default=512, metadata={"help": "row length in tokens, special symbols included"})
    memory: int = field(
        default=0,
        metadata={
            "help": "tokens of the text before each row that attention remembers; rows are then parallel streams "
            "(Transformer-XL, XLNet), as many as a batch of all processes has; 0: no memory"
        },
    )
    padded: bool = field(default=False, metadata={"help": "read one example a row, padded, instead of packed rows"})
    max_source: Optional[int] = field(
        default=None,
        metadata={
            "help": "first tokens of each source that are read, 0: all; default: all where pairs fit into rows, else "
            "what a row leaves beside the targets; with a trained model, as in its training"
        },
    )
    max_target: Optional[int] = field(
        default=None,
        metadata={
            "help": "first tokens of each target that are learned, and most to write, 0: all; default: all where "
            "pairs fit into rows, else about what 99 of 100 targets need; with a trained model, as in its training"
        },
    )
    eval_generate: Optional[Metric] = field(
        default=None,
        metadata={
            "help": "metric to log of texts that are generated from the validation sources; default: none is made"
        },
    )
    eval_task: Optional[str] = field(
        default=None,
        metadata={"help": "generation task whose official scores of generated texts are logged; default: none"},
    )
    eval_items: Optional[str] = field(
        default=None, metadata={"help": "file with the validation items of --eval-task, JSON lines"}
    )
    eval_generate_args: str = field(
        default='{"beam": 1}',
        metadata={"help": "options of generation for validation, a JSON object with fairseq-generate's names"},
    )
    length_penalty: Penalty = field(
        default="fairseq",
        metadata={
            "help": "form of the length penalty: 'fairseq', score / length^lenpen, or 'unilm', "
            "score / ((5 + length) / 6)^lenpen"
        },
    )
    no_repeat_ngram_ignore: str = field(
        default="", metadata={"help": "symbols, separated by blanks, that --no-repeat-ngram-size never blocks"}
    )
    seed: int = II("common.seed")
    max_tokens: Optional[int] = II("dataset.max_tokens")
    max_valid_steps: Optional[int] = II("dataset.max_valid_steps")
    update_freq: list[int] = II("optimization.update_freq")
    best_checkpoint_metric: str = II("checkpoint.best_checkpoint_metric")
    maximize_best_checkpoint_metric: bool = II("checkpoint.maximize_best_checkpoint_metric")
