"""Base class of understanding tasks: how items become sequences, what a head reads of them, and what it learns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch

from unified.arguments import shown
from unified.data.example import Example
from unified.data.targets import TASK
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.model.averaging import mean_classes
from unified.model.config import TransformerConfig
from unified.model.heads import LossSum, TaskHead, class_loss
from unified.tasks.heads.items import Item, read_items
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.examples import Joined, Noted
from unified.tasks.metrics.subsets import OfSubsets

#: Inputs of a head and its loss for a batch besides the states, see :meth:`Encoded.reading`.
Reading = Mapping[str, torch.Tensor]
#: Labels that a message names.
_MOST_NAMED = 20
#: The class of a task's items.
ItemT = TypeVar("ItemT", bound=Item)


@dataclass(frozen=True)
class Encoded:
    """Items as examples: sequences, and the tokens whose states the head reads (``targets["task"]``).

    Attributes:
        examples: at least one for each item, those of one item one after another.
        owners: int64 (examples,), the item of each, increasing.
        head_inputs: arrays by name, one for each example, that head or loss read; ``labels`` where items have labels.
        cut: items that did not fit as they are.
        lost: for each item how many tokens nothing reads; none where windows or examples together read all.
        notes: for each example what :meth:`Understanding.predict` needs to know of it, such as the characters that its
            tokens stand for.
        remarks: what the log should say about the items, such as how many cannot be learnt from, and why.
    """

    examples: list[Example]
    owners: np.ndarray
    head_inputs: Mapping[str, Sequence[np.ndarray]] = field(default_factory=dict)
    cut: int = 0
    lost: Sequence[int] | np.ndarray = ()
    notes: Sequence[Any] = ()
    remarks: Sequence[str] = ()

    def reading(self, members: np.ndarray) -> dict[str, torch.Tensor]:
        """Inputs of a head for a batch of examples, int64 where nothing else is said.

        Args:
            members: int64 (E,), numbers of the examples in the order of the batch.

        Returns:
            ``sizes`` (E,): how many tokens of each example are read; ``owners`` (E,): the item of each, numbered from 0
            by the order of the items, where an item that is there twice counts as two; and each of
            :attr:`head_inputs`, concatenated along its first axis.
        """
        sizes = np.array([len(self.examples[member].targets[TASK]) for member in members], dtype=np.int64)
        order = np.argsort(members, kind="stable")
        times = np.empty_like(order)  # how often the example stands before
        times[order] = np.arange(len(members)) - np.searchsorted(members[order], members[order])
        owners = np.unique(self.owners[members] * len(members) + times, return_inverse=True)[1].astype(np.int64)
        head_inputs = {
            name: np.concatenate([arrays[member] for member in members]) for name, arrays in self.head_inputs.items()
        }
        arrays = {"sizes": sizes, "owners": owners, **head_inputs}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}


@dataclass(frozen=True)
class Understanding(ABC, Generic[ItemT]):
    """A form of fine-tuning that ``--head`` names, such as classification, tagging or answering from a passage.

    It reads items, makes sequences of them, builds the module that scores them (:meth:`head`, a
    :class:`~unified.model.heads.TaskHead`), and has the loss, the predictions and the official scores. A data set
    (:class:`unified.tasks.settings.Task`) names one and brings files and settings. A subclass is a frozen dataclass
    whose fields are labels and settings.

    Attributes:
        name: as ``--head`` takes it.
        together: whether a loss needs all examples of an item in one batch.
        numeric: whether the loss is of numbers; it is in nats otherwise.
        parts: what items call the parts that ``--text-field`` and its like name, see
            :class:`unified.files.fields.FieldNames`; none for items that come in their own form alone.
        has_classes: whether labels are classes, which ``--labels`` may name.
        marks_entities: whether items can say where named entities are, see :mod:`unified.tasks.heads.named_entities`.
        reads_windows: whether an item that is too long for one sequence is read in several; its end is cut otherwise.
        averages_subsets: whether the mean of subsets' scores is one, as benchmarks of several data sets have it.
    """

    name: ClassVar[str]
    together: ClassVar[bool] = False
    parts: ClassVar[Mapping[str, str]] = {}
    has_classes: ClassVar[bool] = False
    numeric: ClassVar[bool] = False
    marks_entities: ClassVar[bool] = False
    reads_windows: ClassVar[bool] = False
    averages_subsets: ClassVar[bool] = False

    @property
    @abstractmethod
    def measures(self) -> tuple[str, ...]:
        """Names of the scores worth watching, the one that chooses a checkpoint first."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """Description of how the scores are computed, ``|`` between its parts, as sacrebleu signs its BLEU."""

    @property
    def longest_run(self) -> int | None:
        """Number of consecutive examples of an item that an epoch of training reads, drawn each time; None for all.

        Validation and prediction always read all.
        """
        return None

    @property
    def markers(self) -> int:
        """Number of marker symbols that its sequences need in the dictionary, see :mod:`unified.data.markers`."""
        return 0

    @classmethod
    @abstractmethod
    def item(cls, fields: dict[str, Any], number: int, labelled: bool) -> ItemT:
        """The item of a JSON object.

        Args:
            number: of its line, its ``id`` where it has none.
            labelled: what is to be predicted is read, and must be there.

        Raises:
            UnifiedError: says which field is wrong.
        """

    @classmethod
    def read(cls, path: str | Path, labelled: bool = True) -> list[ItemT]:
        """Items of a file, see :func:`unified.tasks.heads.items.read_items`."""
        return read_items(path, lambda fields, number: cls.item(fields, number, labelled))

    @classmethod
    @abstractmethod
    def of(cls, items: Sequence[ItemT], **settings: Any) -> Understanding[ItemT]:
        """The task that training items pose, with the labels that occur, or with those that settings name.

        Args:
            settings: fields of the class, which all count as they are.
        """

    @abstractmethod
    def encode(self, items: Sequence[ItemT], codec: Codec) -> Encoded:
        """Examples of at most ``codec.longest`` tokens."""

    def reads(self, codec: Codec) -> str:
        """Description of what is read at most of an item, for a message about items of which tokens were cut."""
        return f"sequences of at most {codec.longest:,} tokens"

    def document_of(self, item: ItemT) -> Hashable:
        """The document with which neighbouring items, its sentences, are encoded; None for an item by itself."""
        return None

    @classmethod
    def shared_text(cls, item: ItemT) -> Hashable:
        """The text or the document that other items may be about, too; None for an item by itself.

        Where a share of the training items validates, items that share one are on the same side.
        """
        return None

    @abstractmethod
    def head(self, config: TransformerConfig) -> TaskHead:
        """The module from (N, D) states of all tokens that are read of a batch, and its :data:`Reading`, to scores."""

    @abstractmethod
    def loss(self, scores: Any, reading: Reading) -> LossSum:
        """Loss of the scores of a batch, whose ``reading`` has ``labels``."""

    def loss_count(self, reading: Reading) -> int:
        """The ``count`` of :meth:`loss`, known before there are scores: of labels, if a task says nothing else."""
        return len(reading["labels"])

    @abstractmethod
    def predict(
        self, items: Sequence[ItemT], encoded: Encoded, members: np.ndarray, scores: Any, reading: Reading
    ) -> list[dict[str, Any]]:
        """Predictions, one JSON object for each item in the order of the items; each begins with ``id``.

        Args:
            items: those whose examples are in the batch, all examples of each.
            encoded: of all items of the data.
            members: int64 (E,), numbers of the examples in the order of the batch.
            scores, reading: of the batch.
        """

    @abstractmethod
    def scored(self, items: Sequence[ItemT], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Labelled items with their predictions as the official scores see them, :attr:`measures` among the scores.

        An example for each item, in their order; where items have single scores it is
        :class:`unified.tasks.metrics.examples.SingleScores`.
        """

    def score(self, items: Sequence[ItemT], predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Official scores of predictions for labelled items, :attr:`measures` among them."""
        return self._checked(items, predictions).scores()

    def _checked(self, items: Sequence[ItemT], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """:meth:`scored` items, which have all measures."""
        whose = f"head {self.name!r}"
        examples = require_examples(whose, self.scored(items, predictions))
        require_measures(whose, examples.scores(), self.measures)
        return examples

    def subset_of(self, item: ItemT) -> str | None:
        """The subset of its data set that an item belongs to, where subsets are scored by themselves too."""
        return None

    def unlearnt(self, item: ItemT) -> str | None:
        """Why an item can be neither learnt, predicted nor scored: its label is none of those that are learnt.

        None where it is one of them, or where it has no label.
        """
        return None

    def unscored(self, item: ItemT) -> str | None:
        """Why the scores cannot take an item of validation or test; None where they can."""
        return None

    def signed(self, items: Sequence[ItemT], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """:meth:`scored` items, whose scores have :attr:`measures` of subsets and their means, and the signature.

        See :class:`unified.tasks.metrics.subsets.OfSubsets`.
        """
        examples = self._checked(items, predictions)
        subsets = [self.subset_of(item) for item in items]
        if any(subset is not None for subset in subsets):
            examples = Joined(examples, OfSubsets(examples, subsets, self.measures, self.averages_subsets))
        return Noted(examples, {"signature": self.signature})

    def official(self, items: Sequence[ItemT], predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Predictions as an official program reads them: text or JSON by file name; nothing where there is none."""
        return {}


@dataclass(frozen=True)
class EnsembleUnderstanding(Understanding[ItemT]):
    """A form of fine-tuning in which several models can answer together, by one prediction from all of their scores."""

    @abstractmethod
    def averaged(self, scores: Sequence[Any], reading: Reading) -> Any:
        """Scores of an ensemble, as :meth:`predict` reads them, from those of its models for one batch."""


@dataclass(frozen=True)
class ClassUnderstanding(EnsembleUnderstanding[ItemT]):
    """A form of fine-tuning that predicts classes, by default one for each item; the loss is their cross-entropy.

    Attributes:
        labels: names of the classes, at least two, in the order of their scores.
    """

    has_classes: ClassVar[bool] = True

    labels: tuple[str, ...]

    def loss(self, scores: torch.Tensor, reading: Reading) -> LossSum:
        return class_loss(scores, reading["labels"])

    def predict(
        self,
        items: Sequence[ItemT],
        encoded: Encoded,
        members: np.ndarray,
        scores: torch.Tensor,
        reading: Reading,
    ) -> list[dict[str, Any]]:
        """``label`` and the ``probabilities`` of all labels."""
        rows = probabilities(scores)[np.argsort(members)]
        return [
            {"id": item.id, "label": self.labels[row.argmax()], "probabilities": by_label(self.labels, row)}
            for item, row in zip(items, rows, strict=True)
        ]

    def averaged(self, scores: Sequence[torch.Tensor], reading: Reading) -> torch.Tensor:
        """Logarithms of the mean probabilities."""
        return mean_classes(scores)


def require_markable(head_class: type[Understanding[Any]]) -> None:
    """Refuse a task whose items cannot say where named entities are, for a model whose attention reads them.

    Raises:
        UnifiedError: names the head.
    """
    if not head_class.marks_entities:
        raise UnifiedError(
            f"the model has entity-aware attention ('entity' among its sublayers), and items of the head "
            f"{head_class.name} "
            "cannot say where named entities are; those of classification, regression and span can"
        )


def require_examples(whose: str, scored: Any) -> Examples:
    """The examples that a method ``scored`` has returned.

    Args:
        whose: owner of the method, as the message names it.

    Raises:
        UnifiedError: it has returned something else.
    """
    if not isinstance(scored, Examples):
        raise UnifiedError(f"{whose}: its scored must return Examples, got {type(scored).__name__}")
    return scored


def require_measures(whose: str, scores: Mapping[str, Any], measures: Sequence[str]) -> Mapping[str, Any]:
    """The scores of predictions; ``measures`` must be among them.

    Args:
        whose: owner of the scores, as the message names it.

    Raises:
        UnifiedError: a measure is missing.
    """
    missing = [name for name in measures if name not in scores]
    if missing:
        raise UnifiedError(f"{whose}: its scores have no {missing[0]!r}, which is one of its measures")
    return scores


def require_labels(labels: tuple[str, ...], what: str) -> None:
    """Refuse fewer than two labels, and one that comes twice.

    Raises:
        UnifiedError: begins with ``what``, which names the task.
    """
    if len(labels) < 2:
        raise UnifiedError(f"{what} needs at least two labels, got {list(labels)}")
    require_distinct(labels, what)


def require_distinct(labels: tuple[str, ...], what: str) -> None:
    """Refuse a label that comes twice: the second of its classes would never be trained.

    Raises:
        UnifiedError: begins with ``what``, which names the task.
    """
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise UnifiedError(f"{what} has the label {shown(repeated[0])} twice")


def classes(labels: Iterable[str], known: tuple[str, ...], item: str) -> np.ndarray:
    """Numbers of labels, int64 (n,).

    Raises:
        UnifiedError: a label is none of the known ones; names the ``item``.
    """
    number = {label: i for i, label in enumerate(known)}
    labels = list(labels)
    for label in labels:
        if label not in number:
            raise UnifiedError(f"item {item} has the label {label!r}; {_the_labels(known)}")
    return np.array([number[label] for label in labels], dtype=np.int64)


def require_label(setting: str, label: str, known: tuple[str, ...]) -> None:
    """Raises UnifiedError where the value of a head's setting is none of its labels."""
    if label not in known:
        raise UnifiedError(f"{setting}={label!r} is none of the labels; {_the_labels(known)}")


def _the_labels(known: tuple[str, ...]) -> str:
    return f"the labels are {_first_of(known)}"


def _first_of(known: Sequence[str]) -> str:
    more = f" and {len(known) - _MOST_NAMED:,} more" if len(known) > _MOST_NAMED else ""
    return f"{', '.join(known[:_MOST_NAMED])}{more}"


def with_labels(settings: Mapping[str, Any], found: Iterable[str]) -> dict[str, Any]:
    """Settings of a head with their own ``labels``, or else with those ``found`` in training items, sorted."""
    labels = settings["labels"] if "labels" in settings else sorted(set(found))
    return {**settings, "labels": tuple(labels)}


def unlearnt_label(label: str | None, known: tuple[str, ...], what: str = "label") -> str | None:
    """Answers :meth:`Understanding.unlearnt` for a label, a tag or the like; None where it is known or not there."""
    if label is None or label in known:
        return None
    return f"{what} {label!r} is none of those that are learnt, {_first_of([repr(one) for one in known]) or 'none'}"


def probabilities(scores: torch.Tensor) -> np.ndarray:
    """Softmax of (N, classes) scores, float32 on the CPU."""
    return scores.detach().float().softmax(-1).cpu().numpy()


def by_label(labels: Sequence[str], row: np.ndarray) -> dict[str, float]:
    """Probabilities of the labels to six places."""
    return {label: round(float(p), 6) for label, p in zip(labels, row, strict=True)}
