"""Refusals in the words of a command line: which names become options, and what stays as the user wrote it."""

import pytest

from unified.cli.option_names import with_options

OPTIONS = {"path": "--output", "top_k": "--top-k", "sampling": "--sampling", "beam": "--beam"}


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (
            "top_k 3 says what is drawn from; it needs sampling",
            "--top-k 3 says what is drawn from; it needs --sampling",
        ),
        ("use beam=1", "use --beam=1"),
        ("path must end in .svg, got 'a path.gif'", "--output must end in .svg, got 'a path.gif'"),
        ("beam: 'beam' is no symbol", "--beam: 'beam' is no symbol"),
        ('path: "it\'s a path" is none, nor is path', '--output: "it\'s a path" is none, nor is --output'),
        ("path: 'it\\'s a path' is none", "--output: 'it\\'s a path' is none"),
        ("the model's beam and the models' beam", "the model's --beam and the models' --beam"),
        ("beams, a_beam, beam-search and --beam", "beams, a_beam, beam-search and --beam"),
        ("nothing of all that", "nothing of all that"),
    ],
)
def test_arguments_are_named_as_options_and_quoted_values_stay(refusal, says):
    assert with_options(refusal, OPTIONS) == says
