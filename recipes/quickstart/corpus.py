"""Build the quickstart's corpus from English that every install has: the documentation of installed packages.

    python recipes/quickstart/corpus.py --output quickstart/corpus

reads the source files of Python's standard library, torch, numpy, scipy and scikit-learn (whichever are there;
nothing is imported or downloaded), takes their documentation strings, and writes

    documents/{train,valid}.txt                 sentences, one a line, a blank line between documentation strings
    restore/{train,valid,test}.{source,target}  target: a clean sentence; source: lower-cased, without punctuation
    summarize/{train,valid,test}.jsonl          source: qualified name and documentation body; target: first sentence

Modules are dealt to train, valid and test by a hash of their names. A sentence of valid or test that occurs anywhere
in a training module is left out, whatever its capitals and marks. The same packages give the same files.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import inspect
import json
import os
import sys
import sysconfig
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import prose

DISTRIBUTIONS = {"torch": "torch", "numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn"}
SPLITS = ("train", "valid", "test")
_HELD_OUT_PERCENT = {"valid": 4, "test": 6}
_SKIPPED_FOLDERS = {"site-packages", "dist-packages", "test", "tests", "testing", "idle_test", "__pycache__"}
#: Functions whose arguments are documentation of compiled code.
_DOCUMENTING_CALLS = {"add_docstr", "_add_docstr", "add_newdoc"}
_MIN_BODY_WORDS, _MAX_BODY_WORDS = 10, 300


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    folder: Path


@dataclass(frozen=True)
class Documentation:
    """One documentation string, its indentation removed, and the qualified name of what it documents."""

    name: str
    text: str


@dataclass(frozen=True)
class Passage:
    """The kept part of one documentation string."""

    clean: list[str]
    running: list[str]
    summary: tuple[str, str] | None  # source, target


def find_packages() -> list[Package]:
    """The standard library and those of :data:`DISTRIBUTIONS` that are installed."""
    found = [Package("python", ".".join(map(str, sys.version_info[:3])), Path(sysconfig.get_path("stdlib")))]
    for name, distribution in DISTRIBUTIONS.items():
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found.append(Package(name, version(distribution), Path(spec.submodule_search_locations[0])))
    return found


def modules(package: Package) -> list[tuple[str, Path]]:
    """Dotted name and source file of every module outside of tests, sorted by name."""
    found = []
    for folder, subfolders, files in os.walk(package.folder):
        subfolders[:] = [name for name in subfolders if name not in _SKIPPED_FOLDERS]
        for file in files:
            if file.endswith(".py"):
                path = Path(folder, file)
                names = [package.name, *path.relative_to(package.folder).with_suffix("").parts]
                found.append((".".join(names).removesuffix(".__init__"), path))
    return sorted(found)


def split_of(module: str) -> str:
    """ "train", "valid" or "test", decided by the module's name alone."""
    percentile = int.from_bytes(hashlib.sha256(module.encode()).digest()[:8], "big") % 100
    for split, percent in _HELD_OUT_PERCENT.items():
        if percentile < percent:
            return split
        percentile -= percent
    return "train"


def documentation(module: str, source: bytes) -> list[Documentation]:
    """Documentation strings of a module, its classes and functions, and of ``add_docstr`` calls, in file order.

    Raises:
        SyntaxError, ValueError: ``source`` is not Python this interpreter reads.
    """
    if b'"""' not in source and b"'''" not in source:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        tree = ast.parse(source)
    return list(_documented(tree, module))


def _documented(node: ast.AST, name: str) -> Iterator[Documentation]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        text = ast.get_docstring(node)
        if text:
            yield Documentation(name, text)
    elif isinstance(node, ast.Call) and _called(node) in _DOCUMENTING_CALLS:
        yield from _attached(node, name)
        return
    elif isinstance(node, ast.expr) and not isinstance(node, ast.Call):
        return
    for child in ast.iter_child_nodes(node):
        inner = isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _documented(child, f"{name}.{child.name}" if inner else name)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _attached(call: ast.Call, module: str) -> Iterator[Documentation]:
    """``add_docstr(torch.abs, "text".format(...))`` and ``add_newdoc("numpy", "abs", "text")``."""
    texts = [
        n.value for a in call.args for n in ast.walk(a) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    text = max(texts, key=len, default="")
    if len(text.split()) < prose.MIN_WORDS:
        return
    given = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    names = [name for name in given if name.replace(".", "").isidentifier()]
    name = ".".join(names) or ast.unparse(call.args[0])
    root = module.partition(".")[0]
    yield Documentation(name if name.startswith(root) else f"{module}.{name}", inspect.cleandoc(text))


def read_module(job: tuple[str, Path]) -> list[Passage] | None:
    """The passages of one module; None where this interpreter cannot read it."""
    module, path = job
    try:
        found = documentation(module, path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return None
    return [passage(one) for one in found]


def passage(document: Documentation) -> Passage:
    running = [s for s in prose.all_sentences(document.text) if prose.is_running_text(s)]
    return Passage([s for s in running if prose.is_prose(s)], running, summary_pair(document))


def summary_pair(document: Documentation) -> tuple[str, str] | None:
    """("qualified name: body", "first sentence"), or None where either is missing or too short."""
    head, rest = _first_block(document.text)
    if prose.is_signature(head):
        head, rest = _first_block(rest)
    first, *others = prose.split_sentences(head) or [""]
    first = prose.plain(first)
    if not (3 <= len(first.split()) <= 30 and first[0].isupper() and first.endswith(".") and first.isascii()):
        return None
    words = prose.plain(" ".join([*others, prose.without_code(rest)])).split()
    if len(words) < _MIN_BODY_WORDS:
        return None
    return f"{document.name}: {' '.join(words[:_MAX_BODY_WORDS])}", first


def _first_block(text: str) -> tuple[str, str]:
    head, _, rest = text.strip().partition("\n\n")
    return " ".join(head.split()), rest


def read_packages(packages: Iterable[Package], processes: int) -> Iterator[tuple[str, list[Passage]]]:
    """(split, passages) of every module, in the order of :func:`modules`; prints the passages of each package."""
    with ProcessPoolExecutor(processes) as pool:
        for package in packages:
            jobs = modules(package)
            unread = sentences = 0
            for (module, _), passages in zip(jobs, pool.map(read_module, jobs, chunksize=16), strict=True):
                unread += passages is None
                sentences += sum(len(one.clean) for one in passages or [])
                yield split_of(module), passages or []
            note = f" ({unread} not readable by this Python)" if unread else ""
            print(f"{package.name} {package.version}: {len(jobs):,} modules{note}, {sentences:,} clean sentences")


def build(passages: dict[str, list[Passage]], *, held_out: int = 1000) -> dict[str, list[str]]:
    """File name -> lines, for all files of the corpus.

    Args:
        passages: what was found in the modules of each split.
        held_out: at most so many pairs in each valid and test file, spread over all modules.
    """
    files: dict[str, list[str]] = {}
    earlier: dict[str, None] = {}  # keys of every sentence of the splits before
    bodies: set[str] = set()
    for split in SPLITS:
        most = None if split == "train" else held_out
        keys = {prose.without_marks(s): None for one in passages[split] for s in one.running}
        seen = contained(keys, earlier)
        clean = _once([one.clean for one in passages[split]], seen)
        if split != "test":
            files[f"documents/{split}.txt"] = _text(_once([one.running for one in passages[split]], seen))
        wanted = prose.is_restorable if split == "train" else prose.is_restoring_test
        targets = _spread([s for document in clean for s in document if wanted(s)], most)
        files[f"restore/{split}.target"] = targets
        files[f"restore/{split}.source"] = [prose.without_marks(target) for target in targets]
        pairs = _unseen_pairs(passages[split], bodies, earlier)
        files[f"summarize/{split}.jsonl"] = [json.dumps({"source": s, "target": t}) for s, t in _spread(pairs, most)]
        earlier |= keys
    return files


def contained(keys: Iterable[str], texts: Iterable[str]) -> set[str]:
    """The ``keys`` that occur in one of ``texts`` as whole words; words are separated by single spaces."""
    starts: dict[tuple[str, ...], list[list[str]]] = {}
    for key in keys:
        words = key.split(" ")
        starts.setdefault(tuple(words[: prose.MIN_WORDS]), []).append(words)
    found = set()
    for text in texts:
        words = text.split(" ")
        for i in range(len(words) - prose.MIN_WORDS + 1):
            for candidate in starts.get(tuple(words[i : i + prose.MIN_WORDS]), ()):
                if words[i : i + len(candidate)] == candidate:
                    found.add(" ".join(candidate))
    return found


def _once(documents: list[list[str]], seen: set[str]) -> list[list[str]]:
    """``documents`` without sentences whose key is in ``seen`` or came before, and without empty documents."""
    seen = set(seen)
    kept = []
    for document in documents:
        fresh = []
        for sentence in document:
            key = prose.without_marks(sentence)
            if key not in seen:
                seen.add(key)
                fresh.append(sentence)
        if fresh:
            kept.append(fresh)
    return kept


def _unseen_pairs(passages: list[Passage], bodies: set[str], earlier: dict[str, None]) -> list[tuple[str, str]]:
    """Summaries whose body occurs for the first time and whose target is no sentence of an earlier split."""
    pairs = []
    for one in passages:
        if one.summary is not None:
            _, _, body = one.summary[0].partition(": ")
            if body not in bodies and prose.without_marks(one.summary[1]) not in earlier:
                pairs.append(one.summary)
            bodies.add(body)
    return pairs


def _spread(items: list, most: int | None) -> list:
    """``most`` items at even distances, in order; all of them where there are fewer."""
    if most is None or len(items) <= most:
        return items
    return [items[i * len(items) // most] for i in range(most)]


def _text(documents: list[list[str]]) -> list[str]:
    """Documents as lines, an empty line between two."""
    return [line for i, document in enumerate(documents) for line in ([""] if i else []) + document]


def write(files: dict[str, list[str]], folder: Path) -> None:
    """Write all files or none: the folder takes its name when it is complete."""
    unfinished = folder.with_name(folder.name + ".part")
    for name, lines in files.items():
        path = unfinished / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    unfinished.rename(folder)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="English from the documentation of the installed packages")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FOLDER", help="folder to write, which must not exist yet"
    )
    parser.add_argument(
        "--held-out", type=int, default=1000, metavar="N", help="most pairs in valid and in test (default: %(default)s)"
    )
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: one for each core)"
    )
    options = parser.parse_args(arguments)
    if options.output.exists():
        raise SystemExit(f"{options.output} exists already; remove it, or choose another folder with --output")
    start = time.monotonic()
    passages: dict[str, list[Passage]] = {split: [] for split in SPLITS}
    for split, found in read_packages(find_packages(), options.workers):
        passages[split] += found
    files = build(passages, held_out=options.held_out)
    write(files, options.output)
    for name, lines in files.items():
        filled = [line for line in lines if line]
        print(f"{options.output / name}: {len(filled):,} lines, {sum(map(len, filled)):,} characters")
    print(f"corpus made in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
