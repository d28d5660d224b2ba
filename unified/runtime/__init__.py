"""What a command runs on: devices, worker processes, child processes, and lines of progress."""
