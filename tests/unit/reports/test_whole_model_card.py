"""Model cards word by word: one of two tasks that classify, and one of a model with its own code that writes."""

import pytest

from unified.reports.model_card import model_card

RESULT = {
    "task": "rte",
    "model": {"name": "models/bert"},
    "scores": {
        "valid": {
            "accuracy": 70.125,
            "f1": 1.0,
            "total": 20,
            "best_f1_thresh": 0.25,
            "of": {"a": 1},
            "signature": "x|y",
        },
        "test": {"accuracy": 3.0},
        "dev": {"total": 7},
    },
    "command": ["fairseq-train", "data 1", "--head", "classification"],
    "settings": {"lr": 3e-05, "spacy": None, "fairseq": {"--a": ["é|b\nc"]}, "epochs": 3},
    "seed": 1,
    "date": "2026-01-01",
    "versions": {"torch": "2.13", "lr": "kept last"},
    "data": {"train.jsonl": "abc", "valid.jsonl": "def"},
}


def test_a_card_of_two_tasks():
    other = RESULT | {"task": "mnli", "scores": {"test": {"accuracy": 5.0}}, "data": {"train.jsonl": "ghi"}, "seed": 9}
    card = model_card([RESULT, other], {"architectures": ["BertForSequenceClassification"]}, "runs/é")
    assert (
        card
        == """\
---
library_name: transformers
pipeline_tag: text-classification
tags:
- unified
---

# rte, mnli

A `BertForSequenceClassification`: models/bert fine-tuned for rte, mnli by UNIFIED.

## Use

```python
import unified

model = unified.load("runs/é")
```

```python
from transformers import BertForSequenceClassification, AutoTokenizer

model = BertForSequenceClassification.from_pretrained("runs/é")
tokenizer = AutoTokenizer.from_pretrained("runs/é")
```

```python
from transformers import pipeline

classify = pipeline("text-classification", "runs/é", truncation=True)
print(classify("A text ...", top_k=None))
```

## Scores of rte

| split | measure | score |
|---|---|---|
| valid | accuracy | 70.12 |
| valid | f1 | 1.00 |
| test | accuracy | 3.00 |

valid: total 20, best_f1_thresh 0.25, signature `x|y`.

dev: total 7.

## Scores of mnli

| split | measure | score |
|---|---|---|
| test | accuracy | 5.00 |

## Training

| setting | value |
|---|---|
| lr | kept last |
| fairseq | {"--a": ["é\\|b\\nc"]} |
| epochs | 3 |
| seed | 1 |
| date | 2026-01-01 |
| torch | 2.13 |

```sh
fairseq-train 'data 1' --head classification
```

## Data

| file | SHA-256 |
|---|---|
| rte/train.jsonl | abc |
| rte/valid.jsonl | def |
| mnli/train.jsonl | ghi |
"""
    )


def test_a_card_of_a_model_with_its_own_code_that_writes():
    own = {"AutoConfig": "m.Config", "AutoModel": "m.Own", "AutoModelForMaskedLM": "m.OwnForMaskedLM", "Last": "m.XOwn"}
    config = {"architectures": ["OwnForMaskedLM"], "decoding": "cloze", "auto_map": own}
    settings = {"decoding": {"beam": 3, "max_length": 9, "may-repeat": ["."], "length_penalty": "unilm"}}
    result = RESULT | {"settings": settings, "model": {"name": "/models/a"}, "versions": {}, "scores": {}, "data": {}}
    card = model_card([result], config, "x")
    assert (
        card
        == """\
---
library_name: transformers
pipeline_tag: text2text-generation
tags:
- unified
---

# rte

A `OwnForMaskedLM`: a fine-tuned for rte by UNIFIED.

## Use

```python
import unified

model = unified.load("x")
model.generate(["A text ..."], beam=3, length_penalty='unilm')
```

```python
from transformers import AutoModelForMaskedLM, AutoTokenizer

model = AutoModelForMaskedLM.from_pretrained("x", trust_remote_code=True)
tokenizer = AutoTokenizer.from_pretrained("x", trust_remote_code=True)
inputs = tokenizer(["A text ..."], return_tensors="pt")
texts = tokenizer.batch_decode(model.generate(**inputs, beam=3, length_penalty='unilm'), skip_special_tokens=True)
```

## Scores of rte

| split | measure | score |
|---|---|---|

## Training

| setting | value |
|---|---|
| decoding | {"beam": 3, "max_length": 9, "may-repeat": ["."], "length_penalty": "unilm"} |
| seed | 1 |
| date | 2026-01-01 |

```sh
fairseq-train 'data 1' --head classification
```

## Data

| file | SHA-256 |
|---|---|
"""
    )


def test_a_classifier_with_its_own_code_is_trusted_in_its_pipeline_too():
    config = {"architectures": ["OwnForSequenceClassification"], "auto_map": {"Auto": "m.OwnForSequenceClassification"}}
    card = model_card([RESULT], config, "x")
    assert 'classify = pipeline("text-classification", "x", truncation=True, trust_remote_code=True)\n' in card
    assert "from transformers import Auto, AutoTokenizer\n" in card


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
    card = model_card([RESULT], config, "x")
    assert f"pipeline_tag: {does}\n" in card
    assert card.count("beam=5)") == card.count("beam=5") == 2 * (decoding not in (None, "nothing"))
