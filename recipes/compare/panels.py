"""Learning curves as small multiples in one SVG: a panel per run, each with its own scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tables import NEXT_SENTENCE

from unified.reports.charts import COLOURS, TEXT, new_figure, plain, svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS, WIDTH, HEIGHT = 5, 2.6, 2.1  # inches of a panel
TITLE = "Every objective's own validation loss; scales differ, and levels are not comparable"
KEY = "dots: validation; thin line: training; dashed: unigram entropy of the text, where it lies in the panel"


def picture(results: Sequence[dict], unigram: float) -> str:
    """The whole SVG document.

    Args:
        results: runs with ``losses``, name -> curves on validation and training text; others are passed over.
        unigram: entropy of single tokens in bits, a dashed line in the panels that reach it.
    """
    panels = [(result["name"], shown(result)) for result in results if result["objectives"]]
    return svg_text(lambda: _figure(panels, unigram), TITLE)


def shown(result: dict) -> dict[str, dict]:
    """Losses that are drawn: those per token; next-sentence prediction has a scale of its own."""
    return {name: curves for name, curves in result["losses"].items() if not name.endswith(NEXT_SENTENCE)}


def _figure(panels: Sequence[tuple[str, dict[str, dict]]], unigram: float) -> Figure:
    columns = min(COLUMNS, max(len(panels), 1))
    rows = max(-(-len(panels) // columns), 1)
    figure = new_figure(rows * HEIGHT + 0.6, columns * WIDTH)
    figure.suptitle(f"{TITLE}\n{KEY}", fontsize=9)
    for number, (name, curves) in enumerate(panels, 1):
        _panel(figure.add_subplot(rows, columns, number), name, curves, unigram)
    figure.supxlabel("updates", fontsize=9)
    figure.supylabel("bits per prediction", fontsize=9)
    return figure


def _panel(axes: Axes, name: str, curves: dict[str, dict], unigram: float) -> None:
    """Draws one panel, as high as the validation losses; training begins above them, out of the picture."""
    axes.set_title(name, fontsize=9, loc="left")
    for i, (loss, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(
            *zip(*curve["valid"], strict=True), "o-", color=colour, markersize=2.5, linewidth=1.3,
            gid=f"{name}: {loss}",
        )  # fmt: skip
        if len(curves) > 1:
            axes.text(
                0.98, 0.97 - 0.1 * i, loss.replace("_", " "), transform=axes.transAxes, color=colour, fontsize=7,
                ha="right", va="top",
            )  # fmt: skip
    low, high = axes.get_ylim()
    for i, curve in enumerate(curves.values()):
        if curve["train"]:
            axes.plot(*zip(*curve["train"], strict=True), color=COLOURS[i % len(COLOURS)], alpha=0.4, linewidth=0.8)
    if low <= unigram <= high:
        axes.axhline(unigram, color=TEXT, linestyle="--", linewidth=0.8)
    axes.set_ylim(low, high)
    axes.set_xlim(left=0)
    plain(axes)
