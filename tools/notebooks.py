"""Runs the notebooks of the documentation, and keeps in them what their cells print.

    python tools/notebooks.py

Progress and warnings, which go to standard error, are not kept. A cell with the tag ``varies`` has trained a model: its
output differs from processor to processor. That of all other cells is the same everywhere, and tests compare it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from unified.masks import AttentionMask, pictures

DOCS = Path(__file__).resolve().parents[1] / "docs"
VARIES = "varies"

Cell = dict[str, Any]


def outputs_of(notebook: Path) -> list[tuple[Cell, list[dict[str, Any]]]]:
    """Runs a notebook in the folder that the process is in.

    Returns:
        its code cells, each with its outputs as a notebook has them: what is printed, and the value of an expression
        that stands last.
    """
    cells = [cell for cell in read(notebook)["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "notebook"}
    return [(cell, _run("".join(cell["source"]), names, number)) for number, cell in enumerate(cells, 1)]


def read(notebook: Path) -> dict[str, Any]:
    """The content of a notebook's file."""
    content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    return content


def varies(cell: Cell) -> bool:
    """Whether what a cell prints depends on the processor."""
    return VARIES in cell["metadata"].get("tags", [])


def _run(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value, printed = None, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"code cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"code cell {number}", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if isinstance(value, AttentionMask):  # Jupyter draws it
            data = {"image/svg+xml": _lines(pictures.svg(value)), **data}
        found.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def write_outputs(notebook: Path) -> None:
    """Runs a notebook in an empty folder, and writes the outputs into it."""
    content = read(notebook)
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            found = outputs_of(notebook)
        finally:
            os.chdir(before)
    for number, (cell, (_, outputs)) in enumerate(zip(code, found, strict=True), 1):
        cell |= {"execution_count": number, "outputs": outputs}
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for path in sorted(DOCS.rglob("*.ipynb")):
        write_outputs(path)
        print(f"wrote {path.relative_to(DOCS)}")
