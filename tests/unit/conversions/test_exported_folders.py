"""A model that leaves: what is exported of it, in which order of rows, into which files, and in which format."""

from __future__ import annotations

import errno
import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError, safe_open

from tests.support.full_disk import full_disk
from tests.support.task_folders import WORDS, tokenizer
from unified.checkpoints.conversion import Conversion
from unified.checkpoints.trained import Trained, write
from unified.conversions import export, formats
from unified.conversions.bert import no_bert
from unified.conversions.export import Source, has_plain_layers, short_name, write_folder
from unified.conversions.modern_bert import no_modern_bert
from unified.conversions.task_heads import BERT
from unified.conversions.xlnet import no_xlnet
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.model import TransformerConfig, UnifiedModel

KNOWN = Vocabulary([*WORDS[::-1], "[unused2]", "[unused1]"])
CONFIG = TransformerConfig(len(KNOWN), layers=2, width=8, heads=2, max_positions=20)
TABLE, SCORED = "transformer.embeddings.tokens.weight", "transformer.embeddings.tokens.scored"
HEAD = {"head": "choice", "settings": {}}
ROTARY = replace(
    CONFIG, positions="rotary", gated=True, norm="pre", embedding_norm=True, token_types=0,
    norm_type="layer_without_bias",
)  # fmt: skip
RELATIVE = replace(CONFIG, positions="relative", token_head="plain")


def source(config: TransformerConfig = CONFIG, own=None, **changes) -> Source:
    torch.manual_seed(0)
    parameters = UnifiedModel.for_language(replace(config, lstm=0)).state_dict()
    parameters["heads.token.bias"] = torch.randn(len(KNOWN))
    return Source("the model", replace(Trained(config, "nothing", parameters, KNOWN), **changes), own or tokenizer())


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


def test_a_source_is_read_with_its_tokenizer_and_must_fit(tmp_path):
    own = source()
    write(own.trained, tmp_path)
    read = Source.read(tmp_path)
    assert (read.name, read.tokenizer, read.dtype) == (str(tmp_path / "checkpoint_last.pt"), None, torch.float32)
    assert all(torch.equal(value, own.trained.parameters[name]) for name, value in read.of_language.items())
    tokenizer().save(tmp_path)
    assert Source.read(tmp_path).tokenizer.entries == tokenizer().entries
    extra = {"heads.topic.x": torch.ones(1), "lstm.y": torch.ones(1)}
    lacking = {name: value for name, value in own.trained.parameters.items() if "next_sentence" not in name}
    write(replace(own.trained, parameters=lacking | extra), tmp_path)
    assert Source.read(tmp_path).left_out == ("heads.topic.x", "lstm.y")
    write(replace(own.trained, parameters=lacking | {"transformer.x": torch.ones(1)}), tmp_path)
    said = "the checkpoint's parameters do not fit the model: unknown: transformer.x"
    assert refusal(Source.read, tmp_path) == said


def test_heads_of_tasks_and_of_objectives_and_an_lstm_are_no_parameters_of_a_language_model():
    own = source()
    extra = {name: torch.ones(1) for name in ("heads.topic.x", "heads.mine.y", "lstm.z", "heads.extractive.w")}
    more = replace(own, trained=replace(own.trained, parameters=own.trained.parameters | extra))
    assert more.left_out == ("heads.topic.x", "heads.mine.y", "lstm.z")
    assert more.of_language.keys() == own.trained.parameters.keys() | {"heads.extractive.w"}


def test_the_configuration_is_that_of_a_language_model_with_the_heads_that_there_are():
    assert source(replace(CONFIG, lstm=1)).config == CONFIG
    bare = {name: value for name, value in source().trained.parameters.items() if not name.startswith("heads.token.")}
    assert source(parameters=bare).config == replace(CONFIG, token_head="none")


def test_a_fine_tuned_model_whose_pre_training_had_more_heads_is_read_and_has_them_no_longer(tmp_path):
    """Its configuration still names the heads of SpanBERT and of summaries."""
    own = source(replace(CONFIG, boundary_offsets=4, sentence_head=True))
    assert own.config == own.trained.config
    below = {name: value for name, value in own.trained.parameters.items() if name.startswith("transformer.")}
    task = {f"heads.mine.{part}": torch.ones(1, 8) for part in ("output.weight", "pooler.weight")}
    tuned = replace(own.trained, parameters=below | task, heads={"mine": HEAD}, longest=9)
    write(tuned, tmp_path)
    read = Source.read(tmp_path)
    assert read.config == replace(CONFIG, token_head="none") and read.of_language.keys() == below.keys()
    for head in ("boundary", "extractive"):
        kept = {name: value for name, value in own.trained.parameters.items() if f".{head}." not in name}
        config = Source("", replace(own.trained, parameters=kept), None).config
        assert (config.boundary_offsets, config.sentence_head) == ((0, True) if head == "boundary" else (4, False))


def test_the_head_of_one_task_is_exported_where_a_class_has_it():
    assert source().exported_head(BERT) is None
    assert source(heads={"mine": HEAD}).exported_head(BERT) == ("mine", HEAD)
    assert source(heads={"mine": HEAD, "more": HEAD}).exported_head(BERT) is None
    assert source(replace(CONFIG, lstm=1), heads={"mine": HEAD}).exported_head(BERT) is None
    assert source(heads={"mine": {"head": "coreference", "settings": {}}}).exported_head(BERT) is None


def test_rows_follow_the_symbols_and_unknown_ones_are_left_out():
    own = source()
    symbols = ["w3", "<s>", "nothing like it", "w0"]
    before = own.trained.parameters
    rows = [KNOWN.index("w3"), 0, 3, KNOWN.index("w0")]
    before[SCORED][rows[3]] = 0.0
    found = own.ordered(symbols)
    assert found.keys() == before.keys() and found[SCORED].tolist() == [1, 1, 0, 0]
    for name in (TABLE, "heads.token.bias"):
        assert torch.equal(found[name], before[name][rows])
    assert all(found[name] is before[name] for name in before if name not in (TABLE, SCORED, "heads.token.bias"))
    plain = own.by_rows_of(symbols)
    assert plain.keys() == before.keys() - {SCORED}
    assert plain["heads.token.bias"].tolist() == [*before["heads.token.bias"][rows[:2]].tolist(), -1e4, -1e4]
    assert torch.equal(plain[TABLE], found[TABLE])
    assert torch.isfinite(plain["heads.token.bias"].half()).all()
    bare = {name: value for name, value in before.items() if not name.startswith("heads.token.")}
    assert "heads.token.bias" not in source(parameters=bare).by_rows_of(symbols)


def test_markers_that_a_tokenizer_lacks_are_listed_by_their_numbers():
    assert source().markers_beyond(["w1"]) == ["[unused1]", "[unused2]"]
    assert source().markers_beyond(["[unused1]", "w1"]) == ["[unused2]"]


def test_reasons_against_a_class_of_transformers():
    assert source().other_mask is None
    assert source(replace(CONFIG, mask="left_to_right")).other_mask == (
        "the model reads texts under the mask 'left_to_right'; what it would be written as reads them in both "
        "directions and would give other states"
    )
    wanted = "the class needs X; the format unified takes any"
    assert source().other_tokenizer("X") == f"the model has another tokenizer; {wanted}"
    assert Source("", source().trained, None).other_tokenizer("X") == f"the model has no tokenizer; {wanted}"


def test_plain_layers_are_those_of_bert_and_xlnet():
    assert has_plain_layers(CONFIG)
    for change in ({"gated": True}, {"linear_without_bias": True}, {"attention_windows": "0,3"}, {"norm_type": "rms"}):
        assert not has_plain_layers(replace(CONFIG, **change))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_folder_holds_settings_parameters_and_tokenizer(tmp_path, dtype):
    parameters = {"a": torch.arange(6.0).view(2, 3).T, "b": torch.ones(())}
    folder = tmp_path / "out"
    write_folder(folder, {"x": 1}, parameters, lambda inner: (inner / "tokens").touch(), dtype)
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors", "tokens"}
    text = (folder / "config.json").read_text()
    assert (
        json.loads(text) == {"x": 1, "dtype": short_name(dtype)} and text.startswith('{\n  "x": 1') and text[-1] == "\n"
    )
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"} and set(file.keys()) == {"a", "b"}
        assert all(torch.equal(file.get_tensor(name), value.to(dtype)) for name, value in parameters.items())
    modes = {stat.S_IMODE((folder / name).stat().st_mode) for name in ("config.json", "model.safetensors")}
    assert len(modes) == 1
    with pytest.raises(UnifiedError, match="not empty"):
        write_folder(folder, {}, parameters, lambda _: None, dtype)


def test_numbers_that_a_type_cannot_hold_are_refused(tmp_path):
    large = {"fine": torch.ones(1), "large": torch.tensor([1.0, 1e6])}
    said = "large holds values that float16 cannot hold; export float32 or bfloat16"
    assert refusal(write_folder, tmp_path / "out", {}, large, lambda _: None, torch.float16) == said
    assert not (tmp_path / "out").exists()
    write_folder(tmp_path / "out", {}, large, lambda _: None, torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float64, "float16"])
def test_weights_are_of_one_of_three_types(tmp_path, dtype):
    """Rounded to integers they would be no weights."""
    said = refusal(write_folder, tmp_path / "out", {}, {"a": torch.ones(1)}, lambda _: None, dtype)
    assert said == f"dtype must be one of torch.float32, torch.float16, torch.bfloat16, got {dtype!r}"
    assert not (tmp_path / "out").exists()


# Which class


@pytest.mark.parametrize(
    ("call", "config", "changes"),
    [
        (no_bert, CONFIG, [{"positions": "rotary"}, {"token_head": "plain"}, {"sublayers": "neighbor,feed_forward"},
                           {"norm": "pre"}, {"gated": True}]),
        (no_xlnet, RELATIVE, [{"positions": "learned"}, {"token_head": "transform"}, {"norm": "pre"},
                              {"sublayers": "feed_forward,self"}, {"linear_without_bias": True}]),
        (no_modern_bert, ROTARY, [{"sublayers": "neighbor,feed_forward"}, {"positions": "learned", "token_types": 2},
                                  {"gated": False}, {"norm": "post", "embedding_norm": False},
                                  {"embedding_norm": False}, {"token_types": 2},
                                  {"norm_type": "rms"}, {"token_head": "plain"}]),
    ],
)  # fmt: skip
def test_each_setting_of_the_layers_decides_the_class(call, config, changes):
    bare = source(config)
    needs = call(bare)
    assert (
        needs is None
        if call is not no_xlnet
        else needs == bare.other_tokenizer("XLNet's tokenizer (xlnet.model or tokenizer.json)")
    )
    assert (
        call(source(replace(config, mask="left_to_right"))) == source(replace(config, mask="left_to_right")).other_mask
    )
    reasons = {call(source(replace(config, **change))) for change in changes}
    (reason,) = reasons
    assert reason.startswith(
        {no_bert: "BERT's layers", no_xlnet: "XLNet has", no_modern_bert: "ModernBERT's layers"}[call]
    )
    encoder = {name: value for name, value in bare.trained.parameters.items() if not name.startswith("heads.")}
    assert call(source(config, parameters=encoder)) == needs


def test_modern_bert_has_one_window_and_no_heads_of_ours():
    assert no_modern_bert(source(replace(ROTARY, attention_windows="0,4"))) is None
    assert no_modern_bert(source(replace(ROTARY, norm_type="layer"))) is None
    said = "ModernBERT has one window for all layers that have one; attention_windows is 3,4"
    assert no_modern_bert(source(replace(ROTARY, attention_windows="3,4"))) == said
    said = "the heads of ModernBERT's classes for tasks are others than this library's"
    assert no_modern_bert(source(ROTARY, heads={"mine": HEAD})) == said


def exporting(monkeypatch, asked: list) -> None:
    for name in formats.WRITERS:
        monkeypatch.setitem(
            formats.WRITERS, name, lambda s, d, name=name: asked.append(name) or Conversion(remarks=(name,))
        )
    monkeypatch.setattr(formats, "export_with_code", formats.WRITERS["unified"])


def test_the_format_is_the_usual_one_of_the_model_or_brings_its_code(monkeypatch, tmp_path):
    asked: list[str] = []
    exporting(monkeypatch, asked)
    assert formats.export(source(), tmp_path) == Conversion(remarks=("bert",))
    assert formats.export(source(ROTARY), tmp_path) == Conversion(remarks=("modernbert",))
    generates = (
        "the folder fills in and embeds, but does not generate, as the class of transformers cannot; the format "
        "'unified' makes one that does"
    )
    assert formats.export(source(writes="left_to_right"), tmp_path).remarks == ("bert", generates)
    tuned = "the model was fine-tuned to write, which no class of transformers does as it does"
    done = formats.export(source(lengths=PairLengths(longest_target=1)), tmp_path)
    assert done.remarks == (f"written as the format 'unified': {tuned}", "unified")
    other = source(RELATIVE)
    assert formats.export(other, tmp_path).remarks == (f"written as the format 'unified': {no_xlnet(other)}", "unified")
    assert formats.export(other, tmp_path, "bert").remarks == ("bert",)
    assert asked == ["bert", "modernbert", "bert", "unified", "unified", "bert"]
    said = "format must be one of bert, xlnet, modernbert, unified, got 'x'"
    assert refusal(formats.export, source(), tmp_path, "x") == said


# Which reader


def config_of(folder: Path, **settings) -> Path:
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def test_the_format_of_a_folder_is_seen_by_its_files(tmp_path):
    (tmp_path / "dict.txt").touch()
    assert refusal(formats.format_of, tmp_path) == (
        f"{tmp_path}: holds no config.json of transformers, no bert_config.json or xlnet_config.json of TensorFlow, "
        "and no model.pt with dict.txt of fairseq"
    )
    (tmp_path / "x.pt").touch()
    assert formats.format_of(tmp_path) == "roberta"
    (tmp_path / "dict.txt").unlink()
    assert "holds no config.json" in refusal(formats.format_of, tmp_path)
    for settings, found in (
        ({}, "bert"), ({"d_model": 8}, "xlnet"), ({"model_type": "bert", "d_model": 8}, "bert"),
        ({"model_type": "roberta"}, "roberta"), ({"model_type": "xlm-roberta"}, "roberta"),
        ({"model_type": "camembert"}, "roberta"), ({"model_type": "modernbert"}, "modernbert"),
        ({"model_type": "unified"}, "unified"), ({"model_type": "xlnet"}, "xlnet"),
    ):  # fmt: skip
        assert formats.format_of(config_of(tmp_path, **settings)) == found
    assert refusal(formats.format_of, config_of(tmp_path, model_type="gpt2")) == (
        f"{tmp_path / 'config.json'}: model_type 'gpt2'; models of type bert, roberta, xlm-roberta, camembert, xlnet, "
        "modernbert, unified are read"
    )
    for name, found in (("xlnet_config.json", "xlnet"), ("bert_config.json", "bert")):
        (tmp_path / name).touch()
        assert formats.format_of(tmp_path) == found


def test_a_folder_is_read_by_the_reader_of_its_format_and_named_in_refusals(tmp_path, monkeypatch):
    monkeypatch.setitem(formats.READERS, "xlnet", lambda *given: given)
    folder = config_of(tmp_path, d_model=8)
    assert formats.read_folder(folder) == (folder, None) and formats.read_folder(folder, "x") == (folder, "x")

    def refuses(*_):
        raise UnifiedError("no good")

    monkeypatch.setitem(formats.READERS, "xlnet", refuses)
    assert refusal(formats.read_folder, folder) == f"{folder}: no good"


def test_a_roberta_is_of_transformers_where_it_has_their_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "read_roberta", lambda *given: ("fairseq", *given))
    monkeypatch.setattr(formats, "read_transformers_roberta", lambda *given: ("transformers", *given))
    assert formats.READERS["roberta"](tmp_path, "x") == ("fairseq", tmp_path, "x")
    assert formats.READERS["roberta"](config_of(tmp_path), None) == ("transformers", tmp_path, None)


@pytest.mark.parametrize(("room", "name"), [(0, "config.json"), (100, "model.safetensors")])
def test_a_full_disk_names_the_file_that_cannot_be_written(tmp_path, room, name):
    with pytest.raises(OSError, match="File too large") as raised, full_disk(room):
        write_folder(tmp_path / "out", {"a": 1}, {"weight": torch.zeros(1000)}, lambda folder: None, torch.float32)
    path = str(tmp_path / "out" / name)
    assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, path) and not list(tmp_path.iterdir())
    assert str(raised.value) == f"[Errno {errno.EFBIG}] File too large: '{path}'"


def test_an_error_of_safetensors_itself_keeps_its_words(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise SafetensorError("a bug")

    monkeypatch.setattr(export, "save_file", fails)
    with pytest.raises(SafetensorError, match="^a bug$"):
        write_folder(tmp_path / "out", {"a": 1}, {"weight": torch.zeros(9)}, lambda folder: None, torch.float32)
    assert not list(tmp_path.iterdir())
