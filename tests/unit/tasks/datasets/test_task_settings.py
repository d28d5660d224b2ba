"""Heads, settings, grids and rules of scoring of all tasks with a format of their own, written out."""

import pytest

from unified.tasks.catalogue import TASKS
from unified.tasks.grids import Grid
from unified.tasks.settings import Task, Training
from unified.tasks.writing import WritingItem, WritingTask, WritingTraining
from unified.tasks.writing_scores import scored_answers, scored_questions, scored_texts

GLUE = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli")
UNDERSTOOD = {name: task for name, task in TASKS.items() if isinstance(task, Task)}
WRITTEN = {name: task for name, task in TASKS.items() if isinstance(task, WritingTask)}

#: [BERT, app. A.3], [SpanBERT, sec. 4 and app. B], [XLNet] and its scripts: settings that several tasks share.
BERT_OF_GLUE = Training(epochs=3, batch_size=32, lr=2e-5, max_length=128)
SPANBERT = Training(epochs=4, batch_size=32, lr=2e-5, max_length=512, select="best", validations=10)
XLNET = Training(epochs=4, batch_size=32, lr=2e-5, max_length=512, weight_decay=0.0)
MARKERS = Training(epochs=5, batch_size=64, lr=3e-5, max_length=128)
MRQA = ("newsqa", "triviaqa", "searchqa", "hotpotqa", "naturalquestions", "mrqa_squad", "mrqa_together")


def coreference(lr: float, max_length: int, head_lr: float) -> Training:
    """An item is a document, and only the model decays."""
    return Training(
        epochs=20, batch_size=1, lr=lr, max_length=max_length, head_lr=head_lr, head_weight_decay=0.0,
        select="best", validations=3,
    )  # fmt: skip


SETTINGS = {
    **dict.fromkeys((*GLUE, "sick"), BERT_OF_GLUE),
    "squad1.1": Training(epochs=3, batch_size=32, lr=5e-5, max_length=384),
    "squad2.0": Training(epochs=2, batch_size=48, lr=5e-5, max_length=384),
    "squad-answers": Training(epochs=2, batch_size=32, lr=5e-5, max_length=384),
    **dict.fromkeys(MRQA, SPANBERT),
    "coqa": Training(epochs=2, batch_size=16, lr=3e-5, max_length=512),
    "imdb": Training(epochs=5, batch_size=32, lr=2e-5, max_length=512, warmup=500 / 4000, weight_decay=0.0),
    **dict.fromkeys(("swag", "codah"), Training(epochs=3, batch_size=16, lr=2e-5, max_length=128)),
    **dict.fromkeys(("race", "dream"), XLNET),
    "conll2003": Training(epochs=3, batch_size=32, lr=3e-5, max_length=512),
    "wnut17": Training(),
    "tacred": Training(epochs=10, batch_size=32, lr=2e-5, max_length=128, select="best", validations=10),
    "semeval2010": MARKERS,
    "conll2012": coreference(2e-5, 384, 1e-4),
}
HEADS = {
    **dict.fromkeys(("cola", "sst2", "mnli", "qnli", "rte", "wnli", "sick"), "classification(dropout=0.1)"),
    **dict.fromkeys(("mrpc", "qqp"), "classification(positive='1', dropout=0.1)"),
    "stsb": "regression(dropout=0.1)",
    **dict.fromkeys(("squad1.1", "squad2.0", "squad-answers", *MRQA), "span"),
    "coqa": "span(design='unilm', rules='coqa', max_query=96)",
    "imdb": "classification(positive='pos')",
    **dict.fromkeys(("swag", "codah", "race", "dream"), "choice"),
    "conll2003": "tagging(context=True)",
    "wnut17": "tagging",
    "tacred": "relation(design='types')",
    "semeval2010": "relation(rules='semeval2010')",
    "conll2012": "coreference(max_windows=3)",
}


def test_settings_and_heads_of_the_papers():
    assert {name: task.training for name, task in UNDERSTOOD.items()} == SETTINGS
    assert {name: task.head for name, task in UNDERSTOOD.items()} == HEADS


def xlnet(epochs: int) -> tuple[str, Training]:
    """8,000 updates of run_squad.py, 1,000 of them rising."""
    training = Training(
        epochs=epochs, batch_size=48, lr=3e-5, max_length=512, warmup=1000 / 8000, weight_decay=0.0, layer_decay=0.75
    )
    return "span(design='xlnet', max_answer=64, nbest=5)", training


def of_glue(name: str) -> dict[str, tuple[str, Training]]:
    """[UniLM, sec. 3.5]: Adamax, and dropout by task; [SpanBERT, app. B]: 4 epochs of CoLA and 10 of the others."""
    dropout = {"mnli": 0.3, "cola": 0.05, "sst2": 0.05}.get(name, 0.1)
    unilm = Training(epochs=5, batch_size=32, lr=5e-5, max_length=512, optimizer="adamax", weight_decay=0.0)
    epochs = 4 if name == "cola" else 10
    spanbert = Training(epochs=epochs, batch_size=32, lr=2e-5, max_length=128, select="best", validations=10)
    found = {"unilm": (HEADS[name].replace("0.1", str(dropout)), unilm), "spanbert": (HEADS[name], spanbert)}
    if name == "stsb":
        own = Training(epochs=7, batch_size=32, lr=5e-5, max_length=128, weight_decay=0.0, select="best")
        found["xlnet"] = (HEADS[name], own)
    return found


SYSTEMS = {
    **{name: of_glue(name) for name in (*GLUE, "sick")},
    "squad1.1": {"spanbert": ("span", SPANBERT), "xlnet": xlnet(4)},
    "squad2.0": {
        "unilm": ("span(design='unilm')", Training(epochs=3, batch_size=24, lr=3e-5, max_length=384)),
        "spanbert": ("span", SPANBERT),
        "xlnet": xlnet(3),
    },
    "tacred": {"markers": ("relation(design='markers')", MARKERS)},
    "conll2012": {
        "bert_base": ("coreference(max_windows=11)", coreference(1e-5, 128, 2e-4)),
        "bert_large": ("coreference(max_windows=3)", coreference(1e-5, 384, 2e-4)),
        "spanbert_large": ("coreference(max_windows=3)", coreference(1e-5, 512, 3e-4)),
    },
}


def test_settings_and_heads_of_other_papers():
    assert {name: task.systems for name, task in UNDERSTOOD.items() if task.systems} == SYSTEMS


#: [SpanBERT, app. B]: for all tasks but coreference; [BERT, sec. 4.1 and app. A.3].
SPANBERTS_GRID = Grid({"lr": (5e-6, 1e-5, 2e-5, 3e-5, 5e-5), "batch_size": (16, 32)}, "Joshi et al. 2020, appendix B")
BERTS_GRID = Grid({"lr": (5e-5, 4e-5, 3e-5, 2e-5)}, "Devlin et al. 2019, section 4.1")
NAMES_GRID = Grid(
    {"batch_size": (16, 32), "lr": (5e-5, 3e-5, 2e-5), "epochs": (2, 3, 4)}, "Devlin et al. 2019, appendix A.3"
)


def test_grids_from_which_the_papers_chose():
    own = {name: task.grid for name, task in UNDERSTOOD.items() if task.grid is not None}
    assert own == {
        **dict.fromkeys(GLUE, BERTS_GRID), **dict.fromkeys(MRQA[:-1], SPANBERTS_GRID),
        "conll2003": NAMES_GRID, "tacred": SPANBERTS_GRID,
    }  # fmt: skip
    others = {name: task.grids for name, task in UNDERSTOOD.items() if task.grids}
    assert others == dict.fromkeys((*GLUE, "squad1.1", "squad2.0"), {"spanbert": SPANBERTS_GRID})


def test_measures_that_choose_a_checkpoint_and_splits_without_labels():
    measures = {name: task.measure for name, task in UNDERSTOOD.items() if task.measure is not None}
    assert measures == {
        "cola": "matthews", "mrpc": "f1", "qqp": "f1", "stsb": "spearman",
        **dict.fromkeys(("sst2", "mnli", "qnli", "rte", "wnli", "sick"), "accuracy"),
    }  # fmt: skip
    assert [name for name, task in UNDERSTOOD.items() if task.validates_on_test] == ["imdb"]
    unlabelled = {name: task.unlabelled for name, task in TASKS.items() if task.unlabelled}
    of_one = ("test",)
    assert unlabelled == {
        **dict.fromkeys(GLUE, of_one), "mnli": ("test", "test_mismatched", "diagnostic"), "swag": of_one,
    }  # fmt: skip
    assert {name for name, task in UNDERSTOOD.items() if task.submit} == {*GLUE, "sick"}


#: Summaries of UniLM are searched for with five beams, without a trigram that comes twice.
SUMMARY = {"beam": 5, "no_repeat_ngram_size": 3, "length_penalty": "unilm"}
QUESTIONS = WritingTraining(epochs=10, batch_size=32, lr=2e-5, max_length=512, max_source=456, max_target=48)
HEADLINES = WritingTraining(
    epochs=10, batch_size=128, lr=3e-5, max_length=192, max_source=125, max_target=64,
    objective="target_cloze(mask_probability=0.7,max_predictions=48)",
)  # fmt: skip
SHORT = WritingTraining(epochs=10, batch_size=32, lr=3e-5, max_length=384, max_source=317, max_target=64)
#: Task -> settings and search [UniLM, sec. 3.1 to 3.3], and those of the released code.
WRITING = {
    "squad_qg": (QUESTIONS, {"beam": 3, "max_length": 48}),
    **dict.fromkeys(("squad_qg_du", "squad_qg_reversed"), (QUESTIONS, {"beam": 1, "max_length": 48})),
    "squad_qg_sentence": (
        WritingTraining(epochs=10, batch_size=32, lr=2e-5, max_length=192, max_source=192 - 48 - 3, max_target=48),
        {"beam": 3, "max_length": 48},
    ),
    "coqa_free": (
        WritingTraining(
            epochs=10, batch_size=32, lr=2e-5, max_length=512, max_source=470, max_target=512 - 470 - 3,
            objective="target_cloze(mask_probability=0.5)",
        ),
        {"beam": 3, "max_length": 39},
    ),
    "cnn_dailymail": (
        WritingTraining(
            epochs=30, batch_size=32, lr=3e-5, max_length=768, max_source=640, max_target=768 - 640 - 3,
            objective="target_cloze(mask_probability=0.7,extractive=True)",
        ),
        {**SUMMARY, "max_length": 125, "lenpen": 1.0},
    ),
    "gigaword": (HEADLINES, {**SUMMARY, "max_length": 32, "lenpen": 0.6}),
    "gigaword_10k": (
        HEADLINES.changed(lr=1e-5, objective="target_cloze(mask_probability=0.7,max_predictions=64)"),
        {**SUMMARY, "max_length": 32, "lenpen": 0.0},
    ),
    "xsum": (
        WritingTraining(epochs=10, batch_size=64, lr=7e-5, max_length=512, max_source=512 - 47 - 3, max_target=47),
        {**SUMMARY, "max_length": 47, "lenpen": 0.0},
    ),
    **dict.fromkeys(("reuters", "aeslc"), (SHORT, {**SUMMARY, "max_length": 32, "lenpen": 0.6})),
    "scitldr": (SHORT, {**SUMMARY, "max_length": 64, "lenpen": 0.6}),
    "texts": (
        WritingTraining(epochs=10, batch_size=32, lr=3e-5, max_length=512, max_source=384, max_target=512 - 384 - 3),
        {**SUMMARY, "max_length": 125, "lenpen": 1.0},
    ),
}  # fmt: skip


def test_settings_and_search_of_tasks_that_write():
    assert {name: (task.training, task.decoding) for name, task in WRITTEN.items()} == WRITING


def test_defaults_of_writing():
    defaults = WritingTraining()
    assert (defaults.max_source, defaults.max_target, defaults.smoothing) == (384, 64, 0.1)
    assert defaults.objective == "target_cloze(mask_probability=0.7)"
    assert defaults == WritingTraining(**vars(Training()))


QUESTION_TASKS = ("squad_qg", "squad_qg_du", "squad_qg_reversed", "squad_qg_sentence")
SUMMARIES = ("gigaword", "gigaword_10k", "xsum", "cnn_dailymail", "reuters", "scitldr", "aeslc")

#: Two texts with what the rules treat differently: references of one sentence, brackets, separators, repeated words.
SCORED = [
    WritingItem("1", "a source", "The mayor 's bridge ( 1 ) | It fell .", reference_group="g"),
    WritingItem("2", "another source", "It cost 35 dollars .", reference_group="g"),
]
TEXTS = ["the mayor ' s bridge ##s -lrb- 1 -rrb- | it fell .", "it cost 42 dollars , it cost 42 dollars ."]


def test_tasks_that_write_are_scored_by_their_rules():
    rules = {
        "questions": scored_questions(SCORED, TEXTS, False).scores(),
        "answers": scored_answers(SCORED, TEXTS, False).scores(),
        "texts": scored_texts(SCORED, TEXTS, False).scores(),
        "gigaword": scored_texts(SCORED, TEXTS, False, post_processing="gigaword").scores(),
        "xsum": scored_texts(SCORED, TEXTS, False, post_processing="xsum").scores(),
        "cnndm": scored_texts(SCORED, TEXTS, False, separator="|", post_processing="cnndm").scores(),
    }
    assert len(set(map(str, rules.values()))) == len(rules), "the sample tells the rules apart"
    wanted = {
        **dict.fromkeys(QUESTION_TASKS, "questions"),
        "coqa_free": "answers",
        **dict.fromkeys((*SUMMARIES, "texts"), "texts"),
        **dict.fromkeys(("gigaword", "gigaword_10k"), "gigaword"),
        "xsum": "xsum",
        "cnn_dailymail": "cnndm",
    }
    assert wanted.keys() == WRITTEN.keys()
    for name, task in WRITTEN.items():
        assert task.scored(SCORED, TEXTS, False).scores() == rules[wanted[name]], name


def test_measures_of_tasks_that_write_begin_with_the_one_that_chooses_a_checkpoint():
    measures = dict.fromkeys(WRITTEN, ("rougeL", "rouge1", "rouge2"))
    measures |= {**dict.fromkeys(QUESTION_TASKS, ("bleu4", "rougeL")), "coqa_free": ("f1", "em")}
    assert {name: task.measures for name, task in WRITTEN.items()} == measures


def test_parts_separators_and_repeatable_marks_of_tasks_that_write():
    named = {name: task.parts for name, task in WRITTEN.items() if task.parts}
    assert named == dict.fromkeys((*SUMMARIES, "texts"), {"source": "source", "target": "target"})
    repeated = {name: task.may_repeat for name, task in WRITTEN.items() if task.may_repeat}
    assert repeated == dict.fromkeys(named, (".",)) | {"cnn_dailymail": (".", "|")}
    assert {name: task.separator for name, task in WRITTEN.items() if task.separator} == {"cnn_dailymail": "|"}


def test_tasks_with_official_programs_write_their_files():
    official = {name: task.official for name, task in WRITTEN.items() if task.official}
    assert official.keys() == {*QUESTION_TASKS, "coqa_free"}
    for name in QUESTION_TASKS:
        files = official[name]([], [])
        assert files == dict.fromkeys(("questions.txt", "references.txt", "sentences.txt", "sources.txt"), "")
    assert official["coqa_free"]([], [{"id": "s 1", "text": "a"}]) == {
        "predictions.json": [{"id": "s", "turn_id": 1, "answer": "a"}]
    }


@pytest.mark.parametrize("name", WRITTEN)
def test_rows_have_room_for_source_target_and_three_symbols(name):
    training = WRITTEN[name].training
    assert training.max_source_tokens == training.max_source
    assert training.max_source + training.max_target + 3 <= training.max_length
