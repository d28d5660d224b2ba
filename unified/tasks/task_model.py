"""``TaskModel``: a model that was fine-tuned for understanding tasks, for Python users."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from numbers import Real
from pathlib import Path
from typing import Any

import torch

from unified.arguments import counted, require_list, require_texts
from unified.checkpoints.trained import Checkpoint, Trained, heads_of, sequence_length
from unified.conversions.named_models import load_named
from unified.corpus.annotate import Annotator
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.inference.trained_model import TrainedModel, require_alike, tokenizer_of
from unified.model import UnifiedModel
from unified.runtime.devices import usable_device
from unified.tasks.found_thresholds import found_thresholds
from unified.tasks.heads.base import EnsembleUnderstanding, Understanding
from unified.tasks.heads.registry import TASK_HEADS
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.prediction import Predictor
from unified.tasks.restoring import restore_tasks
from unified.tokenization import Tokenizer

#: Why a language model is refused where a task is to be answered.
NO_HEADS = "the model is a language model; fine-tune it for a task with `unified finetune`"
#: Settings of a head in which models of an ensemble may differ: they change neither what is read nor what is answered.
_MAY_DIFFER = ("dropout", "null_threshold", "threshold_found_on")


class TaskModel(TrainedModel):
    """A model of one understanding task or of several, with its vocabulary and tokenizer.

    Where a model has several heads of one type, ``head`` names the one that shall answer.

    Attributes:
        predictors: of the tasks by the names of their heads, at least one.
    """

    others: tuple[TaskModel, ...]

    def __init__(
        self,
        model: UnifiedModel,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        folder: Path,
        predictors: Mapping[str, Predictor],
        others: Sequence[TaskModel] = (),
    ):
        super().__init__(model, vocabulary, tokenizer, folder, others)
        self.predictors = predictors

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike[str],
        data: str | os.PathLike[str] | None = None,
        device: str | torch.device = "cpu",
        annotator: Annotator | None = None,
    ) -> TaskModel:
        """Load a checkpoint of ``fairseq-train --task unified_understanding``, see :func:`unified.load`.

        Raises:
            UnifiedError: a file is missing or damaged, or checkpoint and dictionary do not belong together; or it is a
                language model; or there is an annotator, but the model reads no entities; or the machine has no such
                device.
        """
        device = usable_device(device)
        return cls.of_checkpoint(load_named(path, data), device, annotator)

    @classmethod
    def of_checkpoint(
        cls, checkpoint: Checkpoint, device: str | torch.device, annotator: Annotator | None = None
    ) -> TaskModel:
        """The model of a checkpoint that has been loaded.

        Raises:
            UnifiedError: see :meth:`from_pretrained`.
        """
        if not heads_of(checkpoint.content):
            raise UnifiedError(f"{checkpoint.path}: {NO_HEADS}")
        model, trained, tasks = restore_tasks(checkpoint)
        vocabulary, tokenizer = trained.vocabulary, tokenizer_of(checkpoint.folder)
        codec = Codec.for_model(model.config, tokenizer, vocabulary, sequence_length(checkpoint.content))
        model.to(device)
        for name, threshold in found_thresholds(checkpoint.path, tasks).items():
            task = tasks[name]
            if isinstance(task, SpanAnswers):
                tasks[name] = task.with_threshold(threshold.value, threshold.found_on)
        predictors = {name: Predictor(model, name, task, codec, annotator=annotator) for name, task in tasks.items()}
        return cls(model, vocabulary, tokenizer, checkpoint.folder, predictors)

    @classmethod
    def ensemble(
        cls,
        paths: Sequence[str | os.PathLike[str]],
        device: str | torch.device = "cpu",
        annotator: Annotator | None = None,
    ) -> TaskModel:
        """Load several models that were fine-tuned for the same task; they answer together.

        Classes, tags and choices have the mean of the models' probabilities, numbers are means, the scores of starts
        and ends of answers are means, and so are the thresholds of "no answer".

        Args:
            paths: at least one, see :meth:`from_pretrained`.
            annotator: see there.

        Raises:
            UnifiedError: a model cannot be loaded, or two do not belong together: they differ in vocabulary, tokenizer,
                head, labels or lengths; or models of such a task cannot answer together.
        """
        names = list(map(str, require_list("paths", paths)))
        return cls.together(names, [cls.from_pretrained(name, device=device, annotator=annotator) for name in names])

    @classmethod
    def together(cls, names: Sequence[str], models: Sequence[TaskModel]) -> TaskModel:
        """One model of several loaded ones, which users know by ``names``; see :meth:`ensemble`.

        Raises:
            UnifiedError: there is none, or two do not belong together.
        """
        require_alike(names, models)
        first, *others = models
        if not others:
            return first
        for head, predictor in first.predictors.items():
            if not isinstance(predictor.task, EnsembleUnderstanding):
                raise UnifiedError(
                    f"{', '.join(names)}: models of {head} cannot answer together, because they have no common scores "
                    "to average; give one model"
                )
        rows = zip(*(model.predictors.values() for model in models), strict=True)
        predictors = {name: _joined(row) for name, row in zip(first.predictors, rows, strict=True)}
        return cls(first.model, first.vocabulary, first.tokenizer, first.folder, predictors, others)

    def _trained(self, parameters: dict[str, torch.Tensor]) -> Trained:
        tasks = {name: predictor.task for name, predictor in self.predictors.items()}
        heads = {name: {"head": task.name, "settings": asdict(task)} for name, task in tasks.items()}
        longest = next(iter(self.predictors.values())).codec.longest
        return replace(super()._trained(parameters), heads=heads, longest=longest)

    def shared_properties(self) -> dict[str, object]:
        properties = super().shared_properties()
        several = len(self.predictors) > 1
        properties["numbers of heads"] = len(self.predictors)
        properties["names of heads"] = ", ".join(self.predictors) if several else None  # the only head may have any
        for head, predictor in self.predictors.items():
            of_head = f" of the heads {head}" if several else ""
            properties[f"the types{of_head}" if several else "types of head"] = predictor.task.name
            settings = {name: value for name, value in asdict(predictor.task).items() if name not in _MAY_DIFFER}
            properties |= {f"the {name}{of_head}": value for name, value in settings.items()}
            codec = predictor.codec
            properties["the lengths of sequences"] = codec.longest
            properties["the orders of a sequence"] = (codec.cls_last, codec.marks_entities, codec.token_types)
            properties["the separators between two texts"] = codec.pair_separators
            properties["the masks of a sequence"] = codec.mask
        return properties

    def predict(self, items: Iterable[Mapping[str, Any]], head: str | None = None) -> Iterator[dict[str, Any]]:
        """A prediction for each item, in their order; items are the JSON objects of the task's data, without labels.

        512 items are read before the first of them is answered (:attr:`unified.tasks.prediction.Predictor.ahead`).

        Raises:
            UnifiedError: the model has no such head, or several, or an item is not one of its task; names the item by
                its number, from 1.
        """
        return self._predictions(self.predictor(head=head), items)

    def _predictions(self, predictor: Predictor, items: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
            raise UnifiedError(f"items: expected a list of dictionaries, got {type(items).__name__}")
        return predictor.predict(_read(item, i, predictor) for i, item in enumerate(items, 1))

    def _prediction(self, predictor: Predictor, fields: dict[str, Any]) -> dict[str, Any]:
        """The prediction for one item, given its fields."""
        (found,) = predictor.predict([predictor.item(fields, 1)])
        return found

    def classify(
        self, texts: Sequence[str], seconds: Sequence[str] | None = None, head: str | None = None
    ) -> list[dict[str, Any]]:
        """``label`` and ``probabilities`` of each text, or pair of texts; of a regression the number alone.

        Raises:
            UnifiedError: the model was fine-tuned for something else, or there are other numbers of texts and seconds;
                or a text is empty, whose pair is named by its number, from 1.
        """
        texts = require_texts("texts", texts)
        seconds = None if seconds is None else require_list("seconds", seconds)
        if seconds is not None and len(seconds) != len(texts):
            raise UnifiedError(
                f"{counted(len(texts), 'text')} but {counted(len(seconds), 'second text')}; they must pair one to one"
            )
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
        found = self._prediction(predictor, {"words": words})
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
            ``answer``; where there is none "", or "unknown" of a model of CoQA; and what else
            :func:`unified.tasks.heads.span_decoding.chosen_answer` says.

        Raises:
            UnifiedError: the model was fine-tuned for something else, or question or passage are empty; or there is a
                threshold, but it is no probability or the model answers every question.
        """
        predictor = self.predictor("span", head=head)
        if threshold is not None:
            if isinstance(threshold, bool) or not isinstance(threshold, Real):
                raise UnifiedError(f"threshold must be a probability, got {threshold!r}")
            if not 0 <= threshold <= 1:
                raise UnifiedError(f"threshold must be from 0 to 1, got {threshold!r}")
            assert isinstance(predictor.task, SpanAnswers)  # the name of its head says which task it is
            predictor = replace(predictor, task=predictor.task.with_threshold(float(threshold)))
        found = self._prediction(predictor, {"question": question, "context": passage, "history": history})
        return {name: value for name, value in found.items() if name != "id"}

    def resolve(self, sentences: Sequence[str | Sequence[str]], head: str | None = None) -> list[list[str]]:
        """Chains of mentions, each as its words, of a document; sentences as texts are divided at white space.

        Indices of words are in what :meth:`predict` gives.

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
        found = self._prediction(predictor, {"sentences": divided})
        return [[" ".join(words[first : last + 1]) for first, last in chain] for chain in found["chains"]]

    def predictor(self, *types: str, head: str | None = None) -> Predictor:
        """The predictor of ``head``; by default of the only head of these types, such as "span", or of any type.

        A head of another package is of the type whose class it inherits from.

        Raises:
            UnifiedError: there is none, or several.
        """
        classes = tuple(TASK_HEADS[name] for name in types) or (Understanding,)
        named = {name: one for name, one in self.predictors.items() if head is None or name == head}
        suited = {name: one for name, one in named.items() if isinstance(one.task, classes)}
        if len(suited) == 1:
            return next(iter(suited.values()))
        wanted = " or ".join(types) or "one task"
        if head is not None:
            wanted = f"{head}, as {wanted}" if named else head
        if suited:
            raise UnifiedError(
                f"the model has several heads, {', '.join(suited)}; name one of them (head= in Python, "
                "`unified predict --head`)"
            )
        raise UnifiedError(f"the model was fine-tuned for {', '.join(self.predictors)}, not for {wanted}")


def _joined(predictors: Sequence[Predictor]) -> Predictor:
    """The predictor of models that answer together; the threshold of "no answer" is the mean of theirs."""
    first, others = predictors[0], predictors[1:]
    task = first.task
    if isinstance(task, SpanAnswers) and task.may_abstain:
        tasks = [predictor.task for predictor in predictors if isinstance(predictor.task, SpanAnswers)]
        found_on = {one.threshold_found_on for one in tasks}
        mean = sum(one.threshold for one in tasks) / len(tasks)
        if any(one.null_threshold is not None for one in tasks):
            task = task.with_threshold(mean, found_on.pop() if len(found_on) == 1 else None)
    return replace(first, task=task, others=tuple((one.model, one.head) for one in others))


def _read(item: Any, number: int, predictor: Predictor) -> Any:
    """The item that a user's dictionary is.

    Raises:
        UnifiedError: it is none of the task; names its number.
    """
    if not isinstance(item, Mapping):
        raise UnifiedError(f"item {number}: expected a dictionary, got {type(item).__name__}")
    try:
        return predictor.item(dict(item), number)
    except UnifiedError as problem:
        raise UnifiedError(f"item {number}: {problem.details}") from None
