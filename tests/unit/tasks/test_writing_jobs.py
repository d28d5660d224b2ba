"""Fine-tunings on generation tasks: shape, data folder, command, and what judges the model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.corpora import items as stored
from tests.support.corpora import jsonl
from tests.support.refusals import refused
from tests.support.task_folders import language_model
from unified import UnifiedLM
from unified.data.vocabulary import Vocabulary
from unified.files.destination import MANIFEST
from unified.model import TransformerConfig
from unified.tasks.catalogue import task_named
from unified.tasks.finetuning import Start, data_hash
from unified.tasks.jobs import WritingJob, job_of
from unified.tasks.writing import TokenBudget, Writer, WritingItem, WritingTraining
from unified.training.fairseq_options import by_name

MORE = (".", "|", "?")


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Start:
    folder = tmp_path_factory.mktemp("start") / "model"
    return Start.of(language_model(folder, *MORE, max_positions=32, token_types=2, writes="cloze"))


TRAINING = WritingTraining(epochs=2, batch_size=3, lr=1e-3, max_length=32, max_source=20, max_target=6)
TEXTS = task_named("texts")
SPLITS = {
    "train": [WritingItem(str(i), f"w{i} w1 w2", f"w{i}") for i in range(7)],
    "valid": [WritingItem(str(i), ("w1", "w2"), "w3") for i in range(2)],
    "test": [WritingItem("9", "w9", "w8", ("w8", "w7"))],
}


def job(start: Start, folder: Path, task=TEXTS, **changes) -> WritingJob:
    return job_of(task, replace(TRAINING, **changes), start, folder)


# ---------------------------------------------------------------- the shape


def test_the_tables_of_a_model_grow_as_rows_need_them(start, tmp_path):
    config = job(start, tmp_path).config
    assert (config.max_positions, config.token_types) == (32, 6)
    assert job(start, tmp_path, max_length=40).config.max_positions == 40
    assert job(start, tmp_path, max_length=30).config.max_positions == 32
    next_token = job(start, tmp_path, objective="target_next").config
    assert next_token == replace(config, token_types=next_token.token_types)


def test_writing_needs_no_markers(start, tmp_path):
    assert job(start, tmp_path).vocabulary(SPLITS).symbols == start.vocabulary.symbols


def test_what_serves_understanding_alone_is_left_out(start, tmp_path):
    shaped = start.with_changes(lstm=16, mask="left_to_right", pair_separators=2)
    config = job(shaped, tmp_path).config
    assert (config.lstm, config.mask, config.pair_separators) == (0, TransformerConfig.mask, 1)


@pytest.mark.parametrize(
    ("changes", "head"),
    [({}, "transform"), ({"token_head": "plain"}, "plain"), ({"token_head": "none"}, "transform"),
     ({"token_head": "none", "positions": "relative"}, "plain")],
)  # fmt: skip
def test_a_model_without_a_head_for_tokens_gets_one(start, tmp_path, changes, head):
    shaped = start.with_changes(**changes)
    assert job(shaped, tmp_path, objective="target_next").config.token_head == head


# ---------------------------------------------------------------- refusals


def test_sources_have_room_beside_targets(start, tmp_path):
    job(start, tmp_path, max_length=10)
    assert refused(job, start, tmp_path, max_length=9) == (
        "--max-length 9: no source has room beside a target of 6 tokens; raise it or lower --max-target"
    )


def test_the_tokenizer_knows_the_mark_between_sentences(start, tmp_path):
    job(start, tmp_path, replace(TEXTS, separator="|"))
    assert refused(job, start, tmp_path, replace(TEXTS, separator="[S]")) == (
        "the tokenizer has no piece for the separator '[S]'; choose another symbol"
    )


def test_a_model_that_reads_entities_does_not_learn_to_write(start, tmp_path):
    assert refused(job, start.with_changes(sublayers="entity,feed_forward"), tmp_path).startswith(
        "the model has entity-aware attention"
    )


# ---------------------------------------------------------------- data and command


def test_pairs_are_written_down_and_prepared(start, tmp_path):
    own = job(start, tmp_path / "run")
    assert (own.items, own.data) == (tmp_path / "run" / "items", tmp_path / "run" / "data")
    for _ in range(2):  # after a crash both are made anew
        own.write(SPLITS)
    assert set(data_hash(own.items)) == {"train.jsonl", "valid.jsonl", "test.jsonl"}
    assert json.loads((own.items / MANIFEST).read_text())["task"] == "texts"
    known = Vocabulary.load(own.data / "dict.source.txt")
    separator = known.special.separator
    sources = stored(own.data / "train.source-target.source")
    assert sources == [[*known.encode([f"w{i}", "w1", "w2"]).tolist(), separator] for i in range(7)]
    assert stored(own.data / "train.source-target.target") == [
        [*known.encode([f"w{i}"]).tolist(), separator] for i in range(7)
    ]
    assert len(stored(own.data / "valid.source-target.source")) == 2
    assert not list(own.data.glob("test*")) and not list(own.data.glob("*oracle*"))
    (own.data / "more").touch()
    assert "will not be replaced" in refused(own.write, SPLITS)
    other = job(start, tmp_path / "other")
    other.data.mkdir(parents=True)
    (other.data / "file").touch()
    assert refused(other.write, SPLITS).endswith(f"{other.data}: not empty; give another --output")


def test_sentences_of_an_oracle_are_prepared_where_the_first_item_has_them(start, tmp_path):
    own = job(start, tmp_path / "run")
    marked = [WritingItem(str(i), "w1 w2 . w3", "w3", sentences=(0, 8), oracle=(1,)) for i in range(2)]
    own.write({"train": marked[:1], "valid": marked})
    assert list(own.data.glob("train.*oracle*"))


def test_the_command_of_a_fine_tuning(start, tmp_path):
    options = by_name(job(start, tmp_path).command(SPLITS, 1, 0))
    wanted = {
        "--task": "unified_lm", "--criterion": "unified_lm", "--objectives": "target_cloze(mask_probability=0.7)",
        "--label-smoothing": "0.1", "--max-source": "20", "--max-target": "6", "--max-update": "6",
        "--max-positions": "32", "--padded": True, "--no-epoch-checkpoints": True, "--fp16-no-flatten-grads": True,
        "--cpu": True, "--distributed-world-size": "1", "--no-export": True,
    }  # fmt: skip
    assert {name: options.get(name) for name in wanted} == wanted
    assert not {"--maximize-best-checkpoint-metric", "--eval-task", "--best-checkpoint-metric"} & options.keys()


def test_a_checkpoint_may_be_chosen_by_what_it_writes(start, tmp_path):
    last, best = (by_name(job(start, tmp_path, select=name).command(SPLITS, 1, 0)) for name in ("last", "best"))
    assert best.items() - last.items() == {
        ("--eval-task", "texts"), ("--eval-items", str(tmp_path / "items" / "valid.jsonl")),
        ("--best-checkpoint-metric", "rougeL"), ("--maximize-best-checkpoint-metric", True),
    }  # fmt: skip


def test_epochs_are_counted_in_pairs(start, tmp_path):
    own = job(start, tmp_path)
    assert [own.updates(SPLITS, size) for size in (1, 2, 6, 7, 8)] == [14, 8, 4, 2, 2]
    assert own.updates(SPLITS, 2, 3) == 2 * 2 and own.understandings(SPLITS) == []


def test_pairs_are_read_within_the_budget_of_a_source(start, tmp_path):
    budgets: list[TokenBudget] = []

    def read(source, budget):
        budgets.append(budget)
        return {"train": SPLITS["train"]} if source.name == "alone" else SPLITS

    (tmp_path / "alone").mkdir()
    own = job(start, tmp_path / "run", replace(TEXTS, name="mine", read=read))
    assert own.items_of(tmp_path) == SPLITS
    assert budgets[0].tokens == 20 and budgets[0].counter("w1 w2 w3 .") == 4
    assert refused(own.items_of, tmp_path / "alone") == f"--data {tmp_path / 'alone'}: holds no valid split of mine"
    rows = jsonl(tmp_path / "a.jsonl", [{"source": "w1", "target": "w2"}])
    assert refused(job(start, tmp_path / "run").items_of, Path(rows)) == (
        f"--data {rows}: holds no valid split of texts; --valid-share 0.1 takes a tenth of the training items for it"
    )


def test_a_model_that_writes_is_judged_by_its_texts(start, tmp_path):
    own, lm = job(start, tmp_path), UnifiedLM.from_pretrained(start.checkpoint)
    own.write(SPLITS)
    [learnt] = own.learnt(lm, SPLITS)
    assert learnt.predictor == Writer(lm, TEXTS) and learnt.measure == "rougeL" and learnt.together == ()
    assert (learnt.task, learnt.folder, learnt.data) == (TEXTS, tmp_path, data_hash(own.items))
