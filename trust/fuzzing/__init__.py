"""Parts of the campaigns `fuzz` and `bombs`: readers of files with small valid samples, and what damages these."""
