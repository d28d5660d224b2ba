"""docs/reference/fairseq.md lists what the plug-ins change in fairseq, torch and the process; a process agrees."""

import json
import re
import subprocess

import pytest

from tests.integration.project.test_docs import ROOT
from tests.support.plugin_changes import different, values_of
from tests.support.prepared_python import FRESH
from unified.model import PRESETS

TORCHS_NOTE = "torch._weights_only_unpickler._marked_safe_globals_set"
ENTRY = re.compile(r"\['(\w+)'\]$|\.(\w+)_parser$")
KINDS = r"the (task|criterion|optimizer|model)s? (`\w+`(?: and `\w+`)?)"


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    command = [FRESH, "-W", "ignore", "-m", "tests.support.plugin_changes"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return json.loads(printed.splitlines()[-1])


def listed() -> tuple[str, str, str]:
    """The three paragraphs: functions, entries of registries, torch and the process."""
    page = (ROOT / "docs" / "reference" / "fairseq.md").read_text(encoding="utf-8")
    section = page.partition("## What the plug-ins change")[2]
    return tuple(re.split(r"^\*\*", section, flags=re.MULTILINE)[1:])


def test_the_replaced_functions_are_listed(found):
    # torch notes what add_safe_globals was given; that has a line of its own.
    # A method that a class of fairseq inherited is added to it.
    functions = {name for name in found["replaced"] if "[" not in name} - {TORCHS_NOTE}
    functions |= {name for name in found["added"] if not ENTRY.search(name)}
    assert set(re.findall(r"^\| `(fairseq\.[\w.]+)`", listed()[0], re.MULTILINE)) == functions


def test_the_modules_that_replace_a_function_are_listed():
    """The last column names each module that sets it."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "fairseq_plugins").glob("*.py")}
    rows = re.findall(r"^\| `fairseq\.[\w.]*?(\w+)\.(\w+)` \|.*\| ([^|]+) \|$", listed()[0], re.MULTILINE)
    assert len(rows) == listed()[0].count("| `fairseq.")
    for owner, name, where in rows:
        setting = re.compile(rf"^    \w*{owner}\w*\.{name} = ", re.MULTILINE)
        files = {file for file, source in sources.items() if setting.search(source)}
        assert files and set(re.findall(r"`([\w.]+)`", where)) == files, name


def test_the_entries_of_registries_are_listed(found):
    paragraph = listed()[1]
    named, rest = paragraph.split("and its architectures")
    in_text = {kind: set(re.findall(r"`(\w+)`", names)) for kind, names in re.findall(KINDS, named.replace("\n", " "))}
    entries: dict[str, set[str]] = {}
    for name in found["added"]:
        if match := re.fullmatch(r"fairseq\.\w+\.(TASK|CRITERION|OPTIMIZER|MODEL)_REGISTRY\['(\w+)'\]", name):
            entries.setdefault(match[1].lower(), set()).add(match[2])
    assert entries == in_text
    # What else is added are fairseq's other tables of these names, and its parsers for them.
    every = {*set().union(*in_text.values()), *PRESETS}
    for name in found["added"]:
        entry = ENTRY.search(name)
        assert entry is None or entry.expand(r"\1\2") in every, name


def test_the_architectures_are_those_of_the_presets(found):
    of_table = [
        re.fullmatch(r"fairseq\.models\.ARCH_MODEL_REGISTRY\['(\w+)'\]", name)
        for name in [*found["added"], *found["replaced"]]
    ]
    assert {match[1] for match in of_table if match} == {"unified_lm", *PRESETS}
    replaced = {re.search(r"\['(\w+)'\]$", name)[1] for name in found["replaced"] if "[" in name}
    assert replaced == {"bert_base", "bert_large"}
    assert "`bert_base` and `bert_large` are names of fairseq's own too" in listed()[1]


def test_what_changes_in_torch_and_the_process_is_listed(found):
    rows = re.findall(r"^\| `([\w.]+)` \| (import|a task is built)", listed()[2], re.MULTILINE)
    assert set(rows) == {
        (name, when) for when, key in (("import", "import"), ("a task is built", "task")) for name in found[key]
    }


def test_a_change_of_any_kind_would_be_found(monkeypatch):
    import fairseq.tasks
    from fairseq.trainer import Trainer

    before = values_of(("fairseq",))
    monkeypatch.setattr(Trainer, "zero_grad", lambda self: None)
    monkeypatch.setattr(fairseq.tasks, "get_task", lambda name: None)
    monkeypatch.setitem(fairseq.tasks.TASK_REGISTRY, "another", object)
    changes = different(before, values_of(("fairseq",)))
    assert changes == [
        "fairseq.tasks.TASK_REGISTRY['another']",
        "fairseq.tasks.get_task",
        "fairseq.trainer.Trainer.zero_grad",
    ]
