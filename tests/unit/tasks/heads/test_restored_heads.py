"""A head that a checkpoint keeps is the one that was trained; what is none is refused in one line that names it."""

import pytest

from unified.errors import UnifiedError
from unified.tasks.heads import Tagging
from unified.tasks.heads.registry import restored_task

KEPT = {"head": "tagging", "settings": {"labels": ["O", "B-X"], "features": "last"}}


def test_a_kept_head_is_built_with_its_settings():
    assert restored_task("a", KEPT) == Tagging(("O", "B-X"), features="last")


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ({"head": "tagging"}, "the head 'a': 'settings' of what is kept of it is missing"),
        ({"head": 5, "settings": {}}, "the head 'a': 'head' of what is kept of it must be a text"),
        (KEPT | {"head": "taging"}, "has a head 'taging'; known are .*tagging"),
        ({"head": "tagging", "settings": {}}, "the head 'a': .*labels"),
        (KEPT | {"settings": KEPT["settings"] | {"label": 1}}, "the head 'a': .*'?label'?"),
        (KEPT | {"settings": KEPT["settings"] | {"features": "some"}}, "the head 'a': .*features"),
        (
            KEPT | {"settings": KEPT["settings"] | {"labels": ["O", "O"]}},
            "the head 'a': .* the label 'O' twice",
        ),
        ({"head": "classification", "settings": {"labels": list("aba")}}, "the head 'a': .* the label 'a' twice"),
        ({"head": "span", "settings": {"labels": ["", "yes", "yes"]}}, "the head 'a': .* the label 'yes' twice"),
    ],
)
def test_what_is_no_head_is_refused(kept, message):
    with pytest.raises(UnifiedError, match=f"^{message}"):
        restored_task("a", kept)
