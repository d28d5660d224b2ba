"""Official scores of a generation task while a model is trained: its texts for all items, judged as afterwards."""

import pytest
import torch
from fairseq.logging import metrics

from fairseq_plugins.validation_scores import Predictions
from fairseq_plugins.writing_validation import OfficialScores, task_of_writing
from tests.support.task_folders import WORDS, tokenizer, vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.inference.language_model import UnifiedLM
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.catalogue import TASKS
from unified.tasks.heads.items import write_items
from unified.tasks.writing import Writer, WritingItem, WritingTask

ITEMS = [WritingItem(f"i{n}", " ".join(WORDS[n : n + 3 + n % 2]), " ".join(WORDS[n + 1 : n + 4])) for n in range(5)]
LENGTHS = PairLengths(max_source=2, max_target=4, longest_target=4)


@pytest.fixture
def path(tmp_path):
    """The file of the items."""
    write_items(tmp_path / "valid.jsonl", ITEMS)
    tokenizer(".").save(tmp_path)
    return tmp_path / "valid.jsonl"


def test_generation_tasks_are_known_by_name():
    for name, task in TASKS.items():
        if isinstance(task, WritingTask):
            assert task_of_writing(name) is task
    assert task_of_writing("texts").name == "texts"


@pytest.mark.parametrize("name", ["rte", "no such task"])
def test_other_tasks_are_refused(name):
    known = [name for name, task in TASKS.items() if isinstance(task, WritingTask)]
    with pytest.raises(UnifiedError) as raised:
        task_of_writing(name)
    assert str(raised.value) == f"--eval-task {name}: not a generation task; known are {', '.join(known)}"
    assert {"texts", "squad_qg", "cnn_dailymail"} <= set(known) and "rte" not in known


def test_items_are_read_from_their_file(path):
    scores = OfficialScores("texts", str(path))
    assert scores.task is TASKS["texts"] and scores.items == ITEMS
    with pytest.raises(UnifiedError) as raised:
        OfficialScores("texts", None)
    assert str(raised.value) == "--eval-task texts: needs --eval-items, the file of its validation items"
    with pytest.raises(UnifiedError, match="^--eval-task rte: not a generation task; "):
        OfficialScores("rte", str(path))


def test_there_is_an_item_for_each_pair(path):
    scores = OfficialScores("texts", str(path))
    scores.require(5)
    for count in (4, 6, 1200):
        with pytest.raises(UnifiedError) as raised:
            scores.require(count)
        assert str(raised.value) == f"--eval-items: holds 5 items for {count:,} validation pairs"


def model() -> UnifiedModel:
    torch.manual_seed(1)
    config = TransformerConfig(
        vocabulary_size=len(vocabulary(".")), layers=1, width=16, heads=2, max_positions=40, initializer_range=0.5
    )
    return UnifiedModel.for_language(config)


def scored(path, core=None) -> OfficialScores:
    scores = OfficialScores("texts", str(path))
    scores.write_with(core or model(), vocabulary("."), "cloze", path.parent, LENGTHS)
    return scores


@pytest.mark.parametrize("training", [True, False])
def test_the_model_stays_in_its_mode_and_writes_as_it_was_trained(path, training):
    core = model().train(training)
    writer = scored(path, core).writer
    assert core.training is training and writer.handle.model is core and writer.task is TASKS["texts"]
    assert writer.handle.lengths == LENGTHS and writer.handle.writes == "cloze"
    assert writer.handle.folder == path.parent and writer.config.max_length == 4 and writer.max_source_tokens == 2


def test_texts_are_scored_as_the_trained_model_is_scored_afterwards(path):
    """Whichever batches the items come in, and in whatever order."""
    core = model().eval()
    scores = scored(path, core)
    logs = [scores.add({"id": torch.tensor(numbers)}) for numbers in ([3, 0], [4], [1, 2])]
    assert [log["share"] for log in logs] == [2 / 5, 1 / 5, 2 / 5] and all(set(log) == {"share"} for log in logs)
    metrics.reset()
    with metrics.aggregate("valid", new_root=True) as found:
        scores.log([{**logs[0], "loss": 1.0}, {"loss": 2.0}, *logs[1:]])
    handle = UnifiedLM(core, vocabulary("."), tokenizer("."), "cloze", path.parent, LENGTHS)
    writer = Writer(handle, TASKS["texts"])
    texts = list(writer.predict(ITEMS))
    expected = writer.scored(ITEMS, texts).scores()
    values = found.get_smoothed_values()
    assert {name: values[name] for name in writer.task.measures} == {
        name: round(expected[name], 2) for name in writer.task.measures
    }
    assert len({text["text"] for text in texts}) > 1
    assert scores.predictions.found == {("", n): text for n, text in enumerate(texts)}
    assert scores.predictions.split == "valid" and [*scores.predictions.items] == ["valid"]


def test_without_a_batch_nothing_is_logged(path):
    scores = scored(path)
    metrics.reset()
    with metrics.aggregate("valid", new_root=True) as found:
        scores.log([{"loss": 1.0}])
        scores.log([])
    assert found.get_smoothed_values() == {}


def test_the_texts_of_the_last_validation_are_forgotten(path):
    scores = scored(path)
    scores.add({"id": torch.tensor([1])})
    assert len(scores.predictions.found) == 1
    scores.begin()
    assert scores.predictions.found == {} and scores.predictions.split is None


def test_measures_are_those_of_the_task(path):
    scores = scored(path)
    assert type(scores.predictions) is Predictions and scores.predictions.names() == [*TASKS["texts"].measures]
