"""Data for a trainer: rows of examples by number, and the symbols that are targets."""
