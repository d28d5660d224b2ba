"""Models for fairseq, imported when its options are read."""
