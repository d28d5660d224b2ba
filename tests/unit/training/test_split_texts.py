"""What lies beside the texts of a split: where words begin, annotations, and files of a single item."""

import numpy as np
import pytest

from tests.support.task_folders import tokenizer, vocabulary
from tests.support.token_files import SEPARATOR, write
from unified.data.annotations import span_prefix
from unified.data.prepared_folder import DataFolder
from unified.data.token_files import TokenFile
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.objectives import parse_objectives
from unified.training.settings import TrainingSettings
from unified.training.splits import document_texts, open_split, pair_texts, training_rows

WORDS = vocabulary("##s")
SETTINGS = TrainingSettings(tokens_per_sample=16, max_tokens=16, seed=3).checked()
TABLE = np.arange(len(WORDS)) % 3 == 0


def items(count: int) -> list[list[int]]:
    return [[4 + number % 9, 5, 6, SEPARATOR] for number in range(count)]


@pytest.fixture
def file(tmp_path) -> TokenFile:
    return write(tmp_path / "train", items(5))


def test_words_begin_where_the_tokenizer_of_the_folder_says(tmp_path):
    """Without a tokenizer nobody knows."""
    write(tmp_path / "train", items(5))
    WORDS.save(tmp_path / "dict.txt")
    for there in (False, True):
        if there:
            tokenizer("##s").save(tmp_path)
        folder = DataFolder.open(tmp_path, None, None)
        files = open_split(folder, "train", WORDS)
        rows, _ = training_rows(folder, files, WORDS, parse_objectives("left_to_right"), SETTINGS)
        starts = rows.texts.word_starts
        assert (starts is not None) == there
    assert len(starts) == len(WORDS) and not starts[WORDS.index("##s")] and starts[WORDS.index("w3")]
    assert (rows.row_length, rows.seed) == (16, 3)


def test_a_split_may_have_one_item(tmp_path):
    write(tmp_path / "one", items(1))
    WORDS.save(tmp_path / "dict.txt")
    (file,) = open_split(DataFolder.open(tmp_path, None, None), "one", WORDS)
    assert len(file) == 1


def test_documents_have_the_annotations_beside_them(file):
    assert document_texts(file, WORDS, None).annotation_kinds == frozenset()
    write(span_prefix(file.prefix, "entities"), [[0, 2], [], [1, 3], [], [0, 1]])
    texts = document_texts(file, WORDS, TABLE)
    assert texts.annotation_kinds == frozenset({"entities"}) and texts.word_starts is TABLE
    assert texts.special == WORDS.special


@pytest.mark.parametrize(
    ("spans", "says"),
    [
        ([[0, 2], [], [1, 4], [], []], "item 2 has a span outside of its text"),
        ([[0, 2], [], [], [], [0]], "holds a start without a stop"),
    ],
)
def test_damaged_annotations_are_refused_before_they_are_asked_for(tmp_path, file, spans, says):
    """Of documents, and of the sources of pairs."""
    prefix = span_prefix(file.prefix, "entities")
    write(prefix, spans)
    for call in (
        lambda: document_texts(file, WORDS, None),
        lambda: pair_texts([file, write(tmp_path / "other", items(5))], WORDS, None, PairLengths()),
    ):
        with pytest.raises(UnifiedError) as raised:
            call()
        assert str(raised.value) == f"{prefix}: {says}; make the folder again"


def test_pairs_have_the_annotations_of_their_sources(tmp_path, file):
    write(span_prefix(file.prefix, "sentences"), [[0, 2], [], [1, 3], [], []])
    target = write(tmp_path / "target", items(5))
    texts = pair_texts([file, target], WORDS, TABLE, PairLengths())
    assert texts.annotation_kinds == frozenset({"sentences"}) and texts.word_starts is TABLE
    assert pair_texts([target, file], WORDS, None, PairLengths()).annotation_kinds == frozenset()
