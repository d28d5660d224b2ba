"""What training, writing and masks give today, number by number: a refactoring must change none of it.

:mod:`tests.golden.record` makes all figures and compares them with those in the repository.
"""
