"""Fine-tuned heads on bodies that no class of transformers has, as their own code has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

import unified
from tests.support import task_folders
from unified import TaskModel
from unified.checkpoints.trained import Trained, write
from unified.conversions.modeling import modeling_unified
from unified.model import TransformerConfig, UnifiedModel

BODIES: dict[str, dict] = {
    "pre-norm": {"norm": "pre"},
    "left to right": {"mask": "left_to_right", "token_types": 6},
    "sequence to sequence": {"mask": "seq2seq", "token_types": 6},
    "relative": {"positions": "relative", "norm": "pre"},
    "rotary": {"positions": "rotary", "token_types": 0, "gated": True, "attention_windows": "0,2"},
    "neighbor": {"sublayers": "neighbor,self,feed_forward"},
}
HEADS = {
    "classification": {"labels": ("bad", "so so", "good"), "dropout": 0.2},
    "regression": {"dropout": 0.1},
    "tagging": {"labels": ("O", "B-X", "I-X"), "dropout": 0.1},
    "span": {},
    "choice": {"dropout": 0.1},
}
TEXTS = ["w1 w2 w3 w4 w5", "w9 w0"]


def saved(folder: Path, head: str, **shape) -> TaskModel:
    """A tiny random model with a head, saved by us and loaded again."""
    known = task_folders.vocabulary()
    config = TransformerConfig(
        vocabulary_size=len(known), **{"layers": 2, "width": 32, "heads": 2, "initializer_range": 0.3, **shape}
    )
    torch.manual_seed(2)
    parameters = {n: v for n, v in UnifiedModel.for_language(config).state_dict().items() if "transformer." in n}
    scores = {"classification": 3, "tagging": 3, "span": 2}.get(head, 1)
    modules = {"output": (scores, 32)} | ({} if head in ("tagging", "span") else {"pooler": (32, 32)})
    for name, size in modules.items():
        parameters[f"heads.{head}.{name}.weight"] = torch.randn(size) * 0.4
        parameters[f"heads.{head}.{name}.bias"] = torch.randn(size[0]) * 0.4
    folder.mkdir()
    task_folders.tokenizer().save(folder)
    record = {head: {"head": head, "settings": HEADS[head]}}
    write(Trained(config, "nothing", parameters, known, record, 40), folder)
    model = unified.load(folder)
    assert isinstance(model, TaskModel)
    return model


@pytest.mark.parametrize("body", BODIES)
@torch.no_grad()
def test_classes_have_the_probabilities_of_the_pipeline(tmp_path, body):
    model = saved(tmp_path / "ours", "classification", **BODIES[body])
    model.save_pretrained(tmp_path / "out")
    classify = transformers.pipeline("text-classification", str(tmp_path / "out"), top_k=None, trust_remote_code=True)
    asked = [TEXTS[0], {"text": TEXTS[0], "text_pair": TEXTS[1]}]
    found = [{one["label"]: one["score"] for one in scores} for scores in (classify(asked[:1])[0], classify(asked[1]))]
    wanted = [*model.classify(TEXTS[:1]), *model.classify(TEXTS[:1], TEXTS[1:])]
    for one, other in zip(found, wanted, strict=True):
        assert one == pytest.approx(other["probabilities"], abs=1e-5)
    # Texts of several lengths together, padded on either side.
    for side in ("left", "right"):
        classify.tokenizer.padding_side = side
        for scores, other in zip(classify(TEXTS, batch_size=2), model.classify(TEXTS), strict=True):
            probabilities = {one["label"]: one["score"] for one in scores}
            assert probabilities == pytest.approx(other["probabilities"], abs=1e-5)


@pytest.mark.parametrize("head", HEADS)
@torch.no_grad()
def test_every_head_leaves_and_comes_back(tmp_path, head):
    model = saved(tmp_path / "ours", head, norm="pre")
    model.save_pretrained(tmp_path / "out")
    again = unified.load(tmp_path / "out")
    before, after = model.model.state_dict(), again.model.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(value, after[name]) for name, value in before.items())
    assert again.predictor().task == model.predictor().task
    again.save_pretrained(tmp_path / "twice")
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("out", "twice"))
    assert one.keys() == two.keys() and all(torch.equal(value, two[name]) for name, value in one.items())


@torch.no_grad()
def test_numbers_tags_answers_and_choices(tmp_path):
    models = {head: saved(tmp_path / head, head, norm="pre") for head in HEADS}
    theirs = {}
    for head, name in (
        ("regression", "SequenceClassification"), ("tagging", "TokenClassification"), ("span", "QuestionAnswering"),
        ("choice", "MultipleChoice"),
    ):  # fmt: skip
        models[head].save_pretrained(tmp_path / f"{head}-out")
        theirs[head] = vars(modeling_unified)[f"UnifiedFor{name}"].from_pretrained(tmp_path / f"{head}-out").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "span-out", trust_remote_code=True)
    given = tokenizer(TEXTS[0], return_tensors="pt")
    number = models["regression"].classify(TEXTS[:1])[0]["label"]
    assert theirs["regression"](**given).logits.item() == pytest.approx(number, abs=1e-5)
    best = theirs["tagging"](**given).logits[0, 1:-1].argmax(-1)
    tags = theirs["tagging"].config.id2label
    assert [tags[int(i)] for i in best] == [tag for _, tag in models["tagging"].tag(TEXTS[0])]
    item = {"context": TEXTS[0], "choices": TEXTS[::-1]}
    pairs = tokenizer([TEXTS[0]] * 2, TEXTS[::-1], return_tensors="pt", padding=True)
    scores = theirs["choice"](**{name: value[None] for name, value in pairs.items()}).logits[0].softmax(-1)
    (found,) = models["choice"].predict([item])
    assert found["probabilities"] == pytest.approx(scores.tolist(), abs=1e-5)
    # The answer is the span with the highest sum.
    asked = tokenizer("w7 w8", TEXTS[0], return_tensors="pt")
    scores, first = theirs["span"](**asked), int(asked["token_type_ids"][0].argmax())
    sums = scores.start_logits[0, first:-1, None] + scores.end_logits[0, None, first:-1]
    start, end = divmod(int(sums.masked_fill(torch.ones_like(sums).tril(-1).bool(), -torch.inf).argmax()), sums.size(1))
    assert models["span"].answer("w7 w8", TEXTS[0])["answer"] == " ".join(TEXTS[0].split()[start : end + 1])
