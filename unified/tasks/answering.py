"""What a model of a task of understanding answers to Python users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from unified.arguments import require_list, require_texts
from unified.errors import UnifiedError
from unified.tasks.prediction import Predictor


class Answering:
    """Methods of :class:`unified.inference.language_model.UnifiedLM` for models of tasks.

    Where a model has several heads of one kind, ``head`` names the one that shall answer.

    Attributes:
        predictors: of the tasks by the names of their heads; none for a language model.
    """

    predictors: Mapping[str, Predictor]

    def predict(self, items: Iterable[dict], head: str | None = None) -> Iterator[dict[str, Any]]:
        """A prediction for each item, in their order; items are the JSON objects of the task's data, without labels.

        512 items are read before the first of them is answered (:attr:`unified.tasks.prediction.Predictor.ahead`).

        Raises:
            UnifiedError: the model has no such head, or several, or an item is not one of its task.
        """
        return self._predictions(self.predictor(head=head), items)

    def _predictions(self, predictor: Predictor, items: Iterable[dict]) -> Iterator[dict[str, Any]]:
        if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
            raise UnifiedError(f"items: expected a list of dictionaries, got {type(items).__name__}")
        read = (predictor.task.item(_fields(item, i), i, labelled=False) for i, item in enumerate(items, 1))
        return predictor.predict(read)

    def classify(
        self, texts: Sequence[str], seconds: Sequence[str] | None = None, head: str | None = None
    ) -> list[dict[str, Any]]:
        """``label`` and ``probabilities`` of each text, or pair of texts; of a regression the number alone.

        Raises:
            UnifiedError: the model was fine-tuned for something else, or there are other numbers of texts and seconds.
        """
        texts = require_texts("texts", texts)
        seconds = None if seconds is None else require_list("seconds", seconds)
        if seconds is not None and len(seconds) != len(texts):
            raise UnifiedError(f"{len(texts)} texts but {len(seconds)} second texts; they must pair one to one")
        predictor = self.predictor("classification", "regression", head=head)
        pairs = zip(texts, seconds or [None] * len(texts), strict=True)
        return list(self._predictions(predictor, ({"text": text, "second": second} for text, second in pairs)))

    def tag(self, words: str | Sequence[str], head: str | None = None) -> list[tuple[str, str]]:
        """Words with their tags; a text is divided at white space.

        Raises:
            UnifiedError: the model was fine-tuned for something else.
        """
        predictor = self.predictor("tagging", head=head)
        words = words.split() if isinstance(words, str) else require_texts("words", words)
        (found,) = self._predictions(predictor, [{"words": words}])
        return list(zip(words, found["tags"], strict=True))

    def answer(
        self,
        question: str,
        passage: str,
        history: str | None = None,
        head: str | None = None,
        threshold: float | None = None,
    ) -> dict[str, Any]:
        """The answer to a question about a passage of any length.

        Args:
            history: what was said before, where the model was trained on conversations.
            threshold: probability of no answer above which there is none, instead of the one chosen in fine-tuning.

        Returns:
            ``answer``, "" where there is none, and what else
            :func:`unified.tasks.heads.span_decoding.chosen_answer` says.

        Raises:
            UnifiedError: the model was fine-tuned for something else, or question or passage are empty; or there is a
                threshold, but it is no probability or the model answers every question.
        """
        predictor = self.predictor("span", head=head)
        if threshold is not None:
            if isinstance(threshold, bool) or not isinstance(threshold, Real):
                raise UnifiedError(f"threshold must be a probability, got {threshold!r}")
            predictor = replace(predictor, task=predictor.task.with_threshold(threshold))
        (found,) = self._predictions(predictor, [{"question": question, "context": passage, "history": history}])
        return {name: value for name, value in found.items() if name != "id"}

    def resolve(self, sentences: Sequence[str | Sequence[str]], head: str | None = None) -> list[list[str]]:
        """Chains of mentions, each as its words, of a document; sentences as texts are divided at white space.

        Places of words are in what :meth:`predict` gives.

        Raises:
            UnifiedError: the model was fine-tuned for something else, or a sentence has no words.
        """
        sentences = require_list("sentences", sentences)
        predictor = self.predictor("coreference", head=head)
        divided = [
            one.split() if isinstance(one, str) else require_texts(f"sentences[{i}]", one)
            for i, one in enumerate(sentences)
        ]
        words = [word for sentence in divided for word in sentence]
        (found,) = self._predictions(predictor, [{"sentences": divided}])
        return [[" ".join(words[first : last + 1]) for first, last in chain] for chain in found["chains"]]

    def predictor(self, *kinds: str, head: str | None = None) -> Predictor:
        """That of ``head``; by default of the one head there is of these kinds, or of any kind.

        Raises:
            UnifiedError: there is none, or several.
        """
        if not self.predictors:
            raise UnifiedError("the model is a language model; fine-tune it for a task with `unified finetune`")
        suited = {
            name: one
            for name, one in self.predictors.items()
            if (head is None or name == head) and (not kinds or one.task.name in kinds)
        }
        if len(suited) == 1:
            return next(iter(suited.values()))
        wanted = head or " or ".join(kinds) or "one task"
        if suited:
            raise UnifiedError(
                f"the model has several heads, {', '.join(suited)}; name one of them (head= in Python, "
                "`unified predict --head`)"
            )
        raise UnifiedError(f"the model was fine-tuned for {', '.join(self.predictors)}, not for {wanted}")


def _fields(item: Any, number: int) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise UnifiedError(f"item {number}: expected a dictionary, got {type(item).__name__}")
    return dict(item)
