"""Prints batches that two processes make for fairseq, with temporary files in the folder that is named."""

import sys
import tempfile
from argparse import Namespace

import torch
from fairseq.data import FairseqDataset

from fairseq_plugins.task import DictionaryTask
from unified.data.vocabulary import Vocabulary


class Numbers(FairseqDataset):
    """The numbers from 0 to 5, in order."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return index

    def ordered_indices(self):
        return range(6)

    def num_tokens(self, index):
        return 1

    def collater(self, samples):
        return torch.tensor(samples)


if __name__ == "__main__":
    tempfile.tempdir = sys.argv[1]
    task = DictionaryTask(Namespace(update_freq=[1]), Vocabulary(["a"]))
    iterator = task.get_batch_iterator(Numbers(), max_sentences=2, num_workers=2)
    iterator.timeout = 60  # a process that waits forever would end no test
    print([batch.tolist() for batch in iterator.next_epoch_itr(shuffle=False)], tempfile.gettempdir())
