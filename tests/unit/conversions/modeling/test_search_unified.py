"""Searches of the exported code against all texts that there are, and its rules against their definitions."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import FrozenInstanceError, asdict
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from unified.conversions.modeling.search_unified import PENALTIES, Search, Text, repeating, search, trimmed
from unified.generation import GenerationConfig

#: Ids of special symbols; 3 and from 5 on are words.
CONFIG = SimpleNamespace(cls_token_id=0, pad_token_id=1, sep_token_id=2, mask_token_id=4)
END, SYMBOLS, WORDS = 2, 7, (3, 5, 6)


def scores(text: int, history: tuple[int, ...]) -> torch.Tensor:
    """Logits (V,) of the next token of a text; any, but always the same."""
    seed = sum(token * 10**i for i, token in enumerate(history)) + 7919 * text + len(history) * 104729
    return torch.randn(SYMBOLS, generator=torch.Generator().manual_seed(seed)) * 2


class Scores:
    """Stands for a reader: knows the text of each row and what was written in it."""

    def __init__(self, texts: int, beam: int):
        self.rows = [(text, ()) for text in range(texts) for _ in range(beam)]

    def step(self, last: torch.Tensor | None) -> torch.Tensor:
        if last is not None:
            self.rows = [(text, (*past, int(one))) for (text, past), one in zip(self.rows, last, strict=True)]
        return torch.stack([scores(*row) for row in self.rows])

    def select(self, rows: torch.Tensor) -> None:
        self.rows = [self.rows[i] for i in rows]


def found(texts: int = 1, given=(), prompt: bool = False, **settings):
    chosen = Search(**settings)
    own = [Text(given, prompt, row, CONFIG, chosen) for row in range(texts)]
    return search(Scores(texts, chosen.beam), own, chosen.beam, chosen.max_length)


def every(text: int, longest: int, least: int = 1, temperature: float = 1.0, prompt: bool = False, penalty=None):
    """All texts with their log-probabilities and scores, best first."""
    known = []
    for length in range(least, longest + 1):
        for tokens in itertools.product(WORDS, repeat=length):
            past = [(scores(text, tokens[:i]) / temperature).log_softmax(0) for i in range(length + 1)]
            probs = [float(one[token]) for one, token in zip(past, (*tokens, END), strict=True)]
            counted = probs[:-1] if prompt and length == longest else probs
            known.append((list(tokens), probs, sum(counted) / (penalty or float)(len(counted))))
    return sorted(known, key=lambda one: -one[2])


def alone(text: int, beam: int, max_length: int):
    """All hypotheses of one text that is no batch's first."""
    reader, chosen = Scores(1, beam), Search(beam=beam, nbest=beam, max_length=max_length)
    reader.rows = [(text, ())] * beam
    (own,) = search(reader, [Text((), False, 0, CONFIG, chosen)], beam, max_length)
    return own


# The settings


def test_the_defaults_are_those_of_the_library():
    known = asdict(Search())
    ours = asdict(GenerationConfig()) | {"no_repeat_ngram_ignore": (), "beam": GenerationConfig().width}
    assert known == {name: ours[name] for name in known} and not GenerationConfig().no_repeat_ngram_ignore
    assert known == {
        "beam": 5, "max_length": 128, "min_length": 1, "nbest": 1, "length_penalty": "fairseq", "lenpen": 1.0,
        "no_repeat_ngram_size": 0, "no_repeat_ngram_ignore": (), "sampling": False, "top_k": 0, "top_p": 1.0,
        "temperature": 1.0, "seed": 0,
    }  # fmt: skip
    with pytest.raises(FrozenInstanceError):
        Search().beam = 2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"beam": 0}, "beam must be an integer of at least 1, got 0"),
        ({"max_length": 0}, "max_length must be an integer of at least 1, got 0"),
        ({"nbest": 0}, "nbest must be an integer of at least 1, got 0"),
        ({"min_length": 4, "max_length": 3}, "min_length 4 exceeds max_length 3"),
        ({"beam": 2, "nbest": 3}, "nbest 3 exceeds beam 2"),
        ({"length_penalty": "x"}, "length_penalty must be one of ['fairseq', 'unilm'], got 'x'"),
        ({"no_repeat_ngram_ignore": [7]}, "no_repeat_ngram_ignore needs no_repeat_ngram_size, which is 0"),
        ({"beam": 2.0}, "beam must be an integer of at least 1, got 2.0"),
        ({"min_length": -1}, "min_length must be an integer of at least 0, got -1"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size must be an integer of at least 0, got -1"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"temperature": 0.0}, "temperature must be at least 1e-20, got 0.0"),
        ({"temperature": -1}, "temperature must be at least 1e-20, got -1"),
        ({"temperature": 1e-21}, "temperature must be at least 1e-20, got 1e-21"),
        ({"temperature": math.nan}, "temperature must be a finite number, got nan"),
        ({"temperature": math.inf}, "temperature must be a finite number, got inf"),
        ({"lenpen": math.nan}, "lenpen must be a finite number, got nan"),
        ({"lenpen": "1"}, "lenpen must be a finite number, got '1'"),
        ({"lenpen": 1e308}, "lenpen 1e+308: a text of 129 tokens has no such length penalty"),
        ({"lenpen": -1e308}, "lenpen -1e+308: a text of 129 tokens has no such length penalty"),
        ({"lenpen": 147, "max_length": 127}, "lenpen 147: a text of 128 tokens has no such length penalty"),
        (
            {"lenpen": 341.4, "max_length": 42, "length_penalty": "unilm"},
            "lenpen 341.4: a text of 43 tokens has no such length penalty",
        ),
        ({"sampling": True, "top_p": 0.0}, "top_p must be in (0, 1], got 0.0"),
        ({"sampling": True, "top_p": 1.001}, "top_p must be in (0, 1], got 1.001"),
        ({"sampling": True, "top_p": math.nan}, "top_p must be a finite number, got nan"),
        ({"sampling": True, "top_k": -1}, "top_k must be an integer of at least 0, got -1"),
        ({"top_p": 0.9}, "top_p 0.9 says what is drawn from; it needs sampling"),
        ({"top_k": 1}, "top_k 1 says what is drawn from; it needs sampling"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, said):
    with pytest.raises(ValueError) as raised:
        Search(**settings)
    assert str(raised.value) == said


def test_settings_at_their_bounds_are_taken():
    Search(beam=1, max_length=1, nbest=1, min_length=1, temperature=1e-9)
    Search(beam=3, nbest=3, min_length=4, max_length=4, length_penalty="unilm", sampling=True, top_p=1.0, top_k=0)
    Search(sampling=True, top_p=1e-9, top_k=1)
    Search(min_length=0)
    Search(lenpen=146, max_length=127), Search(lenpen=341, max_length=42, length_penalty="unilm")
    Search(temperature=1e-20), Search(temperature=1e300)


def test_penalties_are_those_of_fairseq_and_unilm():
    assert PENALTIES["fairseq"](8, 2.0) == 64 and PENALTIES["fairseq"](8, 0.0) == 1
    assert PENALTIES["unilm"](7, 2.0) == pytest.approx(4) and PENALTIES["unilm"](1, 5.0) == 1


# The search


@pytest.mark.parametrize(("penalty", "lenpen"), [("fairseq", 1.0), ("unilm", 0.6), ("fairseq", 0.0)])
@pytest.mark.parametrize("prompt", [False, True])
@pytest.mark.parametrize(("temperature", "least"), [(1.0, 1), (1.7, 2)])
def test_a_beam_with_room_for_all_texts_finds_the_best_of_all(penalty, lenpen, prompt, temperature, least):
    settings = {"length_penalty": penalty, "lenpen": lenpen, "temperature": temperature, "min_length": least}
    hypotheses = found(3, prompt=prompt, beam=39, max_length=3, nbest=20, **settings)
    for text, own in enumerate(hypotheses):
        wanted = every(text, 3, least, temperature, prompt, lambda n: PENALTIES[penalty](n, lenpen))[:20]
        assert [one.tokens.tolist() for one in own] == [tokens for tokens, _, _ in wanted]
        for one, (_, log_probs, score) in zip(own, wanted, strict=True):
            assert one.log_probs.tolist() == pytest.approx(log_probs, abs=1e-5)
            assert one.score == pytest.approx(score, abs=1e-5) and one.tokens.dtype == torch.int64


def test_one_hypothesis_takes_the_best_token_at_each_step():
    for text, (own,) in enumerate(found(20, beam=1, max_length=4)):
        tokens: list[int] = []
        while not tokens or tokens[-1] != END:
            logits = scores(text, tuple(tokens))
            allowed = [END] if len(tokens) == 4 else [*WORDS, END] if tokens else list(WORDS)
            tokens.append(max(allowed, key=lambda one: float(logits[one])))
        assert own.tokens.tolist() == tokens[:-1]


def test_narrow_beams_write_what_fairseqs_rules_say():
    """The rules once more, in lists: of 2 x beam continuations those among the first ones that end are finished."""
    ends = set()
    for text, beam in itertools.product(range(12), (2, 3)):
        going, finished = [((), 0.0)], []
        for step in range(5):
            allowed = [END] if step == 4 else [*WORDS, END] if step else list(WORDS)
            best = sorted(
                ((past, total + float(scores(text, past).log_softmax(0)[one]), one) for past, total in going
                 for one in allowed), key=lambda one: -one[1],
            )[: 2 * beam]  # fmt: skip
            finished += [(list(past), total / (step + 1)) for past, total, one in best[:beam] if one == END]
            going = [((*past, one), total) for past, total, one in best if one != END][:beam]
            if len(finished) >= beam or not going:
                break
        ends.add(step)
        wanted = sorted(finished[:beam], key=lambda one: -one[1])
        own = alone(text, beam, 4)
        assert [one.tokens.tolist() for one in own] == [tokens for tokens, _ in wanted]
        assert [one.score for one in own] == pytest.approx([score for _, score in wanted], abs=1e-5)
    assert len(ends) > 1  # some searches end before the longest text


def test_texts_of_a_batch_are_what_they_are_alone():
    together = found(9, beam=2, nbest=2, max_length=6)
    assert len({len(own[0].tokens) for own in together}) > 1
    for text, own in enumerate(together):
        wanted = alone(text, 2, 6)
        assert [one.tokens.tolist() for one in own] == [one.tokens.tolist() for one in wanted]
        assert [one.score for one in own] == [one.score for one in wanted]


# One step


def text(given=(), prompt: bool = False, row: int = 0, **settings) -> Text:
    return Text(given, prompt, row, CONFIG, Search(**settings))


def logits(rows: int, **tokens: float) -> torch.Tensor:
    """All tokens but those named by ``t`` and their id have next to no probability."""
    made = torch.full((rows, SYMBOLS), -60.0)
    for name, value in tokens.items():
        made[:, int(name[1:])] = value
    return made


def test_no_more_texts_are_finished_than_the_beam_has():
    own = text(beam=2, max_length=9)
    rows, symbols = own.advance(logits(2, t3=1.0, t5=0.0), 0)
    assert (rows.tolist(), symbols.tolist()) == ([0, 0], [3, 5])
    assert own.advance(logits(2, t2=1.0, t3=-1.0), 1) is None
    assert [one.tokens.tolist() for one in own.finished] == [[3], [5]]
    own = text(beam=2, max_length=9)
    own.advance(logits(2, t3=1.0, t5=0.0), 0)
    own.finish([6], [0.0, 0.0], False)
    assert own.advance(logits(2, t2=1.0, t3=-1.0), 1) is None
    assert [one.tokens.tolist() for one in own.finished] == [[6], [3]]


def test_rows_beyond_those_that_go_on_never_win():
    own = text(beam=3, max_length=9)
    only = torch.full((3, SYMBOLS), -math.inf)
    only[:, 5] = 0.0
    rows, symbols = own.advance(only, 0)
    assert (rows.tolist(), symbols.tolist()) == ([0, 0, 0], [5, 5, 5])
    assert own.totals.tolist() == [0.0, -math.inf, -math.inf] and own.tokens == [[5], [5], [5]]
    rows, symbols = own.advance(torch.zeros(3, SYMBOLS), 1)
    assert rows.tolist() == [0, 0, 0] and sorted(symbols.tolist()) == [3, 5, 6]
    assert own.totals.tolist() == pytest.approx([-math.log(SYMBOLS)] * 3)


def test_scores_that_are_not_numbers_are_refused():
    own = text()
    assert own.advance(torch.full((5, SYMBOLS), math.nan), 0) is None
    with pytest.raises(ValueError) as raised:
        own.best()
    assert str(raised.value) == "the model's scores are not numbers; its parameters seem to be damaged"


def test_the_end_is_not_scored_where_the_length_ends_a_prompt():
    for prompt, step, score in ((False, 2, -3.0), (True, 2, -1.0), (True, 1, -3.0)):
        own = text(prompt=prompt, beam=1, max_length=2, lenpen=0.0)
        own.tokens, own.log_probs, own.totals = [[3]], [[-1.0]], torch.tensor([-1.0])
        made = torch.full((1, SYMBOLS), -math.inf)
        made[0, [END, 0]] = torch.tensor([-2.0, math.log(1 - math.exp(-2.0))])  # the first symbol is never written
        assert own.advance(made, step) is None
        assert own.finished[0].score == pytest.approx(score, abs=1e-5)
        assert own.finished[0].log_probs.tolist() == pytest.approx([-1.0, -2.0], abs=1e-5)


def test_symbols_that_are_no_text_are_never_written_and_the_end_not_too_early():
    own = text(beam=2, min_length=2, max_length=4)
    log_probs = torch.zeros(2, SYMBOLS)
    for step, barred in ((0, [0, 1, 2, 4]), (1, [0, 1, 2, 4]), (2, [0, 1, 4]), (3, [0, 1, 4]), (4, [0, 1, 3, 4, 5, 6])):
        allowed = own.restricted(log_probs, step)
        for row in allowed:
            assert [i for i, one in enumerate(row.tolist()) if one == -math.inf] == barred
            assert {one for one in row.tolist() if one != -math.inf} == {0.0}
    assert not log_probs.any()


def test_a_text_that_may_not_repeat_itself_ends_early_where_nothing_else_is_left():
    log_probs = torch.tensor([[0.0, 0.0, -5.0, 1.0, 0.0, 2.0, 3.0]] * 2)
    own = text([5], prompt=True, beam=2, min_length=4, max_length=9, no_repeat_ngram_size=1)
    own.tokens = [[3, 6], [3]]
    stuck, going = own.restricted(log_probs, 2).tolist()
    barred = [-math.inf] * SYMBOLS
    assert stuck == [*barred[:END], -5.0, *barred[END + 1 :]] and going == [*barred[:6], 3.0]
    own.settings = Search(beam=2, min_length=4, max_length=9)
    assert own.restricted(log_probs, 2).tolist() == [[*barred[:3], 1.0, -math.inf, 2.0, 3.0]] * 2


# Rules


def test_what_would_repeat_an_n_gram_is_found_by_its_definition():
    rng = random.Random(0)
    for _ in range(400):
        size, ignore = rng.randint(1, 4), {token for token in range(4) if rng.random() < 0.15}
        own = [rng.randrange(4) for _ in range(rng.randint(0, 9))]
        ngrams = [own[i : i + size] for i in range(len(own) - size + 1)]
        wanted = {
            token for token in range(4)
            if (own + [token])[-size:] in ngrams and not ignore & set((own + [token])[-size:]) and len(own) >= size - 1
        }  # fmt: skip
        assert set(repeating(own, size, ignore)) == wanted, (own, size, ignore)


def test_the_best_tokens_and_those_of_most_mass_are_kept():
    log_probs = torch.tensor([0.4, 0.1, 0.3, 0.2]).log()
    for top_k, top_p, kept in (
        (0, 1.0, [0, 1, 2, 3]), (1, 1.0, [0]), (2, 1.0, [0, 2]), (3, 1.0, [0, 2, 3]), (4, 1.0, [0, 1, 2, 3]),
        (9, 1.0, [0, 1, 2, 3]), (0, 0.39, [0]), (0, 0.41, [0, 2]), (0, 0.71, [0, 2, 3]), (0, 0.91, [0, 1, 2, 3]),
        (2, 0.56, [0]), (2, 0.58, [0, 2]), (3, 0.78, [0, 2, 3]), (3, 0.77, [0, 2]),
    ):  # fmt: skip
        for shape in ((4,), (1, 4), (1, 1, 4)):
            found = trimmed(log_probs.view(shape), top_k, top_p)
            assert found.shape == shape
            wanted = [float(log_probs[i]) if i in kept else -math.inf for i in range(4)]
            assert found.flatten().tolist() == wanted, (top_k, top_p)


def test_tokens_of_one_probability_are_kept_together_by_number_and_no_more_than_needed_by_mass():
    equal = torch.zeros(2, 4)
    assert (trimmed(equal, 2, 1.0) == 0).all()
    assert (trimmed(equal, 0, 0.5) == 0).sum(1).tolist() == [2, 2]
    assert (trimmed(equal, 0, 0.500001) == 0).sum(1).tolist() == [3, 3]
    assert trimmed(torch.tensor([0.0, -100.0]), 0, 1.0).tolist() == [0.0, -100.0]


# Draws


def test_draws_invert_the_cumulative_distribution_and_follow_seed_and_row():
    for row, seed in ((0, 5), (3, 5), (3, 6)):
        own = text(row=row, beam=3, nbest=3, max_length=6, sampling=True, seed=seed, top_k=3, top_p=0.9)
        uniforms = np.random.default_rng([seed, row]).random((7, 3))
        for step in range(7):
            log_probs = torch.randn(3, SYMBOLS, generator=torch.Generator().manual_seed(step)).log_softmax(-1)
            rows, drawn = own.drawn(log_probs, step)
            assert rows.tolist() == [0, 1, 2]
            for beam in range(3):
                weights = trimmed(log_probs[beam], 3, 0.9).double().exp().numpy()
                cumulative = np.cumsum(weights / weights.sum())
                assert int(drawn[beam]) == next(i for i in range(SYMBOLS) if cumulative[i] > uniforms[step, beam])


def test_everything_is_made_where_the_scores_are():
    own, log_probs = text(beam=3, max_length=6, sampling=True), torch.zeros(3, SYMBOLS, device="meta")
    for made in (own.restricted(log_probs, 6), *own.drawn(log_probs, 0)):
        assert made.device == torch.device("meta")


def test_draws_at_the_edges_of_a_token():
    own = text(beam=1, max_length=2, sampling=True)
    halves = torch.tensor([[-math.inf, 0.0, 0.0, -math.inf]])
    for uniform, token in ((0.0, 1), (0.4999, 1), (0.5, 2), (0.9999, 2), (1.0, 3)):
        own.uniforms = torch.full((3, 1), uniform, dtype=torch.float64)
        assert own.drawn(halves, 1)[1].tolist() == [token]


def test_a_text_that_is_drawn_is_scored_by_all_symbols_and_each_hypothesis_goes_on_by_itself():
    (own,) = found(1, beam=4, nbest=4, max_length=5, sampling=True, top_k=2, temperature=1.3, lenpen=0.0)
    assert len({tuple(one.tokens.tolist()) for one in own}) > 1
    for one in own:
        tokens = one.tokens.tolist()
        log_probs = [float((scores(0, tuple(tokens[:i])) / 1.3).log_softmax(0)[token])
                     for i, token in enumerate([*tokens, END])]  # fmt: skip
        assert one.log_probs.tolist() == pytest.approx(log_probs, abs=1e-5)
        assert one.score == pytest.approx(sum(log_probs), abs=1e-5)
