"""What a model of a task of understanding answers to Python users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from unified.errors import UnifiedError
from unified.tasks.prediction import Predictor


class Answering:
    """Methods of :class:`unified.hub.UnifiedLM` for models of tasks.

    Attributes:
        predictor: of the task; None for a language model.
    """

    predictor: Predictor | None

    def predict(self, items: Iterable[dict]) -> Iterator[dict[str, Any]]:
        """A prediction for each item, as they come; items are the JSON objects of the task's data, without labels.

        Raises:
            UnifiedError: the model has no task, or an item is not one of it.
        """
        predictor = self._predictor()
        read = (predictor.task.item(fields, number, labelled=False) for number, fields in enumerate(items, 1))
        return predictor.predict(read)

    def classify(self, texts: Sequence[str], seconds: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """``label`` and ``probabilities`` of each text, or pair of texts; of a regression the number alone.

        Raises:
            UnifiedError: the model was fine-tuned for something else, or there are other numbers of texts and seconds.
        """
        if isinstance(texts, str):
            raise UnifiedError("texts: expected a list of texts, got one text; put it in a list")
        if seconds is not None and len(seconds) != len(texts):
            raise UnifiedError(f"{len(texts)} texts but {len(seconds)} second texts; they must pair one to one")
        self._predictor("classification", "regression")
        pairs = zip(texts, seconds or [None] * len(texts), strict=True)
        return list(self.predict({"text": text, "second": second} for text, second in pairs))

    def tag(self, words: str | Sequence[str]) -> list[tuple[str, str]]:
        """Words with their tags; a text is divided at white space.

        Raises:
            UnifiedError: the model was fine-tuned for something else.
        """
        self._predictor("tagging")
        words = words.split() if isinstance(words, str) else list(words)
        (found,) = self.predict([{"words": words}])
        return list(zip(words, found["tags"], strict=True))

    def answer(self, question: str, passage: str, history: str | None = None) -> dict[str, Any]:
        """The answer to a question about a passage of any length.

        Args:
            history: what was said before, where the model was trained on conversations.

        Returns:
            ``answer``, "" where there is none, and what else :func:`unified.tasks.span_decoding.chosen_answer` says.

        Raises:
            UnifiedError: the model was fine-tuned for something else, or question or passage are empty.
        """
        self._predictor("span")
        (found,) = self.predict([{"question": question, "context": passage, "history": history}])
        return {name: value for name, value in found.items() if name != "id"}

    def _predictor(self, *heads: str) -> Predictor:
        if self.predictor is None:
            raise UnifiedError("the model is a language model; fine-tune it for a task with `unified finetune`")
        if heads and self.predictor.task.name not in heads:
            raise UnifiedError(f"the model was fine-tuned for {self.predictor.task.name}, not for {' or '.join(heads)}")
        return self.predictor
