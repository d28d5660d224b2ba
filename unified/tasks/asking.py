"""Questions from a model that was trained on pairs of question generation, for Python users."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unified.data.windows import TokenCounter, Words
from unified.tasks.question_generation import MAX_SOURCE, find_answer, question_source


class Asking:
    """A method of :class:`unified.hub.UnifiedLM`."""

    encode: Callable[[str], list[int]]
    generate: Callable[..., Sequence]
    room: Callable[[int], float]

    def ask(
        self, passage: str, answer: str, *, start: int | None = None, max_source: int | None = None, **options
    ) -> str | list[str]:
        """A question that ``answer``, a part of ``passage``, answers.

        The source is made as those of the training data, see :mod:`unified.tasks.question_generation`.

        Args:
            start: character of the passage where the answer stands; default: where it stands first.
            max_source: most tokens of the window of the passage that is shown, separator and answer; default: 456
                (UniLM, section 3.4), or what the positions leave room for.
            options: as for :meth:`generate`; by default ``beam`` is 3 and ``max_length`` 48.

        Returns:
            The question; with ``n_best`` above 1 a list of them, best first.

        Raises:
            UnifiedError: the answer does not stand there or is too long, or the model does not write.
        """
        options = {"beam": 3, "max_length": 48} | options
        if max_source is None:
            max_source = int(min(MAX_SOURCE, self.room(options["max_length"])))
        counter = TokenCounter(self.encode)
        found = find_answer(passage, answer, start)
        source = question_source(Words.of(passage, counter), found, max_source, counter)
        return self.generate([source], prompt=False, **options)[0]
