"""Scores of generated sentences against references: BLEU, ROUGE, exact sentences, character similarity.

sacrebleu and rouge-score are imported when they score: every command knows the tasks that they score, and few score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from unified.arguments import counted
from unified.errors import UnifiedError, nearest, one_line
from unified.tasks.metrics.bootstrap import summed
from unified.tasks.metrics.copying import CopyingCounts
from unified.tasks.metrics.similarity import character_similarity
from unified.tokenization import single_spaced

#: Measures that are means over texts, in the order in which they are computed.
_MEANS = ("exact_match", "character_similarity", "rouge1", "rouge2", "rougeL")


@dataclass(frozen=True)
class GenerationScores:
    """All scores are percentages, 0 to 100.

    Attributes:
        sentences: how many were scored.
        exact_match: share of sentences equal to one of their references, character by character, but for white space:
            any run of it counts as one space here and in ``character_similarity``, and none at the ends.
        character_similarity: mean over sentences of ``1 - edit distance / length of the longer one``
            (:func:`unified.tasks.metrics.character_similarity`), the nearest reference counting.
        bleu: corpus BLEU-4 of sacrebleu.
        bleu_signature: how sacrebleu computed it (Post 2018).
        rouge1, rouge2, rougeL: mean F1 over sentences of rouge-score, the best reference counting for each.
        rouge_signature: how rouge-score computed them.
        without_words: references in which rouge-score's tokenizer finds no word. It lower-cases, keeps only
            ASCII letters and digits, and so gives 0 to other scripts and cannot tell capitals or punctuation apart.
        repeated_bigrams, source_words: see :meth:`unified.tasks.metrics.copying.CopyingCounts.measures`;
            ``source_words`` is None where no sources were given.
    """

    sentences: int
    exact_match: float
    character_similarity: float
    bleu: float
    rouge1: float
    rouge2: float
    rougeL: float
    repeated_bigrams: float
    bleu_signature: str
    rouge_signature: str
    without_words: int
    source_words: float | None = None

    def to_dict(self) -> dict[str, int | float | str]:
        """The scores that were computed, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def score_generation(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    use_stemmer: bool = True,
    bleu_tokenizer: str = "13a",
    sentence_separator: str | None = None,
    sources: Sequence[str] | None = None,
) -> GenerationScores:
    """Score ``hypotheses[i]`` against ``references[i]``, one string or several.

    Args:
        use_stemmer: let rouge-score strip suffixes (Porter), the customary setting for summaries.
        bleu_tokenizer: sacrebleu's ``tokenize``: "13a", "intl", "char", "zh", "none", ...
        sentence_separator: string between the sentences of a summary; ROUGE-L is then the summary-level one
            (rouge-score's rougeLsum). Every other score sees a space in its place.
        sources: what each text was generated from, for ``source_words``.

    Raises:
        UnifiedError: nothing to score, unequal numbers of hypotheses, references and sources, a hypothesis without a
            reference, or BLEU's tokenizer is unknown or cannot be had.
    """
    texts = GeneratedTexts(hypotheses, references, use_stemmer, bleu_tokenizer, sentence_separator, sources)
    return GenerationScores(**texts.scores())


class GeneratedTexts:
    """Texts that are scored as :func:`score_generation` says."""

    def __init__(
        self,
        hypotheses: Sequence[str],
        references: Sequence[str | Sequence[str]],
        use_stemmer: bool = True,
        bleu_tokenizer: str = "13a",
        sentence_separator: str | None = None,
        sources: Sequence[str] | None = None,
    ):
        reference_groups = [[group] if isinstance(group, str) else list(group) for group in references]
        _check(hypotheses, reference_groups)
        plain, plain_references = hypotheses, reference_groups
        if sentence_separator is not None:
            plain = [_join(h, sentence_separator, " ") for h in hypotheses]
            plain_references = [[_join(r, sentence_separator, " ") for r in group] for group in reference_groups]
        self._copying = CopyingCounts(plain, sources)
        self._bleu = _BleuCounts(plain, plain_references, bleu_tokenizer)
        rouge, self._rouge_signature, self._without_words = rouge_f1(
            hypotheses, reference_groups, use_stemmer, sentence_separator
        )
        # No model writes line breaks or several spaces: a tokenizer reads all white space as one space.
        pairs = [
            (single_spaced(text), [single_spaced(reference) for reference in group])
            for text, group in zip(plain, plain_references, strict=True)
        ]
        exact = [float(hypothesis in group) for hypothesis, group in pairs]
        similarity = [max(character_similarity(h, r) for r in group) for h, group in pairs]
        self.size = len(pairs)
        self._reference_groups = reference_groups
        #: The measures of :data:`_MEANS` for each text, from 0 to 1: (N, 5).
        self._values = np.array([exact, similarity, *rouge]).T.copy()

    def references(self) -> list[tuple[str, ...]]:
        """The references of each text."""
        return [tuple(group) for group in self._reference_groups]

    def scores(self) -> dict[str, Any]:
        """The measures, counts and signatures."""
        return GenerationScores(
            sentences=self.size,
            **self.measures(),
            bleu_signature=self._bleu.signature,
            rouge_signature=self._rouge_signature,
            without_words=self._without_words,
        ).to_dict()

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """All measures of a sample (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        drawn = self.size if counts is None else counts.sum()
        means = (100 * summed(self._values, counts) / drawn).tolist()
        found = {"bleu": self._bleu.score(counts), **dict(zip(_MEANS, means, strict=True))}
        return found | self._copying.measures(counts)


class _BleuCounts:
    """Counts that sacrebleu's corpus BLEU takes of each text."""

    def __init__(self, hypotheses: Sequence[str], reference_groups: list[list[str]], tokenizer: str):
        from sacrebleu.metrics.bleu import BLEU

        if tokenizer not in BLEU.TOKENIZERS:
            raise UnifiedError(
                f"BLEU tokenizer {tokenizer!r}{nearest(tokenizer, BLEU.TOKENIZERS)}: expected one of "
                f"{', '.join(sorted(BLEU.TOKENIZERS))}"
            )
        try:
            metric = BLEU(tokenize=tokenizer)
        except (ImportError, RuntimeError, OSError) as error:
            raise UnifiedError(f"BLEU tokenizer {tokenizer!r}: cannot be had ({one_line(str(error))})") from None
        most = max(map(len, reference_groups))
        # sacrebleu wants streams: the first references of all texts, then the second ones, None where there is none.
        streams: list[Any] = [[group[k] if k < len(group) else None for group in reference_groups] for k in range(most)]
        self._whole = metric.corpus_score(list(hypotheses), streams).score
        self.signature = str(metric.get_signature())
        self._smoothing = metric.smooth_method, metric.smooth_value
        self._hypotheses, self._reference_groups, self._tokenizer = hypotheses, reference_groups, tokenizer

    def score(self, counts: np.ndarray | None) -> float:
        """BLEU of a sample."""
        if counts is None:
            return self._whole
        from sacrebleu.metrics.bleu import BLEU

        sums = summed(self._of_texts, counts).astype(np.int64).tolist()
        correct, total, (length, reference_length) = sums[:4], sums[4:8], sums[8:]
        return BLEU.compute_bleu(correct, total, length, reference_length, *self._smoothing).score

    @cached_property
    def _of_texts(self) -> np.ndarray:
        """Matching n-grams and n-grams, 1 to 4 words long, words, and words of the nearest reference: (N, 10)."""
        from sacrebleu.metrics.bleu import BLEU

        # Its own score of a text is not used; with effective_order it does not warn of that.
        metric = BLEU(tokenize=self._tokenizer, effective_order=True)
        scores = [metric.sentence_score(h, g) for h, g in zip(self._hypotheses, self._reference_groups, strict=True)]
        return np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in scores], dtype=np.float64)


def _check(hypotheses: Sequence[str], reference_groups: list[list[str]]) -> None:
    if isinstance(hypotheses, str):
        raise UnifiedError("hypotheses: expected a list of strings, got one string")
    if len(hypotheses) != len(reference_groups):
        raise UnifiedError(
            f"{counted(len(hypotheses), 'hypothesis', 'hypotheses')} but "
            f"{counted(len(reference_groups), 'reference')}; they must pair one to one"
        )
    if not hypotheses:
        raise UnifiedError("nothing to score: no hypotheses")
    for i, group in enumerate(reference_groups):
        if not group:
            raise UnifiedError(f"references[{i}]: empty; every hypothesis needs at least one reference")


def rouge_f1(
    hypotheses: Sequence[str], reference_groups: Sequence[Sequence[str]], use_stemmer: bool, separator: str | None
) -> tuple[tuple[list[float], list[float], list[float]], str, int]:
    """ROUGE-1, ROUGE-2 and ROUGE-L of each sentence, 0 to 1; rouge-score's signature; references without a word.

    Args:
        hypotheses, use_stemmer, separator: as :func:`score_generation` takes them.
        reference_groups: the references of each hypothesis, one or more.
    """
    from rouge_score.rouge_scorer import RougeScorer

    longest = "rougeL" if separator is None else "rougeLsum"
    types = ("rouge1", "rouge2", longest)
    scorer = RougeScorer(types, use_stemmer=use_stemmer)
    values: tuple[list[float], list[float], list[float]] = ([], [], [])
    without_words = 0
    for hypothesis, group in zip(hypotheses, reference_groups, strict=True):
        if separator is not None:
            hypothesis = _join(hypothesis, separator, "\n")
            group = [_join(reference, separator, "\n") for reference in group]
        scores = scorer.score_multi(group, hypothesis)
        for column, measure in zip(values, types, strict=True):
            column.append(scores[measure].fmeasure)
        without_words += sum(not _has_word(reference) for reference in group)
    signature = "|".join(
        [
            f"nrefs:{number_of_references(reference_groups)}",
            "score:f1",
            f"stemmer:{'porter' if use_stemmer else 'no'}",
            "tok:default",
            f"long:{longest}",
            f"version:{version('rouge_score')}",
        ]
    )
    return values, signature, without_words


def _has_word(text: str) -> bool:
    return any(c.isascii() and c.isalnum() for c in text)


def number_of_references(reference_groups: Sequence[Sequence[object]]) -> str:
    """Number of references of each text, as signatures have it, or "var" where texts have different numbers of them."""
    sizes = {len(group) for group in reference_groups}
    return str(sizes.pop()) if len(sizes) == 1 else "var"


def _join(text: str, separator: str, by: str) -> str:
    return by.join(part.strip() for part in text.split(separator) if part.strip())
