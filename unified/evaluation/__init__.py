"""Evaluates language models without fine-tuning: minimal pairs, perplexity, similarity of texts, other harnesses."""
