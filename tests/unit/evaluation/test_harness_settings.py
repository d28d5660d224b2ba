"""What the adapter for lm-evaluation-harness makes of its settings and those of requests, and how it is registered."""

import re
import runpy
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from tests.support.tiny_models import model, vocabulary
from tests.unit.evaluation.test_harness import asked
from unified import UnifiedLM
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.evaluation import harness
from unified.evaluation.harness import NAME, WITH_CONTEXT, HarnessModel
from unified.evaluation.patterns import Sampling
from unified.evaluation.scorings import SCORINGS
from unified.evaluation.token_scores import token_scores
from unified.evaluation.windows import scores_in_windows
from unified.generation.lengths import PairLengths
from unified.tokenization import ordinary_symbols
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

CHECKOUT = Path(__file__).parents[3]


def saved(folder, writes: str = "next", objectives: str = "", **changes):
    words = vocabulary()
    lm = UnifiedLM(model(**changes), words, SymbolTokenizer(words.symbols), writes, folder)
    lm.objectives = objectives
    lm.save(folder)
    return str(folder)


def test_every_scoring_that_knows_a_context_is_taken(tmp_path):
    folder = saved(tmp_path / "model")
    assert set(WITH_CONTEXT) == set(SCORINGS) - {"right_to_left"}
    for name in WITH_CONTEXT:
        assert HarnessModel(folder, scoring=name).scoring is SCORINGS[name]
    stream = saved(tmp_path / "stream", "permutation", positions="relative")
    with pytest.raises(UnifiedError, match="scoring 'shifted' reads a token at the symbol before it"):
        HarnessModel(stream, scoring="shifted")


@pytest.mark.parametrize(
    ("writes", "objectives", "scoring"),
    [
        ("next", "", "left_to_right"),
        ("next", "random_spans", "infilling"),
        ("next", "mass_style", "left_to_right"),  # nothing has taught any
        ("left_to_right", "right_to_left,bidirectional", "pseudo_likelihood"),
    ],
)
def test_without_a_name_the_first_scoring_that_the_model_has_learnt_is_taken(tmp_path, writes, objectives, scoring):
    adapter = HarnessModel(saved(tmp_path / "model", writes, objectives))
    assert adapter.lm.objectives == objectives and adapter.scoring.name == scoring


def test_what_is_drawn_follows_the_number_and_the_seed(tmp_path):
    folder = saved(tmp_path / "model", "nothing")
    adapter = HarnessModel(folder, scoring="permutation", draws=3, seed=7)
    assert adapter.sampling == Sampling(3, 7) and HarnessModel(folder).sampling == Sampling()
    text = adapter.lm.encode("w1 w2 w3 w4")
    (alone,) = token_scores(adapter.lm, [text], SCORINGS["permutation"], given=[2], sampling=Sampling(3, 7))
    ((total, _),) = adapter.loglikelihood([asked("w1 w2", " w3 w4")])
    assert total == pytest.approx(alone.total, abs=1e-6)
    long = adapter.lm.encode(" ".join(f"w{i % 12}" for i in range(60)))
    size = 46
    (whole,) = scores_in_windows(adapter.lm, [long], SCORINGS["permutation"], size, size, Sampling(3, 7))
    (found,) = adapter.loglikelihood_rolling([asked(adapter.lm.decode(long))])
    assert found == pytest.approx(whole.total, abs=1e-4)


def test_what_continues_a_prompt_begins_behind_it_however_both_are_spelt(tmp_path):
    """A mark at the end of the prompt may join what is written: "well -" becomes "well-known"."""
    tokenizer = TokenizerSource(name="wordpiece").train(['the well-known 3.5 "u.s." men don\'t (see) .'] * 20)
    words = Vocabulary(ordinary_symbols(tokenizer))
    own = model(words=len(words) - len(Vocabulary([])), seed=4)
    UnifiedLM(own, words, tokenizer, "left_to_right", tmp_path).save(tmp_path / "model")
    adapter = HarnessModel(str(tmp_path / "model"))
    prompts = ["the well-", "3.", "don'", '"', "(", "u.s.", "the men", "the u", ""]
    for prompt in prompts:
        (found,) = adapter.generate_until([asked(prompt, {"max_gen_toks": 12})])
        (whole,) = adapter.lm.generate([prompt], beam=1, max_length=12)
        start = adapter.lm.decode(adapter.lm.encode(prompt))
        assert whole.endswith(found) and "".join((start + found).split()) == "".join(whole.split())
        assert len(found) >= 12


def test_the_size_of_a_batch_and_the_device(tmp_path, monkeypatch):
    folder, devices, load = saved(tmp_path / "model"), [], UnifiedLM.from_pretrained

    def loading(pretrained, device):
        devices.append(device)
        return load(pretrained, device="cpu")

    monkeypatch.setattr(UnifiedLM, "from_pretrained", loading)
    sizes = {"7": 7, 9: 9, "auto": 32, "auto:4": 32, None: 32}
    assert {size: HarnessModel(folder, batch_size=size).batch_size for size in sizes} == sizes
    assert devices == ["cpu"] * len(sizes)
    HarnessModel(folder, device="mps")
    assert devices[-1] == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    HarnessModel(folder, device="cuda:1")
    assert devices[-1] == "cuda:1"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (24, False, 1.0, 1.0, 0)),  # half of 48 positions
        ({"max_gen_toks": "5", "until": ["w0"]}, (5, False, 1.0, 1.0, 0)),
        ({"max_gen_toks": 40}, (24, False, 1.0, 1.0, 0)),
        ({"do_sample": True, "temperature": "0.5", "top_p": 0.25, "top_k": 3.0}, (24, True, 0.5, 0.25, 3)),
        ({"max_new_tokens": 5}, (5, False, 1.0, 1.0, 0)),
        ({"max_completion_tokens": 3, "max_tokens": 4.0, "max_new_tokens": None}, (4, False, 1.0, 1.0, 0)),
        ({"max_completion_tokens": 3, "max_new_tokens": 5, "max_gen_toks": 6}, (6, False, 1.0, 1.0, 0)),
        ({"do_sample": True}, (24, True, 1.0, 1.0, 0)),
        ({"temperature": 0.5, "do_sample": None, "top_p": None}, (24, True, 0.5, 1.0, 0)),
        ({"temperature": "0", "top_k": 3}, (24, False, 1.0, 1.0, 0)),
        ({"top_k": 3}, (24, False, 1.0, 1.0, 0)),
        ({"do_sample": True, "temperature": 1}, (24, True, 1.0, 1.0, 0)),
        ({"do_sample": True, "temperature": 0.0, "top_p": 0.25}, (24, False, 1.0, 1.0, 0)),
        ({"do_sample": False, "temperature": 0.5, "top_k": 3}, (24, False, 1.0, 1.0, 0)),
    ],
)
def test_settings_of_requests_that_generate(tmp_path, monkeypatch, settings, expected):
    adapter, calls, generate = HarnessModel(saved(tmp_path / "model"), batch_size=5, seed=7), [], UnifiedLM.hypotheses

    def generating(self, sources, config, **options):
        calls.append((config, options))
        return generate(self, sources, config, **options)

    monkeypatch.setattr(UnifiedLM, "hypotheses", generating)
    assert len(adapter.generate_until([asked("w1 w2", settings)])) == 1
    ((config, options),) = calls
    found = config.max_length, config.sampling, config.temperature, config.top_p, config.top_k
    assert found == expected and config.beam == 1 and options == {"batch_size": 5}
    assert config.seed == (7 if config.sampling else 0)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"max_gen_toks": "many"}, "max_gen_toks must be an integer of at least 1, got 'many'"),
        ({"max_gen_toks": 2.5}, "max_gen_toks must be an integer of at least 1, got 2.5"),
        ({"max_new_tokens": 0}, "max_new_tokens must be an integer of at least 1, got 0"),
        ({"temperature": "high"}, "temperature must be a number, got 'high'"),
        ({"do_sample": True, "top_k": 2.5}, "top_k must be an integer, got 2.5"),
        ({"do_sample": True, "top_p": 2}, "top_p must be above 0 and at most 1, got 2"),
        ({"until": 5}, "until: expected a list of texts, got int 5"),
        ({"until": ["w0", 5]}, r"until\[1\]: expected one text, got int 5"),
    ],
)
def test_a_setting_of_a_request_that_is_no_such_value_is_refused(tmp_path, settings, says):
    adapter = HarnessModel(saved(tmp_path / "model"))
    with pytest.raises(UnifiedError, match=f"^{says}$"):
        adapter.generate_until([asked("w1 w2", settings)])


def test_settings_of_requests_that_are_not_read_are_named_once(tmp_path, capsys):
    adapter = HarnessModel(saved(tmp_path / "model"))
    read = {"max_gen_toks": 4, "until": ["w0"], "do_sample": False, "temperature": 0.0, "top_p": 1.0, "top_k": 3}
    read |= {"max_new_tokens": 4, "max_tokens": 4, "max_completion_tokens": 4, "typical_p": None}
    capsys.readouterr()
    adapter.generate_until([asked("w1", read)])
    assert not capsys.readouterr().err
    adapter.generate_until([asked(text, {**read, "num_beams": 4, "length_penalty": 1.2}) for text in ("w1", "w2")])
    assert capsys.readouterr().err == "note: generation settings that are not read: length_penalty, num_beams\n"


def test_drawn_texts_follow_the_seed_and_differ_where_a_request_is_repeated(tmp_path):
    folder, drawn = saved(tmp_path / "model", "left_to_right"), {"temperature": 1.0, "max_gen_toks": 8}
    one, again, other = (HarnessModel(folder, seed=seed).generate_until([asked("w1", drawn)] * 3) for seed in (3, 3, 4))
    assert one == again and one != other and len(set(one)) == 3


def test_a_scoring_that_the_model_has_not_learnt_is_noted(tmp_path, capsys):
    folder = saved(tmp_path / "model", "left_to_right")
    HarnessModel(folder, device="cpu", scoring="pseudo_likelihood")
    assert not capsys.readouterr().err
    HarnessModel(folder, device="cpu", scoring="diffusion")
    assert capsys.readouterr().err.startswith("note: scoring 'diffusion': the model has not learnt it (a model that ")


def test_results_of_the_harness_say_how_the_model_was_asked(tmp_path):
    folder = saved(tmp_path / "model", "left_to_right")
    assert HarnessModel(folder).get_model_info() == {"scoring": "left_to_right", "max_length": 48}
    own = HarnessModel(folder, scoring="diffusion", draws=3, seed=7, max_length=24)
    assert own.get_model_info() == {"scoring": "diffusion", "max_length": 24, "draws": 3, "seed": 7}


def test_model_args_come_before_the_options_that_the_harness_always_passes(tmp_path, monkeypatch):
    installed(monkeypatch)
    folder, own = saved(tmp_path / "model"), harness.register()
    options = {"batch_size": 1, "max_batch_size": None, "device": "nowhere"}
    found = own.create_from_arg_obj({"pretrained": folder, "device": "cpu", "trust_remote_code": True}, options)
    assert type(found) is own and found.batch_size == 1 and found.lm.device.type == "cpu"
    assert own.create_from_arg_obj({"pretrained": folder, "batch_size": 4}, {"batch_size": 1}).batch_size == 4
    assert own.create_from_arg_obj({"pretrained": folder}).batch_size == 32


def test_chat_templates_are_refused(tmp_path, monkeypatch):
    installed(monkeypatch)
    with pytest.raises(UnifiedError, match="^apply_chat_template: the model has no chat template; leave"):
        _ = harness.register()(saved(tmp_path / "model")).tokenizer_name


@pytest.mark.parametrize(
    ("writes", "lengths", "read"),
    [
        ("cloze", PairLengths(5, 0, 9), slice(None, 5)),  # of sources the first tokens, as many as in training
        ("next", PairLengths(), slice(None, 48 - 8 - 3)),  # or as the positions leave
        ("left_to_right", PairLengths(5, 0, 9), slice(-(48 - 8 - 3), None)),  # of prompts the last ones
    ],
)
def test_a_long_context_is_read_as_sources_are_in_training_or_up_to_its_end(tmp_path, writes, lengths, read):
    adapter = HarnessModel(saved(tmp_path, writes))
    lm = adapter.lm
    lm.lengths = lengths
    words = [f"w{(7 * i) % 12}" for i in range(60)]
    settings = {"max_gen_toks": 8}
    expectation = nullcontext() if writes == "left_to_right" else pytest.warns(UserWarning, match="^1 of 1 texts have ")
    with expectation:
        (found,) = adapter.generate_until([asked(" ".join(words), settings)])
    (alone,) = adapter.generate_until([asked(" ".join(words[read]), settings)])
    assert found == alone
    prompt = " ".join(words[read])
    (written,) = lm.generate([prompt], beam=1, max_length=8)
    assert found == (written.removeprefix(prompt) if writes == "left_to_right" else written)


def test_256_tokens_are_written_where_a_task_says_nothing(tmp_path, monkeypatch):
    adapter, lengths = HarnessModel(saved(tmp_path / "model", positions="rotary"), max_length=600), []

    def generating(self, sources, config, **options):
        lengths.append(config.max_length)
        return [[SimpleNamespace(tokens=torch.tensor([5]))] for _ in sources]

    monkeypatch.setattr(UnifiedLM, "hypotheses", generating)
    assert adapter.generate_until([asked("w1", {}), asked("w2", {"max_gen_toks": 300})]) == ["w1", "w1"]
    assert lengths == [256, 300]


def scored(lm, context: str, continuation: str, last: int | None = None) -> float:
    """The score of a continuation behind the last tokens of its context, of all or of so many tokens together."""
    tokens = np.array(lm.encode(f"{context} {continuation}"))
    (found,) = token_scores(lm, [tokens[-(last or 0) :]], SCORINGS["left_to_right"], given=[(last or len(tokens)) - 2])
    return found.total


@pytest.mark.parametrize("positions", ["learned", "rotary", "relative"])
def test_contexts_that_are_longer_than_what_the_model_has_learnt_lose_their_beginning_and_are_counted(
    tmp_path, capsys, positions
):
    """Positions in attention set no limit; what the model has learnt does, unless ``max_length`` says another one."""
    folder = saved(tmp_path / "model", "left_to_right", positions=positions)
    long, fitting = (" ".join(f"w{(5 * i) % 12}" for i in range(length)) for length in (60, 44))
    requests = [asked(long, " w3 w4"), asked(fitting, " w3 w4"), asked(f"w7 {fitting}", " w3 w4")]
    beyond = [(70, 68)] if positions != "learned" else []
    for given, read in ((None, 46), (48, 46), (24, 22), *beyond):
        adapter = HarnessModel(folder, max_length=given)
        capsys.readouterr()
        found = adapter.loglikelihood(requests)
        lost = [62 > read, 46 > read, 47 > read]
        expected = [
            scored(adapter.lm, request.args[0], "w3 w4", read if cut else None)
            for request, cut in zip(requests, lost, strict=True)
        ]
        assert [total for total, _ in found] == pytest.approx(expected, abs=1e-5)
        says = f"note: {sum(lost)} of 3 requests lose the first tokens of the context, as they have more than {read} "
        says += f"tokens; max_length in model_args, now {given or 48}, decides that\n"
        assert capsys.readouterr().err == (says if any(lost) else "")


def test_a_continuation_may_be_as_long_as_max_length_where_positions_set_no_limit(tmp_path):
    folder = saved(tmp_path / "model", "left_to_right", positions="rotary")
    continuation = " ".join(["w3"] * 50)
    with pytest.raises(UnifiedError, match="^the continuation .*: 50 tokens; max_length 48 has room for 46$"):
        HarnessModel(folder).loglikelihood([asked("", continuation)])
    adapter = HarnessModel(folder, max_length=52)
    (alone,) = token_scores(adapter.lm, [np.array(adapter.lm.encode(continuation))], SCORINGS["left_to_right"])
    ((total, _),) = adapter.loglikelihood([asked("", continuation)])
    assert total == pytest.approx(alone.total, abs=1e-4)


def test_windows_of_long_texts_have_max_length_or_as_many_tokens_as_those_of_perplexity(tmp_path):
    folder = saved(tmp_path / "model", "left_to_right", positions="rotary")
    text = " ".join(f"w{(5 * i) % 12}" for i in range(100))
    for given, size in ((None, 512), (24, 22), (80, 78)):
        adapter = HarnessModel(folder, max_length=given)
        tokens = [np.array(adapter.lm.encode(text))]
        (wanted,) = scores_in_windows(adapter.lm, tokens, SCORINGS["left_to_right"], size, size)
        assert adapter.loglikelihood_rolling([asked(text)]) == [pytest.approx(wanted.total, abs=1e-4)]


def test_max_length_has_room_for_a_token_and_is_at_most_what_a_table_of_positions_has(tmp_path):
    folder = saved(tmp_path / "model")
    for given, says in (
        (49, "max_length 49: the model has 48 positions"),
        (3, "max_length must be an integer of at least 4, got 3"),
        ("all", "max_length must be an integer of at least 4, got 'all'"),
    ):
        with pytest.raises(UnifiedError, match=f"^{says}$"):
            HarnessModel(folder, max_length=given)
    assert HarnessModel(folder, max_length=4).loglikelihood([asked("w1", " w2")])


@pytest.mark.parametrize(
    ("given", "read", "written"),
    [(None, 48 - 8 - 3, 8), (24, 24 - 8 - 3, 8), (70, 59, 8), (6, 0, 3)],
)
def test_prompts_that_are_too_long_are_counted_and_so_are_fewer_tokens_than_a_task_wants(
    tmp_path, capsys, given, read, written
):
    folder = saved(tmp_path / "model", "left_to_right", positions="rotary")
    adapter = HarnessModel(folder, max_length=given)
    words = [f"w{(7 * i) % 12}" for i in range(60)]
    capsys.readouterr()
    found = adapter.generate_until([asked(" ".join(words), {"max_gen_toks": 8}), asked("", {"max_gen_toks": 8})])
    told = capsys.readouterr().err.splitlines()
    few = f"note: at most {written} tokens are written, half of max_length {given}; max_gen_toks is 8"
    cut = f"note: 1 of 2 requests lose the first tokens of the context, as they have more than {read} tokens; "
    cut += f"max_length in model_args, now {given or 48}, decides that"
    assert told == [*([few] if written < 8 else []), cut]
    prompt = " ".join(words[60 - read :])
    (alone,) = adapter.lm.generate([prompt], beam=1, max_length=written)
    assert found[0] == alone.removeprefix(prompt)


class Registry(dict):
    """Stands in for the harness's registry of models."""

    def register(self, name):
        return lambda own: self.setdefault(name, own)


def installed(monkeypatch, start=lambda: None):
    """Stands in for the harness: its class of models, and what was registered whenever it was started.

    Args:
        start: what the harness does then.
    """
    registry, starts = Registry(), []

    class LM:
        def __init__(self):
            self.begun = True

    modules = {
        "lm_eval": {},
        "lm_eval.api": {},
        "lm_eval.api.model": {"LM": LM},
        "lm_eval.api.registry": {"model_registry": registry},
        "lm_eval.__main__": {"cli_evaluate": lambda: starts.append(dict(registry)) or start()},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return LM, starts


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_the_harness_is_started_with_our_model_registered_once(tmp_path, monkeypatch):
    base, starts = installed(monkeypatch)
    runpy.run_module("unified.evaluation.harness", run_name="unified.evaluation.other")
    assert not starts
    harness.main()
    assert NAME == "unified" and [list(known) for known in starts] == [["unified"]]
    registered = harness.register()
    assert registered is starts[0]["unified"] is harness.register()
    assert issubclass(registered, base) and issubclass(registered, HarnessModel)
    assert registered(saved(tmp_path / "model")).begun and registered.__name__ == "UnifiedHarnessModel"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"pretrained": "nothere"}, "nothere: no such file"),
        ({"pretrained": None}, "model_args: name the model, such as pretrained="),
        ({"pretrained": 7}, "model_args: pretrained: expected the path of a file or folder, got int 7"),
        ({"max_lenght": 3}, r"model_args: no argument 'max_lenght' \(did you mean 'max_length'\?\); there are pretr"),
        ({"scoring": 5}, "no scoring '5'; there are left_to_right, "),
        ({"scoring": ""}, "no scoring ''; there are left_to_right, "),
        ({"batch_size": "many"}, "batch_size must be an integer of at least 1, got 'many'"),
        ({"batch_size": "-3"}, "batch_size must be an integer of at least 1, got -3"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"batch_size": True}, "batch_size must be an integer of at least 1, got True"),
        ({"draws": "x"}, "draws must be an integer of at least 1, got 'x'"),
        ({"draws": 0}, "draws must be an integer of at least 1, got 0"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"scoring": "infilling"}, "scoring 'infilling' needs "),
    ],
)
def test_a_refusal_of_a_run_is_one_line(tmp_path, monkeypatch, settings, says):
    folder = saved(tmp_path / "model", token_types=2)
    installed(monkeypatch, lambda: HarnessModel(**{"pretrained": folder, **settings}))
    with pytest.raises(SystemExit, match=f"^unified.evaluation.harness: error: {says}") as caught:
        harness.main()
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_the_module_starts_the_harness(monkeypatch):
    _, starts = installed(monkeypatch)
    runpy.run_module("unified.evaluation.harness", run_name="__main__")
    assert [list(known) for known in starts] == [["unified"]]


def test_requests_are_counted_as_they_are_scored(tmp_path, monkeypatch):
    adapter, shown, told = HarnessModel(saved(tmp_path / "model")), [], []

    class Shown:
        def __init__(self, what, total, unit, **options):
            shown.append((what, total, unit, options))

        def __enter__(self):
            return self

        def __exit__(self, *raised):
            shown.append("end")

        def advance(self, steps):
            told.append(steps)

    monkeypatch.setattr(harness, "StepProgress", Shown)
    adapter.loglikelihood([asked("w1", " w2"), asked("w1 w3", " w2"), asked("w1", " w2")])
    assert shown == [("log-likelihoods", 3, "requests", {"eager": False}), "end"] and sum(told) == 3


def test_a_text_without_a_token_has_the_score_0(tmp_path):
    adapter = HarnessModel(saved(tmp_path / "model", "nothing"))
    assert adapter.loglikelihood_rolling([asked("")]) == [0.0]
    (alone,) = adapter.loglikelihood_rolling([asked("w1 w2")])
    assert adapter.loglikelihood_rolling([asked(""), asked("w1 w2")]) == [0.0, pytest.approx(alone, abs=1e-5)]


@pytest.mark.parametrize("release", ["none", "0.4.9"])
def test_a_harness_that_is_not_there_or_too_old_is_named(monkeypatch, release):
    installed(monkeypatch)
    if release == "none":
        monkeypatch.setitem(sys.modules, "lm_eval.api.model", None)
    else:
        del sys.modules["lm_eval.api.registry"].model_registry
    [floor] = re.findall(r'"lm_eval>=([\d.]+)"', (CHECKOUT / "setup.py").read_text(encoding="utf-8"))
    assert tuple(map(int, floor.split("."))) >= (0, 4, 10)
    says = f"lm-evaluation-harness {floor} or newer is not installed "
    says += r"\(.*`pip install '\.\[harness\]'` in the library's folder installs"
    with pytest.raises(UnifiedError, match=f"^{says}"):
        harness.register()
    with pytest.raises(SystemExit, match=f"^unified.evaluation.harness: error: {says}"):
        harness.main()
