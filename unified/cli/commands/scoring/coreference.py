"""Coreference chains."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from unified.cli.commands.scoring import ScoreParsers, add_parser, add_predictions, naming

if TYPE_CHECKING:
    from unified.tasks.metrics.bootstrap import Examples


def add_parsers(scores: ScoreParsers) -> None:
    """Declare the types of scores that this module computes."""
    coref = add_parser(scores, "coref", "MUC, B3, CEAF, BLANC and the average F1 of CoNLL-2012")
    coref.add_argument("key", metavar="KEY", help="file with the gold chains, in the format of CoNLL-2012")
    add_predictions(
        coref, "RESPONSE", "file with the predicted chains of the same documents, in the format of CoNLL-2012"
    )
    coref.set_defaults(score=_coref)


def _coref(args: argparse.Namespace) -> Examples:
    from unified.tasks.metrics.conll import pair_documents, read_coreference
    from unified.tasks.metrics.coreference import CoreferenceDocuments

    key, response = read_coreference(args.key), read_coreference(args.predictions)
    pairs = pair_documents(key, response, args.key, args.predictions)
    with naming(args.predictions):
        return CoreferenceDocuments(*pairs)
