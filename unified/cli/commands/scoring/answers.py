"""Answers to questions: SQuAD, MRQA, CoQA, and of one's own."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

from unified.cli.commands.scoring import ScoreParsers, Systems, add_parser, add_predictions, naming
from unified.cli.fields import add_field_arguments, field_names
from unified.cli.needed_options import require_with
from unified.errors import UnifiedError

if TYPE_CHECKING:
    from unified.tasks.metrics.bootstrap import Examples

_NO_ANSWER_ABOVE = 1.0


def add_parsers(scores: ScoreParsers) -> None:
    """Declare the types of scores that this module computes."""
    squad = add_parser(scores, "squad", "exact match and F1 of SQuAD 1.1 and 2.0")
    _add_files(squad, "file of SQuAD, JSON", "JSON object: question id to answer, '' for none")
    squad.add_argument(
        "--rules", choices=("1.1", "2.0"), help="official program to follow (default: the version that DATA states)"
    )
    squad.add_argument(
        "--na-prob",
        nargs="+",
        metavar="FILE",
        help="file with the probability that there is no answer, a JSON object from question id to number (SQuAD "
        "2.0), for each file of predictions",
    )
    squad.add_argument(
        "--against-na-prob",
        nargs="+",
        metavar="FILE",
        help="the same files for the predictions of --against",
    )
    squad.set_defaults(systems=Systems({"predictions": "against", "na_prob": "against_na_prob"}, runs=True))
    squad.add_argument(
        "--na-prob-thresh",
        type=float,
        metavar="X",
        help=f"probability above which no answer is given, with --na-prob (default: {_NO_ANSWER_ABOVE})",
    )
    squad.set_defaults(score=_squad)
    mrqa = add_parser(scores, "mrqa", "exact match and F1 of MRQA")
    _add_files(mrqa, "file of MRQA, JSON lines (.jsonl.gz)", "JSON object: question id to answer")
    mrqa.set_defaults(score=_mrqa)
    coqa = add_parser(scores, "coqa", "exact match and F1 of CoQA, by domain")
    _add_files(coqa, "file of CoQA, JSON", "JSON list of objects with id, turn_id and answer")
    coqa.set_defaults(score=_coqa)
    span = add_parser(scores, "span", "exact match and F1 of answers to questions of your own")
    _add_files(
        span,
        "rows with 'question', 'context' and 'answers', as `unified finetune span` reads them",
        "rows with 'id' and 'answer', as `unified predict span` writes them",
        called="GOLD",
    )
    span.add_argument(
        "--rules",
        choices=("1.1", "2.0"),
        help="rules of SQuAD to follow (default: 2.0 where some rows of GOLD have no answer, else 1.1)",
    )
    add_field_arguments(span, "text", "second", "label")
    span.set_defaults(score=_span)


def _add_files(parser: argparse.ArgumentParser, data: str, predictions: str, called: str = "DATA") -> None:
    parser.add_argument("data", metavar=called, help=data)
    add_predictions(parser, "PREDICTIONS", predictions)


def _squad(args: argparse.Namespace) -> Examples:
    from unified.files.rows import has_fields
    from unified.files.text_files import without_compression
    from unified.tasks.metrics.answer_files import read_predictions, read_probabilities, read_squad
    from unified.tasks.metrics.squad import SquadV2Examples

    if has_fields(args.data) and not without_compression(args.data).lower().endswith(".json"):
        raise UnifiedError(f"{args.data}: rows, not a file of SQuAD; `unified score span` scores answers to them")
    threshold = _NO_ANSWER_ABOVE if args.na_prob_thresh is None else args.na_prob_thresh
    if math.isnan(threshold):
        raise UnifiedError(f"--na-prob-thresh must be a number, got {threshold}")
    require_with("--against", args.against, {"--against-na-prob": args.against_na_prob})
    if args.against and (args.na_prob is None) != (args.against_na_prob is None):
        raise UnifiedError("--na-prob and --against-na-prob: give the probabilities of both systems, or of none")
    if args.na_prob_thresh is not None and not args.na_prob:
        raise UnifiedError("--na-prob-thresh is for the probabilities of --na-prob; give their file")
    data = read_squad(args.data)
    rules = args.rules or data.version.lstrip("v")
    if rules not in ("1.1", "2.0"):
        raise UnifiedError(f"{args.data}: states version {data.version!r}; say --rules 1.1 or --rules 2.0")
    predictions = read_predictions(args.predictions)
    if rules == "1.1":
        if args.na_prob:
            raise UnifiedError("--na-prob: the rules of SQuAD 1.1 have no unanswerable questions; say --rules 2.0")
        return _by_squad_1(data.answers, predictions, args)
    na_probs = read_probabilities(args.na_prob) if args.na_prob else None
    with naming(args.data, args.predictions):
        return SquadV2Examples(data.answers, predictions, na_probs, threshold)


def _mrqa(args: argparse.Namespace) -> Examples:
    from unified.tasks.metrics.answer_files import read_mrqa, read_predictions

    return _by_squad_1(read_mrqa(args.data), read_predictions(args.predictions), args)


def _by_squad_1(answers: dict[str, list[str]], predictions: dict[str, str], args: argparse.Namespace) -> Examples:
    from unified.tasks.metrics.squad import SquadV1Examples

    with naming(args.data, args.predictions):
        examples = SquadV1Examples(answers, predictions)
    _say_unanswered(sum(question not in predictions for question in answers), examples.size, "questions")
    return examples


def _coqa(args: argparse.Namespace) -> Examples:
    from unified.files.ids import require_common
    from unified.tasks.metrics.answer_files import read_coqa, read_coqa_predictions
    from unified.tasks.metrics.coqa import CoqaDomains

    data, predictions = read_coqa(args.data), read_coqa_predictions(args.predictions)
    if not predictions:
        raise UnifiedError(f"{args.predictions}: holds no prediction")
    require_common(args.predictions, map(_turn, predictions), args.data, map(_turn, data.turns), "turn")
    _say_unanswered(sum(turn not in predictions for turn in data.turns), len(data.turns), "turns")
    with naming(args.data, args.predictions):
        return CoqaDomains(data.answers, [predictions.get(turn) for turn in data.turns], data.sources)


def _span(args: argparse.Namespace) -> Examples:
    from unified.tasks.datasets.own_files import head_files
    from unified.tasks.heads.span import SpanAnswers
    from unified.tasks.metrics.files import read_answers
    from unified.tasks.metrics.squad import SquadV2Examples

    items = head_files(SpanAnswers).with_options("span", field_names(args), None, None).items(args.data)
    answers, predictions = {item.id: item.gold for item in items}, read_answers(args.predictions)
    if args.rules == "1.1" or (args.rules is None and all(answers.values())):
        return _by_squad_1(answers, predictions, args)
    with naming(args.data, args.predictions):
        return SquadV2Examples(answers, predictions)


def _say_unanswered(unanswered: int, total: int, what: str) -> None:
    """Say on standard error how much has no prediction, as in half of a development set."""
    if unanswered:
        print(f"{unanswered} of {total} {what} have no prediction and score 0", file=sys.stderr)


def _turn(turn: tuple[str, str]) -> str:
    """A turn in one text."""
    return " ".join(turn)
