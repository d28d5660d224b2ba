"""Questions and summaries for Python users: how sources are made, and how texts are searched for."""

from __future__ import annotations

from tests.support.refusals import refused
from tests.support.task_folders import language_model
from unified import UnifiedLM
from unified.generation.lengths import PairLengths
from unified.tasks.composing import ask, summarize, usual_question, usual_window

MORE = (".", "|", "?")


def test_the_usual_lengths_of_a_question_are_those_of_fine_tuning():
    for lengths, question in (((0, 0, 0), 48), ((0, 0, 30), 30), ((0, 20, 30), 20), ((10, 60, 60), 60)):
        assert usual_question(PairLengths(*lengths)) == question
    for most, left, window in ((0, 900, 456), (0, 455, 455), (100, 900, 100), (100, 99, 99), (100, -3, 0)):
        assert usual_window(PairLengths(most, 0, 0), left) == window


PASSAGE = "w1 w2 w3 . w4 w5 w6 . w7 w8 w9 . w4 w5"


def asked(model: UnifiedLM, *arguments, **options) -> tuple:
    """What a model is asked to write, and with which options."""
    made = []
    generate = model.generate
    model.generate = lambda sources, **named: made.append((sources, named)) or [["q1", "q2"]]
    try:
        assert ask(model, *arguments, **options) == ["q1", "q2"]
    finally:
        model.generate = generate
    return made[0]


def test_a_question_is_asked_for_by_window_and_answer(tmp_path):
    lm = UnifiedLM.from_pretrained(language_model(tmp_path / "model", *MORE, max_positions=64, writes="cloze"))
    usual = {"prompt": False, "max_source": 0, "beam": 3, "max_length": 48}
    # 64 positions have room for 13 tokens beside 48 and three special symbols: eleven of the window, and the answer.
    assert asked(lm, PASSAGE, "w4") == ([("w1 w2 w3 . w4 w5 w6 . w7 w8 w9", "w4")], usual)
    assert asked(lm, PASSAGE, "w4", start=PASSAGE.rindex("w4"), max_source=5) == ([(". w4 w5", "w4")], usual)
    assert asked(lm, PASSAGE, "w5", max_length=8, beam=1, nbest=2) == (
        [(PASSAGE, "w5")], usual | {"max_length": 8, "beam": 1, "nbest": 2},
    )  # fmt: skip
    lm.lengths = PairLengths(6, 9, 9)
    sources, options = asked(lm, PASSAGE, "w4")
    assert options == usual | {"max_length": 9} and len(lm.encode_source(sources[0])) == 6
    for arguments, name in (((3, "w4"), "passage"), ((PASSAGE, None), "answer")):
        assert refused(ask, lm, *arguments).startswith(name)
    wrong = [("max_length", "5"), ("max_length", None), ("max_source", "5"), ("start", "5"), ("start", 1.0)]
    for option, value in wrong:
        assert refused(ask, lm, PASSAGE, "w4", **{option: value}).startswith(f"{option} must be an integer")
    # Begin, separator and the token that asks for the end take three of 64 positions.
    assert refused(ask, lm, PASSAGE, "w4", max_length=61) == "max_length 61 leaves the model no positions for a source"


def test_summaries_are_searched_for_without_a_trigram_that_comes_twice(tmp_path):
    lm = UnifiedLM.from_pretrained(language_model(tmp_path / "model", *MORE, max_positions=64, writes="cloze"))
    made = []
    lm.generate = lambda texts, **named: made.append((texts, named)) or ["s"]
    assert summarize(lm, ["a"]) == ["s"] == summarize(lm, ["b"], max_source=3, windows=True, beam=2, nbest=4)
    usual = {"prompt": False, "max_source": None, "windows": False, "beam": 5, "no_repeat_ngram_size": 3}
    assert made == [
        (["a"], usual), (["b"], usual | {"max_source": 3, "windows": True, "beam": 2, "nbest": 4}),
    ]  # fmt: skip
