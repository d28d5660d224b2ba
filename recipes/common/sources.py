"""What the recipes' prepare scripts share: downloads, reading, writing, and the separator symbol.

python recipes/common/sources.py DATA '|' .      # the pieces of these symbols that DATA's dictionary knows
"""

from __future__ import annotations

import gzip
import json
import lzma
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from unified.checkpoints.trained import dictionary_file
from unified.data.vocabulary import Vocabulary
from unified.data.windows import TokenCounter
from unified.errors import UnifiedError
from unified.tokenization import load_tokenizer, symbols


def fetch(url: str, folder: Path) -> Path:
    """Download ``url`` into ``folder/downloads`` unless it is there; a broken transfer leaves nothing behind."""
    target = folder / "downloads" / url.rsplit("/", 1)[-1]
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    print(f"downloading {url}", flush=True)
    try:
        urllib.request.urlretrieve(url, part)
    except OSError as error:
        raise UnifiedError(f"{url}: {error}; fetch it by hand and pass it with --local") from None
    return part.rename(target)


def hub_rows(name: str, configuration: str | None, split: str, streaming: bool = False) -> Iterable[dict]:
    """Rows of a Hugging Face data set; ``streaming`` reads them as they arrive instead of storing all first."""
    try:
        from datasets import load_dataset
    except ImportError:
        raise UnifiedError("downloading needs `pip install datasets`; or pass files of your own") from None
    return load_dataset(name, configuration, split=split, streaming=streaming)


def open_text(path: Path) -> TextIO:
    """A UTF-8 file, plain, .gz or .xz."""
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(Path(path).suffix, open)
    return opener(path, "rt", encoding="utf-8")


def read_rows(path: Path) -> Iterable[dict]:
    """Objects of a JSON lines file."""
    with open_text(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise UnifiedError(f"{path}, line {number}: not JSON ({error})") from None


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def write_jsonl(path: Path, rows: Iterable[dict]) -> None:
    """One object a line, written as they come; says how many. The file takes its name when it is complete."""
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for row in rows:
            count += 1
            yield json.dumps(row, ensure_ascii=False)

    part = path.with_name(path.name + ".part")
    write_lines(part, lines())
    part.rename(path)
    print(f"{path}: {count:,} rows", flush=True)


def counter(folder: Path | None) -> TokenCounter:
    """How many tokens a text has by the tokenizer in ``folder``; words where there is none."""
    return TokenCounter(str.split if folder is None else load_tokenizer(folder).encode)


def symbol_pieces(folder: Path, symbol: str) -> list[str]:
    """How ``symbol`` is written, as far as the folder's dictionary knows it."""
    return symbols.symbol_pieces(load_tokenizer(folder), Vocabulary.load(dictionary_file(folder)), symbol)


def require_symbol(folder: Path, symbol: str) -> None:
    """Refuse a separator that the tokenizer of ``folder`` does not keep as one piece of its own."""
    symbols.require_symbol(load_tokenizer(folder), Vocabulary.load(dictionary_file(folder)), symbol)


if __name__ == "__main__":
    try:
        known = {piece for symbol in sys.argv[2:] for piece in symbol_pieces(Path(sys.argv[1]), symbol)}
    except (UnifiedError, OSError) as error:
        sys.exit(f"sources: error: {error}")
    print(" ".join(sorted(known)))
