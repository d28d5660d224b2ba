"""The tasks of GLUE (Wang et al. 2019) and their official files, tables with tabs between columns and no quotation.

GLUE's server keeps the labels of its test sets. Of SST-2, MRPC, STS-B and the diagnostic set files with labels are
public too: they are splits of their own, ``test_labelled`` and ``diagnostic_labelled``, which are scored and choose
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from unified.arguments import counted, finite
from unified.errors import MissingField, UnifiedError
from unified.files.json_files import Entries
from unified.tasks.datasets.files import Alternatives, split_files
from unified.tasks.datasets.sentiment_trees import read_sentiment_trees
from unified.tasks.datasets.tables import tab_rows
from unified.tasks.heads.items import TextItem

_LOGGER = logging.getLogger(__name__)
#: Columns that number the rows of a file; where there is none, rows are counted from 0, as these do.
_NUMBERS = ("index", "id", "pair_ID")


@dataclass(frozen=True)
class GlueTask:
    """Description of one task of GLUE, and of its files.

    Attributes:
        name: as the benchmark writes it.
        files: by split, the official files that may hold it, the first ones that are there; of several all together.
        text, second: columns of the texts, None for ``second`` where there is one text.
        label: column of the label.
        labels: the classes; none where the label is a number, from ``least`` to ``most``.
        measures: scores that the benchmark averages, the one that chooses a checkpoint first.
        positive: class whose F1 is a measure.
        bare: columns of files without a header.
        more_columns: rows of files without a header may have further cells, which nobody reads.
        broken_rows: rows of labelled files with another number of cells, or without a text, are left out and counted;
            elsewhere they are refused.
        unlabelled: splits whose files have no labels, or none that count.
        renamed: columns that some files call otherwise, by what these files call them.
        readers: of files that are no tables, by split.
    """

    name: str
    files: Mapping[str, Alternatives]
    text: str
    second: str | None = None
    label: str = "label"
    labels: tuple[str, ...] = ("0", "1")
    least: float = 0.0
    most: float = 5.0
    measures: tuple[str, ...] = ("accuracy",)
    positive: str | None = None
    bare: tuple[str, ...] = ()
    more_columns: bool = False
    broken_rows: bool = False
    unlabelled: tuple[str, ...] = ("test",)
    renamed: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, Callable[[Path], list[TextItem]]] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """The name of its head, see :data:`unified.tasks.heads.TASK_HEADS`."""
        return "classification" if self.labels else "regression"


_PARTS = {"train": (("train.tsv",),), "valid": (("dev.tsv",),), "test": (("test.tsv",),)}
_COLA_FILES = {
    "train": (("train.tsv",), ("in_domain_train.tsv",)),
    "valid": (("dev.tsv",), ("in_domain_dev.tsv", "out_of_domain_dev.tsv")),
    "test": (("test.tsv",),),
}
_MRPC_FILES = {
    "train": (("train.tsv",), ("msr-para-train.tsv",)),
    "valid": (("dev.tsv",), ("msr-para-val.tsv",)),
    "test": (("test.tsv",),),
    "test_labelled": (("msr_paraphrase_test.txt",), ("msr-para-test.tsv",)),
}
_STS_FILES = {
    "train": (("train.tsv",), ("sts-train.csv",), ("sts-train.tsv",)),
    "valid": (("dev.tsv",), ("sts-dev.csv",), ("sts-dev.tsv",)),
    "test": (("test.tsv",),),
    "test_labelled": (("sts-test.csv",), ("sts-test.tsv",)),
}
_QQP_FILES = {
    "train": (("train.tsv",), ("train_subset.tsv",)),
    "valid": (("dev.tsv",), ("dev_subset.tsv",)),
    "test": (("test.tsv",),),
}
_MNLI_FILES = {
    "train": (("train.tsv",),),
    "valid": (("dev_matched.tsv",),),
    "valid_mismatched": (("dev_mismatched.tsv",),),
    "test": (("test_matched.tsv",),),
    "test_mismatched": (("test_mismatched.tsv",),),
    "diagnostic": (("AX.tsv",), ("diagnostic.tsv",)),
    "diagnostic_labelled": (("diagnostic-full.tsv",),),
}
_SICK_FILES = {
    "train": (("SICK_train.txt",),),
    "valid": (("SICK_trial.txt",),),
    "test": (("SICK_test_annotated.txt",),),
}
_SST_FILES = {**_PARTS, "test_labelled": (("trees/test.txt",),)}
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("contradiction", "entailment", "neutral")
_MNLI = GlueTask(
    "MNLI",
    _MNLI_FILES,
    "sentence1",
    "sentence2",
    label="gold_label",
    labels=_INFERENCE,
    unlabelled=("test", "test_mismatched", "diagnostic"),
    renamed={"Premise": "sentence1", "Hypothesis": "sentence2", "Label": "gold_label"},
)
_STS_B = GlueTask(
    "STS-B",
    _STS_FILES,
    "sentence1",
    "sentence2",
    label="score",
    labels=(),
    measures=("spearman", "pearson"),
    bare=("genre", "filename", "year", "old_index", "score", "sentence1", "sentence2"),
    more_columns=True,
)
_QQP = GlueTask(
    "QQP",
    _QQP_FILES,
    "question1",
    "question2",
    label="is_duplicate",
    measures=("f1", "accuracy"),
    positive="1",
    broken_rows=True,
)
_MRPC = GlueTask(
    "MRPC", _MRPC_FILES, "#1 String", "#2 String", label="Quality", measures=("f1", "accuracy"), positive="1"
)
_SICK = GlueTask(
    "SICK",
    _SICK_FILES,
    "sentence_A",
    "sentence_B",
    label="entailment_judgment",
    labels=tuple(label.upper() for label in _INFERENCE),
    unlabelled=(),
)
#: The nine tasks by name; MNLI has the diagnostic set AX as a split. SICK is here too, since it has MNLI's form.
GLUE: dict[str, GlueTask] = {
    task.name: task
    for task in (
        GlueTask("CoLA", _COLA_FILES, "sentence", measures=("matthews",), bare=("source", "label", "mark", "sentence")),
        GlueTask("SST-2", _SST_FILES, "sentence", readers={"test_labelled": read_sentiment_trees}),
        _MRPC,
        _STS_B,
        _QQP,
        _MNLI,
        GlueTask("QNLI", _PARTS, "question", "sentence", labels=_ENTAILMENT),
        GlueTask("RTE", _PARTS, "sentence1", "sentence2", labels=_ENTAILMENT),
        GlueTask("WNLI", _PARTS, "sentence1", "sentence2"),
        _SICK,
    )
}


def glue_splits(task: GlueTask, folder: Path) -> dict[str, list[TextItem]]:
    """Items of the splits whose files are in a folder; how many broken rows were left out is logged.

    Raises:
        UnifiedError: files for training or validation are missing, or as :func:`read_glue`.
    """
    splits: dict[str, list[TextItem]] = {}
    for split, paths in split_files(folder, task.files).items():
        splits[split] = []
        for path in paths:
            if split in task.readers:
                splits[split] += task.readers[split](path)
                continue
            items, broken = read_glue(task, path, split not in task.unlabelled)
            if broken:
                _LOGGER.warning(f"{path}: left out: {counted(broken, 'broken row')}")
            # Rows are numbered in each file.
            named = (replace(item, id=f"{path.name.partition('.')[0]}-{item.id}") for item in items)
            splits[split] += items if len(paths) == 1 else named
    return splits


def read_glue(task: GlueTask, path: str | Path, labelled: bool = True) -> tuple[list[TextItem], int]:
    """Items of an official file, plain or compressed (.gz, .xz, .zst), and how many broken rows were left out.

    Columns are found by the header. ``id`` is the row's number where the file has one, as test files do.

    Args:
        labelled: read labels too; False for test files, which have none, or none that count.

    Raises:
        UnifiedError: the file cannot be read, has no rows, lacks a column or has it twice, or rows are wrong: another
            number of cells, an empty text, a label that the task does not have, a number that is empty or was there
            before. The first ten are named.
    """
    table = list(tab_rows(path))
    columns, names, rows = _columns(task, path, table, labelled)
    entries, items, seen, broken = Entries(path), [], set(), 0
    for position, (number, cells) in enumerate(rows):
        problem = _misshapen(task, columns, names, cells)
        if problem and task.broken_rows and labelled:
            broken += 1
        elif problem:
            entries.wrong(f"line {number}", problem)
        else:
            item = _item(task, dict(zip(columns, cells, strict=False)), position, labelled)
            if isinstance(item, str):
                entries.wrong(f"line {number}", item)
            elif item.id in seen:
                entries.wrong(f"line {number}", f"row {item.id} was in the file before")
            else:
                seen.add(item.id)
                items.append(item)
    entries.check()
    if not items:
        raise UnifiedError(f"{path}: holds no row" + (f", {counted(broken, 'broken one')} aside" if broken else ""))
    return items, broken


def _columns(
    task: GlueTask, path: str | Path, table: list[tuple[int, list[str]]], labelled: bool
) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[int, list[str]]]]:
    """Names of the columns, as the task and as the file calls them, and the rows without the header."""
    if not table:
        raise UnifiedError(f"{path}: the file is empty")
    header = tuple(task.renamed.get(name, name) for name in table[0][1])
    if task.text in header:
        columns, names, rows = header, tuple(table[0][1]), table[1:]
    elif task.bare:
        columns, names, rows = task.bare, task.bare, table
    else:
        lacking = MissingField(task.text, table[0][1], "column")
        raise UnifiedError(f"{path}, line 1: {lacking}; is it a file of {task.name} with its header?")
    wanted = (task.text, task.second, task.label if labelled else None)
    missing = [name for name in wanted if name is not None and name not in columns]
    if missing:
        raise UnifiedError(f"{path}, line 1: {MissingField(missing[0], names, 'column')}")
    twice = [name for name in (*wanted, *_NUMBERS) if columns.count(str(name)) > 1]
    if twice:
        raise UnifiedError(f"{path}, line 1: two columns are called {twice[0]!r}; leave one of them out")
    return columns, names, rows


def _misshapen(task: GlueTask, columns: tuple[str, ...], names: tuple[str, ...], cells: list[str]) -> str | None:
    """Why a row cannot be read, if it cannot; ``names`` are those of the columns in the file."""
    more = task.more_columns and columns == task.bare and len(cells) > len(columns)
    if len(cells) != len(columns) and not more:
        return f"{counted(len(cells), 'column')} instead of {len(columns)}"
    for name in (task.text, task.second):
        if name is not None and not cells[columns.index(name)]:
            return f"{names[columns.index(name)]!r} is empty"
    return None


def _item(task: GlueTask, fields: dict[str, str], position: int, labelled: bool) -> TextItem | str:
    """The item of a row, or the problem with its number or its label."""
    numbers = next((name for name in _NUMBERS if name in fields), None)
    identity = str(position) if numbers is None else fields[numbers]
    if not identity:
        return f"{numbers!r} is empty"
    second = None if task.second is None else fields[task.second]
    if not labelled:
        return TextItem(identity, fields[task.text], second)
    cell = fields[task.label]
    if task.labels:
        if cell not in task.labels:
            return f"the label {cell!r} is none of {', '.join(task.labels)}"
        return TextItem(identity, fields[task.text], second, cell)
    label = finite(cell)
    if label is None or not task.least <= label <= task.most:
        return f"the label {cell!r} is no number from {task.least:g} to {task.most:g}"
    return TextItem(identity, fields[task.text], second, label)
