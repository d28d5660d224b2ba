"""What an exported model reads of ids, how long texts it writes, and what it refuses; its search is pretended."""

from __future__ import annotations

import warnings

import pytest
import torch

from unified.conversions.modeling import generation_unified
from unified.conversions.modeling.configuration_unified import UnifiedConfig
from unified.conversions.modeling.generation_unified import Writing
from unified.conversions.modeling.search_unified import Hypothesis

CLS, PAD, SEP, UNK, MASK = range(5)
NO_TEXTS = "the model does not write texts; its config.json says decoding 'nothing' or lacks a head"


class Model(Writing):
    """As much of a model as its texts go through; notes what its search was asked for."""

    def __init__(self, decoding: str = "cloze", lengths: tuple[int, int, int] = (0, 0, 0), **changes):
        names = ("max_source", "max_target", "longest_target")
        own = {"decoding": decoding, "pair_lengths": dict(zip(names, lengths, strict=True)), "max_positions": 40}
        self.config, self.device = UnifiedConfig(**{**own, **changes}), torch.device("cpu")


@pytest.fixture(autouse=True)
def asked(monkeypatch) -> list[dict]:
    """What each search is asked for; it finds the texts 7 8 and 9, and so on, in the order of the given ones."""
    known: list[dict] = []

    def read(model, scheme, sources, beam):
        known.append({"scheme": scheme, "sources": sources, "beam": beam})
        return "the reader"

    def find(reader, texts, beam, max_length):
        assert reader == "the reader" and not torch.is_grad_enabled()
        assert beam == known[-1]["beam"] == texts[0].settings.beam and max_length == texts[0].settings.max_length
        known[-1] |= {
            "settings": texts[0].settings, "given": [text.given for text in texts],
            "prompts": {text.prompt for text in texts}, "longest": max_length,
            "ends": {text.end for text in texts},
        }  # fmt: skip
        some = [Hypothesis(torch.tensor(tokens), torch.zeros(len(tokens) + 1), 0.0) for tokens in ([7, 8], [9])]
        return [[some[(i + j) % 2] for j in range(texts[0].settings.nbest)] for i in range(len(texts))]

    monkeypatch.setattr(generation_unified, "Reader", read)
    monkeypatch.setattr(generation_unified, "search", find)
    return known


def rows(*texts: list[int]) -> torch.Tensor:
    width = max(map(len, texts))
    return torch.tensor([[*text, *[PAD] * (width - len(text))] for text in texts])


def refusal(call, *arguments, **settings) -> str:
    with pytest.raises(ValueError) as raised:
        call(*arguments, **settings)
    return str(raised.value)


# Which scheme


@pytest.mark.parametrize(
    ("decoding", "prompt", "scheme"),
    [
        ("cloze", None, "cloze"), ("cloze", False, "cloze"), ("cloze", True, "left_to_right"),
        ("next", None, "next"), ("next", False, "next"), ("next", True, "left_to_right"),
        ("left_to_right", None, "left_to_right"), ("left_to_right", True, "left_to_right"),
        ("left_to_right", False, "cloze"), ("permutation", None, "permutation"), ("permutation", True, "permutation"),
    ],
)  # fmt: skip
def test_sources_and_prompts_have_the_scheme_that_was_learnt_or_unilms(decoding, prompt, scheme):
    assert Model(decoding).scheme(prompt) == scheme


def test_a_model_that_writes_nothing_or_lacks_a_head_or_reads_entities_refuses():
    assert refusal(Model("nothing").scheme) == NO_TEXTS
    assert refusal(Model(sublayers="entity,feed_forward").scheme) == NO_TEXTS
    assert refusal(Model(prediction_heads=["boundary"]).scheme, True) == NO_TEXTS
    said = "the model continues prompts; it has not learnt to write targets of sources"
    assert refusal(Model("permutation").scheme, False) == said


# What is read


def test_padding_and_the_symbols_around_texts_are_not_read():
    given = torch.tensor([
        [CLS, 5, 6, SEP, PAD], [5, 6, 7, PAD, PAD], [PAD, PAD, CLS, 5, SEP], [5, 6, SEP, CLS, PAD],
        [CLS, 5, CLS, SEP, SEP], [CLS, SEP, PAD, PAD, PAD], [PAD, 5, PAD, SEP, 6], [SEP, CLS, CLS, PAD, PAD],
    ])  # fmt: skip
    with pytest.raises(ValueError, match="^max_source must be 0 .whole texts. or a number of tokens, got -1$"):
        Model().hypotheses(given, max_source=-1, max_length=3)
    texts, _ = Model().hypotheses(given, max_source=0, max_length=3)
    assert texts == [[5, 6], [5, 6, 7], [5], [5, 6], [5, CLS, SEP], [], [5, SEP, 6], [SEP, CLS]]
    masked = torch.ones_like(given)
    masked[0, 2] = masked[1, 0] = masked[2, 4] = 0
    texts, _ = Model().hypotheses(given, masked, max_source=0, max_length=3)
    assert texts[:4] == [[5], [6, 7], [5], [5, 6]]


def test_a_prompt_loses_all_separators_at_its_end_and_a_source_the_last():
    given = rows([CLS, 5, SEP, 6, SEP, SEP, SEP], [SEP, SEP], [5], [5, 6, SEP, SEP])
    texts, _ = Model("left_to_right").hypotheses(given)
    assert texts == [[5, SEP, 6], [], [5], [5, 6]]
    texts, _ = Model("cloze").hypotheses(given)
    assert texts == [[5, SEP, 6, SEP, SEP], [SEP], [5], [5, 6, SEP]]


def test_a_source_ends_with_the_separator_and_a_prompt_is_where_the_text_begins(asked):
    Model().hypotheses(rows([5, 6], [7]), beam=3, nbest=2, max_length=9, seed=4)
    Model("left_to_right").hypotheses(rows([5, 6], [7]), beam=3, max_length=9)
    source, prompt = asked
    assert source["sources"] == [[5, 6, SEP], [7, SEP]] and source["given"] == [[], []]
    assert prompt["sources"] == prompt["given"] == [[5, 6], [7]]
    assert (source["prompts"], prompt["prompts"], source["ends"]) == ({False}, {True}, {SEP})
    assert (source["scheme"].mask_query, prompt["scheme"].source_type) == (True, 2)
    settings = source["settings"]
    assert (settings.beam, settings.nbest, settings.max_length, settings.seed) == (3, 2, 9, 4)


def test_texts_are_given_back_padded_and_behind_their_prompts():
    given = rows([5, 6], [10, 11, 12])
    found = Model(pad_token_id=1).generate(given, nbest=2, beam=2, max_length=9)
    assert found.tolist() == [[7, 8], [9, PAD], [9, PAD], [7, 8]] and found.dtype == torch.int64
    found = Model("left_to_right").generate(given, max_length=9)
    assert found.tolist() == [[5, 6, 7, 8], [10, 11, 12, 9]]
    assert Model().generate(given, prompt=True, max_length=9).tolist() == found.tolist()
    assert Model("permutation").generate(given, max_source=2).tolist() == [[5, 6, 7, 8], [10, 11, 9, PAD]]


def test_what_is_masked_is_not_read_and_token_types_are_not_asked_for(asked):
    Model().generate(rows([5, 6, 7]), torch.tensor([[1, 0, 1]]), torch.tensor([[3, 3, 3]]), max_source=0, max_length=2)
    assert asked[0]["sources"] == [[5, 7, SEP]]


@pytest.mark.parametrize("decoding", ["cloze", "left_to_right", "permutation"])
def test_of_no_texts_none_are_written(decoding, asked):
    nothing = torch.empty(0, 3).long()
    assert Model(decoding).hypotheses(nothing) == ([], []) and asked == []
    assert Model(decoding).generate(nothing).shape == (0, 0)


def test_settings_that_there_are_not_are_named():
    said = refusal(Model().generate, rows([5]), num_beams=3, top_k=0, length=1)
    assert said == (
        "generate has no setting num_beams, length; its settings are beam, max_length, min_length, nbest, "
        "length_penalty, lenpen, no_repeat_ngram_size, no_repeat_ngram_ignore, sampling, top_k, top_p, "
        "temperature, seed"
    )


# How much is written and read


@pytest.mark.parametrize("decoding", ["left_to_right", "cloze"])
def test_each_text_may_be_as_long_as_its_own_length_leaves(asked, decoding):
    """Those that leave as much are searched together; what is found goes back to its text."""
    given = rows([5] * 9, [6], [7] * 9, [8, 8])
    texts, found = Model(decoding).hypotheses(given, seed=3)
    assert [(one["longest"], len(one["sources"])) for one in asked] == [(28, 2), (35, 1), (36, 1)]
    assert [one["settings"].seed for one in asked] == [3, 3, 3]
    assert [one["sources"][-1][0] for one in asked] == [7, 8, 6] and [text[0] for text in texts] == [5, 6, 7, 8]
    assert [some[0].tokens.tolist() for some in found] == [[7, 8], [7, 8], [9], [7, 8]]


@pytest.mark.parametrize(
    ("decoding", "lengths", "changes", "given", "settings", "longest"),
    [
        # Prompts: 128 tokens, or what the positions leave beside the longest one.
        ("left_to_right", (0, 0, 0), {}, [7, 3], {}, 40 - 7 - 3),
        ("left_to_right", (0, 9, 9), {}, [7], {}, 30),
        ("left_to_right", (0, 0, 0), {}, [7], {"max_source": 2}, 35),
        ("left_to_right", (0, 0, 0), {}, [7], {"max_source": 0}, 30),
        ("left_to_right", (0, 0, 0), {"max_positions": 138}, [7], {}, 128),
        ("left_to_right", (0, 0, 0), {"max_positions": 137}, [7], {}, 127),
        ("left_to_right", (0, 0, 0), {"max_positions": 200}, [7], {}, 128),
        ("left_to_right", (0, 0, 0), {"positions": "rotary"}, [70], {}, 128),
        ("permutation", (0, 0, 0), {"positions": "relative"}, [70], {}, 128),
        # Sources: as long as the longest target of fine-tuning, and else as the positions leave, a quarter at least.
        ("cloze", (0, 6, 0), {}, [7], {}, 6), ("cloze", (0, 6, 5), {}, [7], {}, 6),
        ("cloze", (0, 0, 5), {}, [7], {}, 5), ("cloze", (0, 0, 5), {}, [7], {"min_length": 8}, 8),
        ("cloze", (0, 0, 1), {}, [7], {}, 1), ("cloze", (0, 0, 36), {}, [7], {}, 36),
        ("cloze", (0, 0, 0), {}, [7, 9], {}, 40 - 9 - 3), ("cloze", (0, 0, 0), {}, [30], {}, 10),
        ("cloze", (0, 0, 0), {}, [26], {}, 11), ("cloze", (0, 0, 0), {}, [0], {}, 36),
        ("cloze", (0, 0, 0), {"max_positions": 43}, [40], {}, 10),
        ("cloze", (0, 0, 0), {"max_positions": 400}, [7], {}, 128),
        ("cloze", (0, 0, 0), {"max_positions": 1000}, [900], {}, 128),
        ("cloze", (0, 0, 0), {"max_positions": 139}, [8], {}, 128),
        ("cloze", (0, 0, 0), {"max_positions": 138}, [8], {}, 127),
        ("cloze", (0, 0, 0), {"positions": "rotary"}, [70], {}, 128),
        # As many tokens of sources as are asked for take their places first.
        ("cloze", (0, 0, 0), {}, [30], {"max_source": 30}, 7), ("cloze", (0, 0, 9), {}, [30], {"max_source": 30}, 7),
        ("cloze", (0, 0, 9), {}, [30], {"max_source": 20}, 9), ("cloze", (0, 0, 0), {}, [30], {"max_source": 35}, 2),
        ("cloze", (0, 0, 9), {}, [30], {"max_source": 36}, 1), ("cloze", (0, 0, 0), {}, [30], {"max_source": 2}, 10),
        ("cloze", (0, 0, 0), {}, [12], {"max_source": 0}, 25), ("cloze", (0, 0, 99), {}, [0], {"max_source": 0}, 37),
        # What is asked for is taken.
        ("cloze", (0, 6, 0), {}, [7], {"max_length": 17}, 17),
        ("left_to_right", (0, 0, 0), {}, [7], {"max_length": 17}, 17),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.* of .* texts have more than")
def test_the_usual_length_is_that_of_fine_tuning_or_what_the_positions_leave(
    asked, decoding, lengths, changes, given, settings, longest
):
    Model(decoding, lengths, **changes).hypotheses(rows(*[[9] * n for n in given]), **settings)
    assert asked[0]["longest"] == asked[0]["settings"].max_length == longest


def cut(model: Model, *lengths: int, **settings) -> tuple[list[int], list[str]]:
    """Lengths of the texts that are read, and what is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        texts, _ = model.hypotheses(rows(*[list(range(5, 5 + n)) for n in lengths]), **settings)
    assert all(text == list(range(5, 5 + len(text))) for text in texts)
    return [len(text) for text in texts], [str(one.message) for one in said]


def test_sources_are_cut_to_what_was_read_in_fine_tuning_or_fits_with_a_warning():
    for model, settings, limit in (
        (Model(), {"max_length": 30}, 7), (Model(lengths=(5, 0, 0)), {"max_length": 30}, 5),
        (Model(lengths=(9, 0, 0)), {"max_length": 30}, 7), (Model(lengths=(7, 0, 4)), {}, 7),
        (Model(lengths=(6, 0, 0), positions="rotary"), {}, 6), (Model(), {"max_length": 36}, 1),
    ):  # fmt: skip
        assert cut(model, limit, limit, 1, **settings) == ([limit, limit, 1], [])
        said = f"2 of 3 texts have more than {limit} tokens; the rest is not read"
        assert cut(model, limit + 1, limit, limit + 20, **settings) == ([limit, limit, limit], [said])
    assert cut(Model(positions="rotary"), 70, 3, max_length=30) == ([70, 3], [])


def test_as_many_tokens_as_are_asked_for_are_read_without_a_warning():
    assert cut(Model(lengths=(2, 0, 0)), 8, 3, max_source=5) == ([5, 3], [])
    assert cut(Model(lengths=(2, 0, 0)), 8, 3, max_source=0) == ([8, 3], [])
    assert cut(Model("left_to_right", lengths=(2, 0, 0)), 8, 3) == ([8, 3], [])
    assert cut(Model("left_to_right"), 8, 3, max_source=5) == ([5, 3], [])
    assert cut(Model("left_to_right"), 8, 3, max_source=0) == ([8, 3], [])


def test_a_length_that_leaves_no_room_is_refused():
    assert refusal(Model().hypotheses, rows([5]), max_length=37) == (
        "max_length 37 leaves no position for a source; a target must be shorter"
    )
    beside = "shorten the text or what is written"
    texts = rows([5], [5] * 8)
    assert refusal(Model().hypotheses, texts, max_source=0, max_length=30) == (
        f"text 1: 8 tokens, but the model's positions leave room for 7 beside the 30 that may be written; {beside}"
    )
    Model().hypotheses(texts, max_source=0, max_length=29)
    assert refusal(Model("left_to_right").hypotheses, texts, max_length=39) == (
        f"text 0: 1 tokens, but the model's positions leave room for 0 beside the 39 that may be written; {beside}"
    )
    prompt = rows([5] * 37)
    assert refusal(Model("left_to_right").hypotheses, prompt) == (
        f"text 0: 37 tokens, but the model's positions leave room for 36 beside the 1 that may be written; {beside}"
    )
    Model("left_to_right").hypotheses(rows([5] * 36))
