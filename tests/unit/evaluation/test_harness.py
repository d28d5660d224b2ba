"""Requests of lm-evaluation-harness, with and without the harness."""

import importlib.util
import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.support.tiny_models import model, vocabulary
from unified import UnifiedLM
from unified.errors import UnifiedError
from unified.evaluation.harness import HarnessModel, register
from unified.evaluation.scorings import SCORINGS
from unified.evaluation.token_scores import token_scores
from unified.evaluation.windows import window_size
from unified.tokenization.symbol_tokenizer import SymbolTokenizer


@pytest.fixture(scope="module", params=["left_to_right", "nothing", "next"])
def folder(request, tmp_path_factory):
    """A model that continues prompts, one that fills blanks alone, and one that writes targets of sources."""
    folder, words = tmp_path_factory.mktemp(request.param), vocabulary()
    UnifiedLM(model(), words, SymbolTokenizer(words.symbols), request.param, folder).save(folder)
    return folder


def asked(*args):
    return SimpleNamespace(args=args)


def test_a_continuation_is_scored_behind_its_context_and_an_empty_context_scores_all(folder):
    adapter = HarnessModel(str(folder), batch_size="auto", device="cpu")
    lm, name = adapter.lm, adapter.scoring.name
    assert name == ("pseudo_likelihood" if lm.writes == "nothing" else "left_to_right")
    pairs = [("w1 w2", " w3 w4"), ("", "w5 w6 w7"), ("w1 ", "w2")]
    found = adapter.loglikelihood([asked(*pair) for pair in pairs])
    for (total, _), (context, continuation) in zip(found, pairs, strict=True):
        tokens, given = np.array(lm.encode(context + continuation)), len(lm.encode(context))
        [wanted] = token_scores(lm, [tokens], SCORINGS[name], given=[given])
        assert total == pytest.approx(wanted.total, abs=1e-5)
    words = [f"w{i}" for i in range(12)]
    scored = adapter.loglikelihood([asked("w1 w2", f" {word}") for word in words])
    greedy = [word for word, (_, best) in zip(words, scored, strict=True) if best]
    assert greedy in ([], [words[int(np.argmax([total for total, _ in scored]))]])


def test_a_context_that_is_too_long_loses_its_first_tokens(folder):
    adapter = HarnessModel(str(folder))
    size = window_size(adapter.lm, adapter.scoring)
    long, kept = (" ".join(f"w{i % 12}" for i in range(start, 60)) for start in (0, 60 + 2 - size))
    whole, cut = (adapter.loglikelihood([asked(context, " w3 w4")])[0][0] for context in (long, kept))
    assert whole == pytest.approx(cut, abs=1e-6)


def test_a_continuation_that_is_longer_than_what_the_model_reads_is_refused(folder):
    adapter = HarnessModel(str(folder))
    size = window_size(adapter.lm, adapter.scoring)
    longest = " ".join(["w3"] * size)
    assert adapter.loglikelihood([asked("", longest)]) == adapter.loglikelihood([asked("w1 w2", f" {longest}")])
    message = f"the continuation ' w3 w3 .*: {size + 1} tokens; max_length 48 has room for {size}$"
    with pytest.raises(UnifiedError, match=message):
        adapter.loglikelihood([asked("w1", " w2"), asked("w1 w2", f" {longest} w4")])


@pytest.mark.parametrize("continuation", ["", " "])
def test_a_continuation_without_a_token_is_refused_as_it_would_be_certain(folder, continuation):
    adapter = HarnessModel(str(folder))
    with pytest.raises(UnifiedError) as caught:
        adapter.loglikelihood([asked("w1", " w2"), asked("w1 w2", continuation), asked("", continuation)])
    where = ", ".join(f"the continuation {continuation!r} of {context!r}" for context in ("w1 w2", ""))
    assert caught.value.details == f"2 times ({where}): no token to score"


def test_long_texts_are_scored_in_windows_that_do_not_overlap_but_for_the_last(folder):
    adapter = HarnessModel(str(folder))
    words = [f"w{(5 * i) % 12}" for i in range(100)]
    [found] = adapter.loglikelihood_rolling([asked(" ".join(words))])
    size = window_size(adapter.lm, adapter.scoring)
    context = " ".join(words[100 - size : 2 * size])
    parts = [("", words[:size]), ("", words[size : 2 * size]), (context, words[2 * size :])]
    requests = [asked(context, " " * bool(context) + " ".join(own)) for context, own in parts]
    assert found == pytest.approx(sum(total for total, _ in adapter.loglikelihood(requests)), abs=1e-4)


def test_generated_texts_end_before_what_a_task_names(folder):
    adapter = HarnessModel(str(folder))
    lm = adapter.lm
    if lm.writes == "nothing":
        with pytest.raises(UnifiedError, match="does not generate"):
            adapter.generate_until([asked("w1 w2", {})])
        return
    contexts = ["w1 w2", "w3"]
    [first, second] = lm.generate(contexts, beam=1, max_length=6)
    if lm.writes == "left_to_right":
        first, second = first.removeprefix("w1 w2"), second.removeprefix("w3")
    settings = {"max_gen_toks": 6, "until": []}
    assert adapter.generate_until([asked(one, settings) for one in contexts]) == [first, second]
    end = first.split()[2]
    stopped = adapter.generate_until([asked("w1 w2", settings), asked("w1 w2", {**settings, "until": [end]})])
    assert stopped == [first, first.split(end)[0]] and end not in stopped[1]
    drawn = {"do_sample": True, "temperature": 0.7, "max_gen_toks": 6}
    assert len(adapter.generate_until([asked("w1", drawn)])[0].split()) <= 6


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_the_default_device_of_the_harness_is_the_cpu_where_there_is_no_gpu(folder, capsys):
    assert HarnessModel(str(folder), device="cuda:0").lm.device.type == "cpu"
    assert capsys.readouterr().err.startswith("note: no GPU on this machine for the device cuda:0")
    assert HarnessModel(str(folder), device="cpu").lm.device.type == "cpu" and not capsys.readouterr().err


def test_scorings_that_do_not_know_a_context_are_refused(folder):
    for name in ("right_to_left", "both"):
        with pytest.raises(UnifiedError, match="requests have a context; take one of left_to_right, pseudo_"):
            HarnessModel(str(folder), scoring=name)


TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{validation: {file}}}}}
validation_split: validation
num_fewshot: 0
"""
CHOICE = """
output_type: multiple_choice
doc_to_text: "{{text}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{label}}"
metric_list: [{metric: acc}]
"""
ROLLING = """
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: word_perplexity}]
"""
WRITING = """
output_type: generate_until
doc_to_text: "{{text}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["w0"], max_gen_toks: 4}
metric_list: [{metric: exact_match}]
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("lm_eval") is None, reason="lm_eval is not installed (extra 'harness')")
def test_the_harness_runs_tasks_of_local_files(folder, tmp_path, monkeypatch):
    """Each kind of request on a task of our own: what the harness reports is what our scores say."""
    for name in ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    import lm_eval
    from lm_eval.tasks import TaskManager

    rows = [
        {"text": f"w{i} w{i + 1}", "choices": ["w3", "w5 w6", "w7"], "label": i % 3, "answer": "w1"} for i in range(5)
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    adapter = HarnessModel(str(folder))
    kinds = {"own_choice": CHOICE, "own_rolling": ROLLING, "own_writing": WRITING}
    if adapter.lm.writes == "nothing":
        del kinds["own_writing"]
    for name, text in kinds.items():
        (tmp_path / f"{name}.yaml").write_text(TASK.format(name=name, file=tmp_path / "rows.json") + text)
    assert issubclass(register(), HarnessModel) and register() is register()
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
    run = partial(
        lm_eval.simple_evaluate,
        model="unified",
        model_args={"pretrained": str(folder), "device": "cpu"},
        tasks=list(kinds),
        device="cuda:0",  # as the command line passes it where the user does not
        batch_size=1,
        task_manager=manager,
        bootstrap_iters=0,
    )
    with pytest.raises(UnifiedError, match="^apply_chat_template: "):
        run(apply_chat_template=True)
    results = run()
    assert results["config"]["scoring"] == adapter.scoring.name
    found = results["results"]

    right = 0
    for row in rows:
        scored = adapter.loglikelihood([asked(row["text"], f" {choice}") for choice in row["choices"]])
        right += int(np.argmax([total for total, _ in scored])) == row["label"]
    assert found["own_choice"]["acc,none"] == pytest.approx(right / len(rows))
    nats = -sum(adapter.loglikelihood_rolling([asked(row["text"]) for row in rows]))
    assert found["own_rolling"]["word_perplexity,none"] == pytest.approx(np.exp(nats / 10), rel=1e-5)
    if "own_writing" in kinds:
        settings = {"until": ["w0"], "max_gen_toks": 4}
        written = adapter.generate_until([asked(row["text"], settings) for row in rows])
        wanted = sum(text == "w1" for text in written) / len(rows)
        assert found["own_writing"]["exact_match,none"] == pytest.approx(wanted)
