"""The task of language modelling: what it reads of its folders and options."""

from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq import tasks
from omegaconf import OmegaConf

from fairseq_plugins import trust
from fairseq_plugins.tasks.unified_lm import UnifiedLMTask
from tests.support.language_tasks import WORDS, document_folder, language_task, pair_folder, settings
from tests.support.task_folders import data_folder
from tests.support.token_files import write, write_spans
from unified.data.prepared_folder import DataFolder
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.objectives import DEFAULT_FINETUNING, DEFAULT_PRETRAINING, parse_objectives
from unified.tasks.writing import WritingItem

OWN = "tests.support.token_files:Reads"


def test_fairseq_sets_the_task_up_by_its_name_with_the_defaults_of_what_nobody_gives(tmp_path):
    of_other_groups = {
        "seed": 3, "max_tokens": None, "update_freq": [1], "best_checkpoint_metric": "loss",
        "maximize_best_checkpoint_metric": False,
    }  # fmt: skip
    given = {"_name": "unified_lm", "data": str(document_folder(tmp_path / "documents")), "padded": True}
    task = tasks.setup_task(OmegaConf.create({**given, **of_other_groups}))
    assert type(task) is UnifiedLMTask and (task.cfg.padded, task.cfg.tokens_per_sample) == (True, 512)
    assert str(task.cfg.length_penalty) == "fairseq" and task.cfg.eval_generate is None


def test_documents_and_pairs_have_objectives_where_none_are_named(tmp_path):
    documents, pairs = document_folder(tmp_path / "documents"), pair_folder(tmp_path / "pairs", [(3, 2)])
    for folder, default in ((documents, DEFAULT_PRETRAINING), (pairs, DEFAULT_FINETUNING)):
        task = language_task(folder)
        assert task.mixture == parse_objectives(default) and task.loss_names == task.mixture.loss_names
        assert task.folder == task.folders[0] == DataFolder.open(str(folder), None, None) and len(task.folders) == 1
    assert language_task(documents, objectives="bert:2,left_to_right").loss_names == (
        "bert", "bert_next_sentence", "left_to_right",
    )  # fmt: skip


def test_a_task_begins_with_nothing_read(tmp_path):
    task = language_task(document_folder(tmp_path / "documents"))
    assert task.vocabulary.symbols == WORDS.symbols and task.cfg.seed == 3 and task.datasets == {}
    assert task.of_checkpoint is False and task.continues is False
    assert (task.official, task.generated, task.stream_memory, task.token_files) == (None, [], None, set())
    assert task.tokenizer is None and task.has_sharded_data("train") is False


def test_the_tokenizer_is_that_of_the_folder(tmp_path):
    task = language_task(document_folder(tmp_path / "documents", tokenized=True))
    assert task.tokenizer.encode("w1 w2") == "w1 w2" and task.build_bpe(None) is task.tokenizer


def test_several_folders_are_parts_of_one(tmp_path):
    folders = [document_folder(tmp_path / name) for name in ("one", "two")]
    task = language_task(*folders)
    assert [folder.path for folder in task.folders] == folders and task.folder.path == folders[0]
    assert task.has_sharded_data("train") is True


def test_folders_that_do_not_go_together_are_refused_before_training(tmp_path, monkeypatch):
    """Ids of the second were read by the dictionary of the first, and a missing split was found in the second epoch."""
    monkeypatch.chdir(tmp_path)  # a refusal is short, so long paths would be cut
    first, more = (document_folder(Path(name)) for name in ("first", "more"))
    pairs, more_pairs = (pair_folder(Path(name), [(3, 2)]) for name in ("pairs", "more_pairs"))

    def said(*folders):
        with pytest.raises(SystemExit) as raised:
            language_task(*folders)
        return str(raised.value).removeprefix("unified_lm: error: ")

    assert said(pairs, first) == (
        f"{first} holds documents, but {pairs} pairs; all folders of one training hold the same"
    )
    assert said(first, pairs) == (
        f"{pairs} holds pairs, but {first} documents; all folders of one training hold the same"
    )
    assert language_task(pairs, more_pairs).has_sharded_data("train") is True
    (more / "train.idx").unlink()
    assert f"{more / 'train'}" in said(first, more)
    assert f"{more / 'train'}" in said(more, first)
    assert len(language_task(more).folders) == 1
    symbols = WORDS.symbols[4:]
    Vocabulary([*symbols[1::-1], *symbols[2:]]).save(more / "dict.txt")
    assert said(first, more) == f"{more} has another dictionary than {first}; prepare it with --tokenizer {first}"


@pytest.mark.parametrize("lacks", [0, 1, 2])
def test_folders_without_what_the_objectives_read_are_refused_before_training(tmp_path, lacks):
    """A later folder was refused in the epoch that reads it."""
    folders = [document_folder(tmp_path / name, tokenized=True) for name in "abc"]
    for number, folder in enumerate(folders):
        if number != lacks:
            write_spans(TokenFile(folder / "train"), ["entities"], np.random.default_rng(0))
    options = {"objectives": "bidirectional,spanbert(scheme='named_entity')"}
    with pytest.raises(SystemExit) as raised:
        language_task(*folders, **options)
    assert str(raised.value) == (
        f"unified_lm: error: {folders[lacks]}/train: objective spanbert: needs the annotation entities, which the data "
        "do not have (they have none); prepare them with --annotate entities"
    )
    language_task(*folders, objectives="bidirectional")
    write_spans(TokenFile(folders[lacks] / "train"), ["entities"], np.random.default_rng(0))
    language_task(*folders, **options)
    write(folders[2] / "train", [])
    with pytest.raises(SystemExit, match=f"^unified_lm: error: {folders[2]}: split 'train' is empty$"):
        language_task(*folders, objectives="bidirectional")


def test_what_only_validates_asks_one_folder_alone(tmp_path):
    """A checkpoint's objectives may read annotations, which folders that are not validated need not have."""
    folders = [document_folder(tmp_path / name) for name in "ab"]
    cfg = settings(*folders, objectives="spanbert(scheme='named_entity')")
    assert len(UnifiedLMTask.setup_task(cfg, from_checkpoint=True).folders) == 2


def test_languages_of_pairs_are_chosen_by_name(tmp_path):
    folder = pair_folder(tmp_path / "pairs", [(3, 2)])
    task = language_task(folder, source_lang="tgt", target_lang="src")
    assert (task.folder.source, task.folder.target) == ("tgt", "src")
    with pytest.raises(SystemExit, match="^unified_lm: error: .*: holds no pairs for -s xx; "):
        language_task(folder, source_lang="xx")


def test_lengths_are_those_of_the_options(tmp_path):
    task = language_task(pair_folder(tmp_path / "pairs", [(3, 2)]), max_source=7, max_target=0)
    assert (task.lengths.max_source, task.lengths.max_target) == (7, 0)


def test_options_that_contradict_are_refused_in_one_line(tmp_path):
    folder = document_folder(tmp_path / "documents")
    with pytest.raises(SystemExit) as raised:
        language_task(folder, eval_generate="bleu")
    assert str(raised.value) == (
        f"unified_lm: error: --eval-generate needs source/target pairs, but {folder} holds documents"
    )
    with pytest.raises(SystemExit, match=f"^unified_lm: error: --objectives 'target_cloze' does not fit {folder}, "):
        language_task(folder, objectives="target_cloze")


def of_checkpoint(cfg, **given):
    """The task of a checkpoint with these settings, for a command that gives these options."""
    load = trust.noting_options(lambda filenames, overrides: UnifiedLMTask.setup_task(cfg, from_checkpoint=True))
    return load(["model.pt"], given)


def test_a_class_of_somebody_else_is_imported_where_the_command_names_it(tmp_path):
    cfg = settings(document_folder(tmp_path / "documents"), objectives=OWN)
    for task in (
        UnifiedLMTask.setup_task(cfg),
        UnifiedLMTask.setup_task(cfg, from_checkpoint=False),
        UnifiedLMTask(cfg, [DataFolder.open(cfg.data, None, None)]),
        of_checkpoint(cfg, objectives=OWN),
    ):
        assert task.mixture.names == ("reads",)
    for given in ({}, {"seed": 3}):
        with pytest.raises(SystemExit, match="^unified_lm: error: .*tests.support.token_files:Reads"):
            of_checkpoint(cfg, **given)
    plain = settings(tmp_path / "documents", objectives="bert")
    assert of_checkpoint(plain).of_checkpoint is True and UnifiedLMTask.setup_task(plain).of_checkpoint is False


def test_official_scores_are_asked_for_by_training_alone(tmp_path):
    folder = pair_folder(tmp_path / "pairs", [(3, 2)] * 2)
    items = data_folder(tmp_path / "items", {"valid": [WritingItem(str(n), "w1", "w2") for n in range(2)]})
    options = {"eval_task": "reuters", "eval_items": str(items / "valid.jsonl")}
    task = language_task(folder, **options)
    assert task.official.task.name == "reuters" and [item.id for item in task.official.items] == ["0", "1"]
    missing = settings(folder, eval_task="reuters")
    with pytest.raises(SystemExit, match="^unified_lm: error: --eval-task reuters: needs --eval-items, "):
        UnifiedLMTask.setup_task(missing)
    assert of_checkpoint(missing).official is None
    for steps in (0, 2):  # it logged 0 for every score
        with pytest.raises(SystemExit) as raised:
            language_task(folder, **options, max_valid_steps=steps)
        assert str(raised.value) == (
            "unified_lm: error: --max-valid-steps: scores of --eval-task are of all pairs of a split; leave it out"
        )
    assert language_task(folder, max_valid_steps=2).official is None
    task.load_dataset("valid")
    task.official.items.pop()
    with pytest.raises(SystemExit) as raised:
        task.load_dataset("valid")
    assert str(raised.value) == "unified_lm: error: --eval-items: holds 1 item for 2 validation pairs"
    task.load_dataset("train")


def test_a_row_of_ids_is_a_text(tmp_path):
    """Without a tokenizer symbols are joined by blanks; padding and the end are left out."""
    tokens = torch.tensor([WORDS.index(symbol) for symbol in ("w1", "</s>", "w22", "<pad>", "<pad>")])
    plain = language_task(document_folder(tmp_path / "plain"))
    tokenized = language_task(document_folder(tmp_path / "tokenized", tokenized=True))
    assert plain.text(tokens) == "w1 w22"
    unknown = torch.tensor([WORDS.index("w1"), WORDS.special.unknown])
    assert (plain.text(unknown), plain.text(unknown, "??")) == ("w1 <unk>", "w1 ??")
    tokenized.tokenizer.decode = lambda pieces: f"text of {pieces}"
    assert tokenized.text(tokens) == "text of w1 w22"
