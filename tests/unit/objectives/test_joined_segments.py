"""The numbers of segments, which are rows of the models' table of token types."""

from unified.objectives import joined_segments


def test_segments_have_the_rows_of_saved_models():
    """Two of bidirectional sequences, one for each direction, source and target [UniLM, sec. 2.2]."""
    names = ("FIRST", "SECOND", "LEFT_TO_RIGHT", "RIGHT_TO_LEFT", "SOURCE", "TARGET")
    assert [vars(joined_segments)[name] for name in names] == [0, 1, 2, 3, 4, 5]
