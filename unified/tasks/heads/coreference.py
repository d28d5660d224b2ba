"""Coreference: which words of a document speak of the same thing, by ranking spans (Lee et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from unified.arguments import counted
from unified.inference.sequences import Codec
from unified.model.config import TransformerConfig
from unified.model.coreference import CoreferenceHead, SpanRanking
from unified.model.heads import LossSum, TaskHead
from unified.model.ranking import Ranking, antecedent_losses, gold_chains
from unified.tasks.heads.base import Encoded, Reading, Understanding
from unified.tasks.heads.document_windows import encode_documents
from unified.tasks.heads.documents import DocumentItem, document_item, response_text
from unified.tasks.heads.items import stated
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.conll import Mention
from unified.tasks.metrics.coreference import CoreferenceDocuments


@dataclass(frozen=True)
class Coreference(SpanRanking, Understanding[DocumentItem]):
    """Chains of mentions, found by a span ranking model whose settings are those of :class:`SpanRanking`.

    Chains of one mention are not predicted: the model links spans. Several models cannot answer together: each keeps
    candidates of its own, so that there are no common scores.
    """

    name: ClassVar[str] = "coreference"
    reads_windows: ClassVar[bool] = True
    together: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = ("average_f1", "muc_f1", "bcub_f1", "ceafe_f1", "mentions_recall")
    signature: ClassVar[str] = "rules:conll2012-8.01|average:muc,bcub,ceafe|singletons:yes"

    @property
    def longest_run(self) -> int:
        return self.max_windows

    @classmethod
    def item(cls, fields: dict[str, Any], number: int, labelled: bool) -> DocumentItem:
        return document_item(fields, number, labelled)

    @classmethod
    def of(cls, items: Sequence[DocumentItem], **settings: Any) -> Coreference:
        """A head for the genres that occur in ``items``, unless ``settings`` name others."""
        known = settings.get("genres") or sorted({item.genre for item in items if item.genre is not None})
        return cls(**settings | {"genres": tuple(known)})

    def encode(self, items: Sequence[DocumentItem], codec: Codec) -> Encoded:
        encoded = encode_documents(items, codec)
        number = {genre: i for i, genre in enumerate(self.genres, 1)}
        genres = [np.array([number.get(items[owner].genre, 0)]) for owner in encoded.owners]
        return replace(encoded, head_inputs={**encoded.head_inputs, "genres": genres}, remarks=self._remarks(items))

    def _remarks(self, items: Sequence[DocumentItem]) -> list[str]:
        """A remark on the number of mentions that are no candidates."""
        count = beyond = 0
        for item in items:
            sentence = np.repeat(np.arange(len(item.sentences)), [len(words) for words in item.sentences])
            mentions = [mention for chain in item.chains or () for mention in chain]
            first, last = np.array(mentions, dtype=np.int64).reshape(len(mentions), 2).T
            count += len(mentions)
            beyond += int(((last - first >= self.max_width) | (sentence[first] != sentence[last])).sum())
        if not beyond:
            return []
        most = counted(self.max_width, "word")
        return [f"{beyond} of {count} mentions have more than {most} or parts of several sentences"]

    def head(self, config: TransformerConfig) -> TaskHead:
        return CoreferenceHead(config, self)

    def loss(self, scores: list[Ranking], reading: Reading) -> LossSum:
        """Summed over the spans of each document, as published: ``count`` is of documents.

        ``correct`` sums, over documents, the share of spans whose best antecedent is right.
        """
        losses, right = [], []
        for ranking in scores:
            of_spans, correct = antecedent_losses(ranking, gold_chains(ranking, reading["mentions"]))
            losses.append(of_spans.sum())
            right.append(correct.float().mean())
        total = torch.stack(losses).sum()
        return LossSum(total, torch.tensor(len(losses)), torch.stack(right).sum(), total.detach())

    def loss_count(self, reading: Reading) -> int:
        """The number of documents in the batch."""
        return len(reading["owners"].unique())

    def predict(
        self,
        items: Sequence[DocumentItem],
        encoded: Encoded,
        members: np.ndarray,
        scores: list[Ranking],
        reading: Reading,
    ) -> list[dict[str, Any]]:
        """``chains`` of [first word, last word], words counted from 0 in the document."""
        owners, firsts = np.unique(encoded.owners[members], return_index=True)
        before = [encoded.notes[members[first]] for first in firsts]
        assert len(owners) == len(items) == len(scores)
        return [
            {"id": item.id, "chains": [[list(mention) for mention in chain] for chain in chains_of(ranking, words)]}
            for item, ranking, words in zip(items, scores, before, strict=True)
        ]

    def scored(self, items: Sequence[DocumentItem], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Documents with the measures of :func:`unified.tasks.metrics.score_coreference`."""
        found = [[list(map(tuple, chain)) for chain in prediction["chains"]] for prediction in predictions]
        return CoreferenceDocuments([stated(item.chains, item, "chains") for item in items], found)

    def official(self, items: Sequence[DocumentItem], predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``response.conll``, in the format of CoNLL-2012; nothing where ids do not tell documents apart."""
        if len({item.id for item in items}) < len(items):
            return {}
        return {"response.conll": response_text(items, predictions)}


def chains_of(ranking: Ranking, before: int = 0) -> list[list[Mention]]:
    """Chains of the spans that the best antecedents link, in the order of their first mentions.

    Args:
        before: number of the document's first word.
    """
    best = ranking.scores.argmax(1).tolist()
    antecedents = ranking.antecedents.tolist()
    chains: list[list[int]] = []
    chain_of: dict[int, list[int]] = {}
    for span, choice in enumerate(best):
        if choice:
            antecedent = antecedents[span][choice - 1]  # an earlier span, so its chain is known
            if antecedent not in chain_of:
                chain_of[antecedent] = [antecedent]
                chains.append(chain_of[antecedent])
            chain_of[span] = chain_of[antecedent]
            chain_of[span].append(span)
    spans = list(zip((ranking.starts - before).tolist(), (ranking.ends - before).tolist(), strict=True))
    return [[spans[number] for number in chain] for chain in sorted(chains)]
