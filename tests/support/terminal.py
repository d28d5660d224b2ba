"""A stream that is taken for a terminal."""

import io


class Terminal(io.StringIO):
    """Keeps what is written to it."""

    def isatty(self) -> bool:
        return True
