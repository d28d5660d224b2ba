"""fairseq's sequence generator with a working n-gram blocker, UniLM's length penalty and our limits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator

from fairseq_plugins.dataset import Sample
from unified.errors import UnifiedError
from unified.generation.ensemble import EnsembleDecoder
from unified.generation.ngrams import NgramBlocker
from unified.generation.penalties import unilm_penalty
from unified.generation.search import score

#: A hypothesis as fairseq has it: tensors by name.
_Hypothesis = dict[str, Any]


class UnifiedSequenceGenerator(SequenceGenerator):
    """fairseq's generator, with the features that fairseq leaves to compiled extensions.

    Args:
        ngram_ignore: ids that n-gram blocking never touches (UniLM ignores the full stop).
        unilm_lenpen: rank finished hypotheses by UniLM's ``score / ((5 + length) / 6) ** lenpen``.
        max_target: most tokens to write, whatever fairseq's own limits allow; 0 sets no limit.

    Raises:
        UnifiedError: there are ids to leave alone, and nothing is blocked.
    """

    def __init__(
        self,
        models: Sequence[BaseFairseqModel],
        dictionary: Dictionary,
        *,
        ngram_ignore: Collection[int] = frozenset(),
        unilm_lenpen: bool = False,
        max_target: int = 0,
        **options: Any,
    ):
        no_repeat_ngram_size = options.pop("no_repeat_ngram_size", 0)
        if ngram_ignore and not no_repeat_ngram_size:
            raise UnifiedError(
                "--no-repeat-ngram-ignore names what --no-repeat-ngram-size never blocks; it needs a size of at least 1"
            )
        super().__init__(models, dictionary, **options)
        self.max_len: int  # set by fairseq's class
        self.position_limit = self.max_len
        self.unilm_lenpen = unilm_lenpen
        self.max_target = max_target
        if no_repeat_ngram_size:
            blocker = NgramBlocker(no_repeat_ngram_size, ngram_ignore)
            # The buffer starts with fairseq's start symbol and ends with tokens not yet written.
            self.repeat_ngram_blocker = lambda tokens, scores, _, __, step: blocker(tokens[:, 1 : step + 1], scores)

    def _generate(self, sample: Sample, *arguments: Any, **keywords: Any) -> list[list[_Hypothesis]]:
        # Source and target share the position table: [CLS] source target.
        self.max_len = self.position_limit - sample["net_input"]["src_tokens"].size(1) - 1
        if self.max_target:
            self.max_len = min(self.max_len, self.max_target + 1)  # fairseq counts the end symbol
        finalized = super()._generate(sample, *arguments, **keywords)
        return [self._rescored(hypotheses) for hypotheses in finalized] if self.unilm_lenpen else finalized

    def _rescored(self, hypotheses: list[_Hypothesis]) -> list[_Hypothesis]:
        for hypothesis in hypotheses:
            total = hypothesis["positional_scores"].sum()
            hypothesis["score"] = total / unilm_penalty(len(hypothesis["tokens"]), self.len_penalty)
        return sorted(hypotheses, key=lambda hypothesis: -float(hypothesis["score"]))


class ForcedScorer:
    """``--score-reference``: log-probabilities of given targets, by forced decoding with the cache.

    A cloze model cannot score all tokens in one pass: its [MASK]s must not see each other.

    Attributes:
        eos: id of the symbol that fairseq-generate strips from what it prints.
    """

    def __init__(self, models: Sequence[BaseFairseqModel]):
        self.decoder = EnsembleDecoder([model.decoder.cached[0] for model in models])
        self.eos = self.decoder.special.separator

    def generate(self, models: object, sample: Sample, **unused: object) -> list[list[_Hypothesis]]:
        """Scores of the given targets instead of a search, one hypothesis for each sentence."""
        sources, targets = sample["net_input"]["src_tokens"], sample["target"]
        written = targets != self.decoder.special.pad
        rows = zip(score(self.decoder, sources, targets), targets, written, strict=True)
        return [[_scored(scores[kept], tokens[kept])] for scores, tokens, kept in rows]


def _scored(scores: torch.Tensor, tokens: torch.Tensor) -> _Hypothesis:
    return {
        "tokens": tokens,
        "score": scores.mean(),
        "positional_scores": scores,
        "attention": None,
        "alignment": torch.empty(0),
    }
