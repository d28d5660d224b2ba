"""MRQA: halves of the development sets, a model and a score for each data set, and their average."""

import gzip
import json
import random
import shlex
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest

from tests.support.task_folders import language_model
from unified.cli import main
from unified.cli.commands.finetuning.task_groups import finetune_each
from unified.errors import UnifiedError
from unified.reports.result_tables import tables
from unified.reports.results import FILE_NAME, read_results, write_result
from unified.tasks.catalogue import TASK_GROUPS, task_named
from unified.tasks.datasets.mrqa import halves
from unified.tasks.heads.questions import QuestionItem
from unified.tasks.heads.span import SpanAnswers

MRQA = TASK_GROUPS["mrqa"]


def random_items(rng: random.Random) -> list[QuestionItem]:
    """One to four questions about each passage."""
    contexts = [f"passage {i}" for i in range(rng.randint(1, 40)) for _ in range(rng.randint(1, 4))]
    return [QuestionItem(f"{rng.getrandbits(64):016x}", "q", context) for context in contexts]


def test_halves_are_halves_of_the_passages_whatever_the_order():
    """50 sets: every question is in one half, with all others about its passage; no order of the file matters."""
    rng = random.Random(1)
    sizes = Counter()
    for _ in range(50):
        items = random_items(rng)
        valid, test = halves(items)
        contexts = [{item.context for item in part} for part in (valid, test)]
        assert not contexts[0] & contexts[1] and len(contexts[0]) - len(contexts[1]) in (0, 1)
        assert sorted([*valid, *test], key=lambda item: item.id) == sorted(items, key=lambda item: item.id)
        assert [item for item in items if item in set(valid)] == valid  # in the order of the file
        shuffled = rng.sample(items, len(items))
        again = halves(shuffled)
        assert [{item.id for item in part} for part in again] == [{item.id for item in part} for part in (valid, test)]
        sizes["valid"] += len(valid)
        sizes["test"] += len(test)
    assert 0.85 < sizes["test"] / sizes["valid"] < 1.05


def test_halves_stay_what_they_are():
    """Documented: passages by the SHA-256 of the first id; other halves would be other scores."""
    items = [QuestionItem(f"q{i}", "q", f"passage {i // 2}") for i in range(10)]
    valid, test = halves(items)
    assert [item.id for item in valid] == ["q0", "q1", "q4", "q5", "q6", "q7"]
    assert [item.id for item in test] == ["q2", "q3", "q8", "q9"]


def mrqa_file(path, name: str, count: int, rng: random.Random) -> None:
    """In MRQA's format, a passage with two questions a line."""
    lines = [json.dumps({"header": {"dataset": name, "split": path.parent.name}})]
    for i in range(count):
        words = [f"w{k}" for k in rng.sample(range(30), 8)]
        questions = []
        for k in range(2):
            answer = words[rng.randrange(8)]
            start = f" {' '.join(words)} ".index(f" {answer} ")
            detected = [{"text": answer, "char_spans": [[start, start + len(answer) - 1]]}]
            questions.append({"qid": f"{name}-{path.parent.name}-{i}-{k}", "question": f"w{rng.randrange(30)}",
                              "answers": [answer], "detected_answers": detected})  # fmt: skip
        lines.append(json.dumps({"context": " ".join(words), "qas": questions}))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))


#: As the shared task's scripts call the files.
FILES = {
    "NewsQA": "NewsQA", "TriviaQA": "TriviaQA-web", "SearchQA": "SearchQA", "HotpotQA": "HotpotQA",
    "NaturalQuestions": "NaturalQuestionsShort", "SQuAD": "SQuAD",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    rng = random.Random(2)
    for file in FILES.values():
        for part, count in (("train", 9), ("dev", 7)):
            mrqa_file(tmp_path / "mrqa" / part / f"{file}.jsonl.gz", file, count, rng)
    return tmp_path


def test_each_data_set_has_its_own_splits(folder):
    tasks = {**MRQA.members, "SQuAD": "mrqa_squad"}
    for name, task in tasks.items():
        splits = task_named(task).read(folder / "mrqa")
        assert {split: len(items) for split, items in splits.items()} == {"train": 18, "valid": 8, "test": 6}
        assert all(item.id.startswith(FILES[name]) for items in splits.values() for item in items)
    # A test set of one's own is taken as it is, and the development set is whole then.
    mrqa_file(folder / "mrqa" / "test" / "NewsQA.jsonl.gz", "NewsQA", 3, random.Random(3))
    splits = task_named("newsqa").read(folder / "mrqa")
    assert {split: len(items) for split, items in splits.items()} == {"train": 18, "valid": 14, "test": 6}
    (folder / "mrqa" / "dev" / "NewsQA.jsonl.gz").unlink()
    with pytest.raises(UnifiedError, match=r"no dev/NewsQA.jsonl for the valid split"):
        task_named("newsqa").read(folder / "mrqa")


def test_one_model_of_all_data_sets_is_scored_on_each(folder):
    """The average is over data sets, of the whole over questions."""
    splits = task_named("mrqa_together").read(folder / "mrqa")
    assert {split: len(items) for split, items in splits.items()} == {"train": 108, "valid": 48, "test": 36}
    for split, part in (("valid", 0), ("test", 1)):
        for name, task in MRQA.members.items():
            own = [item.id for item in splits[split] if item.subset == FILES[name]]
            assert own == [item.id for item in task_named(task).read(folder / "mrqa")[("valid", "test")[part]]]
    rng, items = random.Random(4), splits["test"]
    found = [{"id": item.id, "answer": rng.choice([item.gold[0], "w99"])} for item in items]
    scores = SpanAnswers.of(items).signed(items, found).scores()
    right = [one["answer"] == item.gold[0] for one, item in zip(found, items, strict=True)]
    means = []
    for file in FILES.values():
        own = [one for one, item in zip(right, items, strict=True) if item.subset == file]
        means.append(100 * sum(own) / len(own))
        assert scores[f"f1_{file}"] == scores[f"exact_{file}"] == pytest.approx(means[-1])
    assert scores["average_f1"] == pytest.approx(sum(means) / 6)
    assert scores["f1"] == pytest.approx(100 * sum(right) / 36)


def test_every_data_set_is_trained_by_itself(folder, capsys):
    """A dry run: five commands, five folders; SQuAD is none of SpanBERT's five."""
    language_model(folder / "model")
    arguments = ["finetune", "mrqa", "--data", folder / "mrqa", "--init", folder / "model", "--output", folder / "run",
                 "--max-length", 32, "--head", "span(passage_first=True)", "--seed", 4, "--dry-run"]  # fmt: skip
    assert main([str(argument) for argument in arguments]) == 0
    said = capsys.readouterr()
    commands = [shlex.split(line) for line in said.out.splitlines() if line.startswith("fairseq-train")]
    tasks, output = list(MRQA.members.values()), folder / "run"
    assert [words[words.index("--save-dir") + 1] for words in commands] == [str(output / task) for task in tasks]
    assert all(words[words.index("--head") + 1] == "span(passage_first=True)" for words in commands)
    assert all(words[words.index("--seed") + 1] == "4" for words in commands)
    assert "mrqa, 1 of 5: NewsQA" in said.err and {path.name for path in output.iterdir()} == set(tasks)
    for task in tasks:
        manifest = json.loads((output / task / "data" / "manifest.json").read_text())
        assert manifest["task"] == task and manifest["items"] == {"train": 18, "valid": 8, "test": 6}


F1 = {"newsqa": 60.0, "triviaqa": 70.0, "searchqa": 80.0, "hotpotqa": 50.0, "naturalquestions": 65.0}


def finetuned(args: Namespace, **changes) -> int:
    """Results as `unified finetune` leaves them; ``updates`` differ from task to task."""
    f1 = F1[args.task] + args.seed
    scores = {split: {"f1": f1, "exact": f1 - 10, "total": 6} for split in ("valid", "test")}
    fields = {
        "task": args.task, "run": "ours", "scores": scores, "seed": args.seed, "command": ["fairseq-train", args.task],
        "model": {"name": "m", "sha256": "a" * 64}, "settings": {"epochs": args.epochs, "updates": int(F1[args.task])},
        "data": {f"{split}.jsonl": args.task for split in ("train", "valid", "test")}, "published": {},
    }  # fmt: skip
    Path(args.output).mkdir(parents=True)
    write_result(Path(args.output), **fields | changes)
    return 0


def arguments_of(folder, output, **changes) -> Namespace:
    fields = {"task": "mrqa", "data": str(folder / "mrqa"), "output": str(output), "dry_run": False, "seed": 1}
    return Namespace(**fields | {"epochs": 4} | changes)


def test_the_average_is_that_of_spanberts_table(folder, capsys):
    """Two seeds and another setting: lines of the group's table are over seeds, beside the published ones."""
    for output, changes in (("1", {}), ("2", {"seed": 2}), ("3", {"epochs": 5})):
        assert finetune_each(arguments_of(folder, folder / output, **changes), MRQA, finetuned) == 0
    scores = json.loads((folder / "1" / FILE_NAME).read_text())["scores"]
    assert scores["test"]["average_f1"] == pytest.approx(66) and scores["test"]["average_exact"] == pytest.approx(56)
    assert {name: scores["test"][f"f1_{name}"] for name in MRQA.members} == {
        name: F1[task] + 1 for name, task in MRQA.members.items()
    }
    capsys.readouterr()
    assert main(["results", *(str(folder / name) for name in "123")]) == 0
    printed = capsys.readouterr().out
    (group,) = [table for table in printed.split("### ") if table.startswith("mrqa, test")]
    assert "| ours | epochs 4 | 1, 2 | 61.50 ± 0.71 | 71.50 ± 0.71 | 81.50 ± 0.71 |" in group
    assert "| ours | epochs 5 | 1 | 61.00 | 71.00 | 81.00 | 51.00 | 66.00 | 66.00 |" in group
    assert "| SpanBERT (published) |  |  | 73.60 | 83.60 | 84.80 | 83.00 | 82.50 | 81.50 |" in group
    alone = tables(read_results([folder / "1" / "newsqa"]), ["f1"])
    assert "### newsqa, test" in alone and alone.count("(published)") == 0  # these files name none


def test_a_finished_group_stays_as_it_is(folder):
    assert finetune_each(arguments_of(folder, folder / "run"), MRQA, finetuned) == 0
    before = {path: path.stat().st_mtime_ns for path in (folder / "run").rglob("*")}
    assert finetune_each(arguments_of(folder, folder / "run"), MRQA, lambda args: 0) == 0
    assert {path: path.stat().st_mtime_ns for path in (folder / "run").rglob("*")} == before


def test_without_a_data_set_there_is_no_average(folder, capsys):
    (folder / "mrqa" / "train" / "SearchQA.jsonl.gz").unlink()
    assert finetune_each(arguments_of(folder, folder / "run"), MRQA, finetuned) == 0
    assert "mrqa: no average, as" in (error := capsys.readouterr().err) and error.rstrip().endswith("SearchQA")
    assert not (folder / "run" / FILE_NAME).exists() and (folder / "run" / "newsqa" / FILE_NAME).exists()
    with pytest.raises(UnifiedError, match="no files of NewsQA, TriviaQA, SearchQA, HotpotQA, NaturalQuestions in it"):
        finetune_each(arguments_of(folder, folder / "run", data=str(folder)), MRQA, finetuned)


def test_results_of_other_seeds_have_no_average(folder):
    def finetune(args: Namespace) -> int:
        return finetuned(args, **({"seed": 9} if args.task == "hotpotqa" else {}))

    with pytest.raises(UnifiedError, match="mrqa: the results of its data sets differ in their seed; make them anew"):
        finetune_each(arguments_of(folder, folder / "run"), MRQA, finetune)


def test_results_of_other_models_have_no_average(folder):
    def finetune(args: Namespace) -> int:
        return finetuned(args, **({"model": {"name": "m", "sha256": "b" * 64}} if args.task == "hotpotqa" else {}))

    with pytest.raises(
        UnifiedError, match="mrqa: the results of its data sets are of different models; make them anew"
    ):
        finetune_each(arguments_of(folder, folder / "run"), MRQA, finetune)


def test_published_averages_are_those_of_the_figures():
    """To the rounding of the table; the first line's is 77.3 there, of figures whose mean is 77.24."""
    for figures in MRQA.published["test"].values():
        *own, average = figures.values()
        assert average == pytest.approx(sum(own) / 5, abs=0.1)
    for name, task in MRQA.members.items():
        published = task_named(task).published["test"]
        assert {system: figures["f1"] for system, figures in published.items()} == {
            system: figures[f"f1_{name}"] for system, figures in MRQA.published["test"].items()
        }


def test_a_group_is_no_task():
    with pytest.raises(UnifiedError, match="mrqa stands for several tasks with a model each: newsqa, triviaqa,"):
        task_named("mrqa")
