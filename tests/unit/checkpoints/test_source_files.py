"""Files of other libraries: parameters in one file or in parts, settings and their bounds, and damage by name."""

from __future__ import annotations

import binascii
import json
import pickle

import pytest
import torch
from safetensors.torch import save_file

from unified.checkpoints.files import fingerprint, load_checkpoint, named_damage
from unified.checkpoints.sources import (
    counted,
    read_config,
    read_parameters,
    read_settings,
    reading_config,
    required,
)
from unified.errors import UnifiedError

STATE = {"a": torch.arange(3.0), "b": torch.ones(2, 2)}


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


def same(found: dict, wanted: dict = STATE) -> bool:
    return found.keys() == wanted.keys() and all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_the_last_names_in_paths_are_counted():
    assert counted(["x/adam_m", "y/z/adam_m", "global_step", "y/adam_v"]) == [
        "adam_m of 2 variables", "global_step", "adam_v"
    ]  # fmt: skip
    assert counted([]) == []


def test_a_file_must_be_there(tmp_path):
    path = tmp_path / "x.json"
    for call in (required, read_settings, read_config):
        assert refusal(call, path) == f"{path}: no such file"
    path.write_text('{"anything": [1]}')
    assert required(path) == path and read_settings(path) == {"anything": [1]}


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("num_hidden_layers", 1, 1000), ("n_layer", 1, 1000), ("num_attention_heads", 1, None), ("n_head", 1, None),
     ("global_attn_every_n_layers", 1, None)],
)  # fmt: skip
def test_counts_have_bounds(tmp_path, name, least, most):
    path = tmp_path / "config.json"

    def read(value: int) -> dict:
        path.write_text(json.dumps({name: value}))
        return read_config(path)

    assert read(least) == {name: least}
    wanted = f"at least {least}" if most is None else f"from {least} to {most:,}"
    assert refusal(read, least - 1) == f"{path}: {name!r} must be {wanted}, got {least - 1}"
    if most is None:
        assert read(10**6)
    else:
        assert read(most) == {name: most}
        assert refusal(read, most + 1) == f"{path}: {name!r} must be {wanted}, got {most + 1}"


@pytest.mark.parametrize("name", ["hidden_dropout_prob", "attention_probs_dropout_prob", "embedding_dropout",
                                  "mlp_dropout", "attention_dropout", "dropout"])  # fmt: skip
def test_dropouts_are_probabilities(tmp_path, name):
    path = tmp_path / "config.json"
    for value, wrong in (
        (None, "a number"),
        (1, "at least 0 and below 1, got 1"),
        (-0.1, "at least 0 and below 1, got -0.1"),
    ):
        path.write_text(json.dumps({name: value}))
        assert refusal(read_config, path) == f"{path}: {name!r} must be {wrong}"
    path.write_text(json.dumps({name: 0.5}))
    assert read_config(path) == {name: 0.5}


@pytest.mark.parametrize("name", ["layer_norm_eps", "norm_eps", "initializer_range"])
def test_epsilons_and_deviations_are_not_negative(tmp_path, name):
    path = tmp_path / "config.json"
    for value, wrong in ((None, "a number"), (-1e-5, "at least 0, got -1e-05")):
        path.write_text(json.dumps({name: value}))
        assert refusal(read_config, path) == f"{path}: {name!r} must be {wrong}"
    path.write_text(json.dumps({name: 0}))
    assert read_config(path) == {name: 0}


def test_null_stands_for_nothing_only_where_transformers_has_it(tmp_path):
    path = tmp_path / "config.json"
    for name in ("hidden_act", "hidden_activation", "classifier_activation", "ff_activation", "attn_type"):
        path.write_text(json.dumps({name: None}))
        assert refusal(read_config, path) == f"{path}: {name!r} must be a text"
    free = dict.fromkeys(("classifier_dropout", "global_rope_theta", "d_head", "pad_token_id", "rope_scaling"))
    path.write_text(json.dumps(free))
    assert read_config(path) == free


def test_what_is_missing_or_refused_while_a_configuration_is_made_names_the_file():
    with reading_config("a BERT's"):
        pass

    def missing():
        with reading_config("a BERT's"):
            {}["width"]

    def wrong():
        with reading_config("a BERT's"):
            raise UnifiedError("too wide")

    assert refusal(missing) == "config.json: no width; is it a BERT's?"
    assert refusal(wrong) == "config.json: too wide"


# Parameters


def test_one_file_of_safetensors_comes_before_parts_and_those_before_bin_files(tmp_path):
    torch.save({"c": torch.ones(1)}, tmp_path / "pytorch_model.bin")
    assert same(read_parameters(tmp_path), {"c": torch.ones(1)})
    save_file({"a": STATE["a"]}, tmp_path / "one.safetensors")
    save_file({"b": STATE["b"]}, tmp_path / "two.safetensors")
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert same(read_parameters(tmp_path))
    save_file({"d": torch.ones(1)}, tmp_path / "model.safetensors")
    assert same(read_parameters(tmp_path), {"d": torch.ones(1)})
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-1])
    said = refusal(read_parameters, tmp_path)
    assert said.startswith(f"{tmp_path / 'model.safetensors'}: damaged, its content cannot be read (")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "weight_map must be an object; it names the file of each parameter"),
        ({"weight_map": {"a": "../x"}}, "'../x' is not the name of a file beside it"),
        ({"weight_map": {"a": "x\n"}}, "'x\\n' is not the name of a file beside it"),
        ({"weight_map": {"a": "none"}}, "names 'none', and there is no such file"),
        ({"weight_map": {"a": "x" * 255}}, f"names '{'x' * 255}', and there is no such file"),
    ],
)
def test_an_index_names_files_beside_it(tmp_path, content, said):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UnifiedError) as raised:
        read_parameters(tmp_path)
    assert raised.value.details == f"{path}: {said}"


def test_parts_may_be_bin_files(tmp_path):
    torch.save({"a": STATE["a"]}, tmp_path / "one.bin")
    torch.save({"b": STATE["b"]}, tmp_path / "two.bin")
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.bin", "b": "two.bin"}}))
    assert same(read_parameters(tmp_path))
    torch.save([1], tmp_path / "two.bin")
    assert refusal(read_parameters, tmp_path).startswith(f"{tmp_path / 'two.bin'}: expected a dictionary of tensors")
    (tmp_path / "two.bin").unlink()
    assert refusal(read_parameters, tmp_path) == f"{index}: names 'two.bin', and there is no such file"
    index.write_text(json.dumps({"weight_map": {"a": ""}}))
    assert refusal(read_parameters, tmp_path) == f"{index}: names '', and there is no such file"


def test_an_index_cannot_name_a_file_whose_name_is_too_long(tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "x" * 256}}))
    assert refusal(read_parameters, tmp_path).endswith(" is not the name of a file beside it")


def test_of_several_bin_files_it_must_be_pytorch_model(tmp_path):
    path, said = (
        tmp_path / "pytorch_model.bin",
        f"{tmp_path}: holds no weights in model.safetensors or pytorch_model.bin",
    )
    assert refusal(read_parameters, tmp_path) == said
    torch.save(STATE, tmp_path / "any.bin")
    assert same(read_parameters(tmp_path))
    torch.save({}, tmp_path / "training_args.bin")
    assert refusal(read_parameters, tmp_path) == said
    torch.save(STATE, path, _use_new_zipfile_serialization=False)  # the format of torch before 1.6
    assert same(read_parameters(tmp_path))


@pytest.mark.parametrize(
    "content",
    [[1], {1: torch.ones(1)}, {"a": 3}, {"a": torch.ones(2).to_sparse()}, {"a": torch.ones(2, device="meta")}],
)
def test_a_bin_file_is_a_dictionary_of_tensors(tmp_path, content):
    torch.save(content, tmp_path / "x.bin")
    said = f"{tmp_path / 'x.bin'}: expected a dictionary of tensors, the state_dict of a model"
    assert refusal(read_parameters, tmp_path) == said


# torch's files


def test_the_older_format_is_read_only_where_it_will_do(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(STATE, path, _use_new_zipfile_serialization=False)
    assert same(load_checkpoint(path, older=True))

    def read():
        with named_damage(path):
            pass

    for call, *arguments in ((load_checkpoint, path), (read,)):
        said = f"{path}: not a checkpoint, or a truncated or damaged one ("
        assert refusal(call, *arguments).startswith(said)
    path.write_bytes(path.read_bytes()[:40])
    said = refusal(load_checkpoint, path, True)
    assert said.startswith(f"{path}: damaged, its content cannot be read (")
    path.write_bytes(b"\x80\x02other")
    assert refusal(load_checkpoint, path, True).startswith(f"{path}: not a checkpoint, or a truncated or damaged one (")


@pytest.mark.parametrize(
    ("message", "culprit"),
    [
        ("first\n  a GLOBAL x.y was not allowed \nUnsupported z", "a GLOBAL x.y was not allowed"),
        ("first\nUnsupported operand 9", "Unsupported operand 9"),
        ("  first \nsecond", "first"),
        ("", "unknown"),
        ("x" * 200, "x" * 120),
    ],
)
def test_what_the_unpickler_refuses_is_named(tmp_path, message, culprit):
    torch.save({}, tmp_path / "x.pt")

    def read():
        with named_damage(tmp_path / "x.pt"):
            raise pickle.UnpicklingError(message)

    said = (
        f"{tmp_path / 'x.pt'}: refused, because it holds more than tensors and plain values ({culprit}); nothing in it"
    )
    with pytest.raises(UnifiedError) as raised:
        read()
    assert raised.value.details == f"{said} was executed"


@pytest.mark.parametrize(
    "error",
    [RuntimeError, EOFError, KeyError, IndexError, TypeError, ValueError, AttributeError, AssertionError],
)
def test_what_damage_raises_becomes_one_sentence(tmp_path, error):
    torch.save({}, tmp_path / "x.pt")

    def read():
        with named_damage(str(tmp_path / "x.pt")):
            raise error("something")

    assert refusal(read) == f"{tmp_path / 'x.pt'}: damaged, its content cannot be read ({error.__name__})"


def test_a_fingerprint_is_the_checksum_of_the_lines():
    assert fingerprint(["a", "é"]) == binascii.crc32(b"a\n\xc3\xa9") and fingerprint([]) == 0
