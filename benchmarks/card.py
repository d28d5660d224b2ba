"""The set for a graphics card, in one command: first correctness, then speed in bfloat16.

    python benchmarks/card.py                  # on a card: everything, in under eight minutes
    python benchmarks/card.py --device cpu     # correctness alone, as far as a CPU can

Correctness: the tables of block masks against dense masks; FlexAttention with them against dense attention in float32,
values and gradients; losses and gradients of a whole model. ``millionths`` are of the greatest value. A CPU has neither
a kernel that skips blocks nor a backward of FlexAttention: there its values are compared, and the model by SDPA. If a
difference is too large, nothing is measured. Then the programs beside this one run one after another, each in a process
of its own; what fails or takes too long is said, and the others go on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
import torch
from mask_cost import mask_kinds
from models import SIZES, Size, batch_of, example, our_model
from paired import report, say
from run import results_file, run
from torch.nn.attention.flex_attention import flex_attention

from unified import masks
from unified.attention import attend, prepare
from unified.masks import AttentionMask

BUDGET = 8 * 60
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}
_CARD = ["--device", "cuda", "--bf16"]
_STEP = ["training_step.py", *_CARD, "--attention-dropout", "0", "--no-fairseq", "--rounds", "5"]
_WIKIPEDIA = ["--max-length", "512", "--mean", "300", "--deviation", "1.0", "--sequences", "768", "--batch", "64"]

#: Measurements: bars of one H200, aims worked out from published figures.
SET = [
    [*_STEP, "--size", "base", "--rows", "64", "--ceiling-bar", "0.45"],
    [*_STEP, "--size", "base", "--rows", "64", "--compile", "--ceiling-bar", "0.45"],
    [*_STEP, "--size", "large", "--rows", "32", "--compile", "--ceiling-bar", "0.5"],
    ["packing.py", *_CARD, "--size", "base", *_WIKIPEDIA, "--fixed-shapes", "--bar", "1.8"],
    ["mask_cost.py", *_CARD, "--size", "base", "--rows", "32", "--equal-area", "--bar", "1.2"],
    [
        "permutation_step.py",
        *_CARD,
        "--size",
        "base",
        "--rows",
        "32",
        "--attention-dropout",
        "0",
        "--masked-bar",
        "1.5",
    ],
    ["decoding.py", "--device", "cuda", "--size", "base", "--sentences", "64", "--no-fairseq", "--bar", "5"],
]


def samples(length: int) -> Iterator[tuple[str, AttentionMask]]:
    """Masks of every structure, two rows each."""
    rng = np.random.default_rng(0)
    rows = {name: masks.pack(row, length) for name, row in mask_kinds(length, rng).items()}
    rows["full"] = masks.bidirectional(length)
    rows["with padding"] = masks.pack([masks.seq2seq(length // 4, length // 8)], length)
    rows["without self"] = masks.bidirectional(length).without_self()
    rows["query stream"] = masks.permutation(1 + rng.permutation(length)).query_stream(range(0, length, 4))
    rows["memory"] = masks.left_to_right(length).with_memory(length // 2)
    for name, row in rows.items():
        yield name, masks.batch([row, row])


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The greatest, relative to the greatest value that is expected."""
    return float((found.float() - expected.float()).abs().max() / expected.float().abs().max().clamp_min(1e-6))


def wrong_pairs(mask: AttentionMask) -> int:
    """Pairs that a kernel that follows the block mask's tables would show or hide wrongly."""
    blocks, dense = mask.block_mask(), mask.dense()
    rows, columns = blocks.BLOCK_SIZE
    shown = torch.zeros_like(dense)
    tables = (
        (blocks.full_kv_num_blocks, blocks.full_kv_indices, True),
        (blocks.kv_num_blocks, blocks.kv_indices, False),
    )
    for counts, indices, full in tables:
        for b, h, i in torch.cartesian_prod(*map(torch.arange, counts.shape)).tolist():
            for j in indices[b, h, i, : counts[b, h, i]].tolist():
                tile = (b, slice(i * rows, (i + 1) * rows), slice(j * columns, (j + 1) * columns))
                shown[tile] = True if full else dense[tile]
    return int((shown != dense).sum())


def attention_difference(mask: AttentionMask, device: torch.device, dtype: torch.dtype, size: int) -> float:
    """FlexAttention in ``dtype`` beside dense attention in float32, on random states of heads of ``size``."""
    generator = torch.Generator().manual_seed(0)
    lengths = (mask.query_length, mask.key_length, mask.key_length)
    states = [torch.randn(2, 2, length, size, generator=generator).to(device) for length in lengths]
    mask = mask.to(device)
    exact = [one.clone().requires_grad_() for one in states]
    expected = attend(*exact, prepare(mask, torch.float32, device, backend="dense"))
    if device.type != "cuda":
        found = flex_attention(*(one.to(dtype) for one in states), block_mask=mask.block_mask())
        return difference(found, expected.detach())
    rounded = [one.to(dtype).requires_grad_() for one in states]
    found = attend(*rounded, prepare(mask, dtype, device, backend="flex"))
    weights = torch.randn(expected.shape, generator=generator).to(device)
    wanted = torch.autograd.grad((expected * weights).sum(), exact)
    got = torch.autograd.grad((found.float() * weights).sum(), rounded)
    return max(difference(*pair) for pair in zip((found, *got), (expected, *wanted), strict=True))


def model_difference(device: torch.device, size: Size, length: int) -> float:
    """Losses and gradients of a whole model, by the fast backend beside the dense one, on rows of all masks.

    Its layers are compiled; on a CPU by a backend that needs no compiler.
    """
    rng = np.random.default_rng(0)
    rows = [[example(mask, rng) for mask in row] for row in mask_kinds(length, rng).values()]
    batch = batch_of(rows, length, str(device))
    results = []
    for backend in ("dense", "flex" if device.type == "cuda" else "sdpa"):
        model = our_model(size, 0.0, str(device), dropout=0.0, attention_backend=backend)
        if backend != "dense":
            model.transformer.compile_layers(backend="inductor" if device.type == "cuda" else "aot_eager")
        loss = model(batch)["benchmark"].total
        loss.backward()
        gradients = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
        results.append((loss.detach().reshape(1), torch.cat(gradients)))
    return max(difference(found, expected) for expected, found in zip(*results, strict=True))


def correctness(device: torch.device, length: int, size: int) -> bool:
    """Report all differences; whether none is too large."""
    lines = []
    for name, mask in samples(length):
        wanted = {"length": length}
        lines.append(report(f"blocks: {name}", wanted, [wrong_pairs(mask)], 0, at_most=True, unit="wrong_pairs"))
    dtypes = [torch.float32, torch.bfloat16] if device.type == "cuda" else [torch.float32]
    for dtype in dtypes:
        for name, mask in samples(length):
            found = [attention_difference(mask, device, dtype, size)]
            wanted = {"device": device.type, "dtype": str(dtype).removeprefix("torch."), "length": length}
            lines.append(_difference(f"FlexAttention: {name}", wanted, found, TOLERANCE[dtype]))
    found = [model_difference(device, Size(2, 64, 2), length)]
    lines.append(_difference("model", {"device": device.type, "length": length}, found, TOLERANCE[torch.float32]))
    return all(line["holds"] for line in lines)


def _difference(name: str, wanted: dict, found: list[float], tolerance: float) -> dict:
    # Differences are too small for the digits that lines have: they count in millionths.
    millionths = [1e6 * value for value in found]
    return report(name, wanted, millionths, 1e6 * tolerance, at_most=True, unit="millionths")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="device to check (default: %(default)s)"
    )
    parser.add_argument(
        "--length", type=int, default=512, help="tokens of a row in the comparison (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("card: torch sees no CUDA card here; --device cpu compares as far as a CPU can")
    began = time.perf_counter()
    if not correctness(torch.device(arguments.device), arguments.length, SIZES["base"].width // SIZES["base"].heads):
        raise SystemExit("card: a difference is too large; speed is not measured")
    if arguments.device == "cpu":
        return
    file, missed, failed = results_file(), 0, []
    for command in SET:
        left = BUDGET - (time.perf_counter() - began)
        try:
            missed += run(command, file, left)
        except SystemExit as problem:
            say(f"card: {problem}")
            failed.append(command[0])
    say(
        f"{missed} bars missed, {len(failed)} programs failed, {time.perf_counter() - began:.0f} s; lines are in {file}"
    )
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
