"""When steps are captured and replayed, with graphs that run their step again in place of CUDA's."""

import pytest
import torch

from tests.support.tiny_models import decoder, sources, vocabulary
from unified.generation import CachedDecoder, GenerationConfig, fixed, generate
from unified.generation.graphs import GraphPool, Replayed


class Graph:
    """A step that writes into one and the same tensor."""

    def __init__(self, step):
        self.step, self.output = step, step()

    def replay(self):
        self.output.copy_(self.step())


class Pool(GraphPool):
    """A pool of such graphs on any device."""

    def __init__(self, device):
        self.captures, self.graphs = True, []

    def capture(self, step):
        graph = Graph(step)
        graph.output.fill_(torch.nan)  # capturing computes nothing
        self.graphs.append(graph)
        return graph, graph.output


def test_a_step_is_captured_when_that_has_paid_and_then_replayed():
    count = torch.zeros(1)

    def step():
        return count + 1

    pool = Pool(torch.device("cpu"))
    replayed = Replayed(pool)
    found = []
    for number in range(12):
        count.fill_(number)
        found.append(replayed(step))
        assert float(found[-1]) == number + 1
    assert len(pool.graphs) == 1
    assert len({id(one) for one in found[8:]}) == 1 and len({id(one) for one in found[:9]}) == 9


def test_steps_run_as_they_are_where_there_are_no_graphs():
    replayed = Replayed(GraphPool(torch.device("cpu")))
    found = [replayed(lambda: torch.zeros(1)) for _ in range(12)]
    assert len({id(one) for one in found}) == 12 and replayed.captured is None


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("scheme", ["cloze", "next"])
def test_a_search_reads_no_scores_of_an_earlier_step(monkeypatch, scheme, beam):
    """Nothing that changes from step to step is outside the tensors that a graph reads."""

    class Fixed(CachedDecoder):
        def begin(self, source, beam, most=None):
            return self.begin_fixed(source, beam, most)

    monkeypatch.setattr(fixed, "GraphPool", Pool)
    growing = decoder(scheme)
    special = vocabulary().special
    growing.model.heads["token"].bias.data[special.separator] += 4.0
    graphed = Fixed(growing.model, special, growing.scheme)
    config = GenerationConfig(beam=beam, nbest=beam, max_length=30, no_repeat_ngram_size=2)
    for seed in range(4):
        rows = sources([5, 1, 9, 3, 7], seed=seed)
        for found, expected in zip(generate(graphed, rows, config), generate(growing, rows, config), strict=True):
            assert [h.tokens.tolist() for h in found] == [h.tokens.tolist() for h in expected]
            for one, other in zip(found, expected, strict=True):
                torch.testing.assert_close(one.log_probs, other.log_probs, atol=1e-5, rtol=1e-5)
    assert any(step.captured for step in graphed.workspace.steps.values())
