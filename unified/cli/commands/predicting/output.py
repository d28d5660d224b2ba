"""``--output`` of ``unified predict``: what must not be replaced, or cannot be written."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from unified.errors import UnifiedError


def check_output(args: argparse.Namespace) -> None:
    """Refuse an ``--output`` that cannot be written or must not be replaced, before anything is read.

    Raises:
        UnifiedError: says why.
    """
    output = Path(args.output)
    if output.is_dir():
        raise UnifiedError(f"--output {output}: a folder, where the file of predictions should be")
    if output.exists() and not args.overwrite:
        raise UnifiedError(f"{output}: exists already; --overwrite replaces it, or give another --output")
    if output.exists() and os.path.exists(args.input) and output.samefile(args.input):
        raise UnifiedError(f"--output {output}: is INPUT, which would be lost; give another --output")
    if not output.parent.is_dir():
        raise UnifiedError(f"--output {output}: there is no folder {output.parent}")
