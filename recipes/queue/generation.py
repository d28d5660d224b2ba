"""A small published encoder learns to write: questions about SQuAD's sentences, by UniLM's objective.

Hypotheses, written before the runs:

1. Questions. Four epochs of 11,000 pairs teach MiniLM, which has never predicted a token from the left, to ask about a
   sentence and an answer: BLEU-4 between 6 and 10 and ROUGE-L between 30 and 36, where the copied sentence has less
   than half of both.
"""

from __future__ import annotations

from entries import Entry, Figures, words

TABLE = "generation"
SEEDS = (1, 2, 3)
TASK = "squad_qg_sentence"


def data() -> Entry:
    """SQuAD 1.1 as far as there is some of its training set, and its whole development set."""
    return Entry(
        "data/questions", "data", (words("python", "{recipes}/queue/subsets.py", "questions", "questions"),), ()
    )


def entry(seed: int) -> Entry:
    """Questions by our model."""
    command = words(
        ("unified", "finetune", TASK, "--data", "{data/questions}/questions", "--init", "{start/minilm}/model"),
        ("--output", "run", "--epochs", 4, "--select", "last", "--seed", seed),
    )
    return Entry(
        name=f"generation/{TASK}-{seed}",
        table=TABLE,
        commands=(command,),
        figures=(Figures("finetuned", "run/results.json"),),
        settings={"task": TASK, "system": "ours"},
        seed=seed,
    )


def package() -> Entry:
    """A Python package of the first model: `pip install` takes its folder ``questions``."""
    run = f"{{generation/{TASK}-{SEEDS[0]}}}/run"
    command = words("python", "{recipes}/models/build.py", "questions", run, "questions")
    return Entry("models/questions", "data", (command,), ())


def entries(seed: int) -> list[Entry]:
    """All runs with one seed."""
    return [entry(seed)]
