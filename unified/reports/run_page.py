"""The page of one run: curves, samples, mistakes and settings in one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unified.reports.charts import Chart, svg
from unified.reports.pages import TEMPLATES, render


@dataclass(frozen=True)
class Sample:
    """An item and the model's answer.

    Attributes:
        fields: name -> text, in the order in which they are shown; the last is the model's answer.
        right: whether the answer is right; None where nobody can say.
    """

    fields: Mapping[str, str]
    right: bool | None = None


@dataclass(frozen=True)
class Table:
    """Rows below a header.

    Attributes:
        note: a sentence below the table.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class RunPage:
    """Contents of a run's page.

    Attributes:
        title: name of the run.
        lead: a sentence below it.
        charts: of the run's log.
        tables: scores, confusions, mistakes.
        samples: drawn at random.
        samples_note: how they were drawn, or why there are none.
        settings: name -> value.
        command: of fairseq-train.
    """

    title: str
    lead: str
    charts: Sequence[Chart]
    tables: Sequence[Table]
    samples: Sequence[Sample]
    samples_note: str
    settings: Mapping[str, str]
    command: str = ""

    def html(self) -> str:
        """The page.

        Raises:
            UnifiedError: matplotlib or Jinja is not installed.
        """
        pictures = [(chart, svg(chart)) for chart in self.charts]
        return render(TEMPLATES / "run.html.j2", page=self, title=self.title, pictures=pictures)
