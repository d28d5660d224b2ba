"""Fine-tuning beside ``transformers`` on the same items from the same checkpoint, three seeds of each task.

Hypothesis, written before the runs: both are the same method on the same data, so that the means of three seeds differ
by less than the deviations of the seeds, for every task. Where they do not, one of the two has a defect, or one of the
differences that recipes/peers/README.md lists matters.

The F1 of SQuAD 2.0 is that of the threshold for "no answer" which is best on the very questions that score, on both
sides: ours chooses its threshold there, and the peer answers by another one, of one half, so that their plain F1 would
compare thresholds.
"""

from __future__ import annotations

from entries import Entry, Figures, words

TABLE = "parity"
SEEDS = (1, 2, 3)
#: Tasks of the size ``cpu`` of recipes/peers, by what they cost.
TASKS = ("cola", "wnut17", "stsb", "mrpc", "rte", "codah", "semeval2010", "squad2.0")
#: Raised when the peer got BERT's epsilon: with torch's own its updates had been larger than ours.
VERSION = 2
#: The score of each task that the table shows.
MEASURES = {
    "cola": "matthews",
    "wnut17": "f1",
    "stsb": "spearman",
    "mrpc": "f1",
    "rte": "accuracy",
    "codah": "accuracy",
    "semeval2010": "macro_f1",
    "squad2.0": "best_f1",
}


def entry(task: str, seed: int) -> Entry:
    """Both fine-tunings of a task with one seed."""
    command = words("python", "{recipes}/peers/run.py", "runs", "--size", "cpu", "--only", task, "--seeds", seed)
    return Entry(
        name=f"parity/{task}-{seed}",
        table=TABLE,
        commands=(command,),
        figures=tuple(
            Figures("finetuned", f"runs/{task}/{run}-{seed}/results.json", run) for run in ("ours", "transformers")
        ),
        settings={"task": task},
        seed=seed,
        version=VERSION,
    )


def entries(seed: int) -> list[Entry]:
    """All tasks with one seed."""
    return [entry(task, seed) for task in TASKS]
