"""Scores of generated text and of predictions, each computed as its published program does.

They are our own where the official program is a script to run: general libraries of metrics differ from these in how
they normalize texts and treat ties, and figures are comparable with published ones only if nothing differs.

The names are loaded when first used, so that to score answers does not wait for the libraries that score translations.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "Entropy",
    "GenerationScores",
    "QuestionScores",
    "best_threshold",
    "character_similarity",
    "folder_unigram_entropy",
    "score_classification",
    "score_coqa",
    "score_coqa_domains",
    "score_coreference",
    "score_generation",
    "score_meteor",
    "score_question_generation",
    "score_regression",
    "score_relations",
    "score_semeval2010_task8",
    "score_squad_v1",
    "score_squad_v2",
    "score_tagging",
    "score_tagging_by_type",
    "unigram_entropy",
]

if TYPE_CHECKING:
    from unified.tasks.metrics.classification import score_classification, score_regression
    from unified.tasks.metrics.coqa import score_coqa, score_coqa_domains
    from unified.tasks.metrics.coreference import score_coreference
    from unified.tasks.metrics.entropy import Entropy, folder_unigram_entropy, unigram_entropy
    from unified.tasks.metrics.generation import GenerationScores, score_generation
    from unified.tasks.metrics.meteor import score_meteor
    from unified.tasks.metrics.question_generation import QuestionScores, score_question_generation
    from unified.tasks.metrics.relations import score_relations, score_semeval2010_task8
    from unified.tasks.metrics.similarity import character_similarity
    from unified.tasks.metrics.squad import score_squad_v1, score_squad_v2
    from unified.tasks.metrics.tagging import score_tagging, score_tagging_by_type
    from unified.tasks.metrics.thresholds import best_threshold

#: The module of each name. No name is that of a module: importing the module would hide it.
_HOMES = {
    "Entropy": "entropy",
    "GenerationScores": "generation",
    "QuestionScores": "question_generation",
    "best_threshold": "thresholds",
    "character_similarity": "similarity",
    "folder_unigram_entropy": "entropy",
    "score_classification": "classification",
    "score_coqa": "coqa",
    "score_coqa_domains": "coqa",
    "score_coreference": "coreference",
    "score_generation": "generation",
    "score_meteor": "meteor",
    "score_question_generation": "question_generation",
    "score_regression": "classification",
    "score_relations": "relations",
    "score_semeval2010_task8": "relations",
    "score_squad_v1": "squad",
    "score_squad_v2": "squad",
    "score_tagging": "tagging",
    "score_tagging_by_type": "tagging",
    "unigram_entropy": "entropy",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
