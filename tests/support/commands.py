"""Commands of the library, run in the process of a test."""

import pytest

from unified.cli import main


def leaving(capsys, *arguments: str) -> tuple[int, str, str]:
    """Status, standard output and standard error of a command that ends before it runs."""
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return left.value.code, *capsys.readouterr()
