"""Cleaning of documents before they are tokenized, as ANNA's authors did with theirs (Jun et al. 2022, appendix)."""

from unified.corpus.cleaning.report import Counts, Report
from unified.corpus.cleaning.rules import CleanedChunk, Cleaning, CleaningEncoder

__all__ = ["CleanedChunk", "Cleaning", "CleaningEncoder", "Counts", "Report"]
