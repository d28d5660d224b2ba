"""Which checkpoint a fine-tuning scores: choices that nothing can make are refused."""

from __future__ import annotations

import pytest

from unified.cli.commands.finetuning.selection import check_selection
from unified.errors import UnifiedError
from unified.tasks.catalogue import task_named


def test_a_choice_on_a_test_set_and_options_that_write_no_checkpoint_to_score_are_refused():
    imdb = task_named("imdb")
    check_selection(imdb, "last", 1, "--disable-validation --lr 1")
    check_selection(task_named("rte"), "best", 2, "--no-last-checkpoints '--fp16'")
    for task, select, fairseq, says in (
        (imdb, "best", "", "--select best: the validation files of imdb are its test set, on which nothing may be "
         "chosen; --valid-share 0.1 chooses on a tenth of its training items instead"),
        *((task_named("rte"), select, f"--lr 1 {word}",
           f"--fairseq {word}: then there is no {select} checkpoint to score; leave it out")
          for select, word in (("best", "--disable-validation"), ("best", "--no-save"),
                               ("last", "--no-last-checkpoints"), ("last", "--no-save"))),
        (imdb, "last", "--a 'b", "--fairseq \"--a 'b\": a quotation mark is not closed"),
    ):  # fmt: skip
        with pytest.raises(UnifiedError) as refused:
            check_selection(task, select, None, fairseq)
        assert str(refused.value) == says


def test_several_validations_of_an_epoch_are_for_a_choice_among_checkpoints():
    task = task_named("rte")
    for validations in (None, 1):
        check_selection(task, "last", validations, "")
    with pytest.raises(UnifiedError) as refused:
        check_selection(task, "last", 2, "")
    assert str(refused.value) == (
        "--validations 2: the last checkpoint is scored, which no validation chooses; add --select best, or leave "
        "--validations out"
    )
