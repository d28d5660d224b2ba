"""The card of a model says what its results say."""

import ast
import json
import re

import pytest

from unified.reports.model_card import model_card

RESULT = {
    "task": "rte",
    "model": {"name": "models/bert"},
    "scores": {
        "valid": {
            "accuracy": 70.123,
            "total": 20,
            "best_f1_thresh": 0.25,
            "of subsets": {"a": 1},
            "signature": "rules:glue|refs:one",
        }
    },
    "command": ["fairseq-train", "data", "--head", "classification(dropout=0)"],
    "settings": {"lr": 3e-05, "spacy": None},
    "seed": 1,
    "date": "2026-01-01",
    "versions": {"torch": "2.13"},
    "data": {"train.jsonl": "abc"},
}


def test_a_card_has_scores_settings_command_and_data():
    config = {"architectures": ["BertForSequenceClassification"]}
    card = model_card([RESULT], config, 'runs/a "b"')
    assert card.startswith("---\nlibrary_name: transformers\npipeline_tag: text-classification\n")
    assert "A `BertForSequenceClassification`: models/bert fine-tuned for rte by UNIFIED." in card
    for row in ("| valid | accuracy | 70.12 |", "| lr | 3e-05 |",
                "| seed | 1 |", "| torch | 2.13 |", "| rte/train.jsonl | abc |"):  # fmt: skip
        assert row in card.splitlines()
    assert "fairseq-train data --head 'classification(dropout=0)'" in card
    assert "| signature |" not in card and "| total |" not in card
    assert "valid: total 20, best_f1_thresh 0.25, signature `rules:glue|refs:one`." in card.splitlines()
    for library in ("import unified", "from transformers import BertForSequenceClassification, AutoTokenizer"):
        code = card.partition(library)[2].partition("```")[0]
        loads = [ast.literal_eval(call) for call in re.findall(r"(?:load|from_pretrained)\((.*)\)", code)]
        assert loads and set(loads) == {'runs/a "b"'}
    folder = json.dumps('runs/a "b"')
    assert f'classify = pipeline("text-classification", {folder}, truncation=True)\n' in card
    mine = RESULT | {"model": {"name": "/home/me/models/bert"}}
    assert ": bert fine-tuned for rte" in model_card([mine], config, "x")
    assert "spacy" not in card and "subsets" not in card


def test_a_model_of_several_tasks_names_them_all():
    card = model_card([RESULT, RESULT | {"task": "mnli"}], {"architectures": ["BertModel"]}, "x")
    assert "pipeline_tag: feature-extraction" in card and "# rte, mnli" in card
    assert "## Scores of rte" in card and "## Scores of mnli" in card and "| mnli/train.jsonl | abc |" in card


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
def test_the_hub_learns_what_a_model_does(architecture, does):
    card = model_card([RESULT], {"architectures": [architecture]}, "x")
    assert f"\npipeline_tag: {does}\n" in card


@pytest.mark.parametrize(
    "decoding, does", [("next", "text2text-generation"), ("left_to_right", "text-generation"), ("nothing", "fill-mask")]
)
def test_a_model_with_its_own_code_is_loaded_by_the_class_that_names_it(decoding, does):
    own = {"AutoModel": "modeling_unified.UnifiedModel", "AutoModelForMaskedLM": "modeling_unified.UnifiedForMaskedLM"}
    config = {"architectures": ["UnifiedForMaskedLM"], "decoding": decoding, "auto_map": own}
    search = {"length_penalty": "unilm", "no_repeat_ngram_size": 3, "max_length": 5, "may-repeat": ["."]}
    card = model_card([RESULT | {"settings": {"decoding": search}}], config, "runs/a")
    assert f"pipeline_tag: {does}\n" in card
    assert "from transformers import AutoModelForMaskedLM, AutoTokenizer\n" in card
    assert 'model = AutoModelForMaskedLM.from_pretrained("runs/a", trust_remote_code=True)\n' in card
    # As the texts were searched for that the scores are of.
    given = "beam=5, length_penalty='unilm', no_repeat_ngram_size=3)"
    assert [card.count(f"model.generate({start}, {given}") for start in ("**inputs", '["A text ..."]')] == (
        [0, 0] if decoding == "nothing" else [1, 1]
    )
