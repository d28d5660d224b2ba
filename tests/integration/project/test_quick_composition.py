"""The tests' quicker composition of fairseq's configuration leaves nothing out."""

import importlib

import pytest

from tests.support import quick_composition
from tests.support.fairseq_runs import PLUGINS, TINY, import_plugins


@pytest.mark.parametrize(
    "words",
    [
        ("training", *PLUGINS, *TINY, "--batch-size", 4, "--update-freq", "[1, 2]", "--restore-file", "x.pt"),
        ("training", *PLUGINS, *TINY, "--max-tokens", 512, "--clip-norm", 1.0, "--save-dir", "it's", "--fp16"),
        ("training", "--task", "language_modeling", "--arch", "transformer_lm", "--lr-scheduler", "inverse_sqrt"),
        ("generation", *PLUGINS, "--path", "model.pt", "--beam", 3, "--lenpen", 1.0, "--gen-subset", "test"),
    ],
)
def test_options_that_are_left_out_change_nothing(words):
    """With all texts that are held to have no effect, hydra composes what it composes without them."""
    quick_composition.install()
    import_plugins()
    options = importlib.import_module("fairseq.options")
    composing = importlib.import_module("fairseq.dataclass.utils")
    kind, *words = words
    parser = getattr(options, f"get_{kind}_parser")()
    arguments = options.parse_args_and_arch(parser, [*map(str, words), "data"])
    given, _ = composing.override_module_args(arguments)
    fields = {text.partition("=")[0] for text in given}
    idle = quick_composition.texts_without_effect()
    rest = sorted(text for text in idle if text.partition("=")[0] not in fields)
    assert len(rest) > 150 and len(given) < 120 and not idle & set(given)
    quick, whole = (quick_composition.compose(texts) for texts in (given, [*rest, *given]))
    assert quick == whole and repr(quick) == repr(whole)
