"""fairseq's dictionary of a vocabulary."""

from fairseq.data import Dictionary

from unified.data.vocabulary import APPENDED, Vocabulary


def fairseq_dictionary(vocabulary: Vocabulary) -> Dictionary:
    """Copies a vocabulary into fairseq's class, with the same ids."""
    dictionary = Dictionary()
    for symbol, count in zip(vocabulary.symbols[4:], vocabulary.counts[4:], strict=True):
        dictionary.add_symbol(symbol, n=count)
    assert len(dictionary) == len(vocabulary) and all(s in dictionary.indices for s in APPENDED)
    return dictionary
