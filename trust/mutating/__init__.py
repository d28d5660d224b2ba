"""Mutation testing: small mistakes are put into a copy of the code, and the tests have to notice each of them."""
