"""The data sets of the task of language modelling: what training, validation and generation read of a folder."""

import numpy as np
import pytest
import torch

from fairseq_plugins.dataset import PairFairseqDataset, RowFairseqDataset, StreamFairseqDataset
from fairseq_plugins.memory import StreamMemory
from tests.support.language_tasks import SEPARATOR, SPECIAL, WORDS, document_folder, language_task, pair_folder
from tests.support.token_files import same, write
from unified.data.token_files import TokenFile
from unified.generation.lengths import PairLengths
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.planning.pairs import PairTexts
from unified.tokenization import word_starts
from unified.training.row_dataset import RowDataset

SHORT = [(3, 2), (5, 4), (1, 1), (7, 6)]
#: Rows of 32 tokens have room for 29 of a source and its target.
LONG = [(40, 5), (3, 2)]
CUT = "{}: 1 of 2 sources are cut to their first {} tokens ({})"
FITTING = "so that pairs fit into rows of 32 tokens"


def require_rows(dataset, texts, mixture, seed, packed, shuffle):
    assert type(dataset) is RowFairseqDataset and dataset.special == SPECIAL and dataset.shuffle is shuffle
    assert same(dataset.rows, RowDataset(texts, mixture, 32, seed, packed))
    assert dataset.rows.packed is packed


@pytest.mark.parametrize("padded", [False, True])
def test_documents_are_read_in_rows_with_other_masks_in_validation(tmp_path, padded):
    folder = document_folder(tmp_path / "data")
    task = language_task(folder, padded=padded, objectives="bidirectional,left_to_right")
    for split, seed in (("train", 3), ("valid", 4)):
        task.load_dataset(split)
        texts = DocumentTexts(TokenFile(folder / split), SPECIAL)
        require_rows(task.datasets[split], texts, task.mixture, seed, not padded, split == "train")
        assert task.datasets[split].rows.texts.word_starts is None
    assert task.token_files == {str(folder / "train"), str(folder / "valid")}


def test_words_are_those_of_the_folders_tokenizer(tmp_path):
    task = language_task(document_folder(tmp_path / "data", tokenized=True), objectives="bert(whole_words=True)")
    task.load_dataset("train")
    starts = task.datasets["train"].rows.texts.word_starts
    assert np.array_equal(starts, word_starts(task.tokenizer.tokenizer, WORDS)) and len(starts) == len(WORDS)
    paired = language_task(pair_folder(tmp_path / "pairs", SHORT, tokenized=True))
    paired.load_dataset("train")
    assert np.array_equal(paired.datasets["train"].rows.texts.word_starts, starts)


def test_training_goes_through_the_folders_and_validation_stays_with_the_first(tmp_path):
    folders = [document_folder(tmp_path / str(first), first) for first in (4, 5, 6)]
    task = language_task(*folders, objectives="bert")

    def read(split, **epoch):
        task.load_dataset(split, **epoch)
        return {*task.datasets[split].rows.texts.file[0][:1].tolist()}

    assert [read("train", epoch=epoch) for epoch in (1, 2, 3, 4, 5)] == [{4}, {5}, {6}, {4}, {5}]
    assert read("train") == {4} and [read("valid", epoch=epoch) for epoch in (1, 2)] == [{4}, {4}]
    assert task.token_files == {*(str(folder / "train") for folder in folders), str(folders[0] / "valid")}


def test_a_split_without_items_is_refused_in_one_line(tmp_path):
    folder = document_folder(tmp_path / "data")
    write(folder / "test", [])
    with pytest.raises(SystemExit) as raised:
        language_task(folder).load_dataset("test")
    assert str(raised.value) == f"unified_lm: error: {folder}: split 'test' is empty"


def pair_texts(folder, split, *limits):
    sides = [TokenFile(folder / f"{split}.src-tgt.{side}") for side in ("src", "tgt")]
    return PairTexts(*sides, SPECIAL, *limits)


@pytest.mark.parametrize("padded", [False, True])
def test_pairs_are_read_in_rows_for_training_and_one_by_one_for_validation(tmp_path, padded):
    folder = pair_folder(tmp_path / "data", SHORT)
    task = language_task(folder, padded=padded)
    for split in ("train", "valid"):
        task.load_dataset(split)
    texts, mixture = pair_texts(folder, "train"), parse_objectives("target_cloze")
    require_rows(task.datasets["train"], texts, mixture, 3, not padded, True)
    validation = task.datasets["valid"]
    assert type(validation) is PairFairseqDataset and validation.special == SPECIAL
    assert same(validation.losses, RowDataset(pair_texts(folder, "valid"), mixture, 32, 4, packed=False))
    for number, (source, target) in enumerate(SHORT):
        one = validation[number]
        assert one[0] == number and (len(one[1]), len(one[2])) == (source + 1, target + 1)
        assert one[1][-1] == one[2][-1] == SEPARATOR
    assert len(task.token_files) == 4


def test_long_pairs_are_cut_to_fit_and_references_stay_whole(tmp_path, caplog):
    folder = pair_folder(tmp_path / "data", [*LONG])
    task = language_task(folder)
    with caplog.at_level("INFO", "fairseq_plugins.tasks.unified_lm"):
        task.load_dataset("train")
        task.load_dataset("valid")
    assert caplog.messages == [CUT.format(split, 24, FITTING) for split in ("train", "valid")]
    assert task.datasets["train"].rows.texts.lengths.tolist() == [29, 5]
    validation = task.datasets["valid"]
    assert [(len(source), len(target)) for _, source, target in (validation[0], validation[1])] == [(25, 6), (4, 3)]
    assert validation.losses.texts.lengths.tolist() == [29, 5]


def test_a_limit_of_the_user_is_named_and_cuts_what_is_learnt_alone(tmp_path, caplog):
    task = language_task(pair_folder(tmp_path / "data", SHORT), max_target=3)
    with caplog.at_level("INFO", "fairseq_plugins.tasks.unified_lm"):
        task.load_dataset("valid")
    assert caplog.messages == ["valid: 2 of 4 targets are cut to their first 3 tokens (--max-target)"]
    assert task.datasets["valid"].losses.texts.lengths.tolist() == [5, 8, 2, 10]
    assert [len(task.datasets["valid"][number][2]) for number in range(4)] == [3, 5, 2, 7]


def test_a_trained_model_is_given_pairs_without_losses(tmp_path):
    """fairseq-generate does not say how the model was trained; fairseq-validate does."""
    task = language_task(pair_folder(tmp_path / "data", SHORT))
    task.load_state_dict(PairLengths(0, 0, 6).state())
    task.lengths.load_positions(64)
    task.load_dataset("train")
    dataset = task.datasets["train"]
    assert type(dataset) is PairFairseqDataset and dataset.losses is None and dataset.special == SPECIAL
    assert [(len(source), len(target)) for _, source, target in map(dataset.__getitem__, range(4))] == [
        (source + 1, target + 1) for source, target in SHORT
    ]
    task.of_checkpoint = True
    task.load_dataset("valid")
    assert task.datasets["valid"].losses is not None


def generating(tmp_path, pairs, state, positions, continues=False, **options):
    task = language_task(pair_folder(tmp_path / "data", pairs), **options)
    task.continues = continues
    task.load_state_dict(PairLengths(*state).state())
    task.lengths.load_positions(positions)
    return task


@pytest.mark.parametrize(("state", "limit"), [((10, 0, 6), 10), ((0, 0, 6), 30 - 6 - 3)])
def test_sources_are_cut_in_generation_as_in_training_or_as_the_positions_need(tmp_path, caplog, state, limit):
    task = generating(tmp_path, LONG, state, 30)
    with caplog.at_level("INFO", "fairseq_plugins.tasks.unified_lm"):
        task.load_dataset("valid")
    assert caplog.messages == [CUT.format("valid", limit, "as in training")]
    first, second = task.datasets["valid"][0], task.datasets["valid"][1]
    assert (len(first[1]), len(second[1])) == (limit + 1, 4) and (len(first[2]), len(second[2])) == (6, 3)


def test_sources_that_the_user_keeps_whole_leave_room_to_write(tmp_path, caplog):
    """Positions have room for a source, [CLS], its separator, one token and the one that asks for the end."""
    task = generating(tmp_path, LONG, (10, 0, 6), 44, max_source=0)
    with caplog.at_level("INFO", "fairseq_plugins.tasks.unified_lm"):
        task.load_dataset("valid")
    assert caplog.messages == [] and len(task.datasets["valid"][0][1]) == 41
    task.lengths.load_positions(43)
    with pytest.raises(SystemExit) as raised:
        task.load_dataset("valid")
    assert str(raised.value) == (
        "unified_lm: error: --max-source 0: the longest source has 40 tokens then, but the model's 43 positions leave "
        "room for 39; without the option sources are cut as in training"
    )


@pytest.mark.parametrize(("option", "length"), [(None, 40), (0, 40), (7, 7)])
def test_prompts_are_read_whole_where_no_option_says_otherwise(tmp_path, option, length):
    """Whatever targets the model has learnt; those that leave no position are refused."""
    task = generating(tmp_path, LONG, (10, 0, 6), length + 4, continues=True, max_source=option)
    task.load_dataset("valid")
    assert len(task.datasets["valid"][0][1]) == length + 1
    task.lengths.load_positions(length + 3)
    with pytest.raises(SystemExit, match=f"the longest prompt has {length} tokens.* leave room for {length - 1};"):
        task.load_dataset("valid")


def streams_of(tmp_path, **options):
    task = language_task(document_folder(tmp_path / "data"), objectives="mine=xlnet", memory=8, **options)
    task.load_dataset("train")
    return task


def test_running_text_is_read_in_streams_that_share_a_memory(tmp_path):
    task = streams_of(tmp_path)
    dataset, memory = task.datasets["train"], task.stream_memory
    assert type(dataset) is StreamFairseqDataset and dataset.special == SPECIAL and dataset.shuffle is True
    assert (dataset.rows.row_length, dataset.rows.seed, dataset.rows.objective_names) == (32, 3, ("mine",))
    assert dataset.rows.word_starts is None and dataset.rows.text.name == str(tmp_path / "data" / "train")
    assert type(memory) is StreamMemory and (memory.memory.length, memory.memory.taken) == (8, dataset.rows.advance)
    task.load_dataset("train", epoch=2)
    assert task.stream_memory is memory and task.datasets["train"] is not dataset
    task.load_dataset("valid")
    assert type(task.datasets["valid"]) is RowFairseqDataset


@pytest.mark.parametrize(
    ("limits", "rows"),
    [
        ({"max_sentences": 3}, 3), ({"max_tokens": 2 * 32}, 2), ({"max_tokens": 3 * 32 - 1}, 2),
        ({"max_tokens": 4 * 32, "max_sentences": 3}, 3), ({"max_tokens": 2 * 32, "max_sentences": 3}, 2),
    ],
)  # fmt: skip
def test_there_are_as_many_streams_as_rows_in_a_batch_of_all_processes(tmp_path, limits, rows):
    task = streams_of(tmp_path)
    dataset = task.datasets["train"]
    with pytest.raises(SystemExit, match="^unified_lm: error: --max-tokens or --batch-size must say"):
        task.get_batch_iterator(dataset)
    found = task.get_batch_iterator(dataset, num_shards=2, epoch=5, seed=1, **limits)
    assert dataset.rows.streams == 2 * rows and (found.num_shards, found.epoch) == (2, 5)
    assert found.disable_shuffling is True and found.shuffle is False
    batches = [batch.tolist() for batch in found.frozen_batches]
    assert {len(batch) for batch in batches} == {rows} and sum(batches, []) == dataset.rows.order().tolist()
    assert (found.cut.max_tokens, found.cut.batch_size, found.cut.batches_per_update) == (None, rows, 2)
    alone = task.get_batch_iterator(dataset, **limits)
    assert dataset.rows.streams == rows and (alone.num_shards, alone.epoch) == (1, 1)


def test_rows_are_read_in_batches_of_any_limit(tmp_path):
    task = language_task(document_folder(tmp_path / "data"), objectives="bert")
    task.load_dataset("train")
    found = task.get_batch_iterator(task.datasets["train"], 70, 5, 2, 3, seed=9)
    assert (found.cut.max_tokens, found.cut.batch_size, found.num_shards, found.epoch, found.seed) == (70, 5, 2, 3, 9)
    assert {len(batch) for batch in found.frozen_batches[:-1]} == {2} and not found.disable_shuffling
    assert task.get_batch_iterator(task.datasets["train"], max_sentences=1).num_shards == 1


def test_typed_sources_are_cut_which_is_said_once(tmp_path, caplog):
    task = generating(tmp_path, SHORT, (1200, 0, 6), 2000)
    long, fits, short = (torch.tensor([4 + i % 20 for i in range(n)] + [SEPARATOR]) for n in (1201, 1200, 3))

    def lengths(*sources):
        dataset = task.build_dataset_for_inference([*sources], None, constraints=None)
        assert type(dataset) is PairFairseqDataset and dataset.targets is None and dataset.special == SPECIAL
        assert [dataset[i][1][-1] for i in range(len(dataset))] == [SEPARATOR] * len(sources)
        return [len(dataset[i][1]) for i in range(len(dataset))]

    with caplog.at_level("WARNING"):
        assert lengths(fits, short) == [1201, 4] and caplog.messages == []
        for _ in range(2):
            assert lengths(short, long) == [4, 1201]
            assert caplog.messages == ["sources are cut to their first 1,200 tokens (as in training)"]
    task.continues = True
    assert lengths(long) == [1202]


def test_rows_that_begin_streams_are_told(tmp_path):
    task = streams_of(tmp_path)
    dataset = task.datasets["train"]
    dataset.split(1)
    assert [dataset.collater([row])["starts_streams"] for row in (0, 1, 2)] == [True, False, False]
    dataset.split(3)
    steps = dataset.ordered_indices().reshape(-1, 3).tolist()
    assert [dataset.collater(step)["starts_streams"] for step in steps] == [True] + [False] * (len(steps) - 1)
    assert dataset.collater([]) == {} and dataset.collater([0])["id"].tolist() == [0]
