"""Coreference by ranking spans: which earlier span does each go back to? (Lee et al. 2018; Joshi et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from unified.arguments import check_all_settings, setting
from unified.model.config import TransformerConfig
from unified.model.heads import TaskHead
from unified.model.ranking import Ranking
from unified.model.spans import MentionScorer, SpanVectors, candidate_spans, kept_spans
from unified.model.transformer import initialize

#: Distances that fall into buckets of their own begin here: 0, 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, 64 and more.
_BUCKETS = (1, 2, 3, 4, 5, 8, 16, 32, 64)


#: Bound of sizes: a damaged file must not ask for all memory.
_MOST = 1 << 20


@dataclass(frozen=True)
class SpanRanking:
    """Settings of the published model (mandarjoshi90/coref, ``experiments.conf``).

    Attributes:
        genres: kinds of documents known by name; of all others nothing is known.
        max_windows: of a document that training reads at once; distances in windows beyond are not told apart.
        max_width: words of a span.
        spans_per_word, max_spans: how many spans are kept, whichever is less.
        antecedents: earlier spans that each is compared with closely.
        hidden: units of the one hidden layer of every scorer.
        features: width of the embeddings of widths, distances, speakers and genres.
        depth: how often antecedents are scored; before each time but the first a span learns from its antecedents.
        dropout: of hidden layers, features and the coarse comparison.
    """

    genres: tuple[str, ...] = ()
    max_windows: int = setting(3, least=1, most=_MOST)
    max_width: int = setting(30, least=1, most=_MOST)
    spans_per_word: float = setting(0.4, above=0)
    max_spans: int = setting(3900, least=1, most=_MOST)
    antecedents: int = setting(50, least=1, most=_MOST)
    hidden: int = setting(3000, least=1, most=_MOST)
    features: int = setting(20, least=1, most=_MOST)
    depth: int = setting(2, least=1, most=1000)
    dropout: float = setting(0.3, least=0, below=1)

    def __post_init__(self) -> None:
        check_all_settings(self, "coreference: {}".format)


@dataclass(frozen=True)
class _Document:
    """A document of T tokens and W words: ``states`` (T, D), the genre, and of each word the rest."""

    states: torch.Tensor
    genre: torch.Tensor
    words: torch.Tensor
    first: torch.Tensor
    last: torch.Tensor
    sentences: torch.Tensor
    speakers: torch.Tensor
    windows: torch.Tensor


class CoreferenceHead(TaskHead):
    """Turns the states of documents' tokens into a :class:`Ranking` of each document.

    Memory without gradients is bounded but for the document's own states: (K, K) scores of at most ``max_spans`` spans,
    and a fixed number of candidates and pairs at a time.
    """

    #: Candidates whose hidden layers exist at the same time where no gradient is wanted.
    candidates_at_once: int = 2048
    #: Spans that are compared with all others at the same time.
    spans_at_once: int = 256

    def __init__(self, config: TransformerConfig, settings: SpanRanking):
        super().__init__()
        self.settings = settings
        features = settings.features
        self.vectors = SpanVectors(config.width, settings.max_width, features, settings.dropout)
        size = self.vectors.size
        self.mention = MentionScorer(self.vectors, config.width, settings.hidden, settings.dropout)
        self.width_prior = nn.Embedding(settings.max_width, features)
        self.width = nn.Sequential(
            nn.Linear(features, settings.hidden), nn.ReLU(), nn.Dropout(settings.dropout), nn.Linear(settings.hidden, 1)
        )
        self.coarse = nn.Linear(size, size)
        self.distance_prior = nn.Embedding(len(_BUCKETS) + 1, features)
        self.distance = nn.Linear(features, 1)
        self.pair = _PairScorer(size, settings)
        self.gate = nn.Linear(2 * size, size)
        self.dropout = nn.Dropout(settings.dropout)
        for module in self.modules():
            initialize(module, config.initializer_range)

    def forward(self, states: torch.Tensor, reading: Mapping[str, torch.Tensor]) -> list[Ranking]:
        """Rankings of the documents in the order of their items.

        Args:
            states: (N, D), of all tokens of the batch.
            reading: of :func:`unified.tasks.heads.document_windows.encode_documents`, and ``genres``, int64 (E,), of
                each window: numbers in ``settings.genres`` from 1, 0 where it is unknown.
        """
        return [self._ranking(document) for document in _documents(states, reading)]

    def _ranking(self, document: _Document) -> Ranking:
        starts, ends = candidate_spans(document.sentences, self.settings.max_width)
        kept, mention = self._kept(document, starts, ends)
        starts, ends = starts[kept], ends[kept]
        first, last = document.first[starts], document.last[ends]
        vectors = self.vectors(document.states, first, last, ends - starts + 1)
        antecedents, coarse = self._antecedents(vectors, mention)
        speakers, windows = document.speakers[starts], document.windows[starts]
        scores = self._scores(coarse, self.pair(vectors, antecedents, speakers, windows, document.genre))
        for _ in range(self.settings.depth - 1):
            vectors = self._refined(vectors, antecedents, scores)
            scores = self._scores(coarse, self.pair(vectors, antecedents, speakers, windows, document.genre))
        return Ranking(document.words[starts], document.words[ends], antecedents, scores)

    def _mention_scores(self, document: _Document, starts: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """(S,), how much each span looks like a mention.

        Spans are in order, so that a portion of them lies in a small part of the document. Results are written into
        their places: kept apart they would come to lie between the large arrays of the portions, whose memory the
        allocator then could not use again (1.3 GB instead of 0.1 GB for 340,000 spans).
        """
        scores = document.states.new_empty(len(starts))
        every = (document.first[starts], document.last[ends], ends - starts + 1)
        portions = list(zip(*(tensor.split(self.candidates_at_once) for tensor in every), strict=True))
        # Where the states of each portion begin and end, and the tokens of its spans: one look, for which a GPU waits.
        sizes = torch.stack(
            [torch.stack((first[0], last.max() + 1, (last - first + 1).sum())) for first, last, _ in portions]
        ).tolist()
        for i, ((first, last, words), (origin, stop, tokens)) in enumerate(zip(portions, sizes, strict=True)):
            begin, states = i * self.candidates_at_once, document.states[origin:stop]
            found = self.mention(self.vectors, states, first - origin, last - origin, words, tokens)
            scores[begin : begin + len(found)] = found
        return scores + self.width(self.width_prior.weight).squeeze(-1)[ends - starts]

    def _kept(self, document: _Document, starts: torch.Tensor, ends: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Numbers of the candidates that are kept, and their scores, both (K,).

        The loss knows no others, so only these are computed with gradients.
        """
        count = min(self.settings.max_spans, int(self.settings.spans_per_word * len(document.words)))
        with torch.no_grad():
            scores = self._mention_scores(document, starts, ends)
            kept = kept_spans(scores, starts, ends, max(count, 1))
        if torch.is_grad_enabled():
            return kept, self._mention_scores(document, starts[kept], ends[kept])
        return kept, scores[kept]

    def _antecedents(self, vectors: torch.Tensor, mention: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The best earlier spans of each by the coarse score, int64 (K, A), and these scores (K, A)."""
        count, numbers = len(vectors), torch.arange(len(vectors), device=vectors.device)
        earlier, later = self.dropout(vectors), self.dropout(self.coarse(vectors))
        by_distance = self.distance(self.dropout(self.distance_prior.weight)).squeeze(-1)[distance_buckets(numbers)]
        antecedents = numbers.new_empty(count, min(self.settings.antecedents, count))
        coarse = vectors.new_empty(antecedents.shape)
        for rows in numbers.split(self.spans_at_once):
            distances = rows.unsqueeze(1) - numbers
            scores = (
                mention[rows].unsqueeze(1) + mention + later[rows] @ earlier.T + by_distance[distances.clamp(min=0)]
            )
            scores = scores.masked_fill(distances < 1, -torch.inf)
            coarse[rows], antecedents[rows] = scores.topk(antecedents.size(1))
        return antecedents, coarse

    @staticmethod
    def _scores(coarse: torch.Tensor, fine: torch.Tensor) -> torch.Tensor:
        """(K, 1 + A), beginning with that of no antecedent."""
        scores = torch.cat([coarse.new_zeros(len(coarse), 1), coarse + fine], dim=1)
        return scores.to(torch.promote_types(scores.dtype, torch.float32))

    def _refined(self, vectors: torch.Tensor, antecedents: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Span vectors (K, G) gated with those of their expected antecedents, itself where there is none."""
        weights = scores.softmax(-1).to(vectors.dtype)
        expected = weights[:, :1] * vectors + functional.embedding_bag(
            antecedents, vectors, mode="sum", per_sample_weights=weights[:, 1:].contiguous()
        )
        gate = self.gate(torch.cat([vectors, expected], dim=-1)).sigmoid()
        return gate * expected + (1 - gate) * vectors


class _PairScorer(nn.Module):
    """A score for [span; earlier span; their product; features], by a hidden layer with ReLU and dropout.

    The hidden layer is applied to the parts, which is the same, and to each span once instead of to each pair.
    """

    #: Close pairs whose hidden layers exist at the same time where no gradient is wanted.
    pairs_at_once: int = 3200

    def __init__(self, size: int, settings: SpanRanking):
        super().__init__()
        features, hidden = settings.features, settings.hidden
        self.span = nn.Linear(size, hidden)
        self.earlier = nn.Linear(size, hidden, bias=False)
        self.product = nn.Linear(size, hidden, bias=False)
        self.features = nn.Linear(4 * features, hidden, bias=False)
        self.same_speaker = nn.Embedding(2, features)
        self.genres = nn.Embedding(len(settings.genres) + 1, features)
        self.distances = nn.Embedding(len(_BUCKETS) + 1, features)
        self.windows = nn.Embedding(settings.max_windows, features)
        self.dropout = nn.Dropout(settings.dropout)
        self.output = nn.Linear(hidden, 1)

    def forward(
        self,
        vectors: torch.Tensor,
        antecedents: torch.Tensor,
        speakers: torch.Tensor,
        windows: torch.Tensor,
        genre: torch.Tensor,
    ) -> torch.Tensor:
        """(K, A).

        Args:
            vectors: (K, G).
            antecedents: int64 (K, A).
            speakers, windows: int64 (K,), of each span's first word.
            genre: int64 scalar.
        """
        own, earlier = self.span(vectors), self.earlier(vectors)
        genre = self.genres(genre)
        scores = vectors.new_empty(antecedents.shape)
        rows_at_once = max(1, self.pairs_at_once // antecedents.size(1))
        for rows in torch.arange(len(vectors), device=vectors.device).split(rows_at_once):
            others, these = antecedents[rows], rows.unsqueeze(1)
            apart = (windows[these] - windows[others]).clamp(0, self.windows.num_embeddings - 1)
            features = (
                self.same_speaker((speakers[these] == speakers[others]).long()),
                genre.expand(*others.shape, -1),
                self.distances(distance_buckets(these - others)),
                self.windows(apart),
            )
            hidden = own[these] + earlier[others] + self.product(vectors[these] * vectors[others])
            hidden = hidden + self.features(self.dropout(torch.cat(features, dim=-1)))
            scores[rows] = self.output(self.dropout(hidden.relu())).squeeze(-1)
        return scores


def distance_buckets(distances: torch.Tensor) -> torch.Tensor:
    """Numbers of the buckets of distances, 0 for those below 0."""
    return torch.bucketize(distances, torch.tensor(_BUCKETS, device=distances.device), right=True)


def _documents(states: torch.Tensor, reading: Mapping[str, torch.Tensor]) -> Iterator[_Document]:
    """The documents of a batch, whose windows stand in any order. Numbers of words tell the order of their tokens."""
    owners, order = reading["owners"].repeat_interleave(reading["sizes"]), reading["words"].argsort(stable=True)
    order = order[owners[order].argsort(stable=True)]
    counts = owners.bincount().tolist()
    genres = reading["genres"].repeat_interleave(reading["sizes"])
    facts = [reading[name] for name in ("words", "sentences", "speakers", "windows")]
    by_document = (fact[order].split(counts) for fact in (states, genres, *facts))
    for own_states, own_genres, words, *others in zip(*by_document, strict=True):
        begins = torch.cat([words.new_ones(1, dtype=torch.bool), words[1:] != words[:-1]])
        first = begins.nonzero().squeeze(-1)
        last = torch.cat([first[1:], first.new_tensor([len(words)])]) - 1
        yield _Document(own_states, own_genres[0], words[first], first, last, *(other[first] for other in others))
