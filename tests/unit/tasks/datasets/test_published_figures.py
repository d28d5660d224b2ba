"""Published figures of all tasks, paper by paper, and the sources that tasks name."""

import re
from collections.abc import Iterator

import pytest

from unified.tasks.catalogue import TASK_GROUPS, TASKS

#: Of [BERT]; those of test sets whose labels are public are the server's.
BERT = {
    ("cola", "valid", "matthews"): {"BERT": 60.6},
    ("sst2", "valid", "accuracy"): {"BERT base": 92.7, "BERT": 93.2},
    ("sst2", "test_labelled", "accuracy"): {"BERT base": 93.5, "BERT": 94.9},
    ("mrpc", "valid", "accuracy"): {"BERT base": 86.7, "BERT": 88.0},
    ("mrpc", "test_labelled", "f1"): {"BERT base": 88.9, "BERT": 89.3},
    ("stsb", "valid", "pearson"): {"BERT": 90.0},
    ("stsb", "test_labelled", "spearman"): {"BERT base": 85.8, "BERT": 86.5},
    ("qqp", "valid", "accuracy"): {"BERT": 91.3},
    ("mnli", "valid", "accuracy"): {"BERT base": 84.4, "BERT": 86.6},
    ("mnli", "diagnostic_labelled", "matthews"): {"BERT": 39.6},
    ("qnli", "valid", "accuracy"): {"BERT base": 88.4, "BERT": 92.3},
    ("rte", "valid", "accuracy"): {"BERT": 70.4},
    ("squad1.1", "valid", "f1"): {"BERT base": 88.5, "BERT large": 90.9},
    ("squad1.1", "valid", "exact"): {"BERT large": 84.1},
    ("squad2.0", "valid", "exact"): {"BERT large": 78.9},
    ("squad2.0", "valid", "f1"): {"BERT large": 81.8},
    ("swag", "test", "accuracy"): {"BERT large": 86.3},
    ("conll2003", "valid", "f1"): {"BERT base": 96.4, "BERT large": 96.6, "BERT base, features": 96.1},
    ("conll2003", "test", "f1"): {"BERT base": 92.4, "BERT large": 92.8},
}
#: Of [UniLM] and its released code, with BERT's figure for CoQA.
UNILM = {
    ("sst2", "test_labelled", "accuracy"): {"UniLM": 94.5},
    ("mrpc", "test_labelled", "f1"): {"UniLM": 90.0},
    ("stsb", "test_labelled", "spearman"): {"UniLM": 87.7},
    ("mnli", "diagnostic_labelled", "matthews"): {"UniLM": 38.4},
    ("squad2.0", "valid", "exact"): {"UniLM large": 80.5},
    ("squad2.0", "valid", "f1"): {"UniLM large": 83.4},
    ("coqa", "valid", "f1"): {"BERT large": 82.7, "UniLM large": 84.9},
    ("coqa_free", "valid", "f1"): {"UniLM large, generative": 82.5},
    ("squad_qg", "test", "bleu4"): {"UniLM large": 22.88},
    ("squad_qg", "test", "meteor"): {"UniLM large": 24.94},
    ("squad_qg", "test", "rougeL"): {"UniLM large": 51.80},
    ("squad_qg_du", "test", "bleu4"): {"UniLM large": 22.78},
    ("squad_qg_du", "test", "meteor"): {"UniLM large": 25.49},
    ("squad_qg_du", "test", "rougeL"): {"UniLM large": 51.57},
    ("squad_qg_reversed", "test", "bleu4"): {"UniLM large": 24.32},
    ("squad_qg_reversed", "test", "meteor"): {"UniLM large": 26.10},
    ("squad_qg_reversed", "test", "rougeL"): {"UniLM large": 52.69},
    ("cnn_dailymail", "test", "rouge1"): {"UniLM large": 43.47},
    ("cnn_dailymail", "test", "rouge2"): {"UniLM large": 20.30},
    ("cnn_dailymail", "test", "rougeL"): {"UniLM large": 40.63},
    ("gigaword", "test", "rouge1"): {"UniLM large": 38.90},
    ("gigaword", "test", "rouge2"): {"UniLM large": 20.05},
    ("gigaword", "test", "rougeL"): {"UniLM large": 36.00},
    ("gigaword_10k", "test", "rouge1"): {"UniLM large": 34.21},
    ("gigaword_10k", "test", "rouge2"): {"UniLM large": 15.28},
    ("gigaword_10k", "test", "rougeL"): {"UniLM large": 31.54},
}
#: Of [XLNet], with BERT's figure for RACE.
XLNET = {
    ("cola", "valid", "matthews"): {"XLNet": 69.0},
    ("sst2", "valid", "accuracy"): {"XLNet": 97.0},
    ("mrpc", "valid", "accuracy"): {"XLNet": 90.8},
    ("stsb", "valid", "pearson"): {"XLNet": 92.5},
    ("qqp", "valid", "accuracy"): {"XLNet": 92.3},
    ("mnli", "valid", "accuracy"): {"XLNet": 90.8},
    ("qnli", "valid", "accuracy"): {"XLNet": 94.9},
    ("rte", "valid", "accuracy"): {"XLNet": 85.9},
    ("squad1.1", "valid", "exact"): {"XLNet large": 89.0},
    ("squad1.1", "valid", "f1"): {"XLNet large": 94.5},
    ("squad2.0", "valid", "exact"): {"XLNet large": 87.9},
    ("squad2.0", "valid", "f1"): {"XLNet large": 90.6},
    ("imdb", "valid", "accuracy"): {"XLNet large": 96.21},
    ("race", "test", "accuracy"): {"BERT base": 64.3, "XLNet large": 81.75},
    ("race", "test", "accuracy_middle"): {"XLNet large": 85.45},
}
#: Of [SpanBERT], with the figures of BERT that it compares with; MRQA's are below.
SPANBERT = {
    ("sst2", "test_labelled", "accuracy"): {"SpanBERT": 94.8},
    ("mrpc", "test_labelled", "f1"): {"SpanBERT": 90.9},
    ("mrpc", "test_labelled", "accuracy"): {"SpanBERT": 87.9},
    ("stsb", "test_labelled", "pearson"): {"SpanBERT": 89.9},
    ("stsb", "test_labelled", "spearman"): {"SpanBERT": 89.1},
    ("tacred", "test", "precision"): {"BERT large, Google's": 69.1, "SpanBERT": 70.8},
    ("tacred", "test", "recall"): {"BERT large, Google's": 63.9, "SpanBERT": 70.9},
    ("tacred", "test", "f1"): {"BERT large, Google's": 66.4, "SpanBERT": 70.8, "BERT with entity markers": 70.1},
    ("conll2012", "test", "average_f1"): {"SpanBERT base": 77.7, "SpanBERT large": 79.6, "BERT base": 73.9},
    ("conll2012", "test", "muc_f1"): {"SpanBERT large": 85.3},
    ("conll2012", "test", "bcub_f1"): {"SpanBERT large": 78.1},
    ("conll2012", "test", "ceafe_f1"): {"SpanBERT large": 75.3},
}
#: Of [ANNA].
ANNA = {
    ("cola", "valid", "matthews"): {"ANNA": 65.8},
    ("sst2", "valid", "accuracy"): {"ANNA": 96.4},
    ("mrpc", "valid", "f1"): {"ANNA": 91.4},
    ("mrpc", "valid", "accuracy"): {"ANNA": 88.4},
    ("stsb", "valid", "pearson"): {"ANNA": 91.5},
    ("stsb", "valid", "spearman"): {"ANNA": 90.9},
    ("qqp", "valid", "f1"): {"ANNA": 73.5},
    ("qqp", "valid", "accuracy"): {"ANNA": 89.5},
    ("mnli", "valid", "accuracy"): {"ANNA": 90.1},
    ("mnli", "valid_mismatched", "accuracy"): {"ANNA": 89.7},
    ("qnli", "valid", "accuracy"): {"ANNA": 95.0},
    ("rte", "valid", "accuracy"): {"ANNA": 83.7},
    ("squad1.1", "valid", "exact"): {"ANNA base": 87.0, "ANNA large": 90.0},
    ("squad1.1", "valid", "f1"): {"ANNA base": 92.8, "ANNA large": 95.4},
    ("squad2.0", "valid", "exact"): {"ANNA large": 88.4},
    ("squad2.0", "valid", "f1"): {"ANNA large": 90.8},
}
#: Of Wang et al. 2020 (MiniLM): the model of 22M parameters.
MINILM = {
    ("cola", "valid", "matthews"): {"MiniLM, 22M": 47.5},
    ("sst2", "valid", "accuracy"): {"MiniLM, 22M": 91.5},
    ("mrpc", "valid", "accuracy"): {"MiniLM, 22M": 88.9},
    ("rte", "valid", "accuracy"): {"MiniLM, 22M": 68.8},
    ("squad2.0", "valid", "f1"): {"MiniLM, 22M": 75.6},
    ("squad_qg_du", "test", "bleu4"): {"MiniLM, 22M": 20.31},
}
#: [SpanBERT, table 2]: F1 on MRQA's test halves.
MRQA = """
                          NewsQA TriviaQA SearchQA HotpotQA NaturalQuestions average
BERT, Google's            68.8   77.5     81.7     78.3     79.9             77.3
BERT, SpanBERT's authors' 71.0   79.0     81.8     80.5     80.5             78.6
BERT, one sequence        71.9   80.4     84.0     80.3     81.8             79.7
SpanBERT                  73.6   83.6     84.8     83.0     82.5             81.5
"""


def rows_of_mrqa() -> Iterator[tuple[str, dict[str, float]]]:
    """System, and its figure for each column."""
    header, *lines = MRQA.strip("\n").splitlines()
    for line in lines:
        yield line[:26].strip(), dict(zip(header.split(), map(float, line[26:].split()), strict=True))


def flat(published) -> dict[tuple[str, str, str], float]:
    """Figures by split, measure and system."""
    return {
        (split, measure, system): figure
        for split, systems in published.items()
        for system, figures in systems.items()
        for measure, figure in figures.items()
    }


def test_figures_of_all_tasks_are_those_of_the_papers():
    wanted: dict[str, dict[tuple[str, str, str], float]] = {name: {} for name in TASKS}
    for table in (BERT, UNILM, XLNET, SPANBERT, ANNA, MINILM):
        for (name, split, measure), systems in table.items():
            own = {(split, measure, system): figure for system, figure in systems.items()}
            assert not own.keys() & wanted[name].keys()
            wanted[name] |= own
    for system, figures in rows_of_mrqa():
        for name in figures.keys() - {"average"}:
            wanted[name.lower()]["test", "f1", system] = figures[name]
    for name, task in TASKS.items():
        assert flat(task.published) == wanted[name], name


def test_figures_of_all_of_mrqa_have_their_mean():
    group = TASK_GROUPS["mrqa"]
    assert list(group.published) == ["test"] and group.measures == ("f1", "exact") and list(TASK_GROUPS) == ["mrqa"]
    rows = dict(rows_of_mrqa())
    assert list(group.published["test"]) == list(rows)
    for system, figures in rows.items():
        average = figures.pop("average")
        found = dict(group.published["test"][system])
        assert found.pop("average_f1") == average == pytest.approx(sum(figures.values()) / 5, abs=0.11)
        assert found == {f"f1_{name}": figure for name, figure in figures.items()}
    names = MRQA.split()[:5]
    assert group.members == {name: name.lower() for name in names} and group.source == TASKS["newsqa"].source


GLUE = (
    "Devlin et al. 2019, section 4.1; figures of Devlin et al. 2019, Dong et al. 2019, Joshi et al. 2020, "
    "Yang et al. 2019, Jun et al. 2022, Wang et al. 2020 (MiniLM, 6 layers)"
)
MRQA_SOURCE = "Joshi et al. 2020, section 4 and its published script; figures of table 2, on halves that are not public"
QUESTIONS = "Dong et al. 2019, section 3.3; rates and {} split of the released code"
#: Where the settings and figures of each task are published; nothing is, of the tasks that are not here.
SOURCES = {
    **dict.fromkeys(("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli", "sick"), GLUE),
    **dict.fromkeys(("newsqa", "triviaqa", "searchqa", "hotpotqa", "naturalquestions", "mrqa_squad"), MRQA_SOURCE),
    "mrqa_together": "settings of Joshi et al. 2020",
    "squad1.1": "Devlin et al. 2019, sections 4.2 and 4.3; Joshi et al. 2020; Yang et al. 2019 and their script; Jun "
    "et al. 2022",
    "squad2.0": "Devlin et al. 2019, sections 4.2 and 4.3; Dong et al. 2019, who name no rate (3e-5 here); Joshi et "
    "al. 2020; Yang et al. 2019 and their script; Jun et al. 2022; Wang et al. 2020 (MiniLM, 6 layers)",
    "squad-answers": "Dong et al. 2019, appendix A, which gives no settings of it; these are of SQuAD 1.1, an epoch "
    "less",
    "squad_qg": QUESTIONS.format("paper"),
    "squad_qg_du": QUESTIONS.format("du") + "; MiniLM, 6 layers, of Wang et al. 2020",
    "squad_qg_reversed": QUESTIONS.format("reversed"),
    "squad_qg_sentence": QUESTIONS.format("paper") + "; sentences as sources, as Du et al. 2017",
    "coqa": "Dong et al. 2019",
    "coqa_free": "Dong et al. 2019, section 3.2.2",
    "imdb": "Yang et al. 2019 and its published script (4,000 updates, 500 of them rising), where the test set "
    "validates",
    "swag": "Devlin et al. 2019, section 4.4",
    "codah": "settings of SWAG",
    "race": "Yang et al. 2019 and its published script (12,000 updates)",
    "dream": "settings of RACE",
    "conll2003": "Devlin et al. 2019, section 5.3 and appendix A.3",
    "wnut17": "settings of Devlin et al. 2019, appendix A.3",
    "tacred": "Joshi et al. 2020, section 4.1, appendix B and its published script",
    "semeval2010": "Baldini Soares et al. 2019, appendix (1 to 10 epochs)",
    "conll2012": "Joshi et al. 2020, section 4.1 and appendix B; mandarjoshi90/coref",
    "cnn_dailymail": "Dong et al. 2019, section 3.1, and the released code",
    **dict.fromkeys(("gigaword", "gigaword_10k"), "the released code of UniLM"),
    "xsum": "s2s-ft, later code of UniLM's authors",
}


#: How a task's source names the paper whose figures it quotes; that of UniLM may be named by its code.
CITATIONS = (
    (BERT, "Devlin et al. 2019"),
    (UNILM, "Dong et al. 2019|code of UniLM"),
    (XLNET, "Yang et al. 2019"),
    (SPANBERT, "Joshi et al. 2020"),
    (ANNA, "Jun et al. 2022"),
    (MINILM, "Wang et al. 2020"),
)


def test_every_task_names_the_papers_whose_figures_it_quotes():
    for figures, citation in CITATIONS:
        lacking = {name for name, _, _ in figures if not re.search(citation, TASKS[name].source)}
        assert not lacking, citation


def test_every_task_says_where_its_settings_and_figures_are_published():
    assert {name: task.source for name, task in TASKS.items() if task.source} == SOURCES
