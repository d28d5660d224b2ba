"""Coreference through fairseq-train: a synthetic task is learnt, with a rate of its own for the head."""

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from tests.integration.tasks.test_understanding import TASK, folder, validations
from tests.support import fairseq_runs as fairseq
from unified import load
from unified.data.vocabulary import Vocabulary
from unified.inference.sequences import Codec
from unified.tasks.heads import Coreference
from unified.tasks.heads.documents import DocumentItem
from unified.tokenization.wordpiece import WordPieceTokenizer

NAMES, VERBS = [f"n{i}" for i in range(4)], [f"v{i}" for i in range(10)]
WORDS = [*NAMES, *VERBS, "the", "himself", "."]
TINY = (
    "--arch", "bert_tiny", "--criterion", "unified_understanding", "--width", 16, "--layers", 1,
    "--initializer-range", 0.05, "--tokens-per-sample", 32,
    "--dropout", 0, "--attention-dropout", 0, "--clip-norm", 1, "--cpu", "--log-format", "json",
    "--no-epoch-checkpoints", "--no-export", "--num-workers", 0, "--seed", 3,
    "--head", "coreference(hidden=64, features=8, dropout=0.0, max_width=2, max_windows=2, spans_per_word=0.8)",
)  # fmt: skip


def document(name: str, rng: np.random.Generator) -> DocumentItem:
    """Sentences such as "n1 v3 the n2 ." and "the n4 v1 himself ."; names are chains, himself is the first."""
    sentences, chains, word = [], {}, 0
    for _ in range(rng.integers(4, 9)):
        first, second = rng.choice(NAMES, 2)
        words = []
        for who, itself, end in ((first, False, rng.choice(VERBS)), (second, rng.random() < 0.3, ".")):
            who, mention = (first, ["himself"]) if itself else (who, [["the"], []][rng.integers(2)] + [who])
            chains.setdefault(who, []).append((word, word + len(mention) - 1))
            words += [*mention, end]
            word += len(mention) + 1
        sentences.append(tuple(map(str, words)))
    linked = tuple(tuple(chain) for chain in chains.values() if len(chain) > 1)
    return DocumentItem(name, tuple(sentences), chains=linked)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    items = [document(str(i), rng) for i in range(330)]
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS], lowercase=False)
    split = {"train": items[30:], "valid": items[:30]}
    return folder(tmp_path_factory.mktemp("coreference") / "data", split, tokenizer, Vocabulary(WORDS))


def train(data, save, *arguments):
    return fairseq.run("train", data, *TASK, *TINY, "--save-dir", save, *arguments)


def test_synthetic_chains_are_learnt(tmp_path, data):
    """Training reads two windows of each document; validation reads them all, in batches of one document or more."""
    result = train(
        data, tmp_path / "save", "--batch-size", 1, "--batch-size-valid", 7, "--optimizer", "unified_adam",
        "--lr", 1e-2, "--head-lr", 8e-3, "--lr-scheduler", "polynomial_decay", "--warmup-updates", 60,
        "--total-num-update", 600, "--max-epoch", 2,
        "--best-checkpoint-metric", "average_f1", "--maximize-best-checkpoint-metric",
    )  # fmt: skip
    last = validations(result)[-1]
    assert float(last["valid_average_f1"]) >= 97 and float(last["valid_mentions_recall"]) >= 97
    settings = torch.load(tmp_path / "save" / "checkpoint_last.pt", weights_only=True)["extra_state"]
    kept = settings["UnifiedUnderstandingTask"]["coreference"]
    handle = load(tmp_path / "save" / "checkpoint_last.pt", data=data)
    chains = handle.resolve(["the n1 v2 n3 .", ["n1", "v4", "himself", "."]])
    assert chains == [["the n1", "n1", "himself"]]
    assert kept["head"] == "coreference" and kept["settings"]["hidden"] == 64


def test_gradients_that_are_too_small_for_their_format_are_none(data):
    """Gradients of ruled out antecedents are denormal; their backward passes took up to 60 times as long."""
    from fairseq_plugins.tasks.unified_understanding import UnifiedUnderstandingTask

    options = {"data": str(data), "head": "coreference", "max_valid_steps": None}
    options |= {"best_checkpoint_metric": "loss", "maximize_best_checkpoint_metric": False, "auxiliary_masking": 0.0}
    options |= {"average_measures": ""}
    tiny, small = torch.full((8,), 1e-20), torch.full((8,), 1e-19)
    torch.set_flush_denormal(False)
    try:
        assert (tiny * small > 0).all()
        UnifiedUnderstandingTask.setup_task(OmegaConf.create(options))
        assert (tiny * small == 0).all()
    finally:
        torch.set_flush_denormal(False)


def test_heads_have_a_rate_of_their_own():
    """A step of Adam moves every parameter by its rate, whatever its gradient; resumed, the rates asked for count."""
    from fairseq_plugins.optimizer import UnifiedAdam, UnifiedAdamConfig
    from fairseq_plugins.parameter_groups import Role

    def build(lr, head_lr):
        parameters = [torch.nn.Parameter(torch.zeros(3)) for _ in range(4)]
        for parameter in parameters[1::2]:
            parameter.param_group = Role(head=True)
        config = OmegaConf.create({**vars(UnifiedAdamConfig()), "lr": [lr], "head_lr": head_lr})
        return parameters, UnifiedAdam(config, parameters)

    parameters, optimizer = build(1e-3, 5e-2)
    for factor in (1.0, 0.5):  # what a schedule does
        before = [parameter.detach().clone() for parameter in parameters]
        optimizer.set_lr(1e-3 * factor)
        assert optimizer.get_lr() == 1e-3 * factor
        for parameter in parameters:
            parameter.grad = torch.tensor([1.0, -2.0, 3.0])
        optimizer.step()
        for i, (parameter, old) in enumerate(zip(parameters, before, strict=True)):
            step = factor * (5e-2 if i % 2 else 1e-3)
            torch.testing.assert_close(parameter.detach() - old, torch.tensor([-step, step, -step]), rtol=1e-4, atol=0)
    _, other = build(2e-3, 2e-2)  # resumed with other rates, which count
    other.load_state_dict(optimizer.state_dict(), {"lr": 2e-3})
    other.set_lr(4e-3)
    assert [group["lr"] for group in other.param_groups] == pytest.approx([4e-3, 4e-2])
    assert all(torch.equal(a["exp_avg"], b["exp_avg"]) for a, b in zip(
        other.state_dict()["state"].values(), optimizer.state_dict()["state"].values(), strict=True))  # fmt: skip
    with pytest.raises(SystemExit, match="--lr must be above 0, got 0"):
        build(0.0, 1e-2)
    for name in ("head_lr", "head_weight_decay"):
        settings = {**vars(UnifiedAdamConfig()), "lr": [1e-3], "decay_biases_and_norms": True, name: 1e-2}
        said = f"--{name.replace('_', '-')}: no parameters of a head; .* with --fp16 it needs --fp16-no-flatten-grads"
        with pytest.raises(SystemExit, match=said):
            UnifiedAdam(OmegaConf.create(settings), [torch.nn.Parameter(torch.zeros(3))])


def test_epochs_of_training_read_other_runs():
    from fairseq_plugins.items import ItemFairseqDataset, TrainingOrder

    rng = np.random.default_rng(1)
    items = [document(str(i), rng) for i in range(40)]
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS], lowercase=False)
    encoded = Coreference().encode(items, Codec(tokenizer, Vocabulary(WORDS), 12))

    def epochs(seed, longest_run):
        order = TrainingOrder(seed, longest_run=longest_run)
        dataset = ItemFairseqDataset(encoded, True, 12, Vocabulary(WORDS).special, "train", "x", order)
        for epoch in (1, 2, 1):
            dataset.set_epoch(epoch)
            for index, unit in enumerate(dataset.units):
                assert dataset.size(index) == sum(len(encoded.examples[member].tokens) for member in unit)
            yield [unit.tolist() for unit in dataset.units]

    first, second, again = epochs(3, 2)
    assert first == again != second and max(map(len, first)) == 2
    assert all(set(encoded.owners[unit]) == {i} for i, unit in enumerate(first))
    whole, *_ = epochs(3, None)
    assert sum(map(len, whole)) == len(encoded.examples) > sum(map(len, first))
