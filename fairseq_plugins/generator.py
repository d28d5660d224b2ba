"""fairseq's sequence generator with a working n-gram blocker, UniLM's length penalty and our limits."""

from __future__ import annotations

import torch
from fairseq.sequence_generator import SequenceGenerator

from unified.generation.ensemble import EnsembleDecoder
from unified.generation.ngrams import NgramBlocker
from unified.generation.penalties import unilm_penalty
from unified.generation.search import score


class UnifiedSequenceGenerator(SequenceGenerator):
    """Decoding is fairseq's; what it leaves to extensions is done here.

    Args:
        ngram_ignore: ids that n-gram blocking never touches (UniLM ignores the full stop).
        unilm_lenpen: rank finished hypotheses by UniLM's ``score / ((5 + length) / 6) ** lenpen``.
        max_target: most tokens to write, whatever fairseq's own limits allow; 0 sets no limit.
    """

    def __init__(self, models, dictionary, *, ngram_ignore=frozenset(), unilm_lenpen=False, max_target=0, **options):
        no_repeat_ngram_size = options.pop("no_repeat_ngram_size", 0)
        super().__init__(models, dictionary, **options)
        self.position_limit = self.max_len
        self.unilm_lenpen = unilm_lenpen
        self.max_target = max_target
        if no_repeat_ngram_size:
            blocker = NgramBlocker(no_repeat_ngram_size, ngram_ignore)
            # The buffer starts with fairseq's start symbol and ends with places not yet written.
            self.repeat_ngram_blocker = lambda tokens, scores, _, __, step: blocker(tokens[:, 1 : step + 1], scores)

    def _generate(self, sample, *arguments, **keywords):
        # Source and target share the position table: [CLS] source target.
        self.max_len = self.position_limit - sample["net_input"]["src_tokens"].size(1) - 1
        if self.max_target:
            self.max_len = min(self.max_len, self.max_target + 1)  # fairseq counts the end symbol
        finalized = super()._generate(sample, *arguments, **keywords)
        return [self._rescored(hypotheses) for hypotheses in finalized] if self.unilm_lenpen else finalized

    def _rescored(self, hypotheses: list[dict]) -> list[dict]:
        for hypothesis in hypotheses:
            total = hypothesis["positional_scores"].sum()
            hypothesis["score"] = total / unilm_penalty(len(hypothesis["tokens"]), self.len_penalty)
        return sorted(hypotheses, key=lambda hypothesis: -float(hypothesis["score"]))


class ForcedScorer:
    """``--score-reference``: log-probabilities of given targets, by forced decoding with the cache.

    A cloze model cannot score all places in one pass: its [MASK]s must not see each other.

    Attributes:
        eos: id of the symbol that fairseq-generate strips from what it prints.
    """

    def __init__(self, models):
        self.decoder = EnsembleDecoder([model.decoder.cached[0] for model in models])
        self.eos = self.decoder.special.separator

    @torch.no_grad()
    def generate(self, models, sample, **unused):
        sources, targets = sample["net_input"]["src_tokens"], sample["target"]
        written = targets != self.decoder.special.pad
        rows = zip(score(self.decoder, sources, targets), targets, written, strict=True)
        return [[_hypothesis(scores[kept], tokens[kept])] for scores, tokens, kept in rows]


def _hypothesis(scores: torch.Tensor, tokens: torch.Tensor) -> dict:
    return {
        "tokens": tokens,
        "score": scores.mean(),
        "positional_scores": scores,
        "attention": None,
        "alignment": torch.empty(0),
    }
