"""Bounds the memory that oneDNN keeps for shapes of products."""

from __future__ import annotations

import os

#: Variables that oneDNN, and the part of torch that calls it, read when they make their first product.
_CAPACITIES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
#: A training step on rows of one length has about 24 shapes of products, counted on six layers.
_REMEMBERED = 64


def remember_few_products() -> None:
    """Lets oneDNN keep the 64 shapes of products that came last, unless the environment has another number.

    oneDNN makes a program for every shape and keeps 1,024 of them, each with the memory that it computes in. Where the
    number of tokens or of predictions changes from batch to batch, that grows to gigabytes: a fine-tuning on batches of
    7,000 tokens had 10 GB after 120 updates, and has 3 GB. Steps take no longer. A process in which oneDNN has already
    made a product keeps its number.
    """
    for name in _CAPACITIES:
        os.environ.setdefault(name, str(_REMEMBERED))
