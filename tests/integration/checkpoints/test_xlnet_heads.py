"""Fine-tuned heads of XLNet in ``transformers``: they come in, answer as there, and leave again bit by bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

import unified
from tests.integration.checkpoints.test_xlnet_checkpoints import SENTENCES, pieces
from unified import TaskModel
from unified.errors import UnifiedError
from unified.tokenization.xlnet import XLNetTokenizer

assert pieces  # a fixture
LABELS = {0: "bad", 1: "so so", 2: "good"}
CLASSES = {
    "XLNetForSequenceClassification": {"id2label": LABELS, "summary_last_dropout": 0.3},
    "XLNetForTokenClassification": {"id2label": LABELS},
    "XLNetForQuestionAnsweringSimple": {},
    "XLNetForMultipleChoice": {},
}


def saved(folder: Path, name: str, model: bytes, added: int = 0, **more) -> transformers.PreTrainedModel:
    size = len(XLNetTokenizer(model).native_symbols()) + added
    config = transformers.XLNetConfig(
        vocab_size=size, d_model=32, n_layer=2, n_head=4, d_inner=48, ff_activation="gelu", **more
    )
    torch.manual_seed(1)
    theirs = getattr(transformers, name)(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    theirs.save_pretrained(folder)
    (folder / "spiece.model").write_bytes(model)
    return theirs


def read(model: TaskModel, *segments: str) -> dict[str, torch.Tensor]:
    """Their ids and token types of ``A sep B sep cls``."""
    native = {symbol: i for i, symbol in enumerate(model.tokenizer.native_symbols())}
    ids, types = [], []
    for number, text in enumerate(segments):
        own = [native[symbol] for symbol in [*model.tokenizer.encode(text), "</s>"]]
        ids, types = [*ids, *own], [*types, *[number] * len(own)]
    return {"input_ids": torch.tensor([[*ids, native["<s>"]]]), "token_type_ids": torch.tensor([[*types, 2]])}


@pytest.mark.parametrize("name", CLASSES)
@torch.no_grad()
def test_heads_come_in_and_leave_again(tmp_path, pieces, name):
    theirs = saved(tmp_path / "theirs", name, pieces, **CLASSES[name])
    model = unified.load(tmp_path / "theirs")
    assert type(model) is TaskModel
    model.save_pretrained(tmp_path / "back")
    before, after = (load_file(tmp_path / one / "model.safetensors") for one in ("theirs", "back"))
    assert before.keys() == after.keys() and all(torch.equal(value, after[one]) for one, value in before.items())
    wanted, config = (json.loads((tmp_path / one / "config.json").read_text()) for one in ("theirs", "back"))
    assert config["architectures"] == [name] and config.get("id2label") == wanted.get("id2label")
    again = unified.load(tmp_path / "back")
    first, second = SENTENCES[2:]
    if name == "XLNetForSequenceClassification":
        assert again.predictor().task.dropout == model.predictor().task.dropout == 0.3
        found = model.classify([first], [second])[0]["probabilities"]
        scores = theirs(**read(model, first, second)).logits[0].softmax(-1)
        assert again.classify([first], [second])[0]["probabilities"] == found
    elif name == "XLNetForTokenClassification":
        words = "A text of many".split()
        given = read(model, " ".join(words))
        firsts = [model.tokenizer.encode(" ".join(words[:i])) for i in range(len(words))]
        best = theirs(**given).logits[0].argmax(-1)
        assert [label for _, label in again.tag(" ".join(words))] == [LABELS[int(best[len(one)])] for one in firsts]
        return
    elif name == "XLNetForMultipleChoice":
        item = {"context": first, "choices": [second, "9"]}
        (found,) = (one["probabilities"] for one in again.predict([item]))
        rows = [read(model, first, one) for one in item["choices"]]
        scores = torch.cat([theirs(**{n: v[None] for n, v in row.items()}).logits[0] for row in rows]).softmax(-1)
        assert found == pytest.approx(scores.tolist(), abs=1e-5)
        return
    else:
        assert again.answer("many words", first)["answer"] == model.answer("many words", first)["answer"]
        states = theirs.transformer(**read(model, first)).last_hidden_state[0]
        scores = model.model.heads["span"].output(states)
        torch.testing.assert_close(scores, theirs.qa_outputs(states), atol=1e-5, rtol=1e-5)
        return
    assert list(found.values()) == pytest.approx(scores.tolist(), abs=1e-5)


@torch.no_grad()
def test_markers_behind_the_pieces_come_in_and_leave_again(tmp_path, pieces):
    """An export of a model that was fine-tuned with markers has them there, and was not read again."""
    saved(tmp_path / "theirs", "XLNetForSequenceClassification", pieces, added=2, id2label=LABELS)
    first = len(XLNetTokenizer(pieces).native_symbols())
    markers = {str(first + i): {"content": f"[unused{i + 1}]", "special": True} for i in range(2)}
    settings = {"added_tokens_decoder": {"0": {"content": "<unk>", "special": True}, **markers}}
    (tmp_path / "theirs" / "tokenizer_config.json").write_text(json.dumps(settings))
    folders = [tmp_path / name for name in ("theirs", "back", "again")]
    for folder, next_one in zip(folders, folders[1:], strict=False):
        model = unified.load(folder)
        assert model.vocabulary.symbols[-2:] == ["[unused1]", "[unused2]"]
        assert "[unused1]" not in model.tokenizer.encode("the [unused1] cat")
        model.save_pretrained(next_one)
    one, two, three = (load_file(folder / "model.safetensors") for folder in folders)
    assert one.keys() == two.keys() == three.keys()
    assert all(torch.equal(value, two[name]) and torch.equal(value, three[name]) for name, value in one.items())


def test_a_regression_and_what_reads_another_state(tmp_path, pieces):
    theirs = saved(tmp_path / "number", "XLNetForSequenceClassification", pieces, num_labels=1)
    model = unified.load(tmp_path / "number")
    wanted = theirs(**read(model, SENTENCES[2])).logits.item()
    assert model.classify(SENTENCES[2:3])[0]["label"] == pytest.approx(wanted, abs=1e-5)
    model.save_pretrained(tmp_path / "back")
    back = transformers.XLNetForSequenceClassification.from_pretrained(tmp_path / "back").eval()
    assert back.config.problem_type == "regression"
    assert back(**read(model, SENTENCES[2])).logits.item() == pytest.approx(wanted, abs=1e-6)
    saved(tmp_path / "mean", "XLNetForSequenceClassification", pieces, summary_type="mean")
    with pytest.raises(UnifiedError, match="summary_type 'mean'; only 'last' is built"):
        unified.load(tmp_path / "mean")
