"""Answers of a fine-tuned model beside the right ones: samples, a confusion matrix, or a table of mistakes."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.files.json_text import object_of_line
from unified.files.shapes import Maybe, Shape, misfit
from unified.files.text_files import numbered_lines
from unified.reports.run_page import Sample, Table

#: The field of a prediction with the answer, and those of an item that may say what is right.
_ANSWERS = {
    "label": ("label",),
    "tags": ("tags",),
    "answer": ("references", "choice", "answers"),
    "text": ("references", "target"),
    "chains": ("chains",),
}
#: Kinds of values that these fields hold.
_SHAPES = {
    "label": (str, float, None),
    "tags": ([str], None),
    "answer": (str, float, None),
    "answers": ([(str, {"text": str})], None),
    "choice": (str, None),
    "text": (str, None),
    "references": ([str], None),
    "target": (str, None),
    "chains": (list, None),
}
#: Fields that are not shown of an item.
_HIDDEN = frozenset(("id", "reference_group"))
_MOST_LABELS, _MOST_ROWS, _LONGEST = 24, 20, 400


class Answered:
    """Items of a split and their predictions.

    Args:
        name: of the task.
        items, predictions: files of JSON lines.

    Raises:
        UnifiedError: the files are not of the same items.
    """

    def __init__(self, name: str, items: Path, predictions: Path):
        self.name = name
        self.items: list[Any]
        self.predictions: list[Any]
        self.items, self.predictions = (
            [object_of_line(file, number, line) for number, line in numbered_lines(file)]
            for file in (items, predictions)
        )
        if [one.get("id") for one in self.items] != [one.get("id") for one in self.predictions]:
            raise UnifiedError(f"{predictions}: not the predictions of {items}; score the run anew")
        self.field = next((name for name in _ANSWERS if self.predictions and name in self.predictions[0]), None)
        shapes = {name: Maybe(shape) for name, shape in _SHAPES.items()}
        self._numbers = self.field == "label" and isinstance(self.predictions[0]["label"], float)
        if self._numbers:
            shapes["label"] = Maybe((float, None))
        # A class has a name, and a choice a number.
        answers = _SHAPES | {"label": float if self._numbers else (str, int)}
        _require(predictions, self.predictions, shapes | ({self.field: answers[self.field]} if self.field else {}))
        _require(items, self.items, shapes)
        if self.field == "tags":
            _require_tags(predictions, self.items, self.predictions)

    def gold(self, item: Mapping[str, Any]) -> Any:
        """The right answer of an item; None where the item does not say."""
        names = _ANSWERS[self.field] if self.field else ()
        return next((item[name] for name in names if item.get(name) is not None), None)

    def right(self, item: Mapping[str, Any], prediction: Mapping[str, Any]) -> bool | None:
        """Whether a prediction is right; None where only a score can say, such as of texts and numbers."""
        gold, answer = self.gold(item), self.field and prediction[self.field]
        if gold is None or isinstance(answer, float) or self.field == "chains":
            return None
        if self.field == "text":  # another text than the right one may be right, too
            return answer in _texts(gold) or None
        # A "yes" of CoQA is right where the reference is "Yes."
        return answer in (*_texts(gold), item.get("choice")) if self.field == "answer" else answer == gold

    def samples(self, count: int, rng: random.Random) -> list[Sample]:
        """Random items with the answer of the model."""
        chosen = sorted(rng.sample(range(len(self.items)), min(count, len(self.items))))
        return [self._sample(self.items[i], self.predictions[i]) for i in chosen]

    def _sample(self, item: Mapping[str, Any], prediction: Mapping[str, Any]) -> Sample:
        gold = _ANSWERS[self.field] if self.field else ()
        told = {name: value for name, value in item.items() if name not in (*gold, *_HIDDEN) and value is not None}
        texts = {name: " | ".join(value) if name == "choices" else value for name, value in told.items()}
        fields = {name: _shown(text) for name, text in texts.items()} | {"right answer": self._right_answer(item)}
        answer = prediction[self.field] if self.field else {k: v for k, v in prediction.items() if k != "id"}
        return Sample({**fields, "model": _shown(answer)}, self.right(item, prediction))

    def _right_answer(self, item: Mapping[str, Any]) -> str:
        gold = self.gold(item)
        return (
            " | ".join(dict.fromkeys(_texts(gold)))
            if gold is not None and self.field in ("answer", "text")
            else _shown(gold)
        )

    def mistakes(self, rng: random.Random) -> list[Table]:
        """A confusion matrix of labels, the most frequent confusions of tags or of many labels, or wrong items.

        There is no table of predictions that hold none of the answers that are known here, as a head of one's own may
        make them.
        """
        if self.field is None:
            return []
        if self.field == "label" and not self._numbers:
            return [_confusions(self.name, list(self._label_pairs()))]
        if self.field == "tags":
            pairs = [
                pair
                for item, one in zip(self.items, self.predictions, strict=True)
                if item.get("tags") is not None
                for pair in zip(item["tags"], one["tags"], strict=True)
            ]
            return [_confusions(f"{self.name}, tags of words", pairs)]
        return self._wrong_items(rng)

    def _label_pairs(self) -> list[tuple[str, str]]:
        pairs = zip(self.items, self.predictions, strict=True)
        return [(str(item["label"]), str(one["label"])) for item, one in pairs if item.get("label") is not None]

    def _wrong_items(self, rng: random.Random) -> list[Table]:
        pairs = list(zip(self.items, self.predictions, strict=True))
        if self.field == "label":  # numbers: the largest differences
            pairs = [pair for pair in pairs if self.gold(pair[0]) is not None]
            pairs = sorted(pairs, key=lambda pair: -abs(float(self.gold(pair[0])) - pair[1]["label"]))
            title, note = f"{self.name}, largest errors", ""
        else:
            pairs = [pair for pair in pairs if self.right(*pair) is not True]
            title = f"{self.name}, answers that are not the right one word by word"
            note = f"{len(pairs):,} of {counted(len(self.items), 'item')}"
            pairs = rng.sample(pairs, min(_MOST_ROWS, len(pairs)))
        rows = [(one["id"], self._right_answer(item), _shown(one[self.field])) for item, one in pairs[:_MOST_ROWS]]
        return [Table(title, ("item", "right", "model"), rows, note)]


def _require(file: Path, rows: Sequence[Mapping[str, Any]], shape: Shape) -> None:
    for number, row in enumerate(rows, 1):
        wrong = misfit(row, shape, "")
        if wrong is not None:
            raise UnifiedError(f"{file}, line {number}: {wrong}")


def _require_tags(file: Path, items: Sequence[Mapping[str, Any]], predictions: Sequence[Mapping[str, Any]]) -> None:
    for number, (item, prediction) in enumerate(zip(items, predictions, strict=True), 1):
        right, found = item.get("tags"), prediction["tags"]
        if right is not None and len(right) != len(found):
            raise UnifiedError(
                f"{file}, line {number}: 'tags' must be one for each word of the item, {len(right)}, got {len(found)}"
            )


def _confusions(name: str, pairs: Sequence[tuple[str, str]]) -> Table:
    """Number of times that each right label got each label of the model; of many labels, the most frequent mistakes."""
    counts = Counter(pairs)
    labels = sorted({label for pair in pairs for label in pair}, key=_by_number_or_name)
    if len(labels) <= _MOST_LABELS:
        rows = [(label, *(str(counts[label, other]) for other in labels)) for label in labels]
        return Table(f"Confusion matrix: {name}", ("right \\ model", *labels), rows, "a row for each right label")
    wrong = Counter({pair: count for pair, count in counts.items() if pair[0] != pair[1]})
    rows = [(right, said, str(count)) for (right, said), count in wrong.most_common(_MOST_ROWS)]
    return Table(f"Most frequent confusions: {name}", ("right", "model", "times"), rows)


def _by_number_or_name(label: str) -> tuple[int, str]:
    """Sorts the numbers of choices by their size, in front of names."""
    return (int(label), "") if label.isdecimal() else (sys.maxsize, label)


def _texts(gold: Any) -> list[str]:
    """The right answers of a question: texts, or objects with a text; none means that it has no answer."""
    return [one["text"] if isinstance(one, dict) else one for one in (gold if isinstance(gold, list) else [gold])] or [
        ""
    ]


def _shown(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        text = " ".join(value)
    elif isinstance(value, float):
        text = f"{value:.4g}"
    else:
        text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
