"""Read the JSON lines that ``fairseq-train --log-format json`` writes to its output or its ``--log-file``."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from unified.arguments import finite
from unified.files.json_text import NotJson, parse_json
from unified.reports.charts import HELD_OUT, Point

#: The file in the folder of a run that takes all that fairseq-train prints under unified's commands.
LOG_NAME = "train.log"
_UPDATES = "num_updates"
_NEXT_SENTENCE = "_next_sentence"
#: Bits of a loss with two answers above which a model does no better than guessing.
_CHANCE = 0.95
#: Share of the lowest validation loss above which a loss has risen, and not only wavered.
_RISEN = 1.05
#: fairseq's options for the score that selects the checkpoint.
_MEASURE, _HIGHEST = "--best-checkpoint-metric", "--maximize-best-checkpoint-metric"


def read_training_log(path: str | Path) -> dict[str, list[Point]]:
    """Statistic -> (update, value) pairs in the order of updates.

    The statistics of ``train_inner`` keep their names (``bidirectional_loss``), those of a validation or a whole
    epoch the prefix fairseq gives them (``valid_bidirectional_loss``, ``train_loss``). A line may be JSON alone (in
    fairseq's log file, where lines are repeated) or follow a logger's prefix. Other lines are passed over.

    Raises:
        ValueError: the file holds no statistics.
    """
    found: dict[str, dict[int, float]] = {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for logged in filter(None, map(statistics_of, lines)):
            counter = next((key for key in logged if key.endswith(_UPDATES)), None)
            update = None if counter is None else finite(logged[counter])
            if counter is None or update is None:
                continue
            prefix = counter.removesuffix(_UPDATES)
            for key, value in logged.items():
                number = finite(value)
                if key not in (counter, "epoch", "update") and key.startswith(prefix) and number is not None:
                    found.setdefault(key, {})[int(update)] = number
    if not found:
        raise ValueError(f"{path}: no statistics; expected the output of fairseq-train --log-format json")
    return {key: sorted(points.items()) for key, points in found.items()}


def loss_curves(log: dict[str, list[Point]], names: Iterable[str] | None = None) -> dict[str, list[Point]]:
    """Training and validation losses by objective, named as :class:`unified.reports.charts.Chart` wants, in bits.

    Args:
        names: objectives to show; by default all that were logged, but for next-sentence prediction: its bits are
            those of one question a row, not of a token (see :func:`next_sentence_note`).
    """
    if names is None:
        logged = [key.removesuffix("_loss") for key in log if key.endswith("_loss") and f"valid_{key}" in log]
        names = [name for name in logged if not name.endswith(_NEXT_SENTENCE)]
    curves = {}
    for name in names:
        for label, key in ((name, f"{name}_loss"), (name + HELD_OUT, f"valid_{name}_loss")):
            if key in log:
                curves[label] = log[key]
    return curves


def next_sentence_note(log: dict[str, list[Point]]) -> str:
    """Says how next-sentence prediction ended in validation, which no chart shows; "" where it was not trained."""
    ending = f"{_NEXT_SENTENCE}_loss"
    key = next((key for key in log if key.startswith("valid_") and key.endswith(ending)), None)
    if key is None:
        return ""
    bits, right = log[key][-1][1], log[key.removesuffix("_loss") + "_accuracy"][-1][1]
    text = (
        "Not drawn: next-sentence prediction, one question a row (does the second segment follow the first?) instead "
        f"of one a token. It ended at {bits:.2f} bits, {right:.1f} % right; guessing has 1 bit and 50 %."
    )
    return text if bits < _CHANCE else f"{text} So it has not been learnt."


def outcome(log: Mapping[str, list[Point]], options: Mapping[str, str | bool]) -> str:
    """Says where the validations of a finished training were best; "" where its end was, or nothing was validated.

    Args:
        log: of :func:`read_training_log`.
        options: fairseq's, by their names: the score that selects the checkpoint, and whether its highest is the best.
    """
    measure, highest = options.get(_MEASURE), _HIGHEST in options
    losses = dict(log.get("valid_loss", ()))
    if not losses:
        return ""
    last, lowest = max(losses), min(losses, key=lambda update: losses[update])
    scores = log.get(f"valid_{measure}", ()) if measure != "loss" else ()
    said = []
    if scores:  # of equal ones the latest
        update, best = max(scores, key=lambda point: (point[1] if highest else -point[1], point[0]))
        if update != last:
            told = f"the best {measure} was {best:g}, after update {update:,} of {last:,} (checkpoint_best.pt)"
            # A loss may be no number.
            said.append(f"{told}, with a validation loss of {losses[update]:.4g}" if update in losses else told)
    if losses[last] > _RISEN * losses[lowest]:
        said.append(
            f"the lowest validation loss was {losses[lowest]:.4g}, after update {lowest:,}; at the end it is "
            f"{losses[last]:.4g}"
        )
    return "; ".join(said)


def seconds_per_update(log: dict[str, list[Point]]) -> float | None:
    """Median over the training lines of the seconds that one update took; None where fairseq logged no speed (ups)."""
    speeds = [speed for _, speed in log.get("ups", []) if speed > 0]
    return 1 / statistics.median(speeds) if speeds else None


def statistics_of(line: str) -> dict[str, Any] | None:
    """The statistics in a line of a log by name, as fairseq writes them; None where it holds none."""
    start = line.find("{")
    if start < 0:
        return None
    try:
        value = parse_json(line[start:], nan=True)
    except NotJson:
        return None
    return value if isinstance(value, dict) else None
