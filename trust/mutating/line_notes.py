"""A plug-in of pytest that notes which tests run which lines; see :mod:`trust.mutating.coverage_map`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic  # tests may put another clock into the module

import coverage
import pytest

#: Stands for a test where lines run while the file is imported, such as those that make the cases of its tests.
COLLECTION = "|collection"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--notes", type=Path, help="file to write")
    parser.addoption("--noted", action="append", default=[], help="folder of code")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Notes(config), "line notes")


class _Notes:
    """Lines by test, from before the tests are imported."""

    def __init__(self, config: pytest.Config):
        self.file: Path = config.getoption("--notes")
        self.root = Path(config.rootpath)
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        sources = [str(self.root / folder) for folder in config.getoption("--noted")]
        self.lines = coverage.Coverage(data_file=None, config_file=False, source=sources, messages=False)
        self.lines.start()
        self.lines.switch_context(COLLECTION)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self.began = monotonic()
        self.lines.switch_context(f"{item.nodeid}|setup")
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self.lines.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.lines.switch_context("")
            self.seconds[item.nodeid] = round(monotonic() - self.began, 3)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.lines.stop()
        data = self.lines.get_data()
        lines = {
            str(Path(path).relative_to(self.root)): {
                str(line): sorted(filter(None, contexts)) for line, contexts in data.contexts_by_lineno(path).items()
            }
            for path in data.measured_files()
            if path.endswith(".py")  # templates note lines, too
        }
        seconds = {test: took for test, took in self.seconds.items() if test not in self.failed}
        text = json.dumps({"failed": self.failed, "seconds": seconds, "lines": lines})
        waiting = self.file.with_suffix(".part")
        waiting.write_text(text)
        waiting.rename(self.file)
