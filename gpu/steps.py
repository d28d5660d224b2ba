"""Steps of training: nothing is compiled again from batch to batch, and nothing waits for the card."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import torch
from torch._dynamo.utils import counters
from torch.profiler import ProfilerActivity, profile

from gpu.batches import MIXTURE, random_batches, small_model
from gpu.findings import Finding, Place
from unified.data.example import Batch
from unified.model import UnifiedModel

#: Kind of step -> objectives, and what the model needs for them.
KINDS: dict[str, tuple[str, dict[str, object]]] = {
    "mixture": (MIXTURE, {}),
    "causal": ("prefix_lm", {}),
    "query stream": ("xlnet", {"positions": "relative"}),
    "neighbors": ("anna(scheme='token'),left_to_right", {"sublayers": "neighbor,self,feed_forward"}),
}
#: Calls of CUDA's runtime, as the profiler names them, in which the host waits; and copies that it waits for.
_WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "Memcpy DtoH")


def trained_step(model: UnifiedModel, dtype: torch.dtype | None = None) -> Callable[[Batch], torch.Tensor]:
    """A step of training as ``unified.train`` makes it: forward, backward, clipped gradients, AdamW; its loss."""
    device = next(model.parameters()).device.type
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=device != "meta")

    def step(batch: Batch) -> torch.Tensor:
        optimizer.zero_grad()
        with nullcontext() if dtype is None else torch.autocast(device, dtype=dtype):
            losses = model(batch)
            loss = sum(one.total / one.count.clamp(min=1) for one in losses.values())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


def _compiler(place: Place) -> dict[str, str]:
    return {} if place.on_card else {"backend": "aot_eager"}


def compiled(place: Place) -> Iterator[Finding]:
    """Train by compiled layers on random batches; counts the graphs that torch compiles."""
    warm, count, length, rows = place.size(20, 6), place.size(1000, 30), place.size(512, 64), place.size(16, 4)
    dtype = torch.bfloat16 if place.on_card else None
    model = small_model(length, "auto" if place.on_card else "sdpa", layers=place.size(4, 2), width=place.size(256, 64))
    model.to(place.device).transformer.compile_layers(**_compiler(place))
    step = trained_step(model, dtype)
    graphs, losses = [], []
    with tempfile.TemporaryDirectory() as folder:
        for batch in islice(random_batches(Path(folder), length, rows), warm + count):
            losses.append(step(batch.to(place.device)))
            graphs.append(counters["stats"]["unique_graphs"])
    settings = {"batches": count, "first batches": warm, "rows": rows, "length": length, "objectives": MIXTURE}
    first, last = graphs[warm - 1], graphs[-1]
    found = {"graphs of the first batches": first, "graphs at the end": last}
    late = [number + 1 for number in range(warm, len(graphs)) if graphs[number] > graphs[number - 1]]
    note = f"compiled again at batches {late[:10]}" if late else ""
    yield Finding("compiled training: graphs", found, "as many at the end", 0 < first == last, 0, settings, note)
    infinite = int((~torch.stack(losses).isfinite()).sum())
    note = f"the last loss is {losses[-1].item():.3f}"
    yield Finding("compiled training: losses that are not finite", infinite, 0, infinite == 0, 0, settings, note)


def looks(call: Callable[[], object]) -> Counter[str]:
    """The first look at a value within a call on the device ``meta``, whose tensors have none; counted once."""
    try:
        call()
    except (RuntimeError, NotImplementedError) as problem:
        return Counter([str(problem).splitlines()[0]])
    return Counter()


def warned(call: Callable[[], object]) -> Counter[str]:
    """Waits within a call that torch's own watch over CUDA reports, by their first lines, and how often."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            call()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return Counter(
        f"{Path(one.filename).name}:{one.lineno}" for one in caught if "called a synchronizing" in str(one.message)
    )


def profiled(call: Callable[[], object]) -> Counter[str]:
    """Waits within a call by the profiler, which sees those of any library."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        call()
    counts = {one.key: one.count for one in found.key_averages() if one.key.startswith(_WAITS)}
    if counts.get("cudaDeviceSynchronize") == 1:  # the profiler's own, at its end
        del counts["cudaDeviceSynchronize"]
    return Counter(counts)


def waiting(place: Place) -> Iterator[Finding]:
    """Count what waits for the card in a step after some that warm up, for every kind of step.

    A rehearsal has nothing to wait for: it makes the steps on the device ``meta``, where a look at a value fails.
    """
    ways = {"torch's watch": warned, "profiler": profiled} if place.on_card else {"a device without values": looks}
    device = place.device if place.on_card else torch.device("meta")
    length, rows = place.size(512, 64), place.size(8, 4)
    for kind, (objectives, changes) in KINDS.items():
        compiles = place.on_card and kind in ("mixture", "causal", "query stream")
        for by_compiled in (False, True) if compiles else (False,):
            backend = "auto" if place.on_card else "sdpa"
            model = small_model(length, backend, layers=2, width=place.size(256, 64), **changes).to(device)
            if by_compiled:
                torch.compiler.reset()
                model.transformer.compile_layers(**_compiler(place))
            step = trained_step(model, torch.bfloat16 if place.on_card else None)
            with tempfile.TemporaryDirectory() as folder:
                drawn = list(islice(random_batches(Path(folder), length, rows, objectives), 6))
            batches = [batch.to(device) for batch in drawn]
            for batch in batches[:-1] if place.on_card else ():
                step(batch)
            for way, count in ways.items():
                found = dict(count(lambda step=step, batch=batches[-1]: step(batch)))
                settings = {
                    "objectives": objectives,
                    "compiled": by_compiled,
                    "length": length,
                    "rows": rows,
                    "by": way,
                }
                name = f"waits in a step: {kind}{', compiled' if by_compiled else ''}, by {way}"
                yield Finding(name, found, "none", not found, 0, settings)
