"""What a trainer asks for: rows of examples by number, and the symbols that are targets."""
