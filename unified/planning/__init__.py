"""Cuts texts from token files and puts them into rows: which texts an epoch has, and which rows hold them."""
