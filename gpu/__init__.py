"""Checks and measurements for a graphics card; README.md beside this file says how to run them and read their lines."""
