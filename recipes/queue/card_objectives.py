"""Every objective at the size of a graphics card: ten million words, almost four epochs, 12 layers of 384.

What objectives.py compares in an hour of one core, at twenty times its words, in minutes of a card. One body and one
budget for all, as there; settings are the papers'. The rate was chosen for nothing but its place between those that are
usual at this size (5e-4 to 1e-3).

The budget: 4,000 updates of 16,384 tokens are at most 66 million tokens, 3.9 epochs of 10.8 million words, which have
1.55 tokens each. (Before the runs 1.3 were expected, and so five epochs.)

Hypotheses, written before the runs: those of objectives.py; and with twenty times the words the clozes come within 2
points of next_token on minimal pairs, since every text is seen with five different draws.

Of objectives.py's third hypothesis one part cannot be looked at: SST-2 above the untrained model. Only the systems are
fine-tuned here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from entries import Entry, Figures, words
from objectives import FINETUNING, OTHERS, PAIRS, SYSTEMS, TASKS, VERSIONS, Objective, outcomes

SEED = 1
RATE = 7e-4
BODY = "--token-types 6 --attention-windows 0 --dropout 0 --attention-dropout 0 --max-valid-steps 40"


@dataclass(frozen=True)
class Size:
    """The size of all entries of a plan.

    Attributes:
        table: file of lines, and first part of the entries' names.
        files: of Wikipedia to train on.
        vocabulary: pieces.
        row, tokens, updates: tokens of a row and of an update, and number of updates.
        body: options of fairseq-train for the size and the speed of the model.
        device: that evaluates.
        objectives: that are compared, the systems first.
        tasks: that are fine-tuned.
        epochs: of fine-tuning; None for those of objectives.py.
    """

    table: str
    files: tuple[str, ...]
    vocabulary: int
    row: int
    tokens: int
    updates: int
    body: str
    device: str
    objectives: tuple[Objective, ...]
    tasks: tuple[str, ...]
    epochs: int | None = None

    @property
    def evaluations(self) -> dict[str, tuple[str | int, ...]]:
        """Evaluations without fine-tuning, with their data and settings."""
        paragraphs = f"{{{self.table}/paragraphs}}/paragraphs/valid.jsonl"
        return {
            PAIRS: (f"{{{self.table}/blimp}}/blimp",),
            "perplexity": (paragraphs, "--window", self.row - 2),
        }


#: Three of the files hold 10.8 million words.
CARD = Size(
    "card", ("train-00", "train-01", "train-02"), 8000, 128, 16_384, 4000,
    "--layers 12 --bf16 --num-workers 2 --compile-layers", "cuda", (*SYSTEMS, *OTHERS), tuple(TASKS),
)  # fmt: skip
#: All kinds of commands on a CPU, in minutes.
REHEARSAL = Size(
    "card_rehearsal", ("valid",), 1000, 64, 512, 3,
    "--layers 1 --width 32 --heads 2 --num-workers 0 --cpu", "cpu", (SYSTEMS[1], OTHERS[-1]), ("rte",), epochs=1,
)  # fmt: skip
#: Subsets of data that evaluations and tasks read.
_SUBSETS = ("blimp", "paragraphs", "sst2", "squad")


def data(size: Size) -> list[Entry]:
    """The text that all models read, and what scores them."""
    wiki = "{data}/pretrain_wiki"
    prepare = words(
        "unified",
        "prepare",
        [f"{wiki}/{name}.jsonl.xz" for name in size.files],
        ("--valid", f"{wiki}/valid.jsonl.xz", "--output", "prepared", "--tokenizer", "unigram"),
        ("--vocabulary-size", size.vocabulary, "--sample-megabytes", 20, "--clean", "sentences"),
    )
    text = Entry(f"{size.table}/wikipedia", size.table, (prepare,), (Figures("prepared", "prepared/manifest.json"),))
    subsets = [
        Entry(f"{size.table}/{name}", size.table, (words("python", "{recipes}/queue/subsets.py", name, name),), ())
        for name in _SUBSETS
    ]
    return [*subsets, text]


def pretraining(size: Size, objective: Objective) -> Entry:
    """One model."""
    updates = size.updates if objective.updates > 1 else 1
    command = words(
        ("unified", "pretrain", f"{{{size.table}/wikipedia}}/prepared", "--model", "modern_small", "--output", "model"),
        ("--objectives", objective.mixture, "--tokens-per-sample", size.row, "--max-tokens", size.tokens),
        ("--max-update", updates, "--warmup-updates", updates // 20, "--lr", RATE, "--seed", SEED),
        ("--fairseq", f"{BODY} {size.body}"),
    )
    figures = (Figures("trained", "model/train.log"),)
    return _entry(size, objective, "", (command,), figures, "pretraining")


def evaluation(size: Size, objective: Objective, what: str) -> Entry:
    """Minimal pairs, or perplexity, by each way of scoring that the objective teaches."""
    commands = tuple(
        words(
            (
                "unified",
                "evaluate",
                what,
                *size.evaluations[what],
                "--model",
                _model(size, objective),
                "--scoring",
                scoring,
            ),
            ("--intervals", "--output", scoring, "--device", size.device, "--overwrite"),
        )
        for scoring in objective.scorings
    )
    figures = tuple(Figures("evaluated", f"{scoring}/results.json", scoring) for scoring in objective.scorings)
    return replace(_entry(size, objective, f"/{what}", commands, figures, what), outcomes=outcomes(objective, what))


def finetuning(size: Size, objective: Objective, task: str) -> Entry:
    """One fine-tuning of the model."""
    folder, own = TASKS[task]
    epochs = () if size.epochs is None else ("--epochs", size.epochs)
    command = words(
        ("unified", "finetune", task, "--data", folder.replace("{data/", f"{{{size.table}/")),
        ("--init", _model(size, objective), "--output", "run", *FINETUNING, *own, *epochs),
        ("--select", "last", "--seed", SEED),
    )
    entry = _entry(size, objective, f"/{task}", (command,), (Figures("finetuned", "run/results.json"),), task)
    return replace(entry, outcomes=outcomes(objective, task))


def quickstart() -> Entry:
    """The quickstart with its summarization part, which wants a card."""
    command = words("python", "{recipes}/quickstart/run.py", "--long", "--output", "quickstart")
    scores = tuple(
        Figures("numbers", f"quickstart/{part}/scores/{system}.json", f"{part}.{system}")
        for part, rule in (("restore", "rule"), ("summarize", "lead"))
        for system in ("with-pre-training", "without-pre-training", rule)
    )
    return Entry("card/quickstart-long", CARD.table, (command,), scores, {"what": "quickstart"}, seed=1)


def entries(size: Size) -> list[Entry]:
    """All models, each with its minimal pairs, its perplexity and, of the systems, its fine-tunings."""
    found = []
    for objective in size.objectives:
        tasks = size.tasks if objective in SYSTEMS else ()
        found.append(pretraining(size, objective))
        found += [evaluation(size, objective, what) for what in size.evaluations]
        found += [finetuning(size, objective, task) for task in tasks]
    return found


def _model(size: Size, objective: Objective) -> str:
    return f"{{{size.table}/{objective.name}-{SEED}}}/model"


def _entry(
    size: Size,
    objective: Objective,
    rest: str,
    commands: tuple[tuple[str, ...], ...],
    figures: tuple[Figures, ...],
    what: str,
) -> Entry:
    name = f"{size.table}/{objective.name}-{SEED}{rest}"
    settings = {"objective": objective.name, "what": what}
    return Entry(name, size.table, commands, figures, settings, SEED, VERSIONS.get(f"{objective.name}{rest}", 1))
