"""Text files must be opened with an encoding: another machine's default is not UTF-8."""

import io

import pytest


def require_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, a method of a path that opens a text file without an encoding fails."""

    def text_encoding(encoding: str | None, stacklevel: int = 2) -> str:
        assert encoding is not None, "a text file is opened without an encoding"
        return encoding

    monkeypatch.setattr(io, "text_encoding", text_encoding)
