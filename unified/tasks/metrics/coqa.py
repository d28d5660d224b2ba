"""F1 and exact match of free-form answers in conversations by the rules of CoQA's official program (Reddy et al. 2019).

A turn with several human answers is scored against all of them but one, each left out in turn, and the mean counts:
so a model is measured as the humans are, whose own answer is not among those they are compared with.
"""

from __future__ import annotations

from collections.abc import Sequence

from unified.errors import UnifiedError
from unified.tasks.metrics.squad import exact_match, word_f1

#: How these scores are computed, as results files say it.
COQA_SIGNATURE = "rules:coqa|refs:leave-one-out"
#: Source of a story to the name of its domain in the published tables.
IN_DOMAIN = {
    "mctest": "children_stories",
    "gutenberg": "literature",
    "race": "mid-high_school",
    "cnn": "news",
    "wikipedia": "wikipedia",
}
OUT_OF_DOMAIN = {"reddit": "reddit", "science": "science"}


def score_coqa(answers: Sequence[Sequence[str]], predictions: Sequence[str | None]) -> dict[str, float]:
    """``em`` and ``f1`` (percentages) and ``turns`` of ``predictions[i]`` against ``answers[i]``; None scores 0.

    Raises:
        UnifiedError: unequal numbers of both, or a turn without an answer.
    """
    if len(answers) != len(predictions):
        raise UnifiedError(f"{len(predictions)} predictions for {len(answers)} turns; they must pair one to one")
    exact = f1 = 0.0
    for i, (references, prediction) in enumerate(zip(answers, predictions, strict=True)):
        if not references:
            raise UnifiedError(f"answers[{i}]: empty; every turn needs at least one answer")
        if prediction is not None:
            exact += _leave_one_out([float(exact_match(prediction, answer)) for answer in references])
            f1 += _leave_one_out([word_f1(prediction, answer) for answer in references])
    turns = max(1, len(answers))
    return {"em": 100 * exact / turns, "f1": 100 * f1 / turns, "turns": len(answers)}


def score_coqa_domains(
    answers: Sequence[Sequence[str]], predictions: Sequence[str | None], sources: Sequence[str]
) -> dict[str, dict[str, float]]:
    """:func:`score_coqa` of each domain, of those in and out of the training domains, and ``overall``.

    The names are those of the published program's JSON; its values are rounded to one decimal, these are not.

    Args:
        sources: ``sources[i]`` is the source of the story of turn i, a key of IN_DOMAIN or OUT_OF_DOMAIN.

    Raises:
        UnifiedError: as :func:`score_coqa`, or a source is unknown.
    """
    domains = IN_DOMAIN | OUT_OF_DOMAIN
    for source in sources:
        if source not in domains:
            raise UnifiedError(f"source {source!r}: expected one of {', '.join(domains)}")
    if len(sources) != len(answers):
        raise UnifiedError(f"{len(sources)} sources for {len(answers)} turns; they must pair one to one")
    domain_groups = {name: {source} for source, name in domains.items()}
    domain_groups |= {"in_domain": set(IN_DOMAIN), "out_domain": set(OUT_OF_DOMAIN), "overall": set(domains)}
    scores = {}
    for name, members in domain_groups.items():
        chosen = [i for i, source in enumerate(sources) if source in members]
        scores[name] = score_coqa([answers[i] for i in chosen], [predictions[i] for i in chosen])
    return scores


def _leave_one_out(scores: list[float]) -> float:
    """Mean over i of the best score but the i-th; of a single score, itself."""
    if len(scores) == 1:
        return scores[0]
    *_, second, best = sorted(scores)
    return ((len(scores) - 1) * best + second) / len(scores)
