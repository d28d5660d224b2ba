"""From raw text to token files: readers, cleaning, annotation, tokenizers of new folders, prepared folders."""
