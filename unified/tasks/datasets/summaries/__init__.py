"""Data sets of summaries as pairs, and which sentences of a source an extractive summary should take."""
