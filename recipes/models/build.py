"""Packages a fine-tuned model for Python: a folder that pip installs, with the weights in half precision.

    python recipes/models/build.py NAME RUN OUTPUT

RUN is a folder of `unified finetune`. OUTPUT becomes a package `unified_NAME` whose PATH is a folder for `transformers`
and for `unified.load`. The weights' SHA-256 is printed, and written to SHA256SUMS.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import torch

import unified
from unified.errors import UnifiedError
from unified.files.destination import new_folder
from unified.files.hashes import file_hash
from unified.reports.model_card import model_card
from unified.reports.results import read_results

#: Megabytes of weights that a package may have.
MOST_MEGABYTES = 50
PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "unified-lm-{name}"
version = "{version}"
description = "A model of UNIFIED: {name}"
readme = "README.md"
requires-python = ">=3.11"

[tool.setuptools]
packages = ["unified_{name}"]

[tool.setuptools.package-data]
unified_{name} = ["model/*"]
"""
CODE = '''"""A model of UNIFIED, see README.md; ``unified.load(PATH)`` loads it."""

from pathlib import Path

#: The model's folder, which transformers loads, too: ``from_pretrained(PATH, trust_remote_code=True)``.
PATH = str(Path(__file__).parent / "model")
'''


def build(name: str, run: Path, output: Path, most_megabytes: float = MOST_MEGABYTES) -> str:
    """Makes the package; returns the checksum of its weights.

    Raises:
        UnifiedError: the name is none for a package, the run holds no model, or its weights are too large.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UnifiedError(f"{name!r} is no name of a package: lower-case letters, digits and _")
    model = unified.load(run)
    with new_folder(output, overwrite=False) as folder:
        package = folder / f"unified_{name}"
        package.mkdir()
        model.save_pretrained(package / "model", dtype=torch.float16)
        weights = package / "model" / "model.safetensors"
        if (size := weights.stat().st_size / 10**6) > most_megabytes:
            raise UnifiedError(f"{run}: its weights take {size:.1f} MB, larger than {most_megabytes} MB")
        config = json.loads((package / "model" / "config.json").read_text(encoding="utf-8"))
        card = model_card(read_results([run]), config, Path(output.name) / package.name / "model")
        checksum = file_hash(weights)
        for path, text in {
            package / "__init__.py": CODE,
            package / "model" / "README.md": card,
            folder / "README.md": card,
            folder / "pyproject.toml": PROJECT.format(name=name, version=unified.__version__),
            folder / "SHA256SUMS": f"{checksum}  {weights.relative_to(folder)}\n",
        }.items():
            path.write_text(text, encoding="utf-8")
    return checksum


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="what the model is for: the package is called unified_NAME")
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of unified finetune")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="folder to make; it must not exist or be empty")
    arguments = parser.parse_args(words)
    checksum = build(arguments.name, arguments.run, arguments.output)
    print(f"{arguments.output}: package unified_{arguments.name}; SHA-256 of its weights {checksum}")


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"build: error: {error}")
