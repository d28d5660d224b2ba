"""A small published encoder, MiniLM, learns to write by UniLM's objective: questions, headlines, subjects, summaries.

Hypotheses, written before the runs:

1. Questions. Four epochs of 11,000 pairs teach MiniLM, which has never predicted a token from the left, to ask about a
   sentence and an answer: BLEU-4 between 6 and 10 and ROUGE-L between 30 and 36, where the copied sentence has less
   than half of both.
2. Equal updates. ``EncoderDecoderModel`` of transformers starts from the same weights and by the same token head, and
   texts of both are searched for by one rule, but its attention from decoder to encoder is drawn at random. After as
   many updates of as many pairs it hardly reads its source: its ROUGE-L is below ours by 5 points or more on every
   task, and fewer of its content words come from the source.
3. The copied sentence. One epoch of headlines (Reuters) is above the first sentence by 5 points of ROUGE-L or more. Of
   subjects (AESLC), where the best of four references counts and the first sentence has a ROUGE-L of 36, and of
   summaries (SciTLDR, two epochs of 2,000 pairs), where it has 24, ours stays below.
4. A stage before the questions. Two million tokens of Wikipedia by UniLM's mixture, an hour of one core, add a point of
   BLEU-4; as many by a prefix language model, which predicts half of all tokens where UniLM's cloze predicts one in
   seven, add more; and 27,463 more questions add most, two points: 18,908 of QAMR, and 8,555 of SQuAD's own training
   set without their answers (ReQA), of which 242 stand word for word in what the 11,602 questions are taken from.
   (That was worded as "27,000 questions of another kind" when its first run began.)
5. More epochs. One epoch of subjects (AESLC), written from the first 61 tokens of a mail, had a ROUGE-L 0.3 below that
   of the first sentence. Four epochs from the first 125 tokens are above it by 2 points or more, and by ROUGE-2 still
   below.
6. More epochs of summaries. After two epochs of 1,992 abstracts (SciTLDR, 498 updates) most summaries begin alike and
   are not above the first sentence. Twelve epochs, 2,988 updates, are above it by 1 point of ROUGE-L or more, with 65 %
   of their content words or more from the abstract (54 after two epochs), and by ROUGE-2 not above it.
"""

from __future__ import annotations

from dataclasses import dataclass

from entries import Entry, Figures, words

from unified.objectives import DEFAULT_PRETRAINING

TABLE = "generation"
SEEDS = (1, 2, 3)
TASK = "squad_qg_sentence"
START = "{start/minilm}/model"

#: Tasks of the size ``writing`` of recipes/peers, and the split that scores.
EQUAL = {TASK: "test", "reuters": "valid", "aeslc": "valid", "scitldr": "valid"}
#: Measures of every text, and of questions and summaries beside them.
_COPYING = ("repeated_bigrams", "source_words")
QUESTIONS, SUMMARIES = ("bleu4", "rougeL", *_COPYING), ("rouge1", "rouge2", "rougeL", *_COPYING)

#: Systems of each comparison at equal updates, by the folder of their results, and their names in tables.
SYSTEMS = {"lead": "copied sentence", "transformers": "transformers", "ours": "ours"}

#: Tasks that are learnt for longer than at equal updates: epochs, tokens of a sequence, and of its target, at most.
LONGER = {"aeslc": (4, 160, 32), "scitldr": (12, 384, 64)}

#: Ways of going on with pre-training before the questions: name -> mixture.
CONTINUED = {"unilm": DEFAULT_PRETRAINING, "prefix_lm": "prefix_lm"}
ROW, TOKENS, UPDATES = 128, 1024, 2000
MORE = "more-questions"
#: Stages before the questions -> who writes after them.
STAGES = {
    **{way: f"ours after {TOKENS * UPDATES / 1e6:.0f} million tokens by {way}" for way in CONTINUED},
    MORE: "ours after 27,463 more questions of QAMR and SQuAD",
}


#: Raised when the sentence around an answer no longer ended at initials and abbreviations: version of the questions.
VERSION = 2


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        task: what is written.
        system: who writes it.
        lines: names of the lines that hold its figures, one for each seed.
        prefix: what stands before a measure's name in the figures.
        measures: by which the task is scored.
        against: whether its figures are differences from another system, with their intervals over items.
    """

    task: str
    system: str
    lines: tuple[str, ...]
    prefix: str
    measures: tuple[str, ...]
    against: bool = False


def data() -> list[Entry]:
    """SQuAD 1.1 as far as there is some of its training set, and its whole development set; text in MiniLM's tokens."""
    wiki = "{data}/pretrain_wiki"
    prepare = words(
        ("unified", "prepare", f"{wiki}/train-02.jsonl.xz", "--valid", f"{wiki}/valid.jsonl.xz"),
        ("--output", "prepared", "--tokenizer", START, "--sample-megabytes", 10, "--clean", "sentences"),
    )
    return [
        *(
            Entry(f"data/{name}", "data", (words("python", "{recipes}/queue/subsets.py", name, name),), ())
            for name in ("questions", MORE)
        ),
        Entry("data/wikipedia-wordpiece", "data", (prepare,), (Figures("prepared", "prepared/manifest.json"),)),
    ]


def finetuning(name: str, start: str, system: str, seed: int, *more: str) -> Entry:
    """Questions by a model that is fine-tuned from ``start``, with further options of ``unified finetune``."""
    command = words(
        ("unified", "finetune", TASK, "--data", "{data/questions}/questions", "--init", start),
        ("--output", "run", "--epochs", 4, "--select", "last", "--seed", seed, *more),
    )
    return Entry(
        name=name,
        table=TABLE,
        commands=(command,),
        figures=(Figures("finetuned", "run/results.json"),),
        settings={"task": TASK, "system": system},
        seed=seed,
        version=VERSION,
    )


def _scoring(questions: tuple[str, ...], run: str) -> tuple[tuple[str, ...], ...]:
    """Commands that score questions with METEOR and intervals, pooled by sentence and by source.

    Args:
        questions: their file, and options that say of which form they are.
        run: folder of a fine-tuning with the references.
    """
    return tuple(
        words(
            ("unified", "score", "question-generation", *questions, "--references", f"{run}/test.references.txt"),
            ("--sources", f"{run}/test.{pooled}.txt", "--meteor", "--intervals", "--output", f"{pooled}.json"),
        )
        for pooled in ("sentences", "sources")
    )


_SCORED = tuple(Figures("numbers", f"{pooled}.json", pooled) for pooled in ("sentences", "sources"))


def scores(name: str, system: str, seed: int) -> Entry:
    """All measures of the questions that a fine-tuning has written."""
    run = f"{{{name}}}/run"
    return Entry(
        name=f"{name}/scores",
        table=TABLE,
        commands=_scoring((f"{run}/test.questions.txt", "--bert-words"), run),
        figures=_SCORED,
        settings={"task": TASK, "system": system, "what": "scores"},
        seed=seed,
    )


def copied() -> Entry:
    """All measures of the sentences that hold the answers, as questions."""
    run = f"{{generation/{TASK}-1}}/run"
    copy = words("python", "{recipes}/peers/lead.py", TASK, "--data", f"{run}/items", "--output", "copied")
    return Entry(
        name=f"generation/{TASK}/copied",
        table=TABLE,
        commands=(copy, *_scoring(("copied/predictions.test.jsonl", "--penn-treebank"), run)),
        figures=_SCORED,
        settings={"task": TASK, "system": SYSTEMS["lead"]},
    )


def equal(task: str, seed: int) -> Entry:
    """Ours, the peer of transformers and the copied sentence, at equal updates."""
    command = words("python", "{recipes}/peers/run.py", "runs", "--size", "writing", "--only", task, "--seeds", seed)
    folders = {"lead": "lead", **{system: f"{system}-{seed}" for system in ("transformers", "ours")}}
    return Entry(
        name=f"generation/equal/{task}-{seed}",
        table=TABLE,
        commands=(command,),
        figures=tuple(
            Figures("finetuned", f"runs/{task}/{folders[system]}/results.json", system) for system in SYSTEMS
        ),
        settings={"task": task, "what": "equal updates"},
        seed=seed,
        version=VERSION if task == TASK else 1,
    )


def beside(task: str, seed: int) -> Entry:
    """Ours above the peer, and above the copied sentence, on the items of :func:`equal`.

    Questions that a sentence is compared with have another form than it, so they are compared with the peer's alone.
    """
    runs, split = f"{{generation/equal/{task}-{seed}}}/runs/{task}", EQUAL[task]
    ours = f"{runs}/ours-{seed}"
    found = f"predictions.{split}.jsonl"
    if task == TASK:
        others = {"transformers": f"{runs}/transformers-{seed}"}
        references = ("--references", f"{ours}/{split}.references.txt", "--sources", f"{ours}/{split}.sentences.txt")
        scored = ("question-generation", f"{ours}/{found}", *references, "--bert-words")
    else:
        others = {"transformers": f"{runs}/transformers-{seed}", "lead": f"{runs}/lead"}
        items = f"{runs}/plan/items/{split}.jsonl"
        scored = ("generation", f"{ours}/{found}", "--references", items, "--sources", items)
    return Entry(
        name=f"generation/equal/{task}-{seed}/compared",
        table=TABLE,
        commands=tuple(
            words("unified", "score", scored, "--against", f"{folder}/{found}", "--output", f"{other}.json")
            for other, folder in others.items()
        ),
        figures=tuple(Figures("numbers", f"{other}.json", other) for other in others),
        settings={"task": task, "what": "differences"},
        seed=seed,
    )


def longer(task: str, seed: int) -> Entry:
    """Ours after more epochs of a task of :data:`EQUAL`, beside the copied sentence."""
    split = EQUAL[task]
    epochs, length, target = LONGER[task]
    tune = words(
        ("unified", "finetune", task, "--data", f"{{data}}/{task}", "--init", START, "--output", "run"),
        ("--epochs", epochs, "--max-length", length, "--max-target", target, "--select", "last", "--seed", seed),
    )
    copy = words("python", "{recipes}/peers/lead.py", task, "--data", "run/items", "--output", "lead")
    found, items = f"predictions.{split}.jsonl", f"run/items/{split}.jsonl"
    compare = words(
        ("unified", "score", "generation", f"run/{found}", "--references", items, "--sources", items),
        ("--against", f"lead/{found}", "--output", "lead.json"),
    )
    return Entry(
        name=f"generation/longer/{task}-{seed}",
        table=TABLE,
        commands=(tune, copy, compare),
        figures=(Figures("finetuned", "run/results.json", "ours"), Figures("numbers", "lead.json", "lead")),
        settings={"task": task, "what": "more epochs"},
        seed=seed,
    )


def stage(way: str, seed: int) -> Entry:
    """MiniLM after further pre-training, or after more questions."""
    if way == MORE:
        command = words(
            ("unified", "finetune", "texts", "--data", f"{{data/{MORE}}}/{MORE}", "--init", START, "--output", "model"),
            ("--epochs", 1, "--max-length", 192, "--max-target", 48, "--select", "last", "--seed", seed),
        )
        results = Figures("finetuned", "model/results.json")
    else:
        command = words(
            ("unified", "pretrain", "{data/wikipedia-wordpiece}/prepared", "--model", "small", "--output", "model"),
            ("--objectives", CONTINUED[way], "--tokens-per-sample", ROW, "--max-tokens", TOKENS),
            ("--max-update", UPDATES, "--warmup-updates", UPDATES // 10, "--lr", 3e-4, "--seed", seed),
            ("--fairseq", f"--finetune-from-model {START}/checkpoint_last.pt --num-workers 0 --max-valid-steps 40"),
        )
        results = Figures("trained", "model/train.log")
    return Entry(
        name=f"generation/{way}-{seed}",
        table=TABLE,
        commands=(command,),
        figures=(results,),
        settings={"what": "stage", "system": way},
        seed=seed,
    )


def package() -> Entry:
    """A Python package of the first model: `pip install` takes its folder ``questions``."""
    run = f"{{generation/{TASK}-{SEEDS[0]}}}/run"
    command = words("python", "{recipes}/models/build.py", "questions", run, "questions")
    return Entry("models/questions", "data", (command,), (), kept=True)


def entries(seed: int) -> list[Entry]:
    """All runs with one seed: questions, comparisons, then models whose pre-training was continued."""
    name = f"generation/{TASK}-{seed}"
    found = [finetuning(name, START, "ours", seed), scores(name, "ours", seed)]
    if seed == SEEDS[0]:
        found.append(copied())
    found += [entry for task in EQUAL for entry in (equal(task, seed), beside(task, seed))]
    if seed == SEEDS[0]:
        found += [longer(task, seed) for task in LONGER]
    for way in STAGES:
        after, start = f"generation/{way}-{seed}/{TASK}", f"{{generation/{way}-{seed}}}/model"
        tuned = finetuning(after, start, way, seed, "--system", "encoder")  # a stage has left a token head
        found += [stage(way, seed), tuned, scores(after, way, seed)]
    return found


def rows() -> list[Row]:
    """Rows of the table: the whole development set of questions, then the comparisons at equal updates."""
    whole = {
        SYSTEMS["lead"]: (f"generation/{TASK}/copied",),
        "ours": tuple(f"generation/{TASK}-{seed}/scores" for seed in SEEDS),
        **{system: tuple(f"generation/{way}-{seed}/{TASK}/scores" for seed in SEEDS) for way, system in STAGES.items()},
    }
    measures = (*QUESTIONS, "meteor")
    found = [Row(f"{TASK}, 4 epochs", system, lines, "sentences", measures) for system, lines in whole.items()]
    for task, split in EQUAL.items():
        lines = tuple(f"generation/equal/{task}-{seed}" for seed in SEEDS)
        measures = QUESTIONS if task == TASK else SUMMARIES
        for run, name in SYSTEMS.items():
            found.append(Row(f"{task}, equal updates", name, lines, f"{run}.{split}", measures))
        for run, name in SYSTEMS.items():
            if any(figures.prefix == run for figures in beside(task, SEEDS[0]).figures):
                line = f"{lines[0]}/compared"
                found.append(Row(f"{task}, equal updates", f"ours less {name}", (line,), run, measures, against=True))
    for task, (epochs, *_) in LONGER.items():
        title, lines = f"{task}, {epochs} epochs", (f"generation/longer/{task}-{SEEDS[0]}",)
        found.append(Row(title, "ours", lines, f"ours.{EQUAL[task]}", SUMMARIES))
        found.append(Row(title, f"ours less {SYSTEMS['lead']}", lines, "lead", SUMMARIES, against=True))
    return found
