"""What is shown of a training's log while it runs and at its end; `--report-to`."""

import json

import pytest

from unified.cli.fairseq_train import report_options, run_command
from unified.errors import UnifiedError

WORDS = ["fairseq-train", "data", "--max-update", "1e2", "--lr", "1"]


def line(logger: str, content: object, level: str = "INFO") -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    return f"2026-01-01 10:00:00 | {level} | {logger} | {text}\n"


def validated(scores: dict[str, object]) -> str:
    """fairseq's line of a validation."""
    return line("valid", {f"valid_{name}": value for name, value in scores.items()})


LOG = [
    line("fairseq_cli.train", "{'_name': None, 'common': {}}"),
    "a library: a long warning\n",
    line("fairseq_plugins.tasks.unified_lm", "train: 3 of 9 sources are cut to their first 5 tokens (--max-source)"),
    line("first_updates", {"num_updates": 1, "loss": 31.4159, "bert_loss": 31.4159}),
    line("train_inner", {"epoch": 1, "loss": "20.5", "wps": "9", "num_updates": "100"}),
    line(
        "valid",
        {
            "epoch": 1,
            "valid_loss": "19.25",
            "valid_bert_loss": "19.25",
            "valid_bert_accuracy": "2",
            "valid_bert_ppl": "9",
            "valid_f1": "50.5",
            "valid_wps": "7",
            "valid_num_updates": "100",
            "valid_best_loss": "19.25",
        },
    ),
    line("train", {"epoch": 1, "train_loss": "22", "train_num_updates": "100"}),
]


def play(monkeypatch, lines: list[str]) -> None:
    """Replaces fairseq-train by a program that prints these lines and ends well."""

    def played(module, words, read):
        assert module == "fairseq_cli.train" and "fairseq-train" not in words
        for each in lines:
            read(each)
        return 0

    monkeypatch.setattr("unified.cli.fairseq_train.read_module", played)


def test_losses_and_scores_are_shown_and_everything_is_kept(tmp_path, monkeypatch, capsys):
    play(monkeypatch, LOG)
    run = tmp_path / "run"
    for _ in range(2):  # a resumed run
        run_command([*WORDS, "--save-dir", str(run)])
    assert (run / "train.log").read_text(encoding="utf-8") == "".join(LOG) * 2
    shown = capsys.readouterr().err.splitlines()
    assert shown[: len(shown) // 2] == [
        f"training on GPUs; fairseq-train logs to {run / 'train.log'}",
        "train: 3 of 9 sources are cut to their first 5 tokens (--max-source)",
        "training: 1 of 100 updates, loss 31.416",
        "training: 100 of 100 updates, loss 20.500, 0:00:00 left",
        "validation after 100 updates: loss 19.25, bert_loss 19.25, f1 50.5",
    ]


def test_the_score_that_selects_the_checkpoint_comes_first(tmp_path, monkeypatch, capsys):
    """fairseq logs the best of it so far, too, but for the first validation."""
    scores = {"loss": "3.8", "f1": "0", "best_f1": "8.64", "num_updates": "5"}
    log = [validated(scores), validated(scores | {"best_best_f1": "9"}), validated(scores | {"best_best_f1": "8.64"})]
    play(monkeypatch, log)
    run_command([*WORDS, "--save-dir", str(tmp_path), "--best-checkpoint-metric", "best_f1"])
    assert capsys.readouterr().err.splitlines()[1:4] == [
        "validation after 5 updates: best_f1 8.64 (the best so far), loss 3.8, f1 0",
        "validation after 5 updates: best_f1 8.64 (the best so far: 9), loss 3.8, f1 0",
        "validation after 5 updates: best_f1 8.64 (the best so far), loss 3.8, f1 0",
    ]


@pytest.mark.parametrize(
    ("scores", "options", "says"),
    [
        (
            [(0.5, 60), (0.9, 65), (0.9, 65), (2, 60)],
            ["--best-checkpoint-metric", "f1", "--maximize-best-checkpoint-metric"],
            "the best f1 was 65, after update 3 of 4 (checkpoint_best.pt), with a validation loss of 0.9; "
            "the lowest validation loss was 0.5, after update 1; at the end it is 2",
        ),
        (
            [(0.5, 3), (0.4, 1), (0.45, 1)],
            ["--best-checkpoint-metric", "f1"],
            "the lowest validation loss was 0.4, after update 2; at the end it is 0.45",
        ),
        ([(0.9, 60), (0.5, 65)], ["--best-checkpoint-metric", "f1", "--maximize-best-checkpoint-metric"], None),
        ([(0.9, 60), (0.5, 65), (0.51, 65)], [], None),  # it wavers
        (
            [(0.9, 60), (0.5, 65), (0.6, 65)],
            [],
            "the lowest validation loss was 0.5, after update 2; at the end it is 0.6",
        ),
    ],
)
def test_it_is_said_at_the_end_where_the_validations_were_best(tmp_path, monkeypatch, capsys, scores, options, says):
    play(
        monkeypatch,
        [validated({"loss": loss, "f1": f1, "num_updates": n}) for n, (loss, f1) in enumerate(scores, 1)],
    )
    run_command([*WORDS, "--save-dir", str(tmp_path), *options])
    said = capsys.readouterr().err.splitlines()[1 + len(scores) :]
    assert said == ([] if says is None else [says])


def test_it_is_said_what_losses_are(tmp_path, monkeypatch, capsys):
    for criterion, says in (
        ("unified_lm", "losses are in bits; the one"),
        ("unified_understanding", "a squared error"),
    ):
        play(monkeypatch, [])
        run_command([*WORDS, "--save-dir", str(tmp_path), "--criterion", criterion])
        assert says in capsys.readouterr().err.splitlines()[0]


def test_reports_go_to_the_service_that_is_named(tmp_path, monkeypatch):
    assert report_options(None, tmp_path) == []
    monkeypatch.setattr("unified.cli.fairseq_train.importlib.util.find_spec", lambda name: None)
    for tracker in ("tensorboard", "wandb"):
        with pytest.raises(UnifiedError, match=rf"--report-to {tracker} needs the library {tracker}.*\[track\]"):
            report_options(tracker, tmp_path)
    monkeypatch.setattr("unified.cli.fairseq_train.importlib.util.find_spec", lambda name: name)
    assert report_options("tensorboard", tmp_path) == ["--tensorboard-logdir", str(tmp_path / "tensorboard")]
    assert report_options("wandb", tmp_path) == ["--wandb-project", "unified"]
