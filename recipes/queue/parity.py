"""Fine-tuning beside ``transformers`` on the same items from the same checkpoint, three seeds of each task.

Hypothesis, written before the runs: both are the same method on the same data, so that the means of three seeds differ
by less than the deviations of the seeds, for every task. Where they do not, one of the two has a defect, or one of the
differences that recipes/peers/README.md lists matters.

That is a weak test: of two equal methods it fails on about every second task. So there is a second hypothesis, written
before the runs of SQuAD 2.0 and of SemEval's seeds 2 and 3 and about these two tasks alone: the means differ by less
than 1.5 points.

When all seeds of a task have run, both are compared on its items: the difference of the means over seeds, and its
interval of 95 % over items.

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
#: Later ones of single tasks: the peer of relations had read [CLS] behind new marks, and reads two marks as ours now.
VERSIONS = {"semeval2010": 3}
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
        version=VERSIONS.get(task, VERSION),
    )


def entries(seed: int) -> list[Entry]:
    """All tasks with one seed."""
    return [entry(task, seed) for task in TASKS]


#: Type of `unified score` for each task, with its options.
_SCORED = {
    "cola": ("classification",),
    "wnut17": ("tagging",),
    "stsb": ("regression",),
    "mrpc": ("classification", "--positive", "1"),
    "rte": ("classification",),
    "codah": ("choice",),
    "semeval2010": ("relation", "--rules", "semeval2010"),
    "squad2.0": ("squad",),
}


def compared(task: str) -> Entry:
    """Ours beside the peer on the items of a task, in the mean over all seeds."""
    ours, theirs = (
        [f"{{parity/{task}-{seed}}}/runs/{task}/{run}-{seed}" for seed in SEEDS] for run in ("ours", "transformers")
    )
    if task == "squad2.0":
        gold, found = f"{{parity/{task}-1}}/runs/{task}/files/dev-v2.0.json", "valid.best_non_null.json"
        probabilities = [[f"{run}/valid.na_prob.json" for run in runs] for runs in (ours, theirs)]
        more = ("--na-prob", *probabilities[0], "--against-na-prob", *probabilities[1])
    else:
        gold, found, more = f"{ours[0]}/data/valid.jsonl", "predictions.valid.jsonl", ()
    kind, *options = _SCORED[task]
    against = ("--against", *(f"{run}/{found}" for run in theirs))
    predictions = [gold, *(f"{run}/{found}" for run in ours)]
    command = words("unified", "score", kind, predictions, options, against, more, "--output", "compared.json")
    return Entry(
        name=f"parity/{task}/compared",
        table=TABLE,
        commands=(command,),
        figures=(Figures("numbers", "compared.json"),),
        settings={"task": task, "what": "difference"},
    )


def comparisons() -> list[Entry]:
    """All tasks over their seeds."""
    return [compared(task) for task in TASKS]
