"""GLUE: official files in all their layouts, and the files that the server takes."""

import gzip
import json
import lzma
from collections import Counter
from dataclasses import replace

import pytest

from unified.errors import UnifiedError
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.glue import SUBMISSIONS, write_submission
from unified.tasks.datasets.glue_tables import GLUE, glue_splits, read_glue
from unified.tasks.datasets.sentiment_trees import read_sentiment_trees
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.registry import parse_head

#: Name, split -> lines of a file as the benchmark has it, and the items in it.
LAYOUTS = {
    ("CoLA", "train"): (
        ["gj04\t1\t\tOur friends won't buy this.", 'cj99\t0\t*\tSaid "so he.'],
        [TextItem("0", "Our friends won't buy this.", None, "1"), TextItem("1", 'Said "so he.', None, "0")],
    ),
    ("CoLA", "test"): (["index\tsentence", "0\tBill whistled."], [TextItem("0", "Bill whistled.")]),
    ("SST-2", "train"): (
        ["sentence\tlabel", "hide new secretions \t0", 'it \'s " fun\t1'],
        [TextItem("0", "hide new secretions", None, "0"), TextItem("1", 'it \'s " fun', None, "1")],
    ),
    ("SST-2", "test"): (["index\tsentence", "0\tuneasy mishmash ."], [TextItem("0", "uneasy mishmash .")]),
    ("MRPC", "train"): (
        ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", '1\t7\t8\t"Quoted" once.\tQuoted "twice.\r',
         '0\t9\t10\t"Open.\tShut.\r'],
        [TextItem("0", '"Quoted" once.', 'Quoted "twice.', "1"), TextItem("1", '"Open.', "Shut.", "0")],
    ),
    ("MRPC", "test"): (
        ["index\t#1 ID\t#2 ID\t#1 String\t#2 String", "0\t1\t2\tOne.\tTwo."], [TextItem("0", "One.", "Two.")],
    ),
    ("STS-B", "train"): (
        ["index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
         "0\tmain-captions\tMSRvid\t2012test\t0001\tnone\tnone\tA plane.\tAn air plane.\t4.800"],
        [TextItem("0", "A plane.", "An air plane.", 4.8)],
    ),
    ("STS-B", "test"): (
        ["index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2",
         "0\ta\tb\tc\td\te\tf\tG.\tH."],
        [TextItem("0", "G.", "H.")],
    ),
    ("STS-B", "original"): (
        ["main-news\theadlines\t2013\t0005\t0.400\tOne.\tTwo.",
         "main-forums\tdeft\t2014\t0006\t5\tThree.\tFour.\thttp://a\thttp://b"],
        [TextItem("0", "One.", "Two.", 0.4), TextItem("1", "Three.", "Four.", 5.0)],
    ),
    ("QQP", "train"): (
        ["id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "133\t1\t2\tHow?\tWhy?\t0",
         "30\t3\t4\tIs it", "broken?\t0",
         "12\t5\t6\t\tWhat?\t1", "7\t8\t9\tWho\u2028is?\tWho?\t1"],
        [TextItem("133", "How?", "Why?", "0"), TextItem("7", "Who\u2028is?", "Who?", "1")],
    ),
    ("QQP", "test"): (["id\tquestion1\tquestion2", "0\tHow?\tWhy?"], [TextItem("0", "How?", "Why?")]),
    ("MNLI", "train"): (
        ["index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
         "sentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label",
         "5\tp\tq\tr\t( a )\t( b )\tA\tB\tOne.\tTwo.\tneutral\tneutral"],
        [TextItem("5", "One.", "Two.", "neutral")],
    ),
    ("MNLI", "valid_mismatched"): (
        ["index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\t"
         "sentence1\tsentence2\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label",
         "0\tp\tq\tr\ts\tt\tu\tv\tOne.\tTwo.\tneutral\tentailment\tcontradiction\tentailment\tentailment\tentailment"],
        [TextItem("0", "One.", "Two.", "entailment")],
    ),
    ("MNLI", "test"): (
        ["index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\t"
         "sentence1\tsentence2", "0\tp\tq\tr\ts\tt\tu\tv\tOne.\tTwo."],
        [TextItem("0", "One.", "Two.")],
    ),
    ("QNLI", "train"): (
        ["index\tquestion\tsentence\tlabel", "0\tWhen?\tIn 1980.\tnot_entailment"],
        [TextItem("0", "When?", "In 1980.", "not_entailment")],
    ),
    ("QNLI", "test"): (["index\tquestion\tsentence", "0\tWhen?\tThen."], [TextItem("0", "When?", "Then.")]),
    ("RTE", "train"): (
        ["index\tsentence1\tsentence2\tlabel", "0\tOne.\tTwo.\tentailment"],
        [TextItem("0", "One.", "Two.", "entailment")],
    ),
    ("RTE", "test"): (["index\tsentence1\tsentence2", "0\tOne.\tTwo."], [TextItem("0", "One.", "Two.")]),
    ("WNLI", "train"): (["index\tsentence1\tsentence2\tlabel", "0\tOne.\tIt.\t1"], [TextItem("0", "One.", "It.", "1")]),
    ("WNLI", "test"): (["index\tsentence1\tsentence2", "0\tOne.\tIt."], [TextItem("0", "One.", "It.")]),
    ("MNLI", "diagnostic"): (["index\tsentence1\tsentence2", "0\tA cat.\tCats."], [TextItem("0", "A cat.", "Cats.")]),
    ("MRPC", "test_labelled"): (
        ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", '1\t7\t8\t"Quoted" once.\tQuoted "twice.\r'],
        [TextItem("0", '"Quoted" once.', 'Quoted "twice.', "1")],
    ),
    ("STS-B", "test_labelled"): (
        ["main-captions\tMSRvid\t2012test\t0024\t2.500\tA girl.\tA woman.",
         "main-news\tMSRpar\t2012train\t0008\t5\t\"One.\tTwo.\tof Reuters\thttp://a"],
        [TextItem("0", "A girl.", "A woman.", 2.5), TextItem("1", '"One.', "Two.", 5.0)],
    ),
    ("MNLI", "diagnostic_labelled"): (
        ["Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel",
         "\t\tNegation\t\tArtificial\tThe cat sat.\tThe cat did not sit.\tcontradiction"],
        [TextItem("0", "The cat sat.", "The cat did not sit.", "contradiction")],
    ),
    ("SICK", "train"): (
        ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment", "4\tOne\tTwo\t3.6\tNEUTRAL"],
        [TextItem("4", "One", "Two", "NEUTRAL")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "split"), LAYOUTS, ids=lambda value: value)
def test_official_layouts_are_read(tmp_path, name, split):
    lines, items = LAYOUTS[name, split]
    text = "".join(f"{line}\n" for line in lines).encode()
    for suffix, packed in (("", text), (".gz", gzip.compress(text)), (".xz", lzma.compress(text))):
        path = tmp_path / f"{split}.tsv{suffix}"
        path.write_bytes(packed)
        found, broken = read_glue(GLUE[name], path, labelled=split not in GLUE[name].unlabelled)
        assert found == items
        assert broken == (3 if (name, split) == ("QQP", "train") else 0)


def test_every_split_has_a_layout():
    """MNLI's pairs of files are alike."""
    wanted = {(task.name, split) for task in GLUE.values() for split in task.files if split != "valid"}
    wanted -= {("MNLI", "test_mismatched"), ("SICK", "test")}
    wanted -= {(task.name, split) for task in GLUE.values() for split in task.readers}
    assert {key for key in LAYOUTS if key[1] != "original"} == wanted


TREES = """(3 (2 (2 The) (2 Rock)) (4 (3 (2 is) (4 Good)) (2 .)))
(2 (2 Neither) (2 .))
(1 (2 -LRB-) (1 (0 Bad) (2 -RRB-)))

(0 (1 Awful) (2 !))
"""


def test_sentiment_trees_are_sentences_of_sst2(tmp_path):
    """In lower case, with brackets as in GLUE's files; neutral ones are left out."""
    path = tmp_path / "test.txt"
    path.write_text(TREES)
    expected = [("0", "the rock is good .", "1"), ("1", "( bad )", "0"), ("2", "awful !", "0")]
    assert [(item.id, item.text, item.label) for item in read_sentiment_trees(path)] == expected
    for text, says in (
        ("(3 (2 a)\nwords\n(7 (2 a))\n(2 )\n", r"4 lines \(1, 2, 3, ...\): no tree of sentiments"),
        ("(2 (2 a) (2 .))\n", "the file: holds no positive or negative sentence"),
    ):
        path.write_text(text)
        with pytest.raises(UnifiedError, match=says):
            read_sentiment_trees(path)


#: Task -> files of a folder: name, and the layout in it.
WITH_LABELLED_TESTS = {
    "MRPC": {"train.tsv": "train", "dev.tsv": "train", "test.tsv": "test", "msr_paraphrase_test.txt": "test_labelled"},
    "STS-B": {"train.tsv": "train", "dev.tsv": "train", "test.tsv": "test", "sts-test.csv": "test_labelled"},
    "MNLI": {"train.tsv": "train", "dev_matched.tsv": "train", "AX.tsv": "diagnostic",
             "diagnostic-full.tsv": "diagnostic_labelled"},
    "SST-2": {"train.tsv": "train", "dev.tsv": "train", "test.tsv": "test", "trees/test.txt": None},
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_LABELLED_TESTS)
def test_labelled_test_sets_are_scored_beside_those_for_the_server(tmp_path, name):
    """Published figures of theirs are the server's; what is learnt and what chooses is as without them."""
    for file, layout in WITH_LABELLED_TESTS[name].items():
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in LAYOUTS[name, layout][0]) if layout else TREES)
    task = task_named(name.lower().replace("-", ""))
    splits = task.read(tmp_path)
    kind = "diagnostic" if name == "MNLI" else "test"
    assert set(splits) == {"train", "valid", kind, f"{kind}_labelled"}
    assert kind in task.unlabelled and f"{kind}_labelled" not in task.unlabelled
    assert all(item.label is None for item in splits[kind]) and all(item.label for item in splits[f"{kind}_labelled"])
    labels = GLUE[name].labels
    items = [replace(splits["train"][0], label=label) for label in labels] if labels else splits["train"]
    measures = parse_head(task.head).for_items(items).measures
    figures = [figures for figures in task.published[f"{kind}_labelled"].values()]
    assert figures and all(set(one) <= set(measures) for one in figures)
    (tmp_path / next(file for file, layout in WITH_LABELLED_TESTS[name].items() if file not in (
        "train.tsv", "dev.tsv", "dev_matched.tsv", "test.tsv", "AX.tsv"))).unlink()  # fmt: skip
    assert task.read(tmp_path) == {split: splits[split] for split in ("train", "valid", kind)}


@pytest.mark.slow
def test_real_files_have_their_rows(unified_data):
    folder = unified_data / "glue"
    expected = {
        ("CoLA", "in_domain_train.tsv"): (8551, 0), ("CoLA", "in_domain_dev.tsv"): (527, 0),
        ("CoLA", "out_of_domain_dev.tsv"): (516, 0), ("SST-2", "train.tsv"): (67349, 0), ("SST-2", "dev.tsv"): (872, 0),
        ("MRPC", "msr-para-train.tsv"): (3576, 0), ("MRPC", "msr-para-val.tsv"): (500, 0),
        ("STS-B", "sts-train.tsv"): (5749, 0), ("STS-B", "sts-dev.tsv"): (1500, 0), ("RTE", "train.tsv"): (2490, 0),
        ("RTE", "dev.tsv"): (277, 0), ("WNLI", "train.tsv"): (635, 0), ("WNLI", "dev.tsv"): (71, 0),
        ("QNLI", "dev.tsv"): (5463, 0), ("QQP", "train_subset.tsv"): (20000, 0), ("QQP", "dev_subset.tsv"): (2000, 0),
        ("SICK", "SICK_train.txt"): (4500, 0), ("SICK", "SICK_trial.txt"): (500, 0),
    }  # fmt: skip
    found, labels = {}, {}
    for name, file in expected:
        items, broken = read_glue(GLUE[name], folder / name / f"{file}.xz")
        found[name, file] = (len(items), broken)
        labels[name, file] = [item.label for item in items]
    assert found == expected
    # Facts of these files that a shift of columns would change.
    assert Counter(labels["CoLA", "in_domain_train.tsv"]) == {"1": 6023, "0": 2528}
    assert Counter(labels["SST-2", "dev.tsv"]) == {"1": 444, "0": 428}
    assert Counter(labels["RTE", "dev.tsv"]) == {"entailment": 146, "not_entailment": 131}
    assert (min(labels["STS-B", "sts-train.tsv"]), max(labels["STS-B", "sts-train.tsv"])) == (0.0, 5.0)
    items, _ = read_glue(GLUE["MRPC"], folder / "MRPC" / "msr-para-train.tsv.xz")
    assert items[0].text.startswith('Amrozi accused his brother, whom he called "the witness", of')
    assert items[0].second.startswith('Referring to him as only "the witness", Amrozi')
    quotes = [item for item in items if (item.text + item.second).count('"') % 2]
    assert len(quotes) > 50  # rows that a reader of quotations would join with their neighbours


def test_a_split_may_have_two_files(tmp_path):
    """The original CoLA has two; the file with the official name comes first."""
    (tmp_path / "in_domain_train.tsv").write_text("a\t1\t\tOne.\n")
    (tmp_path / "in_domain_dev.tsv").write_text("a\t1\t\tOne.\n")
    (tmp_path / "out_of_domain_dev.tsv.gz").write_bytes(gzip.compress(b"a\t0\t*\tTwo.\n"))
    splits = glue_splits(GLUE["CoLA"], tmp_path)
    assert splits["valid"] == [
        TextItem("in_domain_dev-0", "One.", None, "1"), TextItem("out_of_domain_dev-0", "Two.", None, "0")
    ]  # fmt: skip
    (tmp_path / "dev.tsv").write_text("a\t1\t\tThree.\n")
    (tmp_path / "test.tsv").write_text("index\tsentence\n5\tFour.\n")
    splits = glue_splits(GLUE["CoLA"], tmp_path)
    assert splits["valid"] == [TextItem("0", "Three.", None, "1")] and splits["test"] == [TextItem("5", "Four.")]
    (tmp_path / "dev.tsv").unlink()
    (tmp_path / "in_domain_dev.tsv").unlink()
    with pytest.raises(UnifiedError, match="no dev.tsv, or in_domain_dev.tsv and out_of_domain_dev.tsv for the valid"):
        glue_splits(GLUE["CoLA"], tmp_path)


# Submissions


def predictions(path, labels):
    path.write_text("".join(json.dumps({"id": str(i), "label": label}) + "\n" for i, label in labels), encoding="utf-8")
    return path


def test_a_submission_has_every_row_in_order(tmp_path):
    order = [*range(145, -1, -1)]
    path = predictions(tmp_path / "p.jsonl", [(i, "01"[i % 3 == 0]) for i in order])
    written = write_submission("WNLI", path, tmp_path / "out")
    assert written == tmp_path / "out" / "WNLI.tsv"
    assert written.read_text() == "index\tprediction\n" + "".join(f"{i}\t{int(i % 3 == 0)}\n" for i in range(146))


def test_inference_is_answered_in_words(tmp_path):
    path = predictions(tmp_path / "p.jsonl", [(i, "neutral") for i in range(1104)])
    assert write_submission("AX", path, tmp_path).read_text().splitlines()[-1] == "1103\tneutral"
    assert {name for name, one in SUBMISSIONS.items() if one.task == "MNLI"} == {"MNLI-m", "MNLI-mm", "AX"}
    for submission in SUBMISSIONS.values():
        assert submission.split in GLUE[submission.task].unlabelled
