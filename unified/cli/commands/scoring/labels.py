"""Labels of texts, numbers, relations and tags."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unified.cli.commands.scoring import ScoreParsers, add_parser, add_predictions, naming
from unified.cli.fields import add_field_arguments, field_names, require_fields_in
from unified.cli.needed_options import require_with
from unified.errors import UnifiedError
from unified.files.fields import FieldNames

if TYPE_CHECKING:
    from unified.tasks.metrics.bootstrap import Examples

_LABELS = "one label a line, 'id<tab>label', or rows with 'label' (CSV, Parquet, JSON lines, ...)"


def add_parsers(scores: ScoreParsers) -> None:
    """Declare the types of scores that this module computes."""
    classification = add_parser(scores, "classification", "accuracy, macro F1, Matthews correlation, F1 of one class")
    _add_files(classification, _LABELS, classes=True)
    classification.add_argument(
        "--positive", metavar="LABEL", help="class whose precision, recall and F1 to print as well"
    )
    classification.set_defaults(score=_classification)
    choice = add_parser(scores, "choice", "accuracy of chosen answers, in all and by subset, such as RACE's levels")
    _add_files(choice, "'id<tab>number', or rows with 'label' and perhaps 'subset' (CSV, Parquet, JSON lines, ...)")
    choice.set_defaults(score=_choice)
    regression = add_parser(scores, "regression", "Pearson and Spearman correlation")
    _add_files(regression, "one number a line, 'id<tab>number', or rows with 'label' (CSV, Parquet, JSON lines, ...)")
    regression.set_defaults(score=_regression)
    relation = add_parser(scores, "relation", "F1 of relations by the rules of TACRED or SemEval-2010 task 8")
    _add_files(relation, _LABELS, classes=True)
    relation.add_argument(
        "--rules",
        choices=("tacred", "semeval2010"),
        default="tacred",
        help="rules of scoring: tacred computes micro F1 without no_relation, semeval2010 macro F1 of the nine "
        "directed relations (default: tacred)",
    )
    relation.add_argument(
        "--negative",
        metavar="LABEL",
        help="label of no relation, for the rules of TACRED (default: no_relation)",
    )
    relation.set_defaults(score=_relation)
    tagging = add_parser(scores, "tagging", "F1 of entities in BIO or IOB1 tags, by conlleval's rules")
    _add_files(
        tagging, "a token a line, the tag in the last column, blank lines between, or rows with 'tags'", classes=True
    )
    tagging.set_defaults(score=_tagging)


def _add_files(parser: argparse.ArgumentParser, lines: str, classes: bool = False) -> None:
    parser.add_argument("gold", metavar="GOLD", help=f"file with the gold labels: {lines}")
    add_predictions(parser, "PREDICTIONS", "file with the predictions, in the same format")
    add_field_arguments(parser, "label", labels=classes)


def _names(args: argparse.Namespace, own: FieldNames) -> FieldNames:
    """Names of the gold labels' fields."""
    require_fields_in(args.gold, args)
    return replace(field_names(args), parts=own.parts)


def _classification(args: argparse.Namespace) -> Examples:
    from unified.tasks.metrics.classification import Classification, Confusion, require_class
    from unified.tasks.metrics.files import LABEL, read_labels

    gold, predicted = read_labels(args.gold, args.predictions, names=_names(args, LABEL))
    with naming(args.gold, args.predictions):
        confusion = Confusion.of(gold, predicted)
        require_class(confusion, args.positive)
        return Classification(confusion, args.positive)


def _choice(args: argparse.Namespace) -> Examples:
    from unified.tasks.metrics.classification import Classification, Confusion
    from unified.tasks.metrics.examples import Joined, Noted, Shaped
    from unified.tasks.metrics.files import LABEL, read_labels, read_subsets
    from unified.tasks.metrics.subsets import OfSubsets

    names = _names(args, LABEL)
    gold, predicted = read_labels(args.gold, args.predictions, names=names)
    whole = Shaped(Classification(Confusion.of(gold, predicted)), _accuracy)
    subsets = read_subsets(args.gold, names) or [None] * len(gold)
    totals = {f"total_{subset}": count for subset, count in Counter(subsets).items() if subset is not None}
    return Noted(Joined(whole, OfSubsets(whole, subsets, ["accuracy"])), totals)


def _accuracy(scores: Mapping[str, Any]) -> dict[str, Any]:
    return {name: scores[name] for name in ("accuracy", "total") if name in scores}


def _regression(args: argparse.Namespace) -> Examples:
    import numpy as np

    from unified.tasks.metrics.classification import Regression, require_different
    from unified.tasks.metrics.files import LABEL, read_numbers

    found = read_numbers(args.gold, args.predictions, _names(args, LABEL))
    gold, predicted = map(np.array, found)
    scored = Regression(gold, predicted)
    require_different(args.gold, gold)
    require_different(args.predictions, predicted)
    return scored


def _relation(args: argparse.Namespace) -> Examples:
    from unified.tasks.metrics.classification import Confusion
    from unified.tasks.metrics.files import LABEL, read_labels
    from unified.tasks.metrics.relations import OTHER, Relations, SemevalRelations

    semeval = args.rules == "semeval2010"
    require_with("--rules tacred", not semeval, {"--negative": args.negative})
    negative = OTHER if semeval else "no_relation" if args.negative is None else args.negative
    gold, predicted = read_labels(args.gold, args.predictions, negative, _names(args, LABEL))
    with naming(args.gold, args.predictions):
        if args.negative is not None and args.negative not in (*gold, *predicted):
            known = ", ".join(map(repr, sorted({*gold, *predicted})[:20]))
            raise UnifiedError(f"--negative {negative}: no label is called so; the labels are {known}")
        confusion = Confusion.of(gold, predicted)
        return SemevalRelations(confusion) if semeval else Relations(confusion, negative)


def _tagging(args: argparse.Namespace) -> Examples:
    from unified.tasks.metrics.files import TAGS, read_tagged
    from unified.tasks.metrics.tagging import TaggedSentences

    gold, predicted = read_tagged(args.gold, args.predictions, _names(args, TAGS))
    with naming(args.gold, args.predictions):
        return TaggedSentences(gold, predicted, by_type=True)
