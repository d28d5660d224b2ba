"""The machine that figures are measured on: its processor, its cores and its GPU."""

import builtins
import io
import os
import platform

import pytest
import torch

from unified.runtime.machine import machine, processor_name


@pytest.fixture
def cpuinfo(monkeypatch):
    """Says what /proc/cpuinfo holds; None where there is no such file."""
    really_open, content = builtins.open, [None]

    def opened(path, *arguments, **named):
        if path != "/proc/cpuinfo":
            return really_open(path, *arguments, **named)
        assert named == {"encoding": "utf-8"}
        if content[0] is None:
            raise FileNotFoundError(path)
        return io.StringIO(content[0])

    monkeypatch.setattr(builtins, "open", opened)
    return content


def test_a_processor_has_the_name_of_its_first_core(cpuinfo, monkeypatch):
    cpuinfo[0] = "processor\t: 0\nmodel\t\t: 6\nmodel name\t: A: 3 GHz \nmodel name\t: B\n"
    assert processor_name() == "A: 3 GHz"
    monkeypatch.setattr(platform, "processor", lambda: "ppc")
    monkeypatch.setattr(platform, "machine", lambda: "ppc64")
    for none in (None, "", "processor : 0\n"):
        cpuinfo[0] = none
        assert processor_name() == "ppc"
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert processor_name() == "ppc64"


def test_a_machine_has_a_processor_cores_and_perhaps_a_gpu(cpuinfo, monkeypatch):
    cpuinfo[0] = "model name : A\n"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert machine() == {"processor": "A", "cores": 12}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine() == {"processor": "A", "cores": 1, "gpu": "a card"}
