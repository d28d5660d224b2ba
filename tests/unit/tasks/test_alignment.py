"""Why an answer does not stand where a data set says."""

import pytest

from unified.tasks.alignment import misalignment

ELSEWHERE = "the answer stands elsewhere in the passage"
WHITE_SPACE = "the passage has the answer with other white space"
CAPITALS = "the passage has the answer in other capitals"
MISSING = "the answer is not in the passage"


@pytest.mark.parametrize(
    ("context", "text", "start", "says"),
    [
        ("ab ab", "ab", 0, None),
        ("ab ab", "ab", 3, None),
        ("ab ab", "ab", 1, ELSEWHERE),
        ("ab ab", "ab", -2, ELSEWHERE),  # an index in Python's sense is none of a file
        ("a  b", "a b", 0, WHITE_SPACE),
        ("ab", "a b", 0, WHITE_SPACE),
        ("Straße", "STRASSE", 0, CAPITALS),
        ("ab", "c", 0, MISSING),
        ("a B", "a  b", 0, MISSING),  # both differ
    ],
)
def test_why_an_answer_does_not_stand_where_a_file_says(context, text, start, says):
    assert misalignment(context, text, start) == says
