"""Scores of generated text and of predictions, each computed as its published program does."""

from unified.metrics.classification import score_classification, score_regression
from unified.metrics.coqa import score_coqa, score_coqa_domains
from unified.metrics.coreference import score_coreference
from unified.metrics.edit_distance import character_similarity, edit_distance
from unified.metrics.entropy import Entropy, folder_unigram_entropy, unigram_entropy
from unified.metrics.generation import GenerationScores, score_generation
from unified.metrics.meteor import score_meteor
from unified.metrics.question_generation import QuestionScores, score_question_generation
from unified.metrics.relations import score_relations, score_semeval2010_task8
from unified.metrics.squad import score_squad_v1, score_squad_v2
from unified.metrics.tagging import score_tagging, score_tagging_by_type

__all__ = [
    "Entropy",
    "GenerationScores",
    "QuestionScores",
    "character_similarity",
    "edit_distance",
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
