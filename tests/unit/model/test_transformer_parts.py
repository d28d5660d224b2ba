"""Parts of the Transformer by their definitions: refusals, what each attention is prepared for, positions, tables."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from tests.support.pretend_card import DEVICE, PretendCard
from unified import masks
from unified.attention import BackendChoice
from unified.errors import UnifiedError
from unified.masks import NO_KEY, AttentionMask
from unified.model import Transformer, TransformerConfig
from unified.model import transformer as parts
from unified.model.key_relations import Relations
from unified.model.relative import Memory, TransformerXLAttention

SHAPE = {"layers": 2, "width": 16, "heads": 2, "max_positions": 32, "attention_dropout": 0.0, "dropout": 0.0}


def model(vocabulary: int = 20, **changes) -> Transformer:
    torch.manual_seed(0)
    return Transformer(TransformerConfig(vocabulary, **{**SHAPE, **changes})).eval()


def inputs(length: int = 5, rows: int = 2) -> dict:
    positions = torch.arange(length).expand(rows, -1)
    mask = masks.batch([masks.bidirectional(length)] * rows)
    return {"tokens": positions + 1, "positions": positions, "token_types": positions * 0, "mask": mask}


def streamed(length: int = 5, targets: int = 2) -> dict:
    own = inputs(length)
    stream = torch.arange(targets).expand(2, -1)
    steps = torch.ones(2, length + targets, dtype=torch.long)
    mask = AttentionMask(
        query_step=steps,
        key_start=steps[:, :length],
        key_stop=steps[:, :length] * 2,
        query_key=torch.cat([torch.arange(length), torch.full((targets,), NO_KEY)]).expand(2, -1),
    )
    both = torch.cat([own["positions"], stream], dim=1)
    return {**own, "positions": both, "token_types": both * 0, "mask": mask}


def refusal(call, *given, **options) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*given, **options)
    return str(raised.value)


def test_what_a_model_cannot_be_given_is_refused_in_these_words():
    assert refusal(model, vocabulary=0) == "vocabulary_size must be at least 1, got 0"
    assert model(vocabulary=1).embeddings.tokens.num_embeddings == 1
    learned, entity = model(), model(sublayers="entity,feed_forward")
    assert refusal(entity, **inputs()) == (
        "the model has entity-aware attention ('entity' among its sublayers), and this input does not say which "
        "tokens lie within named entities"
    )
    assert entity(**inputs(), entities=torch.ones(2, 5, dtype=torch.bool)).shape == (2, 5, 16)
    wants = "needs a model with positions 'relative' (XLNet) or 'rotary', not 'learned'"
    assert refusal(learned, **streamed()) == f"a query stream (here 7 positions for 5 tokens) {wants}"
    assert refusal(learned, **inputs(), memory=Memory(3, 2)) == f"a memory {wants}"
    assert refusal(learned, **streamed(), memory=Memory(3, 2)) == f"a memory {wants}"
    for kind in ("relative", "rotary"):
        assert model(positions=kind)(**streamed(), memory=Memory(3, 2)).shape == (2, 7, 16)


@pytest.mark.parametrize("kind", ["relative", "rotary"])
def test_a_memory_that_holds_something_has_the_rows_of_the_text(kind):
    reader, memory = model(positions=kind), Memory(3, 2)
    for _ in range(2):
        reader(**inputs(rows=2), memory=memory)
    assert refusal(reader, **inputs(rows=3), memory=memory) == "memory must have the 3 rows of tokens, got 2"
    memory.clear()
    assert reader(**inputs(rows=3), memory=memory).shape == (3, 5, 16) and memory.filled == 2
    single, of_one = model(positions=kind, layers=1), Memory(3, 2)
    for _ in range(2):
        single(**inputs(), memory=of_one)
    assert len(of_one.states) == 1 and of_one.filled == 3


def test_layers_that_cannot_be_compiled_are_refused(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda layer, **options: layer)
    for kind in ("relative_key", "relative_value", "entity"):
        assert refusal(model(sublayers=f"self,{kind}").compile_layers) == (
            "layers whose attention reads clipped distances or entities cannot be compiled"
        )
    assert refusal(model(positions="relative", attention_dropout=0.1).compile_layers) == (
        "layers with relative positions and attention dropout cannot be compiled; set attention_dropout to 0 "
        "(fairseq-train --attention-dropout 0)"
    )
    for allowed in ({"attention_dropout": 0.1}, {"positions": "relative"}, {"positions": "rotary"}, {}):
        model(**allowed).compile_layers()
    blocked = model(attention_backend="blocked").train()
    blocked(**inputs())
    blocked.compile_layers()
    message = "compiled layers cannot go by the attention backend 'blocked'; choose 'sdpa' or 'dense'"
    assert refusal(blocked, **inputs()) == message
    blocked.eval()(**inputs())


def test_training_goes_by_compiled_layers_and_nothing_else_does(monkeypatch):
    """All layers but the last for one shape; the last for any number of states that are read."""
    made, marked, ran = [], [], []

    def compiled(layer, **options):
        made.append((layer, options))
        return lambda *given: ran.append(layer) or layer(*given)

    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setattr(torch._dynamo, "maybe_mark_dynamic", lambda tensor, axis: marked.append((tensor, axis)))
    reader, wanted = model(layers=3, attention_backend="sdpa"), torch.tensor([7, 2])
    expected, few = reader(**inputs()), reader(**inputs(), output_indices=wanted)
    reader.compile_layers(backend="mine", fullgraph=True)
    first, second, last = reader.layers
    options = {"backend": "mine", "fullgraph": True}
    assert made == [(first, {"dynamic": False, **options}), (second, {"dynamic": False, **options}), (last, options)]
    torch.testing.assert_close(reader(**inputs()), expected)
    assert not ran
    reader.train()
    torch.testing.assert_close(reader(**inputs()), expected)
    assert ran == [first, second, last] and not marked
    torch.testing.assert_close(reader(**inputs(), output_indices=wanted), few)
    assert len(marked) == 1 and marked[0][0] is wanted and marked[0][1] == 0
    reader.eval()(**inputs(), output_indices=wanted)
    assert len(ran) == 6 and len(marked) == 1


@pytest.mark.parametrize("kind", ["relative", "rotary"])
def test_compiled_layers_meet_query_streams_of_few_lengths(kind, monkeypatch):
    """Rounded up to 16 queries in training, where states of some indices are wanted; the states are the same."""
    monkeypatch.setattr(torch, "compile", lambda layer, **options: layer)
    reader, wanted, met = model(positions=kind, attention_backend="sdpa"), torch.tensor([13, 0, 5]), []
    reader.layers[0].register_forward_pre_hook(lambda module, given: met.append(given[0].size(1)))
    expected = reader(**streamed(), output_indices=wanted)
    reader.compile_layers()
    reader(**streamed(), output_indices=wanted)
    reader.train()
    found = reader(**streamed(), output_indices=wanted)
    torch.testing.assert_close(found, expected)
    reader(**streamed())
    assert met == [7, 7, 5 + 16, 7]


class Asked(BackendChoice):
    """A choice of a backend that notes what it is asked."""

    def __init__(self) -> None:
        super().__init__("dense")
        self.calls: list[tuple] = []

    def forward(self, mask, *others):
        self.calls.append((mask, *others))
        return super().forward(mask, *others)


@pytest.mark.parametrize("training", [False, True])
def test_attention_is_prepared_once_for_each_kind_and_window(training):
    """A mask without its own token for 'neighbor', within the window of its layer; what it needs; dropout's rate."""
    reader = model(layers=4, sublayers="self,neighbor,feed_forward", attention_windows="0,1", attention_dropout=0.25)
    reader.backend, mask = Asked(), masks.batch([masks.left_to_right(5)] * 2)
    positions = torch.arange(5).expand(2, -1)
    prepared = reader.train(training).attentions(mask, positions, shapes_differ=True)
    assert reader.windows == (0, 0, 1, 1) * 2 and reader.hides_self == (False, True) * 4
    assert [prepared.index(one) for one in prepared] == [0, 1, 2, 3] * 2
    windowed = mask.windowed(1, positions, positions)
    expected = [mask, mask.without_self(), windowed, windowed.without_self()]
    rate, device = 0.25 if training else 0.0, torch.device("cpu")
    for call, known in zip(reader.backend.calls, expected, strict=True):
        assert torch.equal(call[0].dense(), known.dense())
        assert call[1:] == (torch.float32, device, rate, None, True, False)
    reader.backend.calls.clear()
    reader.attentions(mask, positions)
    assert [call[5] for call in reader.backend.calls] == [False] * 4


def test_what_an_attention_needs_is_told():
    for kind, needs in (("relative_key", "bias"), ("relative_value", "weights"), ("entity", None), ("self", None)):
        reader = model(sublayers=kind)
        reader.backend = Asked()
        reader.attentions(inputs()["mask"], inputs()["positions"])
        assert [call[4] for call in reader.backend.calls] == [needs]


@pytest.mark.parametrize("window", [0, 2])
def test_a_memory_stands_in_front_of_the_keys(window):
    reader = model(positions="rotary", attention_windows=str(window))
    reader.backend, mask = Asked(), inputs()["mask"]
    reader.attentions(mask, inputs()["positions"], remembered=3)
    wide = mask.with_memory(3)
    positions = inputs()["positions"]
    keys = torch.arange(-3, 5).expand(2, -1)
    expected = wide.windowed(window, positions, keys) if window else wide
    assert torch.equal(reader.backend.calls[0][0].dense(), expected.dense())
    both = streamed()
    reader.attentions(both["mask"], both["positions"], remembered=3)
    wide = both["mask"].with_memory(3)
    expected = wide.windowed(window, both["positions"], keys) if window else wide
    assert torch.equal(reader.backend.calls[-1][0].dense(), expected.dense())


def test_each_layer_takes_its_own_attentions():
    reader = model(layers=3, sublayers="self,neighbor,feed_forward", attention_windows="0,1,2")
    given = inputs(length=7)
    prepared = reader.attentions(given["mask"], given["positions"])
    states = reader.embeddings(given["tokens"], given["positions"], given["token_types"])
    entered: list[torch.Tensor] = []
    for layer, views in zip(reader.layers, (prepared[0:2], prepared[2:4], prepared[4:6]), strict=True):
        entered.append(states)
        states = layer(states, [(one,) for one in views])
    kept: list[torch.Tensor] = []
    torch.testing.assert_close(reader(**given, hidden_states=kept), states)
    torch.testing.assert_close(kept, entered)


@pytest.mark.parametrize(
    ("changes", "relates"),
    [({}, False), ({"positions": "rotary"}, False), ({"positions": "relative"}, True), ({"sublayers": "entity"}, True)]
    + [({"sublayers": "neighbor,self"}, False), ({"sublayers": "self,relative_key"}, True)],
)
def test_rows_may_be_of_any_length_where_attention_skips_documents_and_reads_no_distances(changes, relates):
    device = torch.device("cpu")
    reader = model(attention_backend="blocked", **changes)
    assert reader.relates is relates and reader.skips_other_documents(device) is (not relates)
    assert model(attention_backend="dense", **changes).skips_other_documents(device) is False


@pytest.mark.parametrize("clamp", [0, 6])
def test_tables_of_distances_reach_as_far_as_texts(clamp):
    reader = model(positions="relative", clamp_len=clamp)
    for greatest in (1, 5, 6, 7, 30):
        reach = min(greatest, clamp or greatest)
        table = reader.distances(greatest)
        assert (table.reach, table.clipped) == (reach, clamp == reach)
        torch.testing.assert_close(table.rows, parts.sinusoids(reach, 16, torch.zeros(0)))
        grown = reader.growing_distances(greatest, None)
        assert grown.reach == min(2 * reach, clamp or 2 * reach)
        assert reader.growing_distances(reach, grown) is grown
    exact = reader.distances(4)
    assert reader.growing_distances(4, exact) is exact
    assert reader.growing_distances(5, exact).reach == (6 if clamp else 10)
    assert model().distances(3) is None and model().growing_distances(3, None) is None


def test_the_ends_of_transformer_xl_are_dropped_too():
    assert model(positions="relative", dropout=0.25).dropout.p == 0.25
    assert model(dropout=0.25).dropout.p == model(positions="rotary", dropout=0.25).dropout.p == 0.0
    sinusoids = model(positions="relative", dropout=0.5).train().distances(200).rows
    assert 0.4 < (sinusoids == 0).float().mean() < 0.6


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("filled", [0, 1, 4])
def test_a_memory_goes_on_in_front_of_the_text(step, filled):
    """In the direction of the text, which may be read backwards; one token, of which nothing tells, goes forwards."""
    positions = torch.tensor([[9 + step * i for i in range(3)], [i for i in range(3)]])
    found = parts.positions_with_memory(positions, filled)
    expected = [9 - step * i for i in range(filled, 0, -1)]
    assert found.tolist() == [expected + positions[0].tolist(), [*range(-filled, 3)]]
    assert parts.positions_with_memory(positions[:, :1], filled).tolist() == [
        [*range(9 - filled, 10)],
        [*range(-filled, 1)],
    ]
    assert torch.equal(parts.positions_with_memory(positions[:, :2], filled), found[:, : filled + 2])
    packed = torch.tensor([[5, 5 + step, 3 + 4 * step, 3]])  # behind two tokens another text begins
    assert parts.positions_with_memory(packed, filled).tolist() == [
        [5 - step * i for i in range(filled, 0, -1)] + packed[0].tolist()
    ]
    packed = torch.tensor([[5, 6, 0, 1]])
    before = [5 - i for i in range(filled, 0, -1)]
    assert parts.positions_with_memory(packed, filled).tolist() == [before + packed[0].tolist()]
    with PretendCard():
        assert torch.equal(parts.positions_with_memory(positions.to(DEVICE), filled).cpu(), found)


def test_a_window_that_hides_nothing_is_left_out():
    """A CPU looks; the farthest key decides, before or behind."""
    mask, cases = masks.bidirectional(3), [([4, 5, 6], [0, 1, 2], 6), ([0, 1, 2], [4, 5, 9], 9)]
    cases += [([0, 3, 5], [0, 3, 5], 5), ([14, 15, 16], [10, 11, 12], 6), ([-9, -8, -7], [-5, -4, 0], 9)]
    for queries, keys, farthest in cases:
        sides = torch.tensor(queries), torch.tensor(keys)
        assert parts.within_window(mask, farthest, *sides) is mask
        narrower = parts.within_window(mask, farthest - 1, *sides)
        assert torch.equal(narrower.dense(), mask.windowed(farthest - 1, *sides).dense())
        assert narrower.window == farthest - 1 and not narrower.dense().all()
    nothing = torch.zeros(0, dtype=torch.long)
    assert parts.within_window(masks.bidirectional(0), 1, nothing, nothing).window == 1


@pytest.mark.parametrize(("shift", "stride"), [(0, 1), (0, 3), (-5, 3), (-50, 1), (1000, 1)])
def test_queries_of_a_stream_stand_at_the_key_of_their_document_and_position(shift, stride):
    """Found one by one; positions of documents repeat, and the row ends in padding."""
    generator = torch.Generator().manual_seed(0)
    documents = [masks.bidirectional(n) for n in (4, 1, 3)]
    row = masks.pack(documents, 9)
    positions = torch.cat(
        [torch.randperm(n, generator=generator) * stride for n in (4, 1, 3)] + [torch.zeros(1).long()]
    )
    targets = torch.tensor([2, 0, 3, 1, 4, 7, 5, 6])  # all tokens: two that share a number would be one
    mask = AttentionMask(
        query_step=torch.cat([row.query_step, row.query_step[targets]])[None].expand(2, -1),
        key_start=row.key_start.repeat(2, 1),
        key_stop=row.key_stop.repeat(2, 1),
        document_ends=row.document_ends.repeat(2, 1),
        query_key=torch.cat([torch.arange(9), torch.full((8,), NO_KEY)]).expand(2, -1),
    )
    both = torch.cat([positions, positions[targets]]).expand(2, -1) + shift
    found = parts.keys_of_queries(mask, both)
    assert found.tolist() == [[*mask.own_keys[0, :9].tolist(), *targets.tolist()]] * 2


@pytest.mark.parametrize("backend", ["dense", "sdpa"])
@pytest.mark.parametrize("attn_type", ["bi", "uni"])
def test_a_mask_of_one_row_serves_query_streams_of_all_rows(attn_type, backend):
    """Also where their targets, and so the keys that they stand at, differ from row to row."""
    reader = model(positions="relative", attn_type=attn_type, attention_backend=backend, initializer_range=0.5)
    for given in (inputs(), streamed()):
        row = given["mask"].rows(slice(0, 1))
        one = AttentionMask(row.query_step[0], row.key_start[0], row.key_stop[0], query_key=row.own_keys[0])
        positions = given["positions"].clone()
        positions[1, 5:] = positions[1, 5:] + 2
        found = reader(**{**given, "mask": one, "positions": positions})
        expected = reader(**{**given, "positions": positions})
        torch.testing.assert_close(found, expected)
    assert (found[0, 5:] - found[1, 5:]).abs().max() > 1e-3


def test_a_query_behind_all_tokens_stands_at_the_last_one():
    """As while a text is written: the next token is no key yet."""
    steps = torch.ones(1, 4, dtype=torch.long)
    own = torch.tensor([[0, 1, 2, NO_KEY]])
    mask = AttentionMask(steps, steps[:, :3], steps[:, :3] * 2, query_key=own)
    assert parts.keys_of_queries(mask, torch.arange(4)[None]).tolist() == [[0, 1, 2, 2]]


def test_without_keys_no_query_stands_at_one():
    mask = masks.batch([masks.bidirectional(0)] * 2)
    found = parts.keys_of_queries(mask, torch.zeros(2, 0, dtype=torch.long))
    assert found.shape == (2, 0)
    step, none = torch.ones(1, 2, dtype=torch.long), torch.zeros(1, 0, dtype=torch.long)
    mask = AttentionMask(step, none, none, query_key=torch.full((1, 2), NO_KEY))
    assert parts.keys_of_queries(mask, step).tolist() == [[NO_KEY, NO_KEY]]


def test_a_query_stands_at_the_only_key():
    step = torch.ones(1, 2, dtype=torch.long)
    mask = AttentionMask(step, step[:, :1], step[:, :1] * 2, query_key=torch.tensor([[0, NO_KEY]]))
    assert parts.keys_of_queries(mask, step).tolist() == [[0, 0]]


@pytest.mark.parametrize(("norm", "expected"), [("pre", nn.LayerNorm), ("post", nn.Identity)])
def test_layers_that_begin_with_a_norm_end_with_one(norm, expected):
    assert type(model(norm=norm).norm) is expected


@pytest.mark.parametrize("filled", [0, 2])
def test_fused_attention_gets_its_relations_inverted_under_the_mask_of_all_keys(monkeypatch, filled):
    """The keys of the memory stand in front of the others; a pass without gradients inverts nothing."""
    seen = []
    monkeypatch.setattr(Relations, "inverted", lambda relations, mask: seen.append(mask) or relations)
    reader, own, memory = model(positions="relative", attention_backend="fused"), inputs(), Memory(3, 2)
    with torch.no_grad():
        for _ in range(filled // 2):
            reader(**own, memory=memory)
    assert memory.filled == filled and not seen
    reader(**own, memory=memory)
    assert [mask.key_length for mask in seen] == [5 + filled]
    model(positions="relative", attention_backend="sdpa")(**own)
    assert len(seen) == 1


def test_weights_are_drawn_and_biases_are_0():
    torch.manual_seed(0)
    for module in (nn.Linear(100, 90), nn.Linear(100, 90, bias=False), nn.Embedding(100, 90)):
        parts.initialize(module, 0.5)
        assert abs(module.weight.detach().std().item() - 0.5) < 0.02
    linear, norm = nn.Linear(3, 4), nn.LayerNorm(3)
    parts.initialize(linear, 0.5)
    assert not linear.bias.any()
    norm.weight.data.fill_(3.0)
    parts.initialize(norm, 0.5)
    assert (norm.weight == 3).all()
    attention = TransformerXLAttention(TransformerConfig(9, width=600, heads=2, positions="relative"))
    parts.initialize(attention, 0.5)
    assert abs(attention.segments.detach().std().item() - 0.5) < 0.1
