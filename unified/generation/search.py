"""Greedy search, beam search and sampling over a cached decoder.

Letters: N sentences still being written, B beam, R = N x B rows (sentence-major), C candidates, V vocabulary, t tokens
written so far.

Beam search keeps fairseq's rules, so that both find the same hypotheses: of the 2 x beam best continuations those among
the first ``beam`` that end are finished hypotheses, the best ones that do not end go on, and a sentence is done when it
has ``beam`` finished hypotheses. A sentence that is done leaves the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unified.arguments import described, require_integer
from unified.errors import UnifiedError
from unified.generation.config import GenerationConfig
from unified.generation.contract import Decoder
from unified.generation.decoder import CachedDecoder
from unified.generation.ngrams import NgramBlocker
from unified.generation.penalties import PENALTIES
from unified.generation.sampling import draw, trim, uniforms
from unified.model.averaging import log_mean


@dataclass(frozen=True)
class Hypothesis:
    """One finished text.

    Attributes:
        tokens: int64 (m,) on the CPU, without the end symbol.
        log_probs: float32 (m + 1,) in nats, the end symbol's last; after temperature, before top-k and top-p.
        score: their sum divided by the length penalty of m + 1. Where ``max_length`` ends the continuation of a prompt,
            without the end symbol, which the model did not write and pre-training never taught it: of m.
    """

    tokens: torch.Tensor
    log_probs: torch.Tensor
    score: float


@torch.no_grad()
def generate(
    decoder: Decoder,
    source_tokens: torch.Tensor,
    config: GenerationConfig,
    prefix: torch.Tensor | None = None,
    indices: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Write a text for each source: ``nbest`` hypotheses, best first (fewer where no more exist).

    Args:
        source_tokens: int64 (N, S), see :meth:`CachedDecoder.encode`.
        prefix: int64 (N, P), right-padded: how the texts of each sentence must begin. Length limits and n-gram blocking
            do not apply to forced tokens; an end symbol in it ends the text.
        indices: identity of each sentence for the random draws of sampling; default 0, 1, ...

    Raises:
        UnifiedError: source and ``max_length`` together exceed the position table, the prefix cannot be written, there
            are not as many indices as sources, or the model's scores are not numbers.
    """
    if len(source_tokens) == 0:
        return []
    return _Search(decoder, source_tokens, config, prefix, indices).run()


class _Search:
    """State of one call: the rows that are being written, and the finished hypotheses."""

    def __init__(
        self,
        decoder: Decoder,
        source_tokens: torch.Tensor,
        config: GenerationConfig,
        prefix: torch.Tensor | None,
        indices: Sequence[int] | None,
    ):
        self.decoder, self.config = decoder, config
        count, self.device = len(source_tokens), source_tokens.device
        self.end = decoder.special.separator
        # No text holds these; fairseq bans the padding alone, and the others are never labels in training.
        special = decoder.special
        self.never = torch.tensor([special.begin, special.pad, special.mask], device=self.device)
        self.blocker = (
            NgramBlocker(config.no_repeat_ngram_size, [*config.no_repeat_ngram_ignore, self.end])
            if config.no_repeat_ngram_size
            else None
        )
        self.prefix = None if prefix is None else self._checked_prefix(prefix, count)
        self.uniforms = None
        if config.sampling:
            indices = range(count) if indices is None else indices
            if len(indices) != count:
                raise UnifiedError(f"indices must name each of {count} sources, got {len(indices)}")
            for index in indices:
                require_integer("an index of a source", index, 0)
            self.uniforms = uniforms(config.seed, indices, config.max_length + 1, config.width).to(self.device)
        source = decoder.encode(source_tokens)
        self.given = self._given(source_tokens, source.visible)
        decoder.check_positions(source.longest + config.max_length + 1)
        self.state = decoder.begin(source, config.width, config.max_length)
        self.sentences = list(range(count))
        self.finished: list[list[Hypothesis]] = [[] for _ in range(count)]
        self.tokens = torch.zeros(count * config.width, 0, dtype=torch.long, device=self.device)
        self.log_probs = torch.zeros(count * config.width, 0, device=self.device)
        # All rows of a sentence begin alike, so a search starts from one of them; samples are independent.
        self.totals = torch.zeros(count, config.width, device=self.device)
        if not config.sampling:
            self.totals[:, 1:] = -torch.inf

    def run(self) -> list[list[Hypothesis]]:
        last = None
        for step in range(self.config.max_length + 1):
            cut = step == self.config.max_length
            log_probs = self._allowed(self.decoder.step(last, self.state, self.config.temperature), step)
            log_probs = log_probs.unflatten(0, (-1, self.config.width))
            rows, tokens = self._sampled(log_probs, step) if self.config.sampling else self._best(log_probs, cut)
            self._advance(log_probs, rows, tokens, cut)
            if not self.sentences:
                break
            last = self.tokens[:, -1]
        if not all(self.finished):
            raise UnifiedError("the model's scores are not numbers; its parameters seem to be damaged")
        return [sorted(some, key=lambda h: -h.score)[: self.config.nbest] for some in self.finished]

    # What may come next

    def _allowed(self, logits: torch.Tensor, step: int) -> torch.Tensor:
        """Log-probabilities (R, V), -inf where a token may not follow."""
        allowed = torch.log_softmax(logits.float(), dim=-1)
        ending = allowed[:, self.end].clone()
        if step >= self.config.max_length:
            return _only(allowed, torch.full_like(ending, self.end, dtype=torch.long))
        forced = None
        if self.prefix is not None and step < self.prefix.size(1):
            given = self.prefix[:, step].repeat_interleave(self.config.width)
            forced = (given != self.decoder.special.pad).unsqueeze(1), _only(allowed, given)
        allowed.index_fill_(1, self.never, -torch.inf)
        if self.blocker is not None:
            given = self.given.repeat_interleave(self.config.width, dim=0)
            allowed = self.blocker(torch.cat([given, self.tokens], dim=1), allowed)
        if step < self.config.min_length:
            allowed[:, self.end] = -torch.inf
            if self.blocker is not None:
                # Where blocking leaves nothing else, ending early is the lesser evil.
                stuck = torch.isneginf(allowed.amax(-1))
                allowed[:, self.end] = torch.where(stuck, ending, -torch.inf)
        return allowed if forced is None else torch.where(*forced, allowed)

    # Candidates: rows int64 (N, C) within the sentence and their next tokens int64 (N, C), best first

    def _best(self, log_probs: torch.Tensor, cut: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """The 2 x beam best continuations of each sentence: enough even if every row would end."""
        if cut and self.decoder.scheme.prompt:  # the end that is left does not count
            log_probs = log_probs.where(log_probs.isneginf(), 0.0)
        wanted = 2 * self.config.width
        # No row has more of them: sums with all of its log-probabilities would be one more pass over the vocabulary.
        own, tokens = log_probs.topk(min(wanted, log_probs.size(-1)))
        joint = (self.totals.unsqueeze(-1) + own).flatten(1)
        best = joint.topk(min(wanted, joint.size(1))).indices
        return best // own.size(-1), tokens.flatten(1).gather(1, best)

    def _sampled(self, log_probs: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """One continuation of each row."""
        trimmed = trim(log_probs, self.config.top_k, self.config.top_p)
        assert self.uniforms is not None  # they are drawn where there is sampling
        tokens = draw(trimmed, self.uniforms[:, step])
        return torch.arange(self.config.width, device=self.device).expand_as(tokens), tokens

    # From candidates to rows

    def _advance(self, log_probs: torch.Tensor, rows: torch.Tensor, tokens: torch.Tensor, cut: bool) -> None:
        """Finish hypotheses that end, choose the rows that go on, let sentences leave that are done."""
        beam = self.config.width
        gained = log_probs.flatten(1).gather(1, rows * log_probs.size(-1) + tokens)
        totals = self.totals.gather(1, rows) + gained
        ends = tokens == self.end
        finishing = ends[:, :beam] & totals[:, :beam].isfinite()
        going = ends.long().argsort(stable=True)[:, :beam]  # those that do not end, in order
        totals = totals.masked_fill(ends, -torch.inf).gather(1, going)
        alive = totals.isfinite().any(1, keepdim=True)
        candidates = rows, gained
        rows, tokens, gained = rows.gather(1, going), tokens.gather(1, going), gained.gather(1, going)
        rows = rows + beam * torch.arange(len(rows), device=self.device).unsqueeze(1)
        # The only time in a step that the host waits for the device, with all that need not wait on its way.
        flags = torch.cat([finishing, alive], dim=1).tolist()
        self._finish(
            [(i, c) for i, own in enumerate(flags) for c, ends_here in enumerate(own[:-1]) if ends_here],
            *candidates,
            cut,
        )
        keep = [i for i, s in enumerate(self.sentences) if flags[i][-1] and len(self.finished[s]) < beam]
        if len(keep) < len(rows):
            index = torch.tensor(keep, dtype=torch.long, device=self.device)
            rows, tokens, gained, totals = rows[index], tokens[index], gained[index], totals[index]
            self._leave(index, keep)
        self.totals = totals
        # As many sentences as there were rows: single rows that all go on in place. Only then is nothing to gather.
        if len(rows) < len(self.tokens):
            self.state.reorder(rows.flatten())
        self.tokens = torch.cat([self.tokens[rows.flatten()], tokens.reshape(-1, 1)], dim=1)
        self.log_probs = torch.cat([self.log_probs[rows.flatten()], gained.reshape(-1, 1)], dim=1)

    def _leave(self, index: torch.Tensor, keep: list[int]) -> None:
        self.sentences = [self.sentences[i] for i in keep]
        self.given = self.given[index]
        self.state.source = self.state.source.select(index)
        self.prefix = None if self.prefix is None else self.prefix[index]
        self.uniforms = None if self.uniforms is None else self.uniforms[index]

    def _finish(self, finishing: list[tuple[int, int]], rows: torch.Tensor, gained: torch.Tensor, cut: bool) -> None:
        """Keep the hypotheses that end, no more than ``beam`` per sentence, best first.

        Args:
            finishing: sentence and candidate of each, in order.
            rows, gained: of the candidates (N, C).
            cut: whether they end because no more may be written.
        """
        if not finishing:
            return
        sentence, candidate = torch.tensor(finishing, device=self.device).unbind(1)
        row = sentence * self.config.width + rows[sentence, candidate]
        tokens = self.tokens[row].cpu()
        log_probs = torch.cat([self.log_probs[row], gained[sentence, candidate].unsqueeze(1)], dim=1).cpu()
        counted = log_probs[:, :-1] if cut and self.decoder.scheme.prompt else log_probs
        penalty = PENALTIES[self.config.length_penalty](counted.size(1), self.config.lenpen)
        scores = (counted.double().sum(1) / penalty).tolist()
        for i, (where, _) in enumerate(finishing):
            hypotheses = self.finished[self.sentences[where]]
            if len(hypotheses) < self.config.width:
                hypotheses.append(Hypothesis(tokens[i], log_probs[i], scores[i]))

    def _given(self, source_tokens: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        """The prompts to continue, int64 (N, P), padded on the left; nothing where sources are not continued."""
        if not self.decoder.scheme.prompt:
            return source_tokens[:, :0]
        real = visible[:, visible.size(1) - source_tokens.size(1) :]  # without the begin symbol
        order = real.long().argsort(stable=True)
        return source_tokens.masked_fill(~real, self.decoder.special.pad).gather(1, order)

    def _checked_prefix(self, prefix: torch.Tensor, count: int) -> torch.Tensor:
        if not isinstance(prefix, torch.Tensor) or prefix.dtype not in (torch.int32, torch.int64):
            raise UnifiedError(f"prefix must be a tensor of ids (int32 or int64), got {described(prefix)}")
        if prefix.dim() != 2 or len(prefix) != count:
            raise UnifiedError(f"prefix must be (N, P) for {count} sources, got shape {tuple(prefix.shape)}")
        if prefix.size(1) > self.config.max_length:
            raise UnifiedError(f"prefix of {prefix.size(1)} tokens exceeds max_length {self.config.max_length}")
        size = self.decoder.vocabulary_size
        if prefix.numel() and not 0 <= int(prefix.min()) <= int(prefix.max()) < size:
            raise UnifiedError(
                f"prefix must hold ids from 0 to {size - 1}, got {int(prefix.min())} .. {int(prefix.max())}"
            )
        prefix = prefix.to(self.device)
        free = prefix == self.decoder.special.pad
        if bool((free[:, :-1] & ~free[:, 1:]).any()):
            raise UnifiedError("prefix must be padded on the right")
        unwritable = prefix[self.decoder.left_out[prefix]]
        if unwritable.numel():
            raise UnifiedError(f"prefix holds id {int(unwritable[0])}, a symbol that the model has not learnt to write")
        return prefix


def _only(log_probs: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """(R, V) with -inf everywhere but at ``tokens`` (R,)."""
    columns = tokens.unsqueeze(1)
    return torch.full_like(log_probs, -torch.inf).scatter(1, columns, log_probs.gather(1, columns))


#: States whose vocabulary scores are computed at once; their logits alone take V x 4 bytes each.
_STATES = 1024


@torch.no_grad()
def score(decoder: Decoder, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Log-probability in nats of every token of given targets, float32 (N, m), 0 at padding.

    Forced decoding: each token is predicted from the source and the tokens before it, as in generation. Of several
    models the logarithm of their mean probability.

    Args:
        sources: int64 (N, S), see :meth:`CachedDecoder.encode`.
        targets: int64 (N, m), right-padded; ends with the separator where ending is to be scored too.

    Raises:
        UnifiedError: source and target together exceed the position table, or padding stands before a target.
    """
    real = targets != decoder.special.pad
    if bool((real[:, 1:] & ~real[:, :-1]).any()):
        raise UnifiedError("targets must be padded on the right")
    scores = [_score(member, sources, targets, real) for member in decoder.members]
    return scores[0] if len(scores) == 1 else log_mean(scores).masked_fill(~real, 0.0)


def _score(decoder: CachedDecoder, sources: torch.Tensor, targets: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    states = decoder.forced_states(decoder.encode(sources), targets).flatten(0, 1)
    labels = targets.flatten()
    scores = torch.zeros(len(labels), device=targets.device)
    for indices in real.flatten().nonzero().squeeze(1).split(_STATES):
        log_probs = torch.log_softmax(decoder.model.logits(states[indices]).float(), dim=-1)
        scores[indices] = log_probs.gather(1, labels[indices].unsqueeze(1)).squeeze(1)
    return scores.unflatten(0, targets.shape)
