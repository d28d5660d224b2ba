"""MUC, B³, CEAF and BLANC of coreference chains as the official scorer of CoNLL-2012 computes them, version 8.01.

Pradhan et al. 2014 define the metrics for predicted mentions: nothing is added to or removed from either side, except
that a key mention that occurs again in the response is removed there. A mention is any hashable value, such as the
tuple (first token, last token); a chain is a sequence of mentions, and a document a sequence of chains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import summed

Chains = Sequence[Sequence[Hashable]]

#: The official scorer refuses a response with more repeated mentions.
MOST_REPEATED_MENTIONS = 10
_METRICS = ("mentions", "muc", "bcub", "ceafm", "ceafe")


def score_coreference(key: Sequence[Chains], response: Sequence[Chains]) -> dict[str, float]:
    """Scores of the chains ``response[i]`` of each document against ``key[i]``, as percentages.

    Numerators and denominators are summed over documents before they are divided. Singletons count on both sides for
    every metric but MUC, which knows links alone.

    Returns:
        ``{metric}_recall``, ``{metric}_precision`` and ``{metric}_f1`` of ``mentions`` (their identification),
        ``muc`` (Vilain et al. 1995), ``bcub`` (B³, Bagga and Baldwin 1998), ``ceafm`` and ``ceafe`` (Luo 2005: φ3 and
        φ4) and ``blanc`` (Luo et al. 2014); ``average_f1``, the mean F1 of muc, bcub and ceafe, which ranks systems.

    Raises:
        UnifiedError: no documents, unequal numbers, or more than :data:`MOST_REPEATED_MENTIONS` repeated mentions.
    """
    return CoreferenceDocuments(key, response).scores()


class CoreferenceDocuments:
    """Documents that are scored as :func:`score_coreference` says."""

    def __init__(self, key: Sequence[Chains], response: Sequence[Chains]):
        if len(key) != len(response):
            raise UnifiedError(f"{len(response)} documents in the response but {len(key)} in the key")
        if not key:
            raise UnifiedError("nothing to score: no documents")
        self.size = len(key)
        self._key = key
        found, repeated = [], 0
        for key_chains, response_chains in zip(key, response, strict=True):
            document = _Document(key_chains, response_chains)
            repeated += document.repeated
            if repeated > MOST_REPEATED_MENTIONS:
                raise UnifiedError(
                    f"more than {MOST_REPEATED_MENTIONS} repeated mentions in the response; like the official scorer, "
                    "this refuses: put every mention into one chain, once"
                )
            found.append([*(getattr(document, metric)() for metric in _METRICS), *document.blanc()])
        #: Numerators and denominators of recall, then of precision: (documents, metrics x 4),
        #: BLANC's two kinds of links last.
        self._counts = np.array(found, dtype=np.float64).reshape(len(key), -1)

    def references(self) -> list[tuple[tuple[Hashable, ...], ...]]:
        """The gold chains of each document."""
        return [tuple(tuple(chain) for chain in chains) for chains in self._key]

    def scores(self) -> dict[str, float]:
        """The measures."""
        return self.measures()

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """All measures of a sample of documents (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        *sums, links, no_links = summed(self._counts, counts).reshape(-1, 4)
        scores: dict[str, Iterable[float]] = {
            metric: _recall_precision_f1(*own) for metric, own in zip(_METRICS, sums, strict=True)
        }
        scores["blanc"] = _blanc(links, no_links)
        named = {
            f"{metric}_{name}": 100 * float(value)
            for metric, values in scores.items()
            for name, value in zip(("recall", "precision", "f1"), values, strict=True)
        }
        return named | {"average_f1": (named["muc_f1"] + named["bcub_f1"] + named["ceafe_f1"]) / 3}


class _Document:
    """Counts of the metrics in one document. Each returns (recall found, recall total, precision found, ... total)."""

    def __init__(self, key: Chains, response: Chains):
        key = [list(chain) for chain in key if len(chain)]
        # A mention that the key has twice belongs to the last of its chains, but counts in the sizes of both.
        self._chain_of_key = {mention: i for i, chain in enumerate(key) for mention in chain}
        response = self._without_repeats(response)
        self._chain_of_response = {mention: i for i, chain in enumerate(response) for mention in chain}
        self._key_sizes = np.array([len(chain) for chain in key], dtype=np.float64)
        self._response_sizes = np.array([len(chain) for chain in response], dtype=np.float64)
        # Pairs of chains -> mentions that both have: of the chain a mention belongs to; of every chain it is in, once;
        # and as often as it is there. All three are the same unless the key repeats mentions.
        self._belonging = self._common((i, mention) for mention, i in self._chain_of_key.items())
        self._distinct = self._common((i, mention) for i, chain in enumerate(key) for mention in set(chain))
        self._occurring = self._common((i, mention) for i, chain in enumerate(key) for mention in chain)

    def _without_repeats(self, chains: Chains) -> list[list[Hashable]]:
        """Chains less every mention of the key that occurred before; mentions unknown to the key stay, as published."""
        seen: set[Hashable] = set()
        self.repeated = 0
        kept = []
        for chain in chains:
            rest = []
            for mention in chain:
                if mention in seen:
                    self.repeated += 1
                    continue
                if mention in self._chain_of_key:
                    seen.add(mention)
                rest.append(mention)
            if rest:
                kept.append(rest)
        return kept

    def _common(self, key_mentions: Iterable[tuple[int, Hashable]]) -> Counter[tuple[int, int]]:
        chains = self._chain_of_response
        return Counter((i, chains[mention]) for i, mention in key_mentions if mention in chains)

    def mentions(self) -> tuple[float, float, float, float]:
        found = len(self._chain_of_key.keys() & self._chain_of_response.keys())
        return found, len(self._chain_of_key), found, len(self._chain_of_response)

    def muc(self) -> tuple[float, float, float, float]:
        found = self._belonging.total() - len(self._belonging)
        return found, (self._key_sizes - 1).sum(), found, (self._response_sizes - 1).sum()

    def bcub(self) -> tuple[float, float, float, float]:
        recall = precision = 0.0
        for (i, j), count in self._belonging.items():
            common = count * self._distinct[i, j]
            recall += common / self._key_sizes[i]
            precision += common / self._response_sizes[j]
        return recall, self._key_sizes.sum(), precision, self._response_sizes.sum()

    def ceafm(self) -> tuple[float, float, float, float]:
        pairs, common = self._pairs()
        found = _best_assignment(pairs, common)
        return found, self._key_sizes.sum(), found, self._response_sizes.sum()

    def ceafe(self) -> tuple[float, float, float, float]:
        pairs, common = self._pairs()
        similarity = 2 * common / (self._key_sizes[pairs[:, 0]] + self._response_sizes[pairs[:, 1]])
        found = _best_assignment(pairs, similarity)
        return found, len(self._key_sizes), found, len(self._response_sizes)

    def blanc(self) -> tuple[tuple[float, float, float, float], tuple[float, float, float, float]]:
        """Links within chains, and links between mentions of different chains; each mention counts once."""
        pairs = np.array(list(self._belonging), dtype=np.int64).reshape(-1, 2)
        common = np.array(list(self._belonging.values()), dtype=np.float64)
        key_links = _links(np.bincount(list(self._chain_of_key.values())))
        response_links = _links(np.bincount(list(self._chain_of_response.values())))
        both = _links(common)
        in_key = _links(np.bincount(pairs[:, 0], common))
        in_response = _links(np.bincount(pairs[:, 1], common))
        apart_in_both = _links(common.sum()) - in_key - in_response + both
        return (both, key_links, both, response_links), (
            apart_in_both,
            _links(len(self._chain_of_key)) - key_links,
            apart_in_both,
            _links(len(self._chain_of_response)) - response_links,
        )

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of chains with common mentions (P, 2), and how many occurrences in the key these are (P,)."""
        pairs = np.array(list(self._occurring), dtype=np.int64).reshape(-1, 2)
        return pairs, np.array(list(self._occurring.values()), dtype=np.float64)


def _best_assignment(pairs: np.ndarray, similarity: np.ndarray) -> float:
    """Largest sum of similarities (P,) when each key chain is paired with at most one response chain and conversely.

    Chains without a common mention add nothing, so only the P pairs are stored, never all products of chains.
    """
    if not len(pairs):
        return 0.0
    rows, columns = (np.unique(side, return_inverse=True)[1] for side in pairs.T)
    row_count, column_count = rows.max() + 1, columns.max() + 1
    # A column of its own for each row, where it is paired with nothing. The 1 tells such a pair from a missing one.
    alone = np.arange(row_count)
    weights = coo_array(
        (
            np.append(similarity + 1, np.ones(row_count)),
            (np.append(rows, alone), np.append(columns, column_count + alone)),
        ),
        shape=(row_count, column_count + row_count),
    ).tocsr()
    chosen = min_weight_full_bipartite_matching(weights, maximize=True)
    return float((weights[chosen] - 1).sum())


def _links(sizes: np.ndarray | float) -> float:
    """Number of pairs within chains of these sizes."""
    return float(np.sum(np.asarray(sizes) * (np.asarray(sizes) - 1) / 2))


def _recall_precision_f1(
    recall_found: float, recall_total: float, precision_found: float, precision_total: float
) -> tuple[float, float, float]:
    recall = recall_found / recall_total if recall_total else 0.0
    precision = precision_found / precision_total if precision_total else 0.0
    return recall, precision, 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def _blanc(links: np.ndarray, no_links: np.ndarray) -> np.ndarray:
    """Mean over the two kinds of links, of those kinds that the key has."""
    kinds = [_recall_precision_f1(*kind) for kind in (links, no_links) if kind[1]]
    return np.mean(kinds, axis=0) if kinds else np.zeros(3)
