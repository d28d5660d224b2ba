"""Questions that a model asks about unlabelled passages, from which another learns to answer [UniLM, app. A]."""
