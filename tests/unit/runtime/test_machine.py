"""The machine that figures are measured on: its processor, its cores and its GPU."""

import builtins
import io
import os
import platform
from pathlib import Path

import pytest
import torch

from tests.support.locales import plain_locale
from unified.runtime.machine import machine, processor_name


@pytest.fixture
def cpuinfo(monkeypatch, tmp_path) -> Path:
    """A file that is read in place of /proc/cpuinfo."""
    really_open = builtins.open

    def opened(path, *arguments, **named):
        return really_open(tmp_path / "cpuinfo" if str(path) == "/proc/cpuinfo" else path, *arguments, **named)

    for module in (builtins, io):
        monkeypatch.setattr(module, "open", opened)
    return tmp_path / "cpuinfo"


def test_a_processor_has_the_name_of_its_first_core(cpuinfo, monkeypatch):
    cpuinfo.write_bytes("processor\t: 0\nmodel\t\t: 6\nmodel name\t: A®: 3 GHz \nmodel name\t: B\n".encode())
    with plain_locale():
        assert processor_name() == "A®: 3 GHz"
    monkeypatch.setattr(platform, "processor", lambda: "ppc")
    monkeypatch.setattr(platform, "machine", lambda: "ppc64")
    for content in (b"", b"processor : 0\n"):
        cpuinfo.write_bytes(content)
        assert processor_name() == "ppc"
    cpuinfo.unlink()
    assert processor_name() == "ppc"
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert processor_name() == "ppc64"


def test_a_machine_has_a_processor_cores_and_perhaps_a_gpu(cpuinfo, monkeypatch):
    cpuinfo.write_bytes(b"model name : A\n")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert machine() == {"processor": "A", "cores": 12}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine() == {"processor": "A", "cores": 1, "gpu": "a card"}
