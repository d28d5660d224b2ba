"""A model learns to ask about passages it has not seen, from SQuAD's file to ``UnifiedLM.ask``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.corpora import run as prepare
from tests.fairseq_runs import train
from unified import UnifiedLM
from unified.data.squad import SquadParagraph, read_squad_file
from unified.data.windows import TokenCounter
from unified.tasks.question_generation import question_pairs

NAMES = "ann bob cid dan eve fay gus hal".split()
COLOURS = "red blue green black white pink grey gold".split()


def squad_file(path: Path, passages: int, seed: int) -> Path:
    """Passages of four names, each with a colour of its own; every name is asked about.

    Who reads the passage alone can guess the name, and is right in one of four cases.
    """
    rng = np.random.default_rng(seed)
    paragraphs = []
    for number in range(passages):
        chosen = list(zip(rng.permutation(NAMES)[:4].tolist(), rng.permutation(COLOURS)[:4].tolist(), strict=True))
        context = " ".join(f"{name} is {colour} ." for name, colour in chosen)
        questions = [
            {"id": f"{number}.{name}", "question": f"which colour has {name} ?",
             "answers": [{"text": name, "answer_start": context.index(name)}]}
            for name, _ in chosen
        ]  # fmt: skip
        paragraphs.append({"context": context, "qas": questions})
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}))
    return path


def pairs_file(path: Path, paragraphs: list[SquadParagraph]) -> Path:
    pairs = question_pairs(paragraphs, TokenCounter(str.split))
    path.write_text("".join(json.dumps({"source": pair.source, "target": pair.target}) + "\n" for pair in pairs))
    return path


def test_questions_are_learnt(tmp_path):
    parts = {name: read_squad_file(squad_file(tmp_path / f"{name}.json", count, seed))
             for seed, (name, count) in enumerate({"train": 800, "valid": 5, "test": 25}.items())}  # fmt: skip
    files = [pairs_file(tmp_path / f"{name}.jsonl", parts[name]) for name in ("train", "valid")]
    fields = ("--source-field", "source", "--target-field", "target", "--tokenizer", "wordpiece")
    assert prepare(files[0], "--valid", files[1], *fields, "--destination", tmp_path / "data") == 0
    train(
        tmp_path / "data", tmp_path / "model", "--objectives", "target_cloze(mask_probability=0.7)", "--batch-size", 16,
        "--max-update", 250, "--lr", 3e-3, "--lr-scheduler", "polynomial_decay", "--warmup-updates", 50,
        "--total-num-update", 250, "--clip-norm", 1, "--initializer-range", 0.125, "--disable-validation",
    )  # fmt: skip
    lm = UnifiedLM.from_pretrained(tmp_path / "model")
    asked = [(p.context, q.answers[0].text, q.text) for p in parts["test"] for q in p.questions]
    found = [lm.ask(passage, answer, max_length=8) for passage, answer, _ in asked]
    assert sum(question == wanted for question, (*_, wanted) in zip(found, asked, strict=True)) >= 0.95 * len(asked)
