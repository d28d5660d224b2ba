"""What makes a CPU fast: attention in blocks."""

from unified.attention import register
from unified.kernels.cpu.blocked import BlockedAttention

register("blocked", BlockedAttention)
