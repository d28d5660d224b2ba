"""All settings of generation, in one frozen dataclass."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from unified.arguments import check_all_settings, require_integer, setting
from unified.errors import UnifiedError, nearest
from unified.generation.penalties import PENALTIES, require_exponent

if TYPE_CHECKING:
    from unified.data.vocabulary import Vocabulary


#: Hypotheses that a search keeps where the user does not say; of draws there are as many as are asked for.
BEAM = 5
#: Least temperature: divided by less, scores may be no float32.
LEAST_TEMPERATURE = 1e-20


def require_temperature(name: str, temperature: float) -> None:
    """Refuse a temperature by which scores cannot be divided.

    Args:
        name: what messages call it.
        temperature: any number.

    Raises:
        UnifiedError: it is not finite, not above 0, or below :data:`LEAST_TEMPERATURE`.
    """
    if not math.isfinite(temperature):
        raise UnifiedError(f"{name} must be a finite number, got {temperature}")
    if temperature <= 0:
        raise UnifiedError(f"{name} must be above 0, got {temperature}; for the most probable use beam=1")
    if temperature < LEAST_TEMPERATURE:
        raise UnifiedError(
            f"{name} must be at least {LEAST_TEMPERATURE:g}, got {temperature}; for the most probable use beam=1"
        )


@dataclass(frozen=True)
class GenerationConfig:
    """Settings of one search; greedy search is ``beam=1``.

    Where ``beam`` is None, 5 hypotheses are kept. With sampling as many texts are drawn as ``nbest`` says, so that one
    text is one draw from the model's distribution; of more draws the most probable ones are returned.

    Raises:
        UnifiedError: a value is out of range, or two fields contradict each other; the message says what arrived.
    """

    beam: int | None = setting(None, "hypotheses kept per sentence; with sampling, the number drawn", least=1)
    max_length: int = setting(128, "most tokens to write, the end symbol not counted", least=1)
    min_length: int = setting(1, "fewest tokens to write, the end symbol not counted", least=0)
    nbest: int = setting(1, "hypotheses to return per sentence, best first", least=1)
    length_penalty: str = setting(
        "fairseq", "'fairseq': score / length^lenpen, or 'unilm': score / ((5 + length) / 6)^lenpen", one_of=PENALTIES
    )
    lenpen: float = setting(1.0, "exponent of the length penalty; higher favours longer texts, 0 compares plain sums")
    no_repeat_ngram_size: int = setting(
        0, "write no n-gram of this size twice, those of a prompt counted too; 0 allows all", least=0
    )
    no_repeat_ngram_ignore: frozenset[int] = setting(frozenset(), "token ids that n-gram blocking leaves alone")
    sampling: bool = setting(False, "draw tokens instead of searching for the best")
    top_k: int = setting(0, "draw from the k most probable tokens; 0: from all", least=0)
    top_p: float = setting(
        1.0, "draw from the most probable tokens that together have this probability", above=0, most=1
    )
    temperature: float = setting(1.0, "divisor of the logits; below 1 the distribution is sharper, above 1 flatter")
    seed: int = setting(
        0,
        "seed of sampling; what is drawn for a sentence depends on it, its index and the number of draws",
        least=0,
    )

    def __post_init__(self) -> None:
        check_all_settings(self)
        if self.min_length > self.max_length:
            raise UnifiedError(f"min_length {self.min_length} exceeds max_length {self.max_length}")
        if self.nbest > self.width:
            raise UnifiedError(f"nbest {self.nbest} exceeds beam {self.width}; there are no more hypotheses than that")
        require_exponent("lenpen", self.length_penalty, self.lenpen, self.max_length + 1)
        require_temperature("temperature", self.temperature)
        if not self.sampling and self.top_k:
            raise UnifiedError(f"top_k {self.top_k} says what is drawn from; it needs sampling")
        if not self.sampling and self.top_p < 1:
            raise UnifiedError(f"top_p {self.top_p} says what is drawn from; it needs sampling")
        ignored = self.no_repeat_ngram_ignore
        if isinstance(ignored, str) or not isinstance(ignored, Iterable):
            raise UnifiedError(f"no_repeat_ngram_ignore must be a list of ids, got {ignored!r}")
        object.__setattr__(self, "no_repeat_ngram_ignore", frozenset(ignored))
        for token in self.no_repeat_ngram_ignore:
            require_integer("an id of no_repeat_ngram_ignore", token, 0)
        if self.no_repeat_ngram_ignore and not self.no_repeat_ngram_size:
            raise UnifiedError(
                "no_repeat_ngram_ignore names what no_repeat_ngram_size never blocks; it needs a size of at least 1"
            )

    @property
    def width(self) -> int:
        """Rows of a sentence: ``beam``; where it is None, as many as are returned with sampling, else 5."""
        if self.beam is not None:
            return self.beam
        return self.nbest if self.sampling else BEAM

    @classmethod
    def of_options(cls, vocabulary: Vocabulary, **options: Any) -> GenerationConfig:
        """A configuration from a user's keywords; ``no_repeat_ngram_ignore`` may hold symbols instead of ids.

        Raises:
            UnifiedError: an option or a symbol is unknown, or a value is out of range.
        """
        known = [field.name for field in fields(cls)]
        for name in options.keys() - set(known):
            raise UnifiedError(f"unknown option {name!r}{nearest(name, known)}; generation knows {', '.join(known)}")
        ignored = options.get("no_repeat_ngram_ignore", ())
        if isinstance(ignored, str) or not isinstance(ignored, Iterable):
            raise UnifiedError(f"no_repeat_ngram_ignore must be a list of symbols or ids, got {ignored!r}")
        for symbol in ignored:
            if isinstance(symbol, str) and symbol not in vocabulary.symbols:
                raise UnifiedError(f"no_repeat_ngram_ignore: {symbol!r} is not a symbol of the dictionary")
        ids = frozenset(vocabulary.index(symbol) if isinstance(symbol, str) else symbol for symbol in ignored)
        unknown = next((one for one in ids if isinstance(one, int) and one >= len(vocabulary)), None)
        if unknown is not None:
            raise UnifiedError(
                f"no_repeat_ngram_ignore: the dictionary has ids from 0 to {len(vocabulary) - 1}, got {unknown}"
            )
        return cls(**{**options, "no_repeat_ngram_ignore": ids})
