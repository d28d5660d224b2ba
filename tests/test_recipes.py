"""Recipes: all scripts are sound, and the prepare steps of UniLM's experiments work on local files."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_bert_checkpoints import bert_folder
from unified.checkpoints.bert import import_bert
from unified.cli import main
from unified.errors import UnifiedError
from unified.tasks.catalogue import TASKS
from unified.tasks.span import SpanAnswers

RECIPES = Path(__file__).resolve().parent.parent / "recipes"
UNILM = RECIPES / "unilm"
SQUAD = RECIPES / "bert" / "squad"
SCRIPTS = sorted(RECIPES.rglob("*.sh"))
#: Read by other scripts, never run.
SOURCED = [*(RECIPES / "common").glob("*.sh"), UNILM / "common.sh"]
#: Titles of the train file that the tests make, in order of their numbers.
TRAIN = {f"T{i}" for i in range(11)}


def load(path: Path) -> ModuleType:
    """A script of a recipe as a module."""
    spec = importlib.util.spec_from_file_location(f"recipe_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def squad() -> ModuleType:
    return load(UNILM / "squad_qg" / "prepare.py")


def article(title: str, paragraphs: int = 2) -> dict:
    """One article in SQuAD's form; each paragraph has three sentences, and questions on the second and the third."""
    entries = []
    for i in range(paragraphs):
        context = f"The town of {title} lies by a river. Its mayor in year {i} was Anna Berg. It has 3 | 4 bridges."
        questions = [("Who was the mayor?", "Anna Berg"), ("How many bridges are there?", "3 | 4 bridges")]
        answers = [
            {"question": q, "id": f"{title}{i}{a}", "answers": [{"text": a, "answer_start": context.index(a)}]}
            for q, a in questions
        ]
        entries.append({"context": context, "qas": answers})
    return {"title": title, "paragraphs": entries}


def squad_file(path: Path, titles: list[str]) -> Path:
    path.write_text(json.dumps({"version": "1.1", "data": [article(title) for title in titles]}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def squad_files(tmp_path_factory) -> tuple[Path, Path, Path]:
    """(train file, dev file, folder with doclist-test.txt)."""
    folder = tmp_path_factory.mktemp("squad")
    (folder / "doclist-test.txt").write_text("T3\nT7\nelsewhere\n", encoding="utf-8")
    train = squad_file(folder / "train.json", [f"T{i}" for i in range(len(TRAIN))])
    return train, squad_file(folder / "dev.json", ["D0", "D1"]), folder


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(*words, **environment: str) -> subprocess.CompletedProcess:
    result = subprocess.run(
        [*map(str, words)], capture_output=True, text=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
             "CARDS": "0", **environment},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(RECIPES)))
def test_scripts_are_bash(script):
    assert subprocess.run(["bash", "-n", script], capture_output=True, text=True).stderr == ""
    if script not in SOURCED:
        assert os.access(script, os.X_OK), "not executable"
        assert script.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")


@pytest.mark.parametrize(
    "script",
    [script for script in SCRIPTS if script not in SOURCED and script.name != "check_gpus.sh"],
    ids=lambda path: str(path.relative_to(RECIPES)),
)
def test_scripts_without_arguments_say_what_they_expect(script):
    result = subprocess.run(["bash", script], capture_output=True, text=True)
    assert result.returncode == 2 and result.stderr.startswith("usage: ") and not result.stdout


def test_every_task_has_its_four_steps():
    for task in ("cnn_dailymail", "coqa", "gigaword", "squad_qg", "xsum"):
        steps = {path.name for path in (UNILM / task).iterdir()}
        assert {"prepare.sh", "train.sh", "generate.sh", "score.sh"} <= steps


@pytest.mark.parametrize(
    ("split", "titles"),
    [
        ("du", {"train": TRAIN - {"T3", "T7"}, "valid": {"D0", "D1"}, "test": {"T3", "T7"}}),
        ("reversed", {"train": TRAIN - {"T3", "T7"}, "valid": {"T3", "T7"}, "test": {"D0", "D1"}}),
        ("paper", {"train": TRAIN - {"T9"}, "valid": {"T9"}, "test": {"D0", "D1"}}),
    ],
)
def test_splits_of_squad(squad, squad_files, tmp_path, capsys, split, titles):
    train, dev, lists = squad_files
    squad.main([str(tmp_path), "--split", split, "--local", str(train), str(dev), "--doclists", str(lists)])
    for part, expected in titles.items():
        found = rows(tmp_path / f"{part}.jsonl")
        assert {row["source"][0].split()[3] for row in found} == expected
        assert len(found) == 4 * len(expected)
        for name in ("references", "sentences", "sources"):
            assert (tmp_path / f"{part}.{name}.txt").exists() == (part != "train")
    said = "doclist-test.txt: 2 of its 3 articles are in the train files"
    assert (said in capsys.readouterr().out) == (split != "paper")


def test_question_examples(squad, squad_files, tmp_path):
    train, dev, lists = squad_files
    squad.main([str(tmp_path), "--split", "paper", "--context", "sentence", "--local", str(train), str(dev)])
    first, second = rows(tmp_path / "test.jsonl")[:2]
    assert first == {"id": "D00Anna Berg", "source": ["Its mayor in year 0 was Anna Berg.", "Anna Berg"],
                     "target": "Who was the mayor?"}  # fmt: skip
    assert second["source"] == ["It has 3 | 4 bridges.", "3 | 4 bridges"]
    assert (tmp_path / "test.references.txt").read_text().splitlines()[0] == "who was the mayor ?"
    assert (tmp_path / "test.sentences.txt").read_text().splitlines()[1] == "It has 3 | 4 bridges."
    assert (tmp_path / "test.sources.txt").read_text().splitlines()[1] == "It has 3 | 4 bridges. 3 | 4 bridges"


def test_questions_without_an_answer_in_the_passage_are_counted(squad, squad_files, tmp_path, capsys):
    train, dev, _ = squad_files
    broken = json.loads(dev.read_text(encoding="utf-8"))
    broken["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] += 1
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(broken), encoding="utf-8")
    squad.main([str(tmp_path), "--split", "paper", "--local", str(train), str(path), "--test-sample", "8"])
    said = "test: 1 of 8 questions have no answer to ask for (the answer stands elsewhere in the passage: 1)"
    assert said in capsys.readouterr().out
    assert [row["id"] for row in rows(tmp_path / "test.jsonl")][:2] == ["D003 | 4 bridges", "D01Anna Berg"]


def test_a_sample_of_the_test_questions(squad, squad_files, tmp_path):
    train, dev, _ = squad_files
    for name, more in (("all", []), ("a", ["--test-sample", "5"]), ("b", ["--test-sample", "5"])):
        squad.main([str(tmp_path / name), "--split", "paper", "--local", str(train), str(dev), *more])
    everything, chosen = (rows(tmp_path / name / "test.jsonl") for name in ("all", "a"))
    assert len(everything) == 8 and len(chosen) == 5 and chosen == rows(tmp_path / "b" / "test.jsonl")
    assert chosen == [row for row in everything if row in chosen]


def test_a_part_without_questions_is_refused(squad, squad_files, tmp_path):
    train, dev, lists = squad_files
    (tmp_path / "doclist-test.txt").write_text("nobody\n", encoding="utf-8")
    with pytest.raises(UnifiedError, match="the test part of split 'du' is empty"):
        squad.main([str(tmp_path), "--split", "du", "--local", str(train), str(dev), "--doclists", str(tmp_path)])


@pytest.fixture(scope="module")
def summaries() -> ModuleType:
    return load(UNILM / "summaries.py")


def test_summaries_of_local_files(summaries, tmp_path):
    files = []
    for part in ("train", "validation", "test"):
        lines = [{"article": f"A {part}\nstory | of sorts.", "highlights": "First point .\n\nSecond\u00a0point ."},
                 {"article": "  ", "highlights": "nothing"}]  # fmt: skip
        files.append(tmp_path / f"{part}.jsonl")
        files[-1].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    summaries.main(["cnn_dailymail", str(tmp_path / "out"), "--local", *map(str, files)])
    assert rows(tmp_path / "out" / "valid.jsonl") == [
        {"source": "A validation story / of sorts.", "target": "First point . | Second point ."}
    ]


def test_a_subset_of_gigaword(summaries, tmp_path):
    pairs = [{"document": f"document {i} .", "summary": f"summary {i}"} for i in range(20)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    for name in ("a", "b"):
        summaries.main(["gigaword", str(tmp_path / name), "--subset", "5", "--local", *[str(path)] * 3])
    chosen = rows(tmp_path / "a" / "train.jsonl")
    assert len(chosen) == 5 and chosen == rows(tmp_path / "b" / "train.jsonl")
    assert len(rows(tmp_path / "a" / "test.jsonl")) == 20


@pytest.mark.parametrize("name", ["cnn_dailymail", "gigaword", "xsum"])
def test_downloads_of_summaries_are_kept(summaries, tmp_path, monkeypatch, name):
    """With a stand-in for the hub: the columns named as there, and more; what was fetched is not fetched again."""
    asked = []

    def hub_rows(*wanted):
        asked.append(wanted)
        for row in summaries.debug_rows(name, "valid"):
            yield {**row, "id": "x"}

    monkeypatch.setattr(summaries, "hub_rows", hub_rows)
    for _ in range(2):
        summaries.main([name, str(tmp_path), "--oracle"])
    hub, configuration, *_ = summaries.SETS[name]
    assert asked == [(hub, configuration, part) for part in ("train", "validation", "test")]
    found = rows(tmp_path / "train.jsonl")
    assert len(found) == len(rows(tmp_path / "raw" / "train.jsonl")) == 8
    # The grammar's summaries are sentences of its texts, so the oracle finds them.
    for row in found:
        starts = [*row["sentences"], len(row["source"]) + 1]
        taken = [row["source"][starts[i] : starts[i + 1] - 1] for i in row["oracle"]]
        assert " | ".join(taken) == row["target"]


def test_a_separator_without_a_piece_is_refused(tmp_path):
    sources = load(RECIPES / "common" / "sources.py")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("a b c | d\n\ne f g | h\n" * 5, encoding="utf-8")
    run(
        sys.executable,
        "-m",
        "unified.cli",
        "prepare",
        corpus,
        "--destination",
        tmp_path / "data",
        "--tokenizer",
        "char",
    )
    sources.require_symbol(tmp_path / "data", "|")
    with pytest.raises(UnifiedError, match="no piece for the separator '§'"):
        sources.require_symbol(tmp_path / "data", "§")


def test_prepare_train_generate_score_at_debug_size(squad_files, tmp_path):
    train, dev, _ = squad_files
    task = UNILM / "squad_qg"
    run("bash", task / "prepare.sh", tmp_path, "char", "--split", "paper", "--local", train, dev, "--max-source", 40)
    run("bash", task / "train.sh", tmp_path, "none", DEBUG="1")
    run("bash", task / "generate.sh", tmp_path, "--max-len-b", 5)
    printed = run("bash", task / "score.sh", tmp_path).stdout
    assert "BLEU-4" in printed and "ROUGE-L" in printed
    # 2 articles x 2 paragraphs x 2 sentences, of which those of equal paragraphs are the same
    assert json.loads((tmp_path / "scores.json").read_text())["questions"] == 8


def conversations(path: Path, stories: int, source: str = "cnn") -> Path:
    """A file in CoQA's form: each story has three turns."""
    data = []
    for number in range(stories):
        story = f"Anna number {number} has a red boat. She sails to Borneo with {number} cats."
        turns = [
            ("Who has a boat?", "Anna", 0, 4),
            ("Where does she sail?", "to Borneo", 0, 0),
            ("How old?", " ", -1, -1),
        ]
        data.append({
            "id": f"{path.stem}{number}", "source": source, "story": story,
            "questions": [{"input_text": q, "turn_id": i} for i, (q, *_) in enumerate(turns, 1)],
            "answers": [{"input_text": a, "turn_id": i, "span_start": s, "span_end": e, "span_text": story[s:e]}
                        for i, (_, a, s, e) in enumerate(turns, 1)],
        })  # fmt: skip
    path.write_text(json.dumps({"version": "1.0", "data": data}), encoding="utf-8")
    return path


def test_turns_of_conversations(tmp_path, capsys):
    train, dev = conversations(tmp_path / "train.json", 41), conversations(tmp_path / "dev.json", 2)
    prepare = load(UNILM / "coqa" / "prepare.py")
    prepare.main([str(tmp_path / "out"), "--local", str(train), str(dev)])
    parts = {part: rows(tmp_path / "out" / f"{part}.jsonl") for part in ("train", "valid", "test")}
    assert {row["id"] for row in parts["valid"]} == {"train19", "train39"}
    assert [len(part) for part in parts.values()] == [39 * 2, 4, 4]
    assert parts["test"][1] == {
        "id": "dev0", "turn_id": 2, "target": "to Borneo",
        "source": ["Who has a boat? Anna Where does she sail?",
                   "Anna number 0 has a red boat. She sails to Borneo with 0 cats."],
    }  # fmt: skip
    printed = capsys.readouterr().out
    assert "test: 2 of 6 turns make no pair (the answer is empty: 2)" in printed
    assert "test: the chunk lacks the rationale of 0 of 4 answers" in printed
    with pytest.raises(UnifiedError, match="the train files hold a single story"):
        prepare.main([str(tmp_path / "one"), "--local", str(conversations(tmp_path / "one.json", 1)), str(dev)])


def test_answers_in_conversations_at_debug_size(tmp_path):
    train, dev = conversations(tmp_path / "train.json", 21), conversations(tmp_path / "dev.json", 2)
    task = UNILM / "coqa"
    run("bash", task / "prepare.sh", tmp_path, "char", "--local", train, dev)
    run("bash", task / "train.sh", tmp_path, "none", DEBUG="1")
    run("bash", task / "generate.sh", tmp_path, "--max-len-b", 5)
    printed = run("bash", task / "score.sh", tmp_path, dev).stdout
    predictions = json.loads((tmp_path / "predictions.json").read_text())
    assert [(one["id"], one["turn_id"]) for one in predictions] == [("dev0", 1), ("dev0", 2), ("dev1", 1), ("dev1", 2)]
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["overall"]["turns"] == 6 == scores["news"]["turns"] and '"overall"' in printed


def test_squad_at_debug_size(tmp_path):
    """From generated files to official scores, which the file of results has, too."""
    bert_folder(tmp_path / "bert")
    import_bert(tmp_path / "bert", tmp_path / "model")
    run(sys.executable, SQUAD / "debug_data.py", tmp_path / "squad")
    before = {path.name: path.read_bytes() for path in (tmp_path / "squad").iterdir()}
    run(sys.executable, SQUAD / "debug_data.py", tmp_path / "squad")
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "squad").iterdir()} and len(before) == 2
    words = ("bash", SQUAD / "finetune.sh", "debug", tmp_path / "squad", tmp_path / "model", tmp_path / "out")
    printed = run(*words, "--epochs", 1, "--longest", 24).stdout
    assert "answers cannot be learnt" not in printed
    scores = json.loads((tmp_path / "out" / "results.json").read_text())["scores"]["valid"]
    official, searched = (json.loads("{" + part.split("}")[0] + "}") for part in printed.split("{")[-2:])
    assert official.items() <= scores.items() and official["total"] == 48 == scores["HasAns_total"] + 12
    best = {name: value for name, value in searched.items() if name.startswith("best_")}
    assert len(best) == 4 and best.items() <= scores.items()


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_squad_has_the_published_settings(version):
    """Devlin et al. 2019, sections 4.2 and 4.3."""
    printed = run("bash", SQUAD / "finetune.sh", version, "DATA", "MODEL", "OUT", "--select", "best", PRINT="1").stdout
    first, *rest = printed.splitlines()
    assert first.split() == ["unified", "finetune", f"squad{version}", "--data", "DATA", "--init", "MODEL", "--output",
                             "OUT", "--select", "best"]  # fmt: skip
    assert all(line.startswith("unified score squad DATA/dev-v") for line in rest)
    assert len(rest) == (1 if version == "1.1" else 2)
    training = TASKS[f"squad{version}"].training
    published = (3, 32, 5e-5) if version == "1.1" else (2, 48, 5e-5)
    assert (training.epochs, training.batch_size, training.learning_rate) == published and training.longest == 384
    task = SpanAnswers()
    assert (task.design, task.max_query, task.stride, task.max_answer, task.n_best) == ("bert", 64, 128, 30, 20)


def test_summaries_at_debug_size(tmp_path, capsys):
    """The whole of CNN/DailyMail's recipe on generated text; both commands that generate find the same."""
    task = UNILM / "cnn_dailymail"
    run("bash", task / "prepare.sh", tmp_path, "unigram", DEBUG="1")
    trained = run("bash", task / "train.sh", tmp_path, "none", DEBUG="1")
    assert "target_cloze_extractive_loss" in trained.stdout + trained.stderr
    run("bash", task / "generate.sh", tmp_path, "--gen-subset", "valid", "--nbest", 5, DEBUG="1")
    printed = run("bash", task / "score.sh", tmp_path, "valid").stdout
    assert "cnndm|longest:70" in printed and json.loads((tmp_path / "scores.json").read_text())["sentences"] == 8
    printed = run("bash", task / "tune.sh", tmp_path, DEBUG="1").stdout
    assert printed.startswith("40 hypotheses of 8 sentences; 11 settings tried")
    sources = load(RECIPES / "common" / "sources.py")
    exempt = sorted({*sources.symbol_pieces(tmp_path / "data", "|"), *sources.symbol_pieces(tmp_path / "data", ".")})
    output = tmp_path / "ours.txt"
    arguments = ["--path", tmp_path / "model", "--subset", "valid", "--max-source", 640, "--beam", 5, "--n-best", 5,
                 "--max-length", 8, "--no-repeat-ngram", 3, "--no-repeat-ignore", *exempt, "--length-penalty", "unilm",
                 "--output", output]  # fmt: skip
    assert main(["generate", str(tmp_path / "data"), *map(str, arguments)]) == 0
    assert len(pieces(output)) == 40 and pieces(output) == pieces(tmp_path / "generated" / "generate-valid.txt")


def pieces(path: Path) -> list[tuple[str, str]]:
    """Sentence and symbols of each hypothesis of generated output, sentence by sentence."""
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("H-")]
    return sorted(((number, symbols) for number, _, symbols in lines), key=lambda pair: pair[0])
