"""How a graph is captured: what waits for what, on which stream, and into which memory; with calls that are noted."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from unified.generation.graphs import GraphPool, Replayed

CARD = torch.device("cuda", 1)


class Stream:
    def __init__(self, name, notes, device=CARD):
        self.name, self.notes, self.device = name, notes, device

    def wait_stream(self, other):
        self.notes.append((self.name, "waits for", other.name))


@pytest.fixture
def notes(monkeypatch):
    """What is asked of torch.cuda, in order."""
    found = []

    @contextmanager
    def stream(own):
        found.append(("on", own.name))
        yield
        found.append(("off", own.name))

    @contextmanager
    def graph(captured, pool, own, **options):
        found.append(("capture", captured.number, pool, own.name, options))
        yield
        found.append(("captured", captured.number))

    def made():
        number = sum(note == "graph" for note in found)
        found.append("graph")
        return SimpleNamespace(number=number, replay=lambda: found.append(("replay", number)))

    def current(device):
        assert device == CARD
        return Stream("current", found)

    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream("own", found, device))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "memory")
    monkeypatch.setattr(torch.cuda, "current_stream", current)
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", made)
    return found


def test_a_pool_has_a_stream_and_memory_of_its_card(notes):
    pool = GraphPool(CARD)
    assert pool.captures is True and pool.stream.device == CARD and pool.handle == "memory"
    assert GraphPool(torch.device("cpu")).captures is False


def test_a_step_runs_once_before_it_is_captured_on_the_stream_of_the_pool(notes):
    results = iter(["first", "second"])

    def step():
        notes.append("step")
        return next(results)

    graph, output = GraphPool(CARD).capture(step)
    assert graph.number == 0 and output == "second"
    assert notes == [
        ("own", "waits for", "current"),
        ("on", "own"),
        "step",
        ("off", "own"),
        ("current", "waits for", "own"),
        "graph",
        ("capture", 0, "memory", "own", {"capture_error_mode": "thread_local"}),
        "step",
        ("captured", 0),
    ]


def test_the_ninth_call_captures_and_later_ones_only_replay(notes):
    calls, replayed = [], Replayed(GraphPool(CARD))

    def step():
        calls.append(len(notes))
        return len(calls)

    assert [replayed(step) for _ in range(8)] == list(range(1, 9)) and not notes
    assert replayed(step) == 10 and len(calls) == 10  # once before the capture, once within it
    assert notes[-1] == ("replay", 0) and notes.count("graph") == 1
    assert [replayed(step) for _ in range(3)] == [10] * 3 and len(calls) == 10
    assert notes[-3:] == [("replay", 0)] * 3
