"""FlexAttention with the bias of relative positions, and compiled layers of two streams, beside dense attention.

On a CPU it is FlexAttention's definition without a compiler, of which torch refuses to take gradients; it has them.
"""

from functools import partial

import pytest
import torch
from torch._dynamo.utils import counters
from torch.nn.attention.flex_attention import flex_attention

from tests.support.tiny_models import model
from unified import masks
from unified.attention import AUTOMATIC, BACKENDS, COMPILED, Backend, attend, choose, prepare
from unified.attention.flex import BiasedFlexAttention
from unified.errors import UnifiedError
from unified.masks import GIVEN, AttentionMask
from unified.model import TransformerConfig
from unified.model.key_relations import DistanceTable, Relations
from unified.model.relative import Memory, RelativeBias
from unified.model.variants import RelativeKeyAttention

HEADS, SIZE, REACH = 2, 16, 9
CPU = torch.device("cpu")
TARGETS = [1, 2, 5]
STEPS = [GIVEN, 3, 1, GIVEN, 2, 4]


def both_streams(memory: int = 0) -> AttentionMask:
    """Rows of an order and its query stream, behind memory; the second one has hidden tokens too."""
    content = masks.permutation(STEPS)
    content = content.with_memory(memory, filled=memory - 1) if memory else content
    rows = []
    for hidden in (torch.zeros(memory + 6, dtype=torch.bool), torch.arange(memory + 6) % 4 == 3):
        seen = content.without_keys(hidden)
        stream = content.query_stream(TARGETS)
        rows.append(
            AttentionMask(
                query_step=torch.cat([seen.query_step, stream.query_step]),
                key_start=seen.key_start,
                key_stop=seen.key_stop,
                document_ends=torch.tensor([7], dtype=seen.key_start.dtype),
                query_key=torch.cat([seen.own_keys, stream.own_keys]),
            )
        )
    return masks.batch(rows)


def rows_of(name: str) -> AttentionMask:
    return masks.batch([ROWS[name]()] * 2) if name in ROWS else both_streams(4 if name.endswith("memory") else 0)


ROWS = {
    "full": lambda: masks.bidirectional(6),
    "permutation": lambda: masks.permutation(STEPS),
    "packed with padding": lambda: masks.pack([masks.seq2seq(2, 1), masks.permutation([2, 1])], length=6),
    "sees nothing": lambda: masks.permutation(range(1, 7)).query_stream([2, 0, 5]),
    "without self": lambda: masks.permutation(STEPS).without_self(),
    "window": lambda: masks.sliding_window(6, 1, 2),
}
NAMES = [*ROWS, "both streams", "both streams and memory"]


class Case:
    """Queries, keys and values, weights of the outputs, and what a bias is made of."""

    def __init__(self, mask: AttentionMask, dtype: torch.dtype = torch.float32, device: torch.device = CPU):
        self.mask = mask
        generator = torch.Generator().manual_seed(0)

        def drawn(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator).to(device, dtype).requires_grad_()

        queries, keys = mask.query_length, mask.key_length
        self.states = [drawn(2, HEADS, length, SIZE) for length in (queries, keys, keys)]
        self.parts = [drawn(2, HEADS, queries, SIZE), drawn(2, HEADS, queries, 2), drawn(HEADS, 2 * REACH + 1, SIZE)]
        self.weights = torch.randn((2, HEADS, queries, SIZE), generator=generator).to(device, dtype)
        positions = torch.randint(-7, 8, (2, queries + keys), generator=generator)  # some pairs lie beyond the table
        types = torch.randint(0, 3, (2, queries + keys), generator=generator)
        sides = [side.to(device) for of in (positions, types) for side in of.split([queries, keys], dim=1)]
        self.relations = Relations(*sides, keys, DistanceTable(torch.zeros(2 * REACH + 1, 1, device=device)))

    def found(self, backend: type[Backend]) -> list[torch.Tensor]:
        """Values and all gradients."""
        bias = RelativeBias(self.relations, *self.parts)
        out = attend(*self.states, backend(self.mask, self.states[0].dtype), bias=bias)
        return [out.detach(), *torch.autograd.grad((out * self.weights).sum(), [*self.states, *self.parts])]


@pytest.fixture
def on_a_cpu(monkeypatch):
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda query, key, value: None)
    monkeypatch.setattr("unified.attention.flex.compiled_flex_attention", lambda: flex_attention)
    monkeypatch.setattr(BiasedFlexAttention, "unsupported", staticmethod(lambda mask, device, dropout, needs: None))
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_those_of_dense_attention(name, on_a_cpu):
    case = Case(rows_of(name))
    found, expected = (case.found(BACKENDS[backend]) for backend in ("flex_bias", "dense"))
    for mine, reference in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, reference, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_relative_keys_are_those_of_dense_attention(on_a_cpu):
    """The other bias of distances, of vectors for a few of them (Shaw et al. 2018)."""
    torch.manual_seed(0)
    config = TransformerConfig(vocabulary_size=16, width=32, heads=2, clip_distance=2, attention_dropout=0.0)
    attention, states = RelativeKeyAttention(config), torch.randn(2, 6, 32, requires_grad=True)
    mask, positions = rows_of("permutation"), torch.arange(6).expand(2, -1)
    relations = Relations(positions, positions, positions, positions, 6)
    results = []
    for backend in ("flex_bias", "dense"):
        out = attention(states, BACKENDS[backend](mask, torch.float32), relations)
        results.append([out.detach(), *torch.autograd.grad(out.pow(2).sum(), [states, *attention.parameters()])])
    for mine, reference in zip(*results, strict=True):
        torch.testing.assert_close(mine, reference, atol=1e-5, rtol=1e-5)


def test_it_is_for_a_bias_on_a_card():
    mask, card = rows_of("permutation"), torch.device("cuda")
    chosen = partial(choose, needs="bias", automatic=(*COMPILED, *AUTOMATIC))
    assert chosen(mask, card, 0.0) is BiasedFlexAttention
    assert chosen(mask, card, 0.0, needs=None) is BACKENDS["flex"]
    assert chosen(mask, card, 0.1) is chosen(mask, CPU, 0.0) is BACKENDS["sdpa"]
    assert chosen(mask.causal(), card, 0.0) is BACKENDS["sdpa"]
    with pytest.raises(UnifiedError, match="'flex_bias' cannot serve this: FlexAttention has no backward on cpu"):
        prepare(mask, torch.float32, CPU, backend="flex_bias", needs="bias")


def gradients(core, mask: AttentionMask, memory: Memory | None) -> list[torch.Tensor]:
    """Of a batch in both streams, the second row of which is read backwards."""
    generator = torch.Generator().manual_seed(memory.filled if memory is not None else 0)
    tokens = torch.randint(4, 16, (2, 6), generator=generator)
    types = torch.randint(0, 2, (2, 9), generator=generator)
    positions = torch.tensor([[*range(6), *TARGETS], [*range(5, -1, -1), *(5 - target for target in TARGETS)]])
    states = core.transformer(tokens, positions, types, mask, memory, output_indices=torch.tensor([6, 7, 8, 15, 16]))
    parameters = [one for name, one in core.transformer.named_parameters() if "embeddings" not in name]
    return [states, *torch.autograd.grad(states.pow(2).sum(), parameters)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("backend", ["dense", "sdpa", "flex_bias"])
@pytest.mark.parametrize("remembers", [False, True], ids=["one text", "memory"])
def test_compiled_layers_of_two_streams_give_the_same_and_are_compiled_once(backend, remembers, on_a_cpu):
    """Dynamo's graphs are run as they are: on a CPU, FlexAttention has no backward behind them."""
    settings = {"layers": 3, "positions": "relative", "dropout": 0.0, "attention_dropout": 0.0, "width": 32, "heads": 2}
    plain = model(attention_backend="dense", **settings).train()
    compiled = model(attention_backend=backend, **settings).train()
    compiled.transformer.compile_layers(backend="eager")
    memories = [Memory(4, 4) if remembers else None for _ in range(2)]
    graphs = []
    for _ in range(4):
        mask = both_streams()
        pairs = zip((compiled, plain), memories, strict=True)
        found, expected = (gradients(core, mask, memory) for core, memory in pairs)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        graphs.append(counters["stats"]["unique_graphs"])
    assert not counters["graph_break"]
    assert graphs[1:] == [graphs[1]] * 3, graphs


@pytest.mark.slow
def test_query_streams_of_many_lengths_are_compiled_once():
    """They are rounded up by queries that see nothing, which nobody reads."""
    torch._dynamo.reset()
    counters.clear()
    settings = {"layers": 3, "positions": "relative", "dropout": 0.0, "attention_dropout": 0.0}
    plain, compiled = (model(attention_backend="sdpa", **settings).train() for _ in range(2))
    compiled.transformer.compile_layers(backend="eager")
    graphs = []
    content = masks.permutation(range(1, 13))
    tokens, indices = torch.arange(12).expand(2, -1), torch.arange(12)
    for count in range(1, 11):
        stream = content.query_stream(range(count))
        mask = AttentionMask(
            query_step=torch.cat([content.query_step, stream.query_step]),
            key_start=content.key_start,
            key_stop=content.key_stop,
            query_key=torch.cat([indices, stream.own_keys]),
        )
        positions = torch.cat([indices, indices[:count]]).expand(2, -1)
        wanted = torch.tensor([0, 12, 12 + count, 12 + count + 12])
        given = tokens, positions, torch.zeros_like(positions), masks.batch([mask, mask])
        found, expected = (core.transformer(*given, output_indices=wanted) for core in (compiled, plain))
        torch.testing.assert_close(found, expected)
        graphs.append(counters["stats"]["unique_graphs"])
    assert graphs == [2] * 10, graphs


def test_attention_dropout_and_compiled_layers_of_relative_positions_are_refused():
    with pytest.raises(UnifiedError, match="attention dropout cannot be compiled; set attention_dropout to 0"):
        model(positions="relative", attention_dropout=0.1).transformer.compile_layers()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_card_computes_the_same(name, dtype):
    card = torch.device("cuda")
    expected = Case(rows_of(name), torch.float64).found(BACKENDS["dense"])
    found = Case(rows_of(name).to(card), dtype, card).found(BACKENDS["flex_bias"])
    tolerance = 1e-3 if dtype == torch.float32 else 5e-2
    for mine, reference in zip(found, expected, strict=True):
        scale = float(reference.abs().max()) or 1.0
        torch.testing.assert_close(mine.cpu().double() / scale, reference / scale, atol=tolerance, rtol=tolerance)


@pytest.mark.gpu
def test_a_card_trains_compiled_layers_of_two_streams():
    card = torch.device("cuda")
    settings = {"layers": 3, "positions": "relative", "dropout": 0.0, "attention_dropout": 0.0, "width": 32, "heads": 2}
    results = []
    for backend in ("dense", "flex_bias"):
        core = model(attention_backend=backend, **settings).train().to(card)
        if backend == "flex_bias":
            core.transformer.compile_layers()
        tokens, types = torch.full((2, 6), 5, device=card), torch.zeros((2, 9), dtype=torch.long, device=card)
        positions = torch.tensor([[*range(6), *TARGETS]] * 2, device=card)
        states = core.transformer(tokens, positions, types, both_streams().to(card))
        layers = list(core.transformer.layers.parameters())
        results.append([states, *torch.autograd.grad(states.pow(2).sum(), layers)])
    for mine, reference in zip(*results, strict=True):
        scale = float(reference.abs().max()) or 1.0
        torch.testing.assert_close(mine / scale, reference / scale, atol=5e-3, rtol=5e-3)
