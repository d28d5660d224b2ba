"""`unified.train` and fairseq-train make the same updates: batches, initial weights, dropout, losses."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import unified
from tests.golden import data, training
from unified import UnifiedLM
from unified.data.prepared_folder import DataFolder
from unified.data.token_files import TokenFile
from unified.errors import UnifiedError
from unified.files.locks import locked_file
from unified.model import TransformerConfig
from unified.objectives import parse_objectives
from unified.training.pretraining import Pretraining, preset_named, sized
from unified.training.settings import TrainingSettings

MIXTURE = "bidirectional:2,seq2seq:2,left_to_right:1,spanbert:1"
OTHERS = "bert:1,right_to_left:1"
NUMBERS = {"tokens_per_sample": 64, "max_tokens": 256, "update_freq": 2, "lr": 2e-3, "seed": 3}


def by_fairseq(folder: Path, save: Path, objectives: str, updates: int, *more: object, **numbers) -> dict:
    """Losses of each update by name, by the command of `unified pretrain` with a narrower model."""
    settings = TrainingSettings(max_update=updates, **{**NUMBERS, **numbers}).checked()
    mixture = parse_objectives(objectives)
    run = Pretraining(DataFolder.open(str(folder), None, None), preset_named("tiny"), mixture, save, settings)
    path, *options = run.command(cards=0)
    options += ["--width", 32, "--heads", 2, "--log-interval", 1, "--log-format", "json", *more]
    return training.train(Path(path), save, *options)[0]


def narrow(objectives: str = MIXTURE) -> TransformerConfig:
    """The model of :func:`by_fairseq`, of any vocabulary."""
    preset = sized(preset_named("tiny"), 0, NUMBERS["tokens_per_sample"], parse_objectives(objectives))
    return replace(preset, width=32, heads=2, feed_forward=128)


def by_loop(model, folder: Path, objectives: str, updates: int, **others) -> UnifiedLM:
    return unified.train(model, folder, objectives, updates=updates, device="cpu", **{**NUMBERS, **others})


def require_equal(lm: UnifiedLM, losses: dict[str, list[float]]) -> None:
    own: dict[str, list[float]] = {}
    for row in lm.history:
        for name, value in row.items():
            own.setdefault(name, []).append(value)
    names = {name for name in losses if name.endswith("loss")}
    assert len(names) > 1 and {name for name in own if name.endswith("loss")} == names
    for name in names:
        torch.testing.assert_close(torch.tensor(own[name]), torch.tensor(losses[name]), rtol=1e-5, atol=0)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    return data.documents(tmp_path_factory.mktemp("loop"))


@pytest.fixture(scope="module")
def first(documents, tmp_path_factory):
    """100 updates of fairseq-train: its folder and its losses."""
    save = tmp_path_factory.mktemp("fairseq")
    return save, by_fairseq(documents, save, MIXTURE, 100)


def test_a_hundred_updates_have_the_losses_of_fairseq_train(documents, first):
    save, losses = first
    assert len(losses["loss"]) == 100 and losses["loss"][-1] < losses["loss"][0] - 3
    lm = by_loop(narrow(), documents, MIXTURE, 100)
    assert lm.model.config.dropout > 0 and [row["update"] for row in lm.history] == list(range(1, 101))
    require_equal(lm, losses)
    trained = UnifiedLM.from_pretrained(save)
    assert trained.writes == lm.writes and trained.model.config == lm.model.config
    for name, value in trained.model.state_dict().items():
        torch.testing.assert_close(lm.model.state_dict()[name], value, rtol=1e-3, atol=1e-5)


def test_training_goes_on_from_a_model_which_does_not_change(documents, first, tmp_path):
    lm = UnifiedLM.from_pretrained(first[0])
    before = {name: value.clone() for name, value in lm.model.state_dict().items()}
    more = ("--finetune-from-model", first[0] / "checkpoint_last.pt")
    require_equal(by_loop(lm, documents, OTHERS, 12), by_fairseq(documents, tmp_path, OTHERS, 12, *more))
    assert all(torch.equal(value, before[name]) for name, value in lm.model.state_dict().items())


def test_pairs_are_cut_as_fairseq_train_cuts_them(tmp_path, capsys):
    folder = data.pairs(tmp_path)
    rows = {"tokens_per_sample": 24, "max_tokens": 120, "update_freq": 1, "warmup_updates": 0}
    losses = by_fairseq(folder, tmp_path / "fairseq", "target_cloze:2,target_next:1", 12, **rows)
    capsys.readouterr()
    lm = by_loop(narrow("target_cloze"), folder, "target_cloze:2,target_next:1", 12, **rows)
    require_equal(lm, losses)
    lengths, most = TokenFile(folder / "train.source-target.source").sizes - 1, lm.lengths.max_source
    said = f"train: {(lengths > most).sum()} of {len(lengths)} sources are cut to their first {most} tokens"
    assert capsys.readouterr().err.count(f"{said} (so that pairs fit into rows of 24 tokens)\n") == 1
    trained = UnifiedLM.from_pretrained(tmp_path / "fairseq")
    assert lm.lengths == trained.lengths and lm.lengths.max_source > 0
    assert lm.generate(["the tree"], max_length=3) and lm.history[0]["lr"] == NUMBERS["lr"]


def test_the_model_is_saved_and_random_numbers_of_others_are_left_alone(documents, tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    lm = by_loop("tiny", documents, None, 3, output=tmp_path / "model", save_every=2)
    assert torch.equal(torch.rand(3), expected)
    assert set(lm.history[0]) > {"update", "lr", "loss", "right_to_left_loss"}  # the default: UniLM's mixture
    read = UnifiedLM.from_pretrained(tmp_path / "model")
    assert read.fill_mask("the <mask> tree", top=2) == lm.fill_mask("the <mask> tree", top=2)
    assert read.generate(["the"], max_length=4) == lm.generate(["the"], max_length=4)
    with pytest.raises(UnifiedError, match="model: not empty; name a new folder"):
        by_loop("tiny", documents, None, 3, output=tmp_path / "model")
    with locked_file(tmp_path / ".other.lock", tmp_path / "other"):
        with pytest.raises(UnifiedError, match="other: a command is at work on it; wait for its end"):
            by_loop("tiny", documents, None, 3, output=tmp_path / "other")
    assert {path.name for path in tmp_path.iterdir()} == {"model", ".other.lock"}


def test_a_stopped_training_leaves_the_last_saved_model(documents, tmp_path, monkeypatch):
    clip, updates = torch.nn.utils.clip_grad_norm_, []

    def stopping(*arguments):
        updates.append(arguments)
        if len(updates) == 4:
            raise KeyboardInterrupt
        return clip(*arguments)

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", stopping)
    with pytest.raises(KeyboardInterrupt):
        by_loop(narrow(), documents, MIXTURE, 9, output=tmp_path / "model", save_every=2)
    assert len(updates) == 4 and UnifiedLM.from_pretrained(tmp_path / "model").fill_mask("<mask>", top=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"model": "smal"}, r"^model smal: no such model or folder \(did you mean 'small'\?\)"),
        ({"model": 3}, "^model must be the name of a preset, a TransformerConfig or a UnifiedLM"),
        ({"model": TransformerConfig(vocabulary_size=7)}, "^model: vocabulary_size is 7, but the dictionary"),
        ({"model": replace(narrow(), max_positions=63)}, "64 exceeds .*63"),
        ({"updates": 0}, "^updates must be at least 1, got 0"),
        ({"updates": 2.5}, "^updates must be an integer, got 2.5"),
        ({"lr": "1e-4"}, "^lr must be a number, got '1e-4'"),
        ({"save_every": 0}, "^save_every must be an integer of at least 1, got 0"),
        ({"objectives": ["masked_lm"]}, r"^objectives: expected one text, got "),
        ({"output": 3}, "^output: expected the path of a file or folder, got "),
        ({"data": None}, "^data: expected the path of a file or folder, got "),
        ({"max_tokens": 63}, "^max_tokens 63 is less than one row of tokens_per_sample 64"),
        ({"warmup_updates": 5}, "^warmup_updates must be from 0 to below updates 5, got 5"),
        ({"objectives": "target_cloze"}, "does not fit .*, which holds documents"),
        ({"device": "gpu"}, "^device gpu: PyTorch cannot compute there"),
        ({"data": "nowhere"}, "^nowhere: no such data folder"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_trained(documents, arguments, says):
    given = {"model": "tiny", "data": documents, "objectives": MIXTURE, "updates": 5, **NUMBERS}
    with pytest.raises(UnifiedError, match=says):
        unified.train(**{**given, **arguments})


def test_a_model_of_another_dictionary_is_refused(documents, first, tmp_path):
    lm = UnifiedLM.from_pretrained(first[0])
    with pytest.raises(UnifiedError, match="^model: its dictionary, from .*documents, is not that of the data"):
        unified.train(lm, data.pairs(tmp_path))


def test_an_ensemble_is_not_trained(documents, first):
    two = UnifiedLM.ensemble([first[0], first[0]])
    with pytest.raises(UnifiedError, match="^model: an ensemble of 2 models cannot be trained; give one of them"):
        unified.train(two, documents, MIXTURE, updates=5, **NUMBERS)
