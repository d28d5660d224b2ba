"""Results as Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

#: The loss of the next sentence is about one bit at most, that of all others is about a token.
NEXT_SENTENCE = "_next_sentence"


def tables(results: Sequence[dict]) -> str:
    """Cost and yardstick by run; then every loss at the first validation, in the middle and at the end."""
    return f"{yardstick_table(results)}\n\n{loss_table(results)}\n"


def yardstick_table(results: Sequence[dict]) -> str:
    """A line per run; the gain is over the same model from scratch."""
    scratch = {result["model"]: last(result["cloze"]) for result in results if not result["objectives"]}
    lines = [
        "| pre-training | model | predictions per 100 tokens | padding, % | seconds per update "
        "| cloze, bits | accuracy, % | gain over scratch, bits |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        cost = ["", "", ""]
        if result["objectives"]:
            seconds = result["seconds"]
            speed = "" if seconds is None else f"{seconds:.3f}"
            cost = [f"{100 * result['predictions']:.1f}", f"{100 * result['padding']:.1f}", speed]
        bits = last(result["cloze"])
        gain = f"{scratch[result['model']] - bits:.3f}" if result["objectives"] and result["model"] in scratch else ""
        cells = [result["name"], result["model"], *cost, f"{bits:.3f}", f"{last(result['accuracy']):.2f}", gain]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def loss_table(results: Sequence[dict]) -> str:
    """A line per run and loss, in bits per prediction on the validation text."""
    lines = ["| pre-training | loss | first | middle | last | fell by |", "|---|---|---|---|---|---|"]
    for result in results:
        for name, curves in result.get("losses", {}).items():
            points = [bits for _, bits in curves["valid"]]
            shown = points[0], points[len(points) // 2], points[-1], points[0] - points[-1]
            cells = [result["name"], f"`{name}`", *(f"{bits:.3f}" for bits in shown)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def last(points: Sequence[Sequence[float]]) -> float:
    return points[-1][1]
