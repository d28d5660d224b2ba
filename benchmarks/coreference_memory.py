"""Memory that coreference takes for documents of growing length, predicting and training.

    python benchmarks/coreference_memory.py [--words 1000 2000 4000 8000 16000] [--head SETTINGS]

Every measurement has a process of its own, on the CPU, under Linux. ``mebibytes`` is the peak beyond what the process
has with the model and a short document behind it. What bounds it: predicting holds the Transformer's layers of 8,192
tokens, the hidden layers of a fixed number of spans and pairs, and 256 rows of the comparison of ``max_spans`` spans
at a time; of the whole document only the last states, the candidates by number and vectors of at most ``max_spans``
spans. Training reads at most ``max_windows`` windows of a document. The bars: the longest document's peak over the
shortest one's is at most the ratio of their lengths predicting, and 1.25 training.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from paired import report, run_program
from resident import MEBIBYTE, forget_peak, in_own_process, resident

from unified.data.vocabulary import Vocabulary
from unified.inference.sequences import Codec
from unified.kernels.cpu import accelerate
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.heads import parse_head
from unified.tasks.heads.batches import assembled, runs_of, units_of
from unified.tasks.heads.documents import DocumentItem
from unified.tasks.prediction import Predictor
from unified.tokenization.wordpiece import WordPieceTokenizer

HEAD = "coreference(max_windows=3, hidden=200)"
LAYERS, WIDTH, LONGEST, SENTENCE = 6, 384, 384, 22


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--words",
        type=int,
        nargs="+",
        default=[1000, 2000, 4000, 8000, 16000],
        help="lengths of the documents, in words (default: %(default)s)",
    )
    parser.add_argument("--head", default=HEAD, help="coreference head and its settings (default: %(default)s)")
    arguments = parser.parse_args()
    configuration = {"head": arguments.head, "layers": LAYERS, "width": WIDTH, "tokens_of_window": LONGEST}
    for action in ACTIONS:
        peaks = {}
        for words in sorted(arguments.words):
            measured = in_own_process(measure, action, words, arguments.head)
            peaks[words] = measured.pop("mebibytes")
            report(
                f"coreference: {action}",
                configuration,
                [peaks[words]],
                unit="mebibytes",
                at=("words", words),
                **measured,
            )
        short, long = min(peaks), max(peaks)
        report(
            f"coreference: {action}, peak of {long} words / of {short}",
            configuration,
            [peaks[long] / peaks[short]],
            bar=long / short if action == "predict" else 1.25,
            at_most=True,
        )


def measure(action: str, words: int, head: str, layers: int = LAYERS) -> dict[str, float]:
    """Mebibytes and seconds that a document takes, and how many windows of it are read."""
    torch.set_num_threads(1)
    predictor = model(head, layers)
    ACTIONS[action](predictor, document(50))
    item = document(words)
    forget_peak()
    before, began = resident(), time.perf_counter()
    windows = ACTIONS[action](predictor, item)
    return {
        "mebibytes": (resident("VmHWM") - before) / MEBIBYTE,
        "seconds": round(time.perf_counter() - began, 1),
        "windows_read": windows,
    }


def predict(predictor: Predictor, item: DocumentItem) -> int:
    """Windows that were read."""
    next(predictor.predict([item]))
    return len(predictor.task.encode([item], predictor.codec).examples)


def train(predictor: Predictor, item: DocumentItem) -> int:
    """Gradients of the loss of one document; how many windows were read."""
    task, codec, network = predictor.task, predictor.codec, predictor.model.train()
    encoded = task.encode([item], codec)
    (members,) = runs_of(units_of(encoded.owners, True), task.longest_run, np.random.default_rng(0))
    _, batch, reading = assembled(encoded, members, codec.longest, codec.vocabulary.special.pad)
    task.loss(network.scores(batch, reading, predictor.head), reading).total.backward()
    network.zero_grad(set_to_none=False)  # the gradients' own memory is the model's, not the document's
    return len(members)


ACTIONS: dict[str, Callable[[Predictor, DocumentItem], int]] = {"predict": predict, "train": train}


def model(head: str, layers: int) -> Predictor:
    """A predictor with random weights."""
    words = [f"word{i}" for i in range(1000)]
    vocabulary = Vocabulary(words)
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words], lowercase=False)
    config = TransformerConfig(len(vocabulary), layers=layers, width=WIDTH, heads=WIDTH // 32, max_positions=LONGEST)
    torch.manual_seed(0)
    task = parse_head(head).for_items([document(10)])
    network = accelerate(UnifiedModel.for_tasks(config, {"coreference": task.head(config)})).eval()
    return Predictor(network, "coreference", task, Codec(tokenizer, vocabulary, LONGEST))


def document(words: int) -> DocumentItem:
    """Random words in sentences of one length; every tenth word is a mention of one of some things."""
    rng = np.random.default_rng(words)
    names = [f"word{i}" for i in rng.integers(1000, size=words)]
    sentences = [tuple(names[i : i + SENTENCE]) for i in range(0, words, SENTENCE)]
    things = rng.integers(max(1, words // 50), size=words)
    chains: dict[int, list[tuple[int, int]]] = {}
    for word in range(0, words, 10):
        chains.setdefault(int(things[word]), []).append((word, word))
    return DocumentItem("d", tuple(sentences), chains=tuple(map(tuple, chains.values())))


if __name__ == "__main__":
    run_program(main)
