"""Faster models on a CPU: :func:`accelerate` or :func:`quantize` a built model, :func:`keep_freed_memory`."""

from unified.kernels.cpu.allocator import keep_freed_memory
from unified.kernels.cpu.int8 import quantize
from unified.kernels.cpu.swaps import accelerate

__all__ = ["accelerate", "keep_freed_memory", "quantize"]
