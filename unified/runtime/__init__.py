"""Devices, worker processes, child processes and lines of progress of commands."""
