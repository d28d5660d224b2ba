"""IMDB's reviews of films (Maas et al. 2011): is the opinion good or bad?"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from unified.errors import UnifiedError
from unified.files.json_files import Entries
from unified.files.text_files import numbered_lines, without_compression
from unified.tasks.datasets.files import read_splits
from unified.tasks.heads.items import TextItem
from unified.tasks.settings import Task, Training

LABELS = ("neg", "pos")


def read_imdb(folder: str | Path) -> list[TextItem]:
    """IMDB's folder of a split: a file a review in ``neg`` and ``pos``, which are the labels.

    An item's ``id`` is the file, such as ``pos/127_10.txt``. HTML's line break is a space, as in XLNet's code.

    Raises:
        UnifiedError: a label has no reviews, or files are empty, no text, or there twice, plain and compressed; the
            first ten are named.
    """
    folder = Path(folder)
    entries, items = Entries(folder), []
    for label in LABELS:
        paths = sorted(path for path in folder.glob(f"{label}/*") if without_compression(path.name).endswith(".txt"))
        if not paths:
            raise UnifiedError(f"{folder}: no {label}/*.txt; is it a split of IMDB, such as aclImdb/train?")
        for path in paths:
            identity = without_compression(path.relative_to(folder).as_posix())
            entries.once(identity, f"{label}/{path.name}")
            try:
                text = " ".join(line for _, line in numbered_lines(path)).replace("<br />", " ").strip()
            except UnifiedError as error:
                entries.unreadable(f"{label}/{path.name}", path, error)
                continue
            if not text:
                entries.wrong(f"{label}/{path.name}", "empty")
            items.append(TextItem(identity, text, label=label))
    entries.check()
    return items


TASKS = (
    Task(
        name="imdb",
        head="classification(positive='pos')",
        read=partial(read_splits, {"train": (("train",),), "valid": (("test",),)}, read_imdb),
        training=Training(epochs=5, batch_size=32, lr=2e-5, max_length=512, warmup=0.125, weight_decay=0.0),
        published={"valid": {"XLNet large": {"accuracy": 96.21}}},
        source="Yang et al. 2019 and its published script (4,000 updates, 500 of them rising), where the test set "
        "validates",
        validates_on_test=True,
    ),
)
