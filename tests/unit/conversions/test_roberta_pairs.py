"""Two texts under a RoBERTa, an XLM-RoBERTa and a CamemBERT are read as transformers reads them, there and back."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
import torch
import transformers

from unified import load
from unified.conversions.formats import read_folder
from unified.tasks.task_model import TaskModel

WORDS = ["a", "good", "film", "the", "bad", "cat", "sat", "on", "mat"]
FIRST, SECOND = "a good film", "the bad cat sat"
LABELS = {0: "x", 1: "y", 2: "z"}


def byte_level() -> transformers.RobertaTokenizer:
    """A byte-level BPE whose entries are single characters."""
    letters = sorted({letter for word in WORDS for letter in word} | {"\u0120"})
    entries = ["<s>", "<pad>", "</s>", "<unk>", *letters, "<mask>"]
    return transformers.RobertaTokenizer({entry: i for i, entry in enumerate(entries)}, [])


def unigram(kind: type) -> transformers.PreTrainedTokenizerBase:
    entries = ["<s>", "<pad>", "</s>", "<unk>", *(f"\u2581{word}" for word in WORDS), "<mask>"]
    return kind(vocab=[(entry, -float(i)) for i, entry in enumerate(entries)])


FAMILIES = {
    "Roberta": byte_level,
    "XLMRoberta": lambda: unigram(transformers.XLMRobertaTokenizer),
    "Camembert": lambda: unigram(transformers.CamembertTokenizer),
}


def saved(folder: Path, task: str, family: str = "Roberta", types: int = 1, tokenizer=None):
    """A folder of a tiny model with random parameters; the model and its tokenizer."""
    torch.manual_seed(3)
    tokenizer = FAMILIES[family]() if tokenizer is None else tokenizer
    labels = {"id2label": LABELS} if task == "SequenceClassification" else {}
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        type_vocab_size=types, max_position_embeddings=50, pad_token_id=tokenizer.pad_token_id, **labels,
    )  # fmt: skip
    model = getattr(transformers, f"{family}For{task}")(config).eval()
    for name, parameter in model.named_parameters():
        if "LayerNorm" not in name:
            torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNIFIED_CACHE", str(tmp_path / "cache"))


def ours(folder: Path) -> TaskModel:
    model = load(folder)
    assert isinstance(model, TaskModel)
    return model


def probabilities(model: TaskModel) -> list[float]:
    (found,) = model.predict([{"text": FIRST, "second": SECOND}])
    return [*found["probabilities"].values()]


@torch.no_grad()
def theirs(model, tokenizer, first: str = FIRST, second: str = SECOND) -> list[float]:
    return model(**tokenizer(first, second, return_tensors="pt")).logits.softmax(-1)[0].tolist()


@pytest.mark.parametrize(("family", "types"), [("Roberta", 1), ("Roberta", 2), ("XLMRoberta", 1), ("Camembert", 1)])
def test_classes_of_two_texts_are_those_of_transformers_also_after_an_export(tmp_path, family, types):
    model, tokenizer = saved(tmp_path / "theirs", "SequenceClassification", family, types)
    wanted = theirs(model, tokenizer)
    own = ours(tmp_path / "theirs")
    assert own.model.config.pair_separators == 2
    assert probabilities(own) == pytest.approx(wanted, abs=2e-6)
    own.save_pretrained(tmp_path / "again")
    bert = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "again").eval()
    assert theirs(bert, transformers.AutoTokenizer.from_pretrained(tmp_path / "again")) == pytest.approx(
        wanted, abs=2e-6
    )
    assert probabilities(ours(tmp_path / "again")) == probabilities(own)


def test_a_model_with_code_of_its_own_keeps_both_separators(tmp_path):
    saved(tmp_path / "theirs", "SequenceClassification")
    own = ours(tmp_path / "theirs")
    own.save_pretrained(tmp_path / "again", format="unified")
    assert json.loads((tmp_path / "again" / "config.json").read_text())["pair_separators"] == 2
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again", trust_remote_code=True)
    there = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "again", trust_remote_code=True)
    assert theirs(there.eval(), tokenizer) == pytest.approx(probabilities(own), abs=2e-6)
    assert probabilities(ours(tmp_path / "again")) == probabilities(own)


@torch.no_grad()
def test_the_answer_in_a_passage_is_that_of_transformers(tmp_path):
    model, tokenizer = saved(tmp_path / "theirs", "QuestionAnswering")
    passage = "thebadmat"  # each character is a token
    encoded = tokenizer(FIRST, passage, return_tensors="pt", return_offsets_mapping=True)
    offsets, output = encoded.pop("offset_mapping")[0].tolist(), model(**encoded)
    tokens = [i for i, owner in enumerate(encoded.sequence_ids(0)) if owner == 1]
    scores = {
        (offsets[i][0], offsets[j][1]): float(output.start_logits[0, i] + output.end_logits[0, j])
        for i, j in itertools.combinations_with_replacement(tokens, 2)
    }
    (found,) = ours(tmp_path / "theirs").predict([{"question": FIRST, "context": passage}])
    best = max(scores, key=scores.__getitem__)
    assert (found["start"], found["end"]) == best
    first = found["nbest"][0]["probability"]
    for one in found["nbest"]:
        wanted = math.exp(scores[one["start"], one["end"]] - scores[best])
        assert one["probability"] / first == pytest.approx(wanted, rel=1e-3), one


@torch.no_grad()
def test_the_probabilities_of_choices_are_those_of_transformers(tmp_path):
    model, tokenizer = saved(tmp_path / "theirs", "MultipleChoice")
    choices = ["the cat", "a bad mat", "film"]
    encoded = tokenizer([FIRST] * 3, choices, return_tensors="pt", padding=True)
    wanted = model(**{name: value[None] for name, value in encoded.items()}).logits.softmax(-1)[0].tolist()
    (found,) = ours(tmp_path / "theirs").predict([{"context": FIRST, "choices": choices}])
    assert found["probabilities"] == pytest.approx(wanted, abs=2e-6)


def test_a_tokenizer_that_gives_token_types_and_one_separator_is_followed(tmp_path):
    """As BERT's tokenizer beside a RoBERTa, of which the second token type is trained."""
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    bert = transformers.BertTokenizer({entry: i for i, entry in enumerate(entries)})
    model, tokenizer = saved(tmp_path / "theirs", "SequenceClassification", types=2, tokenizer=bert)
    own = ours(tmp_path / "theirs")
    assert own.model.config.pair_separators == 1
    assert probabilities(own) == pytest.approx(theirs(model, tokenizer), abs=2e-6)


def test_both_texts_have_the_first_token_type_where_the_tokenizer_puts_no_symbols_around_them(tmp_path):
    saved(tmp_path, "SequenceClassification", types=2)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"post_processor": None}))
    first, second = read_folder(tmp_path).trained.parameters["transformer.embeddings.token_types.weight"]
    assert torch.equal(first, second)


def test_what_stands_between_two_texts_and_is_not_built_is_named(tmp_path):
    saved(tmp_path, "SequenceClassification")
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())

    def between(*ids: int):
        marks = {str(i): {"id": str(i), "ids": [i], "tokens": [str(i)]} for i in {0, 2, *ids}}
        pair = ["0", "A", *map(str, ids), "B", "2"]
        pieces = [{"Sequence" if one in "AB" else "SpecialToken": {"id": one, "type_id": 0}} for one in pair]
        processor = {"type": "TemplateProcessing", "single": pieces[:2], "pair": pieces, "special_tokens": marks}
        path.write_text(json.dumps(content | {"post_processor": processor}))
        read = read_folder(tmp_path)
        said = "what tokenizer.json puts between two texts, which are read with one separator there"
        return read.trained.config.pair_separators, said in read.told.left_out

    assert between(2) == (1, False) and between(2, 2) == (2, False)
    for ids in ((), (2, 2, 2), (2, 0), (0,), (len(byte_level()),), (1000,)):
        assert between(*ids) == (1, True), ids
