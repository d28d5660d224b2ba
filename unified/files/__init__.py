"""Lines of text, JSON with named errors, ids, folders that appear complete, and who owns unfinished ones."""
