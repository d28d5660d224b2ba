"""Functions that recipes share: downloads, rows of JSON, and the pieces of a symbol.

Files come by urllib, which refuses transfers that end early. Their SHA-256 are in ``sha256.txt``: those that the
libraries datasets (Hugging Face) and tensorflow_datasets recorded, and those of files in repositories, which are named
by commit. pooch would do what `fetch` does and no more: it cannot continue a broken transfer either.

python recipes/common/sources.py DATA '|' .      # the pieces of these symbols that DATA's dictionary knows
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from unified.arguments import counted
from unified.checkpoints.trained import dictionary_file
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.files.hashes import file_hash
from unified.tokenization import load_tokenizer, symbols


def fetch(url: str, folder: Path) -> Path:
    """Download ``url`` into ``folder/downloads`` unless it is there; a broken transfer leaves nothing behind.

    Raises:
        UnifiedError: the file cannot be had, or its SHA-256 is not the known one.
    """
    target, wanted = folder / "downloads" / url.rsplit("/", 1)[-1], known_hashes()[url]
    if target.exists():
        _require_hash(target, wanted, f"{target}: not the file of {url}; remove it, so that it is downloaded again")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    print(f"downloading {url}", flush=True)
    try:
        urllib.request.urlretrieve(url, part)
    except OSError as error:
        raise UnifiedError(f"{url}: {error}; fetch it by hand as {target}") from None
    try:
        _require_hash(part, wanted, f"{url}: the file has changed")
    except UnifiedError:
        part.unlink()
        raise
    return part.rename(target)


@cache
def known_hashes() -> dict[str, str]:
    """Address of a file -> its SHA-256."""
    lines = Path(__file__).with_name("sha256.txt").read_text(encoding="utf-8").splitlines()
    return {url: digest for digest, url in (line.split() for line in lines)}


def _require_hash(path: Path, wanted: str, problem: str) -> None:
    found = file_hash(path)
    if found != wanted:
        raise UnifiedError(f"{problem} (SHA-256 {found}, known is {wanted})")


def hub_rows(name: str, configuration: str | None, split: str, streaming: bool = False) -> Iterable[dict]:
    """Rows of a Hugging Face data set; ``streaming`` reads them as they arrive instead of storing all first."""
    try:
        from datasets import load_dataset
    except ImportError:
        raise UnifiedError(
            "downloading needs the library datasets; install it with: pip install '.[hub]' in the library's folder; "
            "or pass files of your own"
        ) from None
    return load_dataset(name, configuration, split=split, streaming=streaming)


def write_jsonl(path: Path, rows: Iterable[dict]) -> None:
    """One object a line, written as they come; says how many. The file takes its name when it is complete."""
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for row in rows:
            count += 1
            yield json.dumps(row, ensure_ascii=False) + "\n"

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as stream:
        stream.writelines(lines())
    part.rename(path)
    print(f"{path}: {counted(count, 'row')}", flush=True)


def symbol_pieces(folder: Path, symbol: str) -> list[str]:
    """Spelling of ``symbol`` in pieces, as far as the folder's dictionary knows it."""
    return symbols.symbol_pieces(load_tokenizer(folder), Vocabulary.load(dictionary_file(folder)), symbol)


if __name__ == "__main__":
    try:
        known = {piece for symbol in sys.argv[2:] for piece in symbol_pieces(Path(sys.argv[1]), symbol)}
    except (UnifiedError, OSError) as error:
        sys.exit(f"sources: error: {error}")
    print(" ".join(sorted(known)))
