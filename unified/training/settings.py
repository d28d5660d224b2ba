"""Numbers of a pre-training and their defaults, for ``unified pretrain`` and ``unified.train`` alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from unified.arguments import Called, as_option, check_all_settings, setting
from unified.errors import UnifiedError

#: numpy takes seeds below 2^32, and fairseq adds epochs to them.
LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class TrainingSettings:
    """Size and number of updates. The learning rate rises linearly, and falls linearly to 0.

    Attributes:
        tokens_per_sample: tokens of a row, special symbols included.
        max_tokens: tokens that one device reads at once.
        update_freq: batches of an update.
        max_update: updates.
        warmup_updates: updates in which the rate rises; None: a twentieth of ``max_update``.
        lr: learning rate at its peak.
        seed: of the initial weights, the dropout and the data.
    """

    tokens_per_sample: int = setting(512, least=1)
    max_tokens: int = setting(16384, least=1)
    update_freq: int = setting(1, least=1)
    max_update: int = setting(20000, least=1)
    warmup_updates: int | None = None
    lr: float = setting(3e-4, above=0)
    seed: int = setting(1, least=0, most=LARGEST_SEED)

    weight_decay: ClassVar[float] = 0.01
    clip_norm: ClassVar[float] = 1.0
    betas: ClassVar[tuple[float, float]] = (0.9, 0.999)
    eps: ClassVar[float] = 1e-6

    def checked(self, called: Called = as_option) -> Self:
        """The settings, checked, with the updates of the warm-up as a number.

        Args:
            called: gives the name of a setting under which the user knows it.

        Raises:
            UnifiedError: a setting is no number or out of range, or a batch does not hold a row; names the setting.
        """
        check_all_settings(self, called)
        warmup = self.max_update // 20 if self.warmup_updates is None else self.warmup_updates
        if not 0 <= warmup < self.max_update:
            raise UnifiedError(
                f"{called('warmup_updates')} must be from 0 to below {called('max_update')} {self.max_update}, "
                f"got {warmup}"
            )
        require_a_row(self.max_tokens, self.tokens_per_sample, called)
        return replace(self, warmup_updates=warmup)

    def rate(self, update: int) -> float:
        """Learning rate of an update, the first of which has number 0; settings must be :meth:`checked`."""
        warmup = self.warmup_updates or 0
        if update < warmup:
            return self.lr * update / warmup
        return self.lr * max(0.0, 1 - (update - warmup) / (self.max_update - warmup))


def require_a_row(max_tokens: int, tokens_per_sample: int, called: Called = as_option) -> None:
    """Refuse batches that are too small for one packed row.

    Raises:
        UnifiedError: names both settings.
    """
    if max_tokens < tokens_per_sample:
        raise UnifiedError(
            f"{called('max_tokens')} {max_tokens} is less than one row of {called('tokens_per_sample')} "
            f"{tokens_per_sample}; raise the first or lower the second"
        )
