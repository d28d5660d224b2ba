"""Warnings of texts that are cut, and the refusal where none may be cut."""

import warnings

import pytest

from unified.errors import UnifiedError
from unified.inference.source_limits import require_room, warn_of_cuts, warn_of_long_windows
from unified.model import TransformerConfig


def user(calls, function, arguments):
    generate(calls, function, arguments)


def generate(calls, function, arguments):
    """Calls a function itself, or has a method of its own call it."""
    if calls == "itself":
        function(*arguments)
    else:
        method(function, arguments)


def method(function, arguments):
    function(*arguments)


def warned(calls, function, *arguments) -> list[str]:
    """Messages of a function that ``generate`` calls; the line that they show is that of whoever calls it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        user(calls, function, arguments)
    assert all((one.filename, one.lineno) == (__file__, user.__code__.co_firstlineno + 1) for one in found)
    return [str(one.message) for one in found]


@pytest.mark.parametrize(
    ("lengths", "limits", "says"),
    [
        ([3, 4], [4, 4], []),
        ([3, 5], [4, 4], ["1 of 2 texts have more than 4 tokens; the rest is not read"]),
        ([5, 9, 9, 1], [4, None, 4, 4], ["2 of 4 texts have more than 4 tokens; the rest is not read"]),
        ([5, 9, 7], [4, 8, 6], ["3 of 3 texts have more than 4 to 8 tokens; the rest is not read"]),
        ([9, 9], [None, None], []),
    ],
)
def test_cut_texts_are_counted(lengths, limits, says):
    assert warned("itself", warn_of_cuts, [[7] * length for length in lengths], limits) == says


def test_texts_that_get_no_shorter_are_counted():
    assert warned("a method", warn_of_long_windows, 2, 3) == [
        "2 of 3 texts get no shorter in windows; what is too long is not read"
    ]
    assert warned("a method", warn_of_long_windows, 0, 1) == []


def test_a_source_must_leave_room_for_what_is_written():
    """Begin, separator and the query for the next token take three of the positions."""
    config = TransformerConfig(vocabulary_size=30, max_positions=20)
    require_room([[7] * 12, []], [3, 4], 5, config)
    with pytest.raises(UnifiedError) as raised:
        require_room([[7] * 12, [7] * 13, [7] * 15], [3, 6, 7], 5, config)
    assert str(raised.value) == (
        "sentence 6: 13 tokens, but the model's 20 positions leave room for 12 beside the 5 that may be written; "
        "shorten the text or what is written"
    )
    require_room([[]], [0], 40, config)
    with pytest.raises(UnifiedError, match="^sentence 0: 1 token, .* leave room for 0 beside the 40 "):
        require_room([[7]], [0], 40, config)
