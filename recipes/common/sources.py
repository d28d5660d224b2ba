"""What the recipes' prepare scripts share: downloads, reading, writing, and the separator symbol.

python recipes/common/sources.py DATA '|' .      # the pieces of these symbols that DATA's dictionary knows
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from unified.data.vocabulary import Vocabulary
from unified.data.windows import TokenCounter
from unified.errors import UnifiedError
from unified.tokenization import load_tokenizer


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


def symbol_pieces(folder: Path, symbol: str) -> set[str]:
    """How ``symbol`` is written behind a word and by itself, as far as the folder's dictionary knows it."""
    tokenizer = load_tokenizer(folder)
    names = ("dict.txt", "dict.source.txt")
    vocabulary = Vocabulary.load(next((folder / n for n in names if (folder / n).exists()), folder / names[0]))
    written = {tokenizer.encode(text)[-1] for text in (f"a {symbol}", f"a{symbol}")}
    return {piece for piece in written if vocabulary.index(piece) != vocabulary.special.unknown}


def require_symbol(folder: Path, symbol: str) -> None:
    """Refuse a separator that the tokenizer of ``folder`` does not keep as one piece of its own.

    Raises:
        UnifiedError: it is written as several pieces or as the unknown symbol.
    """
    bare = [re.sub("^\u2581", "", piece) for piece in symbol_pieces(folder, symbol)]
    alone = load_tokenizer(folder).encode(f"a {symbol} a")
    if symbol not in bare or [re.sub("^\u2581", "", piece) for piece in alone].count(symbol) != 1:
        raise UnifiedError(f"{folder}: its tokenizer has no piece for the separator {symbol!r}; choose another symbol")


if __name__ == "__main__":
    try:
        known = set().union(*(symbol_pieces(Path(sys.argv[1]), symbol) for symbol in sys.argv[2:]))
    except (UnifiedError, OSError) as error:
        sys.exit(f"sources: error: {error}")
    print(" ".join(sorted(known)))
