"""Development sets: made of training items where that is asked for, and never a test set."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.corpora import jsonl
from tests.support.refusals import refused
from unified.tasks.catalogue import TASKS, task_named
from unified.tasks.heads.items import TextItem
from unified.tasks.selection import require_development_set, with_valid_share
from unified.tasks.settings import Task
from unified.tasks.several import tasks_named
from unified.tasks.writing import WritingItem


def items(count: int) -> list[TextItem]:
    return [TextItem(f"i{i}", f"w{i}", None, "ab"[i % 2]) for i in range(count)]


def task(splits: dict, **more) -> Task:
    return Task(name="mine", head="classification", read=lambda source: splits, **more)


def test_nothing_is_chosen_on_a_test_set():
    says = (
        "--select best: the validation files of {} are its test set, on which nothing may be chosen; --valid-share 0.1 "
        "chooses on a tenth of its training items instead"
    )
    assert refused(require_development_set, TASKS["imdb"], "--select best") == says.format("imdb")
    assert refused(require_development_set, tasks_named("rte, imdb"), "--select best") == says.format("imdb")
    for allowed in (TASKS["rte"], tasks_named("rte, cola"), TASKS["gigaword"]):
        require_development_set(allowed, "--select best")


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_the_items_with_the_lowest_hashes_of_their_ids_validate(share):
    """Documented: by SHA-256 of the id, whatever the order of the items, which both parts keep."""
    given = items(40)
    order = sorted(given, key=lambda item: hashlib.sha256(item.id.encode()).digest())
    held = {item.id for item in order[: round(share * 40)]}
    found = with_valid_share(task({"train": given, "test": given[:2]}), share).read(Path("x"))
    assert found == {
        "train": [item for item in given if item.id not in held], "valid": [item for item in given if item.id in held],
        "test": given[:2],
    }  # fmt: skip
    turned = with_valid_share(task({"train": given[::-1]}), share).read(Path("x"))
    assert turned["valid"] == found["valid"][::-1]


def test_ids_that_are_numbers_are_hashed_as_texts():
    given = [replace(item, id=int(item.id[1:])) for item in items(20)]
    found = with_valid_share(task({"train": given}), 0.5).read(Path("x"))["valid"]
    texts = with_valid_share(task({"train": [replace(item, id=str(item.id)) for item in given]}), 0.5).read(Path("x"))
    assert [str(item.id) for item in found] == [item.id for item in texts["valid"]]


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
def test_a_share_lies_between_0_and_1(share):
    assert refused(with_valid_share, TASKS["rte"], share) == (f"--valid-share must be above 0 and below 1, got {share}")


def test_a_share_that_leaves_nothing_is_refused():
    few = task({"train": items(1234)})
    assert refused(with_valid_share(few, 0.0001).read, Path("x")) == (
        "--valid-share 0.0001: leaves nothing to train or to choose on, of 1,234 items"
    )
    assert refused(with_valid_share(task({"train": items(4)}), 0.9).read, Path("x")).startswith("--valid-share 0.9: ")
    found = with_valid_share(task({"train": items(4)}), 0.87).read(Path("x"))
    assert (len(found["train"]), len(found["valid"])) == (1, 3)


def test_a_folder_with_a_development_set_or_without_training_items_is_refused():
    both = {"train": items(4), "valid": items(2)}
    assert refused(with_valid_share(task(both), 0.5).read, Path("x")) == (
        "--valid-share 0.5: x has a development set for mine; leave it out"
    )
    assert refused(with_valid_share(task({"test": items(2)}), 0.25).read, Path("x")) == (
        "--valid-share 0.25: x holds no training items for mine"
    )


def test_a_test_set_that_validated_becomes_one():
    figures = {"valid": {"A": {"accuracy": 90.0}}, "other": {"B": {"accuracy": 80.0}}}
    own = task({"train": items(8), "valid": items(3)}, validates_on_test=True, published=figures)
    changed = with_valid_share(own, 0.25)
    assert not changed.validates_on_test and own.validates_on_test
    assert changed.published == {"test": figures["valid"], "other": figures["other"]}
    found = changed.read(Path("x"))
    assert {split: len(some) for split, some in found.items()} == {"train": 6, "valid": 2, "test": 3}
    assert found["test"] == items(3)
    require_development_set(changed, "--select best")
    # Another task keeps what is said of it.
    plain = task({"train": items(8)}, published=figures)
    assert with_valid_share(plain, 0.25).published == figures
    assert replace(with_valid_share(plain, 0.25), read=plain.read) == plain


def test_of_several_tasks_those_are_divided_that_validate_on_their_test_set():
    several = tasks_named("rte:2, imdb:3")
    changed = with_valid_share(several, 0.1)
    assert changed.members[0] == several.members[0]
    assert [member.weight for member in changed.members] == [2, 3]
    assert [member.task.validates_on_test for member in changed.members] == [False, False]
    assert changed.members[1].task.published.keys() == {"test"}
    assert refused(with_valid_share, tasks_named("rte, cola"), 0.1) == (
        "--valid-share 0.1: rte, cola has a development set of its own; leave it out"
    )


def test_pairs_of_ones_own_are_divided_and_those_of_a_data_set_are_not(tmp_path):
    rows = jsonl(tmp_path / "a.jsonl", [{"source": f"w{i}", "target": "x"} for i in range(10)])
    found = with_valid_share(task_named("texts"), 0.2).read(Path(rows), None)
    assert {split: len(some) for split, some in found.items()} == {"train": 8, "valid": 2}
    assert all(isinstance(item, WritingItem) for item in found["valid"])
    assert refused(with_valid_share, TASKS["gigaword"], 0.2) == (
        "--valid-share 0.2: gigaword has a development set of its own; leave it out"
    )
