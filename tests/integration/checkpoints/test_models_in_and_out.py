"""Models of transformers by their names, in and out: language models, encoders, fine-tuned heads, tokenizers."""

from __future__ import annotations

import json
from pathlib import Path

import huggingface_hub
import pytest
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import unified
from tests.support import task_folders
from tests.support.exported_models import language_model
from unified import TaskModel, UnifiedLM
from unified.cli import main
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.tokenization import load_tokenizer

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on a mat dog good bad film was ##s .".split()
SENTENCES = ["the cat sat on a mat .", "a bad film", "good dogs was on the film . a cat"]
SHAPE = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "initializer_range": 0.3, "max_position_embeddings": 40,
}  # fmt: skip
LABELS = {0: "bad", 1: "so so", 2: "good"}
#: Classes of BERT, what each is loaded as here, and further settings.
BERTS = {
    "BertModel": (UnifiedLM, {}),
    "BertForMaskedLM": (UnifiedLM, {}),
    "BertForPreTraining": (UnifiedLM, {}),
    "BertForSequenceClassification": (TaskModel, {"id2label": LABELS}),
    "BertForTokenClassification": (TaskModel, {"id2label": LABELS, "classifier_dropout": 0.3}),
    "BertForQuestionAnswering": (TaskModel, {}),
    "BertForMultipleChoice": (TaskModel, {}),
}


def saved(folder: Path, name: str, **more) -> transformers.PreTrainedModel:
    """A tiny random model of a class of BERT, as transformers 5 saves it."""
    config = transformers.BertConfig(vocab_size=len(WORDS), **SHAPE, **more)
    model = getattr(transformers, name)(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    transformers.BertTokenizer({word: i for i, word in enumerate(WORDS)}).save_pretrained(folder)
    assert not (folder / "vocab.txt").exists()
    return model


@pytest.fixture(scope="module")
def berts(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("berts")
    for name, (_, more) in BERTS.items():
        saved(folder / name, name, **more)
    return folder


def parameters(folder: Path) -> dict[str, torch.Tensor]:
    """What a folder has of a model, without copies of the embeddings, which earlier versions of transformers want."""
    found = load_file(folder / "model.safetensors")
    return {name: value for name, value in found.items() if not name.startswith("cls.predictions.decoder.")}


@pytest.mark.parametrize("name", BERTS)
def test_a_folder_of_transformers_is_loaded_by_its_name_and_saved_again(berts, tmp_path, name):
    model = unified.load(berts / name)
    assert type(model) is BERTS[name][0] and model.embed(["the cat"]).shape == (1, 32)
    model.save_pretrained(tmp_path / "back")
    before, after = parameters(berts / name), parameters(tmp_path / "back")
    assert before.keys() == after.keys()
    assert all(torch.equal(value, after[one]) for one, value in before.items())
    assert json.loads((tmp_path / "back" / "config.json").read_text())["architectures"] == [name]
    # Through the commands it is the same; and it is loaded again from what was saved.
    assert main(["convert", str(berts / name), str(tmp_path / "ours")]) == 0
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "exported")]) == 0
    for file in ("model.safetensors", "vocab.txt", "tokenizer_config.json"):
        assert (tmp_path / "exported" / file).read_bytes() == (tmp_path / "back" / file).read_bytes()
    again = unified.load(tmp_path / "back").model.state_dict()
    states = {one: value for one, value in model.model.state_dict().items() if one not in model.untrained}
    assert all(torch.equal(value, again[one]) for one, value in states.items())


def test_a_folder_is_converted_once(berts, capsys):
    UnifiedLM.from_pretrained(berts / "BertForMaskedLM")
    capsys.readouterr()
    UnifiedLM.from_pretrained(berts / "BertForMaskedLM")
    assert capsys.readouterr().err == ""


def test_a_name_of_the_hub_is_fetched_and_loaded(berts, tmp_path, monkeypatch):
    theirs = transformers.BertForMaskedLM.from_pretrained(berts / "BertForMaskedLM")
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((berts / "BertForMaskedLM" / name).read_bytes())
    asked = []

    def snapshot(name: str, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        asked.append((name, allow_patterns[-1]))
        return str(berts / "BertForMaskedLM" if name == "some/tiny-bert" else tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    found = [unified.load(name).fill_mask("the <mask> sat") for name in ("some/tiny-bert", "older-bert")]
    assert found[0] == found[1]
    # An older model, which has no safetensors, is asked for its other file.
    safetensors, bin = "model-*-of-*.safetensors", "pytorch_model-*-of-*.bin"
    assert [pattern for _, pattern in asked if "-of-" in pattern] == [safetensors, safetensors, bin]


def test_text_is_prepared_by_a_tokenizer_of_transformers_or_of_the_hub(berts, tmp_path, monkeypatch, capsys):
    (tmp_path / "text").write_text("\n".join(SENTENCES) + "\n")
    words = ["prepare", str(tmp_path / "text"), "--output"]
    asked = []

    def snapshot(name: str, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        asked.append((name, [pattern for pattern in allow_patterns if "safetensors" in pattern or ".bin" in pattern]))
        return str(berts / "BertModel")

    assert main([*words, str(tmp_path / "one"), "--tokenizer", str(berts / "BertModel")]) == 0
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert main([*words, str(tmp_path / "two"), "--tokenizer", "some/tiny-bert"]) == 0
    assert asked == [("some/tiny-bert", [])]  # without weights
    for name in ("one", "two"):
        assert load_tokenizer(tmp_path / name).entries == WORDS
        # It is the data that a training from that model takes.
        symbols = unified.load(berts / "BertModel").vocabulary.symbols
        assert Vocabulary.load(tmp_path / name / "dict.txt").symbols == symbols
    monkeypatch.undo()
    capsys.readouterr()
    assert main([*words, str(tmp_path / "no"), "--tokenizer", "tiny-bert"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "--tokenizer tiny-bert: none of unigram, bpe, " in said and "nor a model; tiny-bert: no such" in said


def test_a_model_in_parts_is_read(berts, tmp_path):
    theirs = transformers.BertForMaskedLM.from_pretrained(berts / "BertForMaskedLM")
    theirs.save_pretrained(tmp_path, max_shard_size="20KB")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    (tmp_path / "tokenizer.json").write_bytes((berts / "BertForMaskedLM" / "tokenizer.json").read_bytes())
    whole, parts = (UnifiedLM.from_pretrained(folder) for folder in (berts / "BertForMaskedLM", tmp_path))
    assert whole.fill_mask("the <mask> sat") == parts.fill_mask("the <mask> sat")


def test_a_model_of_transformers_is_where_fine_tuning_begins(berts, tmp_path, capsys):
    items = [{"text": text, "label": label} for text in SENTENCES for label in ("x", "y")]
    for split in ("train", "valid"):
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    words = ["finetune", "classification", "--data", str(tmp_path), "--output", str(tmp_path / "out"), "--dry-run"]
    assert main([*words, "--max-length", "32", "--init", str(berts / "BertModel")]) == 0
    assert "--finetune-from-model" in capsys.readouterr().out


# Fine-tuned heads


def probabilities(found: list[dict]) -> list[dict[str, float]]:
    return [{one["label"]: one["score"] for one in scores} for scores in found]


def test_classes_have_the_probabilities_of_the_pipeline(berts, tmp_path, capsys):
    model = unified.load(berts / "BertForSequenceClassification")
    model.save_pretrained(tmp_path / "back")
    classify = transformers.pipeline("text-classification", str(tmp_path / "back"), top_k=None)
    expected = probabilities(classify(SENTENCES))
    for found, wanted in zip(model.classify(SENTENCES), expected, strict=True):
        assert found["probabilities"] == pytest.approx(wanted, abs=1e-5)
    pair = probabilities([classify({"text": SENTENCES[0], "text_pair": SENTENCES[1]})])
    assert model.classify(SENTENCES[:1], SENTENCES[1:2])[0]["probabilities"] == pytest.approx(pair[0], abs=1e-5)
    folder = str(berts / "BertForSequenceClassification")
    assert main(["predict", "classification", json.dumps({"text": SENTENCES[0]}), "--model", folder]) == 0
    assert json.loads(capsys.readouterr().out)["probabilities"] == pytest.approx(expected[0], abs=1e-5)


def test_tags_are_those_of_the_pipeline(berts, tmp_path):
    model = unified.load(berts / "BertForTokenClassification")
    assert model.predictor().task.dropout == 0.3
    model.save_pretrained(tmp_path / "back")
    tag = transformers.pipeline("token-classification", str(tmp_path / "back"), ignore_labels=[])
    for sentence in SENTENCES:
        firsts = [one["entity"] for one in tag(sentence) if not one["word"].startswith("##")]
        assert [label for _, label in model.tag(sentence)] == firsts


@torch.no_grad()
def test_answers_and_choices_have_the_scores_of_transformers(berts, tmp_path):
    theirs = transformers.BertForQuestionAnswering.from_pretrained(berts / "BertForQuestionAnswering").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(berts / "BertForQuestionAnswering")
    model = unified.load(berts / "BertForQuestionAnswering")
    question, passage = "the cat", "a good dog sat on the mat ."
    given = tokenizer(question, passage, return_tensors="pt")
    scores = theirs(**given)
    first = given["token_type_ids"][0].argmax()
    sums = scores.start_logits[0, first:-1, None] + scores.end_logits[0, None, first:-1]
    backwards = torch.ones_like(sums).tril(-1).bool()
    start, end = divmod(int(sums.masked_fill(backwards, -torch.inf).argmax()), sums.size(1))
    assert model.answer(question, passage)["answer"] == " ".join(passage.split()[start : end + 1])

    theirs = transformers.BertForMultipleChoice.from_pretrained(berts / "BertForMultipleChoice").eval()
    given = tokenizer([SENTENCES[0]] * 2, SENTENCES[1:], return_tensors="pt", padding=True)
    wanted = theirs(**{name: value[None] for name, value in given.items()}).logits[0].softmax(-1)
    item = {"context": SENTENCES[0], "choices": SENTENCES[1:]}
    (found,) = unified.load(berts / "BertForMultipleChoice").predict([item])
    assert found["probabilities"] == pytest.approx(wanted.tolist(), abs=1e-5)


def test_a_regression_and_what_is_no_head_of_ours(tmp_path):
    theirs = saved(tmp_path / "number", "BertForSequenceClassification", num_labels=1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "number")
    model = unified.load(tmp_path / "number")
    wanted = theirs(**tokenizer(SENTENCES[0], return_tensors="pt")).logits.item()
    assert model.classify(SENTENCES[:1])[0]["label"] == pytest.approx(wanted, abs=1e-5)
    model.save_pretrained(tmp_path / "back")
    (found,) = transformers.pipeline("text-classification", str(tmp_path / "back"))(SENTENCES[:1])
    assert found["score"] == pytest.approx(wanted, abs=1e-5)
    saved(tmp_path / "many", "BertForSequenceClassification", problem_type="multi_label_classification")
    with pytest.raises(UnifiedError, match="'multi_label_classification': a text has several labels there"):
        unified.load(tmp_path / "many")
    saved(tmp_path / "three", "BertForQuestionAnswering", num_labels=3)
    with pytest.raises(UnifiedError, match="with 2 scores, but qa_outputs.weight has 3"):
        unified.load(tmp_path / "three")


@pytest.mark.parametrize(("asked", "written"), [("bert", "bert"), (None, "unified")])
def test_a_model_that_writes_comes_back_as_it_was(tmp_path, asked, written):
    """One that was fine-tuned to write takes its code along, unless another format is asked for."""
    shape = {"token_types": 6, "max_positions": 48, "initializer_range": 0.4}
    ours = task_folders.language_model(tmp_path / "ours", writes="cloze", **shape)
    lm = UnifiedLM.from_pretrained(ours)
    lm.lengths = PairLengths(max_source=12, longest_target=7)
    lm.save_pretrained(tmp_path / "theirs", asked)
    assert json.loads((tmp_path / "theirs" / "config.json").read_text(encoding="utf-8"))["model_type"] == written
    again = UnifiedLM.from_pretrained(tmp_path / "theirs")
    assert (again.writes, again.lengths) == (lm.writes, lm.lengths)
    sources = ["w1 w2 w3", "w9 w8"]
    assert again.generate(sources, beam=2) == lm.generate(sources, beam=2)


# Byte-level BPE: RoBERTa


@pytest.fixture(scope="module")
def roberta_tokenizer() -> transformers.PreTrainedTokenizerBase:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES * 9, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>",
        mask_token="<mask>", cls_token="<s>", sep_token="</s>",
    )  # fmt: skip


def roberta(folder: Path, name: str, tokenizer, **more) -> transformers.PreTrainedModel:
    shape = SHAPE | {"max_position_embeddings": 66, "type_vocab_size": 1}
    config = transformers.RobertaConfig(vocab_size=len(tokenizer), **shape, **more)
    model = getattr(transformers, name)(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


@torch.no_grad()
def test_a_roberta_comes_in_with_its_byte_level_tokenizer(tmp_path, roberta_tokenizer):
    theirs = roberta(tmp_path / "theirs", "RobertaForMaskedLM", roberta_tokenizer)
    model = UnifiedLM.from_pretrained(tmp_path / "theirs")
    for text in [*SENTENCES, "Straße, naïve 汉字 🎈", "x"]:
        ids = model.tokenizer.encode_ids([text])[0].tolist()
        assert ids == roberta_tokenizer(text, add_special_tokens=False)["input_ids"]
        assert model.tokenizer.encode(text) == [model.tokenizer.native_symbols()[i] for i in ids]
        assert model.decode(model.encode(text)) == text
    assert model.encode("<mask> </s>")[0] not in (model.special.mask, model.special.separator)  # text is text
    text = "<s>the cat<mask> on a mat</s>"
    ids = roberta_tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    at = (ids[0] == roberta_tokenizer.mask_token_id).nonzero().item()
    wanted = theirs(ids).logits[0, at].softmax(-1)
    (found,) = model.fill_mask("the cat <mask> on a mat", top=250)
    for symbol, probability in found:
        assert wanted[roberta_tokenizer.convert_tokens_to_ids(symbol)].item() == pytest.approx(probability, abs=1e-5)
    # It leaves as a BERT with the same tokenizer, and comes in again as it is.
    model.save_pretrained(tmp_path / "back")
    fill = transformers.pipeline("fill-mask", str(tmp_path / "back"), top_k=3)
    best = [one["score"] for one in fill("the cat<mask> on a mat")]
    assert best == pytest.approx([probability for _, probability in found[:3]], abs=1e-5)
    again = UnifiedLM.from_pretrained(tmp_path / "back")
    assert again.fill_mask("the <mask> sat") == model.fill_mask("the <mask> sat")


def test_a_roberta_that_classifies(tmp_path, roberta_tokenizer):
    theirs = roberta(tmp_path / "theirs", "RobertaForSequenceClassification", roberta_tokenizer, id2label=LABELS)
    model = unified.load(tmp_path / "theirs")
    with torch.no_grad():
        ids = roberta_tokenizer(f"<s>{SENTENCES[0]}</s>", add_special_tokens=False, return_tensors="pt")["input_ids"]
        wanted = theirs(ids).logits[0].softmax(-1).tolist()
    found = model.classify(SENTENCES[:1])[0]["probabilities"]
    assert list(found.values()) == pytest.approx(wanted, abs=1e-5)
    model.save_pretrained(tmp_path / "back")
    classify = transformers.pipeline("text-classification", str(tmp_path / "back"), top_k=None)
    assert probabilities(classify(SENTENCES[:1])) == [pytest.approx(found, abs=1e-5)]


def test_prepare_takes_a_byte_level_tokenizer(tmp_path, roberta_tokenizer):
    roberta_tokenizer.save_pretrained(tmp_path / "roberta")
    (tmp_path / "text.txt").write_text("".join(f"{line}\n\n" for line in SENTENCES * 3))
    text = str(tmp_path / "text.txt")
    words = ["prepare", text, "--valid", text, "--output", str(tmp_path / "data")]
    assert main([*words, "--tokenizer", str(tmp_path / "roberta")]) == 0
    tokenizer = load_tokenizer(tmp_path / "data")
    assert tokenizer.encode("the cat") == load_tokenizer(tmp_path / "roberta").encode("the cat")
    assert tokenizer.word_start("\u0120cat") and not tokenizer.word_start("cat")


# XLNet


def xlnet_tokenizer() -> transformers.XLNetTokenizer:
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    letters = sorted(set("".join(SENTENCES)) - {" "})
    pieces = [*special, "\u2581", "\u2581the", "\u2581cat", "oo", *letters]
    return transformers.XLNetTokenizer([(piece, 0.0 if piece in special else -1.0) for piece in pieces])


@torch.no_grad()
def test_an_xlnet_with_tokenizer_json_comes_in_and_leaves(tmp_path):
    tokenizer = xlnet_tokenizer()
    shape = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24, "ff_activation": "gelu", "mem_len": None}
    theirs = transformers.XLNetLMHeadModel(transformers.XLNetConfig(vocab_size=len(tokenizer), **shape)).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    theirs.save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    assert not (tmp_path / "theirs" / "spiece.model").exists()
    lm = UnifiedLM.from_pretrained(tmp_path / "theirs")
    for sentence in SENTENCES:
        flat, _ = lm.tokenizer.encode_ids([sentence])
        assert flat.tolist() == tokenizer(sentence, add_special_tokens=False)["input_ids"]
    lm.save_pretrained(tmp_path / "back")
    given = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")(SENTENCES[0], return_tensors="pt")
    assert torch.equal(given["input_ids"], tokenizer(SENTENCES[0], return_tensors="pt")["input_ids"])
    back = transformers.XLNetModel.from_pretrained(tmp_path / "back").eval()
    assert torch.equal(back(**given)[0], theirs.transformer(**given)[0])
    vector = lm.embed(SENTENCES[:1])
    torch.testing.assert_close(vector, back(**given)[0].mean(1), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_weights_leave_in_half_precision(berts, tmp_path):
    """Every format rounds to the nearest, says so in config.json, and is read again with the rounded values."""
    ours = language_model("cloze", PairLengths(longest_target=6), initializer_range=0.1)
    for name, model in {"bert": unified.load(berts / "BertForMaskedLM"), "unified": ours}.items():
        model.save_pretrained(tmp_path / name, format=name)
        model.save_pretrained(tmp_path / f"{name}-half", format=name, dtype=torch.float16)
        whole, half = (
            load_file(folder / "model.safetensors") for folder in (tmp_path / name, tmp_path / f"{name}-half")
        )
        assert half.keys() == whole.keys() and len(half) > 10
        assert all(torch.equal(value, whole[one].half()) for one, value in half.items())
        dtypes = [json.loads((tmp_path / one / "config.json").read_text())["dtype"] for one in (name, f"{name}-half")]
        assert dtypes == ["float32", "float16"]
        loaded = transformers.AutoModel.from_pretrained(tmp_path / f"{name}-half", dtype="auto", trust_remote_code=True)
        assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float16}
        unified.load(tmp_path / f"{name}-half").save_pretrained(tmp_path / f"{name}-again", format=name)
        again = load_file(tmp_path / f"{name}-again" / "model.safetensors")
        assert again.keys() == half.keys() and all(
            torch.equal(value.float(), again[one]) for one, value in half.items()
        )


def test_what_half_precision_cannot_hold_is_refused(berts, tmp_path):
    model = unified.load(berts / "BertForMaskedLM")
    with torch.no_grad():
        next(model.model.parameters())[0, 0] = 1e6
    with pytest.raises(UnifiedError, match=r"embeddings\.word.* holds values that float16 cannot hold"):
        model.save_pretrained(tmp_path / "out", dtype=torch.float16)
    assert not (tmp_path / "out").exists()
    model.save_pretrained(tmp_path / "out", dtype=torch.bfloat16)
    assert main(["export", str(berts / "BertForMaskedLM"), str(tmp_path / "rounded"), "--dtype", "bfloat16"]) == 0
    assert json.loads((tmp_path / "rounded" / "config.json").read_text())["dtype"] == "bfloat16"
