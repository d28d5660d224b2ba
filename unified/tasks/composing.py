"""Questions and summaries from a model that was fine-tuned on pairs of them, for Python users."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from unified.data.windows import TokenCounter, Words
from unified.generation import GenerationConfig
from unified.tasks.question_generation import MAX_SOURCE, find_answer, question_source


class Composing:
    """Methods of :class:`unified.hub.UnifiedLM`."""

    encode: Callable[[str], list[int]]
    generate: Callable[..., Sequence]
    source_limit: Callable[[int], int]
    max_target: int

    def ask(
        self, passage: str, answer: str, *, start: int | None = None, max_source: int | None = None, **options
    ) -> str | list[str]:
        """A question that ``answer``, a part of ``passage``, answers.

        The source is made as those of the training data, see :mod:`unified.tasks.question_generation`.

        Args:
            start: character of the passage where the answer stands; default: where it stands first.
            max_source: most tokens of the window of the passage that is shown, separator and answer; default: 456
                (UniLM, section 3.4), or what the model was fine-tuned on or the positions leave room for.
            options: as for :meth:`generate`; by default ``beam`` is 3 and ``max_length`` 48.

        Returns:
            The question; with ``n_best`` above 1 a list of them, best first.

        Raises:
            UnifiedError: the answer does not stand there or is too long, or the model does not write.
        """
        options = {"beam": 3, "max_length": 48} | options
        if max_source is None:
            max_source = min(MAX_SOURCE, self.source_limit(options["max_length"]))
        counter = TokenCounter(self.encode)
        found = find_answer(passage, answer, start)
        source = question_source(Words.of(passage, counter), found, max_source, counter)
        return self.generate([source], prompt=False, **options)[0]

    def summarize(
        self, texts: Sequence[str], *, max_source: int | None = None, **options
    ) -> list[str] | list[list[str]]:
        """A summary of each text, by a model that was fine-tuned on texts with summaries.

        Args:
            max_source: first tokens of each text that are read; default: as many as in fine-tuning, or what the
                positions leave room for. A warning says of how many texts something was not read.
            options: as for :meth:`generate`; by default ``beam`` is 5, no trigram is written twice, and
                ``max_length`` is what targets were cut at in fine-tuning, or 128.

        Returns:
            One summary for each text; with ``n_best`` above 1 a list of them for each, best first.

        Raises:
            UnifiedError: as :meth:`generate`.
        """
        length = self.max_target or GenerationConfig.max_length
        options = {"beam": 5, "no_repeat_ngram": 3, "max_length": length} | options
        if max_source is None:
            max_source = self.source_limit(options["max_length"])
        cut = sum(len(self.encode(text)) > max_source for text in texts)
        if cut:
            warnings.warn(
                f"{cut} of {len(texts)} texts have more than {max_source} tokens; the rest is not read", stacklevel=2
            )
        return self.generate(texts, prompt=False, max_source=max_source, **options)
