"""Published data sets: readers, settings and figures of the papers, and files for official programs."""
