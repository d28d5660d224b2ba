"""The plan of the comparison: the budgets, the models, and a run for every objective."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unified.objectives import DEFAULT_PRETRAINING

#: The yardstick: every pre-trained model goes on with it for the same few updates.
CLOZE = "bidirectional(next_sentence=False, ngram_share=0)"


@dataclass(frozen=True)
class Size:
    """The budget that all runs have in common, and the model they train.

    Attributes:
        arch: options of fairseq-train for the model.
        megacharacters, valid_megacharacters: millions of characters of text to train on and to validate on.
        vocabulary: pieces of the unigram tokenizer.
        row, rows: tokens per row, and rows per update.
        updates, cloze_updates: of pre-training, and of the yardstick.
        rate: greatest learning rate of both, after a tenth of the updates; then linear to 0.
        machine: options of fairseq-train for the machine.
    """

    arch: tuple[str | int | float, ...]
    megacharacters: float
    valid_megacharacters: float
    vocabulary: int
    row: int
    rows: int
    updates: int
    cloze_updates: int
    rate: float
    machine: tuple[str | int, ...]


# Half an hour of one core. So few updates leave the level of single tokens behind only with short rows, few pieces,
# small batches and larger initial weights (docs/background/results.md, quickstart).
TINY = Size(
    arch=("unified_lm_tiny", "--initializer-range", 0.04, "--dropout", 0, "--attention-dropout", 0),
    megacharacters=6,
    valid_megacharacters=0.06,
    vocabulary=1000,
    row=64,
    rows=8,
    updates=600,
    cloze_updates=150,
    rate=2e-3,
    machine=("--cpu",),
)

SIZES = {
    # What the tests run: a few updates.
    "debug": replace(TINY, vocabulary=90, row=48, rows=4, updates=10, cloze_updates=3),
    "tiny": TINY,
    # One GPU.
    "small": Size(
        arch=("unified_lm_small", "--dropout", 0.1, "--attention-dropout", 0),
        megacharacters=200,
        valid_megacharacters=1,
        vocabulary=16000,
        row=512,
        rows=64,
        updates=20000,
        cloze_updates=2000,
        rate=5e-4,
        machine=("--bf16",),
    ),
}

#: Models of one size: the Transformer that all share, ANNA's layers, XLNet's positions and head.
MODELS = {
    "shared": (),
    "anna": ("--sublayers", "self,neighbor,feed_forward"),
    "xlnet": ("--positions", "relative", "--token-head", "plain"),
}


@dataclass(frozen=True)
class Comparison:
    """One pre-training: its name, objectives, model and whether it reads streams with a memory.

    Without objectives it is the model that had no pre-training.
    """

    name: str
    objectives: str
    model: str = "shared"
    memory: bool = False

    def pretraining(self, size: Size) -> list[str | int]:
        """Options of fairseq-train that are this run's own."""
        memory = ["--memory", size.row] if self.memory else []
        return [*MODELS[self.model], "--objectives", self.objectives, *memory]


T5 = ("prefix_lm", "bert_style", "deshuffling", "mass_style", "replace_spans", "drop_tokens", "random_spans")


def comparisons(annotated: bool) -> list[Comparison]:
    """Every objective on running text alone, UniLM's mixture, and each model from scratch.

    One run of each system also on XLNet's model, so that XLNet's objective has others to compare with.
    Without annotations ANNA hides what it hides in a text without noun phrases: their share goes to whole words.
    """
    anna = "anna" if annotated else "anna(span_share=0.0, word_share=0.6666)"
    systems = {
        "cloze": CLOZE,
        "unilm mixture": DEFAULT_PRETRAINING,
        "bert": "bert",
        "spanbert": "spanbert",
        "anna": anna,
        "random_spans": "random_spans",
    }
    return [
        *(Comparison(f"scratch ({model})", "", model) for model in MODELS),
        Comparison("cloze", CLOZE),
        *(Comparison(name, name) for name in ("bidirectional", "left_to_right", "right_to_left", "seq2seq")),
        Comparison("unilm mixture", DEFAULT_PRETRAINING),
        Comparison("bert", "bert"),
        Comparison("spanbert", "spanbert"),
        Comparison("anna", anna),
        Comparison("anna, own layers", anna, "anna"),
        Comparison("xlnet", "xlnet", "xlnet"),
        Comparison("xlnet, memory", "xlnet", "xlnet", memory=True),
        *(Comparison(name, name) for name in T5),
        *(Comparison(f"{name} (xlnet)", objectives, "xlnet") for name, objectives in systems.items()),
    ]
