"""Output of `unified objectives` and `unified masks`; imported when they run, so that help is quick."""
