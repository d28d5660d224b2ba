"""Searches over a table of scores: by the rules of beam search in plain Python, and on a card that only pretends."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.tiny_models import decoder, eight_symbols, sources, vocabulary
from unified.errors import UnifiedError
from unified.generation import SCHEMES, GenerationConfig, Hypothesis, generate, score
from unified.generation.ensemble import EnsembleDecoder
from unified.generation.penalties import PENALTIES

WORDS = vocabulary()
SPECIAL, SIZE = WORDS.special, len(WORDS)
END, PAD = SPECIAL.separator, SPECIAL.pad
NEVER = {SPECIAL.begin, PAD, SPECIAL.mask}
STATES = 997


def after(state, token):
    """The row of the table behind another token: of an integer, or of a tensor of them."""
    return (31 * state + token + 7) % STATES


@dataclass
class Source:
    """State of each sentence before anything is written."""

    state: torch.Tensor
    visible: torch.Tensor
    longest: int

    def select(self, index: torch.Tensor) -> Source:
        return Source(self.state.index_select(0, index), self.visible.index_select(0, index), self.longest)


@dataclass
class Rows:
    source: Source
    state: torch.Tensor

    def reorder(self, rows: torch.Tensor) -> None:
        self.state = self.state[rows]


@dataclass
class Table:
    """A decoder whose scores are rows of a table, chosen by the source and by all tokens that were written."""

    scheme: str = "cloze"
    table: torch.Tensor = field(
        default_factory=lambda: 2 * torch.randn(STATES, SIZE, generator=torch.Generator().manual_seed(1))
    )
    special = SPECIAL
    vocabulary_size = SIZE
    members = ()

    def __post_init__(self) -> None:
        self.scheme = SCHEMES[self.scheme]
        self.left_out = torch.zeros(SIZE, dtype=torch.bool, device=self.table.device)
        self.called: list = []

    def encode(self, tokens: torch.Tensor) -> Source:
        real = (tokens != PAD) & ((tokens != END) | (not self.scheme.prompt))
        state = torch.zeros_like(tokens[:, 0])
        for column, there in zip(tokens.T, real.T, strict=True):
            state = torch.where(there, after(state, column), state)
        visible = torch.cat([torch.ones_like(real[:, :1]), real], dim=1)
        return Source(state, visible, int(visible.sum(1).max()))

    def check_positions(self, needed: int) -> None:
        self.called.append(("positions", needed))

    def begin(self, source: Source, beam: int, most: int | None = None) -> Rows:
        self.called.append(("begin", beam, most))
        return Rows(source, source.state.repeat_interleave(beam))

    def step(self, last: torch.Tensor | None, rows: Rows, temperature: float = 1.0) -> torch.Tensor:
        self.called.append("step")
        rows.state = rows.state if last is None else after(rows.state, last)
        return self.table[rows.state] / temperature


def by_definition(
    table: Table, source: list[int], config: GenerationConfig, prefix: list[int]
) -> list[tuple[list[int], float]]:
    """Texts and scores of one source, from all continuations of every text that goes on."""
    given = [token for token in source if token != PAD and (token != END or not table.scheme.prompt)]
    start = 0
    for token in given:
        start = after(start, token)
    prompt = given if table.scheme.prompt else []
    going, finished = [((), 0.0)], []
    for length in range(config.max_length + 1):
        found = []
        is_cut = length == config.max_length and table.scheme.prompt  # then the end is not the model's
        for text, total in going:
            state = start
            for token in text:
                state = after(state, token)
            scores = (table.table[state].double() / config.temperature).log_softmax(0).tolist()
            for token in followers(prompt, list(text), config, prefix):
                found.append((total if is_cut else total + scores[token], text, token))
        found = sorted(found, reverse=True)[: 2 * config.width]
        counted = length if is_cut else length + 1
        penalty = PENALTIES[config.length_penalty](counted, config.lenpen)
        for rank, (total, text, token) in enumerate(found):
            if token == END and rank < config.width and len(finished) < config.width:
                finished.append((list(text), total / penalty))
        going = [((*text, token), total) for total, text, token in found if token != END][: config.width]
        if len(finished) == config.width or not going:
            break
    return sorted(finished, key=lambda one: -one[1])[: config.nbest]


def followers(prompt: list[int], text: list[int], config: GenerationConfig, prefix: list[int]) -> set[int]:
    """Tokens that may stand behind a text."""
    if len(text) == config.max_length:
        return {END}
    if len(text) < len(prefix):
        return {prefix[len(text)]}
    size, ignored = config.no_repeat_ngram_size, config.no_repeat_ngram_ignore
    allowed = set(range(SIZE)) - NEVER
    if size:
        whole = prompt + text
        tail = whole[len(whole) - size + 1 :]
        if len(whole) >= size and not ignored & set(tail):
            ngrams = (whole[i : i + size] for i in range(len(whole) - size + 1))
            allowed -= {ngram[-1] for ngram in ngrams if ngram[:-1] == tail} - ignored
    if len(text) < config.min_length:
        allowed.discard(END)
        if not allowed:  # only blocking can leave nothing
            return {END}
    return allowed


def rows_of(items: list[list[int]]) -> torch.Tensor:
    width = max(map(len, items))
    return torch.tensor([[*item, *[PAD] * (width - len(item))] for item in items])


def assert_same(found: list[Hypothesis], expected: list[tuple[list[int], float]]) -> None:
    assert [one.tokens.tolist() for one in found] == [text for text, _ in expected]
    assert [one.score for one in found] == pytest.approx([own for _, own in expected], abs=1e-4)


@pytest.mark.parametrize("scheme", ["cloze", "left_to_right"])
@pytest.mark.parametrize("beam", [1, 2, 3])
def test_a_search_finds_what_the_rules_of_beam_search_say(scheme, beam):
    rng, table = random.Random(beam), Table(scheme)
    table.table[:, END] += 1.5
    words = range(SPECIAL.ordinary_start, SPECIAL.ordinary_stop)
    lengths = set()
    for number, temperature in enumerate((1.0, 2.0, 0.5, 2.0)):
        config = GenerationConfig(
            beam=beam,
            nbest=rng.randint(1, beam),
            max_length=rng.randint(4, 6),
            min_length=rng.randint(0, 3),
            length_penalty=rng.choice(["fairseq", "unilm"]),
            lenpen=rng.choice([0.0, 1.0, 1.6]),
            no_repeat_ngram_size=(0, 2, 1, 2)[number],
            no_repeat_ngram_ignore=frozenset([words[0]]) if number == 2 else frozenset(),
            temperature=temperature,
        )
        items = [[*rng.choices(words, k=rng.choice([0, 3, 30])), END] for _ in range(6)]
        prefixes = [rng.choices([*words, END], k=rng.randint(0, config.max_length)) for _ in items]
        prefixes = [one[: one.index(END) + 1] if END in one else one for one in prefixes]
        for forced in (None, rows_of(prefixes)):
            found = generate(table, rows_of(items), config, forced)
            for item, hypotheses, prefix in zip(items, found, prefixes, strict=True):
                assert_same(hypotheses, by_definition(table, item, config, [] if forced is None else prefix))
                lengths |= {len(one.tokens) for one in hypotheses}
    assert len(lengths) > 3


def test_a_prompt_keeps_its_order_for_blocking_however_long_it_is():
    """Words that the model likes best stand in a prompt of many tokens, so that no n-gram of it comes again."""
    table, rng = Table("left_to_right"), random.Random(2)
    table.table[:, END] -= 9.0
    config = GenerationConfig(beam=2, max_length=8, no_repeat_ngram_size=2)
    words = range(SPECIAL.ordinary_start, SPECIAL.ordinary_stop)
    items = [[*rng.choices(words, k=length), END] for length in (60, 19, 33, 5)]
    for item, found in zip(items, generate(table, rows_of(items), config), strict=True):
        assert_same(found, by_definition(table, item, config, []))


def test_all_that_a_prefix_may_hold_is_taken():
    """The first id and the last one, one id alone, and as many tokens as the text may have."""
    table, rows = Table(), torch.tensor([[5, END]])
    for prefix in ([0, SIZE - 1], [SIZE - 1], [6, 6, 6]):
        config = GenerationConfig(beam=2, max_length=3)
        (found,) = generate(table, rows, config, torch.tensor([prefix]))
        assert found[0].tokens[: len(prefix)].tolist() == prefix
        assert_same(found, by_definition(table, [5, END], config, prefix))
    table.left_out[7] = True
    with pytest.raises(UnifiedError, match="^prefix holds id 7, a symbol that the model has not learnt to write$"):
        generate(table, rows, GenerationConfig(max_length=3), torch.tensor([[6, 7]]))


def test_positions_are_asked_for_first():
    """The longest source with its begin symbol, all that may be written, and the token that asks for the end symbol."""
    table = Table()
    generate(table, rows_of([[5, END], [5, 6, 7, END]]), GenerationConfig(beam=2, max_length=9))
    assert table.called[:3] == [("positions", 5 + 9 + 1), ("begin", 2, 9), "step"]


def test_scores_that_are_not_numbers_are_refused():
    for options in ({"beam": 2}, {"beam": 1, "sampling": True}):
        with pytest.raises(UnifiedError, match="^the model's scores are not numbers; its parameters seem to be damag"):
            generate(Table(table=torch.full((STATES, SIZE), math.nan)), torch.tensor([[5, END]]), GenerationConfig(
                max_length=3, **options
            ))  # fmt: skip


OPTIONS = {
    "beam": {"beam": 2, "nbest": 2, "no_repeat_ngram_size": 2},
    "greedy": {"beam": 1},
    "drawn": {"beam": 2, "nbest": 2, "sampling": True, "top_k": 9, "seed": 4},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_search_on_a_card_finds_what_one_on_a_cpu_finds_and_keeps_no_gradients(name):
    table = Table("left_to_right")
    table.table[:, END] += 1.0
    items, prefix = rows_of([[5, END], [END]]), rows_of([[END], [8]])  # the first one leaves at once
    config = GenerationConfig(max_length=3, **OPTIONS[name])
    expected = generate(table, items, config, prefix)
    assert len({len(one.tokens) for some in expected for one in some}) > 1
    with PretendCard():
        own = Table("left_to_right", table.table.to(DEVICE).requires_grad_())
        found = generate(own, items.to(DEVICE), config, prefix)
        for mine, other in zip(found, expected, strict=True):
            assert_same(mine, [(one.tokens.tolist(), one.score) for one in other])
            for one in mine:
                assert one.tokens.device.type == one.log_probs.device.type == "cpu"
                assert not one.log_probs.requires_grad


ROWS = torch.tensor([[5, 6, 7, 5, 2], [7, 7, 2, 1, 1], [2, 1, 1, 1, 1]])
TARGETS = torch.tensor([[5, 6, 7, 2], [7, 2, 1, 1], [1, 1, 1, 1]])


def test_targets_are_scored_by_the_mean_probability_of_all_models_without_gradients():
    alone = [eight_symbols(seed=seed, layers=1) for seed in range(3)]
    each = [score(one, ROWS, TARGETS) for one in alone]
    for count in (1, 2, 3):
        found = score(EnsembleDecoder(alone[:count]), ROWS, TARGETS)
        mean = sum(one.exp() for one in each[:count]) / count
        torch.testing.assert_close(found, mean.log().masked_fill(TARGETS == 1, 0.0))
        assert not found.requires_grad and not torch.allclose(each[0], each[1], atol=0.1)
    for wrong in ([[1, 5]], [[5, 1, 6]], [[5, 6, 1, 2]]):
        with pytest.raises(UnifiedError, match="^targets must be padded on the right$"):
            score(alone[0], ROWS[:1], torch.tensor(wrong))


@torch.no_grad()
def test_targets_on_a_card_are_scored_as_on_a_cpu():
    own, rows = decoder(layers=1), sources([4, 1])
    targets = torch.tensor([[5, 6, END], [7, END, PAD]])
    expected = score(own, rows, targets)
    with PretendCard():
        own.model.to(DEVICE)
        found = score(own, rows.to(DEVICE), targets.to(DEVICE))
        assert found.device.type == DEVICE.type
        torch.testing.assert_close(found.cpu(), expected, atol=1e-5, rtol=1e-5)
