"""Names of the library's classes and import paths of a user's own: one rule, and one message for each mistake."""

import pytest

from unified.errors import UnifiedError
from unified.notation import imported, named_class


class Base:
    """What a class of one's own derives from."""


class Known(Base):
    """A class of the library."""


class Own(Base):
    """A class of one's own."""


class Stranger:
    """A class that does not derive from Base."""


def refusal(problem):
    return UnifiedError(f"thing: {problem}")


def named(name, **more):
    return named_class(name, "thing", {"known": Known}, Base, refusal, **more)


def test_a_name_is_the_librarys_and_a_path_is_imported():
    assert named("known") is Known
    assert named(f"{__name__}:Own") is Own
    assert imported(f"{__name__}:refusal", "function", (), refusal) is refusal


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "knwn",
            r"thing: no such thing \(did you mean 'known'\?\)$",
        ),
        ("a:b:c", "no such thing; known are"),
        ("no_such_module:Own", r"module no_such_module cannot be imported \(No module named 'no_such_module'\)"),
        (
            "no_such_package.own:Own",
            r"No module named 'no_such_package'\); PYTHONPATH=\. in front of the command",
        ),
        ("knwn:Own", r"module knwn cannot be imported .* \(did you mean 'known'\?\)"),
        (f"{__name__}:Absent", f"thing: module {__name__} has no 'Absent'"),
        (f"{__name__}:Strangr", r"has no 'Strangr' \(did you mean 'Stranger'\?\)$"),
        (f"{__name__}:refusal", f"thing: refusal is not a subclass of {__name__}.Base"),
        (f"{__name__}:Stranger", f"thing: Stranger is not a subclass of {__name__}.Base"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name, says):
    with pytest.raises(UnifiedError, match=says):
        named(name, also_known=("auto",))


def test_a_name_of_a_checkpoint_imports_nothing():
    assert named("known", if_trusted="--thing '...'") is Known
    with pytest.raises(UnifiedError, match="no checkpoint chooses what is imported; .* yourself: --thing '...'"):
        named("no_such_module:Own", if_trusted="--thing '...'")
    with pytest.raises(UnifiedError, match="no such thing"):
        named("knwn", if_trusted="--thing '...'")
