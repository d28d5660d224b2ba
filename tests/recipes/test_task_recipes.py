"""Recipes of tasks: downloads put official files where they are read, scripts ask for the published settings."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shlex
import stat
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import unified
from tests.recipes.test_recipes import RECIPES, load, run
from tests.unit.tasks.heads.test_choice import SWAG, race_passage
from tests.unit.tasks.heads.test_relation import SEMEVAL, numbered_semeval
from unified.checkpoints.trained import Trained, write
from unified.cli.parsing import make_parser
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.catalogue import TASK_GROUPS, task_named
from unified.tasks.datasets.glue import SUBMISSIONS
from unified.tasks.windows import TokenCounter
from unified.tasks.writing import TokenBudget, WritingTask
from unified.tokenization.wordpiece import WordPieceTokenizer

sys.path.insert(0, str(RECIPES / "common"))
import task_data  # noqa: E402
import task_debug  # noqa: E402

FINETUNE = RECIPES / "finetune.py"
finetune = load(FINETUNE)
GROUPS_OF_TASKS = [(system, name) for system, groups in finetune.SYSTEMS.items() for name in groups]


@pytest.mark.parametrize(("system", "group"), GROUPS_OF_TASKS)
@pytest.mark.parametrize("debug", [False, True])
def test_every_recipe_is_a_command_of_unified_finetune(system, group, debug):
    for name in finetune.SYSTEMS[system][group]["tasks"]:
        arguments = system, name, Path("data"), "model", "out", debug, ["--seed", "7"]
        words, *_ = finetune.commands(*arguments)
        options = make_parser("finetune").parse_args(words[1:])
        tasks = (
            [task_named(task) for task in TASK_GROUPS[name].members.values()]
            if name in TASK_GROUPS
            else [task_named(name)]
        )
        assert (options.task, options.data, options.init, options.output) == (name, "data", "model", "out")
        assert options.seed == 7 and debug == (options.epochs is not None)
        if options.system:
            assert options.system == system and all(system in task.systems for task in tasks)


def test_sections_are_those_of_the_first_edition_of_unilm():
    """arXiv 1905.03197v1."""
    sections = {name: group["source"] for name, group in finetune.SYSTEMS["unilm"].items()}
    assert sections == {
        "glue": "[UniLM, sec. 3.4]", "squad": "[UniLM, sec. 3.2.1]", "coqa": "[UniLM, secs. 3.2.1 and 3.2.2]",
        "squad_qg": "[UniLM, sec. 3.3]", "summaries": "[UniLM, sec. 3.1]",
    }  # fmt: skip


def test_other_tasks_and_systems_are_refused(capsys):
    for system, task, said in (("bert", "cola2", "'cola2'; it has cola, sst2"), ("gpt", "rte", "'gpt'")):
        with pytest.raises(SystemExit) as refused:
            finetune.main([system, task, "data", "model", "out"])
        assert refused.value.code == 2 and said in capsys.readouterr().err


@pytest.fixture(scope="module")
def debug(tmp_path_factory) -> Path:
    """The debug files of all tasks."""
    folder = tmp_path_factory.mktemp("debug")
    task_data.main([str(folder), "debug"])
    return folder


def test_the_debug_files_are_read(debug):
    for name in task_debug.TASKS:
        tasks = TASK_GROUPS[name].present(debug / name).values() if name in TASK_GROUPS else [name]
        for task in map(task_named, tasks):
            if not isinstance(task, WritingTask):
                sizes = {split: len(items) for split, items in task.read(debug / name).items()}
                # MRQA's test set is a half of its development set.
                development = sizes["valid"] + (sizes["test"] if name in TASK_GROUPS else 0)
                assert (sizes["train"], development) == (240, 40)


def debug_model(files: Path, folder: Path, **shape) -> Path:
    """A tiny model with random weights, whose vocabulary has the words of a task's files and four symbols."""
    texts = [path.read_text(encoding="utf-8").lower() for path in sorted(files.rglob("*.*"))]
    spelled = sorted({word for text in texts for word in re.findall(r"[a-z]+|[^\sa-z]", text)})
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"[unused{i}]" for i in range(1, 5)), *spelled]
    vocabulary = Vocabulary(entries[5:])
    shape = {"layers": 2, "width": 32, "heads": 2, "token_types": 2, "initializer_range": 0.1} | shape
    config = TransformerConfig(vocabulary_size=len(vocabulary), **shape)
    folder.mkdir()
    torch.manual_seed(0)
    WordPieceTokenizer(entries, lowercase=True).save(folder)
    write(Trained(config, "nothing", UnifiedModel.for_language(config).state_dict(), vocabulary), folder)
    return folder


def debug_scores(system: str, task: str, files: Path, folder: Path, *options) -> dict[str, float]:
    """Scores of a recipe's debug run, which leaves its files in ``folder``/run."""
    start = debug_model(files, folder / "model", **(XLNET if system == "xlnet" else {}))
    run("python", FINETUNE, system, task, files, start, folder / "run", "--debug", *options)
    return scores_of(folder / "run")


#: What makes a tiny model one of XLNet's kind.
XLNET = {"positions": "relative", "token_head": "plain", "activation": "gelu_tanh"}


def scores_of(output: Path) -> dict[str, float]:
    return json.loads((output / "results.json").read_text())["scores"]["valid"]


@pytest.mark.parametrize(
    ("system", "task", "folder", "measure"),
    [("bert", "sst2", "sst2", "accuracy"), ("bert", "swag", "swag", "accuracy"), ("bert", "wnut17", "wnut17", "f1"),
     ("unilm", "sst2", "sst2", "accuracy"), ("spanbert", "sst2", "sst2", "accuracy"),
     ("spanbert", "newsqa", "mrqa", "exact"), ("xlnet", "imdb", "imdb", "accuracy"),
     ("xlnet", "dream", "dream", "accuracy")],
)  # fmt: skip
def test_the_debug_run_learns_its_task(debug, tmp_path, system, task, folder, measure):
    assert debug_scores(system, task, debug / folder, tmp_path)[measure] >= 85


def test_the_row_with_an_lstm_at_debug_size(debug, tmp_path):
    """BERT's table 5, "+ BiLSTM": the script keeps the mask of pre-training and adds the layer."""
    start = debug_model(debug / "sst2", tmp_path / "model", mask="left_to_right")
    options = "--debug", "--lstm", "1", "--dry-run"
    result = run("python", FINETUNE, "bert", "sst2", debug / "sst2", start, tmp_path / "run", *options)
    words = shlex.split(next(line for line in result.stdout.splitlines() if line.startswith("fairseq-train")))
    assert words[words.index("--mask") + 1] == "left_to_right" and words[words.index("--lstm") + 1] == "1"


def test_relations_at_debug_size(debug, tmp_path):
    """Types of entities say the relation, and symbols for them stand in the place of the words."""
    assert debug_scores("spanbert", "tacred", debug / "tacred", tmp_path)["f1"] >= 95
    content = torch.load(tmp_path / "run" / "checkpoint_last.pt", weights_only=True)["extra_state"]
    settings = content["UnifiedUnderstandingTask"]["relation"]["settings"]
    assert set(settings["types"]) == {"SUBJ=HARBOUR", "SUBJ=GARDEN", "OBJ=HARBOUR", "OBJ=GARDEN"}
    assert settings["labels"] == ("garden:part", "harbour:part", "no_relation")


#: Of extractive answers at debug size, behind the published settings.
ANSWERING = ("--batch-size", 16, "--max-length", 64, "--lr", 4e-3, "--fairseq",
             "--dropout 0 --attention-dropout 0 --log-format json --num-workers 0 "
             "--validate-interval 10 --save-interval 10")  # fmt: skip


def test_parts_of_passages_answer_conversations(debug, tmp_path):
    """Two of a story's four turns say their subject in what was said before alone: half of them can be guessed."""
    start = debug_model(debug / "coqa", tmp_path / "model")
    words = ("unilm", "coqa", debug / "coqa", start, tmp_path / "run", "--epochs", 20, *ANSWERING)
    run("python", FINETUNE, *words)
    assert scores_of(tmp_path / "run")["f1"] >= 85
    checkpoint, data = tmp_path / "run" / "checkpoint_last.pt", tmp_path / "run" / "data"
    predictor = unified.load(checkpoint, data=data).predictor()
    items = task_named("coqa").read(debug / "coqa")["valid"]
    forgetful = [replace(item, history=None) for item in items]
    assert predictor.task.score(items, list(predictor.predict(forgetful)))["f1"] < 70


# Downloads


@pytest.fixture
def internet(monkeypatch):
    """Address -> content, in place of what urllib would fetch."""
    contents: dict[str, bytes] = {}

    def retrieve(url, path):
        if url not in contents:
            raise OSError(f"{url}: not found")
        Path(path).write_bytes(contents[url])

    def hashes():
        return {url: hashlib.sha256(content).hexdigest() for url, content in contents.items()}

    monkeypatch.setattr(task_data.fetch.__globals__["urllib"].request, "urlretrieve", retrieve)
    monkeypatch.setitem(task_data.fetch.__globals__, "known_hashes", hashes)
    return contents


def zipped(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def tarred(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def test_downloads_are_where_they_are_read(tmp_path, internet):
    rte = "index\tsentence1\tsentence2"
    internet["https://dl.fbaipublicfiles.com/glue/data/RTE.zip"] = zipped(
        {"RTE/train.tsv": f"{rte}\tlabel\n0\ta\tb\tentailment\n", "RTE/dev.tsv": f"{rte}\tlabel\n0\tc\td\tentailment\n",
         "RTE/test.tsv": f"{rte}\n0\te\tf\n", "__MACOSX/RTE/._train.tsv": "x", "RTE/": ""}
    )  # fmt: skip
    mnli = {"sentence1": "a", "sentence2": "b", "gold_label": "neutral"}
    table = "\t".join(mnli) + "\n" + "\t".join(mnli.values()) + "\n"
    parts = ("train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched")
    internet["https://dl.fbaipublicfiles.com/glue/data/MNLI.zip"] = zipped(
        {f"MNLI/{part}.tsv": table for part in parts} | {"MNLI/original/train.tsv": "x"}
    )
    internet["https://dl.fbaipublicfiles.com/glue/data/AX.tsv"] = f"{rte}\n0\ta\tb\n".encode()
    passage = json.dumps(race_passage())
    internet["https://www.cs.cmu.edu/~glai1/data/race/RACE.tar.gz"] = tarred(
        {f"RACE/{part}/high/1.txt": passage for part in ("train", "dev", "test")} | {"RACE/data.pdf": "x"}
    )
    swag = "\n".join(line.rpartition(",")[0] for line in SWAG.splitlines())
    for name, text in (("train", SWAG), ("val", SWAG), ("test", swag)):
        internet[f"https://raw.githubusercontent.com/rowanz/swagaf/master/data/{name}.csv"] = text.encode()
    address = task_data.SOURCES["semeval2010"][0].url
    folder = "SemEval2010_task8_all_data"
    internet[address] = zipped(
        {f"{folder}/SemEval2010_task8_training/TRAIN_FILE.TXT": numbered_semeval(5),
         f"{folder}/SemEval2010_task8_testing_keys/TEST_FILE_FULL.TXT": SEMEVAL}
    )  # fmt: skip
    reviews = {f"aclImdb/{part}/{label}/0_5.txt": "A film." for part in ("train", "test") for label in ("neg", "pos")}
    internet["https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"] = tarred(
        reviews | {"aclImdb/train/unsup/0_0.txt": "x", "aclImdb/train/pos.feat": "x"}
    )
    task_data.main([str(tmp_path), "rte", "mnli", "race", "swag", "semeval2010", "imdb"])
    counts = {"rte": (1, 1, 1), "mnli": (1, 1, 1, 1, 1, 1), "race": (2, 2, 2), "swag": (2, 2, 2),
              "semeval2010": (9, 2, 1), "imdb": (2, 2)}  # fmt: skip
    for name, expected in counts.items():
        splits = task_named(name).read(tmp_path / name)
        assert tuple(map(len, splits.values())) == expected, name
    assert (tmp_path / "rte" / "train.tsv").read_text().count("entailment") == 1
    internet["https://dl.fbaipublicfiles.com/glue/data/WNLI.zip"] = zipped({"readme": "moved"})
    with pytest.raises(UnifiedError, match="WNLI.zip: holds none of the files"):
        task_data.main([str(tmp_path), "wnli"])


def test_mrpc_is_divided_as_in_glue(tmp_path, internet):
    """Rows of the development set are named by their pairs of numbers."""
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    rows = [f'{i % 2}\t{i}\t{i + 100}\tOne "{i}.\tTwo {i}.\r\n' for i in range(6)]
    address = "https://dl.fbaipublicfiles.com/senteval/senteval_data/msr_paraphrase_{}.txt"
    internet[address.format("train")] = (header + "".join(rows[:4])).encode()
    internet[address.format("test")] = (header + "".join(rows[4:])).encode()
    internet["https://dl.fbaipublicfiles.com/glue/data/mrpc_dev_ids.tsv"] = b"1\t101\n3\t103\n"
    task_data.main([str(tmp_path), "mrpc"])
    splits = task_named("mrpc").read(tmp_path / "mrpc")
    texts = {split: [item.text for item in items] for split, items in splits.items()}
    assert texts == {"train": ['One "0.', 'One "2.'], "valid": ['One "1.', 'One "3.'], "test": ['One "4.', 'One "5.'],
                     "test_labelled": ['One "4.', 'One "5.']}  # fmt: skip
    assert [item.label for item in splits["valid"]] == ["1", "1"]
    assert [(item.id, item.label) for item in splits["test"]] == [("0", None), ("1", None)]
    assert [(item.id, item.label) for item in splits["test_labelled"]] == [("0", "0"), ("1", "1")]


def test_every_download_has_a_task_a_safe_address_and_a_hash():
    addresses = set()
    for name, sources in task_data.SOURCES.items():
        task_named(name)
        if not isinstance(sources, task_data.Hub):
            addresses.update(source.url for source in sources)
    known = task_data.fetch.__globals__["known_hashes"]()
    assert addresses == known.keys() and all(url.startswith("https://") for url in known)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in known.values())


def test_files_with_another_hash_are_refused(tmp_path, internet, monkeypatch):
    """Downloaded now, or found where downloads are kept."""
    address = "https://dl.fbaipublicfiles.com/glue/data/WNLI.zip"
    folder, wanted = tmp_path / "wnli" / "downloads", "0" * 64
    internet[address] = zipped({"WNLI/train.tsv": "x"})
    monkeypatch.setitem(task_data.fetch.__globals__, "known_hashes", lambda: {address: wanted})
    with pytest.raises(UnifiedError, match=rf"^{address}: the file has changed \(SHA-256 \w+, known is {wanted}\)$"):
        task_data.main([str(tmp_path), "wnli"])
    assert list(folder.iterdir()) == []
    (folder / "WNLI.zip").write_bytes(internet[address])
    with pytest.raises(UnifiedError, match=f"WNLI.zip: not the file of {address}; remove it"):
        task_data.main([str(tmp_path), "wnli"])
    assert not (tmp_path / "wnli" / "train.tsv").exists()


def test_archives_with_links_are_refused(tmp_path, internet):
    link = zipfile.ZipInfo("WNLI/train.tsv")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    internet["https://dl.fbaipublicfiles.com/glue/data/WNLI.zip"] = stream.getvalue()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("RACE/train/high/1.txt")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    internet["https://www.cs.cmu.edu/~glai1/data/race/RACE.tar.gz"] = stream.getvalue()
    for name, member in (("wnli", "WNLI/train.tsv"), ("race", "RACE/train/high/1.txt")):
        with pytest.raises(UnifiedError, match=f"{member} is a link; no archive of a data set needs one"):
            task_data.main([str(tmp_path), name])
        assert [path.name for path in (tmp_path / name).iterdir()] == ["downloads"]


@pytest.mark.parametrize("name", ["cnn_dailymail", "gigaword", "xsum"])
def test_downloads_of_summaries_are_kept(tmp_path, monkeypatch, name):
    """With a stand-in for the hub: the columns named as there, and more; what was fetched is not fetched again."""
    import nltk.stem.porter  # noqa: F401  the processes that read summaries find it and the next imported
    import rouge_score.tokenizers  # noqa: F401

    asked, (text, summary) = [], task_data.SOURCES[name].fields

    def hub_rows(*wanted):
        asked.append(wanted)
        return ({text: f"Text {i} of {wanted[-1]}.", summary: f"text {i}", "id": "x"} for i in range(3))

    monkeypatch.setattr(task_data, "hub_rows", hub_rows)
    for _ in range(2):
        task_data.main([str(tmp_path), name])
    hub = task_data.SOURCES[name]
    assert asked == [(hub.name, hub.configuration, part) for part in ("train", "validation", "test")]
    splits = task_named(name).read(tmp_path / name, TokenBudget(TokenCounter(str.split), 100))
    assert [(split, len(items), items[2].source) for split, items in splits.items()] == [
        ("train", 3, "Text 2 of train."), ("valid", 3, "Text 2 of validation."), ("test", 3, "Text 2 of test.")
    ]  # fmt: skip


def test_submission_of_what_there_is(tmp_path, capsys):
    main = load(RECIPES / "bert" / "glue" / "submission.py").main
    for task, split in (("wnli", "test"), ("mnli", "diagnostic")):
        rows, label = (146, "1") if task == "wnli" else (1104, "neutral")
        (tmp_path / task).mkdir()
        lines = (json.dumps({"id": str(i), "label": label}) + "\n" for i in range(rows))
        (tmp_path / task / f"predictions.{split}.jsonl").write_text("".join(lines))
    main([str(tmp_path), str(tmp_path / "out")])
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"WNLI.tsv", "AX.tsv"}
    said = capsys.readouterr().out
    assert all((f"{name} (" in said) == (name not in ("WNLI", "AX")) for name in SUBMISSIONS)
    # As `unified finetune` does for one task.
    for task, name in (("wnli", "WNLI.tsv"), ("mnli", "AX.tsv")):
        (made,) = task_named(task).submit(tmp_path / task, tmp_path / task / "submission")
        assert made.read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert task_named("sick").submit(tmp_path / "wnli", tmp_path) == []
