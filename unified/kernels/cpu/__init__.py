"""What makes a CPU fast: :func:`accelerate` a model after it is built, :func:`keep_freed_memory` in its process."""

from unified.kernels.cpu.allocator import keep_freed_memory
from unified.kernels.cpu.swaps import accelerate

__all__ = ["accelerate", "keep_freed_memory"]
