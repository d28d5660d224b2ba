"""fairseq's dictionary of a vocabulary has its ids, symbols and counts."""

from fairseq_plugins.dictionary import fairseq_dictionary
from unified.data.vocabulary import Vocabulary


def test_a_dictionary_has_the_ids_and_the_counts_of_its_vocabulary(tmp_path):
    (tmp_path / "dict.txt").write_text("the 12\nfox 7\nred 0\n")
    vocabulary = Vocabulary.load(tmp_path / "dict.txt")
    found = fairseq_dictionary(vocabulary)
    assert found.symbols == vocabulary.symbols and len(found) == len(vocabulary)
    assert {symbol: found.index(symbol) for symbol in found.symbols} == {
        symbol: number for number, symbol in enumerate(vocabulary.symbols)
    }
    assert found.count[4:] == vocabulary.counts[4:] and found.count[4:7] == [12, 7, 0]
    special = vocabulary.special
    assert (found.bos(), found.pad(), found.eos(), found.unk()) == (
        special.begin, special.pad, special.separator, special.unknown,
    )  # fmt: skip
    assert found.index("no such symbol") == found.unk()
