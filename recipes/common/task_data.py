"""Official files of data sets for `unified finetune`, each in a folder called like its task.

    python recipes/common/task_data.py FOLDER rte mnli xsum     # downloads into FOLDER/rte, FOLDER/mnli, FOLDER/xsum
    python recipes/common/task_data.py FOLDER debug             # small generated files for the debug sizes instead

Summaries come from Hugging Face (`pip install '.[hub]'`). Not here: TACRED, which the LDC distributes (LDC2018T24:
train.json, dev.json and test.json); SICK, MRQA, Reuters headlines, SciTLDR.
"""

from __future__ import annotations

import argparse
import re
import shutil
import stat
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import task_debug  # noqa: E402
from sources import fetch, hub_rows, write_jsonl  # noqa: E402

from unified.errors import UnifiedError  # noqa: E402
from unified.files.text_files import numbered_lines  # noqa: E402

_GLUE = "https://dl.fbaipublicfiles.com/glue/data"
_MRPC = "https://dl.fbaipublicfiles.com/senteval/senteval_data/msr_paraphrase_{}.txt"
#: Labels of two test sets; those of MRPC are in the files that its splits are made of.
_SST_TREES = "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip"
_GITHUB = "https://raw.githubusercontent.com"
_STS = "zhangzhenhu/Semantic-Texual-Similarity-Toolkits/6f47f1b3b8385ea31ffece0ef4c4e38c351b25ce/data/stsbenchmark"
_SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset"


@dataclass(frozen=True)
class Source:
    """A file, or an archive of which ``members`` are wanted: a pattern whose first group is the name of the file."""

    url: str
    members: str | None = None


@dataclass(frozen=True)
class Hub:
    """A data set of Hugging Face, of whose rows two fields are wanted."""

    name: str
    configuration: str | None
    fields: tuple[str, str]


def _glue(archive: str) -> tuple[Source, ...]:
    return (Source(f"{_GLUE}/{archive}.zip", r"[^/]+/([^/]+\.tsv)"),)


def _files(url: str, *names: str) -> tuple[Source, ...]:
    return tuple(Source(f"{url}/{name}") for name in names)


_SQUAD1 = _files(_SQUAD, "train-v1.1.json", "dev-v1.1.json")
_DU = (*_SQUAD1, *_files(f"{_GITHUB}/xinyadu/nqg/8211129a3e97d29f3e4563e35f65e4a892f70ef0/data", "doclist-test.txt"))
_COQA = _files("https://nlp.stanford.edu/data/coqa", "coqa-train-v1.0.json", "coqa-dev-v1.0.json")
_GIGAWORD = Hub("Harvard/gigaword", None, ("document", "summary"))

SOURCES: dict[str, tuple[Source, ...] | Hub] = {
    "cola": _glue("CoLA"),
    "sst2": (*_glue("SST-2"), Source(_SST_TREES, r"(trees/test\.txt)")),
    "stsb": (*_glue("STS-B"), *_files(f"{_GITHUB}/{_STS}", "sts-test.csv")),
    "qqp": _glue("QQP-clean"),
    "mnli": (*_glue("MNLI"), Source(f"{_GLUE}/AX.tsv")),
    "qnli": _glue("QNLIv2"),
    "rte": _glue("RTE"),
    "wnli": _glue("WNLI"),
    "mrpc": (Source(_MRPC.format("train")), Source(_MRPC.format("test")), Source(f"{_GLUE}/mrpc_dev_ids.tsv")),
    "imdb": (
        Source(
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            r"aclImdb/((?:train|test)/(?:neg|pos)/\w+\.txt)",
        ),
    ),
    "swag": _files(f"{_GITHUB}/rowanz/swagaf/master/data", "train.csv", "val.csv", "test.csv"),
    "codah": _files(
        f"{_GITHUB}/Websail-NU/CODAH/acf7ffa4041ade86c6f7dd2f92fb08c957350280/data/cv_split/fold_0",
        "train.tsv",
        "dev.tsv",
        "test.tsv",
    ),
    "race": (Source("https://www.cs.cmu.edu/~glai1/data/race/RACE.tar.gz", r"RACE/((?:train|dev|test)/\w+/\d+\.txt)"),),
    "dream": _files(
        f"{_GITHUB}/nlpdata/dream/bb64644c209cb6497bb9e13244fbf220c900a740/data", "train.json", "dev.json", "test.json"
    ),
    "conll2003": (Source("https://data.deepai.org/conll2003.zip", r"(?:.*/)?((?:train|valid|test)\.txt)"),),
    "wnut17": _files(
        f"{_GITHUB}/leondz/emerging_entities_17/e52a2d2a71ac1a051ca2d532eef28653c5c02603",
        "wnut17train.conll",
        "emerging.dev.conll",
        "emerging.test.annotated",
    ),
    "semeval2010": (
        Source(
            "https://github.com/sahitya0000/Relation-Classification/raw/8eebbf2727013aaaa5ecd18b1f4732bd848e1e1c/corpus/"
            "SemEval2010_task8_all_data.zip",
            r"(?:.*/)?(TRAIN_FILE\.TXT|TEST_FILE_FULL\.TXT)",
        ),
    ),
    "squad1.1": _SQUAD1,
    "squad2.0": _files(_SQUAD, "train-v2.0.json", "dev-v2.0.json"),
    "squad_qg": _SQUAD1,
    "squad_qg_du": _DU,
    "squad_qg_reversed": _DU,
    "coqa": _COQA,
    "coqa_free": _COQA,
    "cnn_dailymail": Hub("abisee/cnn_dailymail", "3.0.0", ("article", "highlights")),
    "gigaword": _GIGAWORD,
    "gigaword_10k": _GIGAWORD,
    "xsum": Hub("EdinburghNLP/xsum", None, ("document", "summary")),
}


def download(name: str, folder: Path) -> None:
    """The files of a task, in ``folder``."""
    sources = SOURCES[name]
    if isinstance(sources, Hub):
        _write_rows(sources, folder)
        return
    for source in sources:
        path = fetch(source.url, folder)
        if source.members is None:
            shutil.copyfile(path, folder / path.name)
            continue
        names = [_written(member, stream, source.members, folder) for member, stream in _members(path)]
        if not any(names):
            raise UnifiedError(f"{path}: holds none of the files {source.members}; has the archive changed?")
    if name == "mrpc":
        divide_mrpc(folder)


def _write_rows(hub: Hub, folder: Path) -> None:
    """``train.jsonl``, ``validation.jsonl`` and ``test.jsonl``, unless they are there."""
    for split in ("train", "validation", "test"):
        path = folder / f"{split}.jsonl"
        if not path.exists():
            rows = hub_rows(hub.name, hub.configuration, split)
            write_jsonl(path, ({field: row[field] for field in hub.fields} for row in rows))


def divide_mrpc(folder: Path) -> None:
    """GLUE's ``train.tsv``, ``dev.tsv`` and ``test.tsv`` of the original files and the list of development pairs."""
    (header, *rows), (_, *tests) = (_lines(folder / f"msr_paraphrase_{part}.txt") for part in ("train", "test"))
    chosen = {tuple(line.split("\t")[:2]) for line in _lines(folder / "mrpc_dev_ids.tsv")}
    is_dev = [tuple(row.split("\t")[1:3]) in chosen for row in rows]
    _write(folder / "dev.tsv", [header, *(row for row, dev in zip(rows, is_dev, strict=True) if dev)])
    _write(folder / "train.tsv", [header, *(row for row, dev in zip(rows, is_dev, strict=True) if not dev)])
    numbered = (f"{i}\t" + row.partition("\t")[2] for i, row in enumerate(tests))
    _write(folder / "test.tsv", ["\t".join(["index", *header.split("\t")[1:]]), *numbered])


def _members(path: Path) -> Iterator[tuple[str, object]]:
    """Names and streams of the files in an archive.

    Raises:
        UnifiedError: the archive holds a link, which may lead out of it.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for record in archive.infolist():
                _require_no_link(path, record.filename, stat.S_ISLNK(record.external_attr >> 16))
                yield record.filename, archive.open(record)
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                _require_no_link(path, member.name, member.issym() or member.islnk())
                yield member.name, archive.extractfile(member)


def _require_no_link(path: Path, name: str, is_link: bool) -> None:
    if is_link:
        raise UnifiedError(f"{path}: {name} is a link; no archive of a data set needs one")


def _written(member: str, stream, pattern: str, folder: Path) -> bool:
    match = re.fullmatch(pattern, member)
    if match is None or stream is None:
        return False
    target = folder / match[1]
    target.parent.mkdir(parents=True, exist_ok=True)
    with stream, target.open("wb") as file:
        shutil.copyfileobj(stream, file)
    return True


def _lines(path: Path) -> list[str]:
    return [line for _, line in numbered_lines(path)]


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder that gets a folder for each data set")
    names = (*SOURCES, "debug")
    parser.add_argument(
        "names", nargs="+", choices=names, metavar="NAME", help=f"data set to download: {', '.join(names)}"
    )
    return parser


def main(arguments: list[str] | None = None) -> None:
    options = argument_parser().parse_args(arguments)
    for name in options.names:
        if name == "debug":
            task_debug.write(options.folder)
        else:
            download(name, options.folder / name)


if __name__ == "__main__":
    try:
        main()
    except (UnifiedError, OSError) as error:
        sys.exit(f"task_data: error: {error}")
