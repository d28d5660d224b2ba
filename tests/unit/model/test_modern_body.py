"""Rotary positions, gated feed-forward, norms without bias, windows per layer: ``transformers`` and brute force."""

from dataclasses import replace

import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from tests.support.modern_models import (
    LLAMA,
    MODERN_BERT,
    VOCABULARY,
    llama,
    modern_bert,
    of_llama,
    of_modern_bert,
)
from unified import masks
from unified.attention import BackendChoice
from unified.errors import UnifiedError
from unified.masks import GIVEN, NO_KEY, AttentionMask
from unified.model import PRESETS, Transformer, TransformerConfig, UnifiedModel
from unified.model.relative import Memory
from unified.model.rotary import angles_at, rotate

LENGTHS = (17, 12, 5)
ON_CPU = ["dense", "sdpa", "blocked"]


def ours(config: TransformerConfig, parameters: dict) -> UnifiedModel:
    """A model with these parameters; those that no other library has stay as they are drawn."""
    own = UnifiedModel.for_language(config).eval()
    state = {
        name: torch.cat(value) if isinstance(value, tuple) else value.detach() for name, value in parameters.items()
    }
    missing, unexpected = own.load_state_dict(state, strict=False)
    known = ("heads.next_sentence.", "transformer.embeddings.query", "transformer.embeddings.tokens.scored")
    assert not unexpected and all(name.startswith((*known, "heads.token.bias")) for name in missing)
    return own


def packed(make=masks.bidirectional) -> tuple[AttentionMask, torch.Tensor]:
    """All texts one after another in one row of 40, and their positions."""
    positions = torch.cat([*map(torch.arange, LENGTHS), torch.zeros(6, dtype=torch.long)])
    return masks.batch([masks.pack([make(n) for n in LENGTHS], 40)]), positions[None]


def padded(make=masks.bidirectional) -> tuple[AttentionMask, torch.Tensor]:
    """A row for each text, padded."""
    return masks.batch([masks.pack([make(n)], 17) for n in LENGTHS]), torch.arange(17).expand(3, -1)


def compared(theirs, own, parameters, make, layout):
    """Their states and ours in float32, logits, and gradients of one loss for all parameters."""
    torch.manual_seed(1)
    texts = [torch.randint(3, VOCABULARY, (n,)) for n in LENGTHS]  # their padding, symbol 1, gets no gradient
    their_states = [theirs(input_ids=text[None], output_hidden_states=True) for text in texts]
    mask, positions = layout(make)
    tokens = torch.zeros_like(positions)
    real = mask.key_documents() >= 0
    tokens[real] = torch.cat(texts)
    states: list[torch.Tensor] = []
    last = own.transformer(tokens, positions, torch.zeros_like(tokens), mask, hidden_states=states)
    for number, mine in enumerate([*states, last]):
        expected = torch.cat([found.hidden_states[number][0] for found in their_states])
        torch.testing.assert_close(mine[real], expected, atol=1e-4, rtol=1e-4)
    logits, expected = own.logits(last[real]), torch.cat([found.logits[0] for found in their_states])
    assert expected.std() > 0.5
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)
    weight = torch.randn_like(logits)
    (logits.softmax(-1) * weight).sum().backward()
    (expected.softmax(-1) * weight).sum().backward()
    gradients = dict(own.named_parameters())
    for name, reference in parameters.items():
        reference = torch.cat([one.grad for one in reference]) if isinstance(reference, tuple) else reference.grad
        torch.testing.assert_close(gradients[name].grad, reference, atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize("layout", [packed, padded], ids=["packed", "padded"])
def test_states_logits_and_gradients_of_modern_bert(layout):
    """Global and windowed layers, two thetas; alone in ``transformers``, packed or padded here."""
    model = modern_bert()
    own = ours(MODERN_BERT, of_modern_bert(model))
    compared(model, own, of_modern_bert(model), masks.bidirectional, layout)


def test_states_logits_and_gradients_of_llama():
    """RMSNorm, SwiGLU, rotary positions, no bias; a head for each key."""
    model = llama()
    compared(model, ours(LLAMA, of_llama(model)), of_llama(model), masks.left_to_right, packed)


def test_windows_are_as_transformers_counts_them():
    """The first row that they show for local_attention 4 reads two positions on each side, itself between."""
    model = modern_bert()
    changed = {}
    for layer_type in ("full_attention", "sliding_attention"):
        config = replace(MODERN_BERT, layers=1, attention_windows="0" if layer_type == "full_attention" else "2")
        own = Transformer(config).eval().double()
        tokens, positions = torch.randint(VOCABULARY, (1, 12)), torch.arange(12)[None]
        mask = masks.batch([masks.bidirectional(12)])
        before = own(tokens, positions, tokens * 0, mask)
        changed[layer_type] = set()
        for index in range(12):
            other = tokens.clone()
            other[0, index] = (other[0, index] + 1) % VOCABULARY
            if not torch.equal(own(other, positions, tokens * 0, mask)[0, 6], before[0, 6]):
                changed[layer_type].add(index)
    assert changed == {"full_attention": set(range(12)), "sliding_attention": {4, 5, 6, 7, 8}}
    assert model.config.layer_types[:2] == ["full_attention", "sliding_attention"]


def test_rotation_turns_each_pair_by_position_times_frequency():
    """As multiplication of complex numbers, whose real parts are the first half; and back by the gradient."""
    torch.manual_seed(0)
    states = torch.randn(2, 3, 5, 8, dtype=torch.float64, requires_grad=True)
    positions = torch.randint(-3, 400, (2, 5))
    found = rotate(states, angles_at(positions, 8, 500.0, torch.float64))
    frequencies = 500.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
    turns = torch.polar(torch.ones(2, 5, 4, dtype=torch.float64), positions.unsqueeze(-1) * frequencies)
    expected = torch.complex(*states.chunk(2, dim=-1)) * turns.unsqueeze(1)
    torch.testing.assert_close(found, torch.cat([expected.real, expected.imag], dim=-1))
    weight = torch.randn_like(found)
    gradients = [torch.autograd.grad((one * weight).sum(), states)[0] for one in (
        found, torch.cat([expected.real, expected.imag], dim=-1)
    )]  # fmt: skip
    torch.testing.assert_close(*gradients)
    few = states[:1, :1, :2].detach().requires_grad_()
    torch.autograd.gradgradcheck(lambda x: rotate(x, angles_at(positions[:1, :2], 8, 500.0, torch.float64)), few)


def test_rotation_of_half_precision_is_computed_in_float32():
    states = torch.randn(1, 2, 6, 16)
    angles = angles_at(torch.arange(4000, 4006)[None], 16, 10000.0, torch.bfloat16)
    assert angles.cosine.dtype == torch.float32
    half = states.bfloat16()
    assert torch.equal(rotate(half, angles), rotate(half.float(), angles).bfloat16())


@pytest.mark.parametrize("config", [MODERN_BERT, LLAMA], ids=["ModernBERT", "Llama"])
def test_positions_count_by_their_differences_alone(config):
    own = Transformer(replace(config, initializer_range=0.3)).double().eval()
    mask, positions = packed(masks.left_to_right)
    tokens = torch.randint(VOCABULARY, positions.shape)
    before, after = (own(tokens, positions + shift, tokens * 0, mask) for shift in (0, 1000))
    torch.testing.assert_close(after, before, atol=1e-10, rtol=1e-10)
    stretched = own(tokens, positions * 2, tokens * 0, mask)
    assert (stretched - before).abs().max() > 0.1


def mixed_rows() -> tuple[AttentionMask, torch.Tensor]:
    """Documents of several kinds, one of them permuted, and the positions of their tokens."""
    kinds = [masks.seq2seq(9, 4), masks.permutation([3, GIVEN, 1, 2, 5, GIVEN, 4]), masks.left_to_right(8)]
    rows = [masks.pack(kinds[i:] + kinds[:i], 30) for i in range(3)]
    positions = [torch.cat([torch.arange(m.key_length) for m in kinds[i:] + kinds[:i]]) for i in range(3)]
    return masks.batch(rows), torch.stack([torch.nn.functional.pad(one, (0, 2)) for one in positions])


@pytest.mark.parametrize("positions_of", ["learned", "relative", "rotary"])
def test_windows_of_layers_are_the_same_in_every_backend(positions_of):
    """In float64, outputs and gradients; any kind of positions."""
    settings = dict(vocabulary_size=VOCABULARY, layers=3, width=16, heads=2, initializer_range=0.3)
    config = TransformerConfig(**settings, positions=positions_of, attention_windows="2,0,4", dropout=0.0)
    own = Transformer(config).double().eval()
    mask, positions = mixed_rows()
    tokens = torch.randint(VOCABULARY, positions.shape)
    real = mask.key_documents() >= 0
    found = {}
    for backend in ON_CPU:
        own.backend = BackendChoice(backend)
        states = own(tokens, positions, tokens * 0, mask)[real]
        gradients = torch.autograd.grad(states.sin().sum(), [*own.parameters()], allow_unused=True)
        found[backend] = [states, *(one for one in gradients if one is not None)]
    for backend in ON_CPU[1:]:
        for mine, reference in zip(found[backend], found["dense"], strict=True):
            torch.testing.assert_close(mine, reference, atol=1e-9, rtol=1e-9)
    wide = Transformer(replace(config, attention_windows="0")).double().eval()
    wide.load_state_dict(own.state_dict())
    assert (wide(tokens, positions, tokens * 0, mask)[real] - found["dense"][0]).abs().max() > 0.01


def test_windows_reach_as_far_as_layers_add_up():
    """A token is reached through L layers of window w exactly where it lies at most L w positions away."""
    own = Transformer(replace(MODERN_BERT, layers=2, attention_windows="2", initializer_range=0.3)).double().eval()
    embedded = own.embeddings.tokens(torch.randint(VOCABULARY, (1, 15))).detach().requires_grad_()
    own.embeddings.register_forward_hook(lambda module, given, found: embedded)
    positions = torch.arange(15)[None]
    states = own(positions, positions, positions * 0, masks.batch([masks.bidirectional(15)]))
    for index in (0, 7, 14):
        (gradient,) = torch.autograd.grad(states[0, index].sin().sum(), embedded, retain_graph=True)
        reached = gradient[0].abs().amax(-1) > 0
        assert torch.equal(reached, (positions[0] - index).abs() <= 4)


@pytest.mark.parametrize("windows", ["0", "0,3,2"])
@pytest.mark.parametrize("token_types", [0, 2])
@pytest.mark.parametrize("backend", ON_CPU)
def test_a_query_stream_is_tokens_that_nobody_sees(backend, token_types, windows):
    """The same states come out where each query is a token of its own, whose embedding is the query vector."""
    config = replace(MODERN_BERT, attention_windows=windows, token_types=token_types, initializer_range=0.3)
    own = Transformer(config).double().eval()
    own.backend = BackendChoice(backend)
    symbol = VOCABULARY - 1
    own.embeddings.tokens.weight.data[symbol] = own.embeddings.query.data
    steps, targets = torch.tensor([[3, 0, 1, 2, 0, 5, 4, 6], [1, 2, 3, 4, 5, 6, 7, 8]]), torch.tensor([[0, 3], [7, 2]])
    tokens, positions = torch.randint(symbol, (2, 8)), torch.arange(8).expand(2, -1)
    both = torch.cat([positions, targets], dim=1)
    types = (both > 3).long() * min(token_types, 1)
    looks = torch.cat([steps, steps.gather(1, targets) - 1], dim=1)
    own_keys = torch.cat([positions, torch.full((2, 2), NO_KEY)], dim=1)
    stream = AttentionMask(looks, steps, torch.full_like(steps, 9), query_key=own_keys)
    found = own(tokens, both, types, stream)
    hidden = torch.tensor([[9, 9]] * 2)
    square = AttentionMask(looks, torch.cat([steps, hidden], 1), torch.cat([torch.full_like(steps, 9), hidden], 1))
    expected = own(torch.cat([tokens, torch.full((2, 2), symbol)], 1), both, types, square)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)
    assert (found[:, 8:] - found[:, :8].gather(1, targets.unsqueeze(-1).expand(-1, -1, 32))).abs().max() > 0.01


@pytest.mark.parametrize("windows", ["0", "0,3,2"])
def test_a_memory_is_the_text_before(windows):
    """A text left to right in one pass, and in pieces with a memory that holds all of what came before."""
    own = Transformer(replace(MODERN_BERT, attention_windows=windows, initializer_range=0.3)).double().eval()
    tokens, positions = torch.randint(VOCABULARY, (2, 15)), torch.arange(15).expand(2, -1)
    whole = own(tokens, positions, tokens * 0, masks.batch([masks.left_to_right(15)] * 2))
    memory, pieces = Memory(15, 5), []
    for start in range(0, 15, 5):
        piece = tokens[:, start : start + 5]
        mask = masks.batch([masks.left_to_right(5)] * 2)
        pieces.append(own(piece, positions[:, :5], piece * 0, mask, memory))
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("windows", ["20", "2,0", "0"])
def test_a_mask_with_a_window_meets_neither_windows_of_the_model_nor_a_memory(windows):
    """Whether the text is shorter than the model's window or not; a model without either takes it."""
    own = Transformer(replace(MODERN_BERT, attention_windows=windows)).eval()
    mask, row = masks.left_to_right(8).windowed(3), torch.arange(8)[None]
    memory = None
    if windows == "0":
        own(row, row, row * 0, mask)
        memory = Memory(4, own.config.layers)
    with pytest.raises(UnifiedError, match="the mask has a window of distances"):
        own(row, row, row * 0, mask, memory)


def test_the_gate_is_the_second_half():
    """[GLU, eq. 5 and 6]: activation(x W) * (x V), W above V in one matrix."""
    for activation, of in (("gelu", torch.nn.functional.gelu), ("silu", torch.nn.functional.silu)):
        config = TransformerConfig(vocabulary_size=9, layers=1, width=8, heads=1, gated=True, activation=activation)
        unit = Transformer(config).layers[0].feed_forward.sublayer
        states, (w, v), (b, c) = torch.randn(3, 8), unit.inner.weight.split(32), unit.inner.bias.split(32)
        expected = (of(states @ w.T + b) * (states @ v.T + c)) @ unit.outer.weight.T + unit.outer.bias
        torch.testing.assert_close(unit(states), expected)


@pytest.mark.parametrize("changes", [{}, {"norm_type": "rms", "activation": "silu"}], ids=["ModernBERT's", "RMSNorm"])
def test_a_new_token_head_without_biases_compares_states_with_embeddings(changes):
    config = replace(MODERN_BERT, vocabulary_size=200, width=64, norm_epsilon=1e-8, **changes)
    own = UnifiedModel.for_language(config)
    states = torch.randn(50, 64)
    states -= states.mean(-1, keepdim=True)
    own.heads["token"].start_as_readout()
    expected = (states / states.square().mean(-1, keepdim=True).sqrt()) @ own.symbols.weight.T
    torch.testing.assert_close(own.logits(states), expected, atol=0.03, rtol=0.05)


def test_names_and_kinds_of_parameters_of_the_presets():
    """Only the scores of symbols have a bias, and norms have a weight alone; the first attention has no norm."""
    built = UnifiedModel.for_language(PRESETS["modern_tiny"](vocabulary_size=9))
    biases = {name for name, _ in built.named_parameters() if name.endswith("bias")}
    assert biases == {"heads.token.bias", "heads.next_sentence.pooler.bias", "heads.next_sentence.classifier.bias"}
    names = set(built.state_dict())
    assert "transformer.layers.0.attention.norm.weight" not in names
    assert {"transformer.layers.1.attention.norm.weight", "transformer.embeddings.norm.weight"} <= names
    assert "transformer.embeddings.token_types.weight" not in names
