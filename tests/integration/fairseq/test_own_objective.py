"""An objective outside the library, by its import path, through fairseq: what it declares holds."""

from dataclasses import dataclass

import pytest

from docs.examples.suffix_objective import Suffix
from tests.support import fairseq_runs as fairseq
from tests.support.token_files import numbered_documents, write_documents
from unified.checkpoints import load_checkpoint
from unified.data.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    Vocabulary([f"w{i}" for i in range(400)]).save(folder / "dict.txt")
    for split in ("train", "valid"):
        write_documents(folder / split, numbered_documents([[9] * 8, [5] * 12] * 2))
    return folder


SUFFIX = ("--objectives", "docs.examples.suffix_objective:Suffix", "--max-update", 1, "--batch-size", 4)


@pytest.mark.slow
def test_the_example_of_the_documentation_needs_its_token_types(data, tmp_path):
    result = fairseq.train(data, tmp_path, "--arch", "bert_tiny", *SUFFIX, check=False)
    fairseq.assert_refused(result, "objective suffix takes 6 token types, the model has 2; pass --token-types 6")


@pytest.mark.slow
def test_a_mixture_writes_as_its_other_objectives_say_where_it_says_nothing(data, tmp_path):
    """Losses are logged under the names of a mixture, of two objectives of one kind too."""
    objectives = f"x={SUFFIX[1]}:1,a=random_spans:1,b=random_spans(noise_density=0.5):1"
    result = fairseq.train(data, tmp_path, *SUFFIX, "--objectives", objectives)
    assert {f"valid_{name}_loss" for name in "xab"} <= set(fairseq.logged(result.stdout, "valid")[-1])
    assert load_checkpoint(tmp_path / "checkpoint_last.pt")["cfg"]["model"]["writes"] == "next"


@dataclass(frozen=True)
class Fails(Suffix):
    """An objective with a bug."""

    def __call__(self, text, rng):
        return {}["missing"]


@pytest.mark.slow
def test_an_objective_that_fails_is_named_below_its_traceback(data, tmp_path):
    result = fairseq.train(data, tmp_path, *SUFFIX, "--objectives", f"{__name__}:Fails", check=False)
    line = Fails.__call__.__code__.co_firstlineno + 1
    *_, cause, says = result.stderr.rstrip().splitlines()
    assert result.returncode == 1 and cause == "KeyError: 'missing'"
    assert says == f"unified_lm: error: objective suffix fails in line {line} of {__name__}: KeyError: 'missing'"
    assert '    return {}["missing"]' in result.stderr and result.stderr.count("Traceback") == 1
