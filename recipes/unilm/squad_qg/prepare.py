"""SQuAD to question generation: (window of the passage, answer) -> question.

    python recipes/unilm/squad_qg/prepare.py OUTPUT --split reversed --tokenizer data/wiki
    python recipes/unilm/squad_qg/prepare.py OUTPUT --split paper --local train-v1.1.json dev-v1.1.json

Writes OUTPUT/{train,valid,test}.jsonl with the fields id, source (the window and the answer, two parts) and target (the
question), and for valid and test
  .references.txt  the questions, tokenized and lower-cased as Du's files are
  .sentences.txt   the sentences that hold the answers, by which Du's program groups questions
  .sources.txt     window and answer, by which UniLM's seems to (its default file is called test.pa.txt)

The splits du, reversed and paper are explained in unified/tasks/question_generation.py (divide).
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common"))
from sources import counter, fetch, write_jsonl, write_lines  # noqa: E402

from unified.data.squad import SquadParagraph, misaligned_reasons, read_squad_file  # noqa: E402
from unified.errors import UnifiedError  # noqa: E402
from unified.metrics.question_generation import penn_treebank  # noqa: E402
from unified.tasks.question_generation import MAX_SOURCE, SPLITS, QuestionPair, divide, question_pairs  # noqa: E402

SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset/{}-v1.1.json"
DOCLISTS = "https://raw.githubusercontent.com/xinyadu/nqg/master/data/doclist-{}.txt"


def held_out_titles(options: argparse.Namespace, train: list[SquadParagraph]) -> frozenset[str]:
    """Titles of Du's test part, which is cut from the train set; says how many of them are there."""
    if options.split == "paper":
        return frozenset()
    folder = options.doclists
    path = folder / "doclist-test.txt" if folder else fetch(DOCLISTS.format("test"), options.output)
    titles = frozenset(path.read_text(encoding="utf-8").split())
    found = titles & {paragraph.title for paragraph in train}
    print(f"{path}: {len(found)} of its {len(titles)} articles are in the train files", flush=True)
    return titles


def sampled(paragraphs: list[SquadParagraph], count: int | None, seed: int) -> list[SquadParagraph]:
    """The paragraphs with ``count`` of their questions, drawn at random; all where there are no more."""
    questions = [(i, question) for i, paragraph in enumerate(paragraphs) for question in paragraph.questions]
    if not count or count >= len(questions):
        return paragraphs
    chosen = [questions[i] for i in sorted(random.Random(seed).sample(range(len(questions)), count))]
    kept: dict[int, list] = {}
    for i, question in chosen:
        kept.setdefault(i, []).append(question)
    return [SquadParagraph(paragraphs[i].title, paragraphs[i].context, tuple(some)) for i, some in kept.items()]


def write_part(output: Path, name: str, paragraphs: list[SquadParagraph], pairs: list[QuestionPair]) -> None:
    """The files of a part; says what was left out and why."""
    asked = sum(len(paragraph.questions) for paragraph in paragraphs)
    if len(pairs) < asked:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in misaligned_reasons(paragraphs).items())
        print(f"{name}: {asked - len(pairs)} of {asked} questions have no answer to ask for ({reasons})", flush=True)
    rows = ({"id": pair.id, "source": pair.source, "target": pair.target} for pair in pairs)
    write_jsonl(output / f"{name}.jsonl", rows)
    if name != "train":
        write_lines(output / f"{name}.references.txt", (penn_treebank(pair.target) for pair in pairs))
        write_lines(output / f"{name}.sentences.txt", (pair.sentence for pair in pairs))
        write_lines(output / f"{name}.sources.txt", (" ".join(pair.source) for pair in pairs))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="SQuAD to question generation")
    parser.add_argument("output", type=Path, help="folder to write")
    parser.add_argument("--split", choices=SPLITS, default="reversed", help="which articles train, validate and test")
    parser.add_argument(
        "--local", nargs="+", type=Path, metavar="FILE", help="SQuAD files instead of a download: train files, dev last"
    )
    parser.add_argument("--doclists", type=Path, help="folder with doclist-test.txt instead of a download")
    parser.add_argument("--tokenizer", type=Path, help="folder whose tokenizer counts tokens; without it words count")
    parser.add_argument(
        "--max-source", type=int, default=MAX_SOURCE, help=f"tokens of window, separator and answer ({MAX_SOURCE})"
    )
    parser.add_argument(
        "--context", choices=("passage", "sentence"), default="passage", help="what the window is cut from"
    )
    parser.add_argument("--test-sample", type=int, metavar="N", help="keep N test questions, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    options = parser.parse_args(arguments)
    if options.local and len(options.local) < 2:
        parser.error("--local needs at least two files: train, then dev")
    *train_files, dev_file = options.local or [fetch(SQUAD.format(part), options.output) for part in ("train", "dev")]
    train = [paragraph for path in train_files for paragraph in read_squad_file(path)]
    parts = divide(train, read_squad_file(dev_file), options.split, held_out_titles(options, train))
    parts["test"] = sampled(parts["test"], options.test_sample, options.seed)
    count = counter(options.tokenizer)
    for name, paragraphs in parts.items():
        pairs = question_pairs(paragraphs, count, options.max_source, sentence_only=options.context == "sentence")
        write_part(options.output, name, paragraphs, pairs)


if __name__ == "__main__":
    try:
        main()
    except (UnifiedError, OSError) as error:
        sys.exit(f"prepare: error: {error}")
