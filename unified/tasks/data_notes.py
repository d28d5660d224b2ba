"""Notes on the data of a task that are printed before a model is fine-tuned, and on its scores afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from unified.arguments import counted
from unified.errors import Problems
from unified.tasks.heads.base import Understanding
from unified.tasks.heads.items import Splits, TextItem, WordsItem
from unified.tasks.writing import WritingItem

#: Labels, or tags of words, that are named with their counts.
_SHOWN = 20


def data_notes(splits: Splits) -> list[str]:
    """Sentences on the items of a task: their number, their classes, and probable mistakes.

    Classes that differ in capitals or blanks alone are learnt as different ones; items that train and validate make a
    score too high.
    """
    notes = ["items: " + ", ".join(f"{split} {len(items):,}" for split, items in splits.items())]
    train, valid = _texts(splits.get("train", ())), _texts(splits.get("valid", ()))
    counts = Counter(item.label for item in train if isinstance(item.label, str))
    if counts:
        notes.append(f"{counted(len(counts), 'label')} in train: {_with_counts(counts)}")
        if len(counts) > max(_SHOWN, len(train) / 4):
            notes.append(f"{len(counts):,} classes of {len(train):,} items: is the label read from the right field?")
        alike: dict[str, list[str]] = {}
        for label in sorted(counts):
            alike.setdefault(" ".join(label.lower().split()), []).append(label)
        notes += [
            "labels that differ in capitals or blanks alone are learnt as different classes; make them equal in the "
            f"file if they mean the same: {', '.join(map(repr, labels))}"
            for labels in alike.values()
            if len(labels) > 1
        ]
    tags = Counter(tag for item in splits.get("train", ()) if isinstance(item, WordsItem) for tag in item.tags or ())
    if tags:
        notes.append(f"{counted(len(tags), 'tag')} in train: {_with_counts(tags)}")
    known = {(item.text, item.second) for item in train}
    both = sum((item.text, item.second) in known for item in valid)
    if both:
        found = f"{both:,} of {len(valid):,} valid items have the texts of a train item"
        notes.append(f"{found}: scores come out too high")
    return notes


def guess_note(items: Sequence[Any], accuracy: float) -> str | None:
    """Sentence on a classifier that is no better than one that gives all items the same class; None for a better one.

    Where all items have one class, none can be better, and nothing is said.

    Args:
        items: of the split that was scored.
        accuracy: in percent.
    """
    labels = Counter(item.label for item in _texts(items) if isinstance(item.label, str))
    if not labels:
        return None
    label, count = labels.most_common(1)[0]
    share = 100 * count / labels.total()
    if accuracy > share or share == 100:
        return None
    return (
        f"a constant answer, {label!r}, would have accuracy {share:.2f}: the model has learnt little; try a higher "
        "--lr, more --epochs or other --seeds"
    )


def silence_note(scores: Mapping[str, Any]) -> str | None:
    """Sentence on the answers of a model that may leave questions unanswered; None where no question has no answer.

    Args:
        scores: by the rules of SQuAD 2.0, in percent, see :func:`unified.tasks.metrics.squad.score_squad_v2`.
    """
    if not {"HasAns_f1", "NoAns_total"} <= scores.keys():
        return None
    constant = 100 * scores["NoAns_total"] / scores["total"]
    return (
        f"questions that have an answer: F1 {scores['HasAns_f1']:.2f}; a model that never answers has F1 "
        f"{constant:.2f} on all"
    )


def capitals_note(
    items: Sequence[Any], predictions: Sequence[Mapping[str, Any]], scores: Mapping[str, Any]
) -> str | None:
    """Sentence on a model that writes no capital letters where references have some; None for another.

    Models with an uncased vocabulary are such. To BLEU and exact matches words that differ in capitals alone are wrong.

    Args:
        items: of the split that was scored.
        predictions: one for each item, with its ``text``.
        scores: as the task measures them.
    """
    if not {"bleu", "exact_match"} <= scores.keys() or any(_has_capitals(one["text"]) for one in predictions):
        return None
    count = sum(all(map(_has_capitals, item.right)) for item in items if isinstance(item, WritingItem))
    if not count:
        return None
    return (
        f"no prediction has a capital letter, and all references of {count:,} of {len(items):,} items have some: bleu "
        "and exact_match count such words as wrong, rouge1, rouge2 and rougeL do not"
    )


def require_known_labels(
    judged: Iterable[tuple[Understanding[Any], Splits]],
    locations: Callable[[], Mapping[str, Mapping[str, str]]] = dict,
) -> None:
    """Refuses items whose labels are none of those that are learnt, and items that cannot be scored.

    Args:
        judged: heads as the training items settle them, with the splits of their task.
        locations: finds where items are in a user's files, by split and id, as
            :meth:`unified.tasks.datasets.own_files.OwnFiles.locations` does; called where there is something to refuse.

    Raises:
        UnifiedError: names the lines, or split and items where there are none, and labels.
    """
    found: list[tuple[str, str, str]] = []
    for understanding, splits in judged:
        for split, items in splits.items():
            for item in items:
                unscored = None if _is_train(split) else understanding.unscored(item)
                reasons = (understanding.unlearnt(item), unscored)
                found += [(split, item.id, reason) for reason in reasons if reason is not None]
    if not found:
        return
    problems, files = Problems(), locations()
    for split, name, reason in found:
        lines = files.get(split, files.get("train", {}))  # a share of the training items may validate
        problems.add(lines.get(name, f"{split}, item {name}"), reason)
    problems.check()


def _is_train(split: str) -> bool:
    """Whether a split, which of several tasks is called TASK/SPLIT, holds training items."""
    return split.rpartition("/")[2] == "train"


def _with_counts(counts: Counter[str]) -> str:
    """The most frequent labels with their counts, and how many others there are."""
    more = f", and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
    return ", ".join(f"{label!r} {count:,}" for label, count in counts.most_common(_SHOWN)) + more


def _has_capitals(text: str) -> bool:
    """Whether a word has a capital letter; UNK, an unknown word in summaries' references, does not count."""
    return any(word not in (word.lower(), "UNK") for word in text.split())


def _texts(items: Sequence[Any]) -> list[TextItem]:
    return [item for item in items if isinstance(item, TextItem)]
