"""The documentation site: its navigation, its first page of commands, its notebooks, and what it is made of.

`make docs` builds it, with every link and anchor checked; that takes too long for a test.
"""

from __future__ import annotations

import importlib.util
import io
import json
import re
import subprocess
from collections import Counter
from contextlib import chdir, redirect_stdout
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.support import fairseq_runs
from tests.support.prepared_python import interpreter

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
CONTENTS = DOCS / "README.md"  # of the pages on a code host; the site has its navigation instead
GENERATED = "reference/options/"
BLOCK = re.compile(r"^```(sh|python)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def module_of_file(path: Path) -> ModuleType:
    """A script of tools/, which is no package, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def navigation() -> dict[str, list[str]]:
    """Part of the navigation to the paths of its pages; notebooks, which the site shows as pages, by their files."""

    def paths(entry: object) -> list[str]:
        if isinstance(entry, str):
            notebook = f"{entry.removesuffix('.md')}.ipynb"
            return [notebook if (DOCS / notebook).exists() else entry]
        inner = entry if isinstance(entry, list) else entry.values()
        return [path for one in inner for path in paths(one)]

    parts = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    return {name: paths(entries) for part in parts for name, entries in part.items()}


def test_the_navigation_has_every_page_once():
    outside = {"index.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    outside |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "recipes").rglob("*.md")}
    pages = {*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb"), *DOCS.glob("*.html")} - {CONTENTS}
    expected = outside | {path.relative_to(DOCS).as_posix() for path in pages}
    listed = Counter(path for paths in navigation().values() for path in paths if not path.startswith(GENERATED))
    assert set(listed) == expected
    assert set(listed.values()) == {1}


def test_the_contents_have_the_pages_of_the_navigation_in_its_order():
    text = CONTENTS.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    for part, paths in navigation().items():
        wanted = [path for path in paths if (DOCS / path).exists()]
        assert re.findall(r"^\| \[[^]]+\]\(([^)]+)\)", sections[part], re.MULTILINE) == wanted, part


def test_the_glossary_has_at_most_45_words_in_order_and_no_page_repeats_it():
    words, _, _ = (DOCS / "glossary.md").read_text(encoding="utf-8").partition("\n## ")
    lines = words.splitlines()
    rows = [line.split("|")[1:-1] for line in lines if line.startswith("| ")][1:]
    terms = [row[0].strip() for row in rows]
    assert 40 <= len(terms) <= 45 and terms == sorted(set(terms))
    assert all(len(row) == 3 and row[1].strip() for row in rows)


@pytest.fixture(scope="module")
def ten_minutes(tmp_path_factory):
    """The folder in which everything on the page ran, with fewer updates and smaller; and what the blocks printed."""
    folder = tmp_path_factory.mktemp("start")
    for name in ("docs", "unified", "README.md"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "bin").mkdir()
    for name, module in (("unified", "unified.cli"), ("fairseq-train", "fairseq_cli.train")):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec {interpreter()} -m {module} "$@"\n', encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    own = fairseq_runs.environment()
    environment = {**own, "PATH": f"{folder / 'bin'}:{own['PATH']}"}
    printed = []
    for language, code in BLOCK.findall((DOCS / "start" / "ten_minutes.md").read_text(encoding="utf-8")):
        code = code.replace("--max-update 300", "--max-update 4").replace("--epochs 3", "--epochs 1")
        code = code.replace(" 600)", " 60)").replace(":1000]", ":100]").replace("[1000:", "[100:")
        if language == "python":
            said = io.StringIO()
            with chdir(folder), redirect_stdout(said):
                exec(compile(code, "ten_minutes.md", "exec"), {"__name__": "page"})
            printed.append(said.getvalue())
            continue
        result = subprocess.run(["bash", "-euc", code], cwd=folder, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, (code, result.stderr[-3000:])
        printed.append(result.stdout)
    return folder, printed


def test_everything_on_the_first_page_runs(ten_minutes):
    folder, printed = ten_minutes
    assert "7 queries (lines) and 7 keys (columns)" in printed[0]
    assert any('"label": ' in text for text in printed), "unified predict answers"
    assert json.loads((folder / "runs" / "lines" / "results.json").read_text(encoding="utf-8"))
    assert int(printed[-1]) > 100_000


@pytest.fixture(scope="module")
def notebooks():
    """tools/notebooks.py as a module."""
    return module_of_file(ROOT / "tools" / "notebooks.py")


@pytest.mark.parametrize("notebook", sorted(DOCS.rglob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_print_what_they_hold(notebook, tmp_path, monkeypatch, notebooks):
    monkeypatch.chdir(tmp_path)
    found = notebooks.outputs_of(notebook)
    for number, (cell, outputs) in enumerate(found, 1):
        kinds = [output["output_type"] for output in outputs]
        assert kinds == [output["output_type"] for output in cell["outputs"]], f"cell {number}; run tools/notebooks.py"
        if not notebooks.varies(cell):
            assert outputs == cell["outputs"], f"cell {number}; run tools/notebooks.py"
    trains = [notebooks.varies(cell) for cell, _ in found]
    assert len(found) >= 4 and trains.count(False) >= 3, "what trains no model is the same everywhere"


@pytest.fixture(scope="module")
def site_pages():
    """tools/site_pages.py as a module."""
    pytest.importorskip("mkdocs", reason="the site's tools are not installed; `make docs` installs them")
    return module_of_file(ROOT / "tools" / "site_pages.py")


def test_a_page_of_a_notebook_shows_what_its_cells_print_and_draw(site_pages):
    page = site_pages.notebook_page((DOCS / "start" / "masks.ipynb").read_text(encoding="utf-8"))
    assert "print(mask)\n```\n\n```text\n7 queries (lines) and 7 keys (columns), mixed\n    0 0 0 0 1 2 3\n" in page
    assert "```python\nmask\n```\n\n<div><svg " in page and page.count("</svg>\n</div>") == 1
    assert "\n\n```text\n(tensor([0, 0, 0, 0, 1, 2, 3]), " in page


@pytest.mark.parametrize(
    "target, page, link",
    [
        ("docs/reference/data.md#rows", "README.md", "reference/data.md#rows"),
        ("../../recipes/README.md", "docs/how-to/pretrain.md", "../recipes/README.md"),
        ("../../recipes/quickstart", "docs/how-to/pretrain.md", "../recipes/quickstart/README.md"),
        ("../../README.md", "docs/how-to/pretrain.md", "../index.md"),
        ("../docs/reference/data.md", "recipes/README.md", "../reference/data.md"),
        ("../../benchmarks/masks.py", "docs/reference/masks.md", None),
        ("no_such_page.md", "docs/reference/masks.md", "no_such_page.md"),
        ("https://arxiv.org/abs/1905.03197", "README.md", "https://arxiv.org/abs/1905.03197"),
        ("#rows", "docs/reference/data.md", "#rows"),
        ("../start/masks.ipynb", "docs/how-to/pretrain.md", "../start/masks.md"),
        ("../how-to/pretrain.md", "docs/start/masks.ipynb", "../how-to/pretrain.md"),
    ],
)
def test_links_between_files_become_links_of_the_site(site_pages, target, page, link):
    known = {"index.md", "reference/data.md", "recipes/README.md", "recipes/quickstart/README.md"}
    known |= {"start/masks.md", "how-to/pretrain.md"}
    assert site_pages.site_link(target, page, known) == link


def test_every_public_name_has_a_place_on_a_page_of_its_package(site_pages):
    names = site_pages.public_names((DOCS / "reference" / "api.md").read_text(encoding="utf-8"))
    assert "unified.masks.tree" in names["unified.masks"], "an entry may go on in the next line"
    assert "unified.UnifiedLM" in names["unified"] and "unified.UnifiedLM.generate" not in names["unified"]


def test_every_option_of_the_plug_ins_is_on_the_page_of_options():
    """Asks in a process of its own, as the site does."""
    program = [interpreter(), ROOT / "tools" / "option_pages.py"]
    result = subprocess.run(program, check=True, capture_output=True, text=True, env=fairseq_runs.environment())
    pages = json.loads(result.stdout.splitlines()[-1])
    told = set(re.findall(r"`--([\w-]+)`", pages["reference/options/fairseq-train.md"]))
    fields = {field.replace("_", "-") for field in fairseq_runs.fields_of_plugins() - {"_name", "data"}}
    assert len(fields) > 25 and fields <= told
    assert "`--vocabulary-size`" in pages["reference/options/unified.md"]
    rows = [line for page in pages.values() for line in page.splitlines() if line.startswith("|")]
    assert [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) != 4] == [], "a bar ends a cell"
