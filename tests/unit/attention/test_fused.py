"""Fused attention with the bias of relative positions, and compiled layers of two streams, beside dense attention."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch._dynamo.utils import counters

from tests.support.tiny_models import model
from unified import masks
from unified.attention import AUTOMATIC, BACKENDS, COMPILED, attend, choose, prepare
from unified.attention.fused import FusedAttention
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
    "hidden keys": lambda: masks.permutation(STEPS).without_keys(torch.tensor([False, True] * 3)),
}
NAMES = [*ROWS, "both streams", "both streams and memory"]


class Case:
    """Queries, keys and values, weights of the outputs, and what a bias is made of: numbers of one type.

    Args:
        positions: "differ" among the keys of a document, and repeat in other documents and in hidden keys; "repeat"
            anywhere, and some pairs lie beyond a clipped table.
    """

    def __init__(self, mask: AttentionMask, dtype: torch.dtype, positions: str = "differ", size: int = SIZE):
        self.mask = mask
        generator = torch.Generator().manual_seed(0)

        def drawn(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

        queries, keys = mask.query_length, mask.key_length
        self.leaves = [drawn(2, HEADS, length, size) for length in (queries, keys, keys)]
        self.leaves += [drawn(2, HEADS, queries, size) * size**-0.5, drawn(2, HEADS, queries, 2)]
        self.leaves += [drawn(HEADS, 2 * REACH + 1, size)]
        self.weights = drawn(2, HEADS, queries, size)
        types = torch.randint(0, 3, (2, queries + keys), generator=generator)
        if positions == "repeat":
            places = torch.randint(-7, 8, (2, queries + keys), generator=generator)
        else:
            places = torch.randint(-3, keys - 3, (2, queries + keys), generator=generator)
            for row, documents in zip(places[:, queries:], mask.key_documents(), strict=True):
                for number in range(mask.document_count):
                    own = documents == number
                    row[own] = torch.randperm(int(own.sum()), generator=generator) - 3
        table = DistanceTable(torch.zeros(2 * REACH + 1, 1), clipped=positions == "repeat")
        sides = [side for of in (places, types) for side in of.split([queries, keys], dim=1)]
        self.relations = Relations(*sides, keys, table)
        self.gathered = self.relations.inverted(mask)
        assert (self.gathered.keys_at is None) == (positions == "repeat")

    def attention(self, name: str, device: torch.device) -> Callable[..., torch.Tensor]:
        """What the backend reads of the leaves."""
        prepared = BACKENDS[name](self.mask.to(device), self.weights.dtype)
        given = self.gathered if name == "fused" else self.relations
        moved = {field: value.to(device) for field, value in vars(given).items() if isinstance(value, torch.Tensor)}
        relations = replace(given, **moved)
        return lambda *leaves: attend(*leaves[:3], prepared, bias=RelativeBias(relations, *leaves[3:]))

    def found(
        self, name: str, dtype: torch.dtype, device: torch.device = CPU, **compiler: object
    ) -> list[torch.Tensor]:
        """Values and all gradients, computed in this type; compiled where a compiler is given."""
        leaves = [leaf.detach().to(device, dtype).requires_grad_() for leaf in self.leaves]
        attention = self.attention(name, device)
        out = (torch.compile(attention, **compiler) if compiler else attention)(*leaves)
        return [out.detach(), *torch.autograd.grad((out * self.weights.to(device, dtype)).sum(), leaves)]


def assert_near(found: list[torch.Tensor], expected: list[torch.Tensor], tolerance: float) -> None:
    """Errors relative to the greatest number of each tensor."""
    for mine, reference in zip(found, expected, strict=True):
        scale = float(reference.abs().max()) or 1.0
        error = float((mine.detach().cpu().double() - reference.detach().cpu().double()).abs().max())
        assert error <= tolerance * scale, (tuple(reference.shape), error / scale)


@pytest.mark.parametrize("positions", ["differ", "repeat"])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_those_of_dense_attention(name, positions):
    """In float64 too, where a wrong term has nothing to hide behind."""
    case = Case(rows_of(name), torch.float64, positions)
    for mine, reference in zip(*(case.found(one, torch.float64) for one in ("fused", "dense")), strict=True):
        torch.testing.assert_close(mine, reference, atol=1e-12, rtol=1e-12)
    for mine, reference in zip(*(case.found(one, torch.float32) for one in ("fused", "dense")), strict=True):
        torch.testing.assert_close(mine, reference, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_in_bfloat16_errors_are_those_of_its_rounding(name):
    case = Case(rows_of(name), torch.bfloat16)
    assert_near(case.found("fused", torch.bfloat16), case.found("dense", torch.float64), 3e-2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["packed with padding", "both streams and memory"])
def test_gradients_are_those_of_finite_differences(name):
    case = Case(rows_of(name), torch.float64, size=3)
    leaves = [leaf.requires_grad_() for leaf in case.leaves]
    assert torch.autograd.gradcheck(case.attention("fused", CPU), leaves)


def test_second_derivatives_are_refused():
    """Its gradients are written out, and theirs are not: of a sum, too, whose gradients depend on no gradient."""
    case = Case(rows_of("permutation"), torch.float64)
    leaves = [leaf.requires_grad_() for leaf in case.leaves]
    out = case.attention("fused", CPU)(*leaves)
    for head in (out.sum(), out.pow(2).sum()):
        with pytest.raises(UnifiedError) as raised:
            torch.autograd.grad(head, leaves[:1], create_graph=True)
        assert str(raised.value) == (
            "attention backend 'fused' has no second derivatives (create_graph=True, torch.autograd.functional); "
            "choose 'dense' (attention_backend='dense')"
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_queries_that_see_nothing_give_zeros_and_get_no_gradient(dtype):
    mask = rows_of("both streams").with_idle_queries(3)
    out, *gradients = Case(mask, dtype).found("fused", dtype)
    for of_queries in (out, gradients[0], gradients[3], gradients[4]):
        assert not of_queries[:, :, -3:].any()
        assert of_queries[:, :, :-3].any()
    assert all(torch.isfinite(one).all() for one in gradients)


def test_layers_that_hide_more_share_the_relations():
    """Layers with a window, or that hide a token from itself, read the keys found for the mask of the whole text."""
    case = Case(masks.batch([masks.bidirectional(6)] * 2), torch.float64)
    case.mask = masks.batch([masks.permutation(STEPS), masks.sliding_window(6, 1)]).without_self()
    for mine, reference in zip(*(case.found(one, torch.float64) for one in ("fused", "dense")), strict=True):
        torch.testing.assert_close(mine, reference, atol=1e-12, rtol=1e-12)


def test_gradients_of_distances_are_gathered_by_the_keys_of_the_relations():
    """Without a scatter: where no key is named, none arrives."""
    case = Case(rows_of("both streams"), torch.float32)
    case.gathered = replace(case.gathered, keys_at=torch.full_like(case.gathered.keys_at, -1))
    *others, of_distances, of_segments, of_table = case.found("fused", torch.float32)
    assert not of_distances.any() and not of_table.any()
    torch.testing.assert_close(
        [*others, of_segments], [*(expected := case.found("dense", torch.float32))[:4], expected[5]]
    )


def test_a_query_that_sees_several_keys_at_one_distance_is_refused():
    """The gradient of only one of them would be found."""
    table, types = DistanceTable(torch.zeros(2 * REACH + 1, 1)), torch.zeros((1, 6), dtype=torch.long)
    positions = torch.tensor([[0, 1, 2, 0, 1, 2]])
    relations = Relations(positions, positions, types, types, 6, table)
    packed = masks.batch([masks.pack([masks.bidirectional(3)] * 2, 6)])
    keys_at = relations.inverted(packed).keys_at
    assert keys_at.shape == (1, 6, 24) and keys_at.dtype == torch.int32  # 19 distances, rounded up
    assert keys_at[0, 4, REACH - 2 : REACH + 3].tolist() == [-1, 3, 4, 5, -1]  # distances 2 to -2 of the fifth token
    with pytest.raises(RuntimeError, match="sees several keys at one distance, so positions repeat within a document"):
        relations.inverted(masks.bidirectional(6))
    pseudo_masked = masks.pseudo_masked([GIVEN, 1, 2])
    positions = torch.zeros((1, pseudo_masked.key_length), dtype=torch.long)
    with pytest.raises(RuntimeError, match="choose 'sdpa'"):
        Relations(positions, positions, positions, positions, positions.size(1), table).inverted(pseudo_masked)


@pytest.mark.slow
def test_relative_keys_are_those_of_dense_attention():
    """The other bias of distances, of vectors for a few of them (Shaw et al. 2018)."""
    torch.manual_seed(0)
    config = TransformerConfig(vocabulary_size=16, width=32, heads=2, clip_distance=2, attention_dropout=0.0)
    attention, states = RelativeKeyAttention(config), torch.randn(2, 6, 32, requires_grad=True)
    mask, positions = rows_of("permutation"), torch.arange(6).expand(2, -1)
    relations = Relations(positions, positions, positions, positions, 6)
    assert relations.inverted(mask) is relations
    results = []
    for backend in ("fused", "dense"):
        out = attention(states, BACKENDS[backend](mask, torch.float32), relations)
        results.append([out.detach(), *torch.autograd.grad(out.pow(2).sum(), [states, *attention.parameters()])])
    for mine, reference in zip(*results, strict=True):
        torch.testing.assert_close(mine, reference, atol=1e-5, rtol=1e-5)


def test_it_is_for_a_bias_on_a_card_and_without_dropout():
    mask, card = rows_of("permutation"), torch.device("cuda")
    chosen = partial(choose, needs="bias", automatic=(*COMPILED, *AUTOMATIC))
    assert chosen(mask, card, 0.0) is chosen(mask.causal(), card, 0.0) is FusedAttention
    assert chosen(mask, card, 0.0, needs=None) is BACKENDS["flex"]
    assert chosen(mask, card, 0.1) is chosen(mask, CPU, 0.0) is BACKENDS["sdpa"]
    assert choose(mask, card, 0.0, needs="bias") is BACKENDS["sdpa"]
    assert FusedAttention.compiles and not FusedAttention.any_shape
    with pytest.raises(UnifiedError, match=r"'fused' cannot serve this: .* no attention dropout \(got 0.1\); set"):
        prepare(mask, torch.float32, CPU, 0.1, backend="fused", needs="bias")
    with pytest.raises(UnifiedError, match="does not give its weights, which relative values read; use 'dense'"):
        prepare(mask, torch.float32, CPU, backend="fused", needs="weights")


def gradients(core, mask: AttentionMask, memory: Memory | None = None) -> list[torch.Tensor]:
    """Gradients of a batch in both streams, the second row of which is read backwards."""
    generator = torch.Generator().manual_seed(memory.filled if memory is not None else 0)
    tokens = torch.randint(4, 16, (2, 6), generator=generator)
    types = torch.randint(0, 2, (2, 9), generator=generator)
    positions = torch.tensor([[*range(6), *TARGETS], [*range(5, -1, -1), *(5 - target for target in TARGETS)]])
    given = [one.to(mask.device) for one in (tokens, positions, types)]
    indices = torch.tensor([6, 7, 8, 15, 16], device=mask.device)
    states = core.transformer(*given, mask, memory, output_indices=indices)
    parameters = [one for name, one in core.transformer.named_parameters() if "embeddings" not in name]
    return [states, *torch.autograd.grad(states.pow(2).sum(), parameters)]


SETTINGS = {"layers": 3, "positions": "relative", "dropout": 0.0, "attention_dropout": 0.0, "width": 32, "heads": 2}


@pytest.mark.parametrize(
    ("backend", "changes", "expected"),
    [
        ("fused", {}, [True]),
        ("fused", {"clamp_len": 3}, [False]),
        ("fused", {"clamp_len": 12}, [True]),
        ("sdpa", {}, []),
    ],
)
def test_relations_are_inverted_once_for_all_layers(backend, changes, expected, monkeypatch):
    """Where no distance is clipped, and only for gradients."""
    made, inverted = [], Relations.inverted

    def observed(relations, mask):
        made.append(inverted(relations, mask))
        return made[-1]

    monkeypatch.setattr(Relations, "inverted", observed)
    core = model(attention_backend=backend, **SETTINGS, **changes)
    found, reference = (gradients(one, both_streams()) for one in (core, model(**SETTINGS, **changes)))
    torch.testing.assert_close(found, reference, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        core.transformer(*torch.ones((3, 2, 6), dtype=torch.long), masks.bidirectional(6))
    assert [one.keys_at is not None for one in made] == expected


@pytest.fixture
def afresh():
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "compiler", "changes"),
    [
        ("dense", "eager", {}),
        ("sdpa", "eager", {}),
        ("fused", "aot_eager", {}),  # which compiles gradients too
        ("fused", "eager", {"clamp_len": 3}),
    ],
    ids=["dense", "sdpa", "fused", "fused, clipped distances"],
)
@pytest.mark.parametrize("remembers", [False, True], ids=["one text", "memory"])
def test_compiled_layers_of_two_streams_give_the_same_and_are_compiled_once(
    backend, compiler, changes, remembers, afresh
):
    plain = model(attention_backend="dense", **SETTINGS, **changes).train()
    compiled = model(attention_backend=backend, **SETTINGS, **changes).train()
    compiled.transformer.compile_layers(backend=compiler)
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
def test_packed_rows_of_other_documents_are_compiled_once(afresh):
    plain, compiled = (model(attention_backend=backend, **SETTINGS).train() for backend in ("dense", "fused"))
    compiled.transformer.compile_layers(backend="eager")
    graphs, parameters = [], [list(core.transformer.layers.parameters()) for core in (plain, compiled)]
    for lengths in ((6,), (2, 4), (3, 1, 2), (1, 4)):
        mask = masks.batch([masks.pack([masks.permutation(range(n)) for n in lengths], 6)] * 2)
        positions = torch.tensor([*(i for n in lengths for i in range(n)), 0][:6]).expand(2, -1)
        given = torch.arange(4, 10).expand(2, -1), positions, torch.arange(6).expand(2, -1) % 2, mask
        results = []
        for core, own in zip((plain, compiled), parameters, strict=True):
            states = core.transformer(*given)[:, : sum(lengths)]
            results.append([states, *torch.autograd.grad(states.pow(2).sum(), own)])
        torch.testing.assert_close(*results, atol=1e-4, rtol=1e-4)
        graphs.append(counters["stats"]["unique_graphs"])
    assert graphs == [2] * 4, graphs


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
@pytest.mark.parametrize("compiler", [{}, {"dynamic": False}], ids=["plain", "compiled"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_card_computes_the_same(name, dtype, compiler):
    case = Case(rows_of(name), dtype)
    found = case.found("fused", dtype, torch.device("cuda"), **compiler)
    assert_near(found, case.found("dense", torch.float64), 1e-3 if dtype == torch.float32 else 3e-2)


@pytest.mark.gpu
@pytest.mark.parametrize("changes", [{}, {"clamp_len": 3}], ids=["all distances", "clipped distances"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_card_trains_compiled_layers_of_two_streams(dtype, changes):
    card = torch.device("cuda")
    settings = {**SETTINGS, **changes, "initializer_range": 0.02}
    plain = model(attention_backend="dense", **settings).train().to(card)
    compiled = model(**settings).train().to(card)
    compiled.transformer.compile_layers()
    mask = both_streams().to(card)
    chosen = compiled.transformer.attentions(mask, torch.zeros((2, 9), dtype=torch.long, device=card))
    assert {type(one) for one in chosen} == {FusedAttention}
    expected = gradients(plain, mask)
    with torch.autocast("cuda", dtype=dtype, enabled=dtype != torch.float32):
        found = gradients(compiled, mask)
    assert_near(found, expected, 5e-3 if dtype == torch.float32 else 5e-2)
