"""`unified results`: files of results, and tables whose lines hold results that differ in the seed alone."""

import json
import random
import statistics
from pathlib import Path

import pytest
import scipy.stats

from unified.cli import main
from unified.errors import UnifiedError
from unified.reports.differences import Digest, described, differing, flat, short_paths
from unified.reports.result_tables import tables
from unified.reports.results import read_results, write_result
from unified.reports.seeds import SeedScores

MODEL = {"name": "models/bert", "sha256": "a" * 64, "layers": 12}
FAIRSEQ = {"--dropout": ["0.1"]}
SETTINGS = {"head": "classification(dropout=0.1)", "epochs": 3, "lr": 2e-5, "fairseq": FAIRSEQ}
DATA = {"train.jsonl": "1" * 64, "valid.jsonl": "2" * 64, "test.jsonl": "3" * 64}
PUBLISHED = {"valid": {"BERT": {"accuracy": 93.5}}}


def written(
    folder: Path,
    seed: int = 1,
    accuracy: float = 90.0,
    versions: dict | None = None,
    signs: dict | None = None,
    **changes,
) -> Path:
    """A file of results whose fields are the above ones, but for the changes."""
    folder.mkdir(exist_ok=True)
    scores = {"valid": {"accuracy": accuracy, "matthews": 50.0, "total": 10} | (signs or {})}
    fields = {"task": "sst2", "run": "ours", "scores": scores, "model": MODEL, "settings": SETTINGS, "data": DATA}
    path = write_result(folder, **fields | {"published": PUBLISHED, "command": ["x"]} | changes, seed=seed)
    if versions:
        content = json.loads(path.read_text())
        path.write_text(json.dumps(content | {"versions": content["versions"] | versions}))
    return path


def rows(*paths: Path, **options) -> list[list[str]]:
    """Cells of the lines of one table, without its header and published figures."""
    return cells_of(tables(read_results(paths), **options))


def cells_of(table: str) -> list[list[str]]:
    lines = [line for line in table.splitlines()[4:] if line.startswith("|") and "(published)" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    for name, lr, seed in (("a/x", 1e-5, 1), ("b/x", 2e-5, 1), ("c", 2e-5, 2)):
        (tmp_path / name).mkdir(parents=True)
        command = ["fairseq-train", "data", "--save-dir", f"runs/{name}", "--lr", str(lr)]
        written(tmp_path / name, seed, command=command, settings=SETTINGS | {"lr": lr})
    found = tables(read_results([tmp_path]))
    assert found.splitlines()[2] == "| run | folder | differs in | seeds | accuracy | matthews |"
    assert [row[1] for row in cells_of(found)] == ["a/x", "b/x; c"]
    assert found.splitlines()[-1].count("|") == 7  # published figures have as many cells


def test_tables_of_results(tmp_path):
    for seed, accuracy in ((1, 90.0), (2, 92.0)):
        written(tmp_path / f"run{seed}", seed, accuracy)
    written(tmp_path / "peer", 1, run="peer", scores={"valid": {"accuracy": 89.125, "total": 10}})
    assert tables(read_results([tmp_path])) == (
        "### sst2, valid\n\n| run | seeds | accuracy |\n|---|---|---|\n| peer | 1 | 89.12 |\n"
        "| ours | 1, 2 | 91.00 ± 1.41 |\n| BERT (published) |  | 93.50 |"
    )
    own = tables(read_results([tmp_path / "run1"]), ["matthews"])
    assert own.splitlines()[-2:] == ["| ours | 1 | 50.00 |", "| BERT (published) |  |  |"]


#: What may make two results those of different runs, and what their lines say of it.
CHANGES = {
    "model": ({"model": MODEL | {"name": "models/roberta", "sha256": "b" * 64}}, "model bert", "model roberta"),
    "contents of the model": (
        {"model": MODEL | {"sha256": "b" * 64}}, "model bert (aaaaaa)", "model bert (bbbbbb)",
    ),
    "models of one name": (
        {"model": MODEL | {"name": "old/bert", "sha256": "b" * 64}}, "model models/bert", "model old/bert",
    ),
    "head": (
        {"settings": SETTINGS | {"head": "classification"}}, "head classification(dropout=0.1)", "head classification",
    ),
    "training": ({"settings": SETTINGS | {"lr": 3e-5}}, "lr 2e-05", "lr 3e-05"),
    "two settings": (
        {"settings": SETTINGS | {"lr": 3e-5, "epochs": 4}},
        "epochs 3, lr 2e-05",
        "epochs 4, lr 3e-05",
    ),
    "a setting of fairseq": (
        {"settings": SETTINGS | {"fairseq": {}}}, 'fairseq --dropout ["0.1"]', "no fairseq --dropout",
    ),
    "a setting that is on": ({"settings": SETTINGS | {"packed": True}}, "no packed", "packed"),
    "selection": ({"settings": SETTINGS | {"select": "best"}}, "no select", "select best"),
    "training items": ({"data": DATA | {"train.jsonl": "4" * 64}}, "train.jsonl 111111", "train.jsonl 444444"),
    "scored items": ({"data": DATA | {"valid.jsonl": "4" * 64}}, "valid.jsonl 222222", "valid.jsonl 444444"),
    "signature": ({"signs": {"signature": "rules:other"}}, "no signature", "signature rules:other"),
    "versions": ({"versions": {"torch": "1.0"}}, None, "torch 1.0"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_what_differs_in_more_than_the_seed_has_a_line_of_its_own(tmp_path, change):
    """Two seeds of each; nothing is averaged over the change, and both lines say in what they differ."""
    changes, one, other = CHANGES[change]
    paths = [written(tmp_path / f"a{seed}", seed, 80.0 + seed) for seed in (1, 2)]
    paths += [written(tmp_path / f"b{seed}", seed, 90.0 + seed, **changes) for seed in (1, 2)]
    found = rows(*paths)
    assert [row[0] for row in found] == ["ours", "ours"] and [row[2] for row in found] == ["1, 2", "1, 2"]
    assert [row[3] for row in found] == ["81.50 ± 0.71", "91.50 ± 0.71"]
    assert found[1][1] == other and (one is None or found[0][1] == one) and found[0][1] != other
    assert tables(read_results(paths)).splitlines()[2] == "| run | differs in | seeds | accuracy | matthews |"


def test_what_decides_no_score_separates_nothing(tmp_path):
    """Name of the same model, machine, command, items of other splits, and 1 for 1.0."""
    one = written(tmp_path / "one", 1, 80.0)
    settings = SETTINGS | {"epochs": 3.0, "head-lr": None}
    model = MODEL | {"name": "/elsewhere/copy"}
    data = DATA | {"test.jsonl": "9"}
    two = written(tmp_path / "two", 2, 90.0, model=model, settings=settings, command=["y"], data=data)
    assert rows(one, two) == [["ours", "1, 2", "85.00 ± 7.07", "50.00 ± 0.00"]]


def test_runs_of_other_names_differ_by_their_names_but_for_the_items_they_are_scored_on(tmp_path):
    one = written(tmp_path / "one")
    two = written(tmp_path / "two", run="theirs", settings=SETTINGS | {"epochs": 9})
    assert [row[:2] for row in rows(one, two)] == [["ours", "1"], ["theirs", "1"]]
    assert [row[1] for row in rows(one, two, every_difference=True)] == ["epochs 3", "epochs 9"]
    three = written(tmp_path / "three", run="others", data=DATA | {"valid.jsonl": "5" * 64})
    found = [row[1] for row in rows(one, two, three)]
    assert found == ["valid.jsonl 222222", "valid.jsonl 222222", "valid.jsonl 555555"]


@pytest.mark.slow
def test_lines_are_the_groups_of_equal_runs(tmp_path):
    """Against groups by definition: 20 random sets of results."""
    rng = random.Random(1)
    for trial in range(20):
        results = []
        for i in range(rng.randint(1, 8)):
            changes = {
                "run": rng.choice(["ours", "ours", "b"]),
                "model": MODEL | {"sha256": rng.choice("ab") * 64, "name": rng.choice(["x/m", "y/m"])},
                "settings": SETTINGS | {"epochs": rng.choice([3, 3, 4])},
            }
            path = written(tmp_path / f"{trial}-{i}", rng.randint(1, 2), float(rng.randint(0, 90)), **changes)
            results.append(read_results([path])[0])
        groups: dict = {}
        for one in results:
            key = (one["run"], one["model"]["sha256"], one["settings"]["epochs"])
            groups.setdefault(key, {}).setdefault(one["seed"], []).append(one["scores"]["valid"]["accuracy"])
        expected = []
        for key, seeds in groups.items():
            means = [statistics.mean(values) for values in seeds.values()]
            spread = f" ± {statistics.stdev(means):.2f}" if len(means) > 1 else ""
            expected.append((key[0], f"{statistics.mean(means):.2f}{spread}"))
        cells = cells_of(tables(results, ["accuracy"]))
        assert [(row[0], row[-1]) for row in cells] == expected
        # Lines can be told apart.
        assert len({tuple(row[:-2]) for row in cells}) == len(cells)


#: Two models that something might take for one.
OTHER_MODELS = {
    "equal beginnings of hashes": ({"sha256": "a" * 64}, {"sha256": "a" * 63 + "b"}),
    "no hash, other names": ({"sha256": None}, {"sha256": None, "name": "other/bert"}),
    "no hash, other sizes": ({"sha256": None}, {"sha256": None, "layers": 24}),
    "one without a hash": ({"sha256": None}, {"sha256": "b" * 64}),
    "a name that looks like a hash": ({"name": "m (bbbbbb)", "sha256": "a" * 64}, {"name": "m", "sha256": "b" * 64}),
}


@pytest.mark.parametrize("models", OTHER_MODELS)
@pytest.mark.parametrize("every_difference", [False, True])
def test_two_models_are_never_one_line(tmp_path, models, every_difference):
    paths = []
    for name, changes, accuracy in zip("ab", OTHER_MODELS[models], (80.0, 90.0), strict=True):
        paths += [written(tmp_path / f"{name}{seed}", seed, accuracy, model=MODEL | changes) for seed in (1, 2)]
    found = rows(*paths, every_difference=every_difference)
    assert [row[3] for row in found] == ["80.00 ± 0.00", "90.00 ± 0.00"] and found[0][1] != found[1][1]


def test_intervals_of_means_are_those_of_students_t_and_one_seed_has_none(tmp_path):
    """Against scipy's distribution; and of 2,000 samples of four seeds, 95 % of the intervals hold the true mean."""
    seeds = [written(tmp_path / str(seed), seed, value) for seed, value in enumerate((90.0, 92.0, 91.5, 88.0))]
    values = [90.0, 92.0, 91.5, 88.0]
    low, high = scipy.stats.t.interval(0.95, 3, statistics.mean(values), scipy.stats.sem(values))
    assert rows(*seeds, intervals=True)[0][2] == f"90.38 ± 1.80 [{low:.2f}, {high:.2f}; n = 4]"
    assert "Student's t over n seeds" in tables(read_results(seeds), intervals=True)
    alone = tables(read_results(seeds[:1]), ["accuracy"], intervals=True)
    assert "| ours | 0 | 90.00 |" in alone and "Student" not in alone
    rng, held = random.Random(1), 0
    for _ in range(2000):
        low, high = SeedScores(tuple(rng.gauss(80, 3) for _ in range(4))).interval
        held += low <= 80 <= high
    assert 0.935 < held / 2000 < 0.965


def test_tables_as_json(tmp_path, capsys):
    for seed, accuracy in ((1, 90.0), (2, 92.0)):
        written(tmp_path / f"run{seed}", seed, accuracy)
    written(tmp_path / "peer", 1, run="peer", scores={"valid": {"accuracy": 89.125, "total": 10}})
    assert main(["results", str(tmp_path), "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert (table["task"], table["split"], table["published"]) == ("sst2", "valid", PUBLISHED["valid"])
    peer, own = table["runs"]
    one = {"mean": 89.125, "deviation": None, "interval": None, "n": 1, "item_interval": None}
    assert peer == {
        "run": "peer",
        "differs_in": "",
        "models": ["bert"],
        "folders": [],
        "seeds": [1],
        "scores": {"accuracy": one},
    }
    accuracy = own["scores"]["accuracy"]
    assert own["seeds"] == [1, 2] and (accuracy["mean"], accuracy["n"]) == (91.0, 2)
    assert accuracy["interval"] == pytest.approx(scipy.stats.t.interval(0.95, 1, 91, 1))


def write_three_runs(folder: Path) -> None:
    """Two runs of three and two seeds that share their items, and one of a single seed on others."""
    for run, seed, accuracy in (("a", 1, 90.0), ("a", 2, 92.0), ("a", 3, 91.0), ("b", 1, 80.0), ("b", 2, 83.0)):
        written(folder / f"{run}{seed}", seed, accuracy, run=run)
    written(folder / "c", 1, 95.0, run="c", data=DATA | {"valid.jsonl": "9" * 64})


def test_other_runs_are_shown_beside_one_on_the_same_items(tmp_path, capsys):
    write_three_runs(tmp_path)
    assert main(["results", str(tmp_path), "--ahead-of", "b", "--measures", "accuracy"]) == 0
    *_, heads, _, row, empty, note, left_out = capsys.readouterr().out.splitlines()
    low, high = scipy.stats.ttest_ind([90, 92, 91], [80, 83], equal_var=False).confidence_interval(0.95)
    assert heads == "| ahead of b | differs in | accuracy |" and not empty
    assert row == f"| a | valid.jsonl 222222 | +9.50 [{low:+.2f}, {high:+.2f}] |"
    assert "Welch's t" in note and left_out == "Runs that were scored on other items are left out."
    assert main(["results", str(tmp_path), "--ahead-of", "b", "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    ahead = {run["run"]: run["ahead"] for run in table["runs"]}
    assert ahead["b"] == ahead["c"] == {} and ahead["a"]["accuracy"]["mean"] == 9.5
    assert ahead["a"]["accuracy"]["interval"] == pytest.approx([low, high])
    assert ahead["a"]["matthews"] == {"mean": 0.0, "interval": [0.0, 0.0]}


def test_a_single_seed_has_a_difference_without_an_interval_and_what_one_lacks_none(tmp_path, capsys):
    found = (
        ("a", 1, 90.0, None),
        ("b", 1, 84.0, 60.0),
        ("b", 2, 86.0, 61.0),
        ("c", 1, 80.0, 50.0),
        ("c", 2, 80.0, 50.0),
    )
    for run, seed, accuracy, f1 in found:
        scores = {"accuracy": accuracy} | ({} if f1 is None else {"f1": f1})
        written(tmp_path / f"{run}{seed}", seed, run=run, scores={"valid": scores}, published={})
    assert main(["results", str(tmp_path), "--ahead-of", "b", "--measures", "accuracy", "f1"]) == 0
    ahead = capsys.readouterr().out.splitlines()[7:]
    cells = []
    for mean, own, other in (("-5.00", [80, 80], [84, 86]), ("-10.50", [50, 50], [60, 61])):
        low, high = scipy.stats.ttest_ind(own, other, equal_var=False).confidence_interval(0.95)
        cells.append(f"{mean} [{low:+.2f}, {high:+.2f}]")
    assert ahead[:-1] == [
        "",
        "| ahead of b | accuracy | f1 |",
        "|---|---|---|",
        "| a | +5.00 |  |",
        f"| c | {' | '.join(cells)} |",
        "",
    ]
    assert ahead[-1].endswith("Without brackets, one of the two has one seed.")


def test_without_a_run_to_be_ahead_of_nothing_is_added(tmp_path, capsys):
    write_three_runs(tmp_path)
    assert main(["results", str(tmp_path)]) == 0
    assert "ahead" not in capsys.readouterr().out
    assert main(["results", str(tmp_path), "--json"]) == 0
    assert "ahead" not in json.loads(capsys.readouterr().out)["tables"][0]["runs"][0]
    # A table that has no such run stays alone, and so does one in which nobody has its items.
    written(tmp_path / "d", task="rte", run="d")
    assert main(["results", str(tmp_path), "--ahead-of", "c"]) == 0
    assert "ahead" not in capsys.readouterr().out
    assert main(["results", str(tmp_path), "--ahead-of", "c", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)["tables"]
    assert [run["ahead"] for table in described for run in table["runs"]] == [{}] * 4


def test_models_can_be_what_was_repeated(tmp_path, capsys):
    """Pre-trainings of two objectives with two seeds each, compared over them."""
    for number, (run, accuracy) in enumerate((("a", 90.0), ("a", 92.0), ("b", 80.0), ("b", 83.0))):
        model = MODEL | {"name": f"models/{run}-{number}", "sha256": str(number) * 64}
        written(tmp_path / str(number), 1, accuracy, run=run, model=model)
    words = ["results", str(tmp_path), "--measures", "accuracy", "--models-as-seeds", "--ahead-of", "b"]
    assert main([*words, "--intervals"]) == 0
    out = capsys.readouterr().out
    low, high = scipy.stats.ttest_ind([90, 92], [80, 83], equal_var=False).confidence_interval(0.95)
    assert "| run | models | accuracy |\n|---|---|---|\n| a | a-0, a-1 | 91.00 ± 1.41 [" in out
    assert f"| a | +9.50 [{low:+.2f}, {high:+.2f}] |" in out and "over the models of both" in out
    assert "over n models" in out and "seed" not in out
    assert main([*words, "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert [run["models"] for run in table["runs"]] == [["a-0", "a-1"], ["b-2", "b-3"]]


def test_the_run_to_be_ahead_of_is_one_that_there_is(tmp_path, capsys):
    write_three_runs(tmp_path)
    for json_ in ([], ["--json"]):
        assert main(["results", str(tmp_path), "--ahead-of", "bb", *json_]) == 2
        assert capsys.readouterr().err.endswith("no run 'bb'; the results are of a, b, c\n")
    written(tmp_path / "b3", 3, run="b", settings=SETTINGS | {"lr": 1e-5})
    assert main(["results", str(tmp_path), "--ahead-of", "b"]) == 2
    said = capsys.readouterr().err
    assert "sst2, valid: 2 runs are called 'b' (lr 2e-05, " in said and "; lr 1e-05, " in said


def test_a_measure_that_no_result_has_is_refused(tmp_path, capsys):
    written(tmp_path / "run")
    assert main(["results", str(tmp_path), "--measures", "acuracy"]) == 2
    expected = "no measure 'acuracy' (did you mean 'accuracy'?); the results have accuracy, matthews, total\n"
    assert capsys.readouterr().err.endswith(expected)


@pytest.mark.parametrize(("again", "mean"), [(90.0, 90.0), (95.0, 92.5)])
def test_a_seed_counts_once(tmp_path, again, mean):
    """Whether its other result is a copy or differs; deviations are of seeds."""
    one, copy, two = (
        written(tmp_path / name, seed, accuracy)
        for name, seed, accuracy in (("one", 1, 90.0), ("copy", 1, again), ("two", 2, 92.0))
    )
    found = tables(read_results([one, copy]), ["accuracy"]).splitlines()
    assert f"| ours | 1 (2 times) | {mean:.2f} |" in found and "count as one" in found[-1]
    found = tables(read_results([one, copy, two]), ["accuracy"]).splitlines()
    deviation = abs(mean - 92.0) / 2**0.5
    assert f"| ours | 1 (2 times), 2 | {(mean + 92.0) / 2:.2f} ± {deviation:.2f} |" in found
    assert "count as one" in found[-1]
    found = tables(read_results([one, two]), ["accuracy"]).splitlines()
    assert "| ours | 1, 2 | 91.00 ± 1.41 |" in found and "count as one" not in found[-1]


def test_a_file_that_is_named_twice_counts_once(tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    written(tmp_path / "runs" / "one", 1, 90.0)
    written(tmp_path / "runs" / "two", 2, 92.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("runs")
    for paths in (["runs", "runs"], ["runs/one", "runs"], ["runs", "runs/two/results.json", "./runs/one", "link"]):
        found = read_results([*paths, tmp_path / "runs" / "one"])
        assert [result["seed"] for result in found] == [1, 2]


def test_published_figures_stand_under_their_split(tmp_path):
    scores = {split: {"accuracy": 80.0} for split in ("valid", "valid_mismatched", "test")}
    published = {"valid": {"BERT": {"accuracy": 86.6}}, "test": {"UniLM": {"accuracy": 87.0}}}
    written(tmp_path / "run", scores=scores, published=published)
    of_split = dict(zip(scores, tables(read_results([tmp_path])).split("\n\n### "), strict=True))
    assert "| BERT (published) |  | 86.60 |" in of_split["valid"] and "UniLM" not in of_split["valid"]
    assert "(published)" not in of_split["valid_mismatched"]
    assert "| UniLM (published) |  | 87.00 |" in of_split["test"] and "BERT" not in of_split["test"]


def test_files_that_do_not_say_what_made_them_are_refused(tmp_path, capsys):
    """Whatever else they say, they could be averaged with anything."""
    path = written(tmp_path / "run")
    content = json.loads(path.read_text())
    for name in ("task", "run", "scores", "seed", "command", "model", "settings", "data", "versions", "date"):
        path.write_text(json.dumps({key: value for key, value in content.items() if key != name}))
        assert main(["results", str(tmp_path)]) == 2
        error = capsys.readouterr().err
        assert f"{path}: not a file of results as this version writes them: {name} is missing" in error
        assert error.count("\n") == 1
    for changes, says in (
        ({"model": {"name": "bert"}}, "'model' must have 'name' and 'sha256'"),
        ({"settings": []}, "'settings' must be an object"),
        ({"command": ["fairseq-train", 0.5]}, "a member of 'command' must be a text"),
    ):
        path.write_text(json.dumps(content | changes))
        with pytest.raises(UnifiedError, match=says):
            read_results([path])
    path.write_text("[]")
    for bad, says in ((path, "not a JSON object"), (tmp_path / "none", "none: no such file or folder")):
        with pytest.raises(UnifiedError, match=says):
            read_results([bad])


def test_a_bar_in_a_setting_does_not_end_its_cell(tmp_path):
    one, two = written(tmp_path / "one"), written(tmp_path / "two", settings=SETTINGS | {"separator": "|"})
    text = tables(read_results([one, two]), ["accuracy"])
    assert "| ours | no separator | 1 | 90.00 |" in text and "| ours | separator \\| | 1 | 90.00 |" in text


def test_differences_in_few_words():
    assert flat({"a": {"b": 1, "c": {"d": None}}, "e": False}) == {"a b": 1}
    runs = [{"x": 1, "y": 0.1, "z": Digest("abcdefgh")}, {"x": 1.0, "y": 0.1 + 1e-12, "z": Digest("abcdefgi")}]
    assert differing(runs) == ["y", "z"]
    assert described(runs[1], ["y", "z", "w"]) == f"y {0.1 + 1e-12!r}, z abcdef, no w"
    assert short_paths(["a/b/c", "x/c", "d"]) == {"a/b/c": "b/c", "x/c": "x/c", "d": "d"}


def test_letters_of_all_languages_stand_in_the_file_as_they_are(tmp_path):
    path = written(tmp_path, command=["unified", "--data", "été"])
    assert '"été"' in path.read_text(encoding="utf-8") and read_results([path])[0]["command"][-1] == "été"
