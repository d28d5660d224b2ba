"""XLNet on the shared Transformer against ``transformers``: both streams, memory, both directions, gradients, names."""

import numpy as np
import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from tests.support.token_files import SPECIAL
from unified.conversions.xlnet_names import from_xlnet, to_xlnet
from unified.data.collate import collate
from unified.data.text import Text
from unified.errors import UnifiedError
from unified.masks import GIVEN, NO_KEY, AttentionMask, bidirectional, left_to_right, pack, permutation
from unified.masks import batch as batch_of
from unified.model import PRESETS, TransformerConfig, UnifiedModel
from unified.model.relative import Memory
from unified.objectives.xlnet import XLNet

LAYERS, WIDTH, HEADS, VOCABULARY = 3, 32, 4, 50


def theirs(bi_data=False, **changes):
    """A model of ``transformers``."""
    from transformers import XLNetConfig, XLNetLMHeadModel

    torch.manual_seed(0)
    sizes = dict(
        vocab_size=VOCABULARY, d_model=WIDTH, n_layer=LAYERS, n_head=HEADS, d_inner=64, mem_len=11, reuse_len=6
    )
    model = XLNetLMHeadModel(XLNetConfig(**{**sizes, "bi_data": bi_data, **changes})).eval()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def ours(model, **changes) -> UnifiedModel:
    sizes = dict(vocabulary_size=model.config.vocab_size, layers=LAYERS, width=WIDTH, heads=HEADS, feed_forward=64)
    own = UnifiedModel.for_language(PRESETS["xlnet_tiny"](**{**sizes, **changes})).eval()
    found, new = from_xlnet(model.state_dict(), LAYERS)
    assert new == []
    missing, unexpected = own.load_state_dict(found, strict=False)
    missing = {name for name in missing if not name.startswith("heads.next_sentence")}
    assert not unexpected and missing == {"transformer.embeddings.tokens.scored"}
    return own


class Case:
    """A batch of random orders: our mask of both streams, and the tensors that ``transformers`` takes."""

    def __init__(self, rows=4, length=10, targets=3, seed=0):
        torch.manual_seed(seed)
        self.length, self.rows = length, rows
        self.tokens = torch.randint(0, VOCABULARY, (rows, length))
        self.types = torch.randint(0, 3, (rows, length))
        steps = 1 + torch.stack([torch.randperm(length) for _ in range(rows)])
        steps[:, ::3] = GIVEN
        self.indices = torch.stack([torch.nonzero(row)[:, 0][:targets] for row in steps])
        own = torch.cat([torch.arange(length), torch.full((targets,), NO_KEY)]).expand(rows, -1)
        self.mask = AttentionMask(
            query_step=torch.cat([steps, steps.gather(1, self.indices) - 1], dim=1),
            key_start=steps,
            key_stop=torch.full_like(steps, length + 1),
            document_ends=torch.full((rows, 1), length + 1),
            query_key=own,
        )
        hidden = ~self.mask.dense()[:, :length]
        hidden[:, torch.arange(length), torch.arange(length)] = steps > 0
        self.perm_mask = hidden.float()
        self.target_mapping = torch.nn.functional.one_hot(self.indices, length).float()

    def positions(self, backward_from=None):
        ascending = torch.arange(self.length).repeat(self.rows, 1)
        if backward_from is not None:
            ascending[backward_from:] = -ascending[backward_from:]
        return torch.cat([ascending, ascending.gather(1, self.indices)], dim=1)

    def run(self, model, memory=None, backward_from=None):
        types = torch.cat([self.types, self.types.gather(1, self.indices)], dim=1)
        return model.transformer(self.tokens, self.positions(backward_from), types, self.mask, memory)

    def run_theirs(self, model, mems=None):
        return model(
            self.tokens, token_type_ids=self.types, perm_mask=self.perm_mask, target_mapping=self.target_mapping,
            mems=mems, use_mems=True,
        )  # fmt: skip


@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
def test_content_stream_is_that_of_transformers(backend):
    case, model = Case(), theirs()
    found = case.run(ours(model, attention_backend=backend))[:, : case.length]
    expected = model.transformer(case.tokens, token_type_ids=case.types, perm_mask=case.perm_mask).last_hidden_state
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
@pytest.mark.parametrize("both_directions", [False, True])
@pytest.mark.parametrize("length, taken", [(11, 6), (4, 7), (35, 15)], ids=["cut", "short", "longer than the text"])
@torch.no_grad()
def test_query_stream_and_memory_are_those_of_transformers(backend, both_directions, length, taken):
    """Four batches that go on from each other; with both directions the second half of the rows is read backwards."""
    model = theirs(bi_data=both_directions, mem_len=length, reuse_len=taken)
    own, memory, mems = ours(model, attention_backend=backend), Memory(length, taken), None
    for seed in range(4):
        case = Case(seed=seed)
        output = case.run_theirs(model, mems)
        states = case.run(own, memory, backward_from=2 if both_directions else None)
        torch.testing.assert_close(own.logits(states[:, case.length :]), output.logits, atol=1e-4, rtol=1e-4)
        mems = output.mems
        assert memory.filled == min(length, min(taken, case.length) * (seed + 1))
        for remembered, expected in zip(memory.states, mems, strict=True):
            torch.testing.assert_close(remembered, expected.transpose(0, 1), atol=1e-4, rtol=1e-4)
            assert remembered.untyped_storage().nbytes() == remembered.nbytes, "what is forgotten is freed"


@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
def test_gradients_of_all_parameters_are_those_of_transformers(backend):
    case, model = Case(), theirs()
    own, weight = ours(model, attention_backend=backend), torch.randn(4, 3, VOCABULARY)
    memory = Memory(11, 6)
    with torch.no_grad():
        mems = case.run_theirs(model).mems
        case.run(own, memory)
    (case.run_theirs(model, mems).logits * weight).sum().backward()
    (own.logits(case.run(own, memory)[:, case.length :]) * weight).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    expected, _ = from_xlnet(gradients, LAYERS)
    found = {name: p.grad for name, p in own.named_parameters() if not name.startswith("heads.next_sentence")}
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        scale = float(expected[name].abs().max())
        assert scale > 0, name
        torch.testing.assert_close(gradient / scale, expected[name] / scale, atol=1e-4, rtol=1e-4)
    for kept in (Memory(11, 6), memory):
        case.run(own, kept)
        assert not any(states.requires_grad for states in kept.states)


#: Settings of transformers' XLNetConfig, which are ours too.
DIRECTIONS = {
    "uni": {"attn_type": "uni"},
    "clamped": {"clamp_len": 4},
    "uni and clamped": {"attn_type": "uni", "clamp_len": 3},
}


def one_way(perm_mask):
    """What ``attn_type`` "uni" hides, as a permutation mask: ``transformers`` fails where a batch of texts has both."""
    return torch.maximum(perm_mask, torch.ones_like(perm_mask).triu(1))


def expected_of(case, model, mems):
    """Logits (B, P, V) and memories of ``transformers``, text by text where it takes no batch.

    Where half of a batch runs backwards a text is no batch, so there the permutation mask hides what stands behind.
    """
    perm_mask, rows = case.perm_mask, [slice(None)]
    if model.config.attn_type == "uni" and model.config.bi_data:
        perm_mask, model.transformer.attn_type = one_way(perm_mask), "bi"
    elif model.config.attn_type == "uni":
        rows = [slice(i, i + 1) for i in range(case.rows)]
    found = [
        model(
            case.tokens[row], token_type_ids=case.types[row], perm_mask=perm_mask[row],
            target_mapping=case.target_mapping[row], mems=None if mems is None else [m[:, row] for m in mems],
            use_mems=True,
        )
        for row in rows
    ]  # fmt: skip
    mems = [torch.cat(parts, dim=1) for parts in zip(*(one.mems for one in found), strict=True)]
    return torch.cat([one.logits for one in found]), mems


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
@pytest.mark.parametrize("both_directions", [False, True])
@pytest.mark.parametrize("setting", DIRECTIONS)
def test_one_way_attention_and_clamped_distances_are_those_of_transformers(setting, both_directions, backend):
    """Random orders of prediction, two streams, memory, gradients: to 1e-5 of each tensor's greatest entry."""
    model = theirs(bi_data=both_directions, **DIRECTIONS[setting])
    own, memory, mems = ours(model, attention_backend=backend, **DIRECTIONS[setting]), Memory(11, 6), None
    weight, backward_from = torch.randn(4, 3, VOCABULARY), 2 if both_directions else None
    for seed in range(3):
        case = Case(seed=seed)
        logits, mems = expected_of(case, model, mems)
        states = case.run(own, memory, backward_from)
        assert_close_to(own.logits(states[:, case.length :]), logits)
        for remembered, expected in zip(memory.states, mems, strict=True):
            assert_close_to(remembered, expected.transpose(0, 1))
    (logits * weight).sum().backward()
    (own.logits(states[:, case.length :]) * weight).sum().backward()
    expected, _ = from_xlnet({name: parameter.grad for name, parameter in model.named_parameters()}, LAYERS)
    for name, parameter in own.named_parameters():
        if not name.startswith("heads.next_sentence"):
            assert expected[name].abs().max() > 0, name
            assert_close_to(parameter.grad, expected[name])


def assert_close_to(found, expected):
    scale = expected.detach().abs().max()
    torch.testing.assert_close(found / scale, expected / scale, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("setting", DIRECTIONS)
@torch.no_grad()
def test_without_an_order_one_way_attention_is_that_of_transformers(setting):
    """Tokens alone under the bidirectional mask, longer than the clamped distance; each setting changes something."""
    model, tokens = theirs(**DIRECTIONS[setting]), torch.randint(0, VOCABULARY, (3, 12))
    own, indices, zeros = ours(model, **DIRECTIONS[setting]), torch.arange(12).expand(3, 12), torch.zeros_like(tokens)
    mask = batch_of([bidirectional(12)] * 3)
    found = own.transformer(tokens, indices, zeros, mask)
    assert_close_to(found, model(tokens, token_type_ids=zeros, output_hidden_states=True).hidden_states[-1])
    both_ways = ours(model).transformer(tokens, indices, zeros, mask)
    assert (found - both_ways).abs().max() > 1e-2
    if "uni" in setting:
        torch.testing.assert_close(found, own.transformer(tokens, indices, zeros, batch_of([left_to_right(12)] * 3)))


@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
@pytest.mark.parametrize("direction", [1, -1], ids=["forwards", "backwards"])
def test_one_way_attention_lets_nothing_through_from_behind(direction, backend):
    """Gradients reach exactly the tokens that order and direction allow; a query with none has a finite state."""
    steps, targets = [4, GIVEN, 3, GIVEN, 1, GIVEN], [0, 2, 4]
    own = ours(theirs(), attn_type="uni", attention_backend=backend)
    content = permutation(steps)
    stream = content.query_stream(targets)
    mask = AttentionMask(
        query_step=torch.cat([content.query_step, stream.query_step])[None],
        key_start=content.key_start[None],
        key_stop=content.key_stop[None],
        query_key=torch.cat([torch.arange(6), torch.full((3,), NO_KEY)])[None],
    )
    embedded = []
    own.transformer.embeddings.tokens.register_forward_hook(lambda module, inputs, output: embedded.append(output))
    indices = direction * torch.tensor([[*range(6), *targets]])
    states = own.transformer(torch.randint(0, VOCABULARY, (1, 6)), indices, torch.zeros_like(indices), mask)
    assert torch.isfinite(states).all()
    expected = [{j for j in range(i + 1) if steps[j] <= steps[i]} for i in range(6)]
    expected += [{j for j in range(i) if steps[j] < steps[i]} for i in targets]
    assert expected[6:] == [set(), {1}, {1, 3}]
    for query, seen in enumerate(expected):
        (gradient,) = torch.autograd.grad(states[0, query].pow(2).sum(), embedded[0], retain_graph=True)
        assert set(gradient[0].abs().sum(-1).nonzero()[:, 0].tolist()) == seen, query


@torch.no_grad()
def test_dropout_is_where_transformers_has_it(monkeypatch):
    """With every dropout a fixed factor: both streams' embeddings, the sinusoids, weights, sublayers, last states."""

    def scaled(states, p=0.5, training=True, inplace=False):
        return states * (1 + p) if training else states

    monkeypatch.setattr(torch.nn.functional, "dropout", scaled)
    case, model = Case(), theirs(dropout=0.3)
    rates = dict.fromkeys(("dropout", "attention_dropout", "inner_dropout"), 0.3)
    own = ours(model, attention_backend="dense", **rates)
    assert not torch.allclose(own.train().logits(case.run(own)), own.eval().logits(case.run(own)), atol=0.1)
    memory, mems = Memory(11, 6), None
    for mode in (True, True, False):
        output = case.run_theirs(model.train(mode), mems)
        states = case.run(own.train(mode), memory)
        torch.testing.assert_close(own.logits(states[:, case.length :]), output.logits, atol=1e-4, rtol=1e-4)
        mems = output.mems


def test_every_weight_begins_normal():
    torch.manual_seed(0)
    own = UnifiedModel.for_language(PRESETS["xlnet_tiny"](vocabulary_size=VOCABULARY, initializer_range=0.1))
    for name, parameter in own.named_parameters():
        if "norm" not in name and not name.endswith(".bias"):
            tolerance = 5 / np.sqrt(parameter.numel())
            assert parameter.std().item() == pytest.approx(0.1, rel=tolerance), name
            assert parameter.mean().item() == pytest.approx(0, abs=0.1 * tolerance), name


@torch.no_grad()
def test_only_distances_within_a_document_matter():
    """Two texts of a row, each counted from anywhere: the states are the same, and no distance is too great."""
    own, tokens = ours(theirs()), torch.randint(0, VOCABULARY, (1, 12))
    mask = batch_of([pack([permutation([GIVEN, 2, 1, GIVEN, 3]), bidirectional(6)], 12)])
    indices, types = torch.tensor([[*range(5), *range(6), 0]]), torch.tensor([[0] * 3 + [1] * 4 + [0] * 5])
    expected = own.transformer(tokens, indices, types, mask)
    moved = indices + torch.tensor([[1000] * 5 + [-70] * 6 + [0]])
    torch.testing.assert_close(own.transformer(tokens, moved, types, mask), expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_text_of_one_token_stands_right_behind_its_memory():
    """The direction of one token cannot be told from the next, which is another text's: it goes forwards."""
    own, memories = ours(theirs()), (Memory(4, 4), Memory(4, 4))
    tokens, zeros = torch.randint(0, VOCABULARY, (1, 7)), torch.zeros(1, 7, dtype=torch.long)
    alone = batch_of([left_to_right(7)])  # whose first token sees the memory and itself
    shared = batch_of([pack([bidirectional(1), bidirectional(4)], 7)])
    for memory in memories:
        own.transformer(tokens, torch.arange(7)[None], zeros, batch_of([bidirectional(7)]), memory)
    expected = own.transformer(tokens, torch.arange(7)[None], zeros, alone, memories[0])[:, :1]
    indices = torch.tensor([[0, *range(4), 0, 0]])
    found = own.transformer(tokens, indices, zeros, shared, memories[1])
    torch.testing.assert_close(found[:, :1], expected, atol=1e-5, rtol=1e-5)


def test_names_come_back_bit_by_bit():
    model = theirs()
    kind, found, left_out = to_xlnet(dict(ours(model).named_parameters()), LAYERS)
    assert kind == "XLNetLMHeadModel" and all(name.startswith("heads.next_sentence") for name in left_out)
    original = model.state_dict()
    assert found.keys() == original.keys()
    assert all(torch.equal(found[name], original[name]) for name in found)


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda state: state.pop("transformer.layer.1.rel_attn.q"), "missing: transformer.layer.1.rel_attn.q"),
        (lambda state: state.update({"qa.weight": torch.zeros(1)}), "unknown: qa.weight"),
        (lambda state: state.update({"lm_loss.weight": torch.zeros(VOCABULARY, WIDTH)}), "must be tied"),
    ],
)
def test_parameters_of_something_else_are_refused(change, says):
    state = theirs().state_dict()
    change(state)
    with pytest.raises(UnifiedError, match=says):
        from_xlnet(state, LAYERS)


def published_perm_mask(order, predicted, functional, reuse):
    """``_local_perm`` of the published data_utils.py for both halves, from the drawn order alone; 1 is hidden."""
    halves = []
    for half in (slice(0, reuse), slice(reuse, len(order))):
        target, special = predicted[half], functional[half]
        context = ~target & ~special
        step = torch.where(context, -1, order[half])
        own = torch.where(target, step, step + 1)
        halves.append((own[:, None] <= step[None, :]) & (target | special)[None, :])
    first, second = halves
    above = torch.cat([first, torch.ones(len(first), len(second), dtype=torch.bool)], dim=1)
    below = torch.cat([torch.zeros(len(second), len(first), dtype=torch.bool), second], dim=1)
    return torch.cat([above, below]).float()


@pytest.mark.parametrize("setting", [{}, {"attn_type": "uni", "clamp_len": 7}], ids=["bi", "uni and clamped"])
def test_a_batch_of_the_objective_gives_the_losses_of_the_published_inputs(setting):
    """Objective, collation, steps and both streams together; two examples of different lengths share a row."""
    model = theirs(vocab_size=SPECIAL.ordinary_start + 60 + 101, clamp_len=setting.get("clamp_len", -1))
    own, rng = ours(model, **setting), np.random.default_rng(0)
    texts = [(24, 13, False), (9, 8, True), (30, 3, False)]
    examples = []
    for first, second, backward in texts:
        tokens = rng.integers(4, 60, first + second)
        starts = rng.random(first + second) < 0.6
        text = Text(tokens[:first], SPECIAL, tokens[first:], True, starts, backward)
        # A query before which nothing stands sees nothing and reads zero; transformers averages all values there.
        drawn = (XLNet(reuse=12)(text, rng) for _ in range(50))
        examples.append(
            next(
                example
                for example in drawn
                if example.targets["token"].output_indices[0, 0] > 1 and example.mask.key_start[0] == GIVEN
            )
        )
    batch = collate([examples[:2], examples[2:]], 64, ("xlnet",), SPECIAL.pad)
    loss = own(batch)["xlnet"]
    total = torch.zeros(())
    for example in examples:
        backward = bool(example.positions[0])
        model.config.bi_data = model.transformer.bi_data = backward
        tokens, labels = torch.from_numpy(example.tokens)[None], torch.from_numpy(example.targets["token"].labels)
        length, indices = tokens.size(1), torch.from_numpy(example.targets["token"].output_indices[:, 0])
        target, order = torch.zeros(length, dtype=torch.bool), example.mask.key_start.long() - 1
        target[indices] = True
        functional = (tokens[0] == SPECIAL.separator) | (tokens[0] == SPECIAL.begin)
        # Both directions of transformers: the second half of a batch runs backwards.
        repeat = 2 if backward else 1
        perm_mask = published_perm_mask(order, target, functional, 12)
        perm_mask = one_way(perm_mask) if setting else perm_mask
        logits = model(
            tokens.repeat(repeat, 1),
            token_type_ids=torch.from_numpy(example.token_types)[None].repeat(repeat, 1),
            perm_mask=perm_mask[None].repeat(repeat, 1, 1),
            target_mapping=torch.nn.functional.one_hot(indices, length).float()[None].repeat(repeat, 1, 1),
        ).logits[-1]
        total = total + torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
    assert loss.count == sum(len(example.targets["token"].labels) for example in examples) > 10
    torch.testing.assert_close(loss.total, total, atol=1e-3, rtol=1e-5)


@torch.no_grad()
def test_predictions_do_not_depend_on_what_they_must_not_see():
    """Query i never depends on tokens of its step or later, always on earlier ones; context depends on no target."""
    steps = [GIVEN, 3, GIVEN, 6, GIVEN, 1, GIVEN, 4]
    content, targets = permutation(steps), [1, 3, 5, 7]
    stream = content.query_stream(targets)
    assert [row.nonzero()[:, 0].tolist() for row in stream.dense()] == [
        [0, 2, 4, 5, 6], [0, 1, 2, 4, 5, 6, 7], [0, 2, 4, 6], [0, 1, 2, 4, 5, 6],
    ]  # fmt: skip
    mask = AttentionMask(
        query_step=torch.cat([content.query_step, stream.query_step])[None],
        key_start=content.key_start[None],
        key_stop=content.key_stop[None],
        query_key=torch.cat([torch.arange(8), torch.full((4,), NO_KEY)])[None],
    )
    own = ours(theirs())
    tokens, indices = torch.randint(0, VOCABULARY, (1, 8)), torch.tensor([[*range(8), *targets]])
    run = lambda tokens: own.transformer(tokens, indices, torch.zeros_like(indices), mask)[0]  # noqa: E731
    before = run(tokens)
    for j in range(8):
        changed = tokens.clone()
        changed[0, j] = (tokens[0, j] + 1) % VOCABULARY
        moved = (run(changed) - before).abs().amax(-1) > 1e-6
        seen = [steps[j] == GIVEN or steps[j] < steps[i] for i in targets]
        assert moved[8:].tolist() == seen
        context = [i for i in range(8) if steps[i] == GIVEN]
        assert moved[context].tolist() == [steps[j] == GIVEN] * 4


@pytest.mark.parametrize("mask", [bidirectional(4), left_to_right(4), pack([bidirectional(3), bidirectional(1)], 4)])
@pytest.mark.parametrize("clamp_len", [0, 2, 4, 5, 60])
@torch.no_grad()
def test_distances_are_told_apart_or_refused_however_much_padding_stands_behind_a_text(clamp_len, mask):
    model = ours(theirs(), clamp_len=clamp_len)

    def states(positions, padding):
        rows = torch.nn.functional.pad(torch.tensor([[5, 6, 7, 8], positions]), (0, padding))
        of_row = batch_of([pack([mask], 4 + padding)])
        return model.transformer(rows[:1], rows[1:], torch.zeros_like(rows[1:]), of_row)[:, :4]

    for positions in ([0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 5], [0, 1, 2, 50], [-90, 3, 2, 1]):
        expected = states(positions, 100)  # a table of all distances
        apart = torch.tensor(positions).unsqueeze(1) - torch.tensor(positions)
        farthest = int((apart.abs() * mask.dense()).max())
        for padding in (0, 1, 45):
            reach = 4 + padding
            if farthest <= reach or 0 < clamp_len <= reach:
                torch.testing.assert_close(states(positions, padding), expected, atol=1e-5, rtol=1e-5)
            else:
                message = (
                    f"lie {farthest} apart, but a model with positions 'relative' tells no distances above {reach}"
                )
                with pytest.raises(UnifiedError, match=message):
                    states(positions, padding)


def test_settings_of_relative_positions_are_checked():
    for changes, says in (
        ({"attn_type": "uni"}, "attn_type 'uni' needs positions 'relative', got 'learned'"),
        ({"clamp_len": 5}, "clamp_len 5 needs positions 'relative'"),
        ({"clamp_len": -1, "positions": "relative"}, "clamp_len must be at least 0, got -1"),
        ({"attn_type": "both", "positions": "relative"}, "attn_type must be one of"),
    ):
        with pytest.raises(UnifiedError, match=says):
            TransformerConfig(**changes)


def test_a_model_of_learned_positions_refuses_both():
    case = Case()
    plain = UnifiedModel.for_language(PRESETS["bert_tiny"](vocabulary_size=VOCABULARY, token_types=3)).eval()
    stream = "a query stream .here 13 positions for 10 tokens."
    with pytest.raises(UnifiedError, match=f"{stream} needs a model with positions 'relative' .XLNet. or 'rotary'"):
        case.run(plain)
    with pytest.raises(UnifiedError, match="a memory needs a model with positions 'relative' .XLNet. or 'rotary'"):
        case.run(plain, Memory(4, 4))
    with pytest.raises(UnifiedError, match="a memory's length must be at least 1 token, got 0"):
        Memory(0, 4)
    with pytest.raises(UnifiedError, match="a memory's taken must be at least 1 token, got -1"):
        Memory(4, -1)
