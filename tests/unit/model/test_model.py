"""The Transformer against transformers' BERT with the same weights; what no mask may leak; packing; losses; sizes."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from tests.support.tiny_models import decoder, model, sources
from unified import masks
from unified.data.collate import collate
from unified.data.example import Example
from unified.data.targets import NEXT_SENTENCE, TOKEN, ExampleTargets, Targets
from unified.errors import UnifiedError
from unified.masks import GIVEN
from unified.model import PRESETS, Transformer, TransformerConfig, UnifiedModel
from unified.model.embeddings import SymbolTable
from unified.model.heads import classified, cross_entropy, summed

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


# Losses


def example(objective: str, length: int, indices: list[int], is_next: int = -1) -> Example:
    tokens = np.random.default_rng(length).integers(4, 16, length)
    types, predicted = np.zeros(length, int), np.array(indices, dtype=int)
    labels = (tokens[predicted] + 1) % 16
    targets = {TOKEN: ExampleTargets.at(predicted, labels)}
    if is_next >= 0:
        targets[NEXT_SENTENCE] = ExampleTargets.at(np.zeros(1, dtype=int), np.array([is_next]))
    return Example(objective, tokens, np.arange(length), types, masks.bidirectional(length), targets)


OBJECTIVES = ("a", "b", "never")
EXAMPLES = [
    [example("a", 5, [1, 3], is_next=1), example("b", 4, [0])],
    [example("a", 7, [2, 5, 6], is_next=0), example("b", 1, [])],
]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@torch.no_grad()
def test_losses_are_those_of_each_example_alone(smoothing):
    core = model()
    losses = core(collate(EXAMPLES, 12, OBJECTIVES, pad=1), smoothing, pad=1)
    assert list(losses) == [*OBJECTIVES, *(f"{objective}_next_sentence" for objective in OBJECTIVES)]
    for objective in OBJECTIVES:
        total, nll, correct, count, pair_total, pairs = 0.0, 0.0, 0, 0, 0.0, 0
        for item in (item for row in EXAMPLES for item in row if item.objective == objective):
            tokens = torch.from_numpy(item.tokens)[None]
            indices = torch.arange(len(item.tokens))[None]
            mask = masks.batch([masks.bidirectional(len(item.tokens))])
            states = core.transformer(tokens, indices, torch.zeros_like(tokens), mask)[0]
            own = item.targets[TOKEN]
            for index, label in zip(own.output_indices[:, 0], own.labels, strict=True):
                p = core.logits(states[index : index + 1])[0].log_softmax(0)
                smoothed = torch.full_like(p, smoothing / (len(p) - 2))
                smoothed[1], smoothed[label] = 0.0, 1 - smoothing
                total, nll, count = total - float(smoothed @ p), nll - float(p[label]), count + 1
                correct += int(p.argmax() == label)
            if NEXT_SENTENCE in item.targets:
                follows = item.targets[NEXT_SENTENCE].labels[0]
                pair_total -= float(core.heads["next_sentence"](states[:1])[0].log_softmax(0)[follows])
                pairs += 1
        loss, pair = losses[objective], losses[f"{objective}_next_sentence"]
        assert (int(loss.count), int(loss.correct), int(pair.count)) == (count, correct, pairs)
        assert float(loss.total) == pytest.approx(total, abs=1e-4)
        assert float(loss.nll) == pytest.approx(nll, abs=1e-4)
        assert float(pair.total) == pytest.approx(pair_total, abs=1e-5)


@pytest.mark.parametrize("objectives", [["a"], ["b"], []])
def test_every_parameter_has_a_gradient_whatever_a_batch_holds(objectives):
    core = model()
    rows = [[item for item in row if item.objective in objectives] for row in EXAMPLES]
    losses = core(collate(rows, 12, OBJECTIVES, pad=1))
    sum(loss.total for loss in losses.values()).backward()
    for name, parameter in core.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name


def test_the_vocabulary_is_projected_at_predicted_tokens_only(monkeypatch):
    core = model()
    seen = []
    logits = SymbolTable.logits
    monkeypatch.setattr(
        SymbolTable, "logits", lambda self, states, bias: seen.append(states.shape) or logits(self, states, bias)
    )
    core(collate(EXAMPLES, 12, OBJECTIVES, pad=1))
    assert seen == [(6, 32)]


def test_label_smoothing_is_unilms_divergence_less_its_constant():
    size = 28996
    logits, labels = torch.randn(3, size), torch.tensor([5, 9, 100])
    smoothed = torch.full((3, size), 0.1 / (size - 2))
    smoothed[:, 0] = 0.0
    smoothed[torch.arange(3), labels] = 0.9
    divergence = torch.nn.functional.kl_div(logits.log_softmax(-1), smoothed, reduction="none").sum(-1)
    loss, nll = cross_entropy(logits, labels, 0.1, torch.arange(size) == 0)
    torch.testing.assert_close(loss - divergence, torch.full((3,), 1.3526), atol=2e-4, rtol=0)
    torch.testing.assert_close(nll, torch.nn.functional.cross_entropy(logits, labels, reduction="none"))


def test_losses_are_summed_by_group():
    logits, labels, objectives = torch.randn(7, 5), torch.randint(0, 5, (7,)), torch.tensor([0, 2, 2, 0, 2, 2, 0])
    targets = Targets(torch.zeros(7, 1, dtype=torch.long), labels, objectives, torch.bincount(objectives).double())
    found = summed(classified(logits, labels), targets)
    assert [int(loss.count) for loss in found] == [3, 0, 4]
    for objective, loss in enumerate(found):
        own = objectives == objective
        expected = torch.nn.functional.cross_entropy(logits[own], labels[own], reduction="sum")
        torch.testing.assert_close(loss.total, expected)
        assert int(loss.correct) == int((logits[own].argmax(-1) == labels[own]).sum())


# Shape


@pytest.mark.slow
def test_presets_have_the_published_sizes():
    def count(name: str, vocabulary: int) -> int:
        with torch.device("meta"):
            built = UnifiedModel.for_language(PRESETS[name](vocabulary_size=vocabulary))
        return sum(parameter.numel() for parameter in built.parameters())

    def formula(layers: int, width: int, vocabulary: int, token_types: int) -> int:
        layer = 4 * width * (width + 1) + width * 4 * width * 2 + 5 * width + 4 * width
        embeddings = (vocabulary + 512 + token_types) * width + 2 * width
        heads = width * (width + 1) + 2 * width + vocabulary + width * (width + 1) + 2 * (width + 1)
        return layers * layer + embeddings + heads

    unilm = {"tiny": (2, 128, 2), "mini": (4, 256, 4), "small": (6, 384, 12)}
    published = {"base": (12, 768, 12), "large": (24, 1024, 16)}
    bert = {"3x768": (3, 768, 12), "6x768_3": (6, 768, 3), "6x768_12": (6, 768, 12), "12x1024": (12, 1024, 16)}
    expected = {f"unified_lm_{size}": (shape, 6) for size, shape in (unilm | published).items()}
    tiny = {"tiny": (2, 128, 2)}
    expected |= {f"bert_{size}": (shape, 2) for size, shape in (tiny | published | bert).items()}
    expected |= {f"spanbert_{size}": (shape, 2) for size, shape in (tiny | published).items()}
    expected |= {f"anna_{size}": (shape, 2) for size, shape in (tiny | published).items()}
    for size, (layers, width, heads) in (tiny | published).items():
        layer = 5 * width * width + 5 * width + 8 * width * width + 5 * width + 4 * width
        heads_of = 30522 + width * (width + 1) + 2 * (width + 1)
        assert count(f"xlnet_{size}", 30522) == layers * layer + (30522 + 1) * width + heads_of
        assert PRESETS[f"xlnet_{size}"]().heads == heads
    assert set(expected) | {f"xlnet_{size}" for size in tiny | published} == set(PRESETS)
    for name, ((layers, width, heads), token_types) in expected.items():
        neighbor = layers * (4 * width * (width + 1) + 2 * width) * name.startswith("anna")
        assert count(name, 30522) == formula(layers, width, 30522, token_types) + neighbor, name
        assert PRESETS[name]().heads == heads
    # BERT-base's published 110M; UniLM's ~340M with its cased vocabulary.
    assert round(count("unified_lm_base", 30522) / 1e6) == 110
    assert 330e6 < count("unified_lm_large", 28996) < 345e6


@pytest.mark.slow
def test_parameters_of_anna_are_those_that_the_documentation_gives():
    """With the paper's vocabulary of 127,490, part by part; docs/background/decisions.md quotes each number."""
    page = (Path(__file__).parents[3] / "docs" / "background" / "decisions.md").read_text(encoding="utf-8")
    quoted = page[page.index("**ANNA's sizes") :].partition("\n\n")[0]

    def counts(name: str, **changes) -> tuple[int, ...]:
        with torch.device("meta"):
            built = UnifiedModel.for_language(PRESETS[name](vocabulary_size=127_490, **changes))
        table, layers = built.transformer.embeddings.tokens, built.transformer.layers
        heads = built.heads["token"], built.heads["next_sentence"]
        parts = [sum(p.numel() for p in part.parameters()) for part in (built, table, layers, *heads)]
        return *parts, parts[0] - sum(parts[1:])

    base, large = counts("anna_base"), counts("anna_large")
    one_attention = [counts(f"anna_{size}", sublayers="self,feed_forward") for size in ("base", "large")]
    assert base == (213_041_668, 97_912_320, 113_421_312, 719_618, 592_130, 396_288)
    assert large[0] == 536_429_060 and one_attention[0][0] == 184_674_820 and one_attention[1][0] == 435_618_308
    neighbor = base[2] - one_attention[0][2]
    assert neighbor == 12 * (4 * 768 * 769 + 2 * 768)
    for number in (*base, large[0], neighbor, *(parts[0] for parts in one_attention)):
        assert f"{number:,}" in quoted, number


def test_weights_start_as_berts_do():
    built = UnifiedModel.for_language(TransformerConfig(vocabulary_size=500, layers=2, width=128, heads=4))
    for name, parameter in built.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        else:
            n = parameter.numel()
            assert parameter.std().item() == pytest.approx(0.02, rel=5 / math.sqrt(n)), name
            assert parameter.mean().item() == pytest.approx(0, abs=5 * 0.02 / math.sqrt(n)), name


def test_dropout_is_where_the_configuration_says():
    tokens, indices = torch.randint(4, 16, (1, 9)), torch.arange(9)[None]
    mask = masks.batch([masks.bidirectional(9)])

    def varies(**dropouts) -> bool:
        core = model(**dropouts).train()
        first, second = (core.transformer(tokens, indices, torch.zeros_like(tokens), mask) for _ in range(2))
        core.eval()
        third, fourth = (core.transformer(tokens, indices, torch.zeros_like(tokens), mask) for _ in range(2))
        assert torch.equal(third, fourth)
        return not torch.equal(first, second)

    assert varies(dropout=0.1, attention_dropout=0.0) and varies(dropout=0.0, attention_dropout=0.1)
    assert not varies(dropout=0.0, attention_dropout=0.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"width": 100, "heads": 12}, "width must be a multiple of heads, got width 100 and heads 12"),
        ({"layers": 0}, "layers must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"attention_dropout": -0.1}, r"attention_dropout must be in \[0, 1\), got -0.1"),
        ({"norm": "sandwich"}, r"norm must be one of \('post', 'pre'\), got 'sandwich'"),
    ],
)
def test_shapes_that_cannot_be_are_refused(fields, message):
    with pytest.raises(UnifiedError, match=message):
        TransformerConfig(**fields)


def test_a_model_needs_a_vocabulary():
    with pytest.raises(UnifiedError, match="vocabulary_size must be at least 1, got 0"):
        Transformer(TransformerConfig(layers=1, width=8, heads=1))
    assert TransformerConfig(width=12, heads=3).feed_forward == 48
    assert TransformerConfig().with_vocabulary(7).vocabulary_size == 7
