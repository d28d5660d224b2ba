"""The package as its users get it: what a wheel contains, what importing it costs, and what the installer says."""

import ast
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from setuptools import find_packages

import unified
import unified.tasks.metrics

CHECKOUT = Path(__file__).parents[3]


def run(program: str) -> str:
    """Standard output of a Python program run in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=CHECKOUT
    ).stdout.strip()


@pytest.fixture(scope="module")
def installer():
    """tools/install.py as a module."""
    spec = importlib.util.spec_from_file_location("installer", CHECKOUT / "tools" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("package", ["unified", "fairseq_plugins"])
def test_every_folder_with_modules_goes_into_the_wheel(package):
    folders = {path.parent.relative_to(CHECKOUT) for path in (CHECKOUT / package).rglob("*.py")}
    packages = set(find_packages(str(CHECKOUT), include=[package, f"{package}.*"]))
    assert {".".join(folder.parts) for folder in folders} == packages


def test_templates_and_the_mark_of_types_go_into_the_wheel():
    """Everything in the library's folders that is no module."""
    program = "import runpy, setuptools; setuptools.setup = lambda **k: print(json.dumps(k['package_data']))"
    data = json.loads(run(f"import json; {program}; runpy.run_path('setup.py')"))
    folders = {package: CHECKOUT.joinpath(*package.split(".")) for package in data}
    declared = {path for package, patterns in data.items() for one in patterns for path in folders[package].glob(one)}
    found = {
        path for path in (CHECKOUT / "unified").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert found == declared and len(found) >= 4


def test_setup_reads_the_version_that_the_package_has():
    printed = run(
        "import runpy, setuptools; setuptools.setup = lambda **k: print(k['name'], k['version']); "
        "runpy.run_path('setup.py')"
    )
    assert printed == f"unified-lm {unified.__version__}"


def test_every_extra_that_a_page_or_message_names_exists():
    program = "import runpy, setuptools; setuptools.setup = lambda **k: print(*k['extras_require'])"
    extras = set(run(f"{program}; runpy.run_path('setup.py')").split())
    assert {"train", "hub", "parquet", "track", "plot", "clean", "spacy", "meteor", "docs", "all"} <= extras
    folders = ("unified", "fairseq_plugins", "recipes", "tools", "docs", "tests", "benchmarks", "gpu")
    files = [path for folder in folders for path in (CHECKOUT / folder).rglob("*")]
    named = {}
    for path in [*files, *CHECKOUT.glob("*.md"), CHECKOUT / "Makefile"]:
        if path.suffix in (".py", ".md", ".ipynb", ".sh", "") and path.is_file():
            groups = re.findall(r"(?:unified-lm|[\"']\.)\[([a-z, ]+)\]", path.read_text(encoding="utf-8"))
            named |= {path.name: {name for group in groups for name in re.split(r", ?", group)}} if groups else {}
    unknown = {name: sorted(found - extras) for name, found in named.items() if found - extras}
    assert unknown == {} and len(named) >= 8


def test_ci_tests_the_lowest_release_of_transformers_that_is_allowed():
    [lowest] = re.findall(r'"transformers>=([\d.]+)"', (CHECKOUT / "setup.py").read_text(encoding="utf-8"))
    job = (CHECKOUT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8").partition("  transformers:")[2]
    assert f'release: ["=={lowest}.0", ">={lowest}"]' in job
    page = (CHECKOUT / "docs" / "how-to" / "masks_in_transformers.md").read_text(encoding="utf-8")
    assert f"({lowest} or later" in page


def test_the_citation_has_the_version_of_the_package():
    lines = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {unified.__version__}" in lines


def test_importing_the_package_does_not_import_torch():
    assert run("import sys, unified, unified.cli; print('torch' in sys.modules)") == "False"


def test_preparing_text_imports_no_torch(tmp_path):
    """Importing it takes three times as long as encoding ten megabytes does."""
    (tmp_path / "text.txt").write_text("a cat sat on the mat\n\na dog sat too\n" * 9, encoding="utf-8")
    text, first, second = (str(tmp_path / name) for name in ("text.txt", "first", "second"))
    program = (
        "import sys\nfrom unified.cli import main\n"
        f"assert not main(['prepare', {text!r}, '--output', {first!r}, '--tokenizer', 'char'])\n"
        f"assert not main(['prepare', {text!r}, '--output', {second!r}, '--tokenizer', {first!r}])\n"
        "print('torch' in sys.modules)"
    )
    assert run(program).splitlines()[-1] == "False"
    assert (tmp_path / "second" / "dict.txt").exists()


#: What scoring one kind of output must not wait for when another is scored.
HEAVY = ("sacrebleu", "scipy", "rouge_score", "nltk", "torch")


@pytest.mark.parametrize(
    "statement, allowed",
    [
        ("import unified.tasks.metrics", ()),
        ("from unified.tasks.metrics import score_squad_v1, score_coqa, score_classification, score_tagging", ()),
        ("from unified.tasks.metrics import score_coreference", ("scipy",)),
        ("from unified.tasks.metrics import score_question_generation", ("nltk", "scipy")),
        ("from unified.cli import main; main(['score', 'squad', 'no.json', 'no.json'])", ()),
        ("from unified.cli import main; main(['score', 'relation', 'no.txt', 'no.txt'])", ()),
    ],
)
def test_a_score_imports_only_what_it_needs(statement, allowed):
    there = run(f"import sys\n{statement}\nprint(*(name for name in {HEAVY} if name in sys.modules))")
    assert set(there.split()) <= set(allowed)


def test_every_public_name_of_the_metrics_is_there():
    """At the interpreter, for type checkers, and whatever was imported before."""
    names = unified.tasks.metrics.__all__
    tree = ast.parse(Path(unified.tasks.metrics.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    known = {alias.name: node.module for node in imports for alias in node.names if alias.name != "import_module"}
    assert sorted(known) == names == sorted(names)
    modules = [module.name for module in pkgutil.iter_modules(unified.tasks.metrics.__path__)]
    assert not set(names) & set(modules), "importing the module would hide the name"
    for name in names:
        assert getattr(unified.tasks.metrics, name) is getattr(import_module(known[name]), name)
    assert set(names) <= set(dir(unified.tasks.metrics))
    exec("from unified.tasks.metrics import *", everything := {})
    assert set(names) <= set(everything)
    with pytest.raises(AttributeError, match=r"module 'unified.tasks.metrics' has no attribute 'nonsense'"):
        unified.tasks.metrics.nonsense  # noqa: B018


def test_public_names_are_there():
    assert run("from unified import UnifiedLM, masks; print(UnifiedLM.__name__, masks.__name__)") == (
        "UnifiedLM unified.masks"
    )
    assert [getattr(unified, name).__name__.removeprefix("unified.") for name in unified.__all__] == unified.__all__
    with pytest.raises(AttributeError, match="nonsense"):
        unified.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("WARNING: Retrying: NewConnectionError\nERROR: No matching distribution found for numpy", "cannot be reached"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        (
            "ERROR: No matching distribution found for torch==2.13.*",
            "the package index has no torch==2.13.* for Python",
        ),
        ("g++: fatal error: Killed signal terminated program cc1plus", "out of memory"),
    ],
)
def test_a_failed_install_says_what_is_missing(installer, output, words):
    assert words in installer.diagnose(output)


def test_a_missing_compiler_is_named(installer, monkeypatch):
    output = (
        "NewConnectionError, retried\nerror: [Errno 2] No such file or directory: 'g++'\nERROR: Failed building wheel"
    )
    monkeypatch.setattr(installer.shutil, "which", lambda name: None)
    assert "no C++ compiler" in installer.diagnose(output)


def test_unknown_failures_are_not_explained_away(installer):
    assert installer.diagnose("error: something else went wrong") is None


def test_unsupported_versions_of_python_are_refused(installer, monkeypatch):
    monkeypatch.setattr(installer.sys, "version_info", (3, 10, 4))
    with pytest.raises(installer.Missing, match="Python 3.11 or 3.12 is needed"):
        installer.check_python()
