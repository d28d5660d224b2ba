"""Tables of the lines of the queue: means over seeds, what is missing, and what belongs to an earlier run."""

from __future__ import annotations

from types import ModuleType

from tests.recipes.test_queue import QUEUE
from tests.recipes.test_recipes import load
from tests.support.queue_lines import queue_line


def test_the_page_of_results_holds_what_the_lines_give():
    tables = load(QUEUE.with_name("tables.py"))
    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.with_sections(page, QUEUE.with_name("results")) == page


def test_tables_have_means_over_seeds_and_say_what_is_missing(tmp_path):
    tables = load(QUEUE.with_name("tables.py"))
    plan = tables.Plan(tables.plan.ENTRIES)
    for seed, ours, recipe in ((1, 60.0, None), (2, 64.0, None), (3, 80.0, "an earlier one")):
        name = f"parity/rte-{seed}"
        figures = {"ours.valid.accuracy": ours, "transformers.valid.accuracy": 61.0}
        line = queue_line(name, "parity", recipe or plan.recipes[name], seed=seed, figures=figures)
        load(QUEUE.with_name("lines.py")).append_line(tmp_path, line)
    rows = tables.section("parity", tmp_path).splitlines()
    # Two seeds are too few for a difference.
    assert "| rte | accuracy | 62.0 ± 2.8 (2) | 61.0 ± 0.0 (2) |  |  |  |" in rows
    assert "Without a line: cola; wnut17; stsb; mrpc; codah; semeval2010; squad2.0." in rows
    for seed, ours in ((1, 68.0), (2, 70.0), (3, 72.0)):
        figures = {"ours.valid.accuracy": ours, "transformers.valid.accuracy": 61.0}
        line |= {"name": f"parity/rte-{seed}", "recipe": plan.recipes[f"parity/rte-{seed}"], "figures": figures}
        load(QUEUE.with_name("lines.py")).append_line(tmp_path / "all", line)
    half = 4.302653 * 2 / 3**0.5  # Student's t with two degrees of freedom, as the peer has no spread
    own = f"| rte | accuracy | 70.0 ± 2.0 (3) | 61.0 ± 0.0 (3) | +9.0 | [{9 - half:+.1f}, {9 + half:+.1f}]"
    assert f"{own} | missing |" in tables.section("parity", tmp_path / "all").splitlines()
    line |= {"name": "parity/rte/compared", "recipe": plan.recipes["parity/rte/compared"]}
    line |= {"figures": {"against.intervals.accuracy": [-1.04, 19.0]}}
    load(QUEUE.with_name("lines.py")).append_line(tmp_path / "all", line)
    assert f"{own} | [-1.0, +19.0] |" in tables.section("parity", tmp_path / "all").splitlines()
    assert rows[-1] == "2 lines of 2026-01-02; P, threads 1; torch 2; commits 000000000."
    beside = {row.split(" | ")[0]: row.split(" | ")[1:] for row in tables.section("published", tmp_path).splitlines()}
    published, ours, _ = beside["| rte"]
    assert "BERT: accuracy 70.4" in published and ours == "accuracy 62.0 ± 2.8 (2)"
    assert beside["| race"][1] == "" and beside["| cola"][1] == "missing"


def test_lines_of_an_earlier_training_are_named_where_it_gave_other_figures_later():
    tables, plan = load(QUEUE.with_name("tables.py")), load(QUEUE.with_name("plan.py"))
    plan = load(QUEUE.with_name("entries.py")).Plan(plan.ENTRIES)

    def line(name: str, **figures: float) -> dict:
        return queue_line(f"objectives/{name}", "objectives", plan.recipes[f"objectives/{name}"], figures=figures)

    first = [line("bert-1", loss=2.0), line("bert-1/perplexity"), line("untrained-1", loss=9.0)]
    for loss, expected in ((2.0, ""), (2.1, "objectives/bert-1 (perplexity, cola).")):
        old = line("bert-1", loss=7.0) | {"recipe": "older"}  # no run of the plan of now
        found = [
            old,
            *first,
            line("untrained-1/cola"),
            line("bert-1/cola"),
            line("bert-1", loss=loss),
            line("bert-1/rte"),
        ]
        shown = tables.latest(found, plan.recipes)
        text = tables.of_earlier_runs(found, shown, plan.entries)
        assert text.rpartition("repeated: ")[2] == expected and (": " in text) == bool(expected)


def test_bars_in_cells_of_tables_are_escaped():
    tables = load(QUEUE.with_name("tables.py"))
    rows = [["p(a|b)", "1.0"]]
    assert tables.table(["what", "value"], 1, rows).splitlines()[-1] == "| p(a\\|b) | 1.0 |"


def test_the_table_of_written_texts_has_the_measures_of_each_task(tmp_path):
    """Questions of the whole set are read from their scores, comparisons by the split that each task is scored on."""
    tables, lines = load(QUEUE.with_name("tables.py")), load(QUEUE.with_name("lines.py"))
    plan = tables.Plan(tables.plan.ENTRIES)
    blank = dict.fromkeys(("rouge2", "rougeL", "repeated_bigrams", "source_words"), 0.0)

    def scored(prefix: str, **more: float) -> dict[str, float]:
        return {f"{prefix}.{measure}": value for measure, value in (blank | more).items()}

    figures = {
        "generation/squad_qg_sentence-1": scored("test", bleu4=1.0),
        "generation/squad_qg_sentence-1/scores": scored("sentences", bleu4=9.0, meteor=12.0)
        | scored("sources", bleu4=2.0, meteor=2.0),
        "generation/equal/squad_qg_sentence-1": scored("ours.valid", bleu4=3.0)
        | scored("ours.test", bleu4=4.0)
        | scored("lead.test", bleu4=5.0)
        | scored("transformers.test", bleu4=6.0),
        "generation/equal/reuters-1": scored("ours.valid", rouge1=30.0)
        | scored("transformers.valid", rouge1=20.0)
        | scored("lead.valid", rouge1=25.0),
        "generation/equal/reuters-2": scored("ours.valid", rouge1=32.0)
        | scored("transformers.valid", rouge1=20.0)
        | scored("lead.valid", rouge1=25.0),
    }
    differences = {"against.differences.rouge1": 5.04, "against.intervals.rouge1": [-1.0, 11.06]}
    for measure in ("rouge2", "rougeL", "repeated_bigrams", "source_words"):
        differences |= {f"against.differences.{measure}": 0.0, f"against.intervals.{measure}": [0.0, 0.0]}
    figures["generation/equal/reuters-1/compared"] = {
        f"{run}.{name}": value for run in ("transformers", "lead") for name, value in differences.items()
    }
    for name, found in figures.items():
        lines.append_line(tmp_path, queue_line(name, "generation", plan.recipes[name], figures=found))
    text = tables.section("generation", tmp_path)
    rows = [row.split("|")[1:-1] for row in text.splitlines()]
    cells = {tuple(map(str.strip, row[:2])): list(map(str.strip, row[2:])) for row in rows}
    heads = cells["task", "written by"]
    bleu, meteor, rouge = (heads.index(head) for head in ("BLEU-4", "METEOR", "ROUGE-1"))
    whole = cells["squad_qg_sentence, 4 epochs", "ours"]
    assert (whole[bleu], whole[meteor], whole[rouge]) == ("9.0 (1)", "12.0 (1)", "")
    assert ("squad_qg_sentence, 4 epochs", "copied sentence") not in cells
    stages = ("2 million tokens by unilm", "2 million tokens by prefix_lm", "27,463 more questions of QAMR and SQuAD")
    whole_set = f"squad_qg_sentence, 4 epochs (copied sentence, {', '.join(f'ours after {stage}' for stage in stages)})"
    questions = "squad_qg_sentence, equal updates (ours less transformers)"
    assert (
        f"Without a line: {whole_set}; {questions}; aeslc, equal updates; scitldr, equal updates; aeslc, 4 epochs; "
        "scitldr, 12 epochs." in text
    )
    assert cells["squad_qg_sentence, equal updates", "ours"][meteor] == ""
    assert cells["squad_qg_sentence, equal updates", "ours"][bleu] == "4.0 (1)"
    assert cells["squad_qg_sentence, equal updates", "copied sentence"][bleu] == "5.0 (1)"
    assert cells["reuters, equal updates", "ours"][rouge] == "31.0 ± 1.4 (2)"
    assert cells["reuters, equal updates", "transformers"][rouge] == "20.0 ± 0.0 (2)"
    assert cells["reuters, equal updates", "ours less transformers"][rouge] == "+5.0 [-1.0, +11.1]"
    assert ("squad_qg_sentence, equal updates", "ours less transformers") not in cells
    assert "| bleu4 9.0 (1), meteor 12.0 (1), rougeL 0.0 (1) | " in tables.section("published", tmp_path)


def test_differences_of_made_questions_stand_seed_by_seed(tmp_path):
    tables = load(QUEUE.with_name("tables.py"))
    plan, append = tables.Plan(tables.plan.ENTRIES), load(QUEUE.with_name("lines.py")).append_line
    measures = ("exact", "f1", "HasAns_f1", "NoAns_f1")
    scores = {f"{run}.valid.{one}": 40.0 + place for place, run in enumerate(tables.questions.RUNS) for one in measures}
    append(tmp_path, queue_line("questions/medium-2", "questions", plan.recipes["questions/medium-2"], figures=scores))
    assert "On the same questions" not in tables.section("questions", tmp_path)
    figures = {}
    for place, (one, other) in enumerate(tables.questions.COMPARED):
        own = f"{one}-less-{other}.against"
        figures |= {f"{own}.differences.best_f1": float(place), f"{own}.intervals.best_f1": [-1.0, 9.0]}
        figures |= {f"{own}.differences.HasAns_f1": -float(place), f"{own}.intervals.HasAns_f1": [-9.0, 1.0]}
    name = "questions/medium-2/compared"
    append(tmp_path, queue_line(name, "questions", plan.recipes[name], figures=figures))
    rows = tables.section("questions", tmp_path).splitlines()
    few, many = (tables.questions.NAMES[run] for run in ("few", "many"))
    assert f"| {many}, less {few} | all questions | missing | +1.0 [-1.0, +9.0] | missing |" in rows
    assert f"| {many}, less {few} | the answerable, all answered | missing | -1.0 [-9.0, +1.0] | missing |" in rows
    assert f"| {few} | 42.0 (1) | 42.0 (1) | 42.0 (1) | 42.0 (1) |" in rows


def test_a_row_with_a_figure_says_which_others_it_lacks(tmp_path):
    """An objective with two ways of scoring, of which perplexity alone is measured."""
    tables = load(QUEUE.with_name("tables.py"))
    name = "objectives/xlnet-1/perplexity"
    figures = {"pseudo_likelihood.bits_per_character": 2.164, "left_to_right.bits_per_character": 2.5}
    line = queue_line(name, "objectives", tables.Plan(tables.plan.ENTRIES).recipes[name], figures=figures)
    load(QUEUE.with_name("lines.py")).append_line(tmp_path, line)
    rows = tables.section("objectives", tmp_path).splitlines()
    lacking = " missing |" * (len(tables.objectives.MEASURES) + 2)
    assert f"| xlnet | pseudo_likelihood | missing | 2.16 (1) |{lacking}" in rows
    assert f"| xlnet | left_to_right | missing | 2.50 (1) |{'  |' * (len(tables.objectives.MEASURES) + 2)}" in rows
    assert sum("xlnet" in row for row in rows) == 2 and any(
        row.startswith("Without a line: random_spans; ") for row in rows
    )


def comparison_module() -> ModuleType:
    """The tables of objectives; tables.py first makes the modules known by their names."""
    load(QUEUE.with_name("tables.py"))
    return load(QUEUE.with_name("comparison.py"))


def test_minutes_of_several_processors_are_not_averaged():
    comparison = comparison_module()
    names = ("Intel(R) Xeon(R) Processor @ 2.50GHz", "AMD EPYC", "Intel(R) Xeon(R) Processor @ 2.50GHz")
    lines = [{"machine": {"processor": name}, "seconds": 60.0 * (2 + i)} for i, name in enumerate(names)]
    lines.append({"machine": {"processor": "AMD EPYC", "gpu": "NVIDIA H200"}, "seconds": 30.0})
    found = comparison.minutes(lines, "seconds")
    assert found == "3.0 ± 1.4 (2) Intel Xeon 2.50GHz; 3.0 (1) AMD EPYC; 0.5 (1) NVIDIA H200"
    assert comparison.minutes([], "seconds") == "missing"


def test_own_losses_are_named_where_an_objective_has_several():
    own_losses = comparison_module().own_losses
    assert own_losses([]) == "missing"
    assert own_losses([{"valid_loss": 9.0, "valid_bert_loss": 8.25, "valid_bert_accuracy": 19.0}]) == "8.25 (1)"
    two = [
        {"valid_loss": 9.0, "valid_best_loss": 8.0, "valid_bert_loss": loss, "valid_bert_next_sentence_loss": 1.0}
        for loss in (8.0, 9.0)
    ]
    assert own_losses(two) == "bert 8.50 ± 0.71 (2); bert_next_sentence 1.00 ± 0.00 (2)"
