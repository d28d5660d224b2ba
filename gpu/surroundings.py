"""Packages that the checks and the measurements need: a missing one explains many failures."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import torch

from gpu.findings import Finding, Place

#: Modules that the checks import, directly or by what they import.
NEEDED = (
    *("torch", "numpy", "scipy", "sklearn", "sentencepiece", "tokenizers", "safetensors", "google_crc32c", "rapidfuzz"),
    *("sacrebleu", "rouge_score", "yaml", "tqdm", "zstandard", "fairseq", "omegaconf", "hydra", "bitarray", "regex"),
    *("pytest", "pytest_timeout", "xdist", "transformers"),
)
#: Releases that the figures of the documentation are of: older ones serve, but for what says that it skips.
TESTED = {"torch": (2, 13), "transformers": (5, 24)}


def check(place: Place) -> Iterator[Finding]:
    """Missing modules, versions, and what torch says of the card."""
    missing = {}
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except Exception as problem:  # a package that is broken is as good as missing
            missing[name] = f"{type(problem).__name__}: {problem}"
    yield Finding("packages that are missing", missing, {}, not missing, note="gpu/README.md says how to carry them")
    for name, tested in TESTED.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            continue  # said above
        older = tuple(int(part) for part in re.findall(r"\d+", found)[:2]) < tested
        wanted = ".".join(map(str, tested))
        note = f"older than the release that the library is tested with, {wanted}" if older else ""
        yield Finding(f"version of {name}", found, f"{wanted}, where all tests run", None if older else True, note=note)
    if not place.on_card:
        yield Finding("the card", None, "a CUDA card", None, note="a rehearsal on a CPU")
        return
    properties = torch.cuda.get_device_properties(place.device)
    card = {"name": properties.name, "gigabytes": round(properties.total_memory / 1e9, 1), "cuda": torch.version.cuda}
    holds = torch.cuda.is_bf16_supported()
    yield Finding("the card", card, "a CUDA card with bfloat16", holds)
