"""What `unified objectives` and `unified masks` print; imported when they run, so that help waits for nothing."""
