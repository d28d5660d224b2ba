"""Classes declare what their objects offer: no code asks with ``hasattr`` or takes a default for what is missing."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: File and the line's call: features that an operating system may lack, and heads that describe themselves.
ALLOWED = {("unified/runtime/parallel.py", "hasattr(os, 'sched_getaffinity')")}


def guesses(source: str) -> list[str]:
    """Calls of ``hasattr``, and of ``getattr`` with a default."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [node for node in calls if isinstance(node.func, ast.Name)]
    return [
        ast.unparse(node)
        for node in named
        if node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) == 3)
    ]


def test_nobody_guesses_what_an_object_has():
    paths = [path for package in ("unified", "fairseq_plugins") for path in (ROOT / package).rglob("*.py")]
    assert len(paths) > 100
    found = {
        (str(path.relative_to(ROOT)), call) for path in paths for call in guesses(path.read_text(encoding="utf-8"))
    }
    assert found <= ALLOWED, sorted(found - ALLOWED)


def test_guesses_are_found():
    assert guesses("getattr(a, 'b', None); getattr(a, 'b'); hasattr(a, 'c')") == [
        "getattr(a, 'b', None)",
        "hasattr(a, 'c')",
    ]
