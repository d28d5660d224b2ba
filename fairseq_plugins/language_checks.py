"""Refusals of ``--task unified_lm`` before training, and settings that a new model takes from the objectives."""

from collections.abc import Sequence

import numpy as np
from omegaconf import open_dict

from fairseq_plugins.config import Settings, restore
from fairseq_plugins.evaluation import METRICS, generation_options
from fairseq_plugins.language_options import UnifiedLMTaskConfig
from fairseq_plugins.refusals import require_in
from fairseq_plugins.writing_validation import task_of_writing
from unified.arguments import Range
from unified.data.prepared_folder import DataFolder
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.objectives.mixture import Mixture
from unified.training.model_checks import adapted, require_content, scheme_of
from unified.training.splits import require_split


def check_options(cfg: UnifiedLMTaskConfig, mixture: Mixture, paired: bool) -> None:
    """Refuses options that contradict each other or the data.

    Args:
        cfg: options of the task.
        mixture: the objectives that they name.
        paired: whether the data folder holds pairs and not documents.

    Raises:
        UnifiedError: names the option.
    """
    require_content(mixture, cfg.objectives, cfg.data, paired)
    for option, value in {
        "--memory": cfg.memory,
        "--max-source": cfg.max_source,
        "--max-target": cfg.max_target,
    }.items():
        if value is not None:
            require_in(Range(least=0), option, value)
    if cfg.memory and (len(mixture.objectives) > 1 or paired):
        raise UnifiedError(
            f"--memory {cfg.memory}: streams of running text serve one objective, got {mixture}; "
            "leave the memory out, or name a single one"
        )
    if cfg.memory and cfg.padded:
        raise UnifiedError(f"--memory {cfg.memory}: streams of running text have no padding; leave --padded out")
    if cfg.eval_generate and not paired:
        raise UnifiedError(f"--eval-generate needs source/target pairs, but {cfg.data} holds documents")
    generation_options(cfg.eval_generate_args)
    metric = cfg.best_checkpoint_metric
    measured = {"loss", *(f"{name}_{value}" for name in mixture.loss_names for value in ("loss", "ppl", "accuracy"))}
    generated = METRICS[str(cfg.eval_generate)].measures if cfg.eval_generate else ()
    if cfg.eval_task:
        generated += task_of_writing(cfg.eval_task).measures
    if metric not in measured | set(generated):
        raise UnifiedError(
            f"--best-checkpoint-metric {metric} is not measured in validation (known: "
            f"{', '.join(sorted(measured | set(generated)))}); --eval-generate and --eval-task add others"
        )
    grows = metric in generated or metric.endswith("_accuracy")
    if grows != bool(cfg.maximize_best_checkpoint_metric):
        word = "needs" if grows else "cannot go with"
        raise UnifiedError(f"--best-checkpoint-metric {metric} {word} --maximize-best-checkpoint-metric")


def check_folders(folders: Sequence[DataFolder], vocabulary: Vocabulary) -> None:
    """Refuse data folders of one training that do not go together.

    Args:
        folders: at least one; training takes them in turn.
        vocabulary: of the first one.

    Raises:
        UnifiedError: names the folder.
    """
    first, *others = folders
    for folder in others:
        if folder.paired != first.paired:
            raise UnifiedError(
                f"{folder.path} holds {_content(folder)}, but {first.path} {_content(first)}; all folders of one "
                "training hold the same"
            )
        if folder.vocabulary().symbols != vocabulary.symbols:
            raise UnifiedError(
                f"{folder.path} has another dictionary than {first.path}; prepare it with --tokenizer {first.path}"
            )


def check_training_splits(
    folders: Sequence[DataFolder],
    vocabulary: Vocabulary,
    mixture: Mixture,
    cfg: UnifiedLMTaskConfig,
    word_starts: np.ndarray | None,
) -> None:
    """Refuse folders from which the objectives cannot learn, before the epoch that reads them.

    Args:
        folders: all of a training.
        vocabulary: of them all.
        mixture: the objectives.
        cfg: options of the task.
        word_starts: bool (V,), True where a symbol begins a word; None when unknown.

    Raises:
        UnifiedError: names the files.
    """
    for folder in folders:
        if cfg.memory:  # streams need no more than text
            TokenFile(*folder.prefixes("train"))
        else:
            require_split(folder, "train", vocabulary, mixture, cfg.tokens_per_sample, word_starts)


def _content(folder: DataFolder) -> str:
    return "pairs" if folder.paired else "documents"


def settle_model(cfg: Settings, mixture: Mixture, memory: int) -> None:
    """Fills in the settings that a new model takes from the objectives; its checkpoint carries them.

    Args:
        cfg: options of the model, changed in place.
        mixture: the objectives that it is trained with.
        memory: positions of earlier text that attention remembers.

    Raises:
        UnifiedError: the model lacks what an objective needs; the message names the option.
    """
    config = restore(TransformerConfig, cfg)
    if memory and not config.positions_in_attention:
        raise UnifiedError(
            f"--memory {memory} needs a model with relative or rotary positions, not {cfg.positions!r}; "
            "pass --positions relative or rotary, or an --arch xlnet_* or modern_*"
        )
    new = adapted(config, mixture)
    with open_dict(cfg):
        if cfg.writes == "auto":
            cfg.writes = scheme_of(config, mixture)
        for name in ("mask", "boundary_offsets", "sentence_head"):
            cfg[name] = getattr(new, name)
