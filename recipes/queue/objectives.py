"""Every objective on one body at one budget, by minimal pairs, fine-tuning and perplexity.

One body, the same for all: eight layers of 256 with rotary positions and gated feed-forward. One budget, the same for
all: :data:`UPDATES` updates of :data:`TOKENS` tokens of the same text, one pass or less. Nothing is chosen for one
objective: settings are the papers', as `unified objectives` lists them.

The budget in words, tokens and seconds: 8,000 updates of 512 tokens are 4.1 million tokens or 2.3 million words, about
an hour of one core of an AMD EPYC without AVX-512 where nothing else runs. Rows are short and updates small, because
models leave the level of single tokens (9.51 bits a token on the validation text) sooner so.

How the rate was chosen: by the validation loss of two objectives in bits a prediction, in single runs of this body with
a schedule of 1,600 updates of 512 tokens, most of which were ended early.

| objective, updates | 2e-3 | 1e-3 | 5e-4 |
|---|---|---|---|
| cloze, 400 | 9.44 | 9.28 | 9.24 |
| cloze, 800 | 9.24 | 9.09 | 8.99 |
| cloze, 1,200 | | 8.97 | 8.61 |
| random_spans, 200 | | 6.26 | 6.16 |

Hypotheses, written before the runs:

1. Minimal pairs. The clozes (bert, spanbert, anna, bidirectional), XLNet and random_spans predict one token in six or
   seven; next_token and prefix_lm predict all or half of them. At this budget models learn from every prediction, so
   that next_token is ahead of all clozes by 3 points or more.
2. Among the six systems, bert and anna are the best on minimal pairs by pseudo-likelihood, since short spans leave the
   words that agreement depends on; spanbert is 1 to 3 points behind; XLNet is within 1 point of bert; UniLM's mixture,
   which gives a third of its examples to the cloze that is scored, is 1 to 3 points behind bert; random_spans, which
   decodes in another way than the scoring asks, is the last. (The scoring `infilling`, which asks as it decodes, came
   after its first run, of which `left_to_right` gave 52.2 on minimal pairs.)
3. Fine-tuning. Differences on RTE and MRPC are smaller than those between seeds; CoLA is near 0; on SST-2 all are
   within 3 points of each other, and above the untrained model by 3 or more; on SQuAD spanbert and UniLM's mixture are
   ahead.
4. A mixture of next_token and the cloze (GPT-BERT) is at least as good as the better of its two parts on minimal pairs.
5. Settings of fine-tuning (written when `unilm` and `next_token` were not told from the untrained model on SST-2, RTE
   and MRPC). The rate of fine-tuning is that of pre-training and was not searched. At a smaller one more stays of what
   was learnt: at 1e-4 or 2e-4 bert is 3 points or more ahead of the untrained model on SST-2. MRPC wants more updates:
   after 10 epochs bert is above who always answers yes, and ahead of the untrained model.
"""

from __future__ import annotations

from dataclasses import dataclass

from entries import Entry, Figures, words

from unified.objectives import DEFAULT_PRETRAINING

TABLE = "objectives"
SEEDS = (1, 2, 3)

# The budget.
FILES = ("00", "01")
VOCABULARY = 4000
ROW, TOKENS, UPDATES = 64, 512, 8000
RATE = 5e-4
BODY = "--layers 8 --token-types 6 --attention-windows 0 --initializer-range 0.04 --dropout 0 --attention-dropout 0"

CLOZE = "bert(next_sentence=False)"
NEXT_TOKEN = "bert(next_sentence=False,left_to_right=True)"


@dataclass(frozen=True)
class System:
    """Something that scores sentences.

    Attributes:
        name: in tables and in names of entries.
        scorings: the ways in which it scores them. Models take them as ``unified evaluate minimal-pairs --scoring``.
    """

    name: str
    scorings: tuple[str, ...]


@dataclass(frozen=True)
class Objective(System):
    """A way of pre-training, and the ways of scoring sentences that it teaches.

    Attributes:
        mixture: as ``--objectives`` takes it.
        updates: of the pre-training; all but the untrained model have the same.
    """

    mixture: str
    updates: int = UPDATES


FROM_BOTH_SIDES, FROM_LEFT = ("pseudo_likelihood",), ("left_to_right",)
INFILLING = ("infilling",)
SYSTEMS = (
    Objective("random_spans", INFILLING, "random_spans"),
    Objective("unilm", FROM_BOTH_SIDES + FROM_LEFT, DEFAULT_PRETRAINING),
    Objective("bert", FROM_BOTH_SIDES, "bert"),
    Objective("spanbert", FROM_BOTH_SIDES, "spanbert"),
    Objective("xlnet", FROM_BOTH_SIDES + FROM_LEFT, "xlnet"),
    Objective("anna", FROM_BOTH_SIDES, "anna(span_share=0.0,word_share=0.6666)"),
)
OTHERS = (
    Objective("next_token", FROM_LEFT, NEXT_TOKEN),
    Objective("cloze", FROM_BOTH_SIDES, CLOZE),
    Objective("next_token-cloze", FROM_BOTH_SIDES + FROM_LEFT, f"next={NEXT_TOKEN}:1,cloze={CLOZE}:1"),
    Objective("prefix_lm", FROM_LEFT, "prefix_lm"),
    Objective("bidirectional", FROM_BOTH_SIDES, "bidirectional"),
    *(Objective(name, FROM_LEFT, name) for name in ("left_to_right", "seq2seq")),
    Objective("right_to_left", ("right_to_left",), "right_to_left"),
    Objective("replace_spans", INFILLING, "replace_spans"),
    *(Objective(name, FROM_LEFT, name) for name in ("bert_style", "deshuffling", "mass_style", "drop_tokens")),
    Objective("untrained", FROM_BOTH_SIDES, CLOZE, updates=1),
)

#: The floor of minimal pairs, which is no model: how often the tokens of a sentence are (:mod:`token_counts`).
COUNTS = System("token_counts", ("words", "pieces"))

#: The systems are compared with these of :data:`OTHERS`, which have as many seeds.
BASES = ("next_token", "untrained")
#: Objectives of the table, each with its seeds.
COMPARED = (
    *((system, SEEDS) for system in SYSTEMS),
    *((other, SEEDS if other.name in BASES else SEEDS[:1]) for other in OTHERS),
)

PAIRS = "minimal-pairs"
#: Evaluations without fine-tuning, with their data and settings; windows are as long as rows without their two ends.
EVALUATIONS = {
    "perplexity": ("{data/paragraphs}/paragraphs/valid.jsonl", "--window", ROW - 2),
    PAIRS: ("{data/blimp}/blimp",),
}

#: Tasks of fine-tuning: name as `unified finetune` takes it, data, and the settings that differ from 3 epochs of 32.
TASKS = {
    "cola": ("{data}/glue/CoLA", ("--max-length", 64)),
    "rte": ("{data}/glue/RTE", ("--max-length", 256)),
    "mrpc": ("{data}/glue/MRPC", ("--max-length", 128)),
    "sst2": ("{data/sst2}/sst2", ("--max-length", 64)),
    "squad1.1": ("{data/squad}/squad", ("--max-length", 256, "--epochs", 2)),
}
#: The score of each task that the table shows.
MEASURES = {"cola": "matthews", "rte": "accuracy", "mrpc": "f1", "sst2": "accuracy", "squad1.1": "f1"}
#: Kinds of outcomes that a line keeps of each task, see :data:`outcomes.KINDS`.
OUTCOMES = {**dict.fromkeys(TASKS, "classes"), "squad1.1": "answers"}
#: Versions of pre-trainings and evaluations whose figures a change of the library altered: random second segments have
#: become those of other blocks, and perplexity from right to left had its contexts on the side that is not read.
VERSIONS = {"unilm": 2, "xlnet": 2, "bidirectional": 2, "right_to_left/perplexity": 2}
USUAL = "5e-4"  # the rate, as tables write it
FINETUNING = ("--epochs", 3, "--batch-size", 32, "--lr", float(USUAL))
#: Other settings of a fine-tuning, by task and name, and the objectives that are fine-tuned with them, too.
SETTINGS = {
    "sst2": {"1e-4": ("--lr", 1e-4), "2e-4": ("--lr", 2e-4)},
    "mrpc": {"1e-4": ("--lr", 1e-4), "2e-4": ("--lr", 2e-4), "2e-4, 10 epochs": ("--lr", 2e-4, "--epochs", 10)},
}
BY_SETTINGS = ("bert", "untrained")


def data() -> list[Entry]:
    """The text that all models read, and what scores them."""
    wiki = "{data}/pretrain_wiki"
    prepare = words(
        "unified",
        "prepare",
        [f"{wiki}/train-{number}.jsonl.xz" for number in FILES],
        ("--valid", f"{wiki}/valid.jsonl.xz", "--output", "prepared", "--tokenizer", "unigram"),
        ("--vocabulary-size", VOCABULARY, "--sample-megabytes", 10, "--clean", "sentences"),
    )
    text = Entry("data/wikipedia", "data", (prepare,), (Figures("prepared", "prepared/manifest.json"),))
    subsets = [
        Entry(f"data/{name}", "data", (words("python", "{recipes}/queue/subsets.py", name, name),), ())
        for name in ("blimp", "paragraphs", "sst2", "squad")
    ]
    return [text, *subsets]


def pretraining(objective: Objective, seed: int) -> Entry:
    """One model."""
    command = words(
        ("unified", "pretrain", "{data/wikipedia}/prepared", "--model", "modern_mini", "--output", "model"),
        ("--objectives", objective.mixture, "--tokens-per-sample", ROW, "--max-tokens", TOKENS),
        ("--max-update", objective.updates, "--warmup-updates", objective.updates // 20, "--lr", RATE, "--seed", seed),
        ("--fairseq", f"{BODY} --num-workers 0 --max-valid-steps 40"),
    )
    return Entry(
        name=f"objectives/{objective.name}-{seed}",
        table=TABLE,
        commands=(command,),
        figures=(Figures("trained", "model/train.log"),),
        settings={"objective": objective.name, "what": "pretraining"},
        seed=seed,
        version=VERSIONS.get(objective.name, 1),
    )


def evaluation(objective: Objective, seed: int, what: str) -> Entry:
    """Minimal pairs, or perplexity, by each way of scoring that the objective teaches."""
    model = f"{{objectives/{objective.name}-{seed}}}/model"
    commands, figures = [], []
    for scoring in objective.scorings:
        commands.append(
            words(
                ("unified", "evaluate", what, *EVALUATIONS[what], "--model", model, "--scoring", scoring),
                ("--intervals", "--output", scoring, "--threads", 1, "--overwrite"),
            )
        )
        figures.append(Figures("evaluated", f"{scoring}/results.json", scoring))
    return Entry(
        name=f"objectives/{objective.name}-{seed}/{what}",
        table=TABLE,
        commands=tuple(commands),
        figures=tuple(figures),
        settings={"objective": objective.name, "what": what},
        seed=seed,
        version=VERSIONS.get(f"{objective.name}/{what}", 1),
        outcomes=outcomes(objective, what),
    )


def counted() -> Entry:
    """Minimal pairs by :data:`COUNTS`."""
    return Entry(
        name=f"objectives/{COUNTS.name}/{PAIRS}",
        table=TABLE,
        commands=(
            words("python", "{recipes}/queue/token_counts.py", "{data/wikipedia}/prepared", *EVALUATIONS[PAIRS]),
        ),
        figures=tuple(Figures("numbers", f"{tokens}/scores.json", tokens) for tokens in COUNTS.scorings),
        settings={"objective": COUNTS.name, "what": PAIRS},
        outcomes=outcomes(COUNTS, PAIRS),
    )


def outcomes(system: System, what: str) -> tuple[Figures, ...]:
    """Files with the scores of single items that a run leaves; none of perplexity, which is not compared by them."""
    if what in TASKS:
        return (Figures(OUTCOMES[what], "run/predictions.valid.jsonl"),)
    scorings = system.scorings if what == PAIRS else ()
    return tuple(Figures("pairs", f"{scoring}/examples.jsonl", scoring) for scoring in scorings)


def finetuning(objective: Objective, seed: int, task: str, setting: str = "") -> Entry:
    """One fine-tuning of the model.

    Args:
        setting: a name of :data:`SETTINGS`; "" for those of all tasks.
    """
    folder, own = TASKS[task]
    changed = SETTINGS[task][setting] if setting else ()
    command = words(
        ("unified", "finetune", task, "--data", folder, "--init", f"{{objectives/{objective.name}-{seed}}}/model"),
        ("--output", "run", *FINETUNING, *own, *changed, "--select", "last", "--seed", seed),
    )
    return Entry(
        name=tuned(f"objectives/{objective.name}-{seed}", task, setting),
        table=TABLE,
        commands=(command,),
        figures=(Figures("finetuned", "run/results.json"),),
        settings={"objective": objective.name, "what": task} | ({"setting": setting} if setting else {}),
        seed=seed,
        outcomes=outcomes(objective, task),
    )


def tuned(pretraining: str, task: str, setting: str = "") -> str:
    """Name of a fine-tuning, by that of the pre-training."""
    return "/".join(filter(None, (pretraining, task, setting.replace(", ", "-").replace(" ", "-"))))


def of(objective: Objective, seed: int) -> list[Entry]:
    """A model and all that is measured of it, the shortest first."""
    measured = [finetuning(objective, seed, task) for task in TASKS]
    if seed == SEEDS[0] and objective.name in BY_SETTINGS:
        measured += [finetuning(objective, seed, task, setting) for task in SETTINGS for setting in SETTINGS[task]]
    return [pretraining(objective, seed), *(evaluation(objective, seed, what) for what in EVALUATIONS), *measured]


def entries(seed: int) -> list[Entry]:
    """All that is measured with one seed: the six systems and :data:`BASES`, with the first seed all objectives."""
    floor = [counted()] if seed == SEEDS[0] else []
    return floor + [entry for objective, seeds in COMPARED if seed in seeds for entry in of(objective, seed)]
