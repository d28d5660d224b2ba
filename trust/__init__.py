"""Campaigns that attack the library: each asks many times for one promise, and fails where it is broken once."""
