"""The machine that a process runs on: what its figures depend on beside code and versions."""

from __future__ import annotations

import os
import platform


def machine() -> dict[str, str | int]:
    """Name of the processor, number of cores, and the name of the first GPU where there is one."""
    import torch  # waits for it only where a machine is described

    found: dict[str, str | int] = {"processor": processor_name(), "cores": os.cpu_count() or 1}
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def processor_name() -> str:
    """Name of the processor, as far as the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
