"""What tests of loaded models share: a checkpoint in a folder."""

from pathlib import Path

import pytest

from tests.support.checkpoint_samples import checkpoint, data_folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A checkpoint in a folder with dictionary and tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    checkpoint(folder / "checkpoint_last.pt", data_folder(folder / "data", pairs=False), str(folder / "data"))
    return folder
