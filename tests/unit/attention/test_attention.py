"""Backends against the definition written out in the test, in values and gradients, on masks of every structure."""

import math

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from unified import masks
from unified.attention import BACKENDS, ELSEWHERE, BackendChoice, attend, choose, prepare, register
from unified.attention.bias import ScoreBias, of_queries
from unified.attention.dense import DenseAttention
from unified.errors import UnifiedError
from unified.masks import GIVEN
from unified.runtime.announcements import log_once

HEADS, SIZE = 2, 8
ON_CPU = ["dense", "sdpa", "blocked"]
WITHOUT_DROPOUT = [*ON_CPU, "fused"]
STEPS = [GIVEN, 3, 1, GIVEN, 2, 4]

ROWS = {
    "full": lambda: masks.bidirectional(6),
    "causal": lambda: masks.left_to_right(6),
    "right_to_left": lambda: masks.right_to_left(6),
    "seq2seq": lambda: masks.seq2seq(3, 3),
    "permutation": lambda: masks.permutation(STEPS),
    "packed with padding": lambda: masks.pack([masks.seq2seq(2, 1), masks.left_to_right(2)], length=6),
    "without self": lambda: masks.left_to_right(6).without_self(),  # the first row sees nothing
    "packed without self": lambda: masks.pack([masks.bidirectional(n).without_self() for n in (1, 3, 1)], length=6),
    "window": lambda: masks.sliding_window(6, 1, 2),
    "causal window with a sink": lambda: masks.sliding_window(6, 1).with_sinks(1),
    "blocks": lambda: masks.block_causal(6, 2),
    "block diffusion": lambda: masks.block_diffusion(3, 2),
    "pseudo-masked": lambda: masks.pseudo_masked([GIVEN, 2, 1, 1]),
    "tree": lambda: masks.tree([-1, 0, 0, 1, 1, 2]),
    "windows packed": lambda: masks.pack([masks.sliding_window(3, 1), masks.tree([-1, 0])], 6),
    "hidden keys": lambda: masks.left_to_right(4).without_keys(torch.tensor([True, False, True, False])),
    "query stream": lambda: masks.permutation(range(1, 7)).query_stream([2, 0, 5]),  # the first sees nothing
    "query stream of every token": lambda: masks.permutation(STEPS[1:3] + [2]).query_stream([0, 1, 2]),
    "memory": lambda: masks.left_to_right(6).with_memory(3, filled=2),
    "memory, query stream": lambda: masks.permutation(STEPS).with_memory(2).query_stream([1, 2]),
    "one way": lambda: masks.batch([masks.permutation(STEPS), masks.right_to_left(6)]).causal(),
    "one way, memory": lambda: masks.batch([masks.permutation(STEPS)] * 2).with_memory(2, filled=1).causal(),
    "one way, packed": lambda: masks.batch([masks.pack([masks.bidirectional(n) for n in (2, 3)], 6)] * 2).causal(),
    "one way, query stream": lambda: masks.batch([masks.permutation(range(1, 7)).query_stream([3, 0])] * 2).causal(
        torch.tensor([[3, 0]] * 2)
    ),
    "one way, within a window": lambda: masks.batch([masks.permutation(STEPS)] * 2).causal().windowed(1),
    "within a window": lambda: masks.batch([masks.permutation(STEPS)] * 2).windowed(2),
    "within a window, packed": lambda: masks.pack([masks.seq2seq(2, 1), masks.bidirectional(2)], 6).windowed(
        1, *[torch.tensor([[0, 1, 2, 0, 1, 0], [1, 2, 3, 9, 8, 0]])] * 2
    ),
    "within a window, query stream": lambda: masks.batch(
        [masks.permutation(range(1, 7)).query_stream([2, 0, 5])] * 2
    ).windowed(1, torch.tensor([[2, 0, 5]] * 2)),
    "within a window, memory": lambda: (
        masks.batch([masks.left_to_right(6)] * 2)
        .with_memory(3, filled=2)
        .windowed(2, *[torch.arange(start, 6).expand(2, -1) for start in (0, -3)])
    ),
    "within a window, pseudo-masked": lambda: masks.pseudo_masked([GIVEN, 2, 1, 1]).windowed(
        1, *[torch.tensor([[0, 1, 2, 3, 2, 3, 2, 3, 1, 1]] * 2)] * 2
    ),
    "within a window of nobody": lambda: masks.batch([masks.left_to_right(6).without_self()] * 2).windowed(0),
    "one token": lambda: masks.bidirectional(1),
    "one token without self": lambda: masks.bidirectional(1).without_self(),
}
WITH_EMPTY_ROWS = [
    "without self",
    "packed without self",
    "query stream",
    "query stream of every token",
    "one way, query stream",
    "within a window, query stream",
    "within a window of nobody",
    "one token without self",
]


def batch(name: str) -> masks.AttentionMask:
    """Two rows; what limits its queries to keys before them is a batch already."""
    made = ROWS[name]()
    return made if made.batched else masks.batch([made, ROWS[name]()])


def tensors(mask: masks.AttentionMask, dtype=torch.float32, device="cpu") -> list[torch.Tensor]:
    """Query, key, value and a weight for each output, in (B, H, T, K)."""
    generator = torch.Generator().manual_seed(0)
    lengths = (mask.query_length, mask.key_length, mask.key_length, mask.query_length)
    made = [torch.randn(2, HEADS, n, SIZE, generator=generator) * 2 for n in lengths]
    return [tensor.to(device, dtype).requires_grad_(i < 3) for i, tensor in enumerate(made)]


def definition(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: masks.AttentionMask,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Token by token: a softmax over the keys that may be seen, zero where there is none."""
    out = (query + key.sum() + value.sum()) * 0  # depends on all three even where nothing is seen
    for b, h, t in torch.cartesian_prod(*map(torch.arange, query.shape[:3])).tolist():
        start, stop, step = mask.key_start[b].tolist(), mask.key_stop[b].tolist(), int(mask.query_step[b, t])
        seen = [
            s
            for s in range(len(start))
            if start[s] <= step < stop[s]
            and not (mask.exclude_self and s == mask.own_keys[b, t])
            and not (mask.last_key is not None and s > mask.last_key[b, t])
            and not (mask.window is not None and abs(mask.query_position[b, t] - mask.key_position[b, s]) > mask.window)
        ]
        if seen:
            scores = torch.stack([query[b, h, t] @ key[b, h, s] / math.sqrt(SIZE) for s in seen])
            scores = scores if bias is None else scores + bias[b, h, t, seen]
            out[b, h, t] = torch.softmax(scores, 0) @ value[b, h, seen]
    return out


class TensorBias(ScoreBias):
    """One number for each pair."""

    def __init__(self, bias: torch.Tensor):
        self.tensors = ((bias, of_queries),)

    def dense(self):
        return self.tensors[0][0]

    def within(self, tile, bias):
        return bias[..., tile.keys]


def gradients(out: torch.Tensor, inputs: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad((out * inputs[3]).sum(), inputs[:3])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("backend", WITHOUT_DROPOUT)
def test_large_products_do_not_overflow(backend, dtype):
    # 64 products of 45 and 45 add up to 129,600, beyond float16, and to 16,200 once they are scaled.
    mask, query = batch("causal"), torch.full((2, HEADS, 6, 64), 45.0, dtype=dtype)
    key = query * torch.linspace(0.9, 1, 6, dtype=dtype).view(6, 1)
    value = torch.randn(2, HEADS, 6, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = attend(query, key, value, prepare(mask, dtype, "cpu", backend=backend))
    # Keys grow so fast that the softmax takes the last one that a query sees, its own.
    torch.testing.assert_close(found, value, atol=1e-3, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("backend", WITHOUT_DROPOUT)
@pytest.mark.parametrize("name", ROWS)
def test_backends_equal_the_definition_in_values_and_gradients(name, backend):
    mask = batch(name)
    assert mask.structure == {"full": "full", "one token": "full", "causal": "causal"}.get(name, "mixed")
    inputs = tensors(mask, torch.float64)
    expected = definition(*inputs[:3], mask)
    prepared = prepare(mask, torch.float64, torch.device("cpu"), backend=backend)
    out = attend(*inputs[:3], prepared)
    torch.testing.assert_close(out, expected)
    for mine, reference in zip(gradients(out, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(mine, reference)


@pytest.mark.slow
@pytest.mark.parametrize("backend", WITHOUT_DROPOUT)
@pytest.mark.parametrize("name", ROWS)
def test_a_bias_is_added_to_the_scores_in_values_and_gradients(name, backend):
    mask = batch(name)
    inputs = tensors(mask, torch.float64)
    bias = torch.randn(2, HEADS, mask.query_length, mask.key_length, dtype=torch.float64, requires_grad=True)
    expected = definition(*inputs[:3], mask, bias) + 0 * bias.sum()
    prepared = prepare(mask, torch.float64, torch.device("cpu"), backend=backend, needs="bias")
    out = attend(*inputs[:3], prepared, bias=TensorBias(bias))
    torch.testing.assert_close(out, expected)
    wanted = torch.autograd.grad((expected * inputs[3]).sum(), [*inputs[:3], bias])
    found = torch.autograd.grad((out * inputs[3]).sum(), [*inputs[:3], bias])
    for mine, reference in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, reference)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("backend", WITHOUT_DROPOUT)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("name", WITH_EMPTY_ROWS)
def test_rows_that_see_nothing_give_zero_and_finite_gradients(name, biased, backend, dtype):
    mask = batch(name)
    inputs = tensors(mask, dtype)
    bias = torch.randn(2, HEADS, mask.query_length, mask.key_length).to(dtype) if biased else None
    needs = "bias" if biased else None
    out = attend(
        *inputs[:3],
        prepare(mask, dtype, torch.device("cpu"), backend=backend, needs=needs),
        bias=TensorBias(bias) if biased else None,
    )
    empty = ~mask.dense().any(-1)
    assert empty.any()
    assert (out.transpose(1, 2)[empty] == 0).all()
    query, key, value = gradients(out, inputs)
    assert all(gradient.isfinite().all() for gradient in (query, key, value))
    assert (query.transpose(1, 2)[empty] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ON_CPU)
@pytest.mark.parametrize("name", ["full", "causal", "seq2seq", "packed with padding", "without self"])
def test_dropout_keeps_the_mean(name, backend):
    mask = batch(name)
    query, key, value, _ = (tensor.detach() for tensor in tensors(mask))
    prepared = prepare(mask, torch.float32, torch.device("cpu"), dropout=0.25, backend=backend)
    plain = attend(query, key, value, prepared)
    draws = torch.stack([attend(query, key, value, prepared, dropout=0.25) for _ in range(400)])
    assert draws.std(0).max() > 0.1
    error = (draws.mean(0) - plain).abs() / (draws.std(0) / math.sqrt(len(draws)) + 1e-6)
    assert error.max() < 5  # standard errors


@pytest.mark.parametrize("name", ROWS)
def test_what_is_hidden_changes_nothing_at_all(name):
    """Bit for bit: other keys and values at keys that nobody sees, or that one query does not see."""
    mask = batch(name)
    query, key, value, _ = (tensor.detach() for tensor in tensors(mask))
    dense = mask.dense()[0]
    for backend in WITHOUT_DROPOUT:
        prepared = prepare(mask, torch.float32, torch.device("cpu"), backend=backend)
        before = attend(query, key, value, prepared)
        for s in range(mask.key_length):
            other_key, other_value = key.clone(), value.clone()
            other_key[:, :, s] = 7.0
            other_value[:, :, s] = -9.0
            after = attend(query, other_key, other_value, prepared)
            unseen = ~dense[:, s]
            assert torch.equal(after[:, :, unseen], before[:, :, unseen])
            assert not dense[:, s].any() or not torch.equal(after[:, :, ~unseen], before[:, :, ~unseen])


# Choosing a backend


def test_auto_is_sdpa_on_a_cpu_and_says_so_once(caplog):
    log_once.cache_clear()
    with caplog.at_level("INFO"):
        for _ in range(3):
            for name in ("full", "causal", "seq2seq"):
                assert choose(batch(name), torch.device("cpu"), 0.0) is BACKENDS["sdpa"]
    assert [record.getMessage() for record in caplog.records] == ["attention backend 'sdpa' on cpu"]


def test_backends_say_what_they_cannot_do():
    mask, cpu, gpu = batch("seq2seq"), torch.device("cpu"), torch.device("cuda")
    for name in ("dense", "sdpa"):
        assert BACKENDS[name].unsupported(mask, cpu, 0.1, needs="bias") is None
    assert "no backward on cpu" in BACKENDS["flex"].unsupported(mask, cpu, 0.0, needs=None)
    assert "no attention dropout (got 0.1)" in BACKENDS["flex"].unsupported(mask, gpu, 0.1, needs=None)
    assert "bias of relative positions" in BACKENDS["flex"].unsupported(mask, gpu, 0.0, needs="bias")
    assert BACKENDS["flex"].unsupported(mask, gpu, 0.0, needs=None) is None
    assert "serves steps alone" in BACKENDS["flex"].unsupported(mask.causal(), gpu, 0.0, needs=None)
    for name in ("flex", "sdpa"):
        assert "does not give its weights" in BACKENDS[name].unsupported(mask, gpu, 0.0, needs="weights")
    assert "need the package flash_attn.cute" in BACKENDS["flex_flash"].unsupported(mask, gpu, 0.0, needs=None)
    with pytest.raises(UnifiedError, match="'flex' cannot serve this: FlexAttention has no backward on cpu"):
        prepare(mask, torch.float32, cpu, backend="flex")
    with pytest.raises(UnifiedError, match="'fast': no such attention backend; known are auto, .*blocked.*, and any"):
        prepare(mask, torch.float32, cpu, backend="fast")


def test_a_backend_of_ones_own_is_chosen_by_its_name_and_never_by_itself(monkeypatch):
    class Mine(DenseAttention):
        name = "mine"
        any_shape = False

    monkeypatch.setattr("unified.attention.BACKENDS", dict(BACKENDS))
    with pytest.raises(
        UnifiedError, match="attention backend 'mine': no such attention backend; known are auto, dense, sdpa"
    ):
        BackendChoice("mine")
    register(Mine)
    given = batch("seq2seq"), torch.float32, torch.device("cpu")
    assert type(BackendChoice("mine")(*given)) is Mine
    assert type(BackendChoice()(*given)) is BACKENDS["sdpa"]


def test_a_backend_is_named_by_its_import_path(monkeypatch):
    monkeypatch.setattr("unified.attention.BACKENDS", dict(BACKENDS))
    path = "docs.examples.precise_attention:PreciseAttention"
    given = batch("seq2seq"), torch.float32, torch.device("cpu")
    own = BackendChoice(path)
    assert type(own(*given)).__name__ == "PreciseAttention"
    assert type(own(*given, shapes_differ=True)).__name__ == "PreciseAttention"
    assert type(BackendChoice("precise")(*given)) is type(own(*given))  # it is known by its name from now on
    mask = batch("without self")
    query, key, value, _ = tensors(mask)
    made = [attend(query, key, value, prepare(mask, *given[1:], backend=name)) for name in (path, "dense")]
    torch.testing.assert_close(*made)


def test_a_backend_of_another_package_of_the_library_is_imported_where_it_is_named(monkeypatch):
    # A program that has not imported unified.kernels.cpu, which registers it, knows no 'blocked' either.
    monkeypatch.setattr("unified.attention.BACKENDS", {k: v for k, v in BACKENDS.items() if k not in ELSEWHERE})
    with pytest.raises(UnifiedError, match="known are auto, blocked, dense, sdpa"):
        BackendChoice("mine")
    for name in ELSEWHERE:
        assert type(prepare(batch("seq2seq"), torch.float32, "cpu", backend=name)) is BACKENDS[name]
        assert BackendChoice(name).backend == name


@pytest.mark.parametrize(
    ("backend", "says"),
    [
        ("no.such.module:Mine", "attention backend 'no.such.module:Mine': module no.such.module cannot be imported"),
        ("docs.examples.precise_attention:Mine", "module docs.examples.precise_attention has no 'Mine'"),
        ("docs.examples.precise_attention:functional", "functional is not a subclass of unified.attention.backend"),
    ],
)
def test_what_is_no_backend_is_refused(backend, says):
    with pytest.raises(UnifiedError, match=says):
        BackendChoice(backend)


def test_two_backends_of_one_name_are_refused(monkeypatch):
    class Mine(DenseAttention):
        pass

    monkeypatch.setattr("unified.attention.BACKENDS", dict(BACKENDS))
    with pytest.raises(UnifiedError, match="Mine: another attention backend is called 'dense'; change its name"):
        register(Mine)
    register(DenseAttention)


def test_where_no_automatic_backend_serves_the_message_says_why():
    given = batch("seq2seq"), torch.float32, torch.device("cpu")

    class SdpaAlone(BackendChoice):
        automatic = ("sdpa",)

    with pytest.raises(UnifiedError, match=r"no attention backend of sdpa can serve this on cpu \(sdpa: .*weights"):
        SdpaAlone()(*given, needs="weights")
    with pytest.raises(UnifiedError, match="no attention backend of sdpa can serve masks of ever new shapes on cpu"):
        SdpaAlone()(*given, needs="weights", shapes_differ=True)


def test_for_shapes_that_differ_backends_of_any_shape_are_taken():
    """Decoding prepares the mask of a source that is never of the same length."""
    cpu, kinds = (
        torch.device("cpu"),
        {"auto": "sdpa", "dense": "dense", "sdpa": "sdpa", "flex": "sdpa", "blocked": "sdpa"},
    )
    for backend, taken in kinds.items():
        given = batch("seq2seq"), torch.float32, cpu, 0.1
        assert type(BackendChoice(backend)(*given, shapes_differ=True)) is BACKENDS[taken]
        assert type(BackendChoice(backend)(*given, needs="weights", shapes_differ=True)) is DenseAttention


def test_nothing_is_compiled_for_a_shape_but_within_compiled_layers():
    """On a card padded batches never have the same shape; after eight shapes torch compiles no more."""
    card, choice = torch.device("cuda"), BackendChoice()
    assert type(choice(batch("seq2seq"), torch.float32, card)) is BACKENDS["sdpa"]
    assert type(prepare(batch("seq2seq"), torch.float32, card)) is BACKENDS["sdpa"]
    assert type(choice(batch("seq2seq"), torch.float32, card, compiled=True)) is BACKENDS["flex"]
    assert type(choice(batch("seq2seq"), torch.float32, card, dropout=0.1, compiled=True)) is BACKENDS["sdpa"]
    assert type(choice(batch("seq2seq"), torch.float32, card, shapes_differ=True, compiled=True)) is BACKENDS["sdpa"]
    assert type(BackendChoice("flex")(batch("seq2seq"), torch.float32, card)) is BACKENDS["flex"]


@pytest.mark.slow
def test_flex_asks_for_its_kernels(monkeypatch):
    """FlexAttention's definition without a compiler, which runs on a CPU, and what it is told about kernels."""
    asked = []

    def flex(query, key, value, block_mask, kernel_options):
        asked.append(kernel_options)
        return flex_attention(query, key, value, block_mask=block_mask)

    monkeypatch.setattr("unified.attention.flex.compiled_flex_attention", lambda: flex)
    monkeypatch.setattr("unified.attention.flex.find_spec", lambda name: name)
    assert BACKENDS["flex_flash"].unsupported(batch("seq2seq"), torch.device("cuda"), 0.0, needs=None) is None
    mask = batch("packed with padding")
    made = [torch.randn(2, HEADS, mask.query_length, 16) for _ in range(3)]
    expected = BACKENDS["dense"](mask, torch.float32)(*made)
    for name, options in (("flex", {}), ("flex_flash", {"BACKEND": "FLASH"})):
        torch.testing.assert_close(BACKENDS[name](mask, torch.float32)(*made), expected, atol=1e-5, rtol=1e-4)
        assert asked.pop() == options


@pytest.mark.gpu
@pytest.mark.parametrize("backend", ["dense", "sdpa", "flex", "fused"])
@pytest.mark.parametrize("name", ROWS)
def test_backends_agree_on_a_gpu(name, backend):
    mask = batch(name)
    size = 16  # FlexAttention's least
    generator = torch.Generator().manual_seed(0)
    lengths = (mask.query_length, mask.key_length, mask.key_length, mask.query_length)
    made = [torch.randn(2, HEADS, n, size, generator=generator) for n in lengths]
    cpu = [tensor.requires_grad_(i < 3) for i, tensor in enumerate(made)]
    gpu = [tensor.detach().cuda().requires_grad_(i < 3) for i, tensor in enumerate(made)]
    expected = attend(*cpu[:3], prepare(mask, torch.float32, torch.device("cpu"), backend="dense"))
    if name.startswith("one way") and backend == "flex":
        with pytest.raises(UnifiedError, match="FlexAttention serves steps alone"):
            prepare(mask.to("cuda"), torch.float32, torch.device("cuda"), backend=backend)
        return
    there = prepare(mask.to("cuda"), torch.float32, torch.device("cuda"), backend=backend)
    out = attend(*gpu[:3], there)
    torch.testing.assert_close(out.cpu(), expected, atol=2e-3, rtol=2e-3)
    for mine, reference in zip(gradients(out, gpu), gradients(expected, cpu), strict=True):
        torch.testing.assert_close(mine.cpu(), reference, atol=5e-3, rtol=5e-3)
