"""UniLM's recipes of writing at their debug size: from official files to texts and scores."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from tests.recipes.test_recipes import RECIPES, run
from unified.checkpoints.trained import Trained, write
from unified.cli import main
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.metrics.question_generation import penn_treebank
from unified.tokenization.wordpiece import SPECIAL_ENTRIES, train_wordpiece

sys.path.insert(0, str(RECIPES / "common"))
import squad_splits  # noqa: E402
import task_data  # noqa: E402

UNILM = RECIPES / "unilm"


@pytest.fixture(scope="module")
def debug(tmp_path_factory) -> Path:
    """The debug files, and a model that knows their words."""
    folder = tmp_path_factory.mktemp("debug")
    task_data.main([str(folder), "debug"])
    files = ("cnn_dailymail/train.jsonl", "squad_qg/train-v1.1.json", "coqa_free/coqa-train-v1.0.json")
    lines = [line for file in files for line in (folder / file).read_text(encoding="utf-8").splitlines()]
    tokenizer = train_wordpiece([*lines, "| ? ."], character_coverage=1.0, lowercase=True)
    (folder / "start").mkdir()
    tokenizer.save(folder / "start")
    vocabulary = Vocabulary([entry for entry in tokenizer.entries if entry not in SPECIAL_ENTRIES])
    torch.manual_seed(1)
    config = TransformerConfig(vocabulary_size=len(vocabulary), layers=2, width=32, heads=2, token_types=2)
    write(Trained(config, "nothing", UnifiedModel.for_language(config).state_dict(), vocabulary), folder / "start")
    return folder


def finetuned(debug: Path, task: str, *options) -> tuple[Path, str]:
    """Folder of the run, and all that was printed."""
    output = debug / f"{task} run"
    words = ("unilm", task, debug / task, debug / "start", output, "--debug", *options)
    result = run("python", RECIPES / "finetune.py", *words)
    return output, result.stdout + result.stderr


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_summaries(debug):
    """CNN/DailyMail with the extractive loss; lengths are tuned on what one decoding has found."""
    output, said = finetuned(debug, "cnn_dailymail")
    assert "target_cloze_extractive_loss" in said
    result = json.loads((output / "results.json").read_text())
    assert (
        result["scores"]["valid"]["sentences"] == 10
        and "cnndm|max_words:70" in result["scores"]["valid"]["post_process"]
    )
    assert len(lines(output / "predictions.valid.jsonl")) == 10
    tune = ("bash", UNILM / "summaries" / "tune.sh", output)
    printed = run(*tune, "--max-length", 8).stdout
    assert "50 hypotheses of 10 sentences; 11 settings tried" in printed
    decoded = output / "nbest.valid.txt"
    before = decoded.stat().st_mtime_ns
    assert run(*tune).stdout == printed[printed.index("50 hypotheses") :] and decoded.stat().st_mtime_ns == before


def test_questions(debug, capsys):
    """Files for `unified score question-generation` give the scores of the results."""
    output, _ = finetuned(debug, "squad_qg")
    scores = json.loads((output / "results.json").read_text())["scores"]
    assert scores["test"]["questions"] == 30 and scores["valid"]["questions"] == 18
    texts = {
        name: (output / f"test.{name}.txt").read_text().splitlines() for name in ("references", "sentences", "sources")
    }
    items = lines(output / "items" / "test.jsonl")
    assert texts["references"] == [penn_treebank(item["target"]) for item in items]
    assert texts["sentences"] == [item["reference_group"] for item in items]
    assert texts["sources"] == [" ".join(item["source"]) for item in items]
    capsys.readouterr()
    questions, references, sources = (output / f"test.{name}.txt" for name in ("questions", "references", "sentences"))
    words = ["score", "question-generation", questions, "--references", references, "--sources", sources, "--json"]
    words += ["--bert-words"]
    assert main([str(word) for word in words]) == 0
    assert json.loads(capsys.readouterr().out) == scores["test"]


def test_answers_in_conversations(debug, capsys):
    output, said = finetuned(debug, "coqa_free")
    assert "train: 60 turns left out, the answer is empty" in said
    assert "valid: the chunk lacks the rationale of 0 of 30 answers" in said
    predictions = json.loads((output / "valid.predictions.json").read_text())
    assert [(one["id"], one["turn_id"]) for one in predictions[:4]] == [
        ("story0", 1), ("story0", 2), ("story0", 3), ("story1", 1)
    ]  # fmt: skip
    ours = json.loads((output / "results.json").read_text())["scores"]["valid"]
    capsys.readouterr()
    dev = debug / "coqa_free" / "coqa-dev-v1.0.json"
    assert main(["score", "coqa", str(dev), str(output / "valid.predictions.json")]) == 0
    official = json.loads(capsys.readouterr().out)["overall"]
    # The official program also counts the turns that nobody answered.
    assert official["turns"] == 40 and official["f1"] <= ours["f1"]


def test_a_part_of_squad(debug, tmp_path, monkeypatch):
    """All articles of the train files, and some questions of dev, the same ones again."""
    files = [str(debug / "squad_qg" / f"{part}-v1.1.json") for part in ("train", "dev")]
    for name in ("a", "b"):
        words = ["squad_splits", str(tmp_path / name), "--train", *files, "--dev", files[1], "--questions", "7"]
        monkeypatch.setattr(sys, "argv", words)
        squad_splits.main()
    train, dev = (squad_splits.articles_of(tmp_path / "a" / f"{part}-v1.1.json") for part in ("train", "dev"))
    assert train == [article for path in files for article in squad_splits.articles_of(Path(path))]
    questions = [qa["id"] for article in dev for paragraph in article["paragraphs"] for qa in paragraph["qas"]]
    assert len(set(questions)) == 7
    for part in ("train", "dev"):
        assert (tmp_path / "a" / f"{part}-v1.1.json").read_bytes() == (
            tmp_path / "b" / f"{part}-v1.1.json"
        ).read_bytes()


def test_ten_thousand_pairs_of_gigaword(tmp_path):
    from unified.tasks.catalogue import task_named
    from unified.tasks.datasets.summarization import read_summaries
    from unified.tasks.windows import TokenCounter
    from unified.tasks.writing import TokenBudget

    rows = [json.dumps({"document": f"document {i} .", "summary": f"summary {i}"}) + "\n" for i in range(50)]
    for part in ("train", "validation"):
        (tmp_path / f"{part}.jsonl").write_text("".join(rows))
    budget = TokenBudget(TokenCounter(str.split), 100)
    few, again = (read_summaries(tmp_path, budget, "gigaword", subset=9) for _ in range(2))
    everything = task_named("gigaword").read(tmp_path, budget)
    assert few == again and len(set(few["train"])) == 9 and set(few["train"]) < set(everything["train"])
    assert few["valid"] == everything["valid"] and few["train"] != everything["train"][:9]
    assert len(task_named("gigaword_10k").read(tmp_path, budget)["train"]) == 50
    assert task_named("gigaword_10k").read.keywords["subset"] == 10_000
