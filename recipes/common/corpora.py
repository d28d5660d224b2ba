"""Public corpora to pre-train on, as JSON lines with a document's ``text`` in each.

    python recipes/common/corpora.py FOLDER wikipedia books
    python recipes/common/corpora.py FOLDER c4 --documents 10000000
    python recipes/common/corpora.py FOLDER debug

writes FOLDER/<corpus>.jsonl. The corpora come from Hugging Face (`pip install '.[hub]'`) and are read as they arrive;
``debug`` is made on the spot (debug_text.py). Text of your own needs none of this: `unified prepare` reads it as it is.

| name | what | published systems |
|---|---|---|
| wikipedia | English Wikipedia of 2023-11, markup removed | all but T5, in older versions |
| books | BookCorpusOpen, gathered anew (BookCorpus is not distributed any more) | BERT, SpanBERT, XLNet |
| c4 | English C4, web pages, 750 GB: take a part with --documents | T5, ANNA |
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from debug_text import documents as debug_documents  # noqa: E402
from sources import hub_rows, write_jsonl  # noqa: E402

from unified.errors import UnifiedError  # noqa: E402


@dataclass(frozen=True)
class HubCorpus:
    """A Hugging Face data set whose rows have a field ``text``."""

    name: str
    configuration: str | None = None

    def rows(self) -> Iterable[dict]:
        return hub_rows(self.name, self.configuration, "train", streaming=True)


CORPORA = {
    "wikipedia": HubCorpus("wikimedia/wikipedia", "20231101.en"),
    "books": HubCorpus("lucadiliello/bookcorpusopen"),
    "c4": HubCorpus("allenai/c4", "en"),
}
DEBUG = "debug"


def texts(corpus: str) -> Iterator[dict]:
    """``{"text": ...}`` of every document that is not empty."""
    if corpus == DEBUG:
        yield from ({"text": "\n".join(paragraphs)} for paragraphs in debug_documents())
        return
    for row in CORPORA[corpus].rows():
        if row["text"].strip():
            yield {"text": row["text"]}


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="public corpora as JSON lines")
    parser.add_argument("folder", type=Path, help="folder to write")
    parser.add_argument(
        "corpora", nargs="+", choices=[*CORPORA, DEBUG], metavar="CORPUS", help="corpus, such as wikipedia or books"
    )
    parser.add_argument(
        "--documents", type=int, metavar="N", help="take the first N documents of each corpus (default: all)"
    )
    return parser


def main(arguments: list[str] | None = None) -> None:
    options = argument_parser().parse_args(arguments)
    for corpus in options.corpora:
        target = options.folder / f"{corpus}.jsonl"
        if target.exists():
            print(f"{target}: is there already")
        else:
            write_jsonl(target, islice(texts(corpus), options.documents))


if __name__ == "__main__":
    try:
        main()
    except (UnifiedError, OSError) as error:
        sys.exit(f"corpora: error: {error}")
