"""Tasks by name: their splits from official files, published settings, and one from files to a submission."""

import gzip
import json
import subprocess

import numpy as np
import pytest

from tests.support import fairseq_runs as fairseq
from tests.support.prepared_python import interpreter
from tests.support.task_folders import language_model
from tests.unit.tasks.datasets.test_word_formats import CONLL
from tests.unit.tasks.heads.test_choice import SWAG, race_passage
from tests.unit.tasks.heads.test_relation import TACRED, numbered_semeval
from unified.errors import UnifiedError
from unified.tasks.catalogue import TASKS, task_named
from unified.tasks.datasets.glue import SUBMISSIONS, write_submission
from unified.tasks.datasets.glue_tables import GLUE
from unified.tasks.datasets.imdb import read_imdb
from unified.tasks.heads import parse_head
from unified.tasks.settings import Training
from unified.tasks.writing import WritingTask

NAMES = {name: name.lower().replace("-", "") for name in GLUE}


#: Task -> epochs, batch size, learning rate, longest sequence: of the paper that has the task (Joshi et al. for reading
#: and TACRED, Devlin et al. for GLUE, SWAG and names, Dong et al. for writing), else of the task that is most like it.
SETTINGS = {
    "squad1.1": (3, 32, 5e-5, 384),
    "squad2.0": (2, 48, 5e-5, 384),
    "squad-answers": (2, 32, 5e-5, 384),
    **dict.fromkeys(("squad_qg", "squad_qg_du", "squad_qg_reversed"), (10, 32, 2e-5, 512)),
    "squad_qg_sentence": (10, 32, 2e-5, 192),
    **dict.fromkeys(("newsqa", "triviaqa", "searchqa", "hotpotqa", "naturalquestions"), (4, 32, 2e-5, 512)),
    **dict.fromkeys(("mrqa_squad", "mrqa_together"), (4, 32, 2e-5, 512)),
    "coqa": (2, 16, 3e-5, 512),
    "coqa_free": (10, 32, 2e-5, 512),
    **dict.fromkeys((*NAMES.values(), "sick"), (3, 32, 2e-5, 128)),
    "imdb": (5, 32, 2e-5, 512),
    **dict.fromkeys(("swag", "codah"), (3, 16, 2e-5, 128)),
    **dict.fromkeys(("race", "dream"), (4, 32, 2e-5, 512)),
    "conll2003": (3, 32, 3e-5, 512),
    "wnut17": (3, 32, 3e-5, 128),
    "tacred": (10, 32, 2e-5, 128),
    "semeval2010": (5, 64, 3e-5, 128),
    "conll2012": (20, 1, 2e-5, 384),
    "cnn_dailymail": (30, 32, 3e-5, 768),
    "gigaword": (10, 128, 3e-5, 192),
    "gigaword_10k": (10, 128, 1e-5, 192),
    "xsum": (10, 64, 7e-5, 512),
    **dict.fromkeys(("reuters", "scitldr", "aeslc"), (10, 32, 3e-5, 384)),
    "texts": (10, 32, 3e-5, 512),
}


def test_settings_of_all_tasks():
    found = {name: task.training for name, task in TASKS.items()}
    assert {name: (one.epochs, one.batch_size, one.lr, one.max_length) for name, one in found.items()} == SETTINGS


def test_settings_are_unilms():
    for name in GLUE:
        head, training = TASKS[NAMES[name]].systems["unilm"]
        assert training == Training(5, 32, 5e-5, 512, 0.1, "adamax", 0.0, 1.0)
        dropout = {"MNLI": 0.3, "CoLA": 0.05, "SST-2": 0.05}.get(name, 0.1)
        assert f"dropout={dropout})" in head


def test_settings_are_berts_and_spanberts():
    for name in GLUE:
        task = TASKS[NAMES[name]]
        assert (task.training.epochs, task.training.batch_size) == (3, 32)
        assert task.training.lr in (2e-5, 3e-5, 4e-5, 5e-5)
        assert task.as_in("spanbert").training.epochs == (4 if name == "CoLA" else 10)
    assert (TASKS["swag"].training.epochs, TASKS["swag"].training.batch_size) == (3, 16)
    assert (TASKS["tacred"].training.epochs, TASKS["tacred"].training.max_length) == (10, 128)
    unilm, spanbert = (task_named("squad2.0").as_in(name) for name in ("unilm", "spanbert"))
    assert parse_head(unilm.head).for_items([]).design == "unilm" and unilm.training.batch_size == 24
    assert unilm.training.epochs == 3 and unilm.training.max_length == 384
    kept = {"select": "best", "validations": 10}  # of checkpoints the best of ten validations an epoch
    assert spanbert.training == Training(4, 32, 2e-5, 512, **kept) == task_named("squad1.1").as_in("spanbert").training
    for name, epochs in (("squad1.1", 4), ("squad2.0", 3)):
        xlnet = task_named(name).as_in("xlnet")
        task, training = parse_head(xlnet.head).for_items([]), xlnet.training
        assert (task.design, task.max_query, task.stride, task.max_answer) == ("xlnet", 64, 128, 64)
        assert training == Training(epochs, 48, 3e-5, 512, 1000 / 8000, "adam", 0.0, layer_decay=0.75)
    with pytest.raises(UnifiedError, match="no settings of 'unlm' for rte .did you mean 'unilm'.*; known are unilm,"):
        TASKS["rte"].as_in("unlm")
    with pytest.raises(UnifiedError, match="no settings of 'unilm' for swag; only one paper's are known"):
        TASKS["swag"].as_in("unilm")


def test_xlnets_scripts_fine_tune_without_weight_decay():
    """run_classifier.py, run_race.py and run_squad.py: their flag is 0, and no script sets another value."""
    trainings = [task.as_in("xlnet").training for task in TASKS.values() if "xlnet" in getattr(task, "systems", ())]
    trainings += [TASKS[name].training for name in ("race", "dream", "imdb")]
    assert len(trainings) == 6 and {training.weight_decay for training in trainings} == {0.0}


def test_imdb_warms_up_for_500_of_4000_updates():
    """The command for IMDB in XLNet's README: --train_steps=4000 --warmup_steps=500."""
    assert TASKS["imdb"].training.warmup == 500 / 4000


def test_a_coreference_head_does_not_decay():
    """optimization.py of mandarjoshi90/coref: 0.01 for BERT's parameters, plain Adam for the head's."""
    task = TASKS["conll2012"]
    trainings = [task.training, *(training for _, training in task.systems.values())]
    assert {(training.weight_decay, training.head_weight_decay) for training in trainings} == {(0.01, 0.0)}


def glue_files(folder):
    """One row a split for all tasks of GLUE; MNLI has all of its files."""
    for task in GLUE.values():
        columns = [name for name in (task.text, task.second, task.label) if name]
        label = task.labels[0] if task.labels else "1.5"
        rows = ["\t".join(columns), "\t".join(["A.", "B.", label][: len(columns) - 1] + [label])]
        (folder / task.name).mkdir()
        for split, alternatives in task.files.items():
            path = folder / task.name / alternatives[0][0]
            path.parent.mkdir(exist_ok=True)
            path.write_text("(3 (2 A) (2 .))" if split in task.readers else "\n".join(rows))


def test_every_glue_task_reads_its_folder(tmp_path):
    glue_files(tmp_path)
    for name, task in GLUE.items():
        entry = task_named(NAMES[name])
        splits = entry.read(tmp_path / name)
        assert set(splits) == set(task.files) and all(len(items) == 1 for items in splits.values())
        for split, (item,) in splits.items():
            assert (item.label is None) == (split in entry.unlabelled)
        items = splits["train"] * 2
        for system in (None, "unilm", "spanbert"):
            head = parse_head(entry.head if system is None else entry.as_in(system).head)
            if task.labels:
                head.head_class(labels=task.labels, positive=task.positive)
            else:
                assert entry.measure in head.for_items(items).measures


def test_other_tasks_read_their_folders(tmp_path):
    swag = "\n".join(line.rpartition(",")[0] for line in SWAG.splitlines())
    codah = "o\tHe\truns.\tfalls.\tflies.\tsings.\t3\n"
    dream = json.dumps([[["M: Hi."], [{"question": "Who?", "choice": ["A.", "B."], "answer": "A."}], "5-1"]])
    semeval = numbered_semeval(15)
    chains = "#begin document (nw/a); part 000\nnw/a 0 0 Anna (1)\nnw/a 0 1 she (1)\n#end document\n"
    files = {
        "conll2012": {"train.english.v4_gold_conll": chains, "dev.conll": chains},
        "imdb": {
            f"{part}/{label}/{i}_5.txt": "A film."
            for part in ("train", "test")
            for label in ("neg", "pos")
            for i in range(2)
        },
        "swag": {"train.csv": SWAG, "val.csv": SWAG, "test.csv": swag},
        "codah": {"train.tsv": codah, "fold0-dev.tsv": codah},
        "race": {f"{part}/high/1.txt": json.dumps(race_passage()) for part in ("train", "dev", "test")},
        "dream": {f"{part}.json": dream for part in ("train", "dev", "test")},
        "conll2003": {"eng.train": CONLL, "valid.txt": CONLL, "eng.testb": CONLL},
        "wnut17": {"wnut17train.conll": "a\tO\nb\tB-x\n", "emerging.dev.conll": "a\tO\n"},
        "tacred": {f"{part}.json": json.dumps([TACRED]) for part in ("train", "dev", "test")},
        "semeval2010": {"TRAIN_FILE.TXT": semeval, "TEST_FILE_FULL.TXT": semeval},
    }
    counts = {
        "conll2012": (1, 1), "imdb": (4, 4), "swag": (2, 2, 2), "codah": (1, 1), "race": (2, 2, 2), "dream": (1, 1, 1),
        "conll2003": (3, 3, 3), "wnut17": (1, 1), "tacred": (1, 1, 1), "semeval2010": (27, 3, 30),
    }  # fmt: skip
    for name, contents in files.items():
        for file, text in contents.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        splits = task_named(name).read(tmp_path / name)
        assert tuple(len(splits[split]) for split in ("train", "valid", "test") if split in splits) == counts[name]
        assert parse_head(task_named(name).head).head_class.name in ("classification", "choice", "tagging", "relation",
                                                                  "coreference")  # fmt: skip
    held_out = task_named("semeval2010").read(tmp_path / "semeval2010")["valid"]
    assert [item.id for item in held_out] == ["10", "20", "30"]
    assert task_named("swag").read(tmp_path / "swag")["test"][0].label is None
    with pytest.raises(UnifiedError, match="no such folder"):
        task_named("swag").read(tmp_path / "none")


def test_reviews_are_files(tmp_path):
    files = {"pos/1_10.txt": "Fine.<br /><br />A film\n", "neg/2_1.txt": "Not fine.\n", "neg/urls.dat": "x"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [(item.id, item.text, item.label) for item in read_imdb(tmp_path)] == [
        ("neg/2_1.txt", "Not fine.", "neg"), ("pos/1_10.txt", "Fine.  A film", "pos")
    ]  # fmt: skip
    (tmp_path / "pos" / "1_10.txt.gz").write_bytes(gzip.compress(b"Fine."))
    (tmp_path / "neg" / "3_1.txt").write_text(" \n")
    (tmp_path / "neg" / "4_1.txt").write_bytes(b"\xff")
    with pytest.raises(UnifiedError) as refused:
        read_imdb(tmp_path)
    for problem in ("neg/3_1.txt: empty", "neg/4_1.txt", "not UTF-8", "'pos/1_10.txt' is that of pos/1_10.txt"):
        assert problem in refused.value.details, problem
    with pytest.raises(UnifiedError, match=r"no neg/\*.txt; is it a split of IMDB"):
        read_imdb(tmp_path / "pos")


def test_real_folders_are_read(unified_data):
    counts = {
        "cola": ("glue/CoLA", 8551, 1043), "sst2": ("glue/SST-2", 67349, 872), "mrpc": ("glue/MRPC", 3576, 500),
        "stsb": ("glue/STS-B", 5749, 1500), "qqp": ("glue/QQP", 20000, 2000), "rte": ("glue/RTE", 2490, 277),
        "wnli": ("glue/WNLI", 635, 71), "sick": ("glue/SICK", 4500, 500), "codah": ("codah", 1665, 556),
        "dream": ("dream", 6116, 2040), "wnut17": ("wnut17", 3394, 1009),
        "semeval2010": ("semeval2010_task8", 7200, 800),
    }  # fmt: skip
    for name, (folder, train, valid) in counts.items():
        splits = task_named(name).read(unified_data / folder)
        assert (len(splits["train"]), len(splits["valid"])) == (train, valid)
        assert all(len({item.id for item in items}) == len(items) for items in splits.values())
        entry = task_named(name)
        task = parse_head(entry.head).for_items(splits["train"])
        assert entry.measure is None or entry.measure in task.measures


def test_from_official_files_to_a_submission(tmp_path):
    """WNLI with UniLM's settings: Adamax, predictions for a test set without labels, the file for the server."""
    rng = np.random.default_rng(0)
    (tmp_path / "WNLI").mkdir()
    for name, count in (("train", 256), ("dev", 60), ("test", 146)):
        rows = []
        for i in range(count):
            label = int(rng.integers(2))
            text, second = (" ".join(f"w{w}" for w in rng.integers(2, 30, rng.integers(1, 6))) for _ in range(2))
            rows.append("\t".join([str(i), f"w{label} {text}", second, *([str(label)] if name != "test" else [])]))
        header = "index\tsentence1\tsentence2" + ("\tlabel" if name != "test" else "")
        (tmp_path / "WNLI" / f"{name}.tsv").write_text("\n".join([header, *rows]) + "\n")
    language_model(tmp_path / "model")
    words = [interpreter(), "-m", "unified.cli", "finetune", "wnli", "--data", tmp_path / "WNLI", "--init",
             tmp_path / "model", "--output", tmp_path / "run", "--system", "unilm", "--max-length", "32",
             "--epochs", "8", "--lr", "1e-2"]  # fmt: skip
    result = subprocess.run(
        list(map(str, words)), cwd=fairseq.ROOT, env=fairseq.environment(), capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    command = fairseq.printed_command(result.stderr)
    for option, value in (("--optimizer", "unified_adamax"), ("--weight-decay", "0.0"), ("--clip-norm", "1.0"),
                          ("--batch-size", "32"), ("--best-checkpoint-metric", "accuracy"),
                          ("--total-num-update", "64"), ("--warmup-updates", "6"),
                          ("--head", "classification(dropout=0.1)")):  # fmt: skip
        assert command[command.index(option) + 1] == value
    scores = json.loads((tmp_path / "run" / "results.json").read_text())["scores"]
    assert set(scores) == {"valid"} and scores["valid"]["accuracy"] >= 95
    submission = write_submission("WNLI", tmp_path / "run" / "predictions.test.jsonl", tmp_path / "submission")
    lines = submission.read_text().splitlines()
    assert len(lines) == SUBMISSIONS["WNLI"].rows + 1
    tests = [row.split("\t") for row in (tmp_path / "WNLI" / "test.tsv").read_text().splitlines()[1:]]
    right = sum(line == f"{row[0]}\t{row[1][1]}" for line, row in zip(lines[1:], tests, strict=True))
    assert right >= 0.95 * len(tests)  # the first word says the label


#: Scores by the kind of a task's head; tasks without one write texts.
SCORES = {
    "span": {"exact", "f1"},
    "classification": {"accuracy", "f1", "matthews"},
    "regression": {"pearson", "spearman"},
    "choice": {"accuracy", "accuracy_middle"},
    "tagging": {"f1"},
    "relation": {"precision", "recall", "f1"},
    "coreference": {"muc_f1", "bcub_f1", "ceafe_f1", "average_f1"},
    "": {"bleu4", "meteor", "rouge1", "rouge2", "rougeL", "f1"},
}


@pytest.mark.parametrize("name", TASKS)
def test_published_figures_are_percentages_of_a_split(name):
    published = TASKS[name].published
    kind = "" if isinstance(TASKS[name], WritingTask) else TASKS[name].head.partition("(")[0]
    assert set(published) <= {"valid", "valid_mismatched", "test", "test_labelled", "diagnostic_labelled"}
    for systems in published.values():
        assert systems and not any("test" in system for system in systems)
        assert all(0 < figure < 100 for figures in systems.values() for figure in figures.values())
        assert all(set(figures) <= SCORES[kind] for figures in systems.values())


@pytest.mark.parametrize(
    ("name", "split", "measure", "figure"),
    [
        ("squad2.0", "valid", "f1", 75.6),
        ("squad_qg_du", "test", "bleu4", 20.31),
        ("sst2", "valid", "accuracy", 91.5),
        ("cola", "valid", "matthews", 47.5),
        ("mrpc", "valid", "accuracy", 88.9),
        ("rte", "valid", "accuracy", 68.8),
    ],
)
def test_a_small_model_stands_among_the_published(name, split, measure, figure):
    assert TASKS[name].published[split]["MiniLM, 22M"] == {measure: figure} and "Wang et al. 2020" in TASKS[name].source


def test_mnlis_halves_have_figures_of_their_own():
    published = TASKS["mnli"].published
    assert published["valid"]["ANNA"] == {"accuracy": 90.1} and "test" not in published
    assert published["valid_mismatched"] == {"ANNA": {"accuracy": 89.7}}
