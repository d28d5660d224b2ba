"""Measures the way from the memory-mapped file to the collated batch: every objective beside transformers' collator.

    python benchmarks/masking.py --tokens 2000000

Random tokens in running documents with annotated spans, or in pairs, as `unified prepare` stores them; blocks of up to
``--length`` tokens are read, made examples of, masked and collated, 32 to a batch. The peer gets rows that are cut
already and masks them. ``per_second`` counts examples.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from models import PAD, VOCABULARY
from paired import OURS, configuration, options, ratios, report, run_program, set_up, take_turns

from unified.data.annotations import TAGS, Annotations, columns, span_prefix
from unified.data.collate import collate_flat
from unified.data.token_files import TokenFile, TokenFileWriter, token_dtype
from unified.data.vocabulary import Vocabulary
from unified.objectives import parse_objectives
from unified.objectives.mixture import Mixture
from unified.planning.documents import DocumentTexts
from unified.planning.pairs import PairTexts
from unified.planning.sources import TextSource
from unified.training.row_dataset import RowDataset

BATCH = 32
#: Annotation -> tokens of the text for each of its spans.
ANNOTATED = {"noun_phrases": 4, "entities": 16, "parts_of_speech": 2}
#: Objective -> rows per second that we want: fewer of spans and permutations.
BARS = {
    "bidirectional": 10_000,
    "bidirectional(whole_words=True)": 10_000,
    "bidirectional(next_sentence=False)": 10_000,
    "left_to_right": 10_000,
    "right_to_left": 10_000,
    "seq2seq": 10_000,
    "target_cloze": 10_000,
    "target_next": 10_000,
    "bert": 10_000,
    "bert(whole_words=True)": 10_000,
    "bert(next_sentence=False)": 10_000,
    "anna(scheme='token')": 10_000,
    "bert_style": 10_000,
    "mass_style": 10_000,
    "prefix_lm": 10_000,
    "deshuffling": 10_000,
    "drop_tokens": 10_000,
    "spanbert": 4_000,
    "spanbert(scheme='whole_word')": 4_000,
    "spanbert(scheme='subword')": 4_000,
    "spanbert(scheme='named_entity')": 4_000,
    "spanbert(scheme='noun_phrase')": 4_000,
    "spanbert(next_sentence=True)": 4_000,
    "anna": 4_000,
    "anna(scheme='entity')": 4_000,
    "anna(scheme='pos')": 4_000,
    "xlnet": 4_000,
    "xlnet(denoising=True)": 4_000,
    "xlnet(next_sentence=True)": 4_000,
    "random_spans": 4_000,
    "replace_spans": 4_000,
}


def write_documents(prefix: Path, tokens: int, vocabulary: Vocabulary) -> None:
    """Documents of some 19,000 tokens in paragraphs of about 80; rows mostly hold one example then."""
    rng, special = np.random.default_rng(0), vocabulary.special
    with TokenFileWriter(prefix, token_dtype(len(vocabulary))) as file:
        written = 0
        while written < tokens:
            for _ in range(int(rng.integers(120, 360))):
                size = int(rng.integers(20, 140))
                paragraph = rng.integers(special.ordinary_start, special.ordinary_stop, size)
                file.add(np.append(paragraph, special.separator))
                written += size + 1
            file.add(np.array([special.separator]))


def write_spans(file: TokenFile) -> None:
    """Annotations of every kind beside a file: runs of tokens at random."""
    rng = np.random.default_rng(1)
    for kind, tokens in ANNOTATED.items():
        with TokenFileWriter(span_prefix(file.prefix, kind), np.uint16) as spans:
            for size in file.sizes.tolist():
                bounds = rng.choice(size, 2 * (size // tokens), replace=False)
                numbers = np.sort(bounds).reshape(-1, 2)
                if columns(kind) == 3:
                    numbers = np.column_stack([numbers, rng.integers(len(TAGS), size=len(numbers))])
                spans.add(numbers.ravel())


def write_pairs(folder: Path, tokens: int, vocabulary: Vocabulary, length: int) -> tuple[TokenFile, TokenFile]:
    """Sources and targets that nearly fill rows of ``length``."""
    rng, special = np.random.default_rng(2), vocabulary.special
    files = []
    for name, low, high in (("source", 3 * length // 4, 7 * length // 8), ("target", length // 13, length // 9)):
        with TokenFileWriter(folder / name, token_dtype(len(vocabulary))) as file:
            for _ in range(max(BATCH, tokens // length)):
                text = rng.integers(special.ordinary_start, special.ordinary_stop, rng.integers(low, high))
                file.add(np.append(text, special.separator))
        files.append(TokenFile(folder / name))
    return files[0], files[1]


def ours(mixture: Mixture, texts: TextSource, rows: int, length: int) -> Callable[[], None]:
    """A call that makes batches of a number of rows, others at each call."""
    data = RowDataset(texts, mixture, length, seed=1, packed=False)
    order = itertools.cycle(np.random.default_rng(0).permutation(len(data)).tolist())

    def call() -> None:
        for _ in range(rows // BATCH):
            examples, per_row = data.examples(list(itertools.islice(order, BATCH)))
            collate_flat(examples, per_row, length, mixture.names, PAD)

    return call


def theirs(rows: int, length: int) -> Callable[[], None]:
    """transformers' collator of masked tokens, whatever the objective, on rows that are cut already."""
    from transformers import BertTokenizerFast, DataCollatorForLanguageModeling

    words = [f"w{i}" if i % 4 else f"##w{i}" for i in range(VOCABULARY - 5)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
        tokenizer = BertTokenizerFast(vocab=str(path))
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    rng = np.random.default_rng(0)
    cut = [{"input_ids": torch.from_numpy(rng.integers(5, VOCABULARY - 1, length))} for _ in range(rows)]

    def call() -> None:
        for start in range(0, rows, BATCH):
            collator([dict(one) for one in cut[start : start + BATCH]])

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=2_000_000, help="tokens of the corpus (default: %(default)s)")
    parser.add_argument(
        "--rows", type=int, default=640, help="rows made in a round, a multiple of 32 (default: %(default)s)"
    )
    parser.add_argument("--length", type=int, default=512, help="tokens of a row (default: %(default)s)")
    parser.add_argument("--objectives", nargs="+", default=list(BARS), help="objectives to measure (default: all)")
    options(parser, rounds=5)
    arguments = parser.parse_args()
    arguments.threads = 1
    if arguments.rows < BATCH or arguments.rows % BATCH:
        parser.error(f"--rows must be a multiple of {BATCH}, the rows of a batch")
    set_up(arguments)
    vocabulary = Vocabulary([f"w{i}" for i in range(VOCABULARY - 5)])
    starts = np.arange(len(vocabulary)) % 4 > 0
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "train"
        write_documents(prefix, arguments.tokens, vocabulary)
        file = TokenFile(prefix)
        write_spans(file)
        documents = DocumentTexts(file, vocabulary.special, starts, Annotations(file))
        pairs = PairTexts(
            *write_pairs(Path(folder), arguments.tokens, vocabulary, arguments.length), vocabulary.special
        )
        peer = theirs(arguments.rows, arguments.length)
        for objective in arguments.objectives:
            mixture = parse_objectives(objective)
            texts = pairs if mixture.paired else documents
            calls = {OURS: ours(mixture, texts, arguments.rows, arguments.length), "transformers": peer}
            times = take_turns(calls, arguments.rounds)
            report(
                f"masking: {objective}",
                configuration(arguments, "objectives"),
                [arguments.rows / seconds for seconds in times[OURS]],
                BARS.get(objective),
                unit="per_second",
                ratio_to_transformers=round(statistics.median(ratios(times, "transformers")), 2),
            )


if __name__ == "__main__":
    run_program(main)
