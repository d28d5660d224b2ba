"""Options of fairseq-train as words of a command line, and back."""

from __future__ import annotations

from unified.training.fairseq_options import by_name, words_of


def test_an_option_that_is_true_is_a_flag_and_all_come_back():
    options = {"--gated": True, "--layers": 8, "--adam-betas": "(0.9, 0.98)", "--embedding-norm": True}
    assert words_of(options) == ["--gated", "--layers", "8", "--adam-betas", "(0.9, 0.98)", "--embedding-norm"]
    assert by_name(words_of(options)) == {
        name: value if value is True else str(value) for name, value in options.items()
    }
