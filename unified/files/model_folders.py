"""Names of the files by which a folder with a model is told from others."""

#: Checkpoints in the folder of a run, the one that is taken first.
CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt")
#: Settings of a model of ``transformers``.
CONFIG = "config.json"
#: The library's dictionary beside such settings, so that ids are the same again when the folder is read.
DICTIONARY = "unified_dict.txt"
