"""TensorFlow's checkpoints: files of TensorFlow itself and of a writer made from the format, whole and damaged."""

import base64
import contextlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.integration.checkpoints.test_bert_checkpoints import ENTRIES, bert_folder
from tests.support import tensorflow_files
from unified import UnifiedLM, masks
from unified.checkpoints.tensorflow import find_tensorflow, load_tensorflow
from unified.cli import main
from unified.conversions.bert import read_bert
from unified.errors import UnifiedError

#: Written by tf.compat.v1.train.Saver(sharded=True) of TensorFlow 2.21.
BY_TENSORFLOW = {
    "model.ckpt.data-00000-of-00002": "AD4AwAAAAAAAAIA+AAAAPwAAQD8AAIA/AACgPwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
    "model.ckpt.data-00001-of-00002": "BwAAAAAAAAAAP0DA/////w==",
    "model.ckpt.index": (
        "AAAGCAIaAggBAAsNZ2xvYmFsX3N0ZXAICRIAGAEoCDW7158RAAwPbGF5ZXJfMC9oYWxmCBMSBBICCAIoBDWw0iLpCAYVa2VybmVsCAESCBICCA"
        "ISAggDIAQoGDVNycA3DgcVL2FkYW1fbQgBEggSAggCEgIIAyAcKBg1z/RffAYHEzEvYnJhaW4IDhIEEgIIAhgBIAgoBDVMPu6QCAYPc2NhbGFy"
        "CAMSABgBIAwoBDXX6oKiAAAAAAEAAAAAE5JYjwAAAAABAAAAAMDyobAAAQNtALwBAAAAAAEAAAAAqELmFcEBCM4BDwAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAABX+4CLJHVH2w=="
    ),
}
#: A variable divided by tf.compat.v1.fixed_size_partitioner(3); its values are not needed.
IN_SLICES = (
    "AAAGCAEaAggBAAoTAHAAAQECgISAgggBEggSAggEEgIIAiggNZJPvOgGBBWEg4CCCAESCBICCAMSAggCICAoGDUPqnblBgQVh4OAgggBEggSAggDEgII"
    "AiA4KBg1cvAYbAABLnAIARIIEgIIChICCAI6CAoCEAQKAhACOgoKBAgEEAMKAhACOgoKBAgHEAMKAhACAAAAAAEAAAAA7n+MDwAAAAABAAAAAMDyobAA"
    "AQNxAJsBAAAAAAEAAAAA7F32TqABCK0BDwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABX+4CLJHVH2w=="
)


def test_files_of_tensorflow_itself(tmp_path):
    for name, content in BY_TENSORFLOW.items():
        (tmp_path / name).write_bytes(base64.b64decode(content))
    found, optimizer = load_tensorflow(find_tensorflow(tmp_path))
    assert optimizer == ["global_step", "layer_0/kernel/adam_m"]
    expected = {
        "layer_0/kernel": np.arange(6, dtype=np.float32).reshape(2, 3) / 4,
        "layer_0/half": np.array([1.5, -2], dtype=np.float16),
        "layer_1/brain": np.array([0.5, -3], dtype=np.float32),  # bfloat16 there
        "layer_1/scalar": np.array(-1, dtype=np.int32),
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype and found[name].shape == value.shape, name
        assert np.array_equal(found[name], value), name


@pytest.mark.parametrize("shards", [1, 3])
def test_what_is_written_is_read(tmp_path, shards):
    rng = np.random.default_rng(0)
    kinds = ("<f4", "<f8", "<i4", "<i8", "<f2", "|b1")
    variables = {
        f"layer_{i}/{'kernel' * (i % 7)}": rng.normal(size=rng.integers(0, 5, size=i % 4), scale=9).astype(kinds[i % 6])
        for i in range(40)
    }
    variables["vector"] = rng.normal(size=9000).astype("<f4")
    tensorflow_files.write(tmp_path / "x.ckpt", variables, shards)
    found, optimizer = load_tensorflow(tmp_path / "x.ckpt")
    assert found.keys() == variables.keys() and not optimizer
    for name, value in variables.items():
        assert found[name].dtype == value.dtype and np.array_equal(found[name], value), name


def test_every_damaged_byte_is_noticed(tmp_path):
    variables = {"a/kernel": np.arange(4, dtype="<f4").reshape(2, 2), "a/bias": np.ones(2, "<f4")}
    tensorflow_files.write(tmp_path / "x.ckpt", variables)
    for name in ("x.ckpt.index", "x.ckpt.data-00000-of-00001"):
        whole, unnoticed = (tmp_path / name).read_bytes(), 0
        for index in range(len(whole)):
            damaged = bytearray(whole)
            damaged[index] ^= 1 + index % 255
            (tmp_path / name).write_bytes(damaged)
            try:
                found, _ = load_tensorflow(tmp_path / "x.ckpt")
            except UnifiedError as error:
                assert "x.ckpt" in str(error)
            else:  # the empty block about blocks, its offset, and the footer's padding
                unnoticed += 1
                assert all(np.array_equal(found[key], variables[key]) for key in variables)
        assert unnoticed <= (13 + 40 if name.endswith("index") else 0)
        for size in range(len(whole)):
            (tmp_path / name).write_bytes(whole[:size])
            with pytest.raises(UnifiedError, match="x.ckpt"):
                load_tensorflow(tmp_path / "x.ckpt")
        (tmp_path / name).write_bytes(whole)


def test_garbled_entries_with_right_checksums_are_refused_or_harmless(tmp_path):
    rng = np.random.default_rng(3)
    tensorflow_files.write(tmp_path / "x.ckpt", {"a": np.ones((2, 3), "<f4")})
    number, message = tensorflow_files.number, tensorflow_files.message
    shape = message(2, number(1, 2)) + message(2, number(1, 3))
    entry = number(1, 1) + message(2, shape) + number(5, 24) + b"\x35" + bytes(4)
    for _ in range(500):
        garbled = bytearray(entry)
        garbled[rng.integers(len(entry))] = rng.integers(256)
        rows = {b"": number(1, 1), b"a": bytes(garbled)}
        (tmp_path / "x.ckpt.index").write_bytes(tensorflow_files.table(rows))
        with contextlib.suppress(UnifiedError):
            load_tensorflow(tmp_path / "x.ckpt")


def test_what_is_not_read_is_refused_by_name(tmp_path):
    with pytest.raises(UnifiedError, match="x.ckpt.index: no such file"):
        load_tensorflow(tmp_path / "x.ckpt")
    (tmp_path / "slices.ckpt.index").write_bytes(base64.b64decode(IN_SLICES))
    with pytest.raises(UnifiedError, match="slices.ckpt: p is divided into slices"):
        load_tensorflow(tmp_path / "slices.ckpt")
    tensorflow_files.write(tmp_path / "x.ckpt", {"a": np.ones(2, "<f4"), "b": np.ones(2, "<f4")}, shards=2)
    (tmp_path / "x.ckpt.data-00001-of-00002").unlink()
    with pytest.raises(UnifiedError, match="data-00001-of-00002: no such file; b is in it"):
        load_tensorflow(tmp_path / "x.ckpt")
    with pytest.raises(UnifiedError, match=r"several TensorFlow checkpoints \(slices.ckpt.index, x.ckpt.index\)"):
        find_tensorflow(tmp_path)
    text = tensorflow_files.number(1, 7) + tensorflow_files.number(5, 4)  # TensorFlow 2's graph of objects
    rows = {b"": tensorflow_files.number(1, 1), b"_CHECKPOINTABLE_OBJECT_GRAPH": text}
    (tmp_path / "objects.index").write_bytes(tensorflow_files.table(rows))
    with pytest.raises(UnifiedError, match="_CHECKPOINTABLE_OBJECT_GRAPH is of TensorFlow's type 7"):
        load_tensorflow(tmp_path / "objects")
    (tmp_path / "big.index").write_bytes(tensorflow_files.table({b"": tensorflow_files.number(2, 1)}))
    with pytest.raises(UnifiedError, match="a big-endian checkpoint"):
        load_tensorflow(tmp_path / "big")


# BERT


def published(state):
    """BERT's parameters as google-research/bert names and lays them out."""
    names = {
        "cls/predictions/bias": "cls/predictions/output_bias",
        "cls/seq_relationship/weight": "cls/seq_relationship/output_weights",
        "cls/seq_relationship/bias": "cls/seq_relationship/output_bias",
    }
    out = {}
    for name, value in state.items():
        if name.startswith("cls.predictions.decoder"):
            continue
        path = re.sub(r"layer/(\d+)", r"layer_\1", name.replace(".", "/"))
        if path.endswith("_embeddings/weight"):
            path = path.removesuffix("/weight")
        elif "LayerNorm" in path:
            path = path.replace("/weight", "/gamma").replace("/bias", "/beta")
        elif path.endswith("/weight") and path not in names:
            path, value = path.replace("/weight", "/kernel"), value.T
        out[names.get(path, path)] = np.ascontiguousarray(value.numpy())
    return out


def tensorflow_folder(folder, kind="BertForPreTraining", **more):
    """Writes a checkpoint as published, with Adam's moments and the step; returns the model of ``transformers``."""
    theirs = bert_folder(folder, kind)
    variables = published(theirs.state_dict()) | {"global_step": np.array(7, "<i8")}
    for slot in ("adam_m", "adam_v"):
        variables |= {f"bert/pooler/dense/{part}/{slot}": np.ones(2, "<f4") for part in ("kernel", "bias")}
    tensorflow_files.write(folder / "bert_model.ckpt", variables | more)
    settings = json.loads((folder / "config.json").read_text())
    wanted = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
              "max_position_embeddings", "type_vocab_size", "hidden_act", "initializer_range")  # fmt: skip
    (folder / "bert_config.json").write_text(json.dumps({name: settings[name] for name in wanted}))
    for name in ("config.json", "model.safetensors", "tokenizer_config.json"):
        (folder / name).unlink()
    return theirs


@torch.no_grad()
def test_an_imported_model_gives_the_numbers_of_transformers(tmp_path, capsys):
    theirs = tensorflow_folder(tmp_path / "bert", **{"cls/squad/output_weights": np.ones((2, 32), "<f4")})
    assert main(["convert", "--from", "bert", str(tmp_path / "bert"), str(tmp_path / "ours")]) == 0
    said = capsys.readouterr().out
    assert "drawn at random" not in said
    (left_out,) = [line for line in said.splitlines() if line.startswith("left out")]
    for name in ("adam_m of 2 variables", "adam_v of 2 variables", "global_step", "cls/squad/output_weights"):
        assert name in left_out
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    their_ids, types = torch.randint(len(ENTRIES), (3, 11)), torch.randint(2, (3, 11))
    expected = theirs(input_ids=their_ids, token_type_ids=types, output_hidden_states=True)
    rows = torch.tensor([lm.vocabulary.index(symbol) for symbol in lm.tokenizer.native_symbols()])
    mask, positions = masks.batch([masks.bidirectional(11)] * 3), torch.arange(11).expand(3, -1)
    states = lm.model.transformer(rows[their_ids], positions, types, mask)
    torch.testing.assert_close(states, expected.hidden_states[-1], atol=1e-4, rtol=1e-4)
    logits = lm.model.logits(states.flatten(0, 1))[:, rows].view_as(expected.prediction_logits)
    torch.testing.assert_close(logits, expected.prediction_logits, atol=1e-4, rtol=1e-4)
    pairs = lm.model.heads["next_sentence"](states[:, 0])
    torch.testing.assert_close(pairs, expected.seq_relationship_logits.flip(1), atol=1e-4, rtol=1e-4)


def test_a_file_of_another_model_is_listed_and_refused(tmp_path, capsys):
    tensorflow_folder(tmp_path / "bert", **{"model/lm_loss/bias": np.ones(3, "<f4")})
    with pytest.raises(UnifiedError, match="unknown: bert.model.lm_loss.bias"):
        read_bert(tmp_path / "bert").save(tmp_path / "ours")
    tensorflow_files.write(tmp_path / "bert" / "bert_model.ckpt", {"bert/pooler/dense/bias": np.ones(32, "<f4")})
    with pytest.raises(UnifiedError, match="missing: bert.embeddings.word_embeddings.weight.*and 4. more"):
        read_bert(tmp_path / "bert").save(tmp_path / "ours")
    (tmp_path / "bert" / "bert_config.json").write_text("{")
    assert main(["convert", "--from", "bert", str(tmp_path / "bert"), str(tmp_path / "ours")]) == 2
    assert "bert_config.json, line 1: not JSON (" in capsys.readouterr().err
    assert not Path(tmp_path / "ours").exists()
