"""No n-gram twice, on any device; fairseq's own option does nothing without its compiled extension."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from unified.errors import UnifiedError


class NgramBlocker:
    """Bans the tokens that would repeat an n-gram the row has already written [Paulus et al. 2018, sec. 2.5].

    As in UniLM, tokens of ``ignore`` (the full stop, a sentence mark) are never banned, and nothing is banned where
    one of the last ``size - 1`` tokens is among them.

    Raises:
        UnifiedError: ``size`` is less than 1.
    """

    def __init__(self, size: int, ignore: Iterable[int] = ()):
        if size < 1:
            raise UnifiedError(f"size of the n-grams to block must be at least 1, got {size}")
        self.size = size
        self.ignore = torch.tensor(sorted(ignore), dtype=torch.long)

    def __call__(self, tokens: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
        """Log-probabilities with -inf at banned tokens.

        Args:
            tokens: int64 (R, t), the tokens that the rows have written, without a start symbol.
            log_probs: (R, V), which does not change.
        """
        if tokens.size(1) < self.size:
            return log_probs
        self.ignore = self.ignore.to(tokens.device)
        ngrams = tokens.unfold(1, self.size, 1)  # (R, t) -> (R, n, size), the n = t - size + 1 n-grams
        tail = tokens[:, tokens.size(1) - self.size + 1 :]  # (R, size - 1)
        followers = ngrams[..., -1]  # (R, n)
        banned = (ngrams[..., :-1] == tail.unsqueeze(1)).all(-1)  # (R, n, size - 1) -> (R, n)
        banned &= ~torch.isin(followers, self.ignore)
        banned &= ~torch.isin(tail, self.ignore).any(1, keepdim=True)
        # A follower that stays allowed is sent to a column of its own, so that no write undoes a ban.
        vocabulary = log_probs.size(1)
        columns = followers.masked_fill(~banned, vocabulary)
        hit = torch.zeros(len(tokens), vocabulary + 1, dtype=torch.bool, device=tokens.device)
        return log_probs.masked_fill(hit.scatter_(1, columns, True)[:, :vocabulary], -torch.inf)
