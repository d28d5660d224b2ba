"""The command of fairseq-train that pre-trains, word for word."""

import pytest

from tests.support.token_files import write_documents
from unified.data.prepared_folder import DataFolder
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.training.pretraining import Pretraining
from unified.training.settings import TrainingSettings


@pytest.fixture
def folder(tmp_path):
    Vocabulary([f"w{number}" for number in range(40)]).save(tmp_path / "dict.txt")
    write_documents(tmp_path / "train", [[[5, 6, 7]]])
    return DataFolder.open(tmp_path, None, None)


def run(folder, model="unified_lm_small", objectives="bidirectional", **numbers):
    settings = TrainingSettings(**{"max_update": 1000, **numbers}).checked()
    return Pretraining(folder, model, parse_objectives(objectives), folder.path / "run", settings)


def test_the_command_has_every_setting(folder):
    words = run(folder, update_freq=3, seed=7).command(cards=0)
    assert words == [
        str(folder.path),
        *("--task", "unified_lm", "--criterion", "unified_lm", "--arch", "unified_lm_small"),
        *("--objectives", "bidirectional:1", "--tokens-per-sample", "512", "--max-tokens", "16384"),
        *("--update-freq", "3", "--weight-decay", "0.01", "--clip-norm", "1.0"),
        *("--lr", "0.0003", "--lr-scheduler", "polynomial_decay", "--warmup-updates", "50"),
        *("--total-num-update", "1000", "--max-update", "1000"),
        *("--log-format", "json", "--log-interval", "20", "--num-workers", "1"),
        *("--save-interval-updates", "50", "--keep-interval-updates", "1", "--seed", "7"),
        *("--save-dir", str(folder.path / "run")),
        *("--optimizer", "unified_adam", "--adam-betas", "(0.9, 0.999)", "--adam-eps", "1e-6"),
        *("--no-epoch-checkpoints", "--fp16-no-flatten-grads", "--cpu", "--distributed-world-size", "1"),
    ]
    assert run(folder, update_freq=3, seed=7).command(cards=2) == words[:-3]


def test_a_twentieth_of_the_updates_lies_between_two_checkpoints_at_most(folder):
    for updates, interval in ((1, "1"), (20, "1"), (21, "2"), (1001, "51")):
        words = run(folder, max_update=updates).command(cards=1)
        assert words[words.index("--save-interval-updates") + 1] == interval


def test_positions_and_token_types_are_named_where_the_architecture_has_others(folder):
    for model, objectives, row, wanted in (
        ("unified_lm_small", "bidirectional", 512, {}),
        ("unified_lm_small", "bidirectional", 513, {"--max-positions": "513"}),
        ("bert_tiny", "seq2seq", 64, {"--token-types": "6"}),
        ("bert_tiny", "seq2seq", 1024, {"--max-positions": "1024", "--token-types": "6"}),
    ):
        words = run(folder, model, objectives, tokens_per_sample=row).command(cards=1)
        found = {words[i]: words[i + 1] for i in range(len(words)) if words[i] in ("--max-positions", "--token-types")}
        assert found == wanted
    assert run(folder, "bert_tiny", "seq2seq", tokens_per_sample=1024).config.vocabulary_size == len(
        folder.vocabulary()
    )


def test_a_warm_up_may_have_no_updates(folder):
    words = run(folder, warmup_updates=0).command(cards=1)
    assert words[words.index("--warmup-updates") + 1] == "0"


def test_rows_without_room_for_a_text_are_refused_unless_options_change_them(folder):
    short = run(folder, tokens_per_sample=1)
    for given in (set(), {"--lr", "--max-tokens"}):
        with pytest.raises(UnifiedError) as raised:
            short.check(given)
        assert str(raised.value) == (
            "--tokens-per-sample: rows of 1 token hold no text beside the special tokens of bidirectional"
        )
    for option in ("--tokens-per-sample", "--memory"):
        short.check({option, "--lr"})


def test_a_model_that_cannot_learn_an_objective_is_refused_unless_options_change_it(folder):
    says = "^--model bert_tiny: objective xlnet predicts by a query stream, .*; options of the model go into --fairseq$"
    for given in (set(), {"--lr", "--layer"}):
        with pytest.raises(UnifiedError, match=says):
            run(folder, "bert_tiny", "xlnet").check(given)
    run(folder, "bert_tiny", "xlnet").check({"--lr", "--positions"})
    run(folder, "bert_tiny", "xlnet").check({"--attention-windows"})
    run(folder, "xlnet_tiny", "xlnet").check(set())
