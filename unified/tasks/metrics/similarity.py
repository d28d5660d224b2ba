"""Similarity of two strings."""

from __future__ import annotations

from rapidfuzz.distance import Levenshtein


def character_similarity(a: str, b: str) -> float:
    """One less the edit distance over the length of the longer string: 0 where nothing is shared, 1 for equal strings.

    The distance is the fewest insertions, deletions and substitutions of one character, a code point.
    """
    longest = max(len(a), len(b))
    return 1.0 if longest == 0 else 1.0 - Levenshtein.distance(a, b) / longest
