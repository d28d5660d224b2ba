"""The list of training objectives, and one example of any of them."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from unified.cli.commands.showing.mask_fields import fields_of
from unified.data.annotations import KINDS, PARTS_OF_SPEECH, TAGS
from unified.data.example import Example, query_stream_problem
from unified.data.targets import NEXT_SENTENCE, PREDICTION_HEADS, TOKEN
from unified.data.text import Text
from unified.data.vocabulary import APPENDED, Vocabulary
from unified.errors import UnifiedError
from unified.masks import GIVEN, AttentionMask
from unified.objectives import OBJECTIVES, Objective, Supply, parse_objectives
from unified.objectives.arrays import naming_objective, require_example


def listed() -> list[str]:
    """Lines that describe every objective: its summary, its paper, its requirements, its settings."""
    lines = []
    for one in described():
        lines.append(f"{one['name']}: {one['summary']}")
        lines.append(f"    from {one['paper']}; needs {', '.join(one['needs'])}")
        lines += [f"    {name}={default!r}" for name, default in one["settings"].items()]
    return lines


def described() -> list[dict[str, Any]]:
    """Name, summary, paper, needs and settings of every objective."""
    return [_described(objective) for objective in OBJECTIVES.values()]


@dataclass(frozen=True)
class ShownExample:
    """One example of an objective; as a text, a table of its tokens and its mask.

    Attributes:
        objective: with its settings, as it was written.
        example: that it made of a text.
        vocabulary: the words of the text.
    """

    objective: str
    example: Example
    vocabulary: Vocabulary

    def masks(self) -> dict[str, AttentionMask]:
        """The mask of the tokens, and that of the queries that predict where the objective has a query stream."""
        mask = self.example.mask
        if not self.example.query_stream:
            return {"mask": mask}
        return {
            "mask": mask,
            "query_stream": mask.query_stream(self.example.targets[TOKEN].output_indices[:, 0]),
        }

    def described(self) -> dict[str, Any]:
        """Tokens, token types and predictions of each token, and the fields of each mask."""
        predicted = _predicted(self.example, self.vocabulary)
        tokens = self.example.tokens.tolist()
        return {
            "objective": self.objective,
            "tokens": [self.vocabulary.symbols[token] for token in tokens],
            "token_types": self.example.token_types.tolist(),
            "predictions": [predicted.get(index, []) for index in range(len(tokens))],
            **{name: fields_of(mask) for name, mask in self.masks().items()},
        }

    def __str__(self) -> str:
        pictures = list(map(str, self.masks().values()))
        stream = ["", "query stream, a row for each prediction:", *pictures[1:]] if pictures[1:] else []
        return "\n".join([*_table(self.example, self.vocabulary), "", pictures[0], *stream])


def example_of(objective: str, first: str, second: str | None, seed: int) -> ShownExample:
    """One example of an objective.

    Args:
        objective: with its settings, in the notation of objectives.
        first: text of the example.
        second: second segment or target; by default the second half of the text.
        seed: of the random choices.

    Raises:
        UnifiedError: the objective, the text or the seed is none, or the example's query stream cannot be made.
    """
    objectives = parse_objectives(objective).objectives
    if len(objectives) != 1:
        raise UnifiedError(f"show takes one objective, got {len(objectives)} in {objective!r}")
    if seed < 0:
        raise UnifiedError(f"--seed must be at least 0, got {seed}")
    text, vocabulary = _text(objectives[0], first, second)
    longest = len(text.tokens) if text.second is None else len(text.tokens) + len(text.second)
    supply = Supply(vocabulary.special, word_starts=True, longest=longest, annotations=KINDS)
    with naming_objective(objective, type(objectives[0]).__module__):
        problem = objectives[0].unmet(supply)
        if problem:
            raise UnifiedError(f"objective {objective}: {problem}")
        example = require_example(objectives[0](text, np.random.default_rng(seed)), objectives[0].own_heads)
    problem = query_stream_problem(example)
    if problem:
        raise UnifiedError(f"objective {objective} makes an example whose query stream cannot be made: {problem}")
    return ShownExample(objective, example, vocabulary)


def _described(objective: type[Objective]) -> dict[str, Any]:
    assert is_dataclass(objective)  # as objectives with settings are
    return {
        "name": objective.name,
        "summary": (objective.__doc__ or "").splitlines()[0],
        "paper": objective.paper,
        "needs": _needs(objective()),
        "settings": {field.name: field.default for field in fields(objective)},
    }


def _needs(objective: Objective) -> list[str]:
    """The requirements of an objective with its default settings."""
    documents = "several documents" if objective.wants_random_second else "documents"
    needs = ["source/target pairs" if objective.paired else documents]
    special = Vocabulary([]).special
    without = {
        "sentinels": Supply(replace(special, sentinel_count=0), word_starts=True, longest=512, annotations=KINDS),
        "word starts": Supply(special, word_starts=False, longest=512, annotations=KINDS),
    }
    if objective.query_stream:
        needs.append("a model with relative or rotary positions")
    needs += [name for name, supply in without.items() if objective.unmet(supply)]
    return needs + [f"annotation {kind}" for kind in objective.annotations]


def _text(objective: Objective, first: str, second: str | None) -> tuple[Text, Vocabulary]:
    """The text, and a vocabulary of its words."""
    kinds = objective.annotations
    if PARTS_OF_SPEECH in kinds:
        return _tagged_text(first.split(), second)
    words, spans = _spans("--text", first.split()) if kinds else (first.split(), [])
    if not words:
        raise UnifiedError("--text is empty; give at least one word")
    cut = len(words) if objective.segments == 1 else len(words) // 2
    if second is not None:
        if objective.segments == 1:
            raise UnifiedError(f"{objective.name} reads one segment; leave --second out")
        cut = len(words)
        more, of_second = _spans("--second", second.split()) if kinds else (second.split(), [])
        words, spans = words + more, spans + [(start + cut, stop + cut) for start, stop in of_second]
    vocabulary = _vocabulary(words)
    tokens = vocabulary.encode(words)
    whole = np.array([(start, stop) for start, stop in spans if not start < cut < stop], dtype=np.int64).reshape(-1, 2)
    text = Text(
        tokens=tokens[:cut],
        special=vocabulary.special,
        second=tokens[cut:] if objective.segments == 2 else None,
        is_next=True if objective.wants_random_second else None,
        word_starts=np.ones(len(words), dtype=bool),
        spans={kind: whole for kind in kinds},
    )
    return text, vocabulary


def _vocabulary(words: list[str]) -> Vocabulary:
    """A vocabulary of the words; the mask and sentinels are in it anyway, and may be among them."""
    known = Vocabulary([])
    special = next((word for word in words if word in known.symbols and word not in APPENDED), None)
    if special is not None:
        raise UnifiedError(f"{special!r} is a special symbol, not a word of a text; leave it out")
    return Vocabulary(sorted({*words} - set(APPENDED)))


def _tagged_text(marked: list[str], second: str | None) -> tuple[Text, Vocabulary]:
    """The text of words with parts of speech behind slashes, and a vocabulary of its words."""
    if second is not None:
        raise UnifiedError("an objective that reads parts of speech reads one segment; leave --second out")
    pairs = [word.rpartition("/") for word in marked]
    for word, (before, _, tag) in zip(marked, pairs, strict=True):
        if not before or tag not in TAGS:
            raise UnifiedError(f"--text: {word!r} must be word/TAG, as in dog/NOUN; tags are {', '.join(TAGS)}")
    if not pairs:
        raise UnifiedError("--text is empty; give at least one word")
    words = [before for before, _, _ in pairs]
    vocabulary = _vocabulary(words)
    spans = np.array([(index, index + 1, TAGS.index(tag)) for index, (_, _, tag) in enumerate(pairs)])
    return Text(
        tokens=vocabulary.encode(words),
        special=vocabulary.special,
        word_starts=np.ones(len(words), dtype=bool),
        spans={PARTS_OF_SPEECH: spans},
    ), vocabulary


def _spans(option: str, marked: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    """Words without their brackets, and where the brackets open and close."""
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    start = None
    for word in marked:
        opens, closes = word.startswith("["), word.endswith("]")
        if opens:
            if start is not None:
                raise UnifiedError(f"{option}: a bracket opens at {word!r} before the one before it closes")
            start = len(words)
        words += [stripped] if (stripped := word[opens : len(word) - closes]) else []
        if closes:
            if start is None:
                raise UnifiedError(f"{option}: the bracket that closes at {word!r} was never opened")
            spans += [(start, len(words))] if start < len(words) else []
            start = None
    if start is not None:
        raise UnifiedError(f"{option}: a bracket is not closed")
    return words, spans


def _table(example: Example, vocabulary: Vocabulary) -> list[str]:
    """Table with one line a token: index, symbol, token type, step at which it becomes visible, and its prediction."""
    predicted, pairs = _predicted(example, vocabulary), example.targets.get(NEXT_SENTENCE)
    rows = [("index", "token", "type", "visible", "predict")]
    for index, token in enumerate(example.tokens.tolist()):
        step = int(example.mask.key_start[index])
        visible = "given" if step == GIVEN else f"step {step}"
        labels = ", ".join(predicted.get(index, []))
        rows.append((str(index), vocabulary.symbols[token], str(example.token_types[index]), visible, labels))
    if pairs is not None and pairs.labels is not None:
        rows.append(("", "", "", "", f"is_next={pairs.labels[0]} from index {pairs.output_indices[0, 0]}"))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _predicted(example: Example, vocabulary: Vocabulary) -> dict[int, list[str]]:
    """Prediction at each token: a symbol or the label of the objective's own head, and its weight unless 1."""
    found: dict[int, list[str]] = {}
    for head, targets in example.targets.items():
        if targets.labels is None or (head != TOKEN and head in PREDICTION_HEADS):
            continue
        weights = np.ones(len(targets)) if targets.weights is None else targets.weights
        for index, label, weight in zip(
            targets.output_indices[:, 0].tolist(), targets.labels.tolist(), weights.tolist(), strict=True
        ):
            said = vocabulary.symbols[label] if head == TOKEN else f"{head}={label}"
            found.setdefault(index, []).append(said if weight == 1 else f"{said} (weight {weight:.3g})")
    return found
