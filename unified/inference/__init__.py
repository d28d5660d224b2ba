"""Trained models for Python users: fill, generate, score and embed, in one process or in several."""
