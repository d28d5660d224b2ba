"""The tests compose fairseq's configuration as hydra does."""

import importlib

import pytest

from tests.support import quick_composition
from tests.support.fairseq_runs import PLUGINS, TINY, import_plugins

UNDERSTANDING = (*PLUGINS[:2], "--task", "unified_understanding", "--criterion", "unified_understanding")


@pytest.mark.parametrize(
    "words",
    [
        ("training", *PLUGINS, *TINY, "--batch-size", 4, "--update-freq", "[1, 2]", "--restore-file", "x.pt"),
        ("training", *PLUGINS, *TINY, "--max-tokens", 512, "--clip-norm", 1.0, "--save-dir", "it's", "--fp16"),
        ("training", *UNDERSTANDING, "--arch", "unified_lm_tiny", "--head", "multiple_choice", "--ddp-backend", "c10d"),
        ("training", "--task", "language_modeling", "--arch", "transformer_lm", "--lr-scheduler", "inverse_sqrt"),
        ("training", "--task", "translation", "--arch", "transformer", "--optimizer", "adam", "--adam-betas", "(0, 1)"),
        ("generation", *PLUGINS, "--path", "model.pt", "--beam", 3, "--lenpen", 1.0, "--gen-subset", "test"),
        ("generation", "--task", "translation", "--path", "m:n", "--scoring", "chrf", "--bpe", "sentencepiece"),
    ],
)
def test_the_configuration_is_hydras(words):
    """Equal values of the same types in the same order: 1, 1.0 and True are equal, and differ when written."""
    import_plugins()
    options = importlib.import_module("fairseq.options")
    composing = importlib.import_module("fairseq.dataclass.utils")
    kind, *words = words
    parser = getattr(options, f"get_{kind}_parser")()
    arguments = options.parse_args_and_arch(parser, [*map(str, words), "data"])
    texts, _ = composing.override_module_args(arguments)
    container = importlib.import_module("omegaconf").OmegaConf.to_container
    ways = quick_composition.compose, quick_composition.compose_by_hydra
    quick, hydras = (container(way(texts), resolve=True, enum_to_str=True) for way in ways)
    assert len(texts) > 200 and quick == hydras and repr(quick) == repr(hydras)


@pytest.mark.parametrize("text", ["common.seed=one", "checkpoint.nowhere=1", "scoring=absent"])
def test_what_cannot_be_composed_is_refused_by_hydra(text):
    """Its error names the option."""
    quick_composition.install()
    composing = importlib.import_module("fairseq.dataclass.utils")
    hydra = importlib.import_module("hydra.errors")
    with composing.initialize(config_path="../config"), pytest.raises(hydra.HydraException, match=text.split("=")[0]):
        composing.compose("config", overrides=[text], strict=False)
