"""fairseq-train with the plug-ins: resuming, several processes, validation, fine-tuning, refusals."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
import torch

from tests.support import fairseq_runs as fairseq
from unified import UnifiedLM
from unified.errors import UnifiedError
from unified.objectives import parse_objectives

#: All objectives that learned positions and a folder without a tokenizer serve.
EVERYTHING = (
    "bidirectional,left_to_right,right_to_left,seq2seq,bert,spanbert(scheme='subword'),random_spans,bert_style,mass_style,"
    "prefix_lm,deshuffling,replace_spans,drop_tokens,anna(scheme='token')"
)
MIXTURE = ("--objectives", "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return fairseq.documents(tmp_path_factory.mktemp("documents"), np.random.default_rng(0))


@pytest.fixture(scope="module")
def pretrained(data, tmp_path_factory):
    """A finished short pre-training run: (save folder, its output)."""
    save = tmp_path_factory.mktemp("pretrained")
    result = fairseq.train(data, save, *MIXTURE, "--batch-size", 4, "--max-epoch", 2, "--log-interval", 1)
    return save, result.stdout + result.stderr


def losses(text: str) -> list[tuple]:
    """Everything deterministic that a run logged, update by update."""
    volatile = ("wps", "ups", "wall", "train_wall", "gb_free", "epoch", "update")
    rows = fairseq.logged(text, "train_inner")
    return [tuple(sorted((key, value) for key, value in row.items() if key not in volatile)) for row in rows]


def test_every_objective_is_logged_under_its_own_name(pretrained):
    rows = fairseq.logged(pretrained[1], "train")
    for name in ("bidirectional", "seq2seq", "left_to_right", "right_to_left", "bidirectional_next_sentence"):
        assert all(f"train_{name}_{kind}" in rows[-1] for kind in ("loss", "ppl", "accuracy")), rows[-1].keys()
    assert "train_seq2seq_next_sentence_loss" not in rows[-1]


def test_loss_is_the_sum_of_the_objectives_means(pretrained):
    names = ("bidirectional", "seq2seq", "left_to_right", "right_to_left", "bidirectional_next_sentence")
    row = fairseq.logged(pretrained[1], "train_inner")[0]
    total = sum(float(row[f"{name}_loss"] or 0.0) for name in names)  # None: no example of it
    assert float(row["loss"]) == pytest.approx(total, abs=5e-3)


def test_the_loss_of_a_validation_is_the_sum_of_the_objectives_means_over_all_batches(pretrained):
    names = ("bidirectional", "seq2seq", "left_to_right", "right_to_left", "bidirectional_next_sentence")
    rows = fairseq.logged(pretrained[1], "valid")
    assert len(rows) == 2
    for row in rows:
        assert float(row["valid_loss"]) == pytest.approx(
            sum(float(row[f"valid_{name}_loss"]) for name in names), abs=5e-3
        )


def test_objectives_whose_examples_grow_train_beside_others(data, tmp_path):
    objectives = "random_spans:2,deshuffling,replace_spans(closing_sentinel=True),bidirectional"
    settings = ("--objectives", objectives, "--batch-size", 8, "--max-epoch", 2, "--lr", 3e-3)
    result = fairseq.train(data, tmp_path, *settings)
    rows = fairseq.logged(result.stdout + result.stderr, "train")
    for name in ("random_spans", "deshuffling", "replace_spans", "bidirectional"):
        assert float(rows[-1][f"train_{name}_loss"]) < float(rows[0][f"train_{name}_loss"]), name
    checkpoint = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    assert checkpoint["cfg"]["model"]["writes"] == "next"


@pytest.mark.parametrize(
    "body",
    [("--arch", "xlnet_tiny", "--inner-dropout", 0), ("--arch", "modern_tiny", "--attention-windows", "0,16")],
    ids=["relative positions", "rotary positions"],
)
def test_objectives_of_every_system_share_one_model_and_its_batches(data, tmp_path, body):
    """Query stream, boundaries, next sentences, sentinels and all directions, on one body."""
    names = ("xlnet", "bert", "spanbert", "random_spans", "left_to_right", "anna")
    objectives = "xlnet:2,bert:2,spanbert(scheme='subword'),random_spans,left_to_right,anna(scheme='token')"
    settings = (*body, "--objectives", objectives, "--batch-size", 16)
    result = fairseq.train(data, tmp_path, *settings, "--max-epoch", 3, "--lr", 3e-3)
    rows = fairseq.logged(result.stdout + result.stderr, "train")
    for name in (*names, "spanbert_boundary"):
        assert float(rows[-1][f"train_{name}_loss"]) < float(rows[0][f"train_{name}_loss"]), name
    assert torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["cfg"]["model"]["writes"] == "permutation"


def test_spanbert_brings_its_head_along_and_needs_word_starts(data, tmp_path):
    arguments = ("--objectives", "spanbert(scheme='subword', boundary_offsets=5):2,seq2seq", "--batch-size", 8)
    result = fairseq.train(data, tmp_path / "spans", *arguments, "--max-epoch", 2, "--lr", 3e-3)
    rows = fairseq.logged(result.stdout + result.stderr, "train")
    for name in ("spanbert", "spanbert_boundary", "seq2seq"):
        assert float(rows[-1][f"train_{name}_loss"]) < float(rows[0][f"train_{name}_loss"]), name
    assert "train_seq2seq_boundary_loss" not in rows[-1]
    last = tmp_path / "spans" / "checkpoint_last.pt"
    assert UnifiedLM.from_pretrained(last).model.config.boundary_offsets == 5
    # The head is left out where no objective needs it, and says so.
    result = fairseq.train(
        data, tmp_path / "on", "--objectives", "seq2seq", "--batch-size", 8, "--max-update", 1,
        "--finetune-from-model", last,
    )  # fmt: skip
    unused = [line for line in (result.stdout + result.stderr).splitlines() if "unused, left out" in line]
    assert len(unused) == 1 and "heads.boundary (" in unused[0]
    # This folder has no tokenizer, so nobody knows where words begin.
    result = fairseq.train(data, tmp_path / "words", "--objectives", "spanbert", "--batch-size", 8, check=False)
    fairseq.assert_refused(result, "objective spanbert: scheme='geometric' needs to know where words begin")


@pytest.fixture(scope="module")
def shards(data, tmp_path_factory):
    """Two folders with one dictionary, as fairseq names several shards."""
    other = fairseq.documents(tmp_path_factory.mktemp("shard"), np.random.default_rng(8))
    (other / "dict.txt").write_text((data / "dict.txt").read_text(encoding="utf-8"), encoding="utf-8")
    return f"{data}:{other}"


def test_bert_trains_beside_others_over_shards_and_resumes(shards, tmp_path):
    objectives = ("--objectives", "bert:2,seq2seq,spanbert(scheme='subword')", "--batch-size", 4, "--log-interval", 1)
    result = fairseq.train(shards, tmp_path / "whole", *objectives, "--max-epoch", 2, "--lr", 3e-3)
    whole = result.stdout + result.stderr
    rows, valid = fairseq.logged(whole, "train"), fairseq.logged(whole, "valid")
    for name in ("bert", "seq2seq", "spanbert"):
        assert float(rows[-1][f"train_{name}_loss"]) < float(rows[0][f"train_{name}_loss"]), name
        assert float(valid[-1][f"valid_{name}_loss"]) < float(valid[0][f"valid_{name}_loss"]), name
    assert "train_bert_next_sentence_loss" in rows[-1] and "train_seq2seq_next_sentence_loss" not in rows[-1]
    parts = []
    for updates in (5, 11, 1000):
        result = fairseq.train(
            shards, tmp_path / "parts", *objectives, "--max-epoch", 2, "--lr", 3e-3, "--max-update", updates
        )
        parts += losses(result.stdout + result.stderr)
    assert parts == losses(whole)


def test_left_to_right_bert_learns_the_next_token(data, tmp_path):
    arguments = ("--arch", "bert_tiny", "--objectives", "bert(next_sentence=False, left_to_right=True)", "--padded")
    result = fairseq.train(data, tmp_path, *arguments, "--batch-size", 8, "--max-epoch", 2, "--lr", 3e-3)
    rows = fairseq.logged(result.stdout + result.stderr, "train")
    assert float(rows[-1]["train_bert_loss"]) < float(rows[0]["train_bert_loss"])


@pytest.mark.parametrize("arch", ["bert_tiny", "anna_tiny"])
def test_encoders_with_two_token_types_train_fill_gaps_and_do_not_write(data, tmp_path, arch):
    objectives = ("--objectives", "bidirectional,spanbert(scheme='subword')", "--batch-size", 8, "--max-epoch", 2)
    result = fairseq.train(data, tmp_path, "--arch", arch, *objectives, "--lr", 2e-3)
    rows = fairseq.logged(result.stdout + result.stderr, "train")
    assert float(rows[-1]["train_loss"]) < float(rows[0]["train_loss"])
    lm = UnifiedLM.from_pretrained(tmp_path / "checkpoint_last.pt")
    assert lm.model.config.token_types == 2 and lm.writes == "nothing"
    assert len(lm.fill_mask("w1 <mask> w2 w3")) == len(lm.fill_span("w1 <mask> w2 w3")) == 1
    with pytest.raises(UnifiedError, match="does not generate"):
        lm.generate(["w1 w2"])


def test_killed_in_the_middle_and_resumed_equals_uninterrupted(data, pretrained, tmp_path):
    arguments = (*MIXTURE, "--batch-size", 4, "--max-epoch", 2, "--log-interval", 1, "--save-interval-updates", 3)
    process = fairseq.start("train", data, *fairseq.PLUGINS, *fairseq.TINY, "--save-dir", tmp_path, *arguments)
    deadline = time.time() + 120
    last = tmp_path / "checkpoint_last.pt"
    while not last.exists() and time.time() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert last.exists(), "the run ended or hung before its first checkpoint"
    resumed = fairseq.train(data, tmp_path, *arguments)
    after = losses(resumed.stdout + resumed.stderr)
    whole = losses(pretrained[1])
    assert 0 < len(after) < len(whole)
    assert after == whole[-len(after) :]
    one, two = (torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]
                for folder in (pretrained[0], tmp_path))  # fmt: skip
    assert all(torch.equal(one[key], two[key]) for key in one)


def test_any_number_of_processes_goes_on_from_any_other(data, tmp_path):
    """One process, from its eighth update on two, and from the sixteenth on one with batches of twice the rows."""
    shared = (data, *fairseq.PLUGINS, *fairseq.TINY, "--objectives", EVERYTHING, "--log-interval", 1,
              "--disable-validation", "--save-interval-updates", 8)  # fmt: skip
    small, large = ("--update-freq", 2, "--batch-size", 2), ("--batch-size", 4)
    one = fairseq.run("train_exactly", *shared, *small, "--max-update", 25, "--save-dir", tmp_path / "one")
    [saved] = (tmp_path / "one").glob("checkpoint_*_8.pt")
    (tmp_path / "other").mkdir()
    saved.rename(tmp_path / "other" / "checkpoint_last.pt")
    other = (*shared, "--save-dir", tmp_path / "other")
    two = fairseq.in_processes(2, *other, "--batch-size", 2, "--max-update", 16, command="train_exactly")
    last = fairseq.run("train_exactly", *other, *large, "--max-update", 25)
    expected, *parts = (fairseq.logged(r.stdout + r.stderr, "train_inner") for r in (one, two, last))
    assert [len(rows) for rows in (expected, *parts)] == [25, 8, 9]
    for a, b in zip(expected[8:], parts[0] + parts[1], strict=True):
        measured = [name for name in a if name.endswith("loss") and a[name] is not None]  # None: no example of it
        assert len(measured) > 1 and a["num_updates"] == b["num_updates"]
        for name in measured:
            value = float(a[name])
            rounding = 1e-4 if value >= 10 else 1e-5  # six digits are logged
            assert float(b[name]) == pytest.approx(value, abs=1e-4 + rounding), name
        assert float(b["gnorm"]) == pytest.approx(float(a["gnorm"]), rel=1e-3)
    logged = {name for row in expected for name, value in row.items() if value is not None}
    assert all(f"{name}_loss" in logged for name in parse_objectives(EVERYTHING).names)


def test_validation_gives_the_same_losses_twice(data, pretrained):
    arguments = (data, *fairseq.PLUGINS, "--path", pretrained[0] / "checkpoint_last.pt", "--batch-size", 4, "--cpu",
                 "--log-format", "json")  # fmt: skip
    first, second = (fairseq.run("validate", *arguments) for _ in range(2))
    rows = [fairseq.logged(result.stdout + result.stderr, "valid") for result in (first, second)]
    assert rows[0] and rows[0] == rows[1]
    key = "valid_left_to_right_loss"
    trained = fairseq.logged(pretrained[1], "valid")[-1]
    assert float(rows[0][-1][key]) == pytest.approx(float(trained[key]), abs=2e-3)


def test_documents_are_not_generated_from(data, pretrained):
    arguments = (data, *fairseq.PLUGINS, "--path", pretrained[0] / "checkpoint_last.pt", "--batch-size", 4, "--cpu")
    result = fairseq.run("generate", *arguments, "--gen-subset", "valid", check=False)
    fairseq.assert_refused(result, "holds documents, from which fairseq-generate has nothing to generate")


def test_pretrained_to_fine_tuned_to_generated(data, pretrained, tmp_path):
    pairs = fairseq.pairs(
        tmp_path, lambda row: row, np.random.default_rng(1), {"train": 200, "valid": 20, "test": 20}, symbols=30
    )
    for language in ("src", "tgt"):  # the dictionary the checkpoint was trained with
        (pairs / f"dict.{language}.txt").write_text((data / "dict.txt").read_text(encoding="utf-8"), encoding="utf-8")
    result = fairseq.train(
        pairs, tmp_path / "model", "--finetune-from-model", pretrained[0] / "checkpoint_last.pt", "--batch-size", 4,
        "--max-epoch", 2, "--eval-generate", "rouge", "--best-checkpoint-metric", "rouge",
        "--maximize-best-checkpoint-metric", "--label-smoothing", 0.1,
    )  # fmt: skip
    rows = fairseq.logged(result.stdout + result.stderr, "valid")
    assert rows and all("valid_rouge1" in row and "valid_rouge" in row for row in rows)
    best = tmp_path / "model" / "checkpoint_best.pt"
    last = tmp_path / "model" / "checkpoint_last.pt"
    generate = (pairs, *fairseq.PLUGINS, "--batch-size", 8, "--cpu", "--beam", 3, "--max-len-b", 10)
    alone = fairseq.run("generate", *generate, "--path", best).stdout
    assert sorted(int(line[2:].split()[0]) for line in alone.splitlines() if line.startswith("H-")) == list(range(20))
    ensemble = fairseq.run("generate", *generate, "--path", f"{best}:{last}").stdout
    assert sum(line.startswith("H-") for line in ensemble.splitlines()) == 20
    interactive = fairseq.finish(
        fairseq.start("interactive", pairs, *fairseq.PLUGINS, "--path", best, "--cpu", "--beam", 2, stdin=-1),
        feed="w1 w2 w3\nw4 w5\n",
    )
    assert sum(line.startswith("H-") for line in interactive.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--best-checkpoint-metric", "rouge"), "rouge"),
        (("--best-checkpoint-metric", "bidirectional_accuracy"), "accuracy needs --maximize-best-checkpoint-metric"),
        (("--maximize-best-checkpoint-metric",), "loss cannot go with --maximize-best-checkpoint-metric"),
        (("--objectives", "bidirectionl"), "bidirectional"),
        (("--objectives", "target_cloze"), "documents"),
        (("--arch", "bert_tiny", "--objectives", "bidirectional,seq2seq"), "seq2seq takes 6 token types"),
        (("--eval-generate", "rouge"), "pairs"),
        (("--eval-generate-args", "{beam: 4}"), "--eval-generate-args '{beam: 4}': not JSON"),
        (("--eval-generate-args", "[4]"), "--eval-generate-args '[4]': expected a JSON object"),
        (("--eval-generate-args", '{"beem": 4}'), "no option 'beem' (did you mean 'beam'?)"),
        (("--max-tokens", 32), "--tokens-per-sample"),
        (("--tokens-per-sample", 1024, "--max-tokens", 2048), "--max-positions"),
        (("--heads", 7), "heads"),
        (("--lr-scheduler", "polynomial_decay"), "polynomial_decay needs --total-num-update"),
        (("--profile",), "--profile needs a GPU"),
    ],
)
def test_refusals_are_one_line_without_traceback(data, tmp_path, arguments, says):
    batch = () if "--max-tokens" in arguments else ("--batch-size", 4)
    few = ("--save-dir", tmp_path, *batch, "--max-update", 1)
    assert says in fairseq.refusal_to_train(data, *fairseq.PLUGINS, *fairseq.TINY, *few, *arguments)


def test_a_checkpoint_of_another_dictionary_is_refused(pretrained, tmp_path):
    other = fairseq.documents(tmp_path, np.random.default_rng(5), symbols=31)
    result = fairseq.train(
        other, tmp_path / "model", "--finetune-from-model", pretrained[0] / "checkpoint_last.pt", "--batch-size", 4,
        "--max-update", 1, check=False,
    )  # fmt: skip
    assert result.returncode != 0 and "Traceback" not in result.stderr
