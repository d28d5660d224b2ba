"""``unified evaluate minimal-pairs``: does a model prefer the grammatical sentence of two?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.arguments import counted
from unified.cli.commands.evaluating.comparing import (
    add_against_argument,
    difference_cells,
    difference_heads,
    examples_against,
    examples_file,
    numbers,
    own_scores,
    scores_beside,
)
from unified.cli.commands.evaluating.options import (
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
    write_results,
)
from unified.cli.intervals import add_interval_arguments, draws_examples
from unified.cli.output import print_json
from unified.reports.markdown import table_lines

if TYPE_CHECKING:
    from unified.evaluation.minimal_pairs import PairScores
    from unified.files.rows import Row

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
    add_against_argument(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the evaluation with parsed options; returns the exit status."""
    names = chosen_names(args)
    check_options(args, NAME)
    # Imported here, so that --help does not wait for torch.
    from unified.evaluation.minimal_pairs import score_pairs
    from unified.evaluation.pair_files import read_paradigms
    from unified.runtime.progress import StepProgress
    from unified.tasks.metrics.bootstrap import require_several

    path = Path(args.data)
    others = examples_against(args, NAME)
    pairs = read_paradigms(path)
    if pairs.left_out:
        print(f"note: left out, as they hold no pairs: {', '.join(pairs.left_out)}", file=sys.stderr)
    count = sum(len(paradigm.good) for paradigm in pairs.paradigms)
    if draws_examples(args):
        require_several(count)
    lm = language_model(args)
    scorings = chosen_scorings(names, lm)
    sampling = chosen_sampling(args, scorings)
    with StepProgress("scoring", 2 * len(scorings) * count, "sentences") as progress:
        scored = score_pairs(lm, pairs.paradigms, scorings, sampling, lambda count: progress.advance(steps=count))
    scores = scores_beside(args, scored, others, lambda rows: _of_rows(args, scored, rows), sampling.seed)
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
        _rows(scored),
        details=own_scores(scores),
    )
    if args.json:
        print_json({**scores, "scoring": scoring, "output": output})
    else:
        print("\n".join(_table(scores, scoring)))
    return 0


def _rows(scored: PairScores) -> Iterator[dict[str, Any]]:
    """Both sentences and their scores, for each pair."""
    numbers = zip(scored.references(), scored.good.tolist(), scored.bad.tolist(), strict=True)
    for (good, bad), good_score, bad_score in numbers:
        yield {"sentence_good": good, "sentence_bad": bad, "good": good_score, "bad": bad_score}


def _of_rows(args: argparse.Namespace, scored: PairScores, rows: Sequence[Row]) -> PairScores:
    """This model's pairs, with the scores that the rows have.

    Raises:
        UnifiedError: rows are of other pairs, or lack a score.
    """
    import numpy as np

    from unified.evaluation.minimal_pairs import PairScores
    from unified.tasks.metrics.comparison import require_same_examples

    pairs = [(row.fields.get("sentence_good"), row.fields.get("sentence_bad")) for row in rows]
    require_same_examples(scored.references(), pairs, args.data, examples_file(args))
    return PairScores(scored.paradigms, *(np.array(numbers(args, rows, name), float) for name in ("good", "bad")))


def _table(scores: Mapping[str, Any], scoring: str) -> Iterator[str]:
    """Lines of a Markdown table: all pairs, then by field, by term and by paradigm."""
    intervals, against = scores.get("intervals", {}), scores.get("against")
    yield f"minimal pairs, scoring {scoring}: {counted(scores['pairs'], 'pair')}, {counted(scores['ties'], 'tie')}"
    yield ""

    def row(
        names: Sequence[str], value: float, interval: list[float] | None, path: Sequence[str], ties: str
    ) -> list[str]:
        shown = f"{interval[0]:.1f} to {interval[1]:.1f}" if interval is not None else ""
        return [*names, f"{value:.2f}", *([shown] if intervals else []), *difference_cells(against, path, 2), ties]

    all_ties = str(scores["ties"] or "")
    overall = scores["accuracy"], intervals.get("accuracy")
    rows = [row(["all", "mean over paradigms"], *overall, ["accuracy"], all_ties)]
    for kind in ("field", "linguistics_term", "paradigm"):
        for name, value in scores.get(kind, {}).items():
            ties = str(scores["tied"].get(name, "")) if kind == "paradigm" else ""
            interval = intervals.get(kind, {}).get(name)
            rows.append(row([kind.replace("_", " "), name], value, interval, [kind, name], ties))
    heads = ["of", "", "accuracy", *(["95 % interval"] if intervals else []), *difference_heads(against), "ties"]
    yield from table_lines(heads, rows)
