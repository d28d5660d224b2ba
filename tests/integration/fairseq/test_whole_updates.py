"""The loss of an update is of mean losses over all its predictions, into however many parts it is cut."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.logging import metrics
from fairseq.trainer import Trainer

from fairseq_plugins.criterions.unified_lm import UnifiedLMCriterion
from fairseq_plugins.criterions.unified_understanding import UnifiedUnderstandingCriterion
from fairseq_plugins.dataset import to_batch
from fairseq_plugins.items import ItemFairseqDataset
from fairseq_plugins.updates import update_of
from tests.golden import training
from tests.golden.data import MARKS
from tests.golden.data import task as golden_task
from tests.golden.plan import HEADS
from tests.support import fairseq_runs as fairseq
from tests.support.task_folders import WORDS, data_folder
from tests.support.understanding_runs import codec, run_batch, small_model
from unified.model import TransformerConfig, UnifiedModel
from unified.model.heads import LossSum, sum_of_means
from unified.tasks.heads import Classification, Tagging, parse_head
from unified.tasks.heads.items import TextItem, WordsItem

#: Objectives with very different numbers of predictions, and heads beside that of tokens.
MIXTURE = "bert:1,left_to_right:1,spanbert(scheme='subword'):1"
LOSSES = ("bert_loss", "bert_next_sentence_loss", "left_to_right_loss", "spanbert_loss", "spanbert_boundary_loss")
#: (--update-freq, rows of a micro-batch) of one process: 8 rows an update.
CUTS = ((1, 8), (2, 4), (4, 2), (8, 1))
# --curriculum: the rows of an update are the next eight, not whole batches in random order.
OPTIONS = (
    *fairseq.TINY, "--layers", 1, "--width", 32, "--heads", 2, "--boundary-offsets", 20, "--objectives", MIXTURE,
    "--max-epoch", 1, "--curriculum", 100, "--disable-validation", "--no-save",
)  # fmt: skip
#: Tasks with one prediction for each word and with one for each item.
TASKS = "tags=tagging(dropout=0.0), classes=classification(dropout=0.0)"
TASK_LOSSES = ("tags_loss", "classes_loss", "masked_loss")
TASK_OPTIONS = (
    "--task", "unified_understanding", "--criterion", "unified_understanding", "--arch", "bert_tiny", "--layers", 1,
    "--width", 32, "--heads", 2, "--dropout", 0, "--attention-dropout", 0, "--tokens-per-sample", 32,
    "--auxiliary-masking", 0.3, "--optimizer", "adam", "--lr", 1e-3, "--max-epoch", 1, "--curriculum", 100,
    "--disable-validation", "--no-save",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """22 rows: three updates of at most eight."""
    return fairseq.documents(tmp_path_factory.mktemp("documents"), np.random.default_rng(0), count=20)


@pytest.fixture(scope="module")
def cuts(data, tmp_path_factory):
    """From each cut to the losses of an epoch's updates by name, as they are, and the norms of their gradients."""
    folder = tmp_path_factory.mktemp("models")
    return {
        (frequency, rows): training.train(
            data, folder, "--task", "unified_lm", *OPTIONS, "--update-freq", frequency, "--batch-size", rows
        )[0]
        for frequency, rows in CUTS
    }


def require_equal(found, whole, losses):
    """Three updates have the same losses and the same norms of their gradients."""
    assert len(whole["loss"]) == len(whole["gnorm"]) == 3
    for name in ("loss", "gnorm", *losses):
        assert found[name] == pytest.approx(whole[name], rel=1e-5), name


@pytest.mark.parametrize("way", CUTS[1:], ids="{0[0]} x {0[1]} rows".format)
def test_losses_and_gradients_do_not_depend_on_micro_batches(cuts, way):
    require_equal(cuts[way], cuts[CUTS[0]], LOSSES)


def test_the_loss_of_an_update_is_the_sum_of_the_means_over_all_of_it(cuts):
    found = cuts[4, 2]
    assert found["loss"] == pytest.approx(np.sum([found[name] for name in LOSSES], axis=0), rel=1e-5)


def test_two_processes_give_what_one_gives(cuts, data, tmp_path):
    """In the epoch's last update they share three micro-batches: the second has one, and an empty one behind it."""
    arguments = (*OPTIONS, "--update-freq", 2, "--batch-size", 2, "--log-interval", 1, "--save-dir", tmp_path)
    result = fairseq.in_processes(2, data, *fairseq.PLUGINS, *arguments, command="train_exactly")
    rows = fairseq.logged(result.stdout + result.stderr, "train_inner")
    whole = cuts[CUTS[0]]
    assert [float(row["gnorm"]) for row in rows] == pytest.approx(whole["gnorm"], rel=1e-5)
    for name in ("loss", *LOSSES):
        assert [float(row[name]) for row in rows] == pytest.approx(whole[name], rel=1e-5), name


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """A folder of two tasks: 12 items whose words have tags, then 10 that have a class."""
    rng, folder = np.random.default_rng(3), data_folder(tmp_path_factory.mktemp("tasks") / "data", {})
    texts = [rng.choice(WORDS, rng.integers(1, 25)).tolist() for _ in range(22)]
    tags = [WordsItem(str(i), tuple(t), tuple("ab"[int(w[1:]) % 2] for w in t)) for i, t in enumerate(texts[:12])]
    classes = [TextItem(str(i), " ".join(t), None, "ab"[len(t) % 2]) for i, t in enumerate(texts[12:])]
    data_folder(folder / "tags", {"train": tags})
    data_folder(folder / "classes", {"train": classes})
    return folder


def _task_losses(data, save, head, frequency, rows):
    """Losses of an epoch's updates by name, and the norms of their gradients."""
    cut = ("--update-freq", frequency, "--batch-size", rows)
    return training.train(data, save, *TASK_OPTIONS, "--head", head, *cut)[0]


@pytest.fixture(scope="module")
def two_tasks(tasks, tmp_path_factory):
    """Two heads: of three updates the second is of both. A batch is of one, so that none has all of its eight items."""
    save = tmp_path_factory.mktemp("models")
    return {(frequency, rows): _task_losses(tasks, save, TASKS, frequency, rows) for frequency, rows in CUTS[1:]}


@pytest.mark.parametrize("way", CUTS[2:], ids="{0[0]} x {0[1]} items".format)
def test_several_tasks_do_not_depend_on_micro_batches(two_tasks, way):
    require_equal(two_tasks[way], two_tasks[CUTS[1]], TASK_LOSSES)


def test_a_task_beside_masked_words_does_not_depend_on_micro_batches(tasks, tmp_path):
    whole, *others = (_task_losses(tasks / "tags", tmp_path, "tagging(dropout=0.0)", *way) for way in CUTS)
    assert len(whole["gnorm"]) == 2
    for found in others:
        for name in ("loss", "gnorm", "masked_loss"):
            assert found[name] == pytest.approx(whole[name], rel=1e-5), name


def test_the_mean_loss_of_a_task_counts_by_its_share_of_items():
    """An update of three items that have tags and of one that has a class: 3/4 of one mean and 1/4 of the other."""
    kinds = {"tags": Tagging(("a", "b"), 0.0), "classes": Classification(("a", "b"), dropout=0.0)}
    items = {
        "tags": [WordsItem(str(i), ("w1", "w2", "w3")[: i + 1], ("a", "b", "b")[: i + 1]) for i in range(3)],
        "classes": [TextItem("0", "w4 w5", None, "b")],
    }
    reads = codec(32)
    config = TransformerConfig(vocabulary_size=len(reads.vocabulary), layers=1, width=16, heads=2)
    core = UnifiedModel.for_tasks(config, {name: task.head(config) for name, task in kinds.items()}).eval()
    model = _Wrapped(core)

    def sample(name: str, numbers: list[int]) -> dict:
        encoded = kinds[name].encode(items[name], reads)
        return ItemFairseqDataset(encoded, False, None, reads.vocabulary.special, "train", name).collater(numbers)

    def mean(name: str) -> float:
        whole = sample(name, [*range(len(items[name]))])
        scores = model(to_batch(whole), whole["reading"], name)
        return float(torch.nn.functional.cross_entropy(scores, whole["reading"]["labels"]).detach())

    parts = [sample("tags", [0, 2]), sample("classes", [0]), sample("tags", [1])]
    settings = SimpleNamespace(auxiliary_masking=0.0)
    criterion = UnifiedUnderstandingCriterion(SimpleNamespace(tasks=kinds, cfg=settings))
    trainer = SimpleNamespace(get_model=lambda: model, device=torch.device("cpu"), data_parallel_world_size=1)
    criterion.update = update_of(criterion, trainer, parts)
    losses, sizes, _ = zip(*(criterion(model, part) for part in parts), strict=True)
    assert sizes == (4, 1, 2) and float(criterion.update.size) == 7
    with_empty = update_of(criterion, trainer, [*parts, {}])
    assert (with_empty.size, with_empty.totals) == (criterion.update.size, criterion.update.totals)
    assert float(sum(losses)) / 7 == pytest.approx(0.75 * mean("tags") + 0.25 * mean("classes"), rel=1e-5)


def test_sharded_parameters_are_refused():
    criterion = UnifiedUnderstandingCriterion(SimpleNamespace(tasks={}, cfg=SimpleNamespace(auxiliary_masking=0.0)))
    trainer = SimpleNamespace(is_fsdp=True, get_criterion=lambda: criterion)
    with pytest.raises(SystemExit, match="--ddp-backend fully_sharded is not supported"):
        Trainer.train_step(trainer, [{}])


class _Wrapped(torch.nn.Module):
    """A model of fairseq as far as its criterion knows it."""

    def __init__(self, core: UnifiedModel):
        super().__init__()
        self.core = core

    def forward(self, batch: object, reading: object, head: str) -> object:
        return self.core.scores(batch, reading, head)


@pytest.mark.parametrize("head", HEADS)
def test_what_a_loss_counts_is_known_before_there_are_scores(head, tmp_path):
    entry, reads = parse_head(head), codec(32, *MARKS)
    items = entry.head_class.read(golden_task(tmp_path, entry.head_class.name) / "valid.jsonl")[:6]
    task = entry.for_items(items)
    encoded = task.encode(items, reads)
    _, scores, reading = run_batch(small_model(task, reads), encoded, range(len(encoded.examples)), packed=True)
    assert task.loss_count(reading) == int(task.loss(scores, reading).count) > 0


def test_parts_of_an_update_add_up():
    def losses(totals: list[float], counts: list[int]) -> dict[str, LossSum]:
        zero = torch.tensor(0)
        parts = zip("ab", totals, counts, strict=True)
        return {name: LossSum(torch.tensor(total), torch.tensor(n), zero, zero) for name, total, n in parts}

    parts = losses([6.0, 1.0], [3, 1]), losses([2.0, 0.0], [1, 0])
    divisors = {"a": torch.tensor(4.0).double(), "b": torch.tensor(1.0).double()}
    assert sum(sum_of_means(part, divisors) for part in parts) == 8 / 4 + 1 / 1
    alone = sum_of_means(parts[1], {"a": torch.tensor(1.0).double(), "b": torch.tensor(0.0).double()})
    assert alone == 2.0 and alone.dtype == torch.float32, "what is not predicted adds nothing"


def test_a_logged_loss_is_the_summed_loss_over_the_summed_divisors_of_all_updates():
    """Updates differ in how many predictions share a divisor; a mean weighted by predictions would be 2.5 here."""
    parts = ("a:nll", "a:divisor", "a:count", "a:correct")
    updates = [dict(zip(parts, sums, strict=True)) for sums in ((4.0, 2.0, 1, 1), (18.0, 6.0, 1, 0))]
    with metrics.aggregate() as logged:
        for update in updates:
            UnifiedLMCriterion.reduce_metrics([update])
    assert logged["a_loss"].avg == pytest.approx(22 / 8 / math.log(2)) and logged["a_accuracy"].avg == 50


@pytest.mark.parametrize(
    "criterion, first, second",
    [
        (UnifiedLMCriterion, {"a:nll": 2.0, "a:divisor": 1.0, "a:count": 1, "a:correct": 0},
         {"a:nll": 0.0, "a:divisor": 0.0, "a:count": 0, "a:correct": 0}),
        (UnifiedUnderstandingCriterion,
         {"a:loss": 2.0, "a:count": 1, "a:correct": 1, "b:loss": 0.0, "b:count": 0, "b:correct": 0, "training": 1},
         {"a:loss": 0.0, "a:count": 0, "a:correct": 0, "b:loss": 1.0, "b:count": 2, "b:correct": 0, "training": 1}),
    ],
)  # fmt: skip
def test_every_line_of_a_log_has_the_names_of_all_losses(criterion, first, second):
    """So the first line after a restart has those of the uninterrupted run: what is not predicted is None."""
    with metrics.aggregate() as whole:
        criterion.reduce_metrics([first])
        whole.reset()
        criterion.reduce_metrics([second])
    with metrics.aggregate() as resumed:
        criterion.reduce_metrics([second])
    assert whole.get_smoothed_values() == resumed.get_smoothed_values()
    assert resumed.get_smoothed_values()["a_loss"] is None
