"""Relations: entities between markers or replaced by types, what is read, formats of TACRED and SemEval-2010."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.support import understanding_runs as runs
from tests.support.task_folders import WORDS
from tests.support.trained_tokenizers import byte_level_codec
from tests.support.understanding_runs import UNUSED
from unified.data.collate import collate
from unified.errors import UnifiedError
from unified.tasks.datasets.semeval2010 import read_semeval2010
from unified.tasks.datasets.tacred import read_tacred
from unified.tasks.heads import Relation, parse_head
from unified.tasks.heads.entities import Entity, marked, masked, role_types
from unified.tasks.heads.items import write_items
from unified.tasks.heads.relation import RelationItem

TYPES = ("SUBJ=P", "OBJ=P", "SUBJ=Q", "OBJ=Q")


def random_item(i, rng, longest=12, labels=("a", "b", "no_relation")):
    words = tuple(rng.choice(WORDS, rng.integers(2, longest)).tolist())
    cuts = np.sort(rng.choice(len(words) + 1, 3, replace=False)) if len(words) > 2 else np.array([0, 1, 2])
    pair = [Entity(int(cuts[0]), int(cuts[1]), str(rng.choice(["P", "Q"]))), Entity(int(cuts[1]), int(cuts[2]), "P")]
    if rng.integers(2):
        pair.reverse()
    return RelationItem(str(i), words, tuple(pair), str(rng.choice(labels)))


def brute_markers(item):
    """Symbols with markers, by their definition on strings."""
    a, b = item.entities
    words = [[word] for word in item.words]
    for entity, (left, right) in ((b, UNUSED[2:4]), (a, UNUSED[0:2])):
        words[entity.start].insert(0, left)
        words[entity.stop - 1].append(right)
    return [symbol for word in words for symbol in word]


def test_items_come_back_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    items = [random_item(i, rng) for i in range(20)]
    items.append(RelationItem("20", ("a", "b"), (Entity(0, 1), Entity(1, 2)), "a"))
    write_items(tmp_path / "items.jsonl", items)
    assert Relation.read(tmp_path / "items.jsonl") == items


def test_bad_items_are_reported(tmp_path):
    pair = [{"start": 0, "stop": 1}, {"start": 1, "stop": 2, "type": "P"}]
    good = {"words": ["a", "b"], "entities": pair, "label": "x"}
    bad = [good | {"words": []}, good | {"entities": [{}]}, good | {"entities": [{"start": 0, "stop": 3}] * 2},
           good | {"entities": [{"start": 1, "stop": 1}] * 2},
           good | {"entities": [{"start": 0, "stop": 1, "type": 3}] * 2},
           good | {"label": 3.5}, {name: value for name, value in good.items() if name != "label"}]  # fmt: skip
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in [good, *bad]))
    with pytest.raises(UnifiedError) as caught:
        Relation.read(path)
    for says in ("line 2: 'words'", "line 3: 'entities' must be a list of two",
                 "line 4: an entity must have 0 <= start < stop <= 2, got 0 and 3", "line 5: an entity must have",
                 "line 6: the 'type'", "line 7: 'label' must be a name",
                 "line 8: no field 'label'; its fields: 'words', 'entities'"):  # fmt: skip
        assert says in caught.value.details


def test_markers_stand_around_the_entities():
    rng, codec = np.random.default_rng(1), runs.codec(64, *UNUSED)
    items = [random_item(i, rng) for i in range(100)]
    examples, cut, turned = marked([item.words for item in items], [item.entities for item in items], codec)
    assert not any(cut)
    for item, example, second_first in zip(items, examples, turned, strict=True):
        symbols = runs.symbols(example, codec)
        assert symbols == ["<s>", *brute_markers(item), "</s>"]
        read = [symbols[index] for index in example.targets["task"].output_indices[:, 0]]
        assert read == (["[unused3]", "[unused1]"] if second_first[0] else ["[unused1]", "[unused3]"])
        assert (item.entities[1].start < item.entities[0].start) == bool(second_first[0])
    last, *_ = marked([items[0].words], [items[0].entities], runs.codec(64, *UNUSED, cls_last=True))
    read = [runs.symbols(last[0], codec)[index] for index in last[0].targets["task"].output_indices[:, 0]]
    assert sorted(read) == ["[unused1]", "[unused3]"]


def test_entities_may_overlap():
    pair = (Entity(0, 3), Entity(1, 3))
    codec = runs.codec(64, *UNUSED)
    (example,), *_ = marked([("w0", "w1", "w2")], [pair], codec)
    inside = ["[unused1]", "w0", "[unused3]", "w1", "w2", "[unused4]", "[unused2]"]
    assert runs.symbols(example, codec) == ["<s>", *inside, "</s>"]
    (example,), *_ = marked([("w0", "w1")], [(Entity(0, 2), Entity(0, 1))], codec)
    inside = ["[unused1]", "[unused3]", "w0", "[unused4]", "w1", "[unused2]"]
    assert runs.symbols(example, codec) == ["<s>", *inside, "</s>"]
    pair = (Entity(0, 3, "P"), Entity(1, 3, "Q"))
    (example,), _ = masked([("w0", "w1", "w2", "w3")], [pair], TYPES, codec)
    assert runs.symbols(example, codec) == ["<s>", "[unused1]", "[unused4]", "w3", "</s>"]


def test_types_stand_for_the_entities():
    rng, codec = np.random.default_rng(2), runs.codec(64, *reversed(UNUSED))
    items = [random_item(i, rng) for i in range(100)]
    examples, cut = masked([item.words for item in items], [item.entities for item in items], TYPES, codec)
    assert not any(cut)
    for item, example in zip(items, examples, strict=True):
        words = list(item.words)
        for role, entity in sorted(zip(("SUBJ", "OBJ"), item.entities, strict=True), key=lambda one: -one[1].start):
            # The symbols go by their numbers, wherever the dictionary has them.
            words[entity.start : entity.stop] = [UNUSED[TYPES.index(f"{role}={entity.type}")]]
        assert runs.symbols(example, codec) == ["<s>", *words, "</s>"] and example.targets["task"].output_indices[
            :, 0
        ].tolist() == [0]
    assert role_types([item.entities for item in items[:1]])[0].startswith("SUBJ=")
    seen = [
        f"{role}={entity.type}" for item in items for role, entity in zip(("SUBJ", "OBJ"), item.entities, strict=True)
    ]
    assert role_types([item.entities for item in items]) == tuple(dict.fromkeys(seen))


def test_words_of_byte_level_tokenizers_begin_with_their_mark():
    codec = byte_level_codec(30, special=UNUSED)
    words, pair = ["Rome", "is", "old", "and", "Rome", "lives"], (Entity(0, 1, "P"), Entity(4, 5, "P"))
    first = [codec.vocabulary.symbols[i] for i in codec.encode(["Rome"])[0]]  # the text begins with it
    (example,), *_ = marked([words], [pair], codec)
    shown = [symbol.replace("\u0120", "_") for symbol in runs.symbols(example, codec)]
    assert shown == ["<s>", "[unused1]", *first, "[unused2]", "_is", "_old", "_and", "[unused3]", "_Rome", "[unused4]",
                     "_lives", "</s>"]  # fmt: skip
    (example,), _ = masked([words], [pair], TYPES, codec)
    shown = [symbol.replace("\u0120", "_") for symbol in runs.symbols(example, codec)]
    assert shown == ["<s>", "[unused1]", "_is", "_old", "_and", "[unused2]", "_lives", "</s>"]


def test_long_sentences_keep_what_is_near_the_entities():
    words = tuple(f"w{i}" for i in range(20))
    pair, codec = (Entity(15, 16), Entity(4, 6)), runs.codec(14, *UNUSED)
    (example,), cut, (turned,) = marked([words], [pair], codec)
    near = ["w3", "[unused3]", "w4", "w5", "[unused4]", "w6", "w14", "[unused1]", "w15", "[unused2]", "w16"]
    found = runs.symbols(example, codec)
    assert cut == [20 + 4 - 12] and turned[0] == 1 and len(found) == 14
    assert [symbol for symbol in found[1:-1] if symbol in near] == near
    assert [found[index] for index in example.targets["task"].output_indices[:, 0]] == ["[unused3]", "[unused1]"]
    typed = tuple(Entity(entity.start, entity.stop, "P") for entity in pair)
    (example,), cut = masked([words], [typed], TYPES, codec)
    assert (
        cut == [20 - 3 + 2 - 12]
        and {"[unused1]", "[unused2]"} < set(runs.symbols(example, codec))
        and len(example.tokens) == 14
    )


def test_what_is_read_of_two_markers():
    rng, codec = np.random.default_rng(3), runs.codec(64, *UNUSED)
    items = [random_item(i, rng) for i in range(9)]
    task = Relation(("a", "b", "no_relation"))
    encoded = task.encode(items, codec)
    model = runs.small_model(task, codec)
    order, scores, _ = runs.run_batch(model, encoded, range(9), packed=True, length=64)
    head = model.heads["task"].output
    for row, member in enumerate(order):
        example = encoded.examples[member]
        batch = collate([[example]], None, ("task",), 1)
        states = model.transformer(batch.tokens, batch.positions, batch.token_types, batch.mask)[0]
        symbols = runs.symbols(example, codec)
        both = torch.cat([states[symbols.index("[unused1]")], states[symbols.index("[unused3]")]])
        torch.testing.assert_close(scores[row], head.weight @ both + head.bias, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("design", ["markers", "types"])
def test_predictions_do_not_depend_on_the_batch(design):
    rng, codec = np.random.default_rng(4), runs.codec(32, *UNUSED)
    items = [random_item(i, rng) for i in range(24)]
    task = Relation.of(items, design=design)
    runs.assert_predictions_do_not_depend_on_the_batch(
        task, runs.small_model(task, codec), items, task.encode(items, codec)
    )


def test_scores_follow_the_rules():
    items = [RelationItem(str(i), ("a", "b"), (Entity(0, 1), Entity(1, 2)), label) for i, label in enumerate("abn")]
    found = [{"label": label} for label in "aan"]
    scores = Relation(("a", "b", "n"), negative="n").score(items, found)
    assert (scores["precision"], scores["recall"], scores["f1"]) == (50, 50, 50)
    scores = Relation(("a", "b", "n"), negative=None).score(items, found)
    assert (scores["precision"], scores["recall"], scores["f1"]) == pytest.approx((200 / 3,) * 3)
    labels = ("A-B(e1,e2)", "A-B(e2,e1)", "Other")
    items = [RelationItem(str(i), ("a", "b"), (Entity(0, 1), Entity(1, 2)), label) for i, label in enumerate(labels)]
    scores = Relation(labels, rules="semeval2010").score(items, [{"label": labels[0]}] * 3)
    assert scores["macro_f1"] == pytest.approx(100 * 2 / 5)
    assert set(Relation(labels, rules="semeval2010").measures) <= set(scores)


def test_refusals():
    with pytest.raises(UnifiedError, match="no label is 'no_relation', which the rules of TACRED leave out"):
        Relation(("a", "b"))
    with pytest.raises(UnifiedError, match="design must be one of markers, types, got 'mark'"):
        Relation(("a", "no_relation"), design="mark")
    items = [RelationItem("1", ("w1", "w2"), (Entity(0, 1, "P"), Entity(1, 2, "Q")), "a")]
    with pytest.raises(
        UnifiedError, match=r"has 0 symbols \[unusedK\], and 4 are needed for the markers of two .*finetune` adds them"
    ):
        Relation(("a", "no_relation")).encode(items, runs.codec(32))
    with pytest.raises(UnifiedError, match=r"has 1 symbol \[unusedK\], and 2 are needed for the types"):
        Relation(("a", "no_relation"), ("SUBJ=P", "OBJ=Q"), "types").encode(items, runs.codec(32, "[unused9]"))
    with pytest.raises(UnifiedError, match="types that the training items lack: OBJ=Q$"):
        Relation(("a", "no_relation"), ("SUBJ=P", "OBJ=P"), "types").encode(items, runs.codec(32, *UNUSED))
    with pytest.raises(UnifiedError, match="needs the types of all entities; use design='markers'"):
        Relation.of([RelationItem("1", ("a", "b"), (Entity(0, 1), Entity(1, 2)), "a")], design="types")
    with pytest.raises(UnifiedError, match="types are those of entities with design='types', got .'SUBJ=P'"):
        parse_head("relation(types=['SUBJ=P'])").for_items([*items, replace(items[0], label="no_relation")])
    entry = parse_head("relation(design='types',labels=['a','no_relation'],types=['SUBJ=P','OBJ=Q'])")
    assert entry.for_items([]).types == ("SUBJ=P", "OBJ=Q")


# Formats

TACRED = {"id": "e7", "relation": "per:title", "token": ["-LRB-", "He", "said", "-RRB-", "Tom", "Thabane"],
          "subj_start": 4, "subj_end": 5, "obj_start": 1, "obj_end": 1, "subj_type": "PERSON", "obj_type": "TITLE",
          "stanford_pos": ["x"] * 6}  # fmt: skip


def test_tacred(tmp_path):
    path = tmp_path / "train.json"
    path.write_text(json.dumps([TACRED]))
    words = ("(", "He", "said", ")", "Tom", "Thabane")
    pair = (Entity(4, 6, "PERSON"), Entity(1, 2, "TITLE"))
    assert read_tacred(path) == [RelationItem("e7", words, pair, "per:title")]
    bad = [TACRED | {"subj_end": 6}, TACRED | {"token": []}, TACRED | {"relation": 3}, TACRED | {"obj_type": ""}, 3]
    path.write_text(json.dumps(bad))
    with pytest.raises(UnifiedError) as caught:
        read_tacred(path)
    for says in ("sentence 1: subj_start 4 and subj_end 6 are not among its 6 words", "sentence 2: 'token' must",
                 "sentence 3: no text 'relation'", "sentence 4: 'obj_type' is empty", "member 5"):  # fmt: skip
        assert says in caught.value.details
    path.write_text(json.dumps([TACRED, TACRED | {"id": "e8"}, TACRED]))
    with pytest.raises(UnifiedError, match="train.json: sentence 3: the id 'e7' is that of sentence 1, too"):
        read_tacred(path)


SEMEVAL = (
    '7\t"The <e1>sudden burst</e1>, caused by <e2>water hammer</e2>."\r\nCause-Effect(e2,e1)\r\nComment: 8\tno\r\n\r\n'
    '8\t"<e1>One</e1> "of" <e2>two</e2>"\r\nOther\r\nComment:\r\n\r\n'
)


def numbered_semeval(count: int) -> str:
    """So many times the two sentences of SEMEVAL, numbered from 1."""
    pairs = ((f"{2 * i + 1}\t", f"{2 * i + 2}\t") for i in range(count))
    return "".join(SEMEVAL.replace("7\t", first, 1).replace('8\t"', f'{second}"', 1) for first, second in pairs)


def test_semeval2010(tmp_path):
    path = tmp_path / "TRAIN_FILE.TXT"
    path.write_bytes(SEMEVAL.encode())
    words = ("The", "sudden", "burst", ",", "caused", "by", "water", "hammer", ".")
    assert read_semeval2010(path) == [
        RelationItem("7", words, (Entity(1, 3), Entity(6, 8)), "Cause-Effect(e2,e1)"),
        RelationItem("8", ("One", '"of"', "two"), (Entity(0, 1), Entity(2, 3)), "Other"),
    ]
    path.write_text(SEMEVAL + '9\t"<e1>One</e1> and two"\nOther\n10\t"<e1>a</e1> <e2>b</e2>"\nEntity-Origin\n')
    with pytest.raises(UnifiedError, match="line 9: expected number.*; line 11: a relation such as"):
        read_semeval2010(path)
    path.write_text(SEMEVAL + SEMEVAL.partition('8\t"')[0])
    with pytest.raises(UnifiedError, match="TRAIN_FILE.TXT: line 9: the id '7' is that of line 1, too"):
        read_semeval2010(path)


def test_real_file_has_its_rows(unified_data):
    path = unified_data / "semeval2010_task8" / "TRAIN_FILE.TXT.xz"
    items = read_semeval2010(path)
    assert [item.id for item in items] == [str(i) for i in range(1, 8001)]
    counts = Counter(item.label for item in items)
    assert len(counts) == 19 and counts["Other"] == 1410 and counts["Cause-Effect(e2,e1)"] == 659
    assert " ".join(items[0].words[12:16]) == "configuration of antenna elements"
    assert items[0].entities == (Entity(12, 13), Entity(15, 16))
