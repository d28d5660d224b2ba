"""Scores of generated text: thin wrappers of published implementations, with signatures that say how they were made."""

from unified.metrics.edit_distance import character_similarity, edit_distance
from unified.metrics.entropy import Entropy, folder_unigram_entropy, unigram_entropy
from unified.metrics.generation import GenerationScores, score_generation
from unified.metrics.question_generation import QuestionScores, score_question_generation

__all__ = [
    "Entropy",
    "GenerationScores",
    "QuestionScores",
    "character_similarity",
    "edit_distance",
    "folder_unigram_entropy",
    "score_generation",
    "score_question_generation",
    "unigram_entropy",
]
