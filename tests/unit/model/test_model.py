"""The Transformer against transformers' BERT with the same weights; what no mask may leak; packing."""

import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from tests.support.tiny_models import decoder, example, model, sources
from unified import masks
from unified.data.collate import collate
from unified.masks import GIVEN
from unified.model import TransformerConfig, UnifiedModel

SHAPE = {"layers": 3, "width": 32, "heads": 4, "feed_forward": 50, "max_positions": 40, "token_types": 6}


# Against an independent implementation


def bert_pair(eps: float = 1e-12):
    """transformers' BertForPreTraining and our UnifiedModel with the same random weights, biases included."""
    from transformers import BertConfig, BertForPreTraining

    theirs = BertForPreTraining(
        BertConfig(
            vocab_size=60,
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=50,
            hidden_act="gelu",
            max_position_embeddings=40,
            type_vocab_size=6,
            layer_norm_eps=eps,
            attn_implementation="eager",
        )  # fmt: skip
    ).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ours = UnifiedModel.for_language(TransformerConfig(vocabulary_size=60, norm_epsilon=eps, **SHAPE)).eval()
    ours.load_state_dict({**ours.state_dict(), **translated(theirs.state_dict())})
    return theirs, ours


def translated(bert: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """BERT's parameter names to ours."""
    moved = {}
    pairs = {
        "transformer.embeddings.tokens.weight": "bert.embeddings.word_embeddings.weight",
        "transformer.embeddings.positions.weight": "bert.embeddings.position_embeddings.weight",
        "transformer.embeddings.token_types.weight": "bert.embeddings.token_type_embeddings.weight",
        "heads.token.bias": "cls.predictions.bias",
    }
    modules = {
        "transformer.embeddings.norm": "bert.embeddings.LayerNorm",
        "heads.token.dense": "cls.predictions.transform.dense",
        "heads.token.norm": "cls.predictions.transform.LayerNorm",
        "heads.next_sentence.pooler": "bert.pooler.dense",
        "heads.next_sentence.classifier": "cls.seq_relationship",
    }
    for i in range(3):
        ours, theirs = f"transformer.layers.{i}", f"bert.encoder.layer.{i}"
        modules |= {
            f"{ours}.attention.sublayer.output": f"{theirs}.attention.output.dense",
            f"{ours}.attention.norm": f"{theirs}.attention.output.LayerNorm",
            f"{ours}.feed_forward.sublayer.inner": f"{theirs}.intermediate.dense",
            f"{ours}.feed_forward.sublayer.outer": f"{theirs}.output.dense",
            f"{ours}.feed_forward.norm": f"{theirs}.output.LayerNorm",
        }
        for kind in ("weight", "bias"):
            parts = [bert[f"{theirs}.attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
            moved[f"{ours}.attention.sublayer.query_key_value.{kind}"] = torch.cat(parts)
    for mine, other in modules.items():
        pairs |= {f"{mine}.{kind}": f"{other}.{kind}" for kind in ("weight", "bias")}
    return moved | {mine: bert[other] for mine, other in pairs.items()}


@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
@pytest.mark.parametrize("name", ["bidirectional", "left_to_right", "seq2seq", "padded"])
def test_bert_with_the_same_weights_gives_the_same_numbers_and_gradients(name, backend):
    theirs, ours = bert_pair()
    object.__setattr__(ours.config, "attention_backend", backend)
    rows = {
        "bidirectional": [masks.bidirectional(12)] * 2,
        "left_to_right": [masks.left_to_right(12)] * 2,
        "seq2seq": [masks.seq2seq(5, 7), masks.seq2seq(11, 1)],
        "padded": [masks.pack([masks.bidirectional(n)], length=12) for n in (8, 12)],
    }[name]
    mask = masks.batch(rows)
    real = mask.query_documents() != masks.NO_DOCUMENT
    tokens, types = torch.randint(0, 60, (2, 12)), torch.randint(0, 6, (2, 12))
    positions = torch.randperm(40)[:12].expand(2, -1)
    expected = theirs(
        input_ids=tokens, token_type_ids=types, position_ids=positions, attention_mask=mask.additive(),
        output_hidden_states=True,
    )  # fmt: skip
    states = ours.transformer(tokens, positions, types, mask)
    close = {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(states[real], expected.hidden_states[-1][real], **close)
    logits, pairs = ours.logits(states[real]), ours.heads["next_sentence"](states[:, 0])
    torch.testing.assert_close(logits, expected.prediction_logits[real], **close)
    torch.testing.assert_close(pairs, expected.seq_relationship_logits, **close)
    weights = torch.randn_like(logits)
    ((logits * weights).sum() + pairs.sum()).backward()
    ((expected.prediction_logits[real] * weights).sum() + expected.seq_relationship_logits.sum()).backward()
    wanted = translated({key: value.grad for key, value in theirs.named_parameters()})
    for key, parameter in ours.named_parameters():
        scale = float(wanted[key].abs().max())
        assert scale > 0, key
        torch.testing.assert_close(
            parameter.grad, wanted[key], atol=1e-5 * scale, rtol=1e-4, msg=lambda m, k=key: f"{k}: {m}"
        )


# What a mask hides stays hidden through all layers

BUILDERS = {
    "bidirectional": masks.bidirectional(6),
    "left_to_right": masks.left_to_right(6),
    "right_to_left": masks.right_to_left(6),
    "seq2seq": masks.seq2seq(3, 4),
    "permutation": masks.permutation([GIVEN, 3, 1, GIVEN, 2, 4, 4]),
    "packed": masks.pack([masks.seq2seq(2, 2), masks.right_to_left(3), masks.bidirectional(2)], length=9),
    "from_dense": masks.from_dense(torch.tensor([[1, 0, 0], [1, 1, 1], [1, 0, 1]], dtype=torch.bool)),
    "left_to_right without self": masks.left_to_right(5).without_self(),
    "packed without self": masks.pack([masks.left_to_right(3).without_self()] * 2, length=7),
}


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
@pytest.mark.parametrize("name", BUILDERS)
def test_gradients_are_zero_exactly_where_a_token_may_not_look(name, backend, norm):
    mask = BUILDERS[name]
    length = mask.query_length
    core = model(layers=3, norm=norm, attention_backend=backend)
    # The residual connection lets every token see itself; a token without self still hears of itself from others that
    # see it, so what may be reached is the closure over layers. Without that option the closure is the mask itself.
    visible = mask.dense() | torch.eye(length, dtype=torch.bool)
    reachable = (torch.linalg.matrix_power(visible.double(), 3)) > 0
    assert mask.exclude_self or torch.equal(reachable, visible)
    tokens, indices = torch.randint(4, 16, (1, length)), torch.arange(length)[None]
    embedded = []
    core.transformer.embeddings.register_forward_hook(lambda _, __, out: embedded.append(out))
    logits = core.logits(core.transformer(tokens, indices, indices % 6, masks.batch([mask]))[0])
    for i in range(length):
        (gradient,) = torch.autograd.grad(logits[i].logsumexp(0), embedded[0], retain_graph=True)
        seen = (gradient[0] != 0).any(-1)
        assert torch.equal(seen, reachable[i]), f"token {i} depends on {seen.nonzero().flatten().tolist()}"


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_packed_rows_equal_their_documents_alone(norm):
    core = model(norm=norm)
    documents = [masks.bidirectional(5), masks.seq2seq(3, 4), masks.left_to_right(1), masks.right_to_left(6)]
    row = masks.pack(documents, length=24)
    tokens, types = torch.randint(4, 16, (24,)), torch.randint(0, 6, (24,))
    indices = torch.cat([torch.arange(mask.query_length) for mask in documents] + [torch.zeros(5, dtype=torch.long)])
    together = core.transformer(tokens[None], indices[None], types[None], masks.batch([row]))[0]
    start = 0
    for mask in documents:
        part = slice(start, start := start + mask.query_length)
        alone = core.transformer(tokens[None, part], indices[None, part], types[None, part], masks.batch([mask]))[0]
        torch.testing.assert_close(together[part], alone, atol=1e-5, rtol=1e-5)


SHAPES_OF_LAYERS = [
    {"norm": "post"},
    {"norm": "pre"},
    {"sublayers": "self,feed_forward,neighbor,feed_forward"},
    {"sublayers": "feed_forward,relative_key"},
    {"positions": "relative"},
]


@pytest.mark.parametrize("changes", SHAPES_OF_LAYERS, ids=str)
@pytest.mark.parametrize("wanted", [[3, 17, 3, 0], [], list(range(18))], ids=len)
def test_states_of_some_indices_are_those_of_all(changes, wanted):
    """Values and all gradients; nothing but less work follows from naming indices."""
    core = model(**changes)
    tokens, positions = torch.randint(4, 16, (2, 9)), torch.arange(9).expand(2, 9)
    mask = masks.batch([masks.left_to_right(9), masks.bidirectional(9)])
    given = tokens, positions, torch.zeros_like(tokens), mask
    indices = torch.tensor(wanted, dtype=torch.long)
    weight = torch.randn(len(wanted), 32)

    def gradients(states: torch.Tensor) -> list[torch.Tensor]:
        return torch.autograd.grad((states * weight).sum(), list(core.transformer.parameters()), materialize_grads=True)

    some = core.transformer(*given, output_indices=indices)
    all_of_them = core.transformer(*given).flatten(0, 1)[indices]
    assert some.shape == (len(wanted), 32)
    torch.testing.assert_close(some, all_of_them, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(gradients(some), gradients(all_of_them), atol=2e-4, rtol=1e-4)


def test_states_that_enter_layers_are_whole_where_indices_are_named():
    core, every = model(), []
    tokens, positions = torch.randint(4, 16, (2, 9)), torch.arange(9).expand(2, 9)
    mask, indices = masks.batch([masks.bidirectional(9)] * 2), torch.tensor([4, 12])
    states = core.transformer(
        tokens, positions, torch.zeros_like(tokens), mask, hidden_states=every, output_indices=indices
    )
    assert states.shape == (2, 32) and [one.shape for one in every] == [(2, 9, 32)] * 2


def test_the_last_layer_computes_no_state_that_is_not_read():
    core = model()
    counted = computed_indices(core)
    core(collate([[example("a", 9, [2, 5])], [example("a", 7, [1])]], 9, ("a",), pad=1))
    assert counted == [18, 3]


def test_of_a_source_the_last_layer_gives_keys_and_values_alone(monkeypatch):
    writer = decoder()
    counted, attentions = computed_indices(writer.model), writer.model.transformer.attentions
    calls = []

    def spied(*arguments, **options):
        found = []
        for attention in attentions(*arguments, **options):
            found.append(lambda *inputs, attention=attention: calls.append(1) or attention(*inputs))
            found[-1].fully_masked, found[-1].shape = attention.fully_masked, attention.shape
        return found

    monkeypatch.setattr(writer.model.transformer, "attentions", spied)
    source = writer.encode(sources([5, 7]))
    assert counted == [2 * 9, 0] and len(calls) == 1
    counted.clear()
    state = writer.begin(source, beam=3)
    writer.step(None, state)
    writer.step(torch.full((6,), 5), state)
    assert counted == [6, 6, 12, 6]


def computed_indices(core) -> list[int]:
    """Filled by the number of tokens that each layer's feed-forward part computes."""
    counted: list[int] = []
    for layer in core.transformer.layers:
        layer.feed_forward.register_forward_hook(lambda _, inputs, out: counted.append(out.numel() // out.size(-1)))
    return counted
