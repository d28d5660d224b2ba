"""Predicted chains, JSON lines with ``id`` and ``chains``, as a file for ``unified score coref``.

python recipes/spanbert/coreference/response.py data/coref/valid.jsonl predictions.jsonl response.conll
unified score coref dev.english.v4_gold_conll response.conll
"""

from __future__ import annotations

import argparse
import json
import sys

from unified.errors import UnifiedError
from unified.metrics.files import numbered_lines
from unified.tasks import Coreference
from unified.tasks.documents import write_response


def read_predictions(path: str) -> dict[str, dict]:
    """By id.

    Raises:
        UnifiedError: a line is no such object, or an id is there twice.
    """
    predictions: dict[str, dict] = {}
    for number, line in numbered_lines(path):
        try:
            prediction = json.loads(line)
            name = prediction["id"]
            prediction["chains"] = [[(int(start), int(end)) for start, end in chain] for chain in prediction["chains"]]
        except (ValueError, KeyError, TypeError):
            raise UnifiedError(f"{path}, line {number}: expected an object with 'id' and 'chains'") from None
        if name in predictions:
            raise UnifiedError(f"{path}, line {number}: document {name!r} was in this file before")
        predictions[name] = prediction
    return predictions


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="predicted chains in the format of CoNLL-2012")
    parser.add_argument("data", metavar="DATA", help="the documents, such as valid.jsonl of prepare.py")
    parser.add_argument("predictions", metavar="PREDICTIONS", help="JSON lines with id and chains")
    parser.add_argument("response", metavar="RESPONSE", help="file to write")
    options = parser.parse_args(arguments)
    try:
        items, predictions = Coreference.read(options.data, labelled=False), read_predictions(options.predictions)
        missing = [item.id for item in items if item.id not in predictions]
        if missing:
            raise UnifiedError(f"{options.predictions}: {len(missing)} documents missing, the first is {missing[0]!r}")
        write_response(options.response, items, [predictions[item.id] for item in items])
    except UnifiedError as error:
        print(f"response.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
