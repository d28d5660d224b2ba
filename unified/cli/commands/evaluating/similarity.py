"""``unified evaluate similarity``: do vectors of texts agree with people about which texts are alike?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unified.arguments import counted
from unified.cli.commands.evaluating.comparing import (
    add_against_argument,
    difference_cells,
    difference_heads,
    examples_against,
    numbers,
    own_scores,
    scores_beside,
)
from unified.cli.commands.evaluating.options import (
    add_model_arguments,
    add_output_arguments,
    check_options,
    data_name,
    write_results,
)
from unified.cli.device import use_device
from unified.cli.fields import add_field_arguments, field_names
from unified.cli.intervals import add_interval_arguments, require_drawn, seed_of_resamples
from unified.cli.output import print_json
from unified.cli.values import positive
from unified.errors import Problems, UnifiedError

if TYPE_CHECKING:
    from unified.files.rows import Row
    from unified.tasks.heads.items import TextItem

NAME = "similarity"
HELP = "correlation of the similarity of vectors with that by people: STS"
DESCRIPTION = (
    "Compare the cosine between the vectors of two texts with the similarity that people gave the pair: correlations "
    "of Pearson and of Spearman, from -100 to 100."
)
POOLINGS = ("mean", "cls")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this type."""
    parser.add_argument(
        "data",
        metavar="FILE",
        help="file of STS-B (.tsv, .csv), or rows with the fields text, second and label (CSV, TSV, Parquet, JSON "
        "lines, a JSON array); compressed or not",
    )
    add_field_arguments(parser, "text", "second", "label")
    add_model_arguments(parser)
    parser.add_argument(
        "--pooling",
        choices=POOLINGS,
        default=POOLINGS[0],
        help="vector of a text; mean: the mean of the states of all tokens, special symbols included; cls: the state "
        "of CLS (default: mean)",
    )
    parser.add_argument(
        "--max-length",
        type=positive,
        metavar="N",
        help="tokens of a text that are read, its first ones (default: what the positions of the model leave)",
    )
    parser.add_argument(
        "--batch-size", type=positive, default=32, metavar="N", help="texts that are read together (default: 32)"
    )
    add_interval_arguments(parser, "pairs", seed=True)
    add_against_argument(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the evaluation with parsed options; returns the exit status."""
    check_options(args, NAME)
    require_drawn(args, "seed")
    # Imported here, so that --help does not wait for torch.
    import numpy as np

    from unified.evaluation.similarity import similarities
    from unified.tasks.loading import load
    from unified.tasks.metrics.classification import Regression, require_different

    others = examples_against(args, NAME)
    items = _items(args)
    gold = np.array([item.gold_number for item in items])
    require_different(args.data, gold)
    model = load(args.model, device=use_device(args))
    config = model.model.config
    most = config.position_limit - 2
    if args.max_length is not None and args.max_length > most:
        raise UnifiedError(
            f"--max-length {args.max_length}: the model reads {counted(most, 'token')} beside its special symbols"
        )
    longest = args.max_length or (0 if config.positions_in_attention else most)
    found = similarities(
        model,
        [item.text for item in items],
        [str(item.second) for item in items],
        args.pooling,
        longest,
        args.batch_size,
    )
    require_different(f"{args.model}, cosines of the pairs", found)
    scored = Regression(gold, found)

    def of_rows(rows: Sequence[Row]) -> Regression:
        return Regression(*(np.array(numbers(args, rows, name), float) for name in ("label", "similarity")))

    scores = scores_beside(args, scored, others, of_rows, seed_of_resamples(args))
    own = own_scores(scores)
    rows = ({"label": label, "similarity": cosine} for label, cosine in zip(gold.tolist(), found.tolist(), strict=True))
    path = Path(args.data)
    settings = {
        "pooling": args.pooling,
        "max-length": args.max_length,
        **{f"{part}-field": name for part, name in field_names(args).given.items()},
    }
    output = write_results(args, model, NAME, data_name(path), [path], own, settings, None, rows, details=own)
    if args.json:
        print_json({**scores, "pooling": args.pooling, "output": output})
        return 0
    against = scores.get("against")
    heads = difference_heads(against)
    print(f"{counted(scores['total'], 'pair')}, pooling {args.pooling}")
    for name in ("pearson", "spearman"):
        low, high = scores.get("intervals", {}).get(name, (None, None))
        interval = "" if low is None else f" (95 % interval {low:.2f} to {high:.2f})"
        beside = "; ".join(map(" ".join, zip(heads, difference_cells(against, (name,), 2), strict=True)))
        print(f"{name} {scores[name]:.2f}{interval}{beside and f'; {beside}'}")
    return 0


def _items(args: argparse.Namespace) -> list[TextItem]:
    """Pairs of texts with a number, of rows with the fields of such items or of an official file of STS-B."""
    from unified.files.rows import require_rows
    from unified.tasks.datasets.glue_tables import GLUE, read_glue
    from unified.tasks.datasets.own_files import head_files
    from unified.tasks.heads.classification import Regression

    require_rows(args.data)
    names = field_names(args)
    if not names.given and _is_official(args.data):
        return read_glue(GLUE["STS-B"], args.data)[0]
    items: list[TextItem] = head_files(Regression).with_options(NAME, names, None, None).items(args.data)
    problems = Problems()
    for item in items:
        if item.second is None:
            problems.add(f"{args.data}, item {item.id}", "no second text")
    problems.check()
    return items


def _is_official(path: str) -> bool:
    """Whether a table is a file of STS-B: cells are separated by tabs, and the first line is a row or GLUE's header.

    A table whose first line names a field of items, or has fewer cells than a row of STS-B, is one of items.
    """
    from unified.files.text_files import numbered_lines, without_compression
    from unified.tasks.datasets.glue_tables import GLUE

    if not without_compression(path).endswith((".tsv", ".csv")):
        return False
    first = next((line for _, line in numbered_lines(path) if line.strip()), "")
    names = {name.strip(' "') for name in first.split("\t")}
    is_row = first.count("\t") >= len(GLUE["STS-B"].bare) - 1
    return (is_row or GLUE["STS-B"].text in names) and not {"text", "second", "label"} & names
