"""Markers of a dictionary: their order, and those that are added."""

import pytest

from unified.data.markers import marker_ids, markers_of, with_markers
from unified.data.vocabulary import APPENDED, Vocabulary
from unified.errors import UnifiedError


def test_markers_are_ordered_by_their_numbers():
    vocabulary = Vocabulary(["[unused10]", "a", "[unused2]", "[unused]", "[unused1]x", "x[unused1]", "[unused7]"])
    assert markers_of(vocabulary) == ["[unused2]", "[unused7]", "[unused10]"]
    assert marker_ids(vocabulary, 2, "nothing").tolist() == [6, 10]
    assert marker_ids(vocabulary, 3, "nothing").tolist() == [6, 10, 4]
    with pytest.raises(UnifiedError) as caught:
        marker_ids(vocabulary, 4, "the head 'relation'")
    assert str(caught.value) == (
        "the dictionary has 3 symbols [unusedK], and 4 are needed for the head 'relation'; `unified finetune` adds "
        "them, with --dry-run to the data folder alone"
    )


@pytest.mark.parametrize("there", [[], ["[unused3]"], ["[unused1]", "[unused2]"]])
def test_markers_that_a_dictionary_lacks_come_last_with_higher_numbers(there):
    vocabulary = Vocabulary(["a", *there, "b"], list(range(9, 7 - len(there), -1)))
    first = int(there[-1][7:-1]) + 1 if there else 1
    for count in range(5):
        made = with_markers(vocabulary, count)
        added = [f"[unused{first + i}]" for i in range(count - len(there))]
        assert made.symbols == [*vocabulary.symbols, *added]
        assert made.counts == [*vocabulary.counts, *[1] * len(added)]
        assert (made is vocabulary) == (not added)
        assert made.special == vocabulary.special, "no id changes, and none of the markers is an ordinary symbol"
        assert made.symbols[: -len(added) or None][-len(APPENDED) :] == list(APPENDED)
