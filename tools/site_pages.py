"""Hooks of mkdocs: pages that docs/ does not hold, and links that leave it.

The site has pages from three places. Those of docs/ are taken as they are, notebooks as Markdown with their code: what
would show them with their outputs weighs 240 MB and loads scripts from elsewhere. The README is the first page, and the
pages of the recipes, CONTRIBUTING.md and CHANGELOG.md come along, so that no link to them breaks. Two kinds are made
here: a page for each package of docs/reference/api.md, whose docstrings mkdocstrings fills in, and the pages of all
options (tools/option_pages.py). The pages are written for a code host, so links are paths of files of the repository;
here they are turned into paths of the site.
"""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^## `(unified[\w.]*)`\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"`(unified\.[\w.]+)`")
API = "reference/api"


def pages_outside() -> list[str]:
    """Paths in the repository of the pages outside of docs/ that the site has."""
    recipes = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "recipes").rglob("*.md"))]
    return ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", *recipes]


def in_site(path: str) -> str:
    """The path in the site of a file of the repository."""
    return "index.md" if path == "README.md" else re.sub(r"\.ipynb$", ".md", path.removeprefix("docs/"))


def in_repository(path: str) -> str:
    """The path in the repository of the file that a page of the site is made of, whether or not there is one."""
    if path == "index.md":
        return "README.md"
    if path in pages_outside():
        return path
    notebook = re.sub(r"\.md$", ".ipynb", f"docs/{path}")
    return notebook if (ROOT / notebook).exists() else f"docs/{path}"


def notebook_page(text: str) -> str:
    """A notebook as Markdown: its code cells are blocks of code, each with what it printed or drew behind it."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            shown = output.get("data", {"text/plain": output.get("text", [])})
            if "image/svg+xml" in shown:
                parts.append(f"<div>{''.join(shown['image/svg+xml'])}</div>")
            else:
                parts.append(f"```text\n{''.join(shown['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts)


def public_names(text: str) -> dict[str, list[str]]:
    """Package to the names that a section of docs/reference/api.md lists for it, members of listed classes left out."""
    found = {}
    for package, section in SECTION.findall(text):
        entries = re.split(r"^- ", re.sub(r"\n  +", " ", section), flags=re.MULTILINE)[1:]
        names = [name for entry in entries for name in NAME.findall(entry.partition(": ")[0])]
        found[package] = [name for name in dict.fromkeys(names) if name.rpartition(".")[0] not in names]
    return found


def api_pages() -> dict[str, str]:
    """Path in the site to text: a page for each package, where mkdocstrings puts signatures and docstrings."""
    pages = {}
    for package, names in public_names((ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")).items():
        pages[f"{API}/{package}.md"] = "\n".join([f"# `{package}`\n", *(f"::: {name}\n" for name in names)])
    return pages


def option_pages() -> dict[str, str]:
    """Path in the site to text: the options of all commands, asked in a process of its own, since fairseq is loaded."""
    program = [sys.executable, str(ROOT / "tools" / "option_pages.py")]
    printed = subprocess.run(program, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    return json.loads(printed.splitlines()[-1])


def site_link(target: str, page: str, known: set[str]) -> str | None:
    """The site's link for one in the file ``page`` of the repository; None where it leads to no page of the site.

    Args:
        target: as written, such as ``../reference/data.md#rows``.
        known: paths in the site.
    """
    path, hash_sign, anchor = target.partition("#")
    if "://" in target or not path:
        return target
    file = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    if (ROOT / file).is_dir():
        file = posixpath.join(file, "README.md")
    if in_site(file) not in known:
        return None if (ROOT / file).exists() else target  # mkdocs warns of what is not there
    return posixpath.relpath(in_site(file), posixpath.dirname(in_site(page)) or ".") + hash_sign + anchor


def with_site_links(text: str, page: str, known: set[str]) -> str:
    """``text`` of the file ``page`` with links of the site; of links to other files the words are left."""

    def changed(match: re.Match[str]) -> str:
        link = site_link(match[3], page, known)
        return match[2] if link is None else f"{match[1]}[{match[2]}]({link})"

    parts = re.split(f"({FENCE.pattern})", text, flags=FENCE.flags)  # code stands at the odd places
    return "".join(part if i % 2 else LINK.sub(changed, part) for i, part in enumerate(parts))


def on_config(config: MkDocsConfig, **_: Any) -> MkDocsConfig:
    """Put the API's pages into the navigation, and give headings the anchors that they have on a code host."""
    (listed,) = (
        entry["API"] for part in config.nav for entries in part.values() for entry in entries if "API" in entry
    )
    listed += [{path.removeprefix(f"{API}/").removesuffix(".md"): path} for path in api_pages()]
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the pages that docs/ does not hold."""
    made = {in_site(path): (ROOT / path).read_text(encoding="utf-8") for path in pages_outside()}
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
        made[in_site(f"docs/{file.src_uri}")] = notebook_page(file.content_string)
    for path, text in {**made, **api_pages(), **option_pages()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Turn links between files of the repository into links of the site, and names of the API into links to it."""
    path = page.file.src_uri
    if not (ROOT / in_repository(path)).exists():
        return markdown  # made above
    text = with_site_links(markdown, in_repository(path), set(files.src_uris))
    if path == "reference/api.md":
        names = {name for listed in public_names(text).values() for name in listed}
        text = re.sub(
            r"`(unified\.[\w.]+)`", lambda match: f"[{match[0]}][{match[1]}]" if match[1] in names else match[0], text
        )
    return text.replace("```python no-run\n", "```python\n")
