"""Steps that a graphics card repeats as one CUDA graph, without Python between their kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch

#: A graph is captured when its step has run so often: capturing takes about as long as so many steps.
_PAYS_AFTER = 8


class GraphPool:
    """The stream on which steps over the same tensors are captured, and the memory that their graphs share.

    Sharing is safe as long as graphs run one after the other, and what one returns is not read after another has run.

    Args:
        device: on one without CUDA graphs, steps run as they are.
    """

    def __init__(self, device: torch.device):
        self.captures = device.type == "cuda"
        if self.captures:
            self.stream = torch.cuda.Stream(device)
            self.handle = torch.cuda.graph_pool_handle()

    def capture(self, step: Callable[[], torch.Tensor]) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        """The graph of a step, and the tensor into which it writes; the step itself is run once more before."""
        current = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            step()  # libraries allocate their workspaces of this stream before the capture
        current.wait_stream(self.stream)
        graph = torch.cuda.CUDAGraph()
        # Other threads, such as those that pin memory for a data loader, may go on meanwhile.
        with torch.cuda.graph(graph, self.handle, self.stream, capture_error_mode="thread_local"):
            output = step()
        return graph, output


class Replayed:
    """A step of fixed shapes: run as it is a few times, then captured, then replayed.

    Args:
        pool: of the steps over the same tensors.
    """

    def __init__(self, pool: GraphPool):
        self.pool = pool
        self.runs = 0
        self.captured: tuple[torch.cuda.CUDAGraph, torch.Tensor] | None = None

    def __call__(self, step: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Runs the step and returns its tensor; a graph has one and the same, which the next call overwrites.

        Args:
            step: the same one in every call. It reads and writes tensors that stay where they are, never waits for the
                device, and may be run twice where it would be run once.
        """
        if self.captured is None:
            self.runs += 1
            if not self.pool.captures or self.runs <= _PAYS_AFTER:
                return step()
            self.captured = self.pool.capture(step)
        graph, output = self.captured
        graph.replay()
        return output
