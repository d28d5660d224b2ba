"""Every objective draws the examples that it has always drawn: a change of them is a change of all trained models.

Where one is meant, the values here and those of ``tests/golden`` are written anew, with a line in the changelog.
"""

import hashlib

import numpy as np
import pytest

from tests.golden.visible import hashes
from tests.support.token_files import SPECIAL, random_sizes, write_documents, write_spans
from tests.unit.objectives.test_batched_examples import ALL, SETTINGS
from tests.unit.planning.test_pairs import random_pairs, write_pairs
from unified.data.annotations import KINDS, SOURCE_KINDS
from unified.data.collate import collate_flat
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.planning.pairs import PairTexts
from unified.training.row_dataset import RowDataset

LENGTH = 384
#: In rows of this length these hide more tokens than are drawn at once.
LONGER = {"subwords": "spanbert(scheme='subword')", "phrases": "spanbert(scheme='noun_phrase', mask_share=0.5)"}
EXPECTED = {
    "bidirectional": "aec798403276",
    "bidirectional_words": "3f05942c9f14",
    "left_to_right": "f27299623f70",
    "right_to_left": "16c836c0089e",
    "seq2seq": "12d1e2024765",
    "bert": "b8273d6bb982",
    "bert_words": "5eb8efccea96",
    "spanbert": "7061ecd668fc",
    "subwords": "294a02b18c95",
    "phrases": "feafa89651a1",
    "anna": "b4d0f0bcb9dc",
    "typed": "4b41970459e4",
    "tagged": "b5b91c364402",
    "plain": "f5f6851e4bc4",
    "xlnet": "f58be7a8231f",
    "runs": "bdb7a6e294c9",
    "hidden": "897be71dc6f1",
    "prefix_lm": "0a5b2f105169",
    "bert_style": "c824ba9a18e5",
    "deshuffling": "c8b08bcb45ec",
    "mass_style": "6b357d9e0507",
    "replace_spans": "f3ecddea3987",
    "drop_tokens": "b80da466899a",
    "random_spans": "eaf853177595",
}
#: The same hashes of objectives on pairs of texts.
PAIRED = {
    "target_cloze": "5325bb640f93",
    "target_cloze(mask_source=0.2, ngram_share=0.3)": "e511f2bbd5ee",
    "target_cloze(extractive=True, sentence_limit=7)": "c66461997539",
    "target_next": "986c986fc459",
    "target_next(extractive=True)": "43ed88a2d8b4",
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("golden") / "train"
    ordinary = SPECIAL.ordinary_start, SPECIAL.ordinary_stop
    texts = [[rng.integers(*ordinary, size) for size in sizes] for sizes in random_sizes(rng, 30, 40, 40)]
    file = write_documents(path, texts)
    return DocumentTexts(file, SPECIAL, rng.random(SPECIAL.ordinary_stop) < 0.6, write_spans(file, KINDS, rng))


def digest(texts, objectives):
    """A hash of the examples of the first eight rows of an epoch."""
    mixture = parse_objectives(objectives)
    dataset = RowDataset(texts, mixture, LENGTH, seed=2)
    dataset.set_epoch(3)
    examples, per_row = dataset.examples(range(8))
    found = hashes(collate_flat(examples, per_row, LENGTH, mixture.names, SPECIAL.pad))
    return hashlib.sha256("".join(found.values()).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", ALL)
def test_the_examples_of_a_seed_are_those_of_before(documents, name):
    assert digest(documents, (SETTINGS | LONGER).get(name, name)) == EXPECTED[name]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    plain = write_pairs(tmp_path_factory.mktemp("golden"), random_pairs(80), max_source=60)
    annotations = write_spans(plain.source, SOURCE_KINDS, np.random.default_rng(1))
    return PairTexts(plain.source, plain.target, SPECIAL, max_source=60, annotations=annotations)


@pytest.mark.parametrize("name", PAIRED)
def test_the_examples_of_pairs_are_those_of_before(pairs, name):
    assert digest(pairs, name) == PAIRED[name]
