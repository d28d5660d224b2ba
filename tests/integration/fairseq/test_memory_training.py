"""fairseq-train with a memory: the same numbers whatever the workers, processes and restarts."""

import shutil
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fairseq_plugins.memory import StreamMemory
from fairseq_plugins.tasks.unified_lm import UnifiedLMTask, UnifiedLMTaskConfig
from tests.support import fairseq_runs as fairseq
from unified import UnifiedLM

SYSTEM = (
    "--arch", "xlnet_tiny", "--inner-dropout", 0, "--objectives", "xlnet", "--memory", 40, "--normalize", "tokens",
    "--log-interval", 1, "--disable-validation",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return fairseq.documents(tmp_path_factory.mktemp("data"), np.random.default_rng(0), count=24)


def inner(result) -> list[tuple]:
    rows = fairseq.logged(result.stdout + result.stderr, "train_inner")
    return [(row["num_updates"], row["loss"], row["gnorm"]) for row in rows]


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """One process, four streams, two epochs with checkpoints on the way."""
    save = tmp_path_factory.mktemp("whole")
    arguments = (*SYSTEM, "--batch-size", 4, "--max-epoch", 2, "--save-interval-updates", 5, "--num-workers", 0)
    return save, inner(fairseq.train(data, save, *arguments))


def test_the_memory_is_read(data, whole, tmp_path):
    """The first update has none; with another length the same rows give other losses from the second on."""
    shorter = (*SYSTEM, "--memory", 8, "--batch-size", 4, "--max-update", 8, "--no-save")
    others = inner(fairseq.train(data, tmp_path, *shorter))
    assert others[0] == whole[1][0] and others[1:] != whole[1][1:8]


def test_one_way_attention_with_clamped_distances_trains_and_is_kept_in_the_checkpoint(data, whole, tmp_path):
    arguments = (*SYSTEM, "--attn-type", "uni", "--clamp-len", 9, "--batch-size", 4, "--max-epoch", 2, "--lr", 5e-3)
    losses = [float(loss) for _, loss, _ in inner(fairseq.train(data, tmp_path, *arguments))]
    assert np.mean(losses[-5:]) < losses[0] - 0.5
    assert losses[:3] != [float(loss) for _, loss, _ in whole[1][:3]]
    lm = UnifiedLM.from_pretrained(tmp_path / "checkpoint_last.pt", data=data)
    assert (lm.model.config.attn_type, lm.model.config.clamp_len) == ("uni", 9)
    (written,) = lm.generate(["w1 w2 w3"], max_length=12)
    assert written.startswith("w1 w2 w3 w")


def test_rotary_positions_with_windows_have_a_memory_too(data, tmp_path):
    """Another length of memory changes the losses from the second update on, and the model continues prompts."""
    modern = ("--arch", "modern_tiny", "--attention-windows", "0,9", "--batch-size", 4, "--max-update", 6)
    longer, shorter = (
        inner(fairseq.train(data, tmp_path / str(length), *SYSTEM[4:], *modern, "--memory", length))
        for length in (40, 8)
    )
    assert longer[0] == shorter[0] and longer[1:] != shorter[1:]
    lm = UnifiedLM.from_pretrained(tmp_path / "40" / "checkpoint_last.pt", data=data)
    assert (lm.model.config.windows, lm.model.config.token_types, lm.writes) == ((0, 9), 0, "permutation")
    (written,) = lm.generate(["w1 w2 w3"], max_length=12)
    assert written.startswith("w1 w2 w3 w")


def test_restart_goes_on_exactly_with_workers_too(data, whole, tmp_path):
    save, expected = whole
    shutil.copy(save / "checkpoint_1_10.pt", tmp_path / "checkpoint_last.pt")
    memory = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["extra_state"]["UnifiedLMTask"]["memory"]
    assert [[tuple(states.shape) for states in process] for process in memory] == [[(4, 40, 64)] * 2]
    arguments = (*SYSTEM, "--batch-size", 4, "--max-epoch", 2, "--save-interval-updates", 5, "--num-workers", 2)
    after = inner(fairseq.train(data, tmp_path, *arguments))
    assert len(after) == len(expected) - 10 and after == expected[10:]
    one, two = (torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"] for folder in (save, tmp_path))
    assert all(torch.equal(one[key], two[key]) for key in one)


def test_two_processes_go_on_from_one_of_twice_the_batch_and_restart_exactly(data, whole, tmp_path):
    """The streams of one process are divided among two, with their memory."""
    saved, expected = whole
    arguments = (*fairseq.PLUGINS, *fairseq.TINY, *SYSTEM, "--batch-size", 2, "--max-epoch", 2, "--save-dir", tmp_path)

    def both():
        return inner(fairseq.in_processes(2, data, *arguments, "--save-interval-updates", 5))

    shutil.copy(saved / "checkpoint_1_10.pt", tmp_path / "checkpoint_last.pt")
    full = both()
    assert len(full) == len(expected) - 10
    for (update, loss, norm), (expected_update, expected_loss, expected_norm) in zip(full, expected[10:], strict=True):
        assert update == expected_update
        assert float(loss) == pytest.approx(float(expected_loss), abs=2e-3)
        assert float(norm) == pytest.approx(float(expected_norm), rel=2e-3, abs=2e-3)
    shutil.copy(tmp_path / "checkpoint_1_15.pt", tmp_path / "checkpoint_last.pt")
    memory = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["extra_state"]["UnifiedLMTask"]["memory"]
    assert [[tuple(states.shape) for states in process] for process in memory] == [[(2, 40, 64)] * 2] * 2
    assert both() == full[5:]


def test_a_restart_with_another_number_of_streams_goes_on_without_memory(data, whole, tmp_path):
    """It is said once; the epoch goes on behind as much text, and then comes the next."""
    shutil.copy(whole[0] / "checkpoint_1_10.pt", tmp_path / "checkpoint_last.pt")
    arguments = (*SYSTEM, "--batch-size", 3, "--max-epoch", 1, "--no-save")
    result = fairseq.train(data, tmp_path, *arguments)
    assert (result.stdout + result.stderr).count("memory is that of 4 streams, this run has 3") == 1
    rows = fairseq.logged(result.stdout + result.stderr, "train_inner")
    steps = [round(1 / (float(row["update"]) - float(last["update"]))) for last, row in pairwise(rows[:3])]
    left = [int(updates) for updates, *_ in inner(result)]
    assert left == [*range(11, 11 + len(left))] and len(left) == steps[0] - -(-10 * 4 // 3)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("--positions", "learned", "--memory", 0), "predicts by a query stream, which needs a model with relative"),
        (
            ("--objectives", "xlnet(denoising=True)", "--positions", "learned"),
            "--memory 40 needs a model with relative",
        ),
        (("--objectives", "xlnet,spanbert"), "streams of running text serve one objective"),
        (("--objectives", "spanbert(scheme='subword')"), "reads single texts; a memory needs one that reads streams"),
        (("--memory", -1), "--memory must be at least 0"),
        (("--padded",), "--memory 40: streams of running text have no padding; leave --padded out"),
        (("--batch-size", 2000), "too few for 2000 streams of rows of 64; lower --batch-size"),
        (("--objectives", "xlnet(reuse=60)"), "reuse 60 leaves no room for two segments"),
    ],
)
def test_refusals_are_one_line_without_traceback(data, tmp_path, arguments, says):
    command = (data, *fairseq.PLUGINS, *fairseq.TINY, "--save-dir", tmp_path, *SYSTEM, "--batch-size", 4)
    assert says in fairseq.refusal_to_train(*command, *arguments)


class Watched:
    """A criterion that notes the memory of each sample and leaves states of the batch's rows in it."""

    def __init__(self):
        self.filled = []

    def __call__(self, model, sample):
        memory, rows = sample.get("memory"), len(sample["id"])
        self.filled.append(None if memory is None else memory.filled)
        if memory is not None:
            memory.update([torch.zeros(rows, 64, 2)])
        return model.weight.sum(), 1, {}


@pytest.fixture
def task(data, tmp_path):
    """On two shards, of which the second is the first again."""
    shutil.copytree(data, tmp_path / "again")
    settings = UnifiedLMTaskConfig(
        data=f"{data}:{tmp_path / 'again'}", objectives="xlnet", memory=40, tokens_per_sample=64, seed=7,
        max_tokens=None, update_freq=[1], best_checkpoint_metric="loss", maximize_best_checkpoint_metric=False,
    )  # fmt: skip
    return UnifiedLMTask.setup_task(settings)


def batches(task, epoch, **keywords):
    task.load_dataset("train", epoch=epoch)
    iterator = task.get_batch_iterator(task.dataset("train"), seed=7, epoch=epoch, **keywords)
    return list(iterator.next_epoch_itr(shuffle=True))


@pytest.mark.parametrize(
    "size", [{"max_sentences": 4}, {"max_tokens": 4 * 64 + 63}, {"max_tokens": 999, "max_sentences": 4}]
)
def test_every_process_has_its_streams_in_order_and_whole_batches(task, size):
    for epoch in (1, 2):
        for shard in range(3):
            found = batches(task, epoch, num_shards=3, shard_id=shard, **size)
            rows = task.dataset("train").rows
            assert len(found) == rows.steps > 3 and rows.streams == 12
            expected = [list(range(12 * step + 4 * shard, 12 * step + 4 * shard + 4)) for step in range(rows.steps)]
            assert [sample["id"].tolist() for sample in found] == expected
            assert [sample["starts_streams"] for sample in found] == [True] + [False] * (rows.steps - 1)


def test_memory_goes_on_by_training_alone_and_ends_with_the_epoch(task):
    """Dummy and validation batches neither read it nor enter it; the next shard's streams begin without one."""
    seen, model = Watched(), torch.nn.Linear(2, 2)
    model.set_num_updates = lambda updates: None
    optimizer = SimpleNamespace(backward=lambda loss: None)
    for epoch in (1, 2):
        for sample in batches(task, epoch, max_sentences=4)[:3]:
            task.train_step(sample, model, seen, optimizer, 0)
            task.train_step(sample, model, seen, optimizer, 0, ignore_grad=True)
            task.valid_step(sample, model, seen)
    assert seen.filled == [0, None, None, 32, None, None, 40, None, None] * 2


def test_memory_of_a_checkpoint_becomes_the_models_precision_and_must_have_its_streams(caplog):
    saved = [[torch.randn(2, 5, 2)], [torch.randn(2, 5, 2)]]
    sample = {"starts_streams": False, "batch": {"tokens": torch.zeros(4, 8)}}
    for dtype in (torch.float16, torch.float32):
        memory = StreamMemory(8, 4)
        memory.load(saved)
        memory.gather()
        assert torch.equal(torch.cat([process[0] for process in memory.state()]), torch.cat([saved[0][0], saved[1][0]]))
        states = memory.attach(sample, torch.zeros(1, dtype=dtype))["memory"].states
        assert states[0].dtype == dtype
        assert torch.equal(states[0], torch.cat([saved[0][0], saved[1][0]]).to(dtype))
    assert not caplog.records
    memory.load(saved)
    attached = memory.attach({**sample, "batch": {"tokens": torch.zeros(3, 8)}}, torch.zeros(1))
    assert attached["memory"].filled == 0
    assert "memory is that of 4 streams, this run has 3" in caplog.text
