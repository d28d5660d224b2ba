"""Files of results and of measurements, and their tables and charts."""
