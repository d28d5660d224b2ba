"""Folders of the tasks that write summaries: the names of their files, whose rows they hold, and what is learnt."""

import pytest

from tests.support.corpora import jsonl
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.summarization import read_summaries
from unified.tasks.writing import TokenBudget

BUDGET = TokenBudget(lambda texts: [len(text.split()) for text in texts], 20)


@pytest.mark.parametrize("name", ["valid", "validation", "val", "dev"])
def test_a_split_for_validation_has_one_of_these_names(tmp_path, name):
    for file, text in (("train", "A b."), (name, "C d."), ("test", "E f.")):
        jsonl(tmp_path / f"{file}.jsonl", [{"document": text, "summary": "x"}])
    splits = read_summaries(tmp_path, BUDGET, "xsum")
    assert {split: item.source for split, (item,) in splits.items()} == {
        "train": "A b.", "valid": "C d.", "test": "E f.",
    }  # fmt: skip


def test_stories_are_read_with_the_sentences_that_are_extracted_and_other_texts_without(tmp_path):
    for file in ("train", "valid"):
        jsonl(tmp_path / f"{file}.jsonl", [{"article": "No. The cat sat down.", "highlights": "The cat sat.\nIt did."}])
    (item,) = task_named("cnn_dailymail").read(tmp_path, BUDGET)["valid"]
    assert (item.source, item.target) == ("No. The cat sat down.", "The cat sat. | It did.")
    assert (item.sentences, item.oracle) == ((0, 4), (1,))
    (item,) = read_summaries(tmp_path, BUDGET, "cnn_dailymail")["train"]
    assert (item.target, item.sentences, item.oracle) == ("The cat sat. | It did.", None, None)
