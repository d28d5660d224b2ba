"""Every objective draws the examples that it has always drawn: a change of them is a change of all trained models.

Where one is meant, the values here and those of ``tests/golden`` are written anew, with a line in the changelog.
"""

import hashlib

import numpy as np
import pytest

from tests.golden.visible import hashes
from tests.support.token_files import SPECIAL, random_sizes, write_documents, write_spans
from tests.unit.objectives.test_batched_examples import ALL, SETTINGS
from unified.data.annotations import KINDS
from unified.data.collate import collate_flat
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.training.row_dataset import RowDataset

LENGTH = 384
#: In rows of this length these hide more tokens than are drawn at once.
LONGER = {"subwords": "spanbert(scheme='subword')", "phrases": "spanbert(scheme='noun_phrase', mask_share=0.5)"}
EXPECTED = {
    "bidirectional": "ff996feeb27f",
    "bidirectional_words": "87a43a95fe24",
    "left_to_right": "f27299623f70",
    "right_to_left": "16c836c0089e",
    "seq2seq": "12d1e2024765",
    "bert": "b8273d6bb982",
    "bert_words": "6208c0653267",
    "spanbert": "d1b552ef431e",
    "subwords": "294a02b18c95",
    "phrases": "de66d5bd5ef0",
    "anna": "f49e449ce60e",
    "typed": "c2268dde833a",
    "tagged": "b5b91c364402",
    "plain": "f5f6851e4bc4",
    "xlnet": "ff593c178301",
    "runs": "b2b6f029332c",
    "hidden": "ffa785229630",
    "prefix_lm": "0a5b2f105169",
    "bert_style": "c824ba9a18e5",
    "deshuffling": "c8b08bcb45ec",
    "mass_style": "6b357d9e0507",
    "replace_spans": "f3ecddea3987",
    "drop_tokens": "b80da466899a",
    "random_spans": "eaf853177595",
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("golden") / "train"
    ordinary = SPECIAL.ordinary_start, SPECIAL.ordinary_stop
    texts = [[rng.integers(*ordinary, size) for size in sizes] for sizes in random_sizes(rng, 30, 40, 40)]
    file = write_documents(path, texts)
    return DocumentTexts(file, SPECIAL, rng.random(SPECIAL.ordinary_stop) < 0.6, write_spans(file, KINDS, rng))


@pytest.mark.parametrize("name", ALL)
def test_the_examples_of_a_seed_are_those_of_before(documents, name):
    mixture = parse_objectives((SETTINGS | LONGER).get(name, name))
    dataset = RowDataset(documents, mixture, LENGTH, seed=2)
    dataset.set_epoch(3)
    examples, per_row = dataset.examples(range(8))
    found = hashes(collate_flat(examples, per_row, LENGTH, mixture.names, SPECIAL.pad))
    assert hashlib.sha256("".join(found.values()).encode()).hexdigest()[:12] == EXPECTED[name]
