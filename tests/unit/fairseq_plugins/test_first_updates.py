"""The first updates of a process are logged one by one, where the interval of the log would leave them out."""

import json
from types import SimpleNamespace

from fairseq_plugins import first_updates


class Trainer:
    """Has made some updates before this process."""

    def __init__(self, done=0, log_format="json", interval=50):
        self.done = done
        self.cfg = SimpleNamespace(common=SimpleNamespace(log_format=log_format, log_interval=interval))

    def get_num_updates(self):
        return self.done


def logged(caplog, trainer, updates=60, overflow=()):
    """Lines of the log of some updates, and what the trainer gets back."""
    caplog.clear()

    def step(trainer, *arguments, **keywords):
        assert arguments == ("samples",) and keywords == {"raise_oom": True}
        trainer.done += 1
        return None if trainer.done in overflow else {"loss": 2.5, "a_loss": None, "b_loss": 1, "ppl": 3.0}

    wrapped = first_updates.showing_first_updates(step)
    with caplog.at_level("INFO"):
        found = [wrapped(trainer, "samples", raise_oom=True) for _ in range(updates)]
    assert [one is None for one in found] == [
        done in overflow for done in range(trainer.done - updates + 1, trainer.done + 1)
    ]
    assert all(record.name == "first_updates" for record in caplog.records)
    return [json.loads(message) for message in caplog.messages]


def test_a_few_updates_are_logged_with_their_losses(caplog):
    lines = logged(caplog, Trainer())
    assert [line["num_updates"] for line in lines] == [1, 2, 5, 10, 20]
    assert all(line == {"num_updates": line["num_updates"], "loss": 2.5, "b_loss": 1.0} for line in lines)


def test_those_that_are_logged_anyway_are_left_out(caplog):
    assert [line["num_updates"] for line in logged(caplog, Trainer(interval=5))] == [1, 2]
    assert logged(caplog, Trainer(interval=1)) == []


def test_the_updates_of_this_process_are_counted(caplog):
    assert [line["num_updates"] for line in logged(caplog, Trainer(done=100))] == [101, 102, 105, 110, 120]


def test_an_update_that_overflowed_does_not_count(caplog):
    assert [line["num_updates"] for line in logged(caplog, Trainer(), overflow=(1, 3))] == [2, 4, 7, 12, 22]


def test_other_logs_get_no_lines(caplog):
    assert logged(caplog, Trainer(log_format="simple")) == []
