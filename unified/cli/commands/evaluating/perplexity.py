"""``unified evaluate perplexity``: how well does a model predict running text?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.arguments import counted
from unified.cli.commands.evaluating.comparing import (
    add_against_argument,
    difference_cells,
    difference_heads,
    examples_against,
    numbers,
    own_scores,
    scores_beside,
    settings_against,
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
    language_model,
    write_results,
)
from unified.cli.fields import require_fields_in
from unified.cli.intervals import add_interval_arguments, draws_examples
from unified.cli.output import print_json
from unified.cli.values import positive
from unified.errors import UnifiedError
from unified.reports.markdown import table_lines

if TYPE_CHECKING:
    import numpy as np

    from unified.evaluation.perplexity import Perplexity, TextSizes
    from unified.files.rows import Row

NAME = "perplexity"
HELP = "perplexity of running text per token and word, bits per character and byte"
DESCRIPTION = (
    "Predict every token of a text once. A document that is longer than what the model reads is read in windows. "
    "Scorings from both sides give a pseudo-perplexity [Salazar et al. 2020], which is no probability of the text: "
    "compare it among models of one scoring and one tokenizer alone."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this type."""
    parser.add_argument(
        "data",
        metavar="FILE",
        help="raw text, whose documents blank lines divide, or rows with a text each (CSV, TSV, Parquet, JSON lines, a "
        "JSON array); compressed or not",
    )
    parser.add_argument("--text-field", metavar="NAME", help="field or column that holds the text (default: text)")
    add_model_arguments(parser)
    add_scoring_arguments(parser)
    group = parser.add_argument_group("windows of long documents")
    group.add_argument(
        "--window",
        type=positive,
        metavar="N",
        help="tokens of a window, beside special symbols (default: what the positions of the model leave, or 512)",
    )
    group.add_argument(
        "--stride",
        type=positive,
        metavar="N",
        help="tokens that each window but the first scores; those before them are its context, for right_to_left those "
        "behind them (default: half a window)",
    )
    add_interval_arguments(parser, "documents")
    add_against_argument(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the evaluation with parsed options; returns the exit status."""
    names = chosen_names(args)
    if len(names) > 1:
        raise UnifiedError(f"--scoring {args.scoring}: perplexity takes one scoring, not a sum of {len(names)}")
    if args.window is not None and args.stride is not None:
        _require_within(args.stride, args.window)  # before the model is loaded
    check_options(args, NAME)
    # Imported here, so that --help does not wait for torch.
    from unified.evaluation.perplexity import read_documents, score_documents
    from unified.evaluation.windows import window_size, windows
    from unified.files.rows import has_fields
    from unified.runtime.progress import StepProgress
    from unified.tasks.metrics.bootstrap import require_several

    path = Path(args.data)
    others = examples_against(args, NAME)
    theirs = None if others is None else settings_against(args, {"scoring": str, "window": int, "stride": int})
    require_fields_in(args.data, args)
    text_field = "text" if args.text_field is None else args.text_field
    lm = language_model(args)
    [scoring] = chosen_scorings(names, lm)
    sampling = chosen_sampling(args, [scoring])
    size = window_size(lm, scoring, args.window)
    stride = max(1, size // 2) if args.stride is None else args.stride
    _require_within(stride, size)
    documents = read_documents(path, lm, text_field)
    if draws_examples(args):
        require_several(len(documents.tokens))
    settings = {"scoring": scoring.name, "window": size, "stride": stride}
    if others is not None and theirs is not None:
        for note in _notes(settings, documents.sizes, theirs, _of_rows(args, others).sizes):
            print(f"note: --against {args.against} {note}", file=sys.stderr)
    total = sum(len(windows(len(tokens), size, stride)) for tokens in documents.tokens)
    with StepProgress("scoring", total, "windows") as progress:
        scored = score_documents(
            lm, documents, scoring, size, stride, sampling, lambda count: progress.advance(steps=count)
        )
    scores = scores_beside(args, scored, others, lambda rows: _of_rows(args, rows), sampling.seed)
    settings |= {
        "draws": sampling.draws if scoring.draws else None,
        "text-field": text_field if has_fields(path) else None,
    }
    seed = sampling.seed if scoring.draws else None
    own = own_scores(scores)
    output = write_results(args, lm, NAME, data_name(path), [path], own, settings, seed, _rows(scored), details=own)
    if args.json:
        print_json({**scores, "scoring": scoring.name, "window": size, "stride": stride, "output": output})
    else:
        print("\n".join(_lines(scores, scoring.name)))
    return 0


def _require_within(stride: int, size: int) -> None:
    if stride > size:
        raise UnifiedError(f"--stride {stride}: a window has {counted(size, 'token')}, and can score no more")


def _rows(scored: Perplexity) -> Iterator[dict[str, Any]]:
    """The sizes and the score of each document."""
    for sizes, log_likelihood in zip(scored.sizes.rows(), scored.log_likelihoods.tolist(), strict=True):
        yield {**sizes, "log_likelihood": log_likelihood}


def _of_rows(args: argparse.Namespace, rows: Sequence[Row]) -> Perplexity:
    """Documents with the sizes and scores that rows have.

    Raises:
        UnifiedError: a row lacks one.
    """
    import numpy as np

    from unified.evaluation.perplexity import Perplexity, TextSizes

    def column(name: str, kind: type) -> np.ndarray:
        return np.array(numbers(args, rows, name), kind)

    sizes = {own.name: column(own.name, int) for own in fields(TextSizes)}
    return Perplexity(TextSizes(**sizes), column("log_likelihood", float))


def _notes(
    own: Mapping[str, Any], sizes: TextSizes, theirs: Mapping[str, Any], their_sizes: TextSizes
) -> Iterator[str]:
    """Say what beside the models makes perplexities of the same documents differ in two evaluations.

    Args:
        own, theirs: the settings of both.
        sizes, their_sizes: of the documents.
    """
    if theirs["scoring"] != own["scoring"]:
        scorings = f"{theirs['scoring']}, this model by {own['scoring']}"
        yield f"was scored by {scorings}; compare perplexities of one scoring alone"
    tokens, their_tokens = sizes.tokens.tolist(), their_sizes.tokens.tolist()
    if their_tokens != tokens:
        counts = f"{counted(sum(their_tokens), 'token')}, this model {sum(tokens):,}"
        yield f"has {counts}; compare token perplexities of one tokenizer alone"
    divided = max(tokens) > own["window"] or max(their_tokens, default=0) > theirs["window"]
    windows, their_windows = (f"--window {one['window']} --stride {one['stride']}" for one in (own, theirs))
    if divided and their_windows != windows:
        yield f"was scored with {their_windows}, this model with {windows}; compare long documents in equal windows"


def _lines(scores: Mapping[str, Any], scoring: str) -> Iterator[str]:
    """Lines of a Markdown table, a measure each."""
    units = ("document", "token", "word", "byte")
    counts = ", ".join(counted(scores[f"{unit}s"], unit) for unit in units)
    yield f"scoring {scoring}: {counts}; {counted(scores['unknown'], 'token')} unknown"
    yield ""
    intervals, against = scores.get("intervals", {}), scores.get("against")
    rows = []
    for name in ("token_perplexity", "word_perplexity", "bits_per_character", "bits_per_byte"):
        shown = "{:.3f} to {:.3f}".format(*intervals[name]) if name in intervals else ""
        beside = difference_cells(against, (name,), 3)
        rows.append([name.replace("_", " "), f"{scores[name]:.3f}", *([shown] if intervals else []), *beside])
    heads = ["measure", "", *(["95 % interval"] if intervals else []), *difference_heads(against)]
    yield from table_lines(heads, rows)
