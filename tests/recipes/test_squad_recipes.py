"""Recipes of SQuAD: each system's published settings, and its debug run from generated files to official scores."""

from __future__ import annotations

import json

import pytest

from tests.integration.cli.test_task_commands import said
from tests.recipes.test_recipes import run
from tests.recipes.test_task_recipes import FINETUNE, XLNET, debug, debug_model, scores_of  # noqa: F401
from unified.tasks.catalogue import TASKS
from unified.tasks.heads.span import SpanAnswers

#: Epochs, sequences of an update, rate, tokens of a sequence. Devlin et al. 2019, sections 4.2 and 4.3 (that of
#: ANNA says nothing); Joshi et al. 2020, appendix B; Dong et al. 2019, section 3.2; XLNet's script, whose number of
#: updates makes the epochs.
SETTINGS = {
    ("bert", "1.1"): (3, 32, 5e-5, 384),
    ("bert", "2.0"): (2, 48, 5e-5, 384),
    ("anna", "1.1"): (3, 32, 5e-5, 384),
    ("anna", "2.0"): (2, 48, 5e-5, 384),
    ("spanbert", "1.1"): (4, 32, 2e-5, 512),
    ("spanbert", "2.0"): (4, 32, 2e-5, 512),
    ("unilm", "2.0"): (3, 24, 3e-5, 384),
    ("xlnet", "1.1"): (4, 48, 3e-5, 512),
    ("xlnet", "2.0"): (3, 48, 3e-5, 512),
}


@pytest.mark.parametrize(("system", "version"), SETTINGS)
def test_settings_are_the_published_ones(system, version):
    words = (system, f"squad{version}", "DATA", "MODEL", "OUT", "--select", "best")
    first, *rest = run("python", FINETUNE, *words, PRINT="1").stdout.splitlines()
    own = ["--system", system] if system in ("spanbert", "unilm", "xlnet") else []
    assert first.split() == ["unified", "finetune", f"squad{version}", "--data", "DATA", "--init", "MODEL", "--output",
                             "OUT", *own, "--select", "best"]  # fmt: skip
    assert all(line.startswith("unified score squad 'DATA/dev-v") for line in rest)
    assert len(rest) == (1 if version == "1.1" else 2)
    entry = TASKS[f"squad{version}"].as_in(system) if own else TASKS[f"squad{version}"]
    training = entry.training
    found = training.epochs, training.batch_size, training.lr, training.max_length
    assert found == SETTINGS[system, version]
    design = system if system in ("unilm", "xlnet") else "bert"
    assert (f"design={design!r}" in entry.head) == (design != "bert")


def test_answers_are_read_as_published():
    """Devlin et al. 2019, in the settings of their script."""
    task = SpanAnswers()
    assert (task.design, task.max_query, task.stride, task.max_answer, task.nbest) == ("bert", 64, 128, 30, 20)


@pytest.mark.parametrize("system", ["bert", "unilm", "xlnet"])
def test_the_debug_run_learns_to_answer(debug, tmp_path, capsys, system):  # noqa: F811
    """Some questions ask for what the passage does not tell; results have the official scores."""
    files = debug / "squad2.0"
    start = debug_model(files, tmp_path / "model", **(XLNET if system == "xlnet" else {}))
    printed = run("python", FINETUNE, system, "squad2.0", files, start, tmp_path / "run", "--debug").stdout
    assert "cannot be learnt" not in printed
    scores = scores_of(tmp_path / "run")
    assert scores["exact"] >= 85 and scores["NoAns_total"] >= 8 and scores["NoAns_exact"] >= 60
    official, searched = (json.loads("{" + part.split("}")[0] + "}") for part in printed.split("{")[-2:])
    assert official.items() <= scores.items() and official["total"] == 40
    best = {name: value for name, value in searched.items() if name.startswith("best_")}
    assert len(best) == 4 and best.items() <= scores.items()
    # What is handed in has the score of the best threshold, and `unified predict` gives the same answers.
    assert scores["f1"] == pytest.approx(scores["best_f1"])
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["null_threshold"]["found_on"] == "valid" and 0 <= results["null_threshold"]["value"] <= 1
    handed_in = json.loads((tmp_path / "run" / "valid.predictions.json").read_text())
    (source,) = (tmp_path / "run" / "data").glob("valid.jsonl")
    predicted = [json.loads(line) for line in said(capsys, "predict", "squad2.0", source, "--model", tmp_path / "run")]
    assert {one["id"]: one["answer"] for one in predicted} == handed_in
