"""The rules that the quickstart's systems have to beat, without a model.

python recipes/quickstart/baseline.py rule quickstart/corpus/restore/test.source rule.txt
python recipes/quickstart/baseline.py lead quickstart/corpus/summarize/test.jsonl lead.txt
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from prose import split_sentences


def capital_and_full_stop(source: str) -> str:
    """The restoring rule: the first letter becomes a capital, a full stop closes the sentence, nothing else changes."""
    return f"{source[:1].upper()}{source[1:]}."


def lead_sentence(source: str) -> str:
    """The first sentence of the body in a summarization source, ``"qualified name: body"``."""
    _, _, body = source.partition(": ")
    return next(iter(split_sentences(body)), "")


def restore_lines(path: Path) -> list[str]:
    return [capital_and_full_stop(line) for line in path.read_text(encoding="utf-8").splitlines()]


def lead_lines(path: Path) -> list[str]:
    return [lead_sentence(json.loads(line)["source"]) for line in path.read_text(encoding="utf-8").splitlines()]


BASELINES = {"rule": restore_lines, "lead": lead_lines}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="predictions that need no model")
    parser.add_argument("baseline", choices=BASELINES, help="rule: capital first, full stop last; lead: first sentence")
    parser.add_argument(
        "source", type=Path, help="file of sources: restore/*.source for rule, summarize/*.jsonl for lead"
    )
    parser.add_argument("output", type=Path, help="file to write the hypotheses to, one a line")
    options = parser.parse_args(arguments)
    lines = BASELINES[options.baseline](options.source)
    options.output.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    print(f"{options.output}: {len(lines):,} lines")


if __name__ == "__main__":
    main()
