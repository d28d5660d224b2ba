"""The command of ``fairseq-train`` that pre-trains a new model on a prepared folder."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path

from unified.data.prepared_folder import DataFolder
from unified.errors import UnifiedError, nearest
from unified.model import PRESETS, TransformerConfig
from unified.objectives.mixture import Mixture
from unified.training.fairseq_options import LOGGING, OPTIMIZERS, flags, schedule, words_of
from unified.training.model_checks import require_a_row, require_served

#: What sizes are sizes of, where no system is named.
_FAMILY = "unified_lm_"
#: How often a run is saved and validated, at least.
_SAVES = 20


def preset_named(name: str) -> str:
    """The architecture of a size such as ``small``, or of a whole name such as ``bert_base``.

    Raises:
        UnifiedError: there is none; names the nearest.
    """
    sizes = [preset.removeprefix(_FAMILY) for preset in PRESETS if preset.startswith(_FAMILY)]
    preset = _FAMILY + name if name in sizes else name
    if preset not in PRESETS:
        known = [*sizes, *(other for other in PRESETS if not other.startswith(_FAMILY))]
        raise UnifiedError(f"--model {name}: no such model{nearest(name, known)}; they are {', '.join(known)}")
    return preset


@dataclass(frozen=True)
class Pretraining:
    """One pre-training. The learning rate rises linearly, and falls linearly to 0.

    Attributes:
        data: the prepared folder.
        model: an architecture, see :data:`unified.model.PRESETS`.
        mixture: what it learns.
        folder: for its checkpoints.
        tokens_per_sample: tokens of a row, special symbols included.
        max_tokens: tokens that one GPU reads at once.
        update_freq: batches of an update.
        max_update: updates.
        warmup_updates: updates in which the rate rises.
        lr: at its peak.
        seed: of the initial weights, the dropout and the data.

    Raises:
        UnifiedError: a number is out of range, or a batch does not hold a row; names the option.
    """

    data: DataFolder
    model: str
    mixture: Mixture
    folder: Path
    tokens_per_sample: int
    max_tokens: int
    update_freq: int
    max_update: int
    warmup_updates: int
    lr: float
    seed: int

    def __post_init__(self) -> None:
        for name in ("tokens_per_sample", "max_tokens", "update_freq", "max_update", "lr"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise UnifiedError(f"--{name.replace('_', '-')} must be above 0, got {value}")
        if not 0 <= self.warmup_updates < self.max_update:
            raise UnifiedError(
                f"--warmup-updates must be from 0 to below --max-update {self.max_update}, got {self.warmup_updates}"
            )
        require_a_row(self.max_tokens, self.tokens_per_sample)

    @property
    def config(self) -> TransformerConfig:
        """The model, with the positions and token types that its rows and objectives need."""
        plain = PRESETS[self.model](vocabulary_size=1)
        return PRESETS[self.model](
            vocabulary_size=len(self.data.vocabulary()),
            max_positions=max(plain.max_positions, self.tokens_per_sample),
            token_types=max(plain.token_types, *(objective.token_types for objective in self.mixture.objectives)),
        )

    def check(self, given: set[str]) -> None:
        """Refuse objectives that the model cannot learn; where ``given`` options change it, fairseq-train does.

        Raises:
            UnifiedError: names objective and model, and what helps.
        """
        if given & {f"--{field.name.replace('_', '-')}" for field in fields(TransformerConfig)}:
            return
        try:
            require_served(self.config, self.mixture)
        except UnifiedError as problem:
            raise UnifiedError(f"--model {self.model}: {problem}; options of the model go into --fairseq") from None

    def command(self, cards: int) -> list[str]:
        """Arguments of ``fairseq-train``, the data folder first.

        Args:
            cards: GPUs, each with a process; 0 trains on the CPU.
        """
        config, plain = self.config, PRESETS[self.model](vocabulary_size=1)
        options: dict[str, object] = {
            "--task": "unified_lm",
            "--criterion": "unified_lm",
            "--arch": self.model,
            "--objectives": self.mixture,
            "--tokens-per-sample": self.tokens_per_sample,
            "--max-tokens": self.max_tokens,
            "--update-freq": self.update_freq,
            "--weight-decay": 0.01,
            "--clip-norm": 1.0,
            **schedule(self.lr, self.warmup_updates, self.max_update),
            **LOGGING,
            "--save-interval-updates": math.ceil(self.max_update / _SAVES),
            "--keep-interval-updates": 1,
            "--seed": self.seed,
            "--save-dir": self.folder,
        }
        for name in ("max_positions", "token_types"):
            if getattr(config, name) != getattr(plain, name):
                options[f"--{name.replace('_', '-')}"] = getattr(config, name)
        return [str(self.data.path), *words_of(options), *OPTIMIZERS["adam"], *flags(cards)]
