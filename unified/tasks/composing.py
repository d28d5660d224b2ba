"""Questions and summaries from a model that was fine-tuned on pairs of them, for Python users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unified.arguments import require_integer, require_text
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.inference.language_model import UnifiedLM
from unified.tasks.datasets.question_generation import MAX_SOURCE, find_answer, question_source
from unified.tasks.windows import TokenCounter, Words

#: Most tokens of a question that are written by a model that has learned no pairs.
_MAX_QUESTION = 48


def usual_question(lengths: PairLengths) -> int:
    """Most tokens of a question: as in fine-tuning, or 48 where the model has learned no pairs."""
    return lengths.learnt_target or _MAX_QUESTION


def usual_window(lengths: PairLengths, tokens_left: int) -> int:
    """Most tokens of the passage and answer for a question: as in fine-tuning, and within the model's positions."""
    return min(lengths.max_source or MAX_SOURCE, max(tokens_left, 0))


def ask(
    model: UnifiedLM,
    passage: str,
    answer: str,
    *,
    start: int | None = None,
    max_source: int | None = None,
    **options: Any,
) -> str | list[str]:
    """Writes a question to which ``answer``, a part of ``passage``, is the answer.

    The source is made as those of the training data, see :mod:`unified.tasks.datasets.question_generation`.

    Args:
        start: character of the passage where the answer stands; default: where it stands first.
        max_source: most tokens of the window of the passage that is shown, separator and answer; default: as many
            as in fine-tuning, or 456 [UniLM, sec. 3.3] where that cut nothing, or as the positions leave room
            for.
        options: as for :meth:`.UnifiedLM.generate`; by default ``beam`` is 3, and ``max_length`` is 48 where
            the model has learned no pairs.

    Returns:
        The question; with ``nbest`` above 1 a list of them, best first.

    Raises:
        UnifiedError: the answer does not stand there or is too long, a number is none or leaves no room for a source,
            or the model does not write.
    """
    require_text("passage", passage)
    require_text("answer", answer)
    options = {"beam": 3, "max_length": usual_question(model.lengths)} | options
    length = require_integer("max_length", options["max_length"], 1)
    left = model.length_rules.tokens_left(length)
    if left < 1:
        raise UnifiedError(f"max_length {length:,} leaves the model no positions for a source")
    if start is not None:
        start = require_integer("start", start, 0)
    max_source = (
        usual_window(model.lengths, left) if max_source is None else require_integer("max_source", max_source, 1)
    )
    counter = TokenCounter(model.encode)
    found = find_answer(passage, answer, start)
    source = question_source(Words.of(passage, counter), found, max_source, counter)
    return model.generate([source], prompt=False, max_source=0, **options)[0]


def summarize(
    model: UnifiedLM, texts: Sequence[str], *, max_source: int | None = None, windows: bool = False, **options: Any
) -> list[str] | list[list[str]]:
    """A summary of each text, by a model that was fine-tuned on texts with summaries.

    Args:
        max_source, windows: as for :meth:`.UnifiedLM.generate`.
        options: as for :meth:`.UnifiedLM.generate`; by default ``beam`` is 5 and no trigram is written twice.

    Returns:
        One summary for each text; with ``nbest`` above 1 a list of them for each, best first.

    Raises:
        UnifiedError: as :meth:`.UnifiedLM.generate`.
    """
    options = {"beam": 5, "no_repeat_ngram_size": 3} | options
    return model.generate(texts, prompt=False, max_source=max_source, windows=windows, **options)
