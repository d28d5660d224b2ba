"""Decoding in tensors of fixed shapes against decoding with caches that grow, and its graphs on a card."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.tiny_models import decoder, model, sources, vocabulary
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, Hypothesis, generate
from unified.generation.ensemble import EnsembleDecoder
from unified.generation.fixed import halves, serves

SPECIAL = vocabulary().special
#: Those that ask by no query stream.
SERVED = [name for name, scheme in SCHEMES.items() if not scheme.query_stream]
LENGTHS = [5, 1, 9, 3, 7, 2, 6]


class Fixed(CachedDecoder):
    """A decoder that writes in fixed shapes on any device."""

    def begin(self, source, beam, most=None):
        return self.begin_fixed(source, beam, most)


class Growing(CachedDecoder):
    """A decoder that writes with growing caches on any device."""

    def begin(self, source, beam, most=None):
        return self.begin_growing(source, beam)


def both(scheme: str, end: float = 0.0, **changes) -> tuple[Fixed, Growing]:
    """Two decoders of one model, to the end symbol of which a bias is added."""
    cached = decoder(scheme, **changes)
    cached.model.heads["token"].bias.data[SPECIAL.separator] += end
    return tuple(kind(cached.model, SPECIAL, cached.scheme) for kind in (Fixed, Growing))


def same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]], atol: float = 1e-5) -> None:
    """Equal texts, in the same order, with equal scores."""
    for here, there in zip(found, expected, strict=True):
        assert [h.tokens.tolist() for h in here] == [h.tokens.tolist() for h in there]
        for one, other in zip(here, there, strict=True):
            torch.testing.assert_close(one.log_probs, other.log_probs, atol=atol, rtol=1e-5)
            assert one.score == pytest.approx(other.score, abs=atol)


def on(device: str, length: int = 20) -> SimpleNamespace:
    """What is asked of a source there: 1,000 bytes of keys and values for each of its tokens."""
    keys = SimpleNamespace(device=torch.device(device), size=lambda axis: {2: length}[axis])
    return SimpleNamespace(keys=[keys], bytes=1000 * length)


def test_it_serves_on_a_card_where_attention_is_plain_and_a_quarter_of_the_memory_suffices(monkeypatch):
    # 20 tokens and a beam of 5 take 32 columns, 40 steps of 5 rows take 48 x 5.
    memory, steps = 4 * 1000 * (32 + 48 * 5), 39
    card = SimpleNamespace(total_memory=memory)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    plain, by_distance = model(), model(positions="relative", token_types=2)
    scheme, by_queries = SCHEMES["cloze"], SCHEMES["permutation"]
    assert serves(plain, scheme, on("cuda"), 5, steps)
    assert not serves(plain, scheme, on("cpu"), 5, steps)
    assert not serves(by_distance, scheme, on("cuda"), 5, steps)
    assert not serves(plain, by_queries, on("cuda"), 5, steps)
    with monkeypatch.context() as patched:
        patched.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
        assert not serves(plain, scheme, on("cuda"), 5, steps)
    assert not serves(plain, scheme, on("cuda"), 5, 48)
    card.total_memory -= 4
    assert not serves(plain, scheme, on("cuda"), 5, steps)


@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("scheme", SERVED)
def test_texts_and_scores_are_those_of_growing_caches(scheme, beam, left):
    fixed, growing = both(scheme)
    rows = sources(LENGTHS, left=left, width=14)
    for options in (
        {"max_length": 12},
        {"max_length": 9, "min_length": 9},
        {"max_length": 9, "no_repeat_ngram_size": 2},
    ):
        config = GenerationConfig(beam=beam, nbest=beam, **options)
        same(generate(fixed, rows, config), generate(growing, rows, config))


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("scheme", SERVED)
def test_sentences_leave_at_different_steps(scheme, beam):
    """Until few of seven are left; they move together on the way, and nothing else is computed for long."""
    sizes = []
    for end in (4, 5, 6, 7):
        fixed, growing = both(scheme, end)
        step = fixed.step

        def counting(last, state, temperature, step=step):
            sizes.append((len(state.source.indices), state.sentences))
            return step(last, state, temperature)

        fixed.step = counting
        config = GenerationConfig(beam=beam, nbest=beam, max_length=20, min_length=0)
        same(generate(fixed, sources(LENGTHS), config), generate(growing, sources(LENGTHS), config))
    assert all(left <= computed < 2 * left for left, computed in sizes)
    assert len({computed for _, computed in sizes}) > 2
    assert any(left < computed for left, computed in sizes)


@pytest.mark.parametrize(
    "changes",
    [
        {"sublayers": "self,neighbor,feed_forward"},
        {"layers": 3, "attention_windows": "0,2,3"},
        {"layers": 3, "attention_windows": "0,2,3", "positions": "rotary", "norm": "pre"},
        {"sublayers": "neighbor,feed_forward", "attention_windows": "2,0"},
    ],
)
@pytest.mark.parametrize("scheme", SERVED)
def test_other_attentions_read_what_they_read_in_growing_caches(scheme, changes):
    fixed, growing = both(scheme, **changes)
    rows = sources(LENGTHS, left=True)
    config = GenerationConfig(beam=3, nbest=3, max_length=10)
    same(generate(fixed, rows, config), generate(growing, rows, config))


@pytest.mark.parametrize("scheme", SERVED)
def test_a_workspace_serves_the_next_search_of_its_shape(scheme):
    """A smaller batch, shorter texts, sources of a few more tokens: nothing of an earlier search is left."""
    fixed, growing = both(scheme)
    used = []
    for lengths, most in ((LENGTHS, 12), ([3, 9, 4], 12), ([11], 5), (LENGTHS, 12)):
        config = GenerationConfig(beam=3, nbest=3, max_length=most)
        rows = sources(lengths, seed=most + len(lengths))
        same(generate(fixed, rows, config), generate(growing, rows, config))
        used.append(fixed.workspace)
    assert all(workspace is used[0] for workspace in used)


def test_a_workspace_is_made_anew_for_another_shape_and_other_parameters():
    fixed, growing = both("cloze", max_positions=128)
    used = []
    for lengths, most, beam in (([4, 6], 9, 2), ([4, 6, 5], 9, 2), ([4, 6], 9, 3), ([40, 3], 9, 3), ([40, 3], 30, 3)):
        config = GenerationConfig(beam=beam, max_length=most)
        same(generate(fixed, sources(lengths), config), generate(growing, sources(lengths), config))
        used.append(fixed.workspace)
    assert len(set(used)) == 5
    fixed.model.double()
    generate(fixed, sources(lengths), config)
    assert fixed.workspace not in used
    made = fixed.workspace
    first = next(fixed.model.parameters())
    first.data = 2 * first.data
    generate(fixed, sources(lengths), config)
    assert fixed.workspace is not made


@pytest.mark.slow
def test_texts_longer_than_a_block():
    fixed, growing = both("cloze", max_positions=160)
    config = GenerationConfig(beam=2, nbest=2, max_length=130, min_length=130)
    same(generate(fixed, sources([5, 3]), config), generate(growing, sources([5, 3]), config))
    assert [block for _, block in fixed.workspace.steps] == [48, 80, 144]


def test_sampling_and_forced_prefixes():
    fixed, growing = both("next", end=1.0)
    rows, prefix = sources(LENGTHS), torch.randint(5, 9, (len(LENGTHS), 2))
    for config in (
        GenerationConfig(beam=4, nbest=4, max_length=15, sampling=True, temperature=1.3, top_k=7),
        GenerationConfig(beam=4, nbest=4, max_length=15),
    ):
        same(generate(fixed, rows, config, prefix), generate(growing, rows, config, prefix))


def test_an_ensemble_writes_in_fixed_shapes():
    pairs = [both("cloze", seed=seed, end=1.0) for seed in (0, 1)]
    fixed, growing = (EnsembleDecoder(members) for members in zip(*pairs, strict=True))
    config = GenerationConfig(beam=3, nbest=3, max_length=15)
    same(generate(fixed, sources(LENGTHS), config), generate(growing, sources(LENGTHS), config))


def test_searches_of_one_decoder_do_not_alternate():
    fixed, _ = both("cloze")
    source = fixed.encode(sources([4, 2]))
    first = fixed.begin_fixed(source, 2, 5)
    fixed.step(None, first)
    fixed.begin_fixed(source, 2, 5)
    with pytest.raises(UnifiedError, match="another search of the same decoder has begun"):
        fixed.step(torch.full((4,), 5), first)


def test_there_is_room_for_as_many_tokens_as_were_asked_for():
    fixed, _ = both("next", max_positions=200)
    state = fixed.begin_fixed(fixed.encode(sources([4])), 1, 15)
    for step in range(16):
        fixed.step(torch.tensor([5]) if step else None, state)
    with pytest.raises(UnifiedError, match="room for 16 steps"):
        fixed.step(torch.tensor([5]), state)
    with pytest.raises(UnifiedError, match="206 positions are needed"):
        fixed.begin_fixed(fixed.encode(sources([4])), 1, 199)


@pytest.mark.parametrize("first", [torch.inference_mode, torch.no_grad])
def test_searches_in_and_out_of_inference_mode_share_a_workspace(first):
    fixed, growing = both("cloze", end=5.0)
    config = GenerationConfig(beam=3, nbest=3, max_length=12)
    expected = generate(growing, sources(LENGTHS), config)
    used = []
    for mode in (first, torch.no_grad, torch.inference_mode):
        with mode():
            same(generate(fixed, sources(LENGTHS), config), expected)
        used.append(fixed.workspace)
    assert all(workspace is used[0] for workspace in used)


def test_halves():
    assert halves(64, 1, 1) == [1, 2, 4, 8, 16, 32, 64]
    assert halves(7, 1, 1) == [1, 2, 4, 7]
    assert halves(33, 64, 16) == [48]
    assert halves(129, 64, 16) == [48, 80, 144]


def test_a_search_on_the_cpu_goes_by_growing_caches():
    cached = decoder()
    generate(cached, sources([4, 2]), GenerationConfig(beam=2, max_length=4))
    assert cached.workspace is None


def on_cpu(one: Hypothesis) -> Hypothesis:
    return replace(one, tokens=one.tokens.cpu(), log_probs=one.log_probs.cpu())


WAYS = [*((Growing, name) for name in SCHEMES), *((Fixed, name) for name in SERVED)]


@pytest.mark.parametrize(("kind", "scheme"), WAYS)
@pytest.mark.parametrize(
    "options",
    [
        {"beam": 3, "no_repeat_ngram_size": 2},
        {"beam": 1},
        {"beam": 3, "sampling": True, "top_k": 5},
        {"beam": 3, "sampling": True, "top_p": 0.8},
    ],
    ids=["beam", "greedy", "top-k", "top-p"],
)
def test_on_a_card_texts_are_those_of_a_cpu_and_a_step_has_one_look(kind, scheme, options):
    """The look is whether the search may end."""
    cached, looks = decoder(scheme), {}
    growing = Growing(cached.model, SPECIAL, cached.scheme)
    rows = sources(LENGTHS)
    for length in (4, 8):
        config = GenerationConfig(nbest=options["beam"], max_length=length, min_length=length, **options)
        expected = generate(growing, rows, config)
        with PretendCard() as card:
            there = kind(copy.deepcopy(growing.model).to(DEVICE), SPECIAL, growing.scheme)
            found = generate(there, rows.to(DEVICE), config)
            looks[length] = card.looks.total()
            texts = [[on_cpu(one) for one in row] for row in found]
            same(texts, expected)
    assert looks[8] - looks[4] == 4


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("scheme", SERVED)
def test_graphs_write_what_growing_caches_write(scheme, beam, dtype):
    """In float32 the same texts; bfloat16, whose scores tie, gives the logits of each step within its rounding."""
    _, growing = both(scheme, end=1.0, width=64, heads=2, max_positions=128, initializer_range=0.1)
    growing.model.to("cuda", dtype)
    cached = CachedDecoder(growing.model, SPECIAL, growing.scheme)
    rows = sources([5, 1, 30, 3, 7, 2, 6]).cuda()
    if dtype == torch.float32:
        for _ in range(3):  # from the second on, graphs are replayed from the first step
            config = GenerationConfig(beam=beam, nbest=beam, max_length=40)
            same(generate(cached, rows, config), generate(growing, rows, config), atol=1e-4)
        assert any(step.captured for step in cached.workspace.steps.values())
        return
    source = growing.encode(rows)
    written = torch.randint(5, 16, (len(rows) * beam, 30), device="cuda")
    fixed_state, state = cached.begin(source, beam, 40), growing.begin(source, beam)
    for last in (None, *written.unbind(1)):
        with torch.no_grad():
            found, expected = cached.step(last, fixed_state), growing.step(last, state)
        torch.testing.assert_close(found.softmax(-1), expected.softmax(-1), atol=2e-2, rtol=0)
    assert all(step.captured for step in cached.workspace.steps.values())
