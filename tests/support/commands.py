"""Commands of the library, run in the process of a test."""

import pytest

from unified.cli import main
from unified.cli.configuration import config_first
from unified.cli.parsing import make_parser


def leaving(capsys, *arguments: str) -> tuple[int, str, str]:
    """Status, standard output and standard error of a command that ends before it runs."""
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return left.value.code, *capsys.readouterr()


def exit_status(*arguments: str) -> int | None:
    """What the function of a command returns, in which `unified` would not tell None from 0; errors are raised."""
    options = make_parser(arguments[0]).parse_args(config_first(arguments))
    return options.run(options)
