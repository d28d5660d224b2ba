"""`unified results`: tables of results files."""

import pytest

from unified.errors import UnifiedError
from unified.results import read_results, tables, write_result

SHARED = {"command": ["fairseq-train"], "data": {}, "published": {"valid": {"BERT": {"accuracy": 93.5}}}}


def test_tables_of_results(tmp_path):
    for seed, accuracy in ((1, 90.0), (2, 92.0)):
        (tmp_path / f"run{seed}").mkdir()
        scores = {"valid": {"accuracy": accuracy, "matthews": 50.0, "total": 10}}
        write_result(tmp_path / f"run{seed}", task="sst2", run="ours", scores=scores, seed=seed, **SHARED)
    (tmp_path / "peer").mkdir()
    peer = {"valid": {"accuracy": 89.125, "total": 10}}
    write_result(tmp_path / "peer", task="sst2", run="peer", scores=peer, seed=1, **SHARED)
    assert tables(read_results([tmp_path])) == (
        "### sst2, valid\n\n| run | seeds | accuracy |\n|---|---|---|\n| peer | 1 | 89.12 |\n"
        "| ours | 1, 2 | 91.00 ± 1.41 |\n| BERT (published) | | 93.50 |"
    )
    own = tables(read_results([tmp_path / "run1"]), ["matthews"])
    assert own.splitlines()[-2:] == ["| ours | 1 | 50.00 |", "| BERT (published) | |  |"]
    (tmp_path / "bad.json").write_text('{"task": "sst2"}')
    for path, says in ((tmp_path / "bad.json", "run is missing"), (tmp_path / "none", "cannot be read")):
        with pytest.raises(UnifiedError, match=says):
            read_results([path])


def test_published_figures_stand_under_their_split(tmp_path):
    scores = {split: {"accuracy": 80.0} for split in ("valid", "valid_mismatched", "test")}
    published = {"valid": {"BERT": {"accuracy": 86.6}}, "test": {"UniLM": {"accuracy": 87.0}}}
    write_result(tmp_path, task="mnli", run="ours", scores=scores, seed=1, **SHARED | {"published": published})
    of_split = dict(zip(scores, tables(read_results([tmp_path])).split("\n\n### "), strict=True))
    assert "| BERT (published) | | 86.60 |" in of_split["valid"] and "UniLM" not in of_split["valid"]
    assert "(published)" not in of_split["valid_mismatched"]
    assert "| UniLM (published) | | 87.00 |" in of_split["test"] and "BERT" not in of_split["test"]


def test_files_without_splits_of_published_figures_are_read(tmp_path):
    """As they were written before."""
    scores = {split: {"accuracy": 80.0} for split in ("valid", "test")}
    published = {"BERT": {"accuracy": 86.6}}
    write_result(tmp_path, task="mnli", run="ours", scores=scores, seed=1, **SHARED | {"published": published})
    assert tables(read_results([tmp_path])).count("| BERT (published) | | 86.60 |") == 2


def result(folder, seed: int, accuracy: float):
    folder.mkdir(exist_ok=True)
    scores = {"valid": {"accuracy": accuracy, "total": 10}}
    write_result(folder, task="sst2", run="ours", scores=scores, seed=seed, **SHARED)
    return folder


@pytest.mark.parametrize(("again", "mean"), [(90.0, 90.0), (95.0, 92.5)])
def test_a_seed_counts_once(tmp_path, again, mean):
    """Whether its other result is a copy or differs; deviations are of seeds."""
    one, copy, two = (
        result(tmp_path / name, seed, accuracy)
        for name, seed, accuracy in (("one", 1, 90.0), ("copy", 1, again), ("two", 2, 92.0))
    )
    rows = tables(read_results([one, copy])).splitlines()
    assert f"| ours | 1 (2 times) | {mean:.2f} |" in rows and "count as one" in rows[-1]
    rows = tables(read_results([one, copy, two])).splitlines()
    deviation = abs(mean - 92.0) / 2**0.5
    assert f"| ours | 1 (2 times), 2 | {(mean + 92.0) / 2:.2f} ± {deviation:.2f} |" in rows
    assert "count as one" in rows[-1]
    rows = tables(read_results([one, two])).splitlines()
    assert "| ours | 1, 2 | 91.00 ± 1.41 |" in rows and "count as one" not in rows[-1]
