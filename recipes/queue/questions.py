"""Questions made by a model that improve answers [UniLM, app. A], with three seeds.

Hypothesis, written before the runs: made questions, filtered by a reader, before few real ones give a higher F1 on
SQuAD 2.0 than as many updates on the few real ones alone, by 1 point or more (the paper: 4 points, with larger models
and nine million questions); and less than as many updates on four times as many real questions.

By the first version no model learnt to answer: all stayed within 4 points of F1 of never answering, and four times as
many real questions were no better. The second version has three epochs of reading in place of one, and two to three
times the rates. Its hypotheses, written before its runs, after a fine-tuning of SQuAD 2.0 at such a rate had gained 3.3
points over never answering: with 800 real questions a model is 4 points above never answering or more; with 3,200 it is
ahead of 800; and the gain of made questions is 1 point or more.
"""

from __future__ import annotations

from entries import Entry, Figures, words

TABLE = "questions"
#: Raised when reading got three epochs, and all trainings higher rates.
VERSION = 2
SEEDS = (1, 2, 3)
#: Runs of recipes/unilm/augment by the folder of their results.
RUNS = {"made": "augmented/first", "made-few": "augmented/second", "few": "baseline-few", "many": "baseline-many"}
#: Names of the same runs in tables: the questions that they are fine-tuned on.
NAMES = {
    "made": "made questions alone",
    "made-few": "made questions, then 800 real ones",
    "few": "the 800 real ones alone, as many updates",
    "many": "3,200 real ones, as many updates",
}


#: A run writes files of its best answer to every question, and of the probability that there is none.
_PREDICTED = ("best_non_null", "na_prob")
#: Runs that are compared on the same questions: the first less the second.
COMPARED = (("made-few", "few"), ("many", "few"), ("made-few", "many"))
#: Measures of a difference: with the best threshold for "no answer", and where every question must be answered.
DIFFERENCES = {"best_f1": "all questions", "HasAns_f1": "the answerable, all answered"}


def start() -> Entry:
    """The published encoder that all begin with, as ours reads it."""
    command = words("unified", "convert", "--from", "bert", "{minilm}", "model")
    return Entry("start/minilm", "data", (command,), ())


def entry(seed: int) -> Entry:
    """All models of the recipe with one seed."""
    script = "{recipes}/unilm/augment/run.py"
    command = words("python", script, "runs", "--size", "medium", "--init", "{start/minilm}/model", "--seed", seed)
    return Entry(
        name=f"questions/medium-{seed}",
        table=TABLE,
        commands=(command,),
        figures=(
            *(Figures("finetuned", f"runs/{folder}/results.json", run) for run, folder in RUNS.items()),
            Figures("numbers", "runs/augmented/counts.json", "counts"),
        ),
        settings={"size": "medium"},
        seed=seed,
        version=VERSION,
    )


def compared(seed: int) -> Entry:
    """Differences of the runs with one seed and their intervals over questions, see :data:`DIFFERENCES`."""
    runs = f"{{questions/medium-{seed}}}/runs"
    commands = []
    for one, other in COMPARED:
        found = [[f"{runs}/{RUNS[run]}/valid.{name}.json" for run in (one, other)] for name in _PREDICTED]
        ((answers, other_answers), (probabilities, other_probabilities)) = found
        against = ("--against", other_answers, "--against-na-prob", other_probabilities)
        given = (f"{runs}/data/few/dev-v2.0.json", answers, "--na-prob", probabilities)
        commands.append(words("unified", "score", "squad", given, against, "--output", f"{one}-less-{other}.json"))
    return Entry(
        name=f"questions/medium-{seed}/compared",
        table=TABLE,
        commands=tuple(commands),
        figures=tuple(Figures("numbers", f"{one}-less-{other}.json", f"{one}-less-{other}") for one, other in COMPARED),
        settings={"size": "medium", "what": "differences"},
        seed=seed,
    )


def entries() -> list[Entry]:
    """The recipe seed by seed."""
    return [made(seed) for seed in SEEDS for made in (entry, compared)]
