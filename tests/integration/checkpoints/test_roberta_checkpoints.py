"""fairseq's RoBERTa in: a file that fairseq wrote gives fairseq's numbers; what cannot be imported is refused."""

import re
import subprocess

import numpy as np
import pytest
import torch

from tests.support import fairseq_runs as fairseq
from tests.support.prepared_python import interpreter
from unified import UnifiedLM, masks
from unified.checkpoints import load_checkpoint
from unified.checkpoints.roberta import read_roberta
from unified.cli import main
from unified.data.vocabulary import SENTINELS
from unified.errors import UnifiedError
from unified.inference.sequences import Codec, sequence
from unified.tokenization.symbol_tokenizer import SymbolTokenizer


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A folder with ``dict.txt`` and ``model.pt`` of stock fairseq, and what fairseq computes with it."""
    folder = tmp_path_factory.mktemp("roberta")
    data = fairseq.documents(folder, np.random.default_rng(0), count=12)
    fairseq.run(
        "train", data, "--task", "masked_lm", "--criterion", "masked_lm", "--arch", "roberta_base", "--max-update", 1,
        "--encoder-layers", 3, "--encoder-embed-dim", 32, "--encoder-ffn-embed-dim", 50, "--encoder-attention-heads", 4,
        "--max-positions", 40, "--tokens-per-sample", 40, "--batch-size", 4, "--optimizer", "adam", "--lr", 1e-4,
        "--cpu", "--num-workers", 0, "--no-epoch-checkpoints", "--save-dir", folder / "model",
    )  # fmt: skip
    path, answer = folder / "model" / "checkpoint_last.pt", folder / "answer.npz"
    (folder / "model" / "dict.txt").write_bytes((data / "dict.txt").read_bytes())
    command = [interpreter(), "-m", "tests.support.fairseq_roberta", str(path), str(answer)]
    subprocess.run(command, check=True, cwd=fairseq.ROOT, env=fairseq.environment(), capture_output=True)
    path = path.rename(folder / "model" / "model.pt")
    (folder / "model" / "checkpoint_best.pt").unlink(missing_ok=True)
    return path.parent, dict(np.load(answer))


def changed(published, folder, change, older=False):
    """A copy of the folder whose file went through ``change``."""
    folder.mkdir()
    (folder / "dict.txt").write_bytes((published[0] / "dict.txt").read_bytes())
    content = load_checkpoint(published[0] / "model.pt")
    change(content)
    torch.save(content, folder / "model.pt", _use_new_zipfile_serialization=not older)
    return folder


def test_pretraining_goes_on(published, tmp_path):
    read_roberta(published[0]).save(tmp_path / "ours")
    result = fairseq.train(
        published[0].parent / "bin", tmp_path / "save", "--arch", "bert_base", "--layers", 3, "--width", 32,
        "--heads", 4, "--feed-forward", 50, "--max-positions", 40, "--norm-epsilon", 1e-5, "--tokens-per-sample", 40,
        "--batch-size", 4, "--objectives", "bidirectional", "--max-update", 1, "--lr", 1e-20,
        "--pair-separators", 2, "--finetune-from-model", tmp_path / "ours" / "checkpoint_last.pt",
    )  # fmt: skip
    (named,) = [line for line in (result.stdout + result.stderr).splitlines() if "initialised at random" in line]
    assert "heads.next_sentence" in named and "heads.token" not in named
    one, two = (load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"] for name in ("ours", "save"))
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=1e-15, rtol=0)


@torch.no_grad()
def test_an_imported_model_gives_the_numbers_of_fairseq(published, tmp_path, capsys):
    folder, expected = published
    assert main(["convert", "--from", "roberta", str(folder), str(tmp_path / "ours")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"wrote {tmp_path / 'ours'}, without a tokenizer"
    (new,) = [line for line in said if "drawn at random" in line]
    assert "heads.next_sentence.pooler.weight" in new and "heads.token" not in new
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    rows = len(expected["symbols"])
    assert lm.vocabulary.symbols == [*expected["symbols"], *SENTINELS]
    tokens, positions = torch.from_numpy(expected["tokens"]), torch.arange(17).expand(3, -1)
    mask = masks.batch([masks.bidirectional(17)] * 3)
    for types in (torch.zeros_like(positions), torch.ones_like(positions)):
        states = lm.model.transformer(tokens, positions, types, mask)
        torch.testing.assert_close(states, torch.from_numpy(expected["states"]), atol=1e-4, rtol=1e-4)
    logits = lm.model.logits(states.flatten(0, 1))[:, :rows].view(3, 17, rows)
    torch.testing.assert_close(logits, torch.from_numpy(expected["logits"]), atol=1e-4, rtol=1e-4)


def test_two_texts_are_joined_as_fairseqs_own_interface_joins_them(published):
    folder, expected = published
    trained = read_roberta(folder).trained
    codec = Codec.for_model(trained.config, SymbolTokenizer(trained.vocabulary.symbols), trained.vocabulary, 40)
    first, second = codec.encode(expected["texts"].tolist())
    assert sequence((first,), codec).tokens.tolist() == expected["single"].tolist()
    assert sequence((first, second), codec).tokens.tolist() == expected["pair"].tolist()


def test_the_spelling_of_the_published_files_is_read(published, tmp_path):
    """torch's older format, ``args``, ``decoder.``, ``emb_layer_norm``, ``in_proj``, and a head of some task."""

    def age(content):
        content["args"], content["cfg"] = content["cfg"]["model"], None
        del content["args"].layernorm_embedding
        state = content["model"]
        for layer in range(3):
            stem = f"encoder.sentence_encoder.layers.{layer}.self_attn."
            for kind in ("weight", "bias"):
                joint = [state.pop(f"{stem}{letter}_proj.{kind}") for letter in "qkv"]
                state[f"{stem}in_proj_{kind}"] = torch.cat(joint)
        renamed = {name.replace("layernorm_embedding", "emb_layer_norm"): value for name, value in state.items()}
        content["model"] = {name.replace("encoder.", "decoder.", 1): value for name, value in renamed.items()}
        content["model"]["classification_heads.mnli.dense.weight"] = torch.zeros(32, 32)

    read_roberta(published[0]).save(tmp_path / "modern")
    done = read_roberta(changed(published, tmp_path / "aged", age, older=True)).save(tmp_path / "older")
    assert done.left_out == ("classification_heads.mnli.dense.weight",)
    one, two = (load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"] for name in ("modern", "older"))
    assert one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def rename(old, new):
    def change(content):
        content["model"][new] = content["model"].pop(old)

    return change


def setting(name, value):
    def change(content):
        settings = vars(content["cfg"]["model"])
        if value is None:
            del settings[name]
        else:
            settings[name] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rename("encoder.lm_head.dense.weight", "encoder.other"), "unknown: encoder.other"),
        (
            rename("encoder.sentence_encoder.layers.1.fc1.bias", "encoder.lm_head.weight"),
            "missing: .*layers.1.fc1.bias",
        ),
        (lambda content: content["model"].update({"encoder.lm_head.weight": torch.zeros(1)}), "must be tied"),
        (
            lambda content: content["model"].pop("encoder.lm_head.dense.bias"),
            "layers: missing: encoder.lm_head.dense.bias$",
        ),
        (lambda content: content["model"].update({"encoder.lm_head.bias": 3}), "bias: expected a tensor, got int"),
        (
            lambda content: content["model"].update({"encoder.lm_head.bias": torch.tensor(3.0)}),
            "bias: expected a tensor, got a single number",
        ),
        (
            lambda content: content["model"].update({"encoder.lm_head.bias": torch.zeros(3).to_sparse()}),
            "bias: expected real numbers, one beside the other",
        ),
        (lambda content: content.update(model=None), "it has no 'model'"),
        (lambda content: content["model"].update({3: torch.zeros(1)}), "no 'model' with named parameters"),
        (
            lambda content: content["model"].update(
                {
                    "encoder.sentence_encoder.embed_tokens.weight": torch.zeros(20),
                    "encoder.lm_head.weight": torch.zeros(20),
                }
            ),
            "20 rows of symbols|tokens.weight: shape 20",
        ),
        (
            lambda content: content["model"].update({"encoder.layers.0.self_attn.in_proj_bias": 3}),
            "unknown: encoder.layers.0.self_attn.in_proj_bias",
        ),
        (lambda content: content.update(cfg=None), "no settings of a model"),
        (setting("encoder_layers", 2), "not the parameters of a RoBERTa of 2 layers: unknown: .*layers.2.*more"),
        (setting("encoder_ffn_embed_dim", 49), "inner.weight: shape 50x32, the configuration says 49x32"),
        (setting("max_positions", 41), "positions.weight: shape 40x32, the configuration says 41x32"),
        (setting("activation_fn", "relu"), "activation_fn 'relu'; only RoBERTa's 'gelu'"),
        (setting("encoder_normalize_before", True), "encoder_normalize_before True"),
        (setting("layernorm_embedding", False), "layernorm_embedding False"),
        (setting("untie_weights_roberta", True), "untie_weights_roberta True"),
        (setting("no_token_positional_embeddings", True), "no_token_positional_embeddings True"),
        (setting("encoder_learned_pos", False), "encoder_learned_pos False"),
        (setting("encoder_attention_heads", None), "no encoder_attention_heads among its settings"),
    ],
)
def test_what_is_not_roberta_is_refused(published, tmp_path, change, message):
    folder = changed(published, tmp_path / "changed", change)
    with pytest.raises(UnifiedError) as caught:
        read_roberta(folder).save(tmp_path / "ours")
    assert re.search(message, caught.value.details)
    assert not (tmp_path / "ours").exists()


def test_the_dictionary_must_be_the_models(published, tmp_path):
    folder = changed(published, tmp_path / "changed", lambda content: None)
    lines = (folder / "dict.txt").read_text().splitlines(keepends=True)
    (folder / "dict.txt").write_text("".join(lines[:-1]))
    rows = 4 + len(lines) + 1
    with pytest.raises(UnifiedError, match=f"{rows} rows of symbols, but dict.txt and <mask> make {rows - 1}"):
        read_roberta(folder).save(tmp_path / "ours")
    (folder / "dict.txt").unlink()
    with pytest.raises(UnifiedError, match="dict.txt: no such dictionary"):
        read_roberta(folder).save(tmp_path / "ours")
    (folder / "model.pt").unlink()
    with pytest.raises(UnifiedError, match="model.pt: no such checkpoint"):
        read_roberta(folder).save(tmp_path / "ours")
