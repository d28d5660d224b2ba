"""What tests of the plug-ins share: settings of the process that tasks change are as before after each of them."""

import pytest
import torch


@pytest.fixture(autouse=True)
def settings_of_the_process(monkeypatch):
    """A task sets the allocator, and how the processor takes numbers near zero: other tests shall not see it."""
    monkeypatch.setattr("fairseq_plugins.task.keep_freed_memory", lambda: False)
    yield
    torch.set_flush_denormal(False)
