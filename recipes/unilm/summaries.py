"""CNN/DailyMail, Gigaword or XSum to pairs; what the three prepare.sh share.

    python recipes/unilm/summaries.py cnn_dailymail OUTPUT --oracle
    python recipes/unilm/summaries.py gigaword OUTPUT --subset 10000 --local train.jsonl validation.jsonl test.jsonl
    python recipes/unilm/summaries.py xsum OUTPUT --debug

Writes OUTPUT/{train,valid,test}.jsonl, see `unified pairs`. What is downloaded from Hugging Face stays in OUTPUT/raw.
--local takes files of that form, or folders of .story or .summary files.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from debug_text import documents  # noqa: E402
from sources import hub_rows, read_rows, require_symbol, write_jsonl  # noqa: E402

from unified.data.parallel import available_cores  # noqa: E402
from unified.data.summaries.inputs import Inputs  # noqa: E402
from unified.data.summaries.pairs import PairConverter, write_pairs  # noqa: E402
from unified.errors import UnifiedError  # noqa: E402

#: Data set on the hub, its configuration, and the fields of a text and of its summary.
SETS = {
    "cnn_dailymail": ("abisee/cnn_dailymail", "3.0.0", "article", "highlights"),
    "gigaword": ("Harvard/gigaword", None, "document", "summary"),
    "xsum": ("EdinburghNLP/xsum", None, "document", "summary"),
}
PARTS = {"train": "train", "valid": "validation", "test": "test"}
DEBUG_ROWS = {"train": 60, "valid": 8, "test": 8}


def debug_rows(name: str, part: str) -> Iterator[dict]:
    """Rows of generated text: the summary of a document is the first sentence of each paragraph, or of the first."""
    _, _, text, summary = SETS[name]
    for document in documents(DEBUG_ROWS[part], seed=1 + list(PARTS).index(part)):
        paragraphs = [". ".join(paragraph.split(". ")[:2]) + "." for paragraph in document]
        firsts = [paragraph.split(". ")[0] + "." for paragraph in paragraphs]
        if name == "cnn_dailymail":
            yield {text: "\n".join(paragraphs), summary: "\n".join(firsts)}
        else:
            yield {text: "\n".join(paragraphs[: 1 if name == "gigaword" else None]), summary: firsts[0]}


def raw_rows(name: str, part: str, debug: bool) -> Iterable[dict]:
    if debug:
        return debug_rows(name, part)
    hub, configuration, text, summary = SETS[name]
    return ({text: row[text], summary: row[summary]} for row in hub_rows(hub, configuration, PARTS[part]))


def keep_some(path: Path, count: int, seed: int) -> None:
    """Leave ``count`` rows of a file, drawn at random."""
    rows = list(read_rows(path))
    if count < len(rows):
        write_jsonl(path, random.Random(seed).sample(rows, count))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="a data set of summaries to pairs")
    parser.add_argument("name", choices=tuple(SETS))
    parser.add_argument("output", type=Path, help="folder to write")
    parser.add_argument("--local", nargs=3, type=Path, metavar="FILE", help="train, validation, test; no download")
    parser.add_argument("--debug", action="store_true", help="generated text instead of a download")
    parser.add_argument("--tokenizer", type=Path, help="folder whose tokenizer must know the separator")
    parser.add_argument("--separator", default="|", help="symbol between the sentences of a summary (|)")
    parser.add_argument("--oracle", action="store_true", help="say which sentences the greedy oracle takes")
    parser.add_argument("--subset", type=int, metavar="N", help="keep N training pairs, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="of the subset")
    options = parser.parse_args(arguments)
    if options.tokenizer:
        require_symbol(options.tokenizer, options.separator)
    for i, part in enumerate(PARTS):
        raw = options.local[i] if options.local else options.output / "raw" / f"{part}.jsonl"
        if options.debug or not (options.local or raw.exists()):
            write_jsonl(raw, raw_rows(options.name, part, options.debug))
        pairs = options.output / f"{part}.jsonl"
        # A few rows of each data set have an empty side.
        converter = PairConverter(Inputs(options.name, (str(raw),)), options.separator, options.oracle, skip_empty=True)
        counts = write_pairs(converter, pairs, available_cores(), overwrite=True)
        print(f"{pairs}: {counts.pairs:,} pairs, {counts.empty:,} with an empty side left out", flush=True)
    if options.subset:
        keep_some(options.output / "train.jsonl", options.subset, options.seed)


if __name__ == "__main__":
    try:
        main()
    except (UnifiedError, OSError, KeyError) as error:
        sys.exit(f"summaries: error: {error}")
