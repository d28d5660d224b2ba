"""Generation tasks, whose answers are written: items, settings, and the texts of a trained model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Self

from unified.arguments import counted, setting
from unified.errors import UnifiedError, nearest
from unified.generation import GenerationConfig
from unified.inference.language_model import UnifiedLM
from unified.inference.source_windows import ShortSources, Source
from unified.tasks.heads.base import require_examples, require_measures
from unified.tasks.heads.items import require_whole_characters
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.settings import Published, Training
from unified.tasks.windows import TokenCounter
from unified.tokenization.symbols import symbol_pieces

#: Names of settings, for ``--system``: those of a task's paper, and those for a model without a token head.
PUBLISHED, ENCODER = "published", "encoder"
#: Tokens of a sequence beside source and target.
_SPECIAL_TOKENS = 3
#: Learning rate at its peak of a small encoder that learns to write.
_ENCODER_RATE = 3e-4


@dataclass(frozen=True)
class WritingItem:
    """A text to write.

    Attributes:
        id: what predictions are named by.
        source: what it is written from; a list of parts, or one text.
        target: the text; None where it is to be written.
        references: all texts that are right, where there are several.
        reference_group: a name that items have in common whose references are pooled; None for an item by itself.
        sentences, oracle: of the extractive loss, see :func:`unified.tasks.datasets.summaries.pairs.write_pairs`.
        unread: tokens that the source leaves out of what it was made of; None where it has all.
    """

    id: str
    source: str | tuple[str, ...]
    target: str | None = None
    references: tuple[str, ...] | None = None
    reference_group: str | None = None
    sentences: tuple[int, ...] | None = None
    oracle: tuple[int, ...] | None = None
    unread: int | None = None

    @property
    def right(self) -> list[str]:
        """All references."""
        return list(self.references or (self.target or "",))


@dataclass(frozen=True)
class WritingTraining(Training):
    """Settings of a generation task's fine-tuning; ``batch_size`` counts pairs.

    Attributes:
        max_source: tokens of a source, the first ones; what is cut is counted.
        max_target: tokens of a target, and most tokens to write.
        objective: as ``fairseq-train --objectives`` takes it.
        smoothing: of labels.

    Raises:
        UnifiedError: a setting has another type, or is out of range.
    """

    max_source: int = setting(384, least=1)
    max_target: int = setting(64, least=1)
    objective: str = "target_cloze(mask_probability=0.7)"
    smoothing: float = setting(0.1, least=0, below=1)

    @property
    def max_source_tokens(self) -> int:
        """Tokens of a source, which with its target and three special symbols has a row."""
        return min(self.max_source, self.max_length - self.max_target - _SPECIAL_TOKENS)

    def changed(self, **changes: Any) -> Self:
        """The settings with some of their fields changed; of the lengths the others follow.

        A longer row, or another target, leaves other room to sources, and a longer source less to targets.

        Raises:
            UnifiedError: a row has no room for sources and targets of the lengths that are given.
        """
        room = changes.get("max_length", self.max_length) - _SPECIAL_TOKENS
        given = [name for name in ("max_source", "max_target") if name in changes]
        if given == ["max_source"]:
            changes["max_target"] = max(1, min(self.max_target, room - changes["max_source"]))
        elif "max_source" not in given and (given or room > self.max_length - _SPECIAL_TOKENS):
            changes["max_source"] = max(1, room - changes.get("max_target", self.max_target))
        found = replace(self, **changes)
        if given and found.max_source + found.max_target > room:
            options = " and ".join(f"--{name.replace('_', '-')} {changes[name]}" for name in given)
            raise UnifiedError(
                f"{options}: a sequence of {found.max_length} tokens (--max-length) has room for {room} of a source "
                "and its target together"
            )
        return found

    def for_encoder(self) -> Self:
        """The settings with which a model that has no token head learns to write.

        Published settings are for models that have learnt to write in pre-training. Another learns much more of as many
        pairs where every token predicts the next one, at a higher rate, in smaller batches: docs/background/results.md
        has the measurements.
        """
        return replace(self, objective="target_next", lr=_ENCODER_RATE, batch_size=min(self.batch_size, 8))


@dataclass(frozen=True)
class TokenBudget:
    """Number of tokens of a source that are read, and their counter.

    Attributes:
        counter: of the model's tokens.
        tokens: of a source, at most.
    """

    counter: TokenCounter
    tokens: int


#: Makes items by split of a folder; "train" and "valid" are among the splits.
Reader = Callable[[Path, TokenBudget], Mapping[str, Sequence[WritingItem]]]
#: Makes items and texts the examples that official scores are computed of; told whether the texts have the words of
#: BERT's tokenizer.
Scorer = Callable[[Sequence[WritingItem], Sequence[str], bool], Examples]


@dataclass(frozen=True, kw_only=True)
class WritingTask:
    """A data set whose answers are texts, which ``unified finetune`` knows by name.

    Attributes:
        name: on the command line.
        read: of official files.
        item: of the object that a user writes from, and a number that names it.
        scored: makes items and texts the examples that the task's rules score, signatures among the scores.
        parts: what the objects call the parts that ``--source-field`` and ``--target-field`` name; none for others.
        training: published settings.
        decoding: fields of :class:`GenerationConfig`.
        may_repeat: marks that no-repeat leaves alone; ``no_repeat_ngram_size`` of ``decoding`` says what it blocks.
        separator: between the sentences of a target.
        published: split -> system -> measure -> figure in percent, with full training data.
        source: where settings and figures are published.
        unlabelled: splits without targets.
        official: items and predictions as an official program reads them, text or JSON by file name; None where there
            is no such program.
        measures: scores worth watching, the one that chooses a checkpoint first.

    Raises:
        UnifiedError: there is ``may_repeat``, but ``decoding`` blocks no repeated n-grams.
    """

    name: str
    read: Reader
    item: Callable[[dict[str, Any], int, TokenBudget], WritingItem]
    scored: Scorer
    training: WritingTraining
    decoding: Mapping[str, Any]
    parts: Mapping[str, str] = field(default_factory=dict)
    may_repeat: tuple[str, ...] = ()
    separator: str | None = None
    published: Published = field(default_factory=dict)
    source: str = ""
    unlabelled: tuple[str, ...] = ()
    official: Callable[[Sequence[WritingItem], Sequence[Mapping[str, Any]]], dict[str, Any]] | None = None
    measures: tuple[str, ...] = ("rougeL", "rouge1", "rouge2")

    def __post_init__(self) -> None:
        if self.may_repeat and not self.decoding.get("no_repeat_ngram_size"):
            raise UnifiedError(f"task {self.name}: may_repeat needs a no_repeat_ngram_size of decoding")

    def as_in(self, system: str) -> WritingTask:
        """The task with its published settings, or with those for an encoder.

        Args:
            system: :data:`PUBLISHED` or :data:`ENCODER`.

        Raises:
            UnifiedError: it is neither.
        """
        known = {PUBLISHED: self.training, ENCODER: self.training.for_encoder()}
        if system not in known:
            raise UnifiedError(
                f"no settings of {system!r} for {self.name}{nearest(system, known)}; known are {', '.join(known)}"
            )
        return replace(self, training=known[system])


@dataclass(frozen=True)
class Writer:
    """A model that writes, and the task that it was fine-tuned for.

    Attributes:
        handle: the model.
        task: says how sources are made and texts are searched for.
        ahead: items that are read before the first of them is written; like lengths among them share a batch.
        batch_size: texts that are written together.
        max_source: tokens of a source that are read; None: as many as the model was fine-tuned on, or what its
            positions have room for.
        windows: divide a source that is too long into windows instead of cutting it, see :meth:`UnifiedLM.shortened`.

    Raises:
        UnifiedError: ``max_source`` is no number of tokens that the positions have room for.
    """

    handle: UnifiedLM
    task: WritingTask
    ahead: int = 512
    batch_size: int = 32
    max_source: int | None = None
    windows: bool = False

    def __post_init__(self) -> None:
        left = self.handle.length_rules.tokens_left(self.config.max_length)
        if self.max_source is not None and not 0 < self.max_source <= left:
            raise UnifiedError(
                f"--max-source {self.max_source}: the model has room for 1 to {left} tokens of a source beside the "
                f"{self.config.max_length} that may be written"
            )

    def item(self, fields: dict[str, Any], number: int) -> WritingItem:
        """Reads one object of a user's file; without an ``id`` the item is called by its number.

        Raises:
            UnifiedError: it is not one of the task, or holds half of a surrogate pair.
        """
        item = self.task.item(fields, number, self._budget)
        require_whole_characters(vars(item))
        return item

    def document_of(self, item: WritingItem) -> Hashable:
        """None: each text is written from its own source alone."""
        return None

    def predict(self, items: Iterable[WritingItem]) -> Iterator[dict[str, Any]]:
        """Writes a text for each item: a JSON object with ``id`` and ``text``.

        ``cut`` is how many tokens of its source were not read, where some were not, and ``windows`` how many windows
        its source was divided into, if it was.
        """
        remaining = iter(items)
        while some := list(islice(remaining, self.ahead)):
            yield from self._predict(some)

    @property
    def reads(self) -> str:
        """Description of how much of an item is read."""
        made = " that was written from windows" if self.windows else ""
        return f"the first {counted(self.max_source_tokens, 'token')} of a source{made}"

    @cached_property
    def _budget(self) -> TokenBudget:
        return TokenBudget(TokenCounter(self.handle.encode), self.max_source_tokens)

    @cached_property
    def max_source_tokens(self) -> int:
        """Most tokens of a source: as in fine-tuning, or as the model's positions allow.

        For a model that has learned no pairs, at most the published number.
        """
        if self.max_source is not None:
            return self.max_source
        limit = self.handle.length_rules.source_limit(self.config.max_length)
        assert limit is not None  # of a source, without ``max_source``
        return limit if self.handle.lengths.learnt_target else min(limit, self.task.training.max_source)

    @cached_property
    def config(self) -> GenerationConfig:
        """Settings of the search.

        Their length is that of targets in fine-tuning, if that is less than the published one, or if targets were
        longer there than the published ones. A model that has learned no pairs writes as much as is published, or a
        quarter of its positions, if that is less.
        """
        handle, options = self.handle, dict(self.task.decoding)
        published, positions = options["max_length"], handle.model.config.position_limit
        length = handle.lengths.default_length(positions, usual=published)
        longer = length > self.task.training.max_target
        options["max_length"] = length if longer else min(published, length)
        repeated = [symbol_pieces(handle.tokenizer, handle.vocabulary, mark) for mark in self.task.may_repeat]
        options["no_repeat_ngram_ignore"] = [piece for pieces in repeated for piece in pieces]
        return GenerationConfig.of_options(handle.vocabulary, **options)

    def scored(self, items: Sequence[WritingItem], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Items and their texts as the rules of the task score them."""
        whose, texts = f"task {self.task.name!r}", [prediction["text"] for prediction in predictions]
        found = require_examples(whose, self.task.scored(items, texts, self.handle.tokenizer.bert_words))
        require_measures(whose, found.scores(), self.task.measures[:1])
        return found

    def official(self, items: Sequence[Any], predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Predictions as an official program reads them: text or JSON by file name."""
        return self.task.official(items, predictions) if self.task.official else {}

    def _predict(self, items: list[WritingItem]) -> list[dict[str, Any]]:
        fitting = self._fitting([item.source for item in items])
        handle, batch_size = self.handle, self.batch_size
        written = handle.hypotheses(fitting.ids, self.config, prompt=False, batch_size=batch_size, max_source=0)
        found: list[dict[str, Any]] = []
        for item, (best, *_), windows, unread in zip(items, written, fitting.windows, fitting.cut, strict=True):
            cut = (item.unread or 0) + unread
            found.append({"id": item.id, "text": handle.decode(best.tokens.tolist())})
            found[-1] |= {name: count for name, count in (("windows", windows), ("cut", cut)) if count}
        return found

    def _fitting(self, sources: Sequence[Source]) -> ShortSources:
        """Cuts sources to the tokens that are read."""
        handle, limit = self.handle, self.max_source_tokens
        if self.windows:
            return handle.shortened(
                sources,
                self.config,
                prompt=False,
                batch_size=self.batch_size,
                max_source=limit,
                separator=self.task.separator,
            )
        ids = [handle.encode_source(source) for source in sources]
        return ShortSources([row[:limit] for row in ids], [0] * len(ids), [max(0, len(row) - limit) for row in ids])
