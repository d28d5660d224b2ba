"""The memory of parallel streams: what a batch goes on from, and what a checkpoint holds of all processes."""

import pytest
import torch

from fairseq_plugins import memory
from fairseq_plugins.memory import StreamMemory

#: Four streams of two attentions, three positions of width two; numbers say which stream it is.
STREAMS = [torch.arange(4.0).view(4, 1, 1).expand(4, 3, 2) + 10 * layer for layer in range(2)]


def sample(rows: int, begins: bool = False) -> dict:
    return {"batch": {"tokens": torch.zeros(rows, 5)}, "starts_streams": begins, "other": 1}


@pytest.fixture
def process(monkeypatch):
    """Sets the number of processes and which one this is."""

    def become(world: int, rank: int = 0):
        monkeypatch.setattr(memory.distributed_utils, "get_data_parallel_world_size", lambda: world)
        monkeypatch.setattr(memory.distributed_utils, "get_data_parallel_rank", lambda: rank)
        monkeypatch.setattr(memory.distributed_utils, "get_data_parallel_group", lambda: "group")
        monkeypatch.setattr(memory.distributed_utils, "get_world_size", lambda group: world)

    become(1)
    return become


def loaded(*states) -> StreamMemory:
    own = StreamMemory(3, 2)
    own.load([*states])
    return own


def numbers(own: StreamMemory) -> list[list[float]]:
    return [states[:, 0, 0].tolist() for states in own.memory.states]


def test_a_batch_goes_on_from_the_memory_and_the_first_of_an_epoch_has_none(process):
    own, like = StreamMemory(3, 2), torch.zeros(1, dtype=torch.float64)
    assert (own.memory.length, own.memory.taken) == (3, 2)
    own.memory.states = [*STREAMS]
    found = own.attach(sample(4), like)
    assert found["memory"] is own.memory and found["other"] == 1 and found["batch"]["tokens"].shape == (4, 5)
    assert all(states.dtype == torch.float64 for states in own.memory.states) and numbers(own)[0] == [0, 1, 2, 3]
    own.attach(sample(4, begins=True), like)
    assert own.memory.states == []


@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_takes_its_part_of_all_streams(process, rank):
    process(2, rank)
    own = loaded([one[:1] for one in STREAMS], [one[1:] for one in STREAMS], [])
    own.attach(sample(2), torch.zeros(1))
    assert numbers(own) == [[2 * rank, 2 * rank + 1], [10 + 2 * rank, 11 + 2 * rank]]
    own.memory.states = [states + 100 for states in own.memory.states]
    own.attach(sample(2), torch.zeros(1))
    assert numbers(own)[0] == [100 + 2 * rank, 101 + 2 * rank]  # a checkpoint is read from once


@pytest.mark.parametrize("rank", [0, 1])
def test_another_number_of_streams_begins_without_memory_which_the_first_process_says(process, rank, caplog):
    process(2, rank)
    own = loaded(STREAMS)
    own.attach(sample(3), torch.zeros(1))
    assert own.memory.states == []
    says = [
        "the checkpoint's memory is that of 4 streams, this run has 6: memory starts empty, streams are cut anew and "
        "go on behind as much text"
    ]
    assert caplog.messages == (says if rank == 0 else [])


def test_an_empty_memory_is_one_too(process):
    own = loaded([], [])
    own.attach(sample(3), torch.zeros(1))
    assert own.memory.states == []


def test_one_process_keeps_its_own(process):
    own = StreamMemory(3, 2)
    own.memory.states = [*STREAMS]
    assert [[one[:, 0, 0].tolist() for one in part] for part in own.state()] == [[[0, 1, 2, 3], [10, 11, 12, 13]]]
    own.gather()
    own.memory.states = []
    assert len(own.state()) == 1 and torch.equal(own.state()[0][1], STREAMS[1])


def test_several_processes_collect_theirs(process, monkeypatch):
    process(2, 1)

    def all_gather(found, value, group):
        assert group == "group" and len(found) == 2
        found[:] = ["of the first", value]

    monkeypatch.setattr("torch.distributed.all_gather_object", all_gather)
    own = StreamMemory(3, 2)
    own.memory.states = [*STREAMS]
    own.gather()
    assert own.state()[0] == "of the first" and torch.equal(own.state()[1][0], STREAMS[0])


def test_a_checkpoint_that_no_batch_has_followed_is_kept_as_it_is(process):
    own = loaded([one[:1] for one in STREAMS], [one[1:] for one in STREAMS])
    own.gather()
    assert [torch.equal(found, whole) for found, whole in zip(own.state()[0], STREAMS, strict=True)] == [True, True]


@pytest.mark.parametrize("attentions", [1, 2])
def test_a_process_alone_takes_all_streams_and_does_not_ask_which_one_it_is(process, monkeypatch, attentions):
    monkeypatch.setattr(memory.distributed_utils, "get_data_parallel_rank", lambda: pytest.fail("it is the only one"))
    own = loaded(STREAMS[:attentions])
    own.attach(sample(4), torch.zeros(1))
    assert numbers(own) == [[0, 1, 2, 3], [10, 11, 12, 13]][:attentions]


def test_an_update_that_is_computed_again_has_the_memory_of_the_first_time(process):
    """With --amp the memory held the tokens that were to be predicted."""
    own, like = loaded(STREAMS[:1]), torch.zeros(1)

    def update(again: bool = False, micro_batches: int = 2, begins: bool = False) -> list[list[float]]:
        """Returns the memory of the first stream before each micro-batch."""
        own.begin_update(again)
        found = []
        for i in range(micro_batches):
            own.attach(sample(4, begins and i == 0), like)
            found.append(own.memory.states[0][0, :, 0].tolist() if own.memory.states else [])
            own.memory.update([torch.full((4, 5, 2), 5.0 + i)])
        return found

    first = [[0, 0, 0], [0, 5, 5]]
    assert update() == first == update(again=True) == update(again=True)
    second = [[5, 6, 6], [6, 5, 5]]
    assert update() == second == update(again=True)
    assert update(begins=True) == [[], [5, 5]] == update(again=True, begins=True)
