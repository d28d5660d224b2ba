"""fairseq's sequence generator with a working n-gram blocker, UniLM's length penalty, our limits and our ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator

from fairseq_plugins.dataset import Sample
from fairseq_plugins.refusals import refusing
from unified.arguments import counted
from unified.errors import UnifiedError
from unified.generation.ensemble import EnsembleDecoder
from unified.generation.ngrams import NgramBlocker
from unified.generation.penalties import fairseq_penalty, unilm_penalty
from unified.generation.search import score

#: A hypothesis as fairseq has it: tensors by name.
_Hypothesis = dict[str, Any]


class UnifiedSequenceGenerator(SequenceGenerator):
    """fairseq's generator, with the features that fairseq leaves to compiled extensions.

    Args:
        ngram_ignore: ids that n-gram blocking never touches (UniLM ignores the full stop).
        unilm_lenpen: rank finished hypotheses by UniLM's ``score / ((5 + length) / 6) ** lenpen``.
        max_target: most tokens to write, whatever fairseq's own limits allow; 0 sets no limit. Source and target share
            the position table, which sets another one: to each source by its own length.

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
        self.prompt = any(model.decoder.cached[0].scheme.prompt for model in models)
        self._blocker = NgramBlocker(no_repeat_ngram_size, ngram_ignore) if no_repeat_ngram_size else None
        if self._blocker or self.prompt:
            self.repeat_ngram_blocker = self._allowed  # fairseq asks it for what may come next, in every step
        self._forced: torch.Tensor | None = None  # bool (R,), rows whose token of this step is given
        self._longest = 0  # tokens of the longest text of the sentences that are searched for, with its end

    @refusing()
    def _generate(
        self,
        sample: Sample,
        prefix_tokens: torch.Tensor | None = None,
        constraints: torch.Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[_Hypothesis]]:
        tokens = sample["net_input"]["src_tokens"]
        limits = self._limits(tokens)
        found: list[list[_Hypothesis]] = [[] for _ in limits]
        # fairseq has one limit for a batch, and no text's may depend on its neighbours.
        for self.max_len in sorted(set(limits)):
            own = [i for i, limit in enumerate(limits) if limit == self.max_len]
            rows = torch.tensor(own, device=tokens.device)
            given = [None if one is None else one[rows] for one in (prefix_tokens, constraints)]
            for i, hypotheses in zip(own, super()._generate(_selected(sample, rows), *given, bos_token), strict=True):
                found[i] = self._rescored(hypotheses)
        return found

    def _limits(self, tokens: torch.Tensor) -> list[int]:
        """Most tokens to write from each source, int64 (N, S), as fairseq counts them: with the end symbol.

        Raises:
            UnifiedError: there is one from which fewer than ``--min-len`` may be written.
        """
        # The end symbol is the only one that fairseq's own limit does not count.
        most = int(self.max_len_a * tokens.size(1) + self.max_len_b) + 1
        if self.max_target:
            most = min(most, self.max_target + 1)
        # Source and target share the position table: [CLS] source target.
        lengths = (tokens != self.pad).sum(1).tolist()
        limits = [min(most, self.position_limit - length - 1) for length in lengths]
        if most <= self.min_len:
            allowed = counted(most - 1, "token")
            raise UnifiedError(f"--min-len {self.min_len} is more than --max-len-a and --max-len-b allow, {allowed}")
        if min(limits) <= self.min_len:
            longest = counted(max(lengths) - 1, "token")  # without the separator
            raise UnifiedError(
                f"a text of {longest} leaves {max(min(limits) - 1, 0)} of the model's {self.position_limit} positions "
                f"to what is written, fewer than --min-len {self.min_len}; cut it with --max-source"
            )
        return limits

    def _prefix_tokens(
        self,
        step: int,
        lprobs: torch.Tensor,
        scores: torch.Tensor,
        tokens: torch.Tensor,
        prefix_tokens: torch.Tensor,
        beam_size: int,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        self._forced = (prefix_tokens[:, step] != self.pad).repeat_interleave(beam_size)
        return super()._prefix_tokens(step, lprobs, scores, tokens, prefix_tokens, beam_size)

    def _allowed(
        self, tokens: torch.Tensor, scores: torch.Tensor, sentences: int, beam_size: int, step: int
    ) -> torch.Tensor:
        """Scores (R, V) without repeated n-grams, but where a token is given: it comes whatever it repeats.

        Behind a prompt the end of a text that may become no longer scores 0, so that it does not count.
        """
        # The buffer starts with fairseq's start symbol, and ends with tokens not yet written and one more.
        self._longest = tokens.size(1) - 1
        if self.prompt and step + 1 == self._longest:
            return scores.where(scores.isneginf(), 0.0)
        if self._blocker is None:
            return scores
        blocked = self._blocker(tokens[:, 1 : step + 1], scores)
        forced, self._forced = self._forced, None  # fairseq asks for given tokens just before
        return blocked if forced is None else torch.where(forced.unsqueeze(1), scores, blocked)

    def _rescored(self, hypotheses: list[_Hypothesis]) -> list[_Hypothesis]:
        """Hypotheses ranked by UniLM's penalty, and those behind a prompt without an end that does not count."""
        if not self.unilm_lenpen and not self.prompt:
            return hypotheses
        penalty = unilm_penalty if self.unilm_lenpen else fairseq_penalty
        exponent = self.len_penalty if self.unilm_lenpen or self.normalize_scores else 0.0
        for hypothesis in hypotheses:
            length = len(hypothesis["tokens"])
            scored = length - 1 if self.prompt and length == self._longest else length
            hypothesis["score"] = hypothesis["positional_scores"].sum() / penalty(scored, exponent)
        return sorted(hypotheses, key=lambda hypothesis: -float(hypothesis["score"]))


class ForcedScorer:
    """``--score-reference``: log-probabilities of given targets, by forced decoding with the cache.

    A cloze model cannot score all tokens in one pass: its [MASK]s must not see each other. Behind a prompt the end does
    not count, as in :meth:`unified.inference.language_model.UnifiedLM.score`: running text never has one.

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
        counted = written & (targets != self.eos) if self.decoder.scheme.prompt else written
        scores = score(self.decoder, sources, targets).masked_fill(~counted, 0.0)
        means = scores.sum(1) / counted.sum(1).clamp(min=1)
        rows = zip(means, scores, targets, written, strict=True)
        return [[_scored(mean, some[kept], tokens[kept])] for mean, some, tokens, kept in rows]


def _selected(sample: Sample, rows: torch.Tensor) -> Sample:
    """Selects sentences of a batch, int64 (n,), with all that fairseq's search reads of them."""
    chosen: Sample = {"net_input": {name: values[rows] for name, values in sample["net_input"].items()}}
    return {**chosen, "id": sample["id"][rows]} if "id" in sample else chosen


def _scored(mean: torch.Tensor, scores: torch.Tensor, tokens: torch.Tensor) -> _Hypothesis:
    return {
        "tokens": tokens,
        "score": mean,
        "positional_scores": scores,
        "attention": None,
        "alignment": torch.empty(0),
    }
