"""Options and sources of annotation, shared by commands that annotate texts."""
