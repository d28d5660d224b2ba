"""Random documents, and the span ranking model by the definitions of the paper, worked out span by span in loops."""

import math
import random

import numpy as np
import torch

from unified.data.collate import collate
from unified.data.vocabulary import Vocabulary
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.model.ranking import Ranking
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.documents import DocumentItem
from unified.tokenization.wordpiece import WordPieceTokenizer

PIECES = ["a", "b", "c", "##b", "##c"]
TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES], lowercase=False)
VOCABULARY = Vocabulary(PIECES)
SMALL = {"max_width": 4, "antecedents": 3, "hidden": 7, "features": 2, "dropout": 0.0, "max_windows": 2}


def random_item(rng: random.Random, name: str, words: int | None = None) -> DocumentItem:
    """A word has one to four tokens; about a third of the words begin a mention."""
    left, sentences = words or rng.randint(1, 30), []
    while left:
        length = min(left, rng.randint(1, 7))
        sentences.append(tuple(rng.choice("abc") + "bc" * rng.choice((0, 0, 0, 1, 1, 2)) for _ in range(length)))
        left -= length
    names = [rng.choice([None, "Ann", "Bob"]) for _ in sentences]
    speakers = tuple((who,) * len(said) for who, said in zip(names, sentences, strict=True))
    count = sum(map(len, sentences))
    chains = [[] for _ in range(3)]
    for start in range(count):
        if rng.random() < 0.4:
            rng.choice(chains).append((start, min(count - 1, start + rng.choice((0, 0, 1, 5)))))
    return DocumentItem(
        name,
        tuple(sentences),
        speakers if rng.random() < 0.7 else None,
        rng.choice([None, "bc", "nw", "new"]),
        tuple(tuple(chain) for chain in chains if chain),
    )


class Case:
    """A model with strong random parameters in float64, and encoded documents."""

    def __init__(self, seed: int, documents: int = 3, longest: int = 16, words: int | None = None, **settings):
        torch.manual_seed(seed)
        rng = random.Random(seed)
        self.items = [random_item(rng, str(i), words) for i in range(documents)]
        self.task = Coreference(**SMALL | {"genres": ("bc", "nw")} | settings)
        self.encoded = self.task.encode(self.items, Codec(TOKENIZER, VOCABULARY, longest))
        config = TransformerConfig(vocabulary_size=len(VOCABULARY), layers=1, width=8, heads=2, initializer_range=0.5)
        head = self.task.head(config)
        for parameter in head.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        self.model = UnifiedModel.for_tasks(config, {"coreference": head}).double().eval()

    def read(self, members) -> tuple[list[Ranking], dict]:
        """Rankings of windows in a given order, and their reading."""
        members = np.array(members)
        rows = [[self.encoded.examples[member]] for member in members]
        reading = self.encoded.reading(members)
        return self.model.scores(collate(rows, None, ("task",), 1), reading, "coreference"), reading

    def windows_of(self, *items: int) -> list[int]:
        return np.flatnonzero(np.isin(self.encoded.owners, items)).tolist()


# ------------------------------------------------------------ by definition


def feed_forward(inputs, first, second):
    """One hidden layer; ``first`` is (weight, bias)."""
    hidden = (first[0] @ inputs + first[1]).clamp(min=0)
    return float(second.weight[0] @ hidden + second.bias[0])


def bucket(distance: int) -> int:
    """The published formula: up to 4 as they are, then 3 + floor(log2), at most 9."""
    return max(0, min(9, distance if distance <= 4 else int(math.floor(math.log2(distance))) + 3))


def crosses(one: tuple[int, int], other: tuple[int, int]) -> bool:
    (a, b), (c, d) = sorted([one, other])
    return a < c <= b < d


def pruned(scores: list[float], spans: list[tuple[int, int]], count: int) -> list[int]:
    """Best first, skipping what crosses anything that is there already."""
    kept: list[int] = []
    for number in sorted(range(len(spans)), key=lambda i: (-scores[i], i)):
        if len(kept) < count and not any(crosses(spans[number], spans[other]) for other in kept):
            kept.append(number)
    return sorted(kept, key=lambda number: spans[number])


class Naive:
    """Everything that the head says of one document."""

    @torch.no_grad()
    def __init__(self, case: Case, number: int):
        item, head, settings = case.items[number], case.model.heads["coreference"], case.task
        words, window = [], []  # of each word its (tokens, D) states, and its window
        for position, member in enumerate(case.windows_of(number)):
            example = case.encoded.examples[member]
            batch = collate([[example]], None, ("task",), 1)
            states = case.model.transformer(batch.tokens, batch.positions, batch.token_types, batch.mask)[0]
            of_words = case.encoded.head_inputs["words"][member]
            for word in dict.fromkeys(of_words.tolist()):
                words.append(states[example.targets["task"].output_indices[:, 0][of_words == word]])
                window.append(position)
        assert len(words) == len(item.words)
        sentence = [i for i, said in enumerate(item.sentences) for _ in said]
        speaker = [name for names in item.speakers for name in names] if item.speakers else [None] * len(words)
        genre = settings.genres.index(item.genre) + 1 if item.genre in settings.genres else 0

        spans = [
            (i, j)
            for i in range(len(words))
            for j in range(i, len(words))
            if sentence[i] == sentence[j] and j - i < settings.max_width
        ]

        def vector(i, j):
            inside = torch.cat(words[i : j + 1])
            weights = (head.vectors.attention.weight[0] @ inside.T + head.vectors.attention.bias).softmax(0)
            return torch.cat([words[i][0], words[j][-1], head.vectors.widths.weight[j - i], weights @ inside])

        scorer = head.mention
        parts = [scorer.first.weight, scorer.last.weight, scorer.width.weight, scorer.mean.weight]

        def mention(i, j):
            score = feed_forward(vector(i, j), (torch.cat(parts, dim=1), scorer.first.bias), scorer.output)
            prior = head.width_prior.weight[j - i]
            return score + feed_forward(prior, (head.width[0].weight, head.width[0].bias), head.width[3])

        scores = [mention(*span) for span in spans]
        count = max(1, min(settings.max_spans, math.floor(settings.spans_per_word * len(words))))
        self.spans = [spans[kept] for kept in pruned(scores, spans, count)]
        of_mention = [mention(*span) for span in self.spans]
        vectors = [vector(*span) for span in self.spans]

        def coarse(i, j):
            bilinear = (head.coarse.weight @ vectors[i] + head.coarse.bias) @ vectors[j]
            prior = head.distance.weight[0] @ head.distance_prior.weight[bucket(i - j)] + head.distance.bias[0]
            return of_mention[i] + of_mention[j] + float(bilinear) + float(prior)

        by_coarse = [{j: coarse(i, j) for j in range(i)} for i in range(len(vectors))]
        self.antecedents = [sorted(of, key=lambda j: -of[j])[: settings.antecedents] for of in by_coarse]  # noqa: B023
        pair = head.pair
        first = (
            torch.cat([pair.span.weight, pair.earlier.weight, pair.product.weight, pair.features.weight], dim=1),
            pair.span.bias,
        )

        def fine(i, j):
            a, b = self.spans[i][0], self.spans[j][0]
            apart = min(max(window[a] - window[b], 0), settings.max_windows - 1)
            features = (
                pair.same_speaker.weight[int(speaker[a] == speaker[b])],
                pair.genres.weight[genre],
                pair.distances.weight[bucket(i - j)],
                pair.windows.weight[apart],
            )
            return feed_forward(
                torch.cat([vectors[i], vectors[j], vectors[i] * vectors[j], *features]), first, pair.output
            )

        for round in range(settings.depth):
            if round:
                better = []
                for i, of in enumerate(self.scores):
                    weights = torch.tensor([0.0, *of.values()], dtype=torch.float64).softmax(0)
                    others = [vectors[i], *(vectors[j] for j in of)]
                    expected = sum(weight * other for weight, other in zip(weights, others, strict=True))
                    gate = (head.gate.weight @ torch.cat([vectors[i], expected]) + head.gate.bias).sigmoid()
                    better.append(gate * expected + (1 - gate) * vectors[i])
                vectors = better
            self.scores = [
                {j: by_coarse[i][j] + fine(i, j) for j in antecedents} for i, antecedents in enumerate(self.antecedents)
            ]

    def loss(self, chains) -> float:
        """-log of the summed probability of all right antecedents, the dummy where no antecedent is right."""
        chain_of = {}
        for number, chain in enumerate(chains):
            for mention in chain:
                chain_of.setdefault(mention, number)
        total = 0.0
        for i, of in enumerate(self.scores):
            mine = chain_of.get(self.spans[i])
            right = [j for j in of if mine is not None and chain_of.get(self.spans[j]) == mine]
            all_scores = sum(math.exp(score) for score in of.values()) + 1
            total -= math.log((sum(math.exp(of[j]) for j in right) if right else 1) / all_scores)
        return total

    def chains(self) -> list:
        """Each span joins the chain of its best antecedent, if that is better than none."""
        together = [{i} for i in range(len(self.spans))]
        for i, of in enumerate(self.scores):
            if of and max(of.values()) > 0:
                j = max(of, key=of.get)
                union = together[i] | together[j]
                for member in union:
                    together[member] = union
        distinct = {min(union): union for union in together if len(union) > 1}
        return [[list(self.spans[i]) for i in sorted(distinct[key])] for key in sorted(distinct)]
