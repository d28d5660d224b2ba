"""Published encoders without a token head: features, fine-tuning, export, and refusals where tokens are wanted."""

import json
import re

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.integration.checkpoints.test_bert_checkpoints import ENTRIES, SENTENCES, bert_folder, minilm  # noqa: F401
from tests.support import fairseq_runs as fairseq
from tests.support import understanding_runs as runs
from tests.support.published_models import published, xlnet_pieces
from tests.support.task_folders import WORDS
from unified import load
from unified.checkpoints import load_checkpoint
from unified.checkpoints.roberta import read_roberta
from unified.cli import main
from unified.conversions.bert import export_bert, read_bert
from unified.conversions.export import Source
from unified.conversions.xlnet import export_xlnet, read_xlnet
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.composing import summarize
from unified.tasks.heads.items import TextItem, write_items

TEXTS = ["the cat sat", "the cats sat on a mat.", "", "a mat sat on the cat on a mat on a cat.", "mat"]


def their_vectors(model, tokenizer, texts, pooling: str) -> torch.Tensor:
    """Vectors of ``transformers``, each text by itself."""
    vectors = []
    for text in texts:
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        vectors.append(states.mean(0) if pooling == "mean" else states[0])
    return torch.stack(vectors)


@pytest.mark.parametrize("prefix", ["", "bert."])
@torch.no_grad()
def test_an_encoder_gives_the_features_of_transformers(tmp_path, prefix):
    theirs = bert_folder(tmp_path / "bert", kind="BertModel")
    state = load_file(tmp_path / "bert" / "model.safetensors")
    assert not any(name.startswith("bert.") for name in state)
    save_file({f"{prefix}{name}": value for name, value in state.items()}, tmp_path / "bert" / "model.safetensors")
    read_bert(tmp_path / "bert").save(tmp_path / "ours")
    lm = load(tmp_path / "ours")
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path / "bert")
    for pooling in ("mean", "cls"):
        expected = their_vectors(theirs, tokenizer, TEXTS, pooling)
        for batch_size in (1, 2, 32):
            found = lm.embed(TEXTS, pooling, batch_size=batch_size)
            assert found.dtype == torch.float32 and found.shape == (len(TEXTS), 32)
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    unit = lm.embed(TEXTS, normalize=True)
    torch.testing.assert_close(unit, torch.nn.functional.normalize(lm.embed(TEXTS)))
    assert lm.embed([]).shape == (0, 32)


@torch.no_grad()
def test_sentence_vectors_of_minilm(minilm, tmp_path):  # noqa: F811
    """MiniLM's folder says how: the mean of all states, made of length 1; the texts are of unequal lengths."""
    read_bert(minilm).save(tmp_path / "ours")
    lm = load(tmp_path / "ours")
    theirs = transformers.AutoModel.from_pretrained(minilm).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    texts = [*SENTENCES, "Short.", " ".join(SENTENCES)]
    # The package's own way: one padded batch, the mean over what is no padding.
    given = tokenizer(texts, padding="longest", return_tensors="pt")
    weights = given["attention_mask"].unsqueeze(-1).float()
    means = (theirs(**given).last_hidden_state * weights).sum(1) / weights.sum(1)
    expected = torch.nn.functional.normalize(means)
    torch.testing.assert_close(lm.embed(texts, "mean", normalize=True), expected, atol=1e-5, rtol=1e-5)
    one, near, far = lm.embed(
        ["A man plays a guitar.", "Someone plays music.", "The stock market fell."], normalize=True
    )
    similar, unlike = float(one @ near), float(one @ far)
    assert similar > 0.5 > 0.2 > unlike


@torch.no_grad()
def test_models_of_other_kinds_give_features(tmp_path):
    """Three kinds of model give embeddings: relative positions (CLS behind the text), a token head, a task's head."""
    one = published("xlnet", tmp_path / "xlnet")
    lm, ids = one.lm, one.lm.encode("the cat sat")
    ids = one.rows[[*ids, lm.special.separator, lm.special.begin]][None]
    types = torch.tensor([[0] * (ids.size(1) - 1) + [2]])
    states = one.theirs.transformer(ids, token_type_ids=types).last_hidden_state[0]
    found = lm.embed(["a dog", "the cat sat"])
    torch.testing.assert_close(found[1], states.mean(0), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(lm.embed(["the cat sat"], "cls")[0], states[-1], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found, torch.cat([lm.embed(["a dog"]), lm.embed(["the cat sat"])]), atol=1e-5, rtol=1e-5)
    one = published("unilm", tmp_path / "unilm")
    ids = one.rows[[one.lm.special.begin, *one.lm.encode("the cat sat"), one.lm.special.separator]][None]
    states = one.theirs.bert(ids).last_hidden_state[0].float()
    torch.testing.assert_close(one.lm.embed(["the cat sat"])[0], states.mean(0), atol=1e-5, rtol=1e-5)


def test_what_cannot_be_embedded_is_refused(tmp_path):
    lm = published("bert", tmp_path).lm
    long = "the cat " * 19 + "sat"
    assert lm.embed([long], max_tokens=38).equal(lm.embed([long[: long.rindex(" ")]]))
    for arguments, keywords, message in (
        (("the cat",), {}, "texts: expected a list of texts, got one text; put it in a list"),
        (([["the"]],), {}, r"texts\[0\]: expected one text, got list \['the'\]"),
        ((["a"], "max"), {}, "pooling must be one of mean, cls, got 'max'"),
        ((["a"],), {"max_tokens": -1}, "max_tokens must be an integer of at least 0, got -1"),
        ((["a"],), {"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ((["a", long],), {}, r"texts\[1\] has 39 tokens, the model reads 38 beside its special symbols; max_tokens=38"),
        ((3,), {}, "texts: expected a list of texts, got int 3"),
    ):
        with pytest.raises(UnifiedError, match=message):
            lm.embed(*arguments, **keywords)


def test_tokens_are_refused_in_one_line(tmp_path, capsys):
    bert_folder(tmp_path / "bert", kind="BertModel", token_types=6)
    assert main(["convert", "--from", "bert", str(tmp_path / "bert"), str(tmp_path / "ours")]) == 0
    assert "no token head: the model gives features and can be fine-tuned" in capsys.readouterr().out
    lm = load(tmp_path / "ours")
    for call in (
        lambda: lm.fill_mask("the <mask>"),
        lambda: lm.generate(["the cat"]),
        lambda: lm.generate(["the cat"], prompt=False),
        lambda: lm.score(["the"], ["cat"]),
        lambda: summarize(lm, ["the cat"]),
        lambda: lm.decoder(),
    ):
        with pytest.raises(UnifiedError, match="^the model has no token head .* gives features .* can be fine-tuned$"):
            call()
    with pytest.raises(UnifiedError, match="no span-boundary head"):
        lm.fill_span("the <mask> sat")
    (tmp_path / "sources").write_text("the cat\n")
    command = ["generate", "--model", str(tmp_path / "ours"), "--input", str(tmp_path / "sources"),
               "--output", str(tmp_path / "written")]  # fmt: skip
    assert main(command) == 2
    assert "the model has no token head" in capsys.readouterr().err


@torch.no_grad()
def test_encoders_go_back_bit_by_bit(tmp_path):
    theirs = bert_folder(tmp_path / "bert", kind="BertModel")
    read_bert(tmp_path / "bert").save(tmp_path / "ours")
    done = export_bert(Source.read(tmp_path / "ours"), tmp_path / "back")
    assert done.left_out == ()
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("bert", "back"))
    assert one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)
    back, report = transformers.BertModel.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids = torch.randint(0, len(ENTRIES), (2, 7))
    expected, found = theirs(ids), back.eval()(ids)
    torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(found.pooler_output, expected.pooler_output, atol=1e-6, rtol=1e-6)
    assert json.loads((tmp_path / "back" / "config.json").read_text())["architectures"] == ["BertModel"]


def test_heads_that_a_model_never_had_are_not_exported(tmp_path):
    """A masked language model without next-sentence prediction stays one; nothing drawn at random is written."""
    bert_folder(tmp_path / "bert", kind="BertForMaskedLM")
    read_bert(tmp_path / "bert").save(tmp_path / "ours")
    export_bert(Source.read(tmp_path / "ours"), tmp_path / "back")
    assert json.loads((tmp_path / "back" / "config.json").read_text())["architectures"] == ["BertForMaskedLM"]
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("bert", "back"))
    copies = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    assert one.keys() - copies == two.keys() - copies and all(torch.equal(one[name], two[name]) for name in one)


@torch.no_grad()
def test_xlnet_without_its_softmax(tmp_path):
    torch.manual_seed(0)
    pieces = xlnet_pieces()
    size = published("xlnet", tmp_path / "size").theirs.config.vocab_size
    config = transformers.XLNetConfig(vocab_size=size, d_model=16, n_layer=2, n_head=2, d_inner=24)
    theirs = transformers.XLNetModel(config).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "spiece.model").write_bytes(pieces)
    read_xlnet(tmp_path / "theirs").save(tmp_path / "ours")
    lm = load(tmp_path / "ours")
    assert lm.model.config.token_head == "none" and lm.embed(["the cat"]).shape == (1, 16)
    with pytest.raises(UnifiedError, match="the model has no token head"):
        lm.generate(["the"])
    export_xlnet(Source.read(tmp_path / "ours"), tmp_path / "back")
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "back"))
    assert one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)
    back, report = transformers.XLNetModel.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids = torch.randint(0, size, (2, 7))
    assert torch.equal(back.eval()(ids).last_hidden_state, theirs(ids).last_hidden_state)


@torch.no_grad()
def test_roberta_without_its_softmax(tmp_path):
    one = published("roberta", tmp_path)
    content = load_checkpoint(tmp_path / "theirs" / "model.pt")
    content["model"] = {name: value for name, value in content["model"].items() if "lm_head" not in name}
    torch.save(content, tmp_path / "theirs" / "model.pt")
    read_roberta(tmp_path / "theirs").save(tmp_path / "encoder")
    found = load(tmp_path / "encoder").embed(["the cat sat", "a"])
    torch.testing.assert_close(found, one.lm.embed(["the cat sat", "a"]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("missing", ["cls.predictions.bias", "cls.predictions.transform.dense.weight"])
def test_half_a_head_is_refused(tmp_path, missing):
    bert_folder(tmp_path / "bert")
    state = load_file(tmp_path / "bert" / "model.safetensors")
    state = {name: value for name, value in state.items() if name not in (missing, "cls.predictions.decoder.bias")}
    save_file(state, tmp_path / "bert" / "model.safetensors")
    with pytest.raises(UnifiedError, match=f"layers: missing: {missing}$"):
        read_bert(tmp_path / "bert").save(tmp_path / "ours")


def test_rows_without_an_entry_are_named(tmp_path):
    bert_folder(tmp_path / "bert")
    path = tmp_path / "bert" / "vocab.txt"
    path.write_text("".join(f"{entry}\n" for entry in ENTRIES[:-2]))
    assert read_bert(tmp_path / "bert").save(tmp_path / "ours").left_out == (
        "2 rows that no entry of the vocabulary has",
    )


# Fine-tuning


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A small encoder whose vocabulary are the words of the tasks' tests."""
    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(0)
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    config = transformers.BertConfig(
        vocab_size=len(entries), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.2,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder / "theirs")
    (folder / "theirs" / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries))
    (folder / "theirs" / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    read_bert(folder / "theirs").save(folder / "ours")
    return folder / "ours"


def films(rng, count: int) -> list[TextItem]:
    """Texts that a word makes positive."""
    found = []
    for i in range(count):
        words, positive = rng.choice(WORDS[2:], 4).tolist(), bool(rng.integers(2))
        words.insert(int(rng.integers(5)), WORDS[positive])
        found.append(TextItem(str(i), " ".join(words), None, "good" if positive else "bad"))
    return found


def test_an_encoder_is_fine_tuned_and_what_it_becomes_is_exported(encoder, tmp_path, capfd):
    rng = np.random.default_rng(0)
    (tmp_path / "items").mkdir()
    for split, count in (("train", 300), ("valid", 60)):
        write_items(tmp_path / "items" / f"{split}.jsonl", films(rng, count))
    words = ["finetune", "classification", "--data", str(tmp_path / "items"), "--init", str(encoder), "--output",
             str(tmp_path / "films"), "--max-length", "16", "--epochs", "6", "--lr", "3e-3"]  # fmt: skip
    assert main(words) == 0
    assert json.loads((tmp_path / "films" / "results.json").read_text())["scores"]["valid"]["accuracy"] > 90
    # The folder of the run is one of transformers, too, with a card; an export of it is the same.
    for name in ("config.json", "model.safetensors", "vocab.txt", "README.md"):
        assert (tmp_path / "films" / name).is_file()
    card = (tmp_path / "films" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: transformers\npipeline_tag: text-classification\n")
    assert "| valid | accuracy | " in card and "| lr | 0.003 |" in card and "fairseq-train " in card
    beside = transformers.pipeline("text-classification", str(tmp_path / "films"), top_k=None)
    # It goes to transformers with its head, and classifies there as here.
    capfd.readouterr()
    assert main(["export", str(tmp_path / "films"), str(tmp_path / "back")]) == 0
    assert "left out" not in capfd.readouterr().out
    model = load(tmp_path / "films")
    texts = ["w1 w5", "w9 w3 w2 w0"]
    classify = transformers.pipeline("text-classification", str(tmp_path / "back"), top_k=None)
    assert beside(texts) == classify(texts)
    for found, scores in zip(model.classify(texts), classify(texts), strict=True):
        assert found["probabilities"] == pytest.approx({one["label"]: one["score"] for one in scores}, abs=1e-5)
    back = transformers.BertModel.from_pretrained(tmp_path / "back", add_pooling_layer=False).eval()
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path / "back")
    with torch.no_grad():
        expected = their_vectors(back, tokenizer, texts, "cls")
    torch.testing.assert_close(model.embed(texts, "cls"), expected, atol=1e-5, rtol=1e-5)


def test_an_encoder_learns_masked_words_beside_a_task_with_a_new_head(encoder, tmp_path, capfd):
    rng, said = np.random.default_rng(0), "no token head; --auxiliary-masking trains a new one"
    (tmp_path / "items").mkdir()
    for split, count in (("train", 40), ("valid", 4)):
        write_items(tmp_path / "items" / f"{split}.jsonl", films(rng, count))
    words = ["finetune", "classification", "--data", str(tmp_path / "items"), "--max-length", "16", "--epochs", "1",
             "--lr", "3e-3", "--auxiliary-masking", "0.3"]  # fmt: skip
    for name, start, new in (("first", encoder, True), ("second", tmp_path / "first", False)):
        assert main([*words, "--init", str(start), "--output", str(tmp_path / name)]) == 0
        printed = capfd.readouterr()
        assert (f"{start} has {said}" in printed.err) == (said in printed.err) == new
        created = [line for line in (printed.out + printed.err).splitlines() if "initialised at random" in line]
        assert any("heads.token.dense.weight" in line for line in created) == new
        assert load(tmp_path / name).model.config.token_head == "transform"
        losses = re.findall('"train_masked_loss": "([0-9.]+)"', (tmp_path / name / "train.log").read_text())
        assert losses and all(0 < float(loss) < 9 for loss in losses)


def test_an_encoder_learns_to_write_with_a_new_head(encoder, tmp_path, capfd):
    rng = np.random.default_rng(0)
    (tmp_path / "items").mkdir()
    for split, count in (("train", 40), ("valid", 4), ("test", 4)):
        pairs = [{"source": " ".join(rng.choice(WORDS, 6)), "target": WORDS[i % 3]} for i in range(count)]
        lines = "".join(json.dumps(pair) + "\n" for pair in pairs)
        (tmp_path / "items" / f"{split}.jsonl").write_text(lines)
    words = ["finetune", "texts", "--data", str(tmp_path / "items"), "--init", str(encoder), "--output",
             str(tmp_path / "texts"), "--max-length", "160", "--epochs", "1"]  # fmt: skip
    assert main([*words, "--system", "encodr"]) == 2
    assert "no settings of 'encodr' for texts (did you mean 'encoder'?)" in capfd.readouterr().err
    for system, objective in (("published", "'target_cloze(mask_probability=0.7)'"), ("encoder", "target_next")):
        assert main([*words, "--system", system, "--dry-run"]) == 0
        assert f"--objectives {objective} " in capfd.readouterr().out
    assert main(words) == 0
    said = capfd.readouterr()
    assert "has no token head, so it learns with the settings for encoders" in said.err
    assert "--objectives target_next " in said.err
    (line,) = [line for line in (said.out + said.err).splitlines() if "initialised at random" in line]
    assert "heads.token.dense.weight" in line and "transformer" not in line
    model = load(tmp_path / "texts").model
    assert model.config.token_head == "transform"
    # A new head starts from the identity, scaled; five updates move each weight by at most 3e-4.
    scaled = model.config.initializer_range * torch.eye(model.config.width)
    torch.testing.assert_close(model.heads["token"].dense.weight, scaled, atol=2e-3, rtol=0)


def test_language_modelling_needs_a_head(encoder, tmp_path):
    data = fairseq.documents(tmp_path, np.random.default_rng(0), count=8)
    result = fairseq.train(data, tmp_path / "save", "--token-head", "none", "--batch-size", 2, check=False)
    fairseq.assert_refused(result, "--token-head none: language modelling predicts tokens; leave it out")


def test_a_model_of_a_task_without_a_token_head_cannot_mask(tmp_path):
    codec = runs.codec(16)
    shape = TransformerConfig(vocabulary_size=len(codec.vocabulary), layers=1, width=8, heads=2, token_head="none")
    with pytest.raises(UnifiedError, match="beside tasks needs a model with a token head"):
        UnifiedModel.for_tasks(shape, {}, predicts_tokens=True)
