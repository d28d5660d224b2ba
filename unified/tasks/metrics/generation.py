"""Scores of generated sentences against references: BLEU, ROUGE, exact sentences, character similarity.

sacrebleu and rouge-score are imported when they score: every command knows the tasks that they score, and few score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from unified.errors import UnifiedError
from unified.tasks.metrics.similarity import character_similarity


@dataclass(frozen=True)
class GenerationScores:
    """All scores are percentages, 0 to 100.

    Attributes:
        sentences: how many were scored.
        exact_match: share of sentences equal to one of their references, character by character.
        character_similarity: mean over sentences of ``1 - edit distance / length of the longer one``
            (:func:`unified.tasks.metrics.character_similarity`), the nearest reference counting.
        bleu: corpus BLEU-4 of sacrebleu.
        bleu_signature: how sacrebleu computed it (Post 2018).
        rouge1, rouge2, rougeL: mean F1 over sentences of rouge-score, the best reference counting for each.
        rouge_signature: how rouge-score computed them.
        without_words: references in which rouge-score's tokenizer finds no word. It lower-cases, keeps only
            ASCII letters and digits, and so gives 0 to other scripts and cannot tell capitals or punctuation apart.
    """

    sentences: int
    exact_match: float
    character_similarity: float
    bleu: float
    rouge1: float
    rouge2: float
    rougeL: float
    bleu_signature: str
    rouge_signature: str
    without_words: int

    def to_dict(self) -> dict[str, int | float | str]:
        """The scores by name."""
        return asdict(self)


def score_generation(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    use_stemmer: bool = True,
    bleu_tokenizer: str = "13a",
    sentence_separator: str | None = None,
) -> GenerationScores:
    """Score ``hypotheses[i]`` against ``references[i]``, one string or several.

    Args:
        use_stemmer: let rouge-score strip suffixes (Porter), the customary setting for summaries.
        bleu_tokenizer: sacrebleu's ``tokenize``: "13a", "intl", "char", "zh", "none", ...
        sentence_separator: string between the sentences of a summary; ROUGE-L is then the summary-level one
            (rouge-score's rougeLsum). Every other score sees a space in its place.

    Raises:
        UnifiedError: nothing to score, unequal numbers of hypotheses and references, or a hypothesis without any.
    """
    reference_groups = [[group] if isinstance(group, str) else list(group) for group in references]
    _check(hypotheses, reference_groups)
    plain, plain_references = hypotheses, reference_groups
    if sentence_separator is not None:
        plain = [_join(h, sentence_separator, " ") for h in hypotheses]
        plain_references = [[_join(r, sentence_separator, " ") for r in group] for group in reference_groups]
    bleu, bleu_signature = _bleu(plain, plain_references, bleu_tokenizer)
    rouge, rouge_signature, without_words = rouge_f1(hypotheses, reference_groups, use_stemmer, sentence_separator)
    pairs = list(zip(plain, plain_references, strict=True))
    return GenerationScores(
        sentences=len(pairs),
        exact_match=_percent([float(hypothesis in group) for hypothesis, group in pairs]),
        character_similarity=_percent([max(character_similarity(h, r) for r in group) for h, group in pairs]),
        bleu=bleu,
        rouge1=_percent(rouge[0]),
        rouge2=_percent(rouge[1]),
        rougeL=_percent(rouge[2]),
        bleu_signature=bleu_signature,
        rouge_signature=rouge_signature,
        without_words=without_words,
    )


def _check(hypotheses: Sequence[str], reference_groups: list[list[str]]) -> None:
    if isinstance(hypotheses, str):
        raise UnifiedError("hypotheses: expected a list of strings, got one string")
    if len(hypotheses) != len(reference_groups):
        raise UnifiedError(
            f"{len(hypotheses)} hypotheses but {len(reference_groups)} references; they must pair one to one"
        )
    if not hypotheses:
        raise UnifiedError("nothing to score: no hypotheses")
    for i, group in enumerate(reference_groups):
        if not group:
            raise UnifiedError(f"references[{i}]: empty; every hypothesis needs at least one reference")


def _bleu(hypotheses: Sequence[str], reference_groups: list[list[str]], tokenizer: str) -> tuple[float, str]:
    from sacrebleu.metrics.bleu import BLEU

    if tokenizer not in BLEU.TOKENIZERS:
        raise UnifiedError(f"BLEU tokenizer {tokenizer!r}: expected one of {', '.join(sorted(BLEU.TOKENIZERS))}")
    metric = BLEU(tokenize=tokenizer)
    most = max(map(len, reference_groups))
    # sacrebleu wants streams: the first references of all sentences, then the second ones, None where there is none.
    streams: list[Any] = [[group[k] if k < len(group) else None for group in reference_groups] for k in range(most)]
    score = metric.corpus_score(list(hypotheses), streams).score
    return score, str(metric.get_signature())


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
            f"nrefs:{_counts(reference_groups)}",
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


def _counts(reference_groups: Sequence[Sequence[str]]) -> str:
    sizes = {len(group) for group in reference_groups}
    return str(sizes.pop()) if len(sizes) == 1 else "var"


def _join(text: str, separator: str, by: str) -> str:
    return by.join(part.strip() for part in text.split(separator) if part.strip())


def _percent(values: list[float]) -> float:
    return 100.0 * sum(values) / len(values)
