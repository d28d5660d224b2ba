"""CoQA to pairs: (what was said and the question, chunk of the passage) -> free-form answer.

    python recipes/unilm/coqa/prepare.py OUTPUT --tokenizer data/wiki
    python recipes/unilm/coqa/prepare.py OUTPUT --local coqa-train-v1.0.json coqa-dev-v1.0.json

Writes OUTPUT/{train,valid,test}.jsonl with the fields id and turn_id (as CoQA names turns), source (two parts) and
target. The official dev set is test, since CoQA's test set is not public; every twentieth train story is valid, with
all its turns. Files of Abg-CoQA are read as well.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common"))
from sources import counter, fetch, write_jsonl  # noqa: E402

from unified.data.coqa import CoqaTurn, read_coqa_file  # noqa: E402
from unified.errors import UnifiedError  # noqa: E402
from unified.tasks.conversation import MAX_HISTORY, MAX_SOURCE, AnswerPair, answer_pairs, unusable  # noqa: E402

COQA = "https://nlp.stanford.edu/data/coqa/coqa-{}-v1.0.json"


def divide(train: list[CoqaTurn], dev: list[CoqaTurn]) -> dict[str, list[CoqaTurn]]:
    """train, valid and test by the rules at the top of this file; stories are told apart by their passage."""
    passages = list(dict.fromkeys(turn.passage for turn in train))
    held_out = set(passages[19::20] or passages[-1:])
    parts = {
        "train": [turn for turn in train if turn.passage not in held_out],
        "valid": [turn for turn in train if turn.passage in held_out],
        "test": dev,
    }
    if not parts["train"]:
        raise UnifiedError("the train part is empty: the train files hold a single story")
    return parts


def write_part(output: Path, name: str, turns: list[CoqaTurn], pairs: list[AnswerPair]) -> None:
    """The file of a part; says what was left out, and how many rationales the chunks lack."""
    reasons = Counter(filter(None, map(unusable, turns)))
    if reasons:
        listed = ", ".join(f"{reason}: {count}" for reason, count in reasons.items())
        print(f"{name}: {reasons.total()} of {len(turns)} turns make no pair ({listed})", flush=True)
    missed = sum(pair.rationale_shown is False for pair in pairs)
    print(f"{name}: the chunk lacks the rationale of {missed} of {len(pairs)} answers", flush=True)
    rows = ({"id": pair.story, "turn_id": pair.number, "source": pair.source, "target": pair.target} for pair in pairs)
    write_jsonl(output / f"{name}.jsonl", rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="CoQA to pairs")
    parser.add_argument("output", type=Path, help="folder to write")
    parser.add_argument(
        "--local", nargs="+", type=Path, metavar="FILE", help="CoQA files instead of a download: train files, dev last"
    )
    parser.add_argument("--tokenizer", type=Path, help="folder whose tokenizer counts tokens; without it words count")
    parser.add_argument(
        "--max-history", type=int, default=MAX_HISTORY, help=f"tokens of question and history ({MAX_HISTORY})"
    )
    parser.add_argument(
        "--max-source", type=int, default=MAX_SOURCE, help=f"tokens of both parts and the separator ({MAX_SOURCE})"
    )
    options = parser.parse_args(arguments)
    if options.local and len(options.local) < 2:
        parser.error("--local needs at least two files: train, then dev")
    *train_files, dev_file = options.local or [fetch(COQA.format(part), options.output) for part in ("train", "dev")]
    parts = divide([turn for path in train_files for turn in read_coqa_file(path)], read_coqa_file(dev_file))
    count = counter(options.tokenizer)
    for name, turns in parts.items():
        pairs = list(answer_pairs(turns, count, options.max_history, options.max_source))
        if not pairs:
            raise UnifiedError(f"the {name} part holds no turn with a question and an answer")
        write_part(options.output, name, turns, pairs)


if __name__ == "__main__":
    try:
        main()
    except (UnifiedError, OSError) as error:
        sys.exit(f"prepare: error: {error}")
