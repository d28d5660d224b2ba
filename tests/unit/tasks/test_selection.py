"""Development sets: made of training items where that is asked for, and never a test set."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.corpora import jsonl
from tests.support.refusals import refused
from unified.files.fields import FieldNames
from unified.tasks.catalogue import TASKS, task_named
from unified.tasks.datasets.own_files import OwnFiles
from unified.tasks.heads import TASK_HEADS
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.selection import held_out, require_development_set, with_valid_share
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


@pytest.mark.parametrize("seed", range(40))
def test_a_share_is_of_whole_texts_and_as_near_to_what_is_asked_as_they_allow(seed):
    rng = np.random.default_rng(seed)
    count, most = int(rng.integers(2, 200)), int(rng.integers(1, 30))
    texts = [None if rng.random() < 0.2 else f"t{rng.integers(most)}" for _ in range(count)]
    ids = [f"i{number}" for number in rng.permutation(count)]
    share = float(rng.choice([0.05, 0.1, 0.3, 0.5, 0.9]))
    held, wanted = held_out(ids, texts, share), round(share * count)
    if wanted in (0, count) or len({text or number for number, text in enumerate(texts)}) == 1:
        assert len(held) in (0, count)
        return
    others = set(range(count)) - held
    assert held and others and not {texts[i] for i in held} & {texts[i] for i in others} - {None}
    turned = rng.permutation(count).tolist()
    again = held_out([ids[i] for i in turned], [texts[i] for i in turned], share)
    assert {ids[turned[i]] for i in again} == {ids[i] for i in held}
    of_held, of_others = (Counter(texts[i] or f"item {i}" for i in some).values() for some in (held, others))
    missing = wanted - len(held)
    if missing > 0:  # no other text comes nearer, unless it is the last one, which is learnt
        assert len(of_others) == 1 or all(abs(missing - size) >= missing for size in of_others)
    if missing < 0:  # one text comes nearer than all without it, or is alone; none of the others is smaller
        assert any((size == len(held) or 0 < missing + size > -missing) and size <= min(of_others) for size in of_held)


def test_texts_are_in_the_order_of_the_hash_of_their_first_id():
    """Those that have no room in what is left of the share are passed over."""
    texts = {"a": 3, "b": 5, "c": 2, "d": 4, "e": 1, "f": 5}
    rows = [(f"{text}{i}", text) for text, size in texts.items() for i in range(size)]
    order = sorted(texts, key=lambda text: hashlib.sha256(f"{text}0".encode()).digest())
    for wanted in range(1, 20):
        expected, left = [], wanted
        for text in order:
            if texts[text] <= left:
                expected.append(text)
                left -= texts[text]
        held = held_out(*map(list, zip(*rows, strict=True)), wanted / 20)
        more = {rows[i][1] for i in held} - set(expected)
        assert set(expected) <= {rows[i][1] for i in held} and (not more or left > 0)
        assert more or len(held) == wanted - left


#: Rows of each form of fine-tuning by number, two about each text.
SHARING = {
    "span": lambda i: {"question": f"w{i}", "context": f"c{i // 2}", "answers": "c"},
    "choice": lambda i: {"question": f"w{i}", "context": f"c{i // 2}", "choices": ["a", "b"], "label": 0},
    "tagging": lambda i: {"words": [f"w{i}"], "tags": ["x"], "document": f"d{i // 2}"},
    "classification": lambda i: {"text": "w", "second": f"s{i // 2}", "label": f"{i % 2}"},
    "regression": lambda i: {"text": f"w{i // 2}", "label": i},
    "relation": lambda i: {"words": [f"w{i // 2}"], "label": f"{i % 2}", "entities": [{"start": 0, "stop": 1}] * 2},
    "texts": lambda i: {"source": ["a", f"w{i // 2}"], "target": f"t{i}"},
}


@pytest.mark.parametrize("name", SHARING)
def test_items_about_one_text_are_all_learnt_or_all_chosen_on(tmp_path, name):
    own = {name for name, head in TASK_HEADS.items() if head.__module__.startswith("unified.")}
    assert set(SHARING) == {*own, "texts"} - {"coreference"}  # whose items are documents
    rows = jsonl(tmp_path / "own.jsonl", [{"id": str(i), **SHARING[name](i)} for i in range(16)])
    reads = (Path(rows), None) if name == "texts" else (Path(rows),)
    found = with_valid_share(task_named(name), 0.25).read(*reads)
    sides = [{int(item.id) // 2 for item in found[split]} for split in ("train", "valid")]
    assert not sides[0] & sides[1] and [len(some) for some in found.values()] == [12, 4]
    same = jsonl(tmp_path / "same.jsonl", [{"id": str(i), **SHARING[name](i % 2)} for i in range(8)])
    assert refused(with_valid_share(task_named(name), 0.25).read, Path(same), *reads[1:]) == (
        "--valid-share 0.25: leaves nothing to train or to choose on, of 8 items, which are all of one text or "
        "document; --valid FILE names items of others"
    )


def test_sentences_of_a_single_document_are_named_as_such(tmp_path):
    path = tmp_path / "names.conll"
    path.write_text("-DOCSTART- O\n\n" + "".join(f"w{i} O\n\n" for i in range(20)), encoding="utf-8")
    assert refused(with_valid_share(task_named("tagging"), 0.1).read, path) == (
        "--valid-share 0.1: leaves nothing to train or to choose on, of 20 items, which are all of one text or "
        "document; --valid FILE names items of others"
    )


def test_words_without_a_document_and_texts_with_pooled_references():
    """A sentence is a text by itself; texts that are judged by the same references are one."""
    head = TASK_HEADS["tagging"]
    assert head.shared_text(WordsItem("1", ("a", "b"))) == head.shared_text(WordsItem("2", ("a", "b")))
    assert head.shared_text(WordsItem("1", ("a", "b"))) != head.shared_text(WordsItem("1", ("a",)))
    assert TASK_HEADS["coreference"].shared_text(None) is None
    pooled = [WritingItem(str(i), f"w{i}", "t", reference_group=f"g{i // 4}") for i in range(12)]
    read = OwnFiles(lambda fields, number: None, FieldNames())
    own = replace(task_named("texts"), read=Pooled(**vars(read), splits={"train": pooled}))
    found = with_valid_share(own, 0.3).read(Path("x"), None)
    assert len({item.reference_group for item in found["valid"]}) == 1 and len(found["valid"]) == 4


@dataclass(frozen=True)
class Pooled(OwnFiles):
    """Files that are read already."""

    splits: Mapping[str, Sequence[WritingItem]] = field(default_factory=dict)

    def __call__(self, source, budget=None):
        return dict(self.splits)


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
