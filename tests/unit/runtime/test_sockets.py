"""Where the sockets of worker processes lie: with other temporary files, or where those have too long a name."""

import multiprocessing.util
import tempfile

import pytest

from unified.errors import UnifiedError
from unified.runtime.sockets import place_sockets


def temporary(monkeypatch, folder: str, error: OSError | None = None) -> list[str]:
    """Has temporary files in a folder; returns those in which Python then makes one for its sockets."""
    asked: list[str] = []

    def made():
        asked.append(tempfile.gettempdir())
        if error:
            raise error

    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setattr(multiprocessing.util, "get_temp_dir", made)
    return asked


@pytest.mark.parametrize(
    ("folder", "placed"), [("/" + 70 * "a", []), ("/" + 71 * "a", ["/tmp"]), ("/" + 35 * "ä" + "a", ["/tmp"])]
)
def test_a_name_that_is_too_long_is_left_for_sockets_alone(monkeypatch, folder, placed):
    """Sockets may have 103 bytes, of which Python names 32 itself."""
    asked = temporary(monkeypatch, folder)
    place_sockets()
    assert asked == placed and tempfile.gettempdir() == folder


def test_it_is_refused_where_there_is_no_short_name(monkeypatch):
    folder = "/" + 99 * "a"
    temporary(monkeypatch, folder, PermissionError(13, "Permission denied"))
    with pytest.raises(UnifiedError) as raised:
        place_sockets()
    assert raised.value.details == (
        f"TMPDIR, {folder}, has 100 bytes: too many for sockets of worker processes, and /tmp cannot be written "
        "(Permission denied); set TMPDIR to a folder of at most 71 bytes, or use no worker processes"
    )
    assert tempfile.gettempdir() == folder
