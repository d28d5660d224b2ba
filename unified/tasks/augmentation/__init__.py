"""Questions that a model writes about unlabelled passages, and another learns to answer [UniLM, app. A]."""
