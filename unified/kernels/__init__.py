"""Faster code for one kind of processor. Models are plain PyTorch without it, and tests compare the two."""
