"""Block masks and FlexAttention, forward and backward, beside dense attention in float64; a whole model beside dense.

A CPU has neither a kernel that skips blocks nor a backward of FlexAttention: there its definition without a compiler is
compared in values alone, and the model by SDPA.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.nn.attention.flex_attention import flex_attention

from gpu.batches import MIXTURE, random_batches, small_model
from gpu.findings import Finding, Place, difference, within
from unified import masks
from unified.attention import BACKENDS, attend, prepare
from unified.masks import AttentionMask

#: Greatest differences, relative to the greatest value: those of rounding results and weights to the type.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}
_HEADS = 2


def samples(length: int) -> dict[str, AttentionMask]:
    """A mask of every kind, of two rows of ``length`` tokens, which four divides."""
    rng = np.random.default_rng(0)
    half, quarter = length // 2, length // 4
    documents = [masks.bidirectional(quarter), masks.left_to_right(quarter), masks.right_to_left(quarter)]
    packed = masks.pack([*documents, masks.seq2seq(quarter // 2, quarter - quarter // 2)], length)
    order = rng.permutation(length)
    parents = [-1, *(int(rng.integers(i)) for i in range(1, length))]
    predicted = np.where(np.arange(half) % 7 == 0, 1 + np.arange(half) // 14, masks.GIVEN)
    rows = {
        "bidirectional": masks.bidirectional(length),
        "left_to_right": masks.left_to_right(length),
        "causal": masks.causal(length),
        "right_to_left": masks.right_to_left(length),
        "seq2seq": masks.seq2seq(half, length - half),
        "prefix_lm": masks.prefix_lm(length, quarter),
        "permutation": masks.permutation(order),
        "sliding_window": masks.sliding_window(length, quarter // 2, quarter // 3),
        "block_causal": masks.block_causal(length, quarter // 2),
        "block_diffusion": masks.block_diffusion(half, quarter // 2),
        "pseudo_masked": masks.pack([masks.pseudo_masked(predicted)], length),
        "tree": masks.tree(parents),
        "packed": packed,
        "packed, without self": packed.without_self(),
        "padded": masks.pack([masks.seq2seq(quarter, quarter // 2)], length),
        "causal window with a sink": masks.sliding_window(length, quarter).with_sinks(1),
        "without self": masks.bidirectional(length).without_self(),
        "hidden keys": masks.left_to_right(length).without_keys(torch.arange(length) % 5 == 3),
        "query stream": masks.permutation(1 + order).query_stream(range(0, length, 4)),
        "memory": masks.left_to_right(length).with_memory(half, filled=quarter),
        "memory, query stream": masks.permutation(1 + order).with_memory(half).query_stream(range(0, length, 4)),
    }
    batches = {name: masks.batch([row, row]) for name, row in rows.items()}
    return {**batches, "packed, within a window": batches["packed"].windowed(quarter // 4)}


def wrong_pairs(mask: AttentionMask, device: torch.device) -> int:
    """Pairs that a kernel that follows the tables of the block mask, made on ``device``, would show or hide wrongly."""
    blocks, dense = mask.to(device).block_mask(), mask.dense()
    rows, columns = blocks.BLOCK_SIZE
    shown = torch.zeros_like(dense)
    tables = (
        (blocks.full_kv_num_blocks.cpu(), blocks.full_kv_indices.cpu(), True),
        (blocks.kv_num_blocks.cpu(), blocks.kv_indices.cpu(), False),
    )
    for counts, indices, full in tables:
        for b, h, i in torch.cartesian_prod(*map(torch.arange, counts.shape)).tolist():
            for j in indices[b, h, i, : counts[b, h, i]].tolist():
                tile = (b, slice(i * rows, (i + 1) * rows), slice(j * columns, (j + 1) * columns))
                shown[tile] = True if full else dense[tile]
    return int((shown != dense).sum())


def block_masks(place: Place) -> Iterator[Finding]:
    """The tables of every kind of mask, made on the device."""
    length = place.size(512, 160)
    for name, mask in samples(length).items():
        wrong = wrong_pairs(mask, place.device)
        yield Finding(f"block mask: {name}", wrong, "pairs of the dense mask", wrong == 0, 0, {"length": length})


def attention_differences(
    mask: AttentionMask, device: torch.device, dtype: torch.dtype, size: int, backend: str = "flex"
) -> dict[str, float]:
    """FlexAttention in ``dtype`` beside dense attention in float64 on the same random states of heads of ``size``.

    Returns:
        The differences of the values and, on a card, of the gradients of queries, keys and values.
    """
    generator = torch.Generator().manual_seed(0)
    lengths = (mask.query_length, mask.key_length, mask.key_length)
    states = [torch.randn(2, _HEADS, length, size, generator=generator).to(device, dtype) for length in lengths]
    exact = [one.double().requires_grad_() for one in states]
    mask = mask.to(device)
    expected = attend(*exact, prepared=prepare(mask, torch.float64, device, backend="dense"))
    if device.type != "cuda":
        return {"values": difference(flex_attention(*states, block_mask=mask.block_mask()), expected.detach())}
    torch.compiler.reset()  # torch compiles a function anew for eight shapes only
    given = [one.requires_grad_() for one in states]
    found = attend(*given, prepared=prepare(mask, dtype, device, backend=backend))
    weights = torch.randn(expected.shape, generator=generator, dtype=torch.float64).to(device)
    wanted = torch.autograd.grad((expected * weights).sum(), exact)
    got = torch.autograd.grad((found.double() * weights).sum(), given)
    names = ("values", "gradients of queries", "gradients of keys", "gradients of values")
    pairs = zip((found.detach(), *got), (expected.detach(), *wanted), strict=True)
    return {name: difference(*pair) for name, pair in zip(names, pairs, strict=True)}


def attention(place: Place, dtype: torch.dtype, backend: str = "flex") -> Iterator[Finding]:
    """Every kind of mask."""
    length, size = place.size(512, 160), place.size(64, 16)
    type_name = str(dtype).removeprefix("torch.")
    settings = {"backend": backend, "dtype": type_name, "length": length, "head size": size}
    title = f"FlexAttention, {type_name}" if backend == "flex" else f"FlexAttention by FLASH, {type_name}"
    compared, what = "dense attention in float64", "forward and backward" if place.on_card else "forward"
    made = samples(length)
    some = next(iter(made.values()))
    reason = BACKENDS[backend].unsupported(some, torch.device("cuda"), 0.0, None)
    if reason is not None or (backend != "flex" and not place.on_card):
        yield Finding(title, None, compared, None, None, settings, reason or "only a card has these kernels")
        return
    for name, mask in made.items():
        unsupported = BACKENDS[backend].unsupported(mask, torch.device("cuda"), 0.0, None)
        if unsupported:
            yield Finding(f"{title}: {name}", None, compared, None, None, settings, unsupported)
            continue
        found = attention_differences(mask, place.device, dtype, size, backend)
        part, worst = max(found.items(), key=lambda item: (item[1] != item[1], item[1]))  # NaN is the worst
        yield within(
            f"{title}: {name}", worst, TOLERANCES[dtype], compared, settings, f"{what}; the greatest is of {part}"
        )


float32 = partial(attention, dtype=torch.float32)
float16 = partial(attention, dtype=torch.float16)
bfloat16 = partial(attention, dtype=torch.bfloat16)
flash = partial(attention, dtype=torch.bfloat16, backend="flex_flash")


def model_difference(place: Place, length: int, backend: str) -> dict[str, float]:
    """Losses and gradients of a whole model with compiled layers beside one with dense attention, in float32."""
    with tempfile.TemporaryDirectory() as folder:
        batch = next(random_batches(Path(folder), length, place.size(8, 4))).to(place.device)
    results = []
    for name in ("dense", backend):
        model = small_model(length, backend=name, layers=2, width=place.size(256, 64)).to(place.device)
        if name != "dense":
            model.transformer.compile_layers(backend="inductor" if place.on_card else "aot_eager")
        losses = model(batch)
        total = sum(one.total / one.count.clamp(min=1) for one in losses.values())
        total.backward()
        gradients = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
        results.append({"losses": total.detach().reshape(1), "gradients": torch.cat(gradients)})
    return {name: difference(results[1][name], results[0][name]) for name in results[0]}


def model(place: Place) -> Iterator[Finding]:
    """A batch of all objectives of the mixture."""
    length, backend = place.size(512, 64), "flex" if place.on_card else "sdpa"
    for name, found in model_difference(place, length, backend).items():
        settings = {"backend": backend, "length": length, "compiled": True, "objectives": MIXTURE}
        compared = "the model with dense attention, not compiled"
        yield within(f"a whole model: {name}", found, TOLERANCES[torch.float32], compared, settings)
