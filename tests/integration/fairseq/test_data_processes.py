"""Processes that make batches for fairseq end with their epoch."""

import gc
import multiprocessing
import subprocess
import time
from argparse import Namespace

import numpy as np
import pytest

from fairseq_plugins.dataset import RowFairseqDataset
from fairseq_plugins.task import DictionaryTask
from tests.support.batches_by_workers import Numbers
from tests.support.fairseq_runs import ROOT, environment
from tests.support.prepared_python import interpreter
from tests.support.token_files import SPECIAL, numbered_documents, random_sizes, write_documents
from unified.data.vocabulary import Vocabulary
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.training.row_dataset import RowDataset


@pytest.mark.parametrize("packed", [True, False])
def test_rows_are_as_long_as_fairseq_is_told(tmp_path, packed):
    """By --max-tokens fairseq divides rows into batches; packed ones are filled up in theirs."""
    file = write_documents(tmp_path / "train", numbered_documents(random_sizes(np.random.default_rng(0), 9, 8, 12)))
    rows = RowDataset(DocumentTexts(file, SPECIAL), parse_objectives("bert"), 64, seed=1, packed=packed)
    dataset = RowFairseqDataset(rows, SPECIAL, shuffle=False)
    sizes = [dataset.collater([i])["batch"]["tokens"].shape[1] for i in range(len(dataset))]
    assert (
        [dataset.size(i) for i in range(len(dataset))] == [dataset.num_tokens(i) for i in range(len(dataset))] == sizes
    )
    assert (set(sizes) == {64}) == packed


def test_nothing_is_left_of_an_epoch():
    """Without the garbage collector, which finds a loader at any time, and then waits for its processes."""
    task = DictionaryTask(Namespace(update_freq=[1]), Vocabulary(["a"]))
    options = dict(max_sentences=2, num_workers=2, data_buffer_size=10)
    iterator = task.get_batch_iterator(Numbers(), **options)
    assert not multiprocessing.active_children()
    gc.disable()
    try:
        for _ in range(2):
            batches = iterator.next_epoch_itr(shuffle=False)
            assert [batch.tolist() for batch in batches] == [[0, 1], [2, 3], [4, 5]]
            ends = time.monotonic() + 4
            while multiprocessing.active_children() and time.monotonic() < ends:
                time.sleep(0.01)
            assert not multiprocessing.active_children()
    finally:
        gc.enable()


def test_batches_come_where_the_folder_of_temporary_files_has_a_long_name(tmp_path):
    """The sockets of the processes could not have its name before theirs; whoever waited for them waited forever."""
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    found = subprocess.run(
        [interpreter(), "-m", "tests.support.batches_by_workers", str(folder)],
        cwd=ROOT, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout == f"[[0, 1], [2, 3], [4, 5]] {folder}\n", found.stderr[-3000:]
