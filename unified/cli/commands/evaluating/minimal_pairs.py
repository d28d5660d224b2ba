"""``unified evaluate minimal-pairs``: does a model prefer the grammatical sentence of two?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.cli.commands.evaluating.options import (
    add_interval_arguments,
    add_model_arguments,
    add_output_arguments,
    add_scoring_arguments,
    check_options,
    chosen_names,
    chosen_sampling,
    chosen_scorings,
    data_name,
    draws_at_random,
    language_model,
    resamples,
    write_results,
)
from unified.cli.output import print_json
from unified.reports.markdown import table_lines

NAME = "minimal-pairs"
HELP = "share of pairs whose grammatical sentence gets the higher score: BLiMP, Zorro"
DESCRIPTION = (
    "Score both sentences of minimal pairs as wholes. A pair counts where the grammatical sentence has the higher "
    "score, by half where both scores are equal. Accuracy is the mean over paradigms, in percent."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this type."""
    parser.add_argument(
        "data",
        metavar="FOLDER",
        help="folder, or one file, with pairs: BLiMP's .jsonl files (fields sentence_good, sentence_bad, and perhaps "
        "UID, field, linguistics_term), or Zorro's .txt files (a bad sentence in every odd line, the good one behind "
        "it); compressed (.gz, .xz, .zst) or not",
    )
    add_model_arguments(parser)
    add_scoring_arguments(parser)
    add_interval_arguments(parser, "pairs")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the evaluation with parsed options; returns the exit status."""
    names = chosen_names(args)
    check_options(args, NAME)
    # Imported here, so that --help does not wait for torch.
    from unified.evaluation.minimal_pairs import score_pairs
    from unified.evaluation.pair_files import read_paradigms
    from unified.runtime.progress import StepProgress
    from unified.tasks.metrics.bootstrap import bootstrap_intervals, require_several

    path = Path(args.data)
    pairs = read_paradigms(path)
    if pairs.left_out:
        print(f"note: left out, as they hold no pairs: {', '.join(pairs.left_out)}", file=sys.stderr)
    count = sum(len(paradigm.good) for paradigm in pairs.paradigms)
    if args.intervals:
        require_several(count)
    lm = language_model(args)
    scorings = chosen_scorings(names, lm)
    sampling = chosen_sampling(args, scorings)
    with StepProgress("scoring", 2 * len(scorings) * count, "sentences") as progress:
        scored = score_pairs(lm, pairs.paradigms, scorings, sampling, lambda count: progress.advance(steps=count))
    scores = scored.scores()
    if args.intervals:
        scores["intervals"] = bootstrap_intervals(scored, resamples(args), sampling.seed)
    scoring = "+".join(one.name for one in scorings)
    fields = {name: value for name, value in scores.get("field", {}).items() if name not in scores}
    output = write_results(
        args,
        lm,
        NAME,
        data_name(path),
        pairs.files,
        {"accuracy": scores["accuracy"], **fields, "pairs": scores["pairs"], "ties": scores["ties"]},
        {"scoring": scoring, "draws": sampling.draws if draws_at_random(scorings) else None},
        sampling.seed if draws_at_random(scorings) else None,
        details=scores,
    )
    if args.json:
        print_json({**scores, "scoring": scoring, "output": output})
    else:
        print("\n".join(_table(scores, scoring)))
    return 0


def _table(scores: Mapping[str, Any], scoring: str) -> Iterator[str]:
    """Lines of a Markdown table: all pairs, then by field, by term and by paradigm."""
    intervals = scores.get("intervals", {})
    yield f"minimal pairs, scoring {scoring}: {counted(scores['pairs'], 'pair')}, {counted(scores['ties'], 'tie')}"
    yield ""

    def row(kind: str, name: str, value: float, interval: list[float] | None, ties: str) -> list[str]:
        shown = f"{interval[0]:.1f} to {interval[1]:.1f}" if interval is not None else ""
        return [kind, name, f"{value:.2f}", *([shown] if intervals else []), ties]

    all_ties = str(scores["ties"] or "")
    rows = [row("all", "mean over paradigms", scores["accuracy"], intervals.get("accuracy"), all_ties)]
    for kind in ("field", "linguistics_term", "paradigm"):
        for name, value in scores.get(kind, {}).items():
            ties = str(scores["tied"].get(name, "")) if kind == "paradigm" else ""
            rows.append(row(kind.replace("_", " "), name, value, intervals.get(kind, {}).get(name), ties))
    yield from table_lines(["of", "", "accuracy", *(["95 % interval"] if intervals else []), "ties"], rows)
