"""Conventions of the repository: which package imports which, where tests lie, and which names they use."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def layers() -> list[set[str]]:
    """Packages of the library from the bottom up; those of one layer do not import each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    packages = next(contract for contract in settings["contracts"] if contract.get("containers") == ["unified"])
    return [set(layer.split(" | ")) for layer in reversed(packages["layers"])]


def imported(path: Path) -> set[str]:
    """Names of the packages that a module imports, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add(node.module)
    return found


def test_the_map_names_the_packages_in_the_order_of_their_imports():
    page = (ROOT / "docs" / "reference" / "conventions.md").read_text(encoding="utf-8")
    table = page.partition("## Packages")[2].partition("\n## ")[0]
    listed = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")]
    order = layers()
    height = {package: number for number, layer in enumerate(order) for package in layer}
    assert sorted(package for row in listed for package in row) == sorted(height)
    lowest = [min(height[package] for package in row) for row in listed]
    assert lowest == sorted(lowest)


def test_masks_import_numpy_and_torch_alone():
    found = set().union(*map(imported, (ROOT / "unified" / "masks").glob("*.py")))
    assert {name for name in found if name.startswith("unified")} <= {
        f"unified.masks{suffix}"
        for suffix in ("", *(f".{path.stem}" for path in (ROOT / "unified" / "masks").glob("*.py")))
    } | {"unified"}
    others = {name.partition(".")[0] for name in found} - sys.stdlib_module_names
    assert others == {"numpy", "torch", "unified"}


def test_unit_tests_have_the_folders_of_the_library():
    folders = {path.relative_to(ROOT / "tests" / "unit") for path in (ROOT / "tests" / "unit").rglob("test_*.py")}
    missing = {folder.parent for folder in folders if not (ROOT / "unified" / folder.parent / "__init__.py").exists()}
    assert missing == {Path("fairseq_plugins")}  # a folder beside those of the library


def texts(*folders: str) -> dict[str, str]:
    """Content of the Python files in some folders, by path."""
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def test_tests_use_public_names():
    """A name with an underscore in front is private, unless it is the test's own or that of another library."""
    defined = re.compile(r"^\s*(?:(?:def|class) |self\.)?(_[a-zA-Z]\w*)\b(?=\(|:| =|$)", re.MULTILINE)
    ours = set(defined.findall("\n".join(texts("unified", "fairseq_plugins", "recipes", "benchmarks").values())))
    assert len(ours) > 500
    used = re.compile(r"(?:[\w)\]]\.|\bimport )(_[a-zA-Z]\w*[a-zA-Z])\b")
    named = re.compile(r"""setattr\(\s*[\w.]+,\s*["'](_[a-zA-Z]\w*)["']""")
    # Names in argparse, omegaconf, fairseq and transformers for which those have no public one.
    foreign = {"_actions", "_name", "_generate", "_init_weights"}
    found = {
        f"{path}: {name}"
        for path, text in texts("tests").items()
        for name in {*used.findall(text), *named.findall(text)} & ours - set(defined.findall(text)) - foreign
    }
    assert found == set()


def test_no_test_patches_a_constant():
    patched = re.compile(r"""setattr\(\s*(?:[\w.]+,\s*["']|["'][\w.]*\.)([A-Z][A-Z_]+)["']""")
    registries = {"BACKENDS"}  # a copy of the registry, to which a test adds
    found = {f"{path}: {name}" for path, text in texts("tests").items() for name in patched.findall(text)}
    assert {name for name in found if name.rpartition(" ")[2] not in registries} == set()


def test_hooks_before_a_commit_are_what_make_lint_runs():
    tool = r"ruff \w+|mypy(?: --config-file \S+)?|lint-imports"
    hooks = re.findall(r"^ +entry: (.*)$", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    lint = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].partition("\n\n")[0]
    assert [re.search(tool, hook)[0] for hook in hooks] == re.findall(tool, lint)


def exists(name: str) -> bool:
    """Whether there is a module or a package of this name."""
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_every_module_of_the_library_that_somebody_imports_exists():
    """Types are checked in the library alone: a module that moved would be missed by a recipe or a test."""
    files = [
        path for folder in ("unified", "fairseq_plugins", "recipes", "tests") for path in (ROOT / folder).rglob("*.py")
    ]
    wanted = re.compile(r"^\s*(?:from|import) ((?:unified|fairseq_plugins)[\w.]*)", re.MULTILINE)
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in wanted.findall(path.read_text(encoding="utf-8"))
        if not exists(name)
    }
    assert missing == set()


def test_files_are_opened_for_writing_in_one_place():
    """So that an error of the system names the file, which the system does not do where a disk is full."""
    writers = re.compile(
        r"""\bopen\((?!os\.devnull)[^()]*(?:\([^()]*\))?[^()]*,\s*["'](?:[wax]|r\+)"""  # open(path, "w")
        r"""|\.open\(\s*["'](?:[wax]|r\+)|\.write_(?:text|bytes)\(|\.tofile\(|\bnp\.save\((?!file,)|shutil\.(?:copy|copy2|copyfile|move)\("""
    )
    found = {path for path, text in texts("unified", "fairseq_plugins").items() if writers.search(text)}
    assert found == {"unified/masks/pictures.py"}  # which imports nothing of files
