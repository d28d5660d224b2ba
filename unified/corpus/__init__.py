"""Turns raw text into token files: readers, cleaning, annotation, tokenizers of new folders, prepared folders."""
