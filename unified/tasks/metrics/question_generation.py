"""Scores of generated questions as published for SQuAD question generation (Du et al. 2017; UniLM).

These figures come from a program of their own (``qgevalcap`` of the nqg release), and differ from sacrebleu's
and rouge-score's in tokenization, smoothing and the treatment of several references. This module computes its
BLEU-1 to 4 and ROUGE-L, and asks METEOR's own program (:mod:`unified.tasks.metrics.meteor`) where that is wanted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unified import __version__
from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import summed
from unified.tasks.metrics.copying import CopyingCounts
from unified.tasks.metrics.generation import number_of_references
from unified.tasks.metrics.meteor import score_meteor
from unified.tasks.metrics.summaries import QUESTIONS

_TINY, _SMALL = 1e-15, 1e-9  # added to matches and to totals, so that nothing divides by zero
_BETA = 1.2  # weight of recall in ROUGE-L
_ORDERS = range(1, 5)


@dataclass(frozen=True)
class QuestionScores:
    """Percentages, 0 to 100. ``questions`` counts lines, ``sources`` the source sentences, each scored once.

    ``repeated_bigrams`` and ``source_words`` are described at
    :meth:`unified.tasks.metrics.copying.CopyingCounts.measures`. ``meteor`` is None where it was not asked for.
    ``signature`` says how the others were computed.
    """

    questions: int
    sources: int
    bleu1: float
    bleu2: float
    bleu3: float
    bleu4: float
    rougeL: float
    repeated_bigrams: float
    source_words: float
    meteor: float | None = None
    signature: str = ""

    def to_dict(self) -> dict[str, int | float | str]:
        """The scores that were computed."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def score_question_generation(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    sources: Sequence[str],
    meteor: bool = False,
    form: str = "none",
) -> QuestionScores:
    """Score questions, lower-cased and tokenized like the references (see :func:`penn_treebank`).

    Args:
        hypotheses, references, sources: see :func:`group_by_source`.
        meteor: METEOR too, for which its program must be installed (the extra ``meteor``).
        form: what the hypotheses were tokenized by before, for the signature; "none" where they are as given.

    Raises:
        UnifiedError: as :func:`group_by_source`; METEOR's program is missing or fails.
    """
    return QuestionScores(**GeneratedQuestions(hypotheses, references, sources, meteor, form).scores())


class GeneratedQuestions:
    """Questions that are scored as :func:`score_question_generation` says; an example is a source."""

    def __init__(
        self,
        hypotheses: Sequence[str],
        references: Sequence[str | Sequence[str]],
        sources: Sequence[str],
        meteor: bool = False,
        form: str = "none",
    ):
        grouped = group_by_source(hypotheses, references, sources)
        questions = [h.split() for h, _ in grouped.values()]
        answers = [[r.split() for r in group] for _, group in grouped.values()]
        self.size = len(grouped)
        self._references = [(source, tuple(group)) for source, (_, group) in grouped.items()]
        self._questions = len(hypotheses)
        self._signature = _signature(answers, form, meteor)
        #: BLEU's counts of each source (:func:`_bleu_counts`), and its ROUGE-L from 0 to 1: (N, 11).
        self._values = np.array(
            [
                [*_bleu_counts(question, group), _rouge_l(question, group)]
                for question, group in zip(questions, answers, strict=True)
            ],
            dtype=np.float64,
        )
        self._copying = CopyingCounts([question for question, _ in grouped.values()], list(grouped))
        self._meteor = score_meteor(*zip(*grouped.values(), strict=True)) if meteor else None

    def references(self) -> list[tuple[str, tuple[str, ...]]]:
        """The sources with their questions."""
        return self._references

    def scores(self) -> dict[str, Any]:
        """The measures, METEOR, the counts and the signature."""
        meteor = {} if self._meteor is None else {"meteor": self._meteor}
        counts = {"questions": self._questions, "sources": self.size}
        return {**counts, **self.measures(), **meteor, "signature": self._signature}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """The measures of a sample of sources (:class:`unified.tasks.metrics.bootstrap.Examples`).

        METEOR is not among them: its program scores all texts at once.
        """
        *bleu, rouge = summed(self._values, counts).tolist()
        found = {f"bleu{n}": 100 * value for n, value in zip(_ORDERS, _bleu(bleu), strict=True)}
        drawn = self.size if counts is None else counts.sum()
        return found | {"rougeL": 100 * rouge / drawn} | self._copying.measures(counts)


def _signature(references: list[list[list[str]]], form: str, meteor: bool) -> str:
    """Signature in sacrebleu's format; ``tok`` names the form of the hypotheses, whose words spaces separate."""
    parts = [
        f"nrefs:{number_of_references(references)}",
        f"tok:{form}+spaces",
        "groups:source,last-hypothesis",
        "bleu:qgevalcap,smooth-1e-15,closest-length",
        f"rougeL:qgevalcap,beta-{_BETA}",
        *(["meteor:1.5,en,norm"] if meteor else []),
        f"version:{__version__}",
    ]
    return "|".join(parts)


def group_by_source(
    hypotheses: Sequence[str], references: Sequence[str | Sequence[str]], sources: Sequence[str]
) -> dict[str, tuple[str, list[str]]]:
    """Source sentence, stripped and lower-cased -> the **last** hypothesis for it, and all references for it.

    A sentence that several questions were asked about is scored once. That the last hypothesis wins is a habit
    of the published program, kept because the published figures contain it.

    Args:
        references: of each hypothesis, one string or several.

    Raises:
        UnifiedError: nothing to score, the three lists are not equally long, or a hypothesis has no reference.
    """
    counts = {"hypotheses": len(hypotheses), "references": len(references), "sources": len(sources)}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{n} {name}" for name, n in counts.items())
        raise UnifiedError(f"{listed}; they must pair one to one")
    if not hypotheses:
        raise UnifiedError("nothing to score: no hypotheses")
    grouped: dict[str, tuple[str, list[str]]] = {}
    for i, (hypothesis, group, source) in enumerate(zip(hypotheses, references, sources, strict=True)):
        own = [group] if isinstance(group, str) else group
        if not own:
            raise UnifiedError(f"references[{i}]: empty; every hypothesis needs at least one reference")
        key = source.strip().lower()
        earlier = grouped[key][1] if key in grouped else []
        grouped[key] = (hypothesis, [*earlier, *own])
    return grouped


def penn_treebank(text: str) -> str:
    """Tokenize and lower-case text as Du's reference files are: ``"Who's (he)?"`` -> ``who 's -lrb- he -rrb- ?``."""
    # Imported here: every command knows the task, and few need the tokenizer.
    from nltk.tokenize import TreebankWordTokenizer

    return " ".join(TreebankWordTokenizer().tokenize(text, convert_parentheses=True)).lower()


def from_bert_words(text: str) -> str:
    """Words of BERT's tokenizer in the Penn Treebank's form, by the rules of UniLM's program.

    ``Who ' s ( he ) ?`` becomes ``who 's -lrb- he -rrb- ?``. One slip of that program is mended: it leaves a full stop
    behind initials, ``u.s. .``.
    """
    return QUESTIONS.in_form(text).lower()


def _bleu_counts(hypothesis: list[str], references: list[list[str]]) -> list[int]:
    """Words, words of the closest reference, then matching n-grams and n-grams for each of :data:`_ORDERS`."""
    counts = [len(hypothesis), _closest([len(reference) for reference in references], len(hypothesis))]
    for n in _ORDERS:
        found = _ngrams(hypothesis, n)
        most: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            most |= _ngrams(reference, n)
        counts += [(found & most).total(), found.total()]
    return counts


def _bleu(counts: Sequence[float]) -> list[float]:
    """BLEU-1 to 4, from 0 to 1, of sums of :func:`_bleu_counts`."""
    hypothesis_length, reference_length, *ngrams = counts
    ratio = (hypothesis_length + _TINY) / (reference_length + _SMALL)
    brevity = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    matches, totals = ngrams[::2], ngrams[1::2]
    logs = [math.log((m + _TINY) / (t + _SMALL)) for m, t in zip(matches, totals, strict=True)]
    return [brevity * math.exp(sum(logs[:n]) / n) for n in _ORDERS]


def _closest(lengths: list[int], length: int) -> int:
    """The nearest of ``lengths``, the shorter of two."""
    return min(lengths, key=lambda candidate: (abs(candidate - length), candidate))


def _ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _rouge_l(hypothesis: list[str], references: list[list[str]]) -> float:
    # Precision and recall are maximised separately, possibly over different references.
    common = [_common_subsequence(hypothesis, reference) for reference in references]
    precision = max(common) / max(len(hypothesis), 1)
    recall = max(length / max(len(reference), 1) for length, reference in zip(common, references, strict=True))
    if not precision or not recall:
        return 0.0
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


def _common_subsequence(a: list[str], b: list[str]) -> int:
    """Length of the longest common subsequence of words."""
    index = {word: i for i, word in enumerate(dict.fromkeys(b))}
    columns = np.array([index[word] for word in b], dtype=np.int64)
    row = np.zeros(len(b) + 1, dtype=np.int64)
    for word in a:
        best = row.copy()
        np.maximum(row[1:], row[:-1] + (columns == index.get(word, -1)), out=best[1:])
        row = np.maximum.accumulate(best)
    return int(row[-1])
