"""Minimal pairs for tests of `unified evaluate`, and what its results say of files."""

from __future__ import annotations

import hashlib
from pathlib import Path

PAIRS = [
    {"sentence_good": f"w{i} w1 w2", "sentence_bad": f"w{i} w{1 if i in equal else i} w2", "UID": uid, "field": field,
     "linguistics_term": "a_term"}
    for uid, field, equal in (("agreement", "syntax", (3, 4)), ("islands", "accuracy", (8,)))
    for i in range(3, 9)
]  # fmt: skip


def joined(*digests: str) -> str:
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
