"""The documentation says what is true: its code runs, its links lead somewhere, its flags and names exist."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import fairseq_runs, named_options
from unified import TaskModel, UnifiedLM
from unified.cli.parsing import command_modules
from unified.data.vocabulary import Vocabulary
from unified.model import PRESETS
from unified.runtime.processes import module_command
from unified.tasks.catalogue import task_named
from unified.tasks.metrics.answer_rules import ANSWER_RULES
from unified.tokenization import ordinary_symbols
from unified.tokenization.wordpiece import WordPieceTokenizer

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "recipes").rglob("*.md"))]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """(line of the block's first statement, code) of every python block that is not marked no-run."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start(2)), match[2])
        for match in BLOCK.finditer(text)
        if match[1].split() == ["python"]
    ]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = type(sys)("page")  # dataclasses look their module up
    monkeypatch.setitem(sys.modules, "page", module)
    vars(module)["__name__"] = "page"
    for line, code in python_blocks(page):
        # Blank lines in front: a traceback names the line of the page.
        exec(compile("\n" * line + code, str(page), "exec"), vars(module))


def test_the_pages_have_code_to_run():
    assert sum(len(python_blocks(page)) for page in PAGES) >= 8


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_relative_links_lead_to_files(page):
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    missing = [link for link in links if link and not (page.parent / link).exists()]
    assert not missing


def paragraphs(page: Path) -> list[str]:
    """Paragraphs and items of lists: no headings, tables, pictures or code."""
    text = BLOCK.sub("\n", page.read_text(encoding="utf-8"))
    items = [
        item for paragraph in re.split(r"\n\s*\n", text) for item in re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", paragraph)
    ]
    return [item.strip("\n") for item in items if not re.match(r"\n*(?: {4}|\s*[|#!<])", item)]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name)
def test_a_paragraph_has_at_most_eighty_words(page):
    words = {paragraph: len(re.sub(r"\]\([^)]*\)", "]", paragraph).split()) for paragraph in paragraphs(page)}
    assert {paragraph: count for paragraph, count in words.items() if count > 80} == {}


def test_pages_that_other_files_name_exist():
    """A comment, a message or a script that says docs/background/results.md means a page that is there."""
    folders = ("unified", "fairseq_plugins", "recipes", "benchmarks", "tests", "tools", "docs", "gpu")
    files = [path for name in folders for path in (ROOT / name).rglob("*") if path.suffix in {".py", ".sh", ".md"}]
    files += [*ROOT.glob("*.md"), *(ROOT / name for name in ("CITATION.cff", "Makefile", "setup.py"))]
    named = {}
    for file in files:
        for page in re.findall(r"\bdocs/[\w/-]+\.(?:md|svg|html|ipynb)\b", file.read_text(encoding="utf-8")):
            named.setdefault(page, name(file))
    assert len(named) > 10
    assert {page: file for page, file in named.items() if not (ROOT / page).exists()} == {}


@pytest.mark.parametrize("example", sorted((ROOT / "docs" / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_are_quoted_literally(example):
    quoted = f"```python\n{example.read_text(encoding='utf-8')}```"
    assert any(quoted in page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "how-to").glob("*.md"))


def test_every_import_path_in_extending_md_can_be_imported():
    text = (ROOT / "docs" / "how-to" / "extending.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"[\w.]+\.\w+:[A-Za-z]\w*", text)) - {"package.module:Class", "package.module:NAME"}
    assert len(paths) >= 6
    assert [path for path in sorted(paths) if not importable(path.replace(":", "."))] == []


def test_commands_of_extending_md_run_in_the_folder_that_pythonpath_names():
    """The command runs in a process of its own: in the tests' own process everything of the repository is found."""
    text = (ROOT / "docs" / "how-to" / "extending.md").read_text(encoding="utf-8")
    assert "export PYTHONPATH=.\n" in text
    [command] = re.findall(r"`unified (masks show [^`]*)`", text)
    words = [*module_command("unified.cli"), *shlex.split(command)]
    result = subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": "."}, capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.splitlines(), result.stderr


def test_every_flag_in_fairseq_md_exists():
    text = (ROOT / "docs" / "reference" / "fairseq.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))
    assert len(named) > 40
    flags = fairseq_runs.options_of_fairseq()
    assert named <= flags["fairseq-train"] | flags["fairseq-generate"]


def test_every_option_that_a_sentence_of_the_library_names_exists():
    """It belongs to a command that can show the sentence, or to one that the sentence names."""
    count, wrong = named_options.misnamed()
    assert count > 200
    assert wrong == []


def test_every_name_in_api_md_can_be_imported():
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    listed = [line.partition(": ")[0] for line in text.splitlines() if line.startswith("- ")]
    names = sorted({dotted for line in listed for dotted in re.findall(r"`(unified\.[\w.]+)`", line)})
    assert len(names) > 50
    assert [dotted for dotted in names if not importable(dotted)] == []


def test_every_function_in_the_life_of_a_line_exists():
    text = (ROOT / "docs" / "background" / "life_of_a_line.md").read_text(encoding="utf-8")
    names = sorted(set(re.findall(r"`((?:unified|fairseq_plugins)\.[\w.]+)`", text)))
    assert len(names) > 20
    assert [dotted for dotted in names if not importable(dotted)] == []


@pytest.mark.parametrize(("kind", "signatures"), [(UnifiedLM, 0), (TaskModel, 5)])
def test_api_md_names_what_a_model_does_with_the_parameters_of_the_code(kind, signatures):
    """Every public method but the plumbing; a signature in parentheses is the method's."""
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    listed = dict(re.findall(rf"^- `unified\.{kind.__name__}\.(\w+)`: (`\(.*?\)`)?", text, re.MULTILINE))
    methods = {name for name, value in inspect.getmembers(kind, inspect.isroutine) if not name.startswith("_")}
    plumbing = {
        "of_checkpoint",
        "together",
        "shared_properties",
        "eval",
        "to",
        "encode",
        "encode_source",
        "decode",
        "decoder",
        "unknown_text",
        "pieces",
        "predictor",
        "scheme",
    }
    assert set(listed) == methods - plumbing
    quoted = {name: shown.strip("`") for name, shown in listed.items() if shown}
    assert len(quoted) == signatures
    for name, shown in quoted.items():
        parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
        bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
        assert shown == str(inspect.Signature(bare)), name


def importable(dotted: str) -> bool:
    """Whether ``dotted`` is a module, or an attribute reached from one."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            target = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(target, part):
                return False
            target = getattr(target, part)
        return True
    return False


def unified_commands() -> list[list[str]]:
    """Words behind ``unified`` of every such command in the README and the docs."""
    commands = []
    for page in LINKED:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            match = re.match(r"(?:    )?unified ([a-z-]+.*)", line)
            if match and match[1].split()[0] in command_modules() and "…" not in line:
                commands.append(shlex.split(re.split(" [>|] ", match[1])[0], comments=True))
    return commands


def test_there_are_unified_commands_to_parse():
    assert len(unified_commands()) >= 60


@pytest.mark.parametrize("words", unified_commands(), ids=" ".join)
def test_unified_commands_parse(words):
    from unified.cli.parsing import make_parser

    make_parser(words[0]).parse_args(words)


def test_the_picture_of_the_masks_is_up_to_date(tmp_path):
    subprocess.run(
        [sys.executable, ROOT / "docs" / "draw_masks.py", tmp_path / "masks.svg"], check=True, capture_output=True,
        env=fairseq_runs.environment(),
    )  # fmt: skip
    assert (tmp_path / "masks.svg").read_text() == (ROOT / "docs" / "masks.svg").read_text()


def test_the_readme_counts_the_masks_of_its_picture():
    numbers = {6: "Six", 8: "Eight", 9: "Nine", 10: "Ten", 12: "Twelve", 14: "Fourteen"}
    drawn = (ROOT / "docs" / "masks.svg").read_text(encoding="utf-8")
    titles = re.findall(r'font-weight="600"[^>]*>([^<]+)<', drawn)
    [said] = re.findall(r"!\[(\w+) masks[^]]*\]\(docs/masks\.svg\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert said == numbers[len(titles)]
    assert f"<title>{said} attention masks" in drawn


def test_fairseq_md_lists_every_architecture():
    """Each row names one in full; the others of the row begin as it does, up to the last underline."""
    text = (ROOT / "docs" / "reference" / "fairseq.md").read_text(encoding="utf-8")
    table = text.partition("| system | architectures |")[2].partition("\n\n")[0]
    listed = []
    for row in table.splitlines()[2:]:
        first, *others = re.findall(r"`(\w+)`", row.split("|")[2])
        listed += [first, *(first.rpartition("_")[0] + other for other in others)]
    assert sorted(listed) == sorted(PRESETS)


#: Sections of UniLM's first edition (arXiv 1905.03197v1) that these files are about.
UNILM_SECTIONS = {
    "unified/tasks/datasets/question_generation.py": "3.3",
    "unified/tasks/composing.py": "3.3",
    "unified/tasks/datasets/coqa.py": "3.2.2",
    "docs/how-to/question_generation.md": "3.5",  # long texts
    "docs/how-to/summarization.md": "3.1",
}


@pytest.mark.parametrize("file", UNILM_SECTIONS)
def test_sections_of_unilm_are_the_papers(file):
    cited = re.findall(r"(?:section|sec\.) (3[.\d]*\d)", (ROOT / file).read_text(encoding="utf-8"))
    assert set(cited) == {UNILM_SECTIONS[file]}


def test_citations_are_listed_in_the_bibliography():
    """In [UniLM, sec. 2.4] the name before the comma is a row of docs/bibliography.md."""
    bibliography = (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| ([^|]+?) \|", bibliography, re.MULTILINE))
    cited = {}
    for file in [*LINKED, *(path for name in ("unified", "fairseq_plugins") for path in (ROOT / name).rglob("*.py"))]:
        for key in re.findall(r"\[([A-Z][^\[\],]*), (?:secs?\.|app\.|tables?) ", file.read_text(encoding="utf-8")):
            cited.setdefault(key, file.name)
    assert {"BERT", "BD3LM", "Shaw et al. 2018"} <= cited.keys(), "the expression still finds citations"
    assert {key: file for key, file in cited.items() if key not in listed} == {}


def test_published_settings_of_generation_cite_their_sections():
    expected = {"squad_qg": "3.3", "squad_qg_du": "3.3", "squad_qg_reversed": "3.3", "coqa_free": "3.2.2"}
    for task, section in expected.items():
        assert f"section {section};" in f"{task_named(task).source};", task


def test_unused_entries_of_an_imported_vocabulary_are_ordinary_symbols():
    """docs/background/decisions.md gives the reason: random replacement draws them."""
    vocabulary = Vocabulary(ordinary_symbols(WordPieceTokenizer(["[PAD]", "[unused1]", "[UNK]", "the", "[MASK]"])))
    special = vocabulary.special
    assert vocabulary.symbols[special.ordinary_start : special.ordinary_stop] == ["[unused1]", "the"]


def test_the_suffix_objective_trains(tmp_path):
    import numpy as np

    data = fairseq_runs.documents(tmp_path, np.random.default_rng(0), count=12)
    result = fairseq_runs.train(
        data, tmp_path / "model", "--objectives", "docs.examples.suffix_objective:Suffix(share=0.3):1,left_to_right:1",
        "--batch-size", 4, "--max-update", 2, "--log-interval", 1, "--no-save",
    )  # fmt: skip
    rows = fairseq_runs.logged(result.stdout + result.stderr, "train_inner")
    assert len(rows) == 2 and float(rows[0]["suffix_loss"]) > 0


def test_scoring_md_explains_each_part_of_the_signatures_of_answers():
    rows = (ROOT / "docs" / "reference" / "scoring.md").read_text(encoding="utf-8").splitlines()
    for rules in ANSWER_RULES.values():
        parts = [f"`{part}`" for part in rules.signature.split("|")]
        assert any(rules.program in row and all(part in row for part in parts) for row in rows), rules.signature
