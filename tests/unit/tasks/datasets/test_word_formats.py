"""Columns of CoNLL-2003 and WNUT-17 as items of tagging."""

from collections import Counter

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.tasks.datasets.conll2003 import read_conll2003, to_bio
from unified.tasks.datasets.own_files import head_files
from unified.tasks.datasets.wnut17 import read_wnut17
from unified.tasks.heads import TASK_HEADS
from unified.tasks.heads.items import WordsItem
from unified.tasks.metrics import score_tagging

CONLL = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
Peter NNP I-NP I-PER
Ann NNP I-NP B-PER

EU NNP B-NP B-ORG
-DOCSTART- -X- -X- O

Bonn NNP I-NP I-LOC
US NNP I-NP I-ORG
"""


def test_conll2003(tmp_path):
    path = tmp_path / "eng.train"
    path.write_text(CONLL)
    words = [("EU", "rejects", "Peter", "Ann"), ("EU",), ("Bonn", "US")]
    tags = [("B-ORG", "O", "B-PER", "B-PER"), ("B-ORG",), ("B-LOC", "B-ORG")]
    expected = [WordsItem(str(i), words[i], tags[i], "112"[i]) for i in range(3)]
    assert read_conll2003(path) == expected
    path.write_text("EU NNP I-ORG\nEU NNP I-NP X-ORG\n\nEU NNP I-NP I-\n")
    with pytest.raises(UnifiedError) as caught:
        read_conll2003(path)
    for says in ("line 1: 3 columns instead of 4", "line 2: the tag 'X-ORG' is not O, B-TYPE", "line 4: the tag 'I-'"):
        assert says in str(caught.value)
    path.write_text("-DOCSTART- -X- O O\n\n")
    with pytest.raises(UnifiedError, match="holds no sentence"):
        read_conll2003(path)


def test_bio_has_the_entities_of_iob1():
    rng = np.random.default_rng(7)
    for _ in range(300):
        tags = rng.choice(["O", "B-x", "I-x", "B-y", "I-y"], rng.integers(1, 12)).tolist()
        turned = to_bio(tags)
        scores = score_tagging([tags], [list(turned)])
        assert scores["gold"] == scores["predicted"] == scores["correct"] == sum(tag[0] == "B" for tag in turned)
        assert to_bio(turned) == turned
        for before, tag in zip(("O", *turned), turned, strict=False):
            assert tag[0] != "I" or before[2:] == tag[2:]


def test_wnut17(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text('@paulwalk\tO\nEmpire State\tB-location\n\t\n"\tO\n')
    assert read_wnut17(path) == [
        WordsItem("0", ("@paulwalk", "Empire State"), ("O", "B-location")), WordsItem("1", ('"',), ("O",))
    ]  # fmt: skip
    path.write_text("a\n\tO\n")
    with pytest.raises(UnifiedError, match="line 1: 1 column instead of 2; line 2: the word is empty"):
        read_wnut17(path)


def test_real_files_have_their_rows(unified_data):
    train = read_wnut17(unified_data / "wnut17" / "wnut17train.conll.xz")
    dev = read_wnut17(unified_data / "wnut17" / "emerging.dev.conll.xz")
    assert (len(train), len(dev)) == (3394, 1009)
    assert sum(len(item.words) for item in train) == 62730
    counts = Counter(tag for item in train for tag in item.tags)
    assert (counts["B-person"], counts["I-creative-work"], counts["O"]) == (660, 206, 59570)
    assert all(to_bio(item.tags) == item.tags for item in train + dev)
    # As data of one's own: the same sentences, by the reader of all rows.
    own = head_files(TASK_HEADS["tagging"]).items(str(unified_data / "wnut17" / "emerging.dev.conll.xz"))
    assert [(item.words, item.tags) for item in own] == [(item.words, item.tags) for item in dev]
