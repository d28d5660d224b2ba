"""Record what the interactive page steps through: a training batch and beam searches of a tiny model.

python docs/interactive/record.py [FILE]

The text is made here: an active sentence is the source, and the same in the passive is the target. The model learns
four objectives at once, from scratch. Seeds are fixed; another machine may round differently, so the file is kept.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from unified import masks
from unified.data.collate import collate
from unified.data.example import Batch, Example
from unified.data.text import Text
from unified.data.vocabulary import Vocabulary
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, generate
from unified.generation.cache import DecodingState
from unified.model import TransformerConfig, UnifiedModel
from unified.objectives import OBJECTIVES

FILE = Path(__file__).with_name("recordings.json")

PEOPLE = ("baker", "farmer", "girl", "king", "teacher", "child")
THINGS = ("boat", "hat", "house", "letter", "lamp", "picture")
ADJECTIVES = ("old", "small", "red", "strange")
#: Verb -> the participles that say the same; which one a target has is drawn, so a model must keep both in mind.
VERBS = {
    "sold": ("sold", "traded"),
    "found": ("found", "discovered"),
    "painted": ("painted", "drawn"),
    "broke": ("broken", "damaged"),
}
WORDS = sorted(
    {
        "the",
        "a",
        "was",
        "by",
        *PEOPLE,
        *THINGS,
        *ADJECTIVES,
        *VERBS,
        *(word for both in VERBS.values() for word in both),
    }
)

#: The objectives of the batch, and how many examples of each there are in an update.
MIXTURE = {
    "bidirectional": (OBJECTIVES["bidirectional"](next_sentence=False, mask_share=0.3), 2),
    "left_to_right": (OBJECTIVES["left_to_right"](mask_share=0.3), 2),
    "right_to_left": (OBJECTIVES["right_to_left"](mask_share=0.3), 2),
    "target_cloze": (OBJECTIVES["target_cloze"](), 24),
}
NAMES = tuple(MIXTURE)
ROW_LENGTH = 34
UPDATES = 400
#: After so many updates the predictions of the recorded batch are written down.
RECORDED = (0, 25, 50, 75, 100, 150, 200, 300, 400)
BEAM, MAX_LENGTH, GUESSES = 4, 16, 4

SOURCES = ("the old baker sold a red hat", "a small girl found the old lamp", "the strange king broke a small boat")

VOCABULARY = Vocabulary(WORDS)


def main() -> None:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    file.write_text(json.dumps(record(UPDATES, RECORDED), separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"wrote {file}")


def record(updates: int, recorded: tuple[int, ...]) -> dict:
    """Trains the model for so many updates and returns what the page shows; see docs/interactive/recordings.json."""
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    config = TransformerConfig(
        vocabulary_size=len(VOCABULARY),
        layers=2,
        width=64,
        heads=4,
        max_positions=64,
        initializer_range=0.125,
        dropout=0.0,
        attention_dropout=0.0,
    )
    model = UnifiedModel.for_language(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min((n + 1) / 40, (updates - n) / updates))
    shown = training_batch(np.random.default_rng(53), scale=12)
    snapshots, losses = [], {objective: [] for objective in NAMES}
    for update in range(updates + 1):
        if update in recorded:
            snapshots.append({"update": update, "predictions": predictions(model, shown)})
        if update == updates:
            break
        means = mean_losses(model, training_batch(rng))
        for objective, loss in means.items():
            losses[objective].append(round(loss.item(), 3))
        optimizer.zero_grad()
        # Writing in the passive is what the page shows: it weighs as much as four of the others.
        sum(loss * (4 if objective == "target_cloze" else 1) for objective, loss in means.items()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    return {
        "updates": updates,
        "losses": {objective: smoothed(values) for objective, values in losses.items()},
        "batch": {"rows": [row(shown, i) for i in range(len(shown.tokens))], "snapshots": snapshots},
        "searches": [search(model, source) for source in SOURCES],
    }


# ---------------------------------------------------------------------- text and batches


def sentence(rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """An active sentence and the same in the passive, as words; some do not say who did it."""

    def phrase(nouns: tuple[str, ...]) -> list[str]:
        return [str(rng.choice(words)) for words in (("the", "a"), ADJECTIVES, nouns)]

    who, what, verb = phrase(PEOPLE), phrase(THINGS), str(rng.choice(list(VERBS)))
    by = ["by", *who] if rng.random() < 0.7 else []
    return [*who, verb, *what], [*what, "was", str(rng.choice(VERBS[verb])), *by]


def example(objective: str, rng: np.random.Generator) -> Example:
    source, target = sentence(rng)
    if MIXTURE[objective][0].paired:
        text = Text(VOCABULARY.encode(source), VOCABULARY.special, second=VOCABULARY.encode(target))
    else:
        text = Text(VOCABULARY.encode(source if rng.random() < 0.5 else target), VOCABULARY.special)
    return MIXTURE[objective][0](text, rng)


def training_batch(rng: np.random.Generator, scale: int = 1) -> Batch:
    """Rows of examples of all objectives, in random order; 1 of `scale` examples, at least one of each objective."""
    examples = [
        example(objective, rng) for objective, (_, count) in MIXTURE.items() for _ in range(max(1, count // scale))
    ]
    rows: list[list[Example]] = [[]]
    for index in rng.permutation(len(examples)):
        if sum(len(one.tokens) for one in [*rows[-1], examples[index]]) > ROW_LENGTH:
            rows.append([])
        rows[-1].append(examples[index])
    return collate(rows, ROW_LENGTH, NAMES, VOCABULARY.special.pad)


def mean_losses(model: UnifiedModel, batch: Batch) -> dict[str, torch.Tensor]:
    """The mean loss of each objective, in nats."""
    divisors = model.divisors(batch)
    losses = model(batch)
    return {objective: losses[objective].total / divisors[objective].float() for objective in NAMES}


def smoothed(losses: list[float], width: int = 10) -> list[float]:
    """Means of `width` updates each."""
    return [round(float(np.mean(losses[i : i + width])), 3) for i in range(0, len(losses), width)]


# ---------------------------------------------------------------------- the recorded batch


def symbols(ids: torch.Tensor) -> list[str]:
    return [VOCABULARY.symbols[i] for i in ids.tolist()]


def vectors(mask: masks.AttentionMask) -> dict:
    """The mask of one row."""
    return {
        "queryStep": mask.query_step.tolist(),
        "keyStart": mask.key_start.tolist(),
        "keyStop": mask.key_stop.tolist(),
        "documentEnds": mask.document_ends.tolist(),
    }


def row(batch: Batch, i: int) -> dict:
    """Contents of row i: tokens, positions, token types, mask, and what is predicted where."""
    mask = {name: getattr(batch.mask, name)[i] for name in ("query_step", "key_start", "key_stop", "document_ends")}
    one = masks.AttentionMask(**mask)
    targets = batch.targets["token"]
    own = [n for n, index in enumerate(targets.output_indices[:, 0].tolist()) if index // ROW_LENGTH == i]
    return {
        "tokens": symbols(batch.tokens[i]),
        "positions": batch.positions[i].tolist(),
        "tokenTypes": batch.token_types[i].tolist(),
        "documents": one.key_documents().tolist(),
        "mask": vectors(one),
        "predictions": [
            {
                "number": n,
                "index": targets.output_indices[n, 0].item() % ROW_LENGTH,
                "label": VOCABULARY.symbols[targets.labels[n]],
                "objective": NAMES[targets.objectives[n]],
            }
            for n in own
        ],
    }


@torch.no_grad()
def predictions(model: UnifiedModel, batch: Batch) -> list[dict]:
    """The probability of each label of the batch, and the most probable symbols."""
    model.eval()
    targets = batch.targets["token"]
    probabilities = model.logits(model.hidden(batch, output_indices=targets.output_indices[:, 0])).softmax(-1)
    model.train()
    of_label = probabilities.gather(1, targets.labels[:, None])[:, 0]
    best, ids = probabilities.topk(GUESSES)
    return [
        {
            "label": round(label, 4),
            "guesses": [[symbol, round(p, 4)] for symbol, p in zip(symbols(own_ids), own_best, strict=True)],
        }
        for label, own_ids, own_best in zip(of_label.tolist(), ids, best.tolist(), strict=True)
    ]


# ---------------------------------------------------------------------- beam search


@dataclass
class RecordedState(DecodingState):
    """A state that writes down which rows go on."""

    def __post_init__(self) -> None:
        self.parents: list[list[int]] = []

    def reorder(self, rows: torch.Tensor) -> None:
        self.parents.append(rows.tolist())
        super().reorder(rows)


class RecordingDecoder(CachedDecoder):
    """Writes down what the search asks: the last tokens of its rows, and the log-probabilities that it is told."""

    def begin(self, source, beam: int, most: int | None = None) -> RecordedState:
        self.last_tokens: list[list[int] | None] = []
        self.log_probs: list[torch.Tensor] = []
        self.state = RecordedState(**vars(self.begin_growing(source, beam)))
        return self.state

    def step(self, last_tokens: torch.Tensor | None, state: DecodingState, temperature: float = 1.0) -> torch.Tensor:
        logits = super().step(last_tokens, state, temperature)
        self.last_tokens.append(None if last_tokens is None else last_tokens.tolist())
        self.log_probs.append(torch.log_softmax(logits.float(), dim=-1))
        return logits


def search(model: UnifiedModel, source: str) -> dict:
    """One beam search, step by step: the rows, their best continuations and what becomes of them."""
    special = VOCABULARY.special
    words = source.split()
    tokens = torch.from_numpy(VOCABULARY.encode(words))
    tokens = torch.cat([tokens, torch.tensor([special.separator])])
    decoder = RecordingDecoder(model, special, SCHEMES["cloze"])
    config = GenerationConfig(beam=BEAM, max_length=MAX_LENGTH, nbest=BEAM)
    (hypotheses,) = generate(decoder, tokens[None], config)
    rows = [{"tokens": [], "total": 0.0}]  # all rows begin alike, so the search starts from one of them
    steps, finished = [], []
    for number, (log_probs, parents) in enumerate(zip(decoder.log_probs, decoder.state.parents, strict=True)):
        candidates = best_continuations(rows, allowed(log_probs, number, config))
        going = 0
        for rank, candidate in enumerate(candidates):
            ends = candidate["token"] == special.separator
            candidate["fate"] = "falls out"
            if ends and rank < BEAM and len(finished) < BEAM:
                candidate["fate"] = "finished"
                finished.append([*rows[candidate["row"]]["tokens"], special.separator])
            elif not ends and going < BEAM:
                going += 1
                candidate["fate"] = "goes on"
        steps.append({"rows": [written(one) for one in rows], "candidates": [named(one) for one in candidates]})
        kept = [one for one in candidates if one["fate"] == "goes on"]
        rows = [{"tokens": [*rows[c["row"]]["tokens"], c["token"]], "total": c["total"]} for c in kept]
        if parents:  # what is shown is what the search did
            assert [c["row"] for c in kept] == parents
            assert [c["token"] for c in kept] == decoder.last_tokens[number + 1]
    assert sorted(text[:-1] for text in finished) == sorted(one.tokens.tolist() for one in hypotheses)
    return {
        "source": ["<s>", *words, "</s>"],
        "beam": BEAM,
        "steps": steps,
        "hypotheses": [
            {
                "tokens": [VOCABULARY.symbols[i] for i in one.tokens.tolist()],
                "logProbs": [round(p, 3) for p in one.log_probs.tolist()],
                "score": round(one.score, 4),
            }
            for one in hypotheses
        ],
    }


def allowed(log_probs: torch.Tensor, number: int, config: GenerationConfig) -> torch.Tensor:
    """The log-probabilities (rows, V) of step `number`, -inf where the search lets a token not follow."""
    special = VOCABULARY.special
    never = [special.begin, special.pad, special.mask]
    if number < config.min_length:
        never.append(special.separator)
    if number == config.max_length:
        never = [token for token in range(len(VOCABULARY)) if token != special.separator]
    return log_probs.index_fill(1, torch.tensor(never), -torch.inf)


def best_continuations(rows: list[dict], log_probs: torch.Tensor) -> list[dict]:
    """The 2 x beam best continuations of all rows, best first; fewer where no more may follow."""
    totals = torch.tensor([one["total"] for one in rows])
    joint = totals[:, None] + log_probs[: len(rows)]  # (rows, V)
    best, indices = joint.flatten().topk(2 * BEAM)
    return [
        {"row": index // joint.size(1), "token": index % joint.size(1), "total": total}
        for index, total in zip(indices.tolist(), best.tolist(), strict=True)
        if np.isfinite(total)
    ]


def written(one: dict) -> dict:
    return {"tokens": [VOCABULARY.symbols[i] for i in one["tokens"]], "total": round(one["total"], 3)}


def named(candidate: dict) -> dict:
    symbol = VOCABULARY.symbols[candidate["token"]]
    return {**candidate, "token": symbol, "total": round(candidate["total"], 3)}


if __name__ == "__main__":
    main()
