"""Samples against the probabilities they are drawn from; n-gram blocking and length penalties against definitions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.tiny_models import EIGHT, eight_symbols, next_logits, sources
from unified.errors import UnifiedError
from unified.generation import GenerationConfig, generate
from unified.generation.ngrams import NgramBlocker
from unified.generation.penalties import PENALTIES
from unified.generation.sampling import draw, trim

END, WORDS = EIGHT.separator, (3, 5, 6, 7)
ROW = torch.tensor([[5, 6, 7, 2]])


def trimmed_by_hand(probabilities: dict[int, float], top_k: int, top_p: float) -> dict[int, float]:
    """The most probable tokens, one after another, until k are taken or their share of the k's mass reaches p."""
    ordered = sorted(probabilities.items(), key=lambda item: -item[1])[: top_k or None]
    mass, taken = sum(p for _, p in ordered), {}
    for token, p in ordered:
        if sum(taken.values()) >= top_p * mass:
            break
        taken[token] = p
    return {token: p / sum(taken.values()) for token, p in taken.items()}


@torch.no_grad()
def two_token_probabilities(cached, top_k, top_p, temperature) -> dict[tuple[int, ...], float]:
    """Probability of every text of at most two tokens, by full forward passes."""

    def following(written):
        logits = next_logits(cached.model, EIGHT, "cloze", ROW[0], written) / temperature
        logits[[EIGHT.begin, EIGHT.pad, EIGHT.mask]] = -torch.inf
        p = logits.softmax(0)
        return trimmed_by_hand({t: float(p[t]) for t in (*WORDS, END)}, top_k, top_p)

    found = {}
    for first, p in following([]).items():
        if first == END:
            found[()] = p
            continue
        for second, q in following([first]).items():
            found[(first,) if second == END else (first, second)] = p * q
    return found


@pytest.mark.parametrize(
    ("top_k", "top_p", "temperature"), [(0, 1.0, 1.0), (0, 1.0, 2.0), (3, 1.0, 1.0), (0, 0.8, 1.0), (4, 0.9, 1.5)]
)
def test_sampled_texts_have_the_models_probabilities(top_k, top_p, temperature):
    cached, samples = eight_symbols(seed=2), 4000
    options = {"max_length": 2, "min_length": 0, "top_k": top_k, "top_p": top_p, "temperature": temperature}
    config = GenerationConfig(beam=samples, nbest=samples, sampling=True, **options)
    (drawn,) = generate(cached, ROW, config)
    assert len(drawn) == samples
    expected = two_token_probabilities(cached, top_k, top_p, temperature)
    assert fits(drawn, expected)


def test_one_text_is_one_draw_and_not_the_most_probable_of_several():
    """Where the user does not say how many are drawn, the text of each source has the model's probabilities."""
    cached, samples = eight_symbols(seed=2), 4000
    options = {"max_length": 2, "min_length": 0, "sampling": True}
    expected = two_token_probabilities(cached, 0, 1.0, 1.0)
    rows = ROW.expand(samples, -1)
    assert fits([best for (best,) in generate(cached, rows, GenerationConfig(**options))], expected)
    assert not fits([best for (best,) in generate(cached, rows, GenerationConfig(**options, beam=5))], expected)
    several = generate(cached, rows[: samples // 2], GenerationConfig(**options, nbest=2))
    assert fits([one for some in several for one in some], expected) and {len(some) for some in several} == {2}
    assert GenerationConfig(**options, nbest=2, beam=5).width == 5 == GenerationConfig().width
    drawn = replace(GenerationConfig(), sampling=True)  # what was not said is decided by the settings as they are
    assert drawn.width == 1 and replace(drawn, nbest=3).width == 3 and replace(drawn, sampling=False).width == 5


def fits(drawn, expected) -> bool:
    """Whether texts come from a distribution, by a chi-squared test."""
    from scipy.stats import chisquare

    drawn, samples = [tuple(one.tokens.tolist()) for one in drawn], len(drawn)
    assert set(drawn) <= set(expected) and len(expected) >= 5
    likely = [text for text, p in expected.items() if p * samples >= 5]
    counts = [drawn.count(text) for text in likely]
    wanted = [expected[text] * samples for text in likely]
    counts.append(samples - sum(counts))
    wanted.append(samples - sum(wanted))
    if wanted[-1] < 5:  # too few for a category of their own
        counts[-2:], wanted[-2:] = [sum(counts[-2:])], [sum(wanted[-2:])]
    return chisquare(counts, wanted).pvalue > 0.001


def test_draws_depend_on_seed_and_index_alone():
    cached, rows = eight_symbols(), sources([5, 3, 2], words=4).clamp(max=7)

    def drawn(rows, seed, indices=None):
        config = GenerationConfig(beam=6, nbest=6, max_length=6, sampling=True, seed=seed)
        return [[h.tokens.tolist() for h in some] for some in generate(cached, rows, config, indices=indices)]

    assert drawn(rows, 1) == drawn(rows, 1) != drawn(rows, 2)
    assert drawn(rows[1:2], 1, indices=[1]) == drawn(rows, 1)[1:2] != drawn(rows[1:2], 1, indices=[7])
    same = rows[:1].expand(2, -1)
    assert drawn(same, 1)[0] != drawn(same, 1)[1]


def test_trimming_equals_its_definition():
    generator = torch.Generator().manual_seed(0)
    for top_k, top_p in itertools.product((0, 1, 3, 50), (0.05, 0.5, 0.9, 1.0)):
        log_probs = (3 * torch.randn(20, 12, generator=generator)).log_softmax(-1)
        of_beams = trim(log_probs.unflatten(0, (10, 2)), top_k, top_p)
        for row, trimmed in zip(log_probs, of_beams.flatten(0, 1), strict=True):
            expected = trimmed_by_hand({i: float(p) for i, p in enumerate(row.exp())}, top_k, top_p)
            assert set(trimmed.isfinite().nonzero().flatten().tolist()) == set(expected)
            assert (trimmed[list(expected)] == row[list(expected)]).all()


def test_a_share_that_is_reached_exactly_needs_no_further_token():
    equal = torch.zeros(3, 8)
    for count in range(1, 9):
        assert trim(equal, 0, count / 8).isfinite().sum(-1).tolist() == [count] * 3


def test_a_share_of_1_cuts_no_token_however_improbable():
    """Beside the first token the others have less than a float64 tells from nothing."""
    log_probs = torch.tensor([[0.0, -50.0, -90.0, -torch.inf]])
    assert torch.equal(trim(log_probs, 0, 1.0), log_probs)
    assert trim(log_probs, 0, 0.999).isfinite().sum() == 1


@pytest.mark.parametrize("score", [torch.nan, -torch.inf])
def test_what_is_drawn_is_a_token_even_where_no_score_is_a_number(score):
    """Search says so afterwards."""
    assert draw(torch.full((3, 5), score), torch.tensor([0.0, 0.5, 1 - 1e-16], dtype=torch.float64)).max() <= 4
    cached = eight_symbols()
    cached.model.heads["token"].bias.data.fill_(score)
    with pytest.raises(UnifiedError, match="^the model's scores are not numbers; its parameters seem to be damaged$"):
        generate(cached, ROW, GenerationConfig(beam=2, max_length=3, sampling=True))


@pytest.mark.parametrize("indices", [[], [3], [0, 1, 2]])
def test_each_source_has_an_index_for_its_draws(indices):
    with pytest.raises(UnifiedError) as raised:
        generate(eight_symbols(), ROW.expand(2, -1), GenerationConfig(max_length=3, sampling=True), indices=indices)
    assert str(raised.value) == f"indices must name each of 2 sources, got {len(indices)}"


def test_draw_inverts_the_cumulative_distribution():
    log_probs = torch.tensor([0.0, 0.25, 0.0, 0.5, 0.25, 0.0]).log()
    at = torch.tensor([0.0, 0.2499, 0.2501, 0.7499, 0.7501, 1 - 1e-16], dtype=torch.float64)
    assert draw(log_probs.expand(6, -1), at).tolist() == [1, 1, 3, 3, 4, 4]


# N-gram blocking


def banned_by_hand(text: list[int], size: int, ignore: set[int], vocabulary: int) -> set[int]:
    tail = text[len(text) - size + 1 :]
    if len(text) < size - 1 or any(token in ignore for token in tail):
        return set()
    seen = {tuple(text[i : i + size]) for i in range(len(text) - size + 1)}
    return {token for token in range(vocabulary) if (*tail, token) in seen and token not in ignore}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("ignore", [set(), {0}, {1, 3}])
def test_blocker_equals_its_definition_on_random_texts(size, ignore):
    rng = np.random.default_rng(size)
    blocker = NgramBlocker(size, ignore)
    bans = 0
    for length in range(0, 28, 3):
        tokens = torch.from_numpy(rng.integers(0, 4, (100, length)))
        log_probs = torch.randn(100, 5)
        before = log_probs.clone()
        result = blocker(tokens, log_probs)
        assert torch.equal(log_probs, before)
        for row, text in enumerate(tokens.tolist()):
            banned = banned_by_hand(text, size, ignore, 5)
            expected = [-torch.inf if token in banned else float(log_probs[row, token]) for token in range(5)]
            assert result[row].tolist() == expected
            bans += len(banned)
    assert bans > 10


def test_blocker_on_unilms_ignore_rule():
    """Facts of the v1 code: an ignored token in the tail lifts every ban; an ignored token is never banned itself."""
    text = torch.tensor([[7, 8, 9, 7, 8]])
    zeros = torch.zeros(1, 12)
    assert NgramBlocker(3)(text, zeros)[0].isneginf().nonzero().tolist() == [[9]]
    assert not NgramBlocker(3, {7})(text, zeros).isneginf().any()
    assert not NgramBlocker(3, {9})(text, zeros).isneginf().any()
    assert NgramBlocker(3, {11})(text, zeros)[0].isneginf().nonzero().tolist() == [[9]]


@pytest.mark.parametrize("ignore", [set(), {3}])
def test_a_blocker_goes_to_a_card_and_back(ignore):
    """Nothing is waited for there."""
    tokens, log_probs = torch.randint(0, 4, (60, 30)), torch.randn(60, 5)
    blocker = NgramBlocker(2, ignore)
    expected = blocker(tokens, log_probs)
    assert expected.isneginf().any()
    with PretendCard() as card:
        found = blocker(tokens.to(DEVICE), log_probs.to(DEVICE))
        assert not card.looks
        assert torch.equal(found.cpu(), expected)
    assert torch.equal(blocker(tokens, log_probs), expected)


@pytest.mark.gpu
def test_blocker_is_the_same_on_a_gpu():
    tokens, log_probs = torch.randint(0, 4, (60, 30)), torch.randn(60, 5)
    blocker = NgramBlocker(2, {3})
    on_cpu = blocker(tokens, log_probs)
    assert on_cpu.isneginf().any()
    assert torch.equal(blocker(tokens.cuda(), log_probs.cuda()).cpu(), on_cpu)
    assert torch.equal(blocker(tokens, log_probs), on_cpu)  # and back again


def test_blocker_of_size_zero_is_refused():
    with pytest.raises(UnifiedError, match="at least 1, got 0"):
        NgramBlocker(0)


# Length penalties


def test_length_penalties_have_their_published_values():
    unilm, fairseq = PENALTIES["unilm"], PENALTIES["fairseq"]
    assert unilm(10, 0.6) == pytest.approx(1.7329, abs=5e-5)
    assert unilm(32, 0.6) == pytest.approx(2.9787, abs=5e-5)
    assert unilm(10, 1.0) == pytest.approx(2.5)
    assert unilm(10, 0.0) == 1.0
    assert fairseq(10, 1.0) == 10.0
    assert fairseq(9, 0.5) == 3.0
