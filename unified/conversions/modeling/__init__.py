"""The code that an export carries along: files that ``transformers`` runs where this library is not installed.

They are copied as text, and the library never imports them. They import torch, ``transformers`` and each other alone.
What a setting of :class:`unified.model.TransformerConfig` does to states is written here once more, plainly.
"""
