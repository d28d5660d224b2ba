"""Result of ranking the spans of a document, and its loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Ranking:
    """The K spans of a document that were kept, by first and last word, and A possible antecedents of each.

    Attributes:
        starts, ends: int64 (K,), first and last word by their numbers in the reading.
        antecedents: int64 (K, A), numbers of spans; of the first spans some are not earlier ones.
        scores: (K, 1 + A), float32 or float64: of having no antecedent, always 0, and of each; -inf where it is not
            an earlier span.
    """

    starts: torch.Tensor
    ends: torch.Tensor
    antecedents: torch.Tensor
    scores: torch.Tensor


def gold_chains(ranking: Ranking, mentions: torch.Tensor) -> torch.Tensor:
    """The chain of each kept span, int64 (K,), 0 where it is no mention.

    Args:
        mentions: int64 (M, 3), first word, last word and chain; a mention that is there twice counts once, for the
            first chain.
    """
    if not len(mentions):
        return torch.zeros_like(ranking.starts)
    words = torch.maximum(mentions[:, 1].max(), ranking.ends.max()) + 1
    mentions = mentions[(mentions[:, 0] * words + mentions[:, 1]).argsort(stable=True)]
    known = mentions[:, 0] * words + mentions[:, 1]
    spans = ranking.starts * words + ranking.ends
    indices = torch.searchsorted(known, spans).clamp(max=len(known) - 1)
    return torch.where(known[indices] == spans, mentions[indices, 2], 0)


def antecedent_losses(ranking: Ranking, chains: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """-log of the probability of all right antecedents of each span, (K,) in nats, and whether the best one is right.

    Right are the earlier spans of its chain, and none where there is none [Lee et al. 2017, sec. 6].

    Args:
        chains: int64 (K,), see :func:`gold_chains`.
    """
    numbers = torch.arange(len(chains), device=chains.device).unsqueeze(1)
    earlier = ranking.antecedents < numbers
    right = earlier & (chains[ranking.antecedents] == chains.unsqueeze(1)) & (chains > 0).unsqueeze(1)
    right = torch.cat([~right.any(1, keepdim=True), right], dim=1)
    of_right = ranking.scores.masked_fill(~right, -torch.inf)
    best = ranking.scores.argmax(1, keepdim=True)
    return ranking.scores.logsumexp(1) - of_right.logsumexp(1), right.gather(1, best).squeeze(1)
