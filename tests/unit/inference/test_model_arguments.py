"""A language model hands its arguments on: devices, prompts, windows and batches; and what files say of a model."""

import warnings
from dataclasses import replace

import pytest
import torch

from tests.support.refusals import refused
from tests.support.tiny_models import model, vocabulary
from tests.support.untrained_models import task_model
from unified import UnifiedLM
from unified.checkpoints import load_checkpoint
from unified.checkpoints.files import save
from unified.conversions.named_models import load_named
from unified.generation import GenerationConfig, Hypothesis
from unified.generation.lengths import PairLengths
from unified.inference import language_model
from unified.model.model import NO_TOKEN_HEAD
from unified.tasks.heads.classification import Classification
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

WORDS = vocabulary()
FIRST = WORDS.index("w0")


def handle(writes="cloze", lengths=PairLengths(), **changes) -> UnifiedLM:  # noqa: B008 (it is frozen)
    return UnifiedLM(model(**changes), WORDS, SymbolTokenizer(WORDS.symbols), writes, "folder", lengths)


# ---------------------------------------------------------------- files


def test_a_loaded_model_is_on_a_cpu_unless_another_device_is_named(saved, monkeypatch):
    """All models of an ensemble."""
    checkpoint = load_named(saved)
    assert UnifiedLM.of_checkpoint(checkpoint).device == UnifiedLM.from_pretrained(saved).device == torch.device("cpu")
    assert UnifiedLM.of_checkpoint(checkpoint, "meta").device == torch.device("meta")
    asked = []

    def usable(device):
        asked.append(device)
        return torch.device("meta")

    monkeypatch.setattr(language_model, "usable_device", usable)
    two = UnifiedLM.ensemble([saved, saved], "a card")
    assert asked == ["a card", "a card"] and {one.device.type for one in (two, *two.others)} == {"meta"}
    UnifiedLM.ensemble([saved])
    UnifiedLM.from_pretrained(saved)
    assert asked[2:] == ["cpu", "cpu"]


def test_a_model_of_a_task_is_refused_with_its_file(tmp_path):
    folder = task_model(tmp_path / "model", {"rte": Classification(("yes", "no"))})
    assert refused(UnifiedLM.from_pretrained, folder) == (
        f"{folder / 'checkpoint_last.pt'}: the model was fine-tuned for rte and predicts no tokens; take the language "
        "model it came from"
    )


def test_what_a_checkpoint_lacks_is_random_and_not_saved(saved, tmp_path):
    path = tmp_path / "checkpoint_last.pt"
    content = load_checkpoint(saved / "checkpoint_last.pt")
    whole = UnifiedLM.from_pretrained(saved)
    lacking = {name for name in content["model"] if ".heads.next_sentence.classifier." in name}
    content["model"] = {name: value for name, value in content["model"].items() if name not in lacking}
    save(content, path)
    lm = UnifiedLM.from_pretrained(path, whole.folder)
    assert lm.untrained == {name.removeprefix("core.") for name in lacking} and lacking
    assert whole.untrained == frozenset() and lm.objectives == ""
    lm.save(tmp_path / "again")
    assert UnifiedLM.from_pretrained(tmp_path / "again").untrained == lm.untrained


def test_models_write_together_that_share_what_decides_a_text(saved):
    lm = UnifiedLM.from_pretrained(saved)
    found = lm.shared_properties()
    assert found.keys() == {
        "types of model",
        "vocabularies",
        "tokenizers",
        "heads",
        "decoding schemes",
        "lengths of sources and targets",
        "numbers of positions",
    }
    assert (found["heads"], found["decoding schemes"], found["numbers of positions"]) == ([], "cloze", 96)
    other = UnifiedLM.from_pretrained(saved)
    other.writes = "next"
    assert refused(UnifiedLM.together, ["a", "b"], [lm, other]) == (
        "b and a cannot answer together: decoding schemes differ (next and cloze)"
    )


# ---------------------------------------------------------------- prompts


def test_a_prompt_is_read_whole_or_to_the_length_that_is_asked_for():
    """Whatever sources of training were cut to; what was read begins what is returned."""
    lm = handle("left_to_right", PairLengths(max_source=2, longest_target=3))
    prompt = "w1 w2 w3 w4"
    for limit, read in ((None, "w1 w2 w3 w4"), (0, "w1 w2 w3 w4"), (3, "w1 w2 w3"), (1, "w1")):
        ids = lm.encode(read)
        ((best,),) = lm.hypotheses([ids], GenerationConfig(max_length=4), prompt=True)
        expected = lm.decode([*ids, *best.tokens.tolist()])
        assert lm.generate([prompt], max_source=limit, max_length=4) == [expected] and len(best.tokens) == 4


def test_no_text_gives_no_text():
    for writes in ("cloze", "left_to_right"):
        assert handle(writes).generate([]) == [] == handle(writes).score([], [])
    assert handle("left_to_right").score(["w1", "w2"], ["", ""]) == [[], []]


def test_without_a_token_head_nothing_is_written():
    assert refused(handle(token_head="none").scheme) == refused(handle(token_head="none").generate, ["w1"])
    assert refused(handle(token_head="none").scheme) == NO_TOKEN_HEAD


# ---------------------------------------------------------------- room


def test_a_source_without_room_is_refused_by_its_number():
    lm, config = handle(), GenerationConfig(max_length=5)
    ids = [[FIRST], [FIRST] * 41]
    assert refused(lm.hypotheses, ids, config, indices=[3, 7], max_source=0) == (
        "sentence 7: 41 tokens, but the model's 48 positions leave room for 40 beside the 5 that may be written; "
        "shorten the text or what is written"
    )
    assert refused(lm.hypotheses, ids, config, max_source=0).startswith("sentence 1: 41 tokens, ")
    assert len(lm.hypotheses([[FIRST] * 40], config, max_source=0)) == 1


def test_texts_come_in_a_list_whose_name_a_refusal_says():
    for call, name in ((lambda: handle().generate("w1"), "texts"), (lambda: handle().score("w1", ["w1"]), "sources")):
        assert refused(call) == f"{name}: expected a list of texts, got one text; put it in a list"
    assert refused(handle().score, ["w1"], "w1").startswith("targets: expected a list of texts")


def test_batches_have_the_size_that_is_asked_for(monkeypatch):
    found, sources = [], ["w1", "w2 w3", "w4", "w5", "w6"]

    def noted(call):
        return lambda decoder, rows, *given, **named: found.append(len(rows)) or call(decoder, rows, *given, **named)

    monkeypatch.setattr(language_model, "generate", noted(language_model.generate))
    monkeypatch.setattr(language_model, "score", noted(language_model.score))
    lm, options = handle(), {"max_length": 2, "beam": 1}
    lm.generate(sources, batch_size=2, **options)
    lm.generate(sources, **options)
    lm.score(sources, sources, batch_size=3)
    assert found == [2, 2, 1, 5, 3, 2]
    assert refused(lm.generate, sources, batch_size=0) == "batch_size must be an integer of at least 1, got 0"
    assert refused(lm.score, sources, sources, batch_size=0) == "batch_size must be an integer of at least 1, got 0"


# ---------------------------------------------------------------- windows


class Noted(UnifiedLM):
    """Notes what hypotheses are asked for; from every window it writes the same two words and one more."""

    def hypotheses(self, sources, config, **options):
        self.asked.append(([list(source) for source in sources], config, options))
        tokens = torch.tensor([FIRST + 8, FIRST + 9, FIRST + 7])
        return [[Hypothesis(tokens, torch.zeros(4), 0.0)] * config.nbest for _ in sources]


def noted(lengths=PairLengths(), **changes) -> Noted:  # noqa: B008 (it is frozen)
    lm = Noted(model(**changes), WORDS, SymbolTokenizer(WORDS.symbols), "cloze", "folder", lengths)
    lm.asked = []
    return lm


LONG = " ".join(f"w{number % 6}" for number in range(20))
CONFIG = GenerationConfig(beam=3, nbest=3, max_length=5)


def test_windows_are_written_as_their_sources_are():
    """With the best hypothesis alone, whole, and the number of their source."""
    lm = noted()
    short = lm.shortened(["w1", LONG], CONFIG, prompt=False, batch_size=7, indices=[4, 9], max_source=10)
    ((windows, config, options),) = lm.asked
    assert config == replace(CONFIG, nbest=1)
    assert options == {"prompt": False, "batch_size": 7, "indices": [9, 9], "max_source": 0}
    assert sum(windows, []) == lm.encode(LONG) and all(len(window) <= 10 for window in windows)
    assert [lm.decode(ids) for ids in short.ids] == ["w1", "w8 w9 w7 w8 w9 w7"] and short.windows == [0, 2]
    lm.shortened(["w1", LONG], CONFIG, max_source=10)
    assert lm.asked[1][2] == {"prompt": None, "batch_size": 32, "indices": [1, 1], "max_source": 0}


def test_a_mark_is_left_out_of_what_is_written_from_windows():
    lm = noted()
    for separator, text in ((None, "w8 w9 w7 w8 w9 w7"), ("w9", "w8 w7 w8 w7"), ("w7", "w8 w9 w8 w9")):
        (ids,) = lm.shortened([LONG], CONFIG, max_source=10, separator=separator).ids
        assert lm.decode(ids) == text


@pytest.mark.parametrize(
    ("lengths", "max_source", "longest"),
    [
        (PairLengths(max_source=7), None, 7),
        (PairLengths(max_source=7), 12, 12),
        (PairLengths(max_source=7), 0, 40 - 5 - 3),
        (PairLengths(), None, 40 - 5 - 3),
    ],
)
def test_a_window_has_as_many_tokens_as_a_source(lengths, max_source, longest):
    lm = noted(lengths, max_positions=40)
    for words, divided in ((longest, 0), (longest + 1, 2)):
        short = lm.shortened([" ".join(["w1"] * words)], CONFIG, max_source=max_source)
        assert short.windows == [divided]


def test_texts_are_written_from_what_windows_leave_of_them():
    lm = noted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lm.generate([LONG], windows=True, batch_size=3, max_source=10, beam=2, nbest=2, max_length=5)
    assert found == [["w8 w9 w7"] * 2]
    (_, _, first), (ids, config, options) = lm.asked
    assert first["batch_size"] == options["batch_size"] == 3 and options["max_source"] == 0
    assert first["prompt"] is options["prompt"] is None
    assert [lm.decode(row) for row in ids] == ["w8 w9 w7 w8 w9 w7"] and config.nbest == 2
    # Windows as long as what is written from them do not help; the rest is cut, which is said.
    with pytest.warns(UserWarning, match="^1 of 1 texts get no shorter in windows; what is too long is not read$"):
        lm.generate([LONG], windows=True, max_source=3, beam=1, max_length=5)
    lm.generate(["w1 w2"], prompt=False, max_length=5)
    assert lm.asked[-1][2] == {"prompt": False, "batch_size": 32, "indices": [0], "max_source": 0}
