"""What `unified objectives` prints; it is imported when the command runs, so that its help waits for nothing."""
