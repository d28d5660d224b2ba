"""`unified evaluate`: tables, JSON and files of results, from the scores that the library computes; refusals."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.commands import exit_status
from tests.support.corpora import jsonl
from tests.support.evaluations import PAIRS, digest, joined
from tests.support.task_folders import language_model
from unified import UnifiedLM, load
from unified.cli import main
from unified.cli.commands.evaluating.options import chosen_scorings
from unified.errors import UnifiedError
from unified.evaluation.minimal_pairs import score_pairs
from unified.evaluation.pair_files import read_paradigms
from unified.evaluation.patterns import Sampling
from unified.evaluation.perplexity import Perplexity
from unified.evaluation.scorings import SCORINGS
from unified.reports.results import read_results
from unified.tasks.metrics.bootstrap import bootstrap_intervals


def test_a_table_has_a_line_for_all_pairs_and_for_each_group_of_them(evaluate):
    words = ("minimal-pairs", "pairs.v1.jsonl", "--model", "m", "--scoring", "both")
    found = json.loads(evaluate(*words, "--json")[0])
    lm = UnifiedLM.from_pretrained("m")
    scorings = [SCORINGS[name] for name in ("left_to_right", "right_to_left")]
    scored = score_pairs(
        lm, read_paradigms(Path("pairs.v1.jsonl")).paradigms, scorings, Sampling(16, 1), lambda _: None
    )
    expected = json.loads(json.dumps(scored.scores()))
    assert found == expected | {"scoring": "left_to_right+right_to_left", "output": None}
    assert found["pairs"] == 12 and found["ties"] > 0 and found["tied"].keys() == {"agreement", "islands"}
    plain = evaluate(*words)[0]
    by_group = [("field", "accuracy"), ("field", "syntax"), ("linguistics term", "a_term")]
    assert plain.splitlines() == [
        f"minimal pairs, scoring left_to_right+right_to_left: 12 pairs, {found['ties']} ties",
        "",
        "| of |  | accuracy | ties |",
        "|---|---|---|---|",
        f"| all | mean over paradigms | {found['accuracy']:.2f} | {found['ties']} |",
        *(f"| {kind} | {name} | {found[kind.replace(' ', '_')][name]:.2f} |  |" for kind, name in by_group),
        *(f"| paradigm | {name} | {found['paradigm'][name]:.2f} | {found['tied'][name]} |" for name in found["tied"]),
    ]
    intervals = json.loads(json.dumps(bootstrap_intervals(scored, 9, 5)))
    more = (*words, "--intervals", "--resamples", "9", "--seed", "5")
    assert json.loads(evaluate(*more, "--json")[0])["intervals"] == intervals
    lines = evaluate(*more)[0].splitlines()
    low, high = intervals["accuracy"]
    assert lines[2:5] == [
        "| of |  | accuracy | 95 % interval | ties |",
        "|---|---|---|---|---|",
        f"| all | mean over paradigms | {found['accuracy']:.2f} | {low:.1f} to {high:.1f} | {found['ties']} |",
    ]
    low, high = intervals["paradigm"]["islands"]
    share, ties = found["paradigm"]["islands"], found["tied"]["islands"]
    assert lines[-1] == f"| paradigm | islands | {share:.2f} | {low:.1f} to {high:.1f} | {ties} |"


def test_a_paradigm_that_no_resample_draws_has_no_interval(evaluate, shared):
    rows = [{"sentence_good": f"w{i} w1", "sentence_bad": "w2 w3", "UID": f"p{i}"} for i in range(12)]
    jsonl(shared / "many.jsonl", rows)
    words = ("minimal-pairs", "many.jsonl", "--model", "m", "--intervals", "--resamples", "2")
    known = json.loads(evaluate(*words, "--json")[0])["intervals"]["paradigm"]
    cells = [line.split(" | ")[3] for line in evaluate(*words)[0].splitlines()[5:]]
    assert 0 < len(known) < 12 and cells == [
        "{:.1f} to {:.1f}".format(*known[f"p{i}"]) if f"p{i}" in known else "" for i in range(12)
    ]


def test_files_without_pairs_are_left_out_and_no_ties_are_an_empty_cell(evaluate, shared):
    (shared / "folder").mkdir()
    jsonl(shared / "folder" / "a|b.jsonl", [{"sentence_good": "w1 w2", "sentence_bad": "w3 w4"}])
    jsonl(shared / "folder" / "other.jsonl", [{"text": "w1"}])
    out, err = evaluate("minimal-pairs", "folder", "--model", "m")
    assert "note: left out, as they hold no pairs: other.jsonl\n" in err
    lines = out.splitlines()
    assert lines[0] == "minimal pairs, scoring pseudo_likelihood: 1 pair, 0 ties" and lines[4].endswith(" |  |")
    assert lines[5].startswith(r"| paradigm | a\|b | ") and lines[5].endswith(" |  |") and len(lines) == 6
    assert err.splitlines()[-1].split(", ")[0] == "scoring: 2 of 2 sentences"


def test_progress_counts_both_sentences_of_a_pair_for_each_scoring(evaluate):
    err = evaluate("minimal-pairs", "pairs.v1.jsonl", "--model", "m", "--scoring", "both")[1]
    assert err.splitlines()[-1].split(", ")[0] == "scoring: 48 of 48 sentences"
    assert err.splitlines()[0].startswith("note: scoring 'left_to_right': the model has not learnt it")


def test_results_say_what_was_scored_by_which_model_and_how(evaluate, shared, tmp_path):
    words = ["minimal-pairs", "pairs.v1.jsonl", "--model", "m", "--scoring", "left_to_right+permutation"]
    words += ["--draws", "3", "--seed", "5"]
    output = tmp_path / "new" / "out"
    found = json.loads(evaluate(*words, "--json", "--output", str(output), "--run", "mine")[0])
    assert found["output"] == str(output / "results.json")
    [result] = read_results([output])
    assert found["accuracy"] != found["field"]["accuracy"]  # a field may be called like the mean over all
    files = sorted(path.name for path in (shared / "m").iterdir())
    own = {
        "task": "minimal-pairs", "run": "mine", "seed": 5, "published": {},
        "scores": {"pairs.v1": {"accuracy": found["accuracy"], "syntax": found["field"]["syntax"],
                             "pairs": 12, "ties": found["ties"]}},
        "settings": {"scoring": "left_to_right+permutation", "draws": 3},
        "command": ["unified", "evaluate", *words],
        "data": {"pairs.v1.jsonl": joined(digest("pairs.v1.jsonl"))},
        "model": {
            "name": "m", "sha256": joined(*(digest(f"m/{name}") for name in files)),
            "parameters": sum(p.numel() for p in load("m").model.parameters()),
        },
        "details": {name: value for name, value in found.items() if name not in ("scoring", "output")},
    }  # fmt: skip
    assert {name: result[name] for name in own} == own
    plain = [*words[:5], "left_to_right"]
    evaluate(*plain, "--output", str(output), "--overwrite", "--intervals", "--resamples", "2", "--seed", "5")
    [result] = read_results([output])
    assert result["settings"] == {"scoring": "left_to_right", "draws": None} and result["run"] == "ours"
    assert result["command"] == ["unified", "evaluate", *plain] and result["seed"] == 1  # scores have no seed


def test_perplexity_has_a_line_for_each_measure(evaluate, tmp_path):
    words = ["perplexity", "text.v1.txt", "--model", "m", "--scoring", "left_to_right"]
    out, err = evaluate(*words, "--json", "--window", "4", "--stride", "3")
    found = json.loads(out)
    assert (found["documents"], found["tokens"], found["words"], found["unknown"]) == (2, 9, 9, 1)
    assert (found["scoring"], found["window"], found["stride"], found["output"]) == ("left_to_right", 4, 3, None)
    assert err.splitlines()[-1].split(", ")[0] == "scoring: 3 of 3 windows"  # 4 tokens and 3, and a document of 2
    names = ("token_perplexity", "word_perplexity", "bits_per_character", "bits_per_byte")
    start = f"scoring left_to_right: 2 documents, 9 tokens, 9 words, {found['bytes']} bytes; 1 token unknown"
    shown = [f"| {name.replace('_', ' ')} | {found[name]:.3f} |" for name in names]
    plain = evaluate(*words, "--window", "4", "--stride", "3")[0].splitlines()
    assert plain == [start, "", "| measure |  |", "|---|---|", *shown]
    more = [*words, "--window", "4", "--stride", "3", "--intervals", "--resamples", "9", "--seed", "2"]
    intervals = json.loads(evaluate(*more, "--json")[0])["intervals"]
    lines = evaluate(*more)[0].splitlines()
    assert lines[2:4] == ["| measure |  | 95 % interval |", "|---|---|---|"]
    assert lines[4:] == [
        f"{line} {intervals[name][0]:.3f} to {intervals[name][1]:.3f} |"
        for name, line in zip(names, shown, strict=True)
    ]
    evaluate(*words, "--output", str(tmp_path / "out"))
    [result] = read_results([tmp_path / "out"])
    assert result["task"] == "perplexity" and result["settings"] == {
        "scoring": "left_to_right", "window": 22, "stride": 11, "draws": None, "text-field": None,
    }  # fmt: skip
    assert result["command"] == [
        *("unified", "evaluate", "perplexity", "text.v1.txt", "--model", "m", "--scoring", "left_to_right"),
        *("--window", "22", "--stride", "11"),
    ]
    assert result["scores"]["text.v1"] == result["details"] and result["data"] == {
        "text.v1.jsonl": joined(digest("text.v1.txt"))
    }  # fmt: skip
    drawn = [*words[:4], "--scoring", "permutation", "--draws", "2", "--output", str(tmp_path / "out"), "--overwrite"]
    evaluate(*drawn)
    assert read_results([tmp_path / "out"])[0]["settings"]["draws"] == 2


@pytest.mark.parametrize(("window", "stride"), [("1", 1), ("2", 1), ("3", 1), ("4", 2)])
def test_a_stride_is_half_a_window_and_at_most_a_window(evaluate, capsys, window, stride):
    words = ["perplexity", "text.v1.txt", "--model", "m", "--scoring", "left_to_right", "--window", window]
    assert json.loads(evaluate(*words, "--json")[0])["stride"] == stride
    assert json.loads(evaluate(*words, "--json", "--stride", window)[0])["stride"] == int(window)
    more = str(int(window) + 1)
    assert main(["evaluate", *words, "--stride", more]) == 2
    has = "1 token" if window == "1" else f"{window} tokens"
    says = f"unified evaluate: error: --stride {more}: a window has {has}, and can score no more\n"
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("call", ["replace", "write_result"])
def test_a_kill_never_leaves_new_examples_beside_old_results(evaluate, tmp_path, monkeypatch, call):
    words = ["perplexity", "text.v1.txt", "--model", "m", "--output", str(tmp_path), "--scoring"]
    evaluate(*words, "left_to_right")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert before.keys() == {"results.json", "examples.jsonl"}

    replace = os.replace

    def replaced(old, new):
        if Path(new).name == "examples.jsonl":
            raise KeyboardInterrupt
        replace(old, new)

    def written(*arguments, **keywords):
        raise KeyboardInterrupt

    if call == "replace":
        monkeypatch.setattr(os, "replace", replaced)
    else:
        monkeypatch.setattr("unified.reports.results.write_result", written)
    assert main(["evaluate", *words, "right_to_left", "--overwrite"]) == 130
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after.keys() == {"examples.jsonl"}
    assert (after["examples.jsonl"] == before["examples.jsonl"]) == (call == "replace")


def test_existing_results_and_unknown_scorings_are_refused_before_any_work(shared, tmp_path, capsys):
    there = f"{tmp_path / 'results.json'}: there already; --overwrite replaces it"
    for kind in ("minimal-pairs", "perplexity", "similarity"):
        jsonl(tmp_path / "results.json", [{"command": ["unified", "evaluate", kind]}])
        assert main(["evaluate", kind, "nowhere", "--model", "nothing", "--output", str(tmp_path)]) == 2
        assert capsys.readouterr().err == f"unified evaluate: error: {there}\n"
        assert main(["evaluate", kind, "nowhere", "--model", "nothing", "--output", str(tmp_path), "--overwrite"]) == 2
        assert there not in capsys.readouterr().err
    for kind, scoring, says in (
        ("minimal-pairs", "left", "no scoring 'left'"),
        ("perplexity", "both", "--scoring both: perplexity takes one scoring, not a sum of 2"),
    ):
        assert main(["evaluate", kind, "nowhere", "--model", "nothing", "--scoring", scoring]) == 2
        assert capsys.readouterr().err.startswith(f"unified evaluate: error: {says}")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("minimal-pairs pairs.v1.jsonl --draws 3", "--draws has no effect without --scoring permutation or diffusion;"),
        ("perplexity text.v1.txt --seed 3", "--seed has no effect without --intervals or --against; add"),
        ("similarity rows.jsonl --seed 3", "--seed has no effect without --intervals or --against; add"),
        (
            "perplexity text.v1.txt --text-field body",
            "--text-field body: text.v1.txt holds lines without fields, by",
        ),
    ],
)
def test_options_without_effect_are_refused(evaluate, capsys, words, says):
    assert main(["evaluate", *words.split(), "--model", "m"]) == 2
    assert f"unified evaluate: error: {says}" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["perplexity", "similarity"])
def test_a_folder_is_refused_where_one_file_is_read(evaluate, capsys, kind):
    assert main(["evaluate", kind, "m", "--model", "m"]) == 2
    assert capsys.readouterr().err.startswith("unified evaluate: error: m: a folder, not a file; ")


def test_an_empty_name_of_a_scoring_is_refused(evaluate, capsys):
    assert main(["evaluate", "perplexity", "text.v1.txt", "--model", "m", "--scoring", ""]) == 2
    assert "error: no scoring ''" in capsys.readouterr().err


def test_data_are_named_by_their_folder_or_file(evaluate, shared, tmp_path, monkeypatch):
    folder = tmp_path / "own.pairs"
    folder.mkdir()
    jsonl(folder / "a.jsonl", PAIRS)
    (shared / "text.v1.txt.gz").write_bytes(gzip.compress((shared / "text.v1.txt").read_bytes()))
    for kind, data, name in (
        ("minimal-pairs", "..", "own.pairs"),
        ("perplexity", str(shared / "text.v1.txt.gz"), "text.v1"),
    ):
        (folder / "inside").mkdir(exist_ok=True)
        monkeypatch.chdir(folder / "inside")
        evaluate(kind, data, "--model", str(shared / "m"), "--output", str(tmp_path / kind))
        assert list(read_results([tmp_path / kind])[0]["scores"]) == [name]


def test_an_infinite_perplexity_has_no_interval_and_is_null_for_programs(evaluate, tmp_path):
    words = ["perplexity", "text.v1.txt", "--model", "m", "--scoring", "left_to_right", "--intervals"]
    assert evaluate(*words)[0] == evaluate(*words, "--resamples", "1000", "--seed", "1")[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "unified.evaluation.perplexity.score_documents",
            lambda lm, documents, *_: Perplexity(documents.sizes, np.full(len(documents.tokens), -1e5)),
        )
        found = json.loads(evaluate(*words, "--json", "--resamples", "5")[0])
        assert found["word_perplexity"] is None and "word_perplexity" not in found["intervals"]
        assert "bits_per_byte" in found["intervals"]
        rows = evaluate(*words, "--resamples", "5")[0].splitlines()[4:]
        evaluate(*words[:-1], "--output", str(tmp_path / "other"))
        beside = evaluate(*words[:-1], "--against", str(tmp_path / "other"), "--resamples", "5")[0].splitlines()[2:5]
        heads = "| measure |  | against | difference | its 95 % interval |"
        assert beside == [heads, "|---|---|---|---|---|", "| token perplexity | inf | inf |  |  |"]
    assert rows[:2] == ["| token perplexity | inf |  |", "| word perplexity | inf |  |"] and " to " in rows[2]


def test_a_file_of_results_is_json_without_the_perplexity_of_words_that_a_text_without_blanks_has(
    evaluate, shared, tmp_path
):
    """Its document is one word, of which no number holds the perplexity."""
    (shared / "blanks.txt").write_text(400 * "w1," + "\n\n" + 400 * "w2," + "\n", encoding="utf-8")
    output = tmp_path / "out"
    words = [
        "perplexity",
        "blanks.txt",
        "--model",
        "m",
        "--scoring",
        "left_to_right",
        "--intervals",
        "--resamples",
        "9",
    ]
    found = json.loads(evaluate(*words, "--json", "--output", str(output))[0])
    text = (output / "results.json").read_text(encoding="utf-8")
    result = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert found.pop("word_perplexity") is None and found["words"] == 2
    assert result["scores"] == {"blanks": result["details"]}
    assert found == result["details"] | {name: found[name] for name in ("scoring", "window", "stride", "output")}
    assert exit_status("results", str(output)) == 0


def test_results_of_a_data_set_of_the_hub_name_its_rows(evaluate, tmp_path, monkeypatch):
    def entries(path):
        yield from ((f"row {i}", row) for i, row in enumerate(rows))

    monkeypatch.setattr("unified.files.rows.hub_entries", entries)
    digests = set()
    for last in (3, 3, 4):
        rows = [{"text": f"w{i}", "second": f"w{2 * i} w1", "label": n} for i, n in enumerate((1, 5, last))]
        evaluate("similarity", "hub:me/sts@test", "--model", "m", "--output", str(tmp_path / "out"), "--overwrite")
        [result] = read_results([tmp_path / "out"])
        digests.add(result["data"]["sts@test.jsonl"])
    assert len(digests) == 2


def test_cpu_threads_are_as_many_as_the_option_says(evaluate):
    before = torch.get_num_threads()
    try:
        for kind, data in (("perplexity", "text.v1.txt"), ("similarity", "rows.jsonl")):
            for given, expected in (("2", 2), ("0", 2), ("1", 1)):
                evaluate(kind, data, "--model", "m", "--threads", given)
                assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(before)


def test_the_scoring_is_the_first_that_the_model_has_learnt_or_left_to_right(shared, capsys):
    lm = UnifiedLM.from_pretrained(shared / "m")
    assert [one.name for one in chosen_scorings([], lm)] == ["pseudo_likelihood"] and capsys.readouterr().err == ""
    assert [one.name for one in chosen_scorings(["permutation", "shifted"], lm)] == ["permutation", "shifted"]
    told = capsys.readouterr().err.splitlines()
    assert [line.split(":")[:2] for line in told] == [
        ["note", " scoring 'permutation'"],
        ["note", " scoring 'shifted'"],
    ]
    lm.objectives = "deshuffling"  # a text is written from its tokens in another order
    assert [one.name for one in chosen_scorings([], lm)] == ["left_to_right"]
    assert (
        "note: scoring 'left_to_right': the model has not learnt it (its objectives, deshuff" in capsys.readouterr().err
    )


def test_a_scoring_that_the_model_does_not_support_is_refused(tmp_path):
    lm = UnifiedLM.from_pretrained(language_model(tmp_path / "m", writes="permutation", positions="relative"))
    with pytest.raises(UnifiedError, match="^scoring 'shifted' reads a token at the symbol before it, and the model "):
        chosen_scorings(["shifted"], lm)
