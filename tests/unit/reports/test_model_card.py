"""Model cards read back section by section: of two tasks that classify, and of a generation model with its own code."""

import ast
import shlex

import pytest
import yaml

from unified.reports.model_card import model_card

RESULT = {
    "task": "rte",
    "model": {"name": "models/bert"},
    "scores": {
        "valid": {
            "accuracy": 70.126, "f1": 1.0, "total": 20, "best_f1_thresh": 0.25, "of": {"a": 1}, "signature": "x|y",
        },
        "test": {"accuracy": 3.0},
        "dev": {"total": 7},
    },
    "command": ["fairseq-train", "data 1", "--head", "classification"],
    "settings": {"lr": 3e-05, "spacy": None, "fairseq": {"--a": ["é|b\nc"]}, "epochs": 3},
    "seed": 1,
    "date": "2026-01-01",
    "versions": {"torch": "2.13"},
    "data": {"train.jsonl": "abc", "valid.jsonl": "def"},
}  # fmt: skip


#: A folder, and how Python code names it.
FOLDER, CALLED = 'runs/é "b"', '"runs/é \\"b\\""'


class Card:
    """The parts of a card: ``about`` is its front matter, ``sections`` the blocks below each heading."""

    def __init__(self, text):
        assert text.endswith("\n") and not text.endswith("\n\n")
        _, front, body = text.split("---\n", 2)
        self.about, self.sections = yaml.safe_load(front), {}
        for block in filter(None, _blocks(body)):
            if block.startswith("#"):
                assert "\n" not in block
                self.sections[block.lstrip("# ")] = []
            else:
                list(self.sections.values())[-1].append(block)

    def code(self, heading, language):
        fence = f"```{language}\n"
        return [one.removeprefix(fence).removesuffix("\n```") for one in self.sections[heading] if fence in one]

    def table(self, heading):
        """Cells of a section's only table, with its header; a bar within a cell is escaped."""
        ((head, line, *rows),) = (one.split("\n") for one in self.sections[heading] if one.startswith("| "))
        assert line == "|" + "---|" * (head.count("|") - 1)
        assert {row.replace(r"\|", "").count("|") for row in rows} <= {head.count("|")}
        cells = [row.replace(r"\|", "\0")[2:-2].split(" | ") for row in (head, *rows)]
        return [[cell.replace("\0", "|") for cell in row] for row in cells]

    def notes(self, heading):
        return [one for one in self.sections[heading] if not one.startswith(("| ", "```"))]


def _blocks(body):
    """Code, and what blank lines divide: headings, paragraphs and tables."""
    for number, part in enumerate(body.split("```")):
        yield from [f"```{part}```"] if number % 2 else (block.strip("\n") for block in part.split("\n\n"))


@pytest.fixture
def card():
    other = RESULT | {"task": "mnli", "scores": {"test": {"accuracy": 5.0}}, "data": {"train.jsonl": "ghi"}, "seed": 9}
    return Card(model_card([RESULT, other], {"architectures": ["BertForSequenceClassification"]}, FOLDER))


def test_a_card_begins_with_what_the_hub_reads_and_has_these_sections(card):
    assert card.about == {
        "library_name": "transformers", "pipeline_tag": "text-classification", "tags": ["unified"],
    }  # fmt: skip
    assert list(card.sections) == ["rte, mnli", "Use", "Scores of rte", "Scores of mnli", "Training", "Data"]
    assert card.sections["rte, mnli"] == [
        "A `BertForSequenceClassification`: models/bert fine-tuned for rte, mnli by UNIFIED."
    ]


def test_a_card_has_the_scores_of_each_task_and_notes_on_them(card):
    assert card.table("Scores of rte") == [
        ["split", "measure", "score"], ["valid", "accuracy", "70.13"], ["valid", "f1", "1.00"],
        ["test", "accuracy", "3.00"],
    ]  # fmt: skip
    assert card.notes("Scores of rte") == [
        "valid: total 20, best_f1_thresh 0.25, signature `x|y`.", "dev: total 7.",
    ]  # fmt: skip
    assert card.table("Scores of mnli")[1:] == [["test", "accuracy", "5.00"]] and card.notes("Scores of mnli") == []


def test_a_card_has_the_settings_the_command_and_the_data_of_the_training(card):
    assert card.table("Training") == [
        ["setting", "value"], ["lr", "3e-05"], ["fairseq", '{"--a": ["é|b\\nc"]}'], ["epochs", "3"], ["seed", "1"],
        ["date", "2026-01-01"], ["torch", "2.13"],
    ]  # fmt: skip
    (command,) = card.code("Training", "sh")
    assert card.notes("Training") == card.notes("Data") == []
    assert shlex.split(command) == RESULT["command"]
    assert card.table("Data") == [
        ["file", "SHA-256"], ["rte/train.jsonl", "abc"], ["rte/valid.jsonl", "def"], ["mnli/train.jsonl", "ghi"],
    ]  # fmt: skip


def test_the_code_of_a_classifier_loads_it_by_both_libraries_and_as_a_pipeline(card):
    ours, theirs, pipeline = card.code("Use", "python")
    assert card.notes("Use") == []
    assert ast.literal_eval(CALLED) == FOLDER and ours == f"import unified\n\nmodel = unified.load({CALLED})"
    assert theirs.splitlines() == [
        "from transformers import BertForSequenceClassification, AutoTokenizer",
        "",
        f"model = BertForSequenceClassification.from_pretrained({CALLED})",
        f"tokenizer = AutoTokenizer.from_pretrained({CALLED})",
    ]
    assert pipeline.splitlines() == [
        "from transformers import pipeline",
        "",
        f'classify = pipeline("text-classification", {CALLED}, truncation=True)',
        'print(classify("A text ...", top_k=None))',
    ]


def calls(code):
    """The name of each function that Python code calls, with its keyword arguments that are literals."""
    found = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [
        (ast.unparse(one.func), {word.arg: ast.literal_eval(word.value) for word in one.keywords if word.arg})
        for one in found
    ]


def test_the_code_of_a_generation_model_repeats_the_search_behind_its_scores():
    own = {
        "AutoConfig": "m.Config", "AutoModel": "m.OwnForMaskedLM", "AutoModelForMaskedLM": "m.OwnForMaskedLM",
        "Another": "m.NotOwnForMaskedLM",
    }  # fmt: skip
    config = {"architectures": ["OwnForMaskedLM"], "decoding": "cloze", "auto_map": own}
    settings = {"decoding": {"beam": 3, "max_length": 9, "may-repeat": ["."], "length_penalty": "unilm"}}
    result = RESULT | {"settings": settings, "model": {"name": "/models/a"}}
    card = Card(model_card([result], config, "x"))
    assert card.about["pipeline_tag"] == "text2text-generation"
    assert card.sections["rte"] == ["A `OwnForMaskedLM`: a fine-tuned for rte by UNIFIED."]  # no folders of one machine
    ours, theirs = card.code("Use", "python")
    search, trust = {"beam": 3, "length_penalty": "unilm"}, {"trust_remote_code": True}
    assert calls(ours) == [("unified.load", {}), ("model.generate", search)]
    assert sorted(calls(theirs), key=str) == sorted(
        [
            ("AutoModelForMaskedLM.from_pretrained", trust),
            ("AutoTokenizer.from_pretrained", trust),
            ("tokenizer", {"return_tensors": "pt"}),
            ("tokenizer.batch_decode", {"skip_special_tokens": True}),
            ("model.generate", search),
        ],
        key=str,
    )


def test_a_classifier_with_its_own_code_is_trusted_in_its_pipeline_too():
    config = {"architectures": ["OwnForSequenceClassification"], "auto_map": {"Auto": "m.OwnForSequenceClassification"}}
    _, theirs, pipeline = Card(model_card([RESULT], config, "x")).code("Use", "python")
    assert "from transformers import Auto, AutoTokenizer\n" in theirs
    assert ("pipeline", {"truncation": True, "trust_remote_code": True}) in calls(pipeline)


@pytest.mark.parametrize(
    ("architecture", "does"),
    [
        ("BertForSequenceClassification", "text-classification"),
        ("BertForTokenClassification", "token-classification"),
        ("BertForQuestionAnswering", "question-answering"),
        ("BertForMultipleChoice", "multiple-choice"),
        ("BertForMaskedLM", "fill-mask"),
        ("BertForPreTraining", "fill-mask"),
        ("BertModel", "feature-extraction"),
    ],
)
def test_the_hub_reads_what_a_model_does(architecture, does):
    assert Card(model_card([RESULT], {"architectures": [architecture]}, "x")).about["pipeline_tag"] == does


@pytest.mark.parametrize(
    ("decoding", "does"),
    [
        (None, "fill-mask"),
        ("nothing", "fill-mask"),
        ("cloze", "text2text-generation"),
        ("next", "text2text-generation"),
        ("left_to_right", "text-generation"),
    ],
)
def test_a_model_that_writes_does_so_by_its_decoding_with_five_beams(decoding, does):
    config = {"architectures": ["BertForMaskedLM"]} | ({} if decoding is None else {"decoding": decoding})
    card = Card(model_card([RESULT], config, "x"))
    searches = [words for code in card.code("Use", "python") for name, words in calls(code) if name == "model.generate"]
    assert card.about["pipeline_tag"] == does and searches == [{"beam": 5}] * (0 if does == "fill-mask" else 2)
