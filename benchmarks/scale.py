"""Time and cost of the papers' full pre-training on 1 to 512 cards, worked out from one card's speed and the network.

    python benchmarks/scale.py --card h200
    python benchmarks/scale.py --large-tokens 180000 --inside 450 --between 400 --price 3

Formulas and what they leave out: docs/background/scale.md. Nothing is measured here: ``--large-tokens`` is the one
figure that a measurement gives, tokens a second of the large model (24 x 1024, rows of 512) on one card.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unified.reports.markdown import table_lines

PREDICTED = 0.15
CARDS = (1, 8, 64, 512)
#: Efficiency below which more cards are not worth it.
WORTH = 0.9


@dataclass(frozen=True)
class Stage:
    """A stage of pre-training: ``updates`` of ``sequences``, each of ``length`` tokens."""

    updates: int
    sequences: int
    length: int

    @property
    def tokens(self) -> int:
        """Tokens of one update."""
        return self.sequences * self.length


@dataclass(frozen=True)
class System:
    """A paper's pre-training.

    Attributes:
        matrices: parameters of a layer in multiples of D^2 (12: attention 4, feed-forward 8).
        streams: how many times the tokens pass the layers (XLNet's query stream: 85 of 512 tokens more).
    """

    name: str
    layers: int
    width: int
    stages: tuple[Stage, ...]
    matrices: int = 12
    streams: float = 1.0
    vocabulary: int = 30_522

    @property
    def parameters(self) -> int:
        """Number of parameters of layers and embeddings."""
        return self.layers * self.matrices * self.width**2 + (self.vocabulary + 512) * self.width

    def operations(self, length: int) -> float:
        """Arithmetic operations of a token in training: forward, and twice that backward; two for each product."""
        layers = 2 * self.layers * self.matrices * self.width**2
        attentions = self.matrices // 4 - 2  # 12: one in a layer, 16: two
        attention = 4 * attentions * self.layers * length * self.width
        head = 2 * PREDICTED * (self.width**2 + self.width * self.vocabulary)
        return 3 * (self.streams * (layers + attention) + head)


LARGE = System("large", 24, 1024, ())
#: Updates and batches: UniLM section 2.4; BERT, appendix A.2 (90 % of the updates at 128); SpanBERT, section 4.2;
#: XLNet, section 3.1; ANNA, section 4; T5, section 3.1.2, its baseline's budget on one stack of base size.
SYSTEMS = (
    System("BERT base", 12, 768, (Stage(900_000, 256, 128), Stage(100_000, 256, 512))),
    System("BERT large", 24, 1024, (Stage(900_000, 256, 128), Stage(100_000, 256, 512))),
    System("UniLM large", 24, 1024, (Stage(770_000, 330, 512),), vocabulary=28_996),
    System("SpanBERT large", 24, 1024, (Stage(2_400_000, 256, 512),), vocabulary=28_996),
    System("XLNet large", 24, 1024, (Stage(500_000, 8192, 512),), streams=1 + 85 / 512, vocabulary=32_000),
    System("ANNA base", 12, 768, (Stage(1_000_000, 1024, 512),), matrices=16, vocabulary=127_490),
    System("ANNA large", 24, 1024, (Stage(1_000_000, 2048, 512),), matrices=16, vocabulary=127_490),
    System("T5 objectives, base", 12, 768, (Stage(2**19, 128, 512),)),
)


@dataclass(frozen=True)
class Machine:
    """Cards in nodes.

    Attributes:
        large_tokens: tokens a second of the large model in rows of 512 on one card.
        at_once: tokens that a card takes in one micro-batch.
        inside: gigabytes a second of a card within its node, each way.
        between: gigabytes a second of a node, each way.
        node: cards of a node.
        price: of a card for an hour.
    """

    large_tokens: float
    at_once: int
    inside: float
    between: float
    node: int = 8
    price: float = 3.0


#: Published figures, see docs/background/scale.md; none of them is ours.
MACHINES = {
    "v100": Machine(large_tokens=8_381, at_once=4096, inside=150, between=50),
    "h200": Machine(large_tokens=254_000, at_once=32_768, inside=450, between=400),
}


def reduction(gradients: float, cards: int, machine: Machine) -> float:
    """Seconds of an all-reduce of a number of bytes: a ring within each node, and one of the nodes."""
    inside, nodes = min(cards, machine.node), math.ceil(cards / machine.node)
    within = 2 * (inside - 1) / inside * gradients / (machine.inside * 1e9)
    return within + 2 * (nodes - 1) / nodes * gradients / (machine.between * 1e9)


def update(system: System, stage: Stage, cards: int, machine: Machine) -> tuple[float, float]:
    """Seconds of computation in an update, and of the all-reduce as far as backward does not hide it."""
    speed = machine.large_tokens * LARGE.operations(512)  # operations a second
    cards_used = min(cards, stage.sequences)
    compute = stage.tokens / cards_used * system.operations(stage.length) / speed
    micro_batches = update_freq(stage, cards, machine)
    hidden = 2 / 3 * compute / micro_batches  # fairseq reduces during the last micro-batch's backward
    return compute, max(0.0, reduction(2 * system.parameters, cards, machine) - hidden)


def update_freq(stage: Stage, cards: int, machine: Machine) -> int:
    """Micro-batches of a card in an update."""
    return max(1, round(stage.tokens / cards / machine.at_once))


def hours(system: System, cards: int, machine: Machine) -> float:
    """Hours of the whole pre-training."""
    return sum(stage.updates * sum(update(system, stage, cards, machine)) for stage in system.stages) / 3600


def efficiency(system: System, cards: int, machine: Machine) -> float:
    """Hours of cards that one card would take over those that ``cards`` take."""
    return hours(system, 1, machine) / (cards * hours(system, cards, machine))


def limit(system: System, machine: Machine) -> int:
    """The most cards, a power of two up to 4,096, at which they are still worth it."""
    counts = [2**i for i in range(13)]
    return max(count for count in counts if efficiency(system, count, machine) >= WORTH)


def table(machine: Machine, systems: Sequence[System] = SYSTEMS, cards: Sequence[int] = CARDS) -> str:
    """Markdown: days on each number of cards, card hours and price on the first, and where scaling stops."""
    heads = [*(f"{count} card{'s' if count > 1 else ''}" for count in cards), "card hours", "cost", "scales to"]
    rows = []
    for system in systems:
        tokens = sum(stage.updates * stage.tokens for stage in system.stages)
        days = [_days(hours(system, count, machine) / 24) for count in cards]
        alone = hours(system, 1, machine)
        rest = [f"{_round(alone):,}", f"{_round(alone * machine.price):,}", f"{limit(system, machine):,}"]
        rows.append([system.name, f"{tokens / 1e9:,.0f} G", *days, *rest])
    return "\n".join(table_lines(["pre-training", "tokens", *heads], rows))


def settings(machine: Machine, systems: Sequence[System] = SYSTEMS, cards: Sequence[int] = CARDS) -> str:
    """Markdown: rows of a card and micro-batch, and `--update-freq`, of each pre-training's last stage."""
    heads = [f"{count} card{'s' if count > 1 else ''}" for count in cards]
    body = []
    for system in systems:
        stage = system.stages[-1]
        cells = []
        for count in cards:
            times = update_freq(stage, count, machine)
            rows = stage.sequences / count / times
            cells.append(f"{max(1, round(rows))} x {times}" if rows >= 0.5 else "more cards than rows")
        body.append([system.name, *cells])
    return "\n".join(table_lines(["rows a card x `--update-freq`", *heads], body))


def _days(days: float) -> str:
    return f"{days:,.0f} d" if days >= 10 else f"{days:.1f} d" if days >= 1 else f"{24 * days:.1f} h"


def _round(value: float) -> float:
    """Rounds to three digits; the formulas are no more exact."""
    return round(value, 2 - math.floor(math.log10(value))) if value < 1e2 else int(float(f"{value:.3g}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--card",
        choices=MACHINES,
        default="h200",
        help="GPU whose published figures are the defaults of the other options (default: %(default)s)",
    )
    parser.add_argument(
        "--large-tokens", type=float, metavar="N", help="training tokens a second of the large model on one GPU"
    )
    parser.add_argument("--at-once", type=int, metavar="N", help="tokens of a micro-batch on one GPU")
    parser.add_argument("--inside", type=float, metavar="GB/S", help="bandwidth of a GPU within its node, each way")
    parser.add_argument("--between", type=float, metavar="GB/S", help="bandwidth between nodes, each way")
    parser.add_argument("--node", type=int, metavar="N", help="GPUs of a node")
    parser.add_argument("--price", type=float, metavar="P", help="price of a GPU for an hour")
    arguments = parser.parse_args()
    names = ("large_tokens", "at_once", "inside", "between", "node", "price")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    machine = replace(MACHINES[arguments.card], **given)
    print(f"{table(machine)}\n\n{settings(machine)}")


if __name__ == "__main__":
    main()
