"""A split of a prepared folder: its files, how pairs are cut, and rows to train on."""

import numpy as np
import pytest

from tests.support.token_files import SEPARATOR, numbered_documents, random_sizes, write, write_documents, write_spans
from unified.data.prepared_folder import DataFolder
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths, fit_pairs
from unified.objectives import parse_objectives
from unified.training.row_dataset import longest_text
from unified.training.settings import TrainingSettings
from unified.training.splits import open_split, pair_texts, require_split, text_lengths, training_rows

SETTINGS = TrainingSettings(tokens_per_sample=32, max_tokens=64, seed=9).checked()


def folder_of(path, *dictionaries) -> DataFolder:
    for name in dictionaries:
        Vocabulary([f"w{number}" for number in range(30000)]).save(path / name)
    return DataFolder.open(path, None, None)


@pytest.fixture
def documents(tmp_path):
    sizes = random_sizes(np.random.default_rng(0), 14, 15, 20)
    write_documents(tmp_path / "train", numbered_documents(sizes))
    return folder_of(tmp_path, "dict.txt")


SOURCES, TARGETS = [[7] * 40, [8] * 3, [9] * 25], [[5] * 4, [6] * 30, [7]]


@pytest.fixture
def pairs(tmp_path):
    for side, items in (("source", SOURCES), ("target", TARGETS)):
        write(tmp_path / f"train.source-target.{side}", [[*item, SEPARATOR] for item in items])
    return folder_of(tmp_path, "dict.source.txt", "dict.target.txt")


def test_a_split_of_documents_has_one_file(documents):
    [file] = open_split(documents, "train", documents.vocabulary())
    assert file.prefix == str(documents.path / "train")


def test_a_split_of_pairs_has_two_files(pairs):
    files = open_split(pairs, "train", pairs.vocabulary())
    assert [len(file) for file in files] == [3, 3] and files[0].prefix.endswith(".source")
    assert [text_lengths(file).tolist() for file in files] == [[40, 3, 25], [4, 30, 1]]
    assert text_lengths(files[0]).dtype == np.int64


def test_an_empty_split_and_symbols_that_the_vocabulary_lacks_are_refused(documents):
    write(documents.path / "valid", [])
    with pytest.raises(UnifiedError, match=f"^{documents.path}: split 'valid' is empty$"):
        open_split(documents, "valid", documents.vocabulary())
    with pytest.raises(UnifiedError, match=r"/train.bin: holds token id \d+, but dict.txt beside it lists 5 symbols; "):
        open_split(documents, "train", Vocabulary(["one"]))


def test_pairs_are_cut_so_that_they_fit_into_a_row(pairs, capsys):
    mixture, vocabulary = parse_objectives("target_cloze,target_next"), pairs.vocabulary()
    files = open_split(pairs, "train", vocabulary)
    rows, lengths = training_rows(pairs, files, vocabulary, mixture, SETTINGS)
    assert lengths == fit_pairs(*map(text_lengths, files), longest_text(mixture, 32))
    assert lengths.max_source + lengths.max_target == longest_text(mixture, 32) < 32
    said = capsys.readouterr().err
    for side, items, most in (("sources", SOURCES, lengths.max_source), ("targets", TARGETS, lengths.max_target)):
        cut = sum(len(item) > most for item in items)
        why = "(so that pairs fit into rows of 32 tokens)"
        assert cut and f"train: {cut} of 3 {side} are cut to their first {most} tokens {why}\n" in said
    assert (rows.row_length, rows.seed, rows.packed) == (32, 9, True) and max(rows.lengths) <= 32


def test_rows_without_room_for_a_pair_name_the_parameter(pairs):
    mixture, vocabulary = parse_objectives("target_next"), pairs.vocabulary()
    files = open_split(pairs, "train", vocabulary)
    with pytest.raises(UnifiedError) as raised:
        training_rows(pairs, files, vocabulary, mixture, TrainingSettings(tokens_per_sample=4))
    assert str(raised.value) == ("a row has no room for a source and a target; lengthen the rows (tokens_per_sample)")


def test_documents_are_not_cut(documents, capsys):
    mixture, vocabulary = parse_objectives("bidirectional"), documents.vocabulary()
    files = open_split(documents, "train", vocabulary)
    rows, lengths = training_rows(documents, files, vocabulary, mixture, SETTINGS)
    assert lengths == PairLengths() and rows.texts.word_starts is None and rows.mixture is mixture
    assert "cut" not in capsys.readouterr().err


def test_each_limit_is_that_of_its_side(pairs):
    files = open_split(pairs, "train", pairs.vocabulary())
    texts = pair_texts(files, pairs.vocabulary(), None, PairLengths(max_source=4, max_target=2))
    assert (texts.max_source, texts.max_target, texts.lengths.tolist()) == (4, 2, [6, 5, 5])


def required(folder, split, objectives, row=32, starts=None):
    require_split(folder, split, folder.vocabulary(), parse_objectives(objectives), row, starts)


def test_a_split_that_objectives_cannot_learn_from_is_refused(documents):
    path = documents.path
    required(documents, "train", "bert,seq2seq")
    entities, starts = "bert,spanbert(scheme='named_entity')", np.ones(30005, dtype=bool)
    for known, says in ((starts, "needs the annotation entities, "), (None, "scheme='named_entity' needs to know wh")):
        with pytest.raises(UnifiedError) as raised:
            required(documents, "train", entities, starts=known)
        assert str(raised.value).startswith(f"{path}/train: objective spanbert: {says}")
    write_spans(TokenFile(path / "train"), ["entities"], np.random.default_rng(0))
    required(documents, "train", entities, starts=starts)
    with pytest.raises(UnifiedError, match="^rows of 2 tokens hold no text beside the special tokens of bert$"):
        required(documents, "train", "bert", row=2)
    with pytest.raises(UnifiedError, match=f"^{path}/train: holds documents, but target_cloze needs source/target pa"):
        required(documents, "train", "target_cloze")
    write_documents(path / "valid", [[[10, 11]] * 5])
    with pytest.raises(UnifiedError, match=f"^{path}/valid: holds one document, but bert wants second segments from "):
        required(documents, "valid", "bert")
    write(path / "valid", [])
    with pytest.raises(UnifiedError, match=f"^{path}: split 'valid' is empty$"):
        required(documents, "valid", "left_to_right")
    with pytest.raises(UnifiedError, match=f"{path}/test"):
        required(documents, "test", "left_to_right")


def test_annotations_of_pairs_lie_beside_their_sources(pairs):
    required(pairs, "train", "target_cloze")
    with pytest.raises(UnifiedError, match="train.source-target.target: objective .* annotation sentences, oracle"):
        required(pairs, "train", "target_cloze(extractive=True)")
    source, target = open_split(pairs, "train", pairs.vocabulary())
    write_spans(target, ["sentences", "oracle"], np.random.default_rng(0))
    with pytest.raises(UnifiedError, match="needs the annotation sentences, oracle"):
        required(pairs, "train", "target_cloze(extractive=True)")
    write_spans(source, ["sentences", "oracle"], np.random.default_rng(0))
    required(pairs, "train", "target_cloze(extractive=True)")
