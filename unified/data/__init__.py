"""Data that objectives read and make: texts, examples, batches, targets; vocabularies, token files, random numbers."""
