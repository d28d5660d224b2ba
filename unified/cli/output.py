"""Files of ``--output``, and results printed for programs: with ``--json`` one JSON object alone on standard output."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from unified.cli.configuration import FILE_NAME as OPTIONS
from unified.cli.needed_options import require_with
from unified.errors import UnifiedError
from unified.files.claims import FILE_NAME as CLAIM
from unified.files.destination import MANIFEST, require_place
from unified.files.whole import require_new, resolved
from unified.reports.results import FILE_NAME as RESULTS
from unified.reports.results import command_of


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``."""
    parser.add_argument(
        "--json", action="store_true", help="print the results as one JSON object, and nothing else on standard output"
    )


def print_json(content: Mapping[str, Any]) -> None:
    """Print an object; paths are written as texts."""
    print(json_text(content), flush=True)


def json_text(content: Mapping[str, Any]) -> str:
    """JSON that every program reads: NaN and infinite numbers, which JSON lacks, are null, and paths are texts."""
    return json.dumps(_finite(content), indent=2, ensure_ascii=False, default=os.fspath)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def add_overwrite_argument(parser: argparse._ActionsContainer) -> None:
    """Declare ``--overwrite`` of a command whose ``--output`` is a file."""
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")


def require_output_file(args: argparse.Namespace) -> None:
    """Refuse, before any work, an ``--output`` that cannot be a file, or that would replace what it must not.

    Where it is a symbolic link, ``args.output`` becomes what the link leads to, which is replaced instead of the link.

    Raises:
        UnifiedError: it is a folder, a device or a pipe, would lie in a file or in a folder that the user may not write
            into, or is a link to itself; it is a file that another argument names, or one that runs and prepared
            folders consist of: a checkpoint, results, settings, a manifest; it exists, and ``--overwrite`` is not
            given, or that is given alone.
    """
    require_with("--output", args.output, {"--overwrite": args.overwrite})
    if args.output is None:
        return
    output = Path(args.output)
    if output.is_dir():
        raise UnifiedError(f"--output {output}: a folder; name a file")
    if output.exists() and not output.is_file():
        raise UnifiedError(f"--output {output}: a device or a pipe, which would be replaced; name a file")
    require_place(output, f"--output {output}")
    if output.is_symlink():
        args.output = str(resolved(output))
    if output.exists() and any(os.path.exists(path) and output.samefile(path) for path in _other_paths(args)):
        raise UnifiedError(f"--output {output}: a file that the command reads; name another one")
    if output.exists() and any(map(_is_kept, (output, Path(args.output)))):
        raise UnifiedError(f"--output {output}: belongs to a run or to prepared data; name another file")
    require_new(output, args.overwrite)


def output_file(args: argparse.Namespace) -> Path:
    """The file of ``--output``, whose folder is made where it is not there."""
    path = Path(args.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _is_kept(file: Path) -> bool:
    """Whether a folder that a command has made needs a file; a user may call scores ``results.json``, too."""
    if file.name == RESULTS:
        return bool(command_of(file))
    return file.name in (OPTIONS, CLAIM, MANIFEST) or file.suffix == ".pt"


def _other_paths(args: argparse.Namespace) -> Iterator[str | Path]:
    """Texts of all arguments but ``--output``, each of which may be the name of a file."""
    for name, value in vars(args).items():
        for text in value if isinstance(value, list) else [value]:
            if name != "output" and isinstance(text, str | Path):
                yield text


@contextmanager
def standard_output_for_json() -> Iterator[None]:
    """A ``with`` block in which the output of this process and its children goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
