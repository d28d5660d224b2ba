"""Ours and the peer side by side: the runner at its debug size, and the peer of tasks that write."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import debug
import pytest
import torch
from transformers import BertForMaskedLM

import unified
from tests.recipes.test_recipes import load
from tests.support import fairseq_runs
from tests.support.prepared_python import interpreter
from unified.errors import UnifiedError
from unified.generation import generate
from unified.reports.result_tables import tables
from unified.reports.results import read_results
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.texts import text_of
from unified.tasks.heads import parse_head
from unified.tasks.heads.items import read_items
from unified.tasks.writing import Writer, WritingItem, WritingTraining
from unified.tasks.writing_scores import scored_texts
from unified.tokenization import load_tokenizer, parts_of

PEERS = Path(__file__).resolve().parents[2] / "recipes" / "peers"


@pytest.fixture(scope="module")
def runner():
    return load(PEERS / "run.py")


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Path:
    """The folder of a debug run."""
    folder = tmp_path_factory.mktemp("compared")
    result = subprocess.run(
        [interpreter(), PEERS / "run.py", folder, "--size", "debug", "--together"],
        capture_output=True, text=True, env=fairseq_runs.environment(),
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return folder


def test_the_debug_size_compares_both(compared):
    """Tables hold what the results say, of equal data and as many updates."""
    ours, theirs = (read_results([compared / "classification" / f"{name}-1"])[0] for name in ("ours", "transformers"))
    assert ours["data"] == theirs["data"] and ours["task"] == theirs["task"]
    assert str(theirs["updates"]) == ours["command"][ours["command"].index("--max-update") + 1] == "10"
    text = (compared / "tables.md").read_text(encoding="utf-8")
    assert text.startswith(tables([ours, theirs]))
    name, seed, planned, *seconds = [cell.strip() for cell in text.strip().splitlines()[-2].strip("|").split("|")]
    assert (name, seed, planned) == ("classification", "1", "10")
    assert float(seconds[1]) == pytest.approx(theirs["seconds_per_update"], abs=1e-3) and float(seconds[0]) > 0


def test_the_debug_size_compares_who_writes(compared):
    """Ours, the encoder-decoder and the first sentences are scored by one function, of texts that are there to read.

    What was copied has the spelling of the source; BERT's words have lost it.
    """
    items = read_items(compared / "texts" / "plan" / "items" / "valid.jsonl", text_of)
    for run in ("ours-1", "transformers-1", "lead"):
        (result,) = read_results([compared / "texts" / run])
        rows = (compared / "texts" / run / "predictions.valid.jsonl").read_text(encoding="utf-8").splitlines()
        found = {row["id"]: row["text"] for row in map(json.loads, rows)}
        expected = scored_texts(items, [found[item.id] for item in items], run != "lead").scores()
        assert result["scores"] == {"valid": expected} and expected["sentences"] == 24
    # The first "sentence" is all of the first part.
    assert found == {item.id: parts_of(item.source)[0] for item in items}


def test_the_encoder_decoder_reads_and_writes(tmp_path):
    """Against what transformers makes of one item at a time."""
    written, model = load(PEERS / "writing.py"), tmp_path / "model"
    debug.make_model(model, (*debug.WORDS, "a", "##bc", "##b"))
    training = WritingTraining(max_length=30, max_source=12, max_target=6)
    peer = written.EncoderDecoder(model, training)
    items = [
        WritingItem("1", ("w1 w2", "abc w3"), "w1 w2"),
        WritingItem("2", " ".join(["w4"] * 20), " ".join(["w5"] * 9)),
        WritingItem("3", "w6", "w6"),
    ]
    tokenizer = peer.tokenizer
    first = peer.example(items[0])
    assert tokenizer.convert_ids_to_tokens(first["input_ids"]) == (
        ["[CLS]", "w1", "w2", "[SEP]", "a", "##bc", "w3", "[SEP]"]
    )
    assert tokenizer.convert_ids_to_tokens(first["labels"]) == ["w1", "w2", "[SEP]"]
    second = peer.example(items[1])
    assert (len(second["input_ids"]), len(second["labels"])) == (12 + 2, 6 + 1)
    torch.manual_seed(0)
    module = peer.model().eval()
    batch = peer.collate([peer.example(item) for item in items])
    losses = [module(**peer.collate([peer.example(item)])).loss for item in items]
    counts = [len(peer.example(item)["labels"]) for item in items]
    mean = sum(loss * count for loss, count in zip(losses, counts, strict=True)) / sum(counts)
    assert module(**batch).loss.item() == pytest.approx(mean.item(), rel=1e-5)
    task = replace(task_named("texts"), decoding={"beam": 2, "max_length": 5}, may_repeat=())
    assert peer.texts(module, items, task, size=3) == [peer.texts(module, [item], task)[0] for item in items]
    # The most probable token each time, with the words that transformers' own search finds: one rule where it has one.
    task = replace(task, decoding={"beam": 1, "max_length": 4, "no_repeat_ngram_size": 2})
    sources = peer.sources([peer.source(item) for item in items])
    own = module.generate(
        **sources, max_new_tokens=4, min_new_tokens=1, no_repeat_ngram_size=2, do_sample=False,
        suppress_tokens=[tokenizer.cls_token_id, tokenizer.pad_token_id, tokenizer.mask_token_id],
        decoder_start_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    assert peer.texts(module, items, task) == tokenizer.batch_decode(own, skip_special_tokens=True)
    # Both sides spell marks alike: transformers writes "don ' t pay 3. 5 %".
    marks = "don ' t pay 3 . 5 % ( e - mail )".split()
    debug.make_model(tmp_path / "marks", tuple(marks))
    peer = written.EncoderDecoder(tmp_path / "marks", training)
    ids = peer.tokenizer.encode("don't pay 3.5% (e-mail)")
    assert peer.text(ids) == "don't pay 3.5% (e-mail)" == load_tokenizer(tmp_path / "marks").decode(marks)


def test_both_search_by_one_rule(compared):
    """The settings of both, and of the peer the scores by which texts are ranked, from its losses without a cache."""
    written, task = load(PEERS / "writing.py"), task_named("texts")
    ours = Writer(unified.load(compared / "texts" / "ours-1"), task)
    peer = written.EncoderDecoder(compared / "model", task.training.changed(max_length=148))
    found = replace(peer.search(task), no_repeat_ngram_ignore=())
    assert found == replace(ours.config, no_repeat_ngram_ignore=())
    torch.manual_seed(0)
    module = peer.model().eval()
    with torch.no_grad():  # so that texts end soon, and have several lengths
        module.decoder.cls.predictions.decoder.bias[peer.tokenizer.sep_token_id] += 3
    source, beam = peer.sources([peer.tokenizer.encode("w1 w2 w3")]), 4
    config = replace(found, beam=beam, nbest=beam, max_length=7, lenpen=0.6, no_repeat_ngram_size=2)
    (texts,) = generate(written.PeerDecoder(module, peer.tokenizer), source["input_ids"], config)
    assert len({len(one.tokens) for one in texts}) > 1
    scores = []
    for one in texts:
        labels = torch.tensor([[*one.tokens.tolist(), peer.tokenizer.sep_token_id]])
        count = labels.numel()
        total = -count * module(**source, labels=labels).loss.item()
        scores.append(total / ((5 + count) / 6) ** 0.6)
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx([one.score for one in texts], rel=1e-5)


def test_full_stops_may_repeat_as_in_ours(tmp_path):
    written, task = load(PEERS / "writing.py"), task_named("reuters")
    debug.make_model(tmp_path / "model", (*debug.WORDS, "."))
    peer = written.EncoderDecoder(tmp_path / "model", task.training)
    config = peer.search(task)
    assert peer.tokenizer.convert_ids_to_tokens(list(config.no_repeat_ngram_ignore)) == ["."]
    assert (config.beam, config.length_penalty, config.lenpen, config.max_length) == (5, "unilm", 0.6, 32)


def test_a_new_token_head_of_the_peer_starts_as_ours_does(tmp_path):
    """The peer's token head starts as the identity where the checkpoint has none; a head of the checkpoint is kept."""
    written = load(PEERS / "writing.py")
    debug.make_model(tmp_path / "bare")
    shutil.copytree(tmp_path / "bare", tmp_path / "whole")
    torch.manual_seed(5)
    whole = BertForMaskedLM.from_pretrained(tmp_path / "bare")
    whole.save_pretrained(tmp_path / "whole")
    for folder, expected in (
        ("bare", 0.1 * torch.eye(32)),
        ("whole", whole.cls.predictions.transform.dense.weight),
    ):
        model = written.EncoderDecoder(tmp_path / folder, task_named("texts").training).model()
        head = model.decoder.cls.predictions
        assert torch.allclose(head.transform.dense.weight, expected)
        assert head.decoder.weight is model.decoder.bert.embeddings.word_embeddings.weight


def test_a_second_call_repeats_nothing(compared, runner, monkeypatch, capsys):
    import steps

    def refuse(*arguments, **keywords):
        raise AssertionError(f"ran {arguments}")

    monkeypatch.setattr(steps.subprocess, "Popen", refuse)
    before = (compared / "tables.md").read_text(encoding="utf-8")
    runner.main([str(compared), "--size", "debug"])
    assert (compared / "tables.md").read_text(encoding="utf-8") == before
    with pytest.raises(UnifiedError, match="begun with --model .*; name another folder"):
        runner.main([str(compared), "--size", "debug", "--model", str(compared)])


def test_results_of_other_data_are_refused(compared, runner, tmp_path):
    paths = [compared / "classification" / f"{name}-1" / "results.json" for name in ("ours", "transformers")]
    content = json.loads(paths[0].read_text())
    (tmp_path / "results.json").write_text(json.dumps(content | {"data": {"train.jsonl": "other"}}))
    runner.check_same_data(paths)
    with pytest.raises(UnifiedError, match="are of different data"):
        runner.check_same_data([tmp_path / "results.json", paths[1]])


def test_sizes_and_names(runner, monkeypatch, tmp_path):
    monkeypatch.delenv("UNIFIED_DATA", raising=False)
    with pytest.raises(UnifiedError, match="set UNIFIED_DATA"):
        runner.main([str(tmp_path)])
    with pytest.raises(UnifiedError, match="--only names nothing; known: "):
        runner.main([str(tmp_path), "--size", "debug", "--only", "nothing"])
    for size in runner.SIZES.values():
        assert len({pair.task for pair in size.pairs}) == len(size.pairs)
        for pair in size.pairs:
            task = task_named(pair.task)
            assert pair.writes or parse_head(task.head).head_class.name in load(PEERS / "finetune.py").PEERS
