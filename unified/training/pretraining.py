"""The command of ``fairseq-train`` that pre-trains a new model on a prepared folder."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path

from unified.arguments import Called, as_option
from unified.data.prepared_folder import DataFolder
from unified.errors import UnifiedError, nearest
from unified.model import PRESETS, TransformerConfig
from unified.objectives.mixture import Mixture
from unified.training.fairseq_options import OPTIMIZERS, flags, log_options, schedule, words_of
from unified.training.model_checks import require_served
from unified.training.row_dataset import require_room
from unified.training.settings import TrainingSettings
from unified.training.splits import known_word_starts, require_split

#: Prefix of a size's architecture, where no system is named.
_FAMILY = "unified_lm_"
#: Number of times that its updates alone have a run saved and validated, at most; passes over the text add theirs.
_SAVES = 20
#: Options of fairseq-train that change rows.
_OF_ROWS = {"--tokens-per-sample", "--memory"}
#: Advice for a folder that is given as a new model.
_FURTHER = "--fairseq='--finetune-from-model CHECKPOINT' begins with a trained one"


def model_names() -> list[str]:
    """Sizes of the library's own models, such as ``small``, and the architectures of other systems."""
    sizes = [preset.removeprefix(_FAMILY) for preset in PRESETS if preset.startswith(_FAMILY)]
    return [*sizes, *(preset for preset in PRESETS if not preset.startswith(_FAMILY))]


def preset_named(name: str, called: Called = as_option, trained: str = _FURTHER) -> str:
    """The architecture of a size such as ``small``, or of a whole name such as ``bert_base``.

    Args:
        called: gives the name of the option or parameter.
        trained: how a trained model is trained further, for the message.

    Raises:
        UnifiedError: there is none; names the nearest, or says that this is a folder.
    """
    preset = _FAMILY + name if _FAMILY + name in PRESETS else name
    if preset not in PRESETS:
        if Path(name).is_dir():
            raise UnifiedError(f"{called('model')} {name}: a folder, not the name of a new model; {trained}")
        known = model_names()
        hint = nearest(name, known) or f"; they are {', '.join(known)}"
        raise UnifiedError(f"{called('model')} {name}: no such model or folder{hint}")
    return preset


def sized(preset: str, vocabulary_size: int, tokens_per_sample: int, mixture: Mixture) -> TransformerConfig:
    """A preset with the positions and token types that its rows and objectives need."""
    plain = PRESETS[preset](vocabulary_size=vocabulary_size)
    types = max(objective.token_types for objective in mixture.objectives)
    return replace(plain, max_positions=max(plain.max_positions, tokens_per_sample)).with_token_types(types)


@dataclass(frozen=True)
class Pretraining:
    """One pre-training.

    Attributes:
        data: the prepared folder.
        model: an architecture, see :data:`unified.model.PRESETS`.
        mixture: what it learns.
        folder: for its checkpoints.
        settings: its numbers, checked.
    """

    data: DataFolder
    model: str
    mixture: Mixture
    folder: Path
    settings: TrainingSettings

    @property
    def config(self) -> TransformerConfig:
        """The model, with the positions and token types that its rows and objectives need."""
        return sized(self.model, len(self.data.vocabulary()), self.settings.tokens_per_sample, self.mixture)

    def check(self, given: set[str]) -> None:
        """Refuse rows without room for a text, and objectives that the model cannot learn.

        Where ``given`` options of fairseq-train change rows or model, fairseq-train refuses them.

        Raises:
            UnifiedError: names the option of the rows, or objective and model, and what helps.
        """
        if not given & _OF_ROWS:
            try:
                require_room(self.mixture, self.settings.tokens_per_sample)
            except UnifiedError as problem:
                raise UnifiedError(f"--tokens-per-sample: {problem}") from None
        if given & {f"--{field.name.replace('_', '-')}" for field in fields(TransformerConfig)}:
            return
        try:
            require_served(self.config, self.mixture)
        except UnifiedError as problem:
            raise UnifiedError(f"--model {self.model}: {problem}; options of the model go into --fairseq") from None

    def check_data(self, given: set[str]) -> None:
        """Refuse data from which the objectives cannot learn, such as those without an annotation that they read.

        Where ``given`` options of fairseq-train change the rows, fairseq-train refuses them.

        Raises:
            UnifiedError: names the files.
        """
        if given & _OF_ROWS:
            return
        vocabulary = self.data.vocabulary()
        starts = known_word_starts(self.data, vocabulary)
        for split in ("train",) if "--disable-validation" in given else ("train", "valid"):
            require_split(self.data, split, vocabulary, self.mixture, self.settings.tokens_per_sample, starts)

    def command(self, cards: int) -> list[str]:
        """Arguments of ``fairseq-train``, the data folder first.

        Args:
            cards: GPUs, each with a process; 0 trains on the CPU.
        """
        config, plain, own = self.config, PRESETS[self.model](vocabulary_size=1), self.settings
        options: dict[str, object] = {
            "--task": "unified_lm",
            "--criterion": "unified_lm",
            "--arch": self.model,
            "--objectives": self.mixture,
            "--tokens-per-sample": own.tokens_per_sample,
            "--max-tokens": own.max_tokens,
            "--update-freq": own.update_freq,
            "--weight-decay": own.weight_decay,
            "--clip-norm": own.clip_norm,
            **schedule(own.lr, own.warmup_updates or 0, own.max_update),
            **log_options(own.max_update),
            "--save-interval-updates": math.ceil(own.max_update / _SAVES),
            "--keep-interval-updates": 1,
            "--seed": own.seed,
            "--save-dir": self.folder,
        }
        for name in ("max_positions", "token_types"):
            if getattr(config, name) != getattr(plain, name):
                options[f"--{name.replace('_', '-')}"] = getattr(config, name)
        return [str(self.data.path), *words_of(options), *OPTIMIZERS["adam"], *flags(cards)]
