"""Folders with the code of their model: every setting that is written, the classes that are named, and the way back."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.support.published_models import xlnet_pieces
from tests.support.task_folders import WORDS, tokenizer
from unified.checkpoints.conversion import Conversion
from unified.checkpoints.trained import Trained
from unified.conversions import modeling
from unified.conversions.export import Source
from unified.conversions.modeling.modeling_unified import UnifiedForMaskedLM
from unified.conversions.remote_code import export_with_code, read_with_code
from unified.conversions.tokenizers import MARKS
from unified.data.vocabulary import SENTINELS, Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import ordinary_symbols
from unified.tokenization.anna import AnnaTokenizer
from unified.tokenization.sentencepiece_tokenizer import train_sentencepiece
from unified.tokenization.xlnet import XLNetTokenizer

#: Another order than that of the tokenizer, a word more, and one less.
KNOWN = Vocabulary([*WORDS[:0:-1], "more"])
NATIVE = tokenizer().native_symbols()
SYMBOLS = [*NATIVE, *(symbol for symbol in KNOWN.symbols if symbol not in NATIVE)]
FOLDED = train_sentencepiece(["a bad cat sat"] * 9, "char", lowercase=True)
#: No setting is the default of this library, and no two numbers are the same.
SHAPE = {
    "layers": 3, "width": 8, "heads": 4, "feed_forward": 12, "gated": True, "sublayers": "neighbor,self,feed_forward",
    "mask": "left_to_right", "pair_separators": 2, "attention_windows": "0,4", "clip_distance": 5, "max_positions": 20,
    "token_types": 7, "boundary_offsets": 6, "sentence_head": True, "activation": "silu", "linear_without_bias": True,
    "dropout": 0.25, "inner_dropout": 0.5, "attention_dropout": 0.125, "norm": "pre", "norm_type": "rms",
    "embedding_norm": True, "norm_epsilon": 1e-5, "initializer_range": 0.0625,
}  # fmt: skip
USUAL = {"positions": "learned", "rotary_theta": 10000.0, "local_rotary_theta": 0.0, "attn_type": "bi", "clamp_len": 0,
         "token_head": "transform"}  # fmt: skip
LENGTHS = PairLengths(5, 4, 3)
IDS = {"cls_token_id": 2, "pad_token_id": 0, "sep_token_id": 3, "unk_token_id": 1, "mask_token_id": 4}
TABLE, SCORED = "transformer.embeddings.tokens.weight", "transformer.embeddings.tokens.scored"
RECORD = {"head": "classification", "settings": {"labels": ("no", "yes"), "dropout": 0.375}}


def source(writes="nothing", heads=None, known=KNOWN, own=None, lengths=LENGTHS, dtype=torch.float32, **changes):
    """A model with random parameters; ``heads`` are the records of its tasks, each with a pooler and two scores."""
    torch.manual_seed(8)
    config = TransformerConfig(len(known), **{**SHAPE, **changes})
    state = UnifiedModel.for_language(config).state_dict()
    parameters = {n: v if n.endswith(".scored") else torch.randn(v.shape) for n, v in state.items()}
    parameters[SCORED][7] = 0.0
    for name in heads or {}:
        parameters |= {f"heads.{name}.pooler.weight": torch.randn(8, 8), f"heads.{name}.pooler.bias": torch.randn(8)}
        parameters |= {f"heads.{name}.output.weight": torch.randn(2, 8), f"heads.{name}.output.bias": torch.randn(2)}
    trained = Trained(config, writes, parameters, known, heads or {}, 17 if heads else None, lengths)
    return Source("the model", trained, tokenizer() if own is None else own, dtype)


def of_task(**changes) -> Source:
    """A model that was fine-tuned for one task beside masked words."""
    own = without(source(heads={"mine": RECORD}, **changes), "heads.boundary.", "heads.extractive.")
    assert (own.trained.config.boundary_offsets, own.config.boundary_offsets) == (6, 0)
    return own


def without(own: Source, *beginnings: str, **more: torch.Tensor) -> Source:
    """The model without the parameters whose names begin so, and with ``more``."""
    kept = {name: value for name, value in own.trained.parameters.items() if not name.startswith(beginnings)}
    return replace(own, trained=replace(own.trained, parameters=kept | more))


def settings_of(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def change(folder: Path, *removed: str, **settings) -> None:
    kept = {name: value for name, value in (settings_of(folder) | settings).items() if name not in removed}
    (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


def advice(name: str, folder: Path) -> str:
    return f"it loads with its own code: {name}.from_pretrained({str(folder)!r}, trust_remote_code=True)"


def auto_map(**classes: str) -> dict[str, str]:
    named = {name: f"modeling_unified.{own}" for name, own in classes.items()}
    return {"AutoConfig": "configuration_unified.UnifiedConfig", "AutoModel": "modeling_unified.UnifiedModel", **named}


# Out


def test_rows_follow_the_tokenizer_and_all_other_parameters_stay(tmp_path):
    own = source("cloze", dtype=torch.bfloat16)
    export_with_code(own, tmp_path / "out")
    found, before = load_file(tmp_path / "out" / "model.safetensors"), own.trained.parameters
    assert found.keys() == before.keys() and settings_of(tmp_path / "out")["dtype"] == "bfloat16"
    rows = [KNOWN.index(symbol) for symbol in SYMBOLS]
    for name, value in before.items():
        wanted = value[rows] if len(value) == len(KNOWN) else value
        if name == SCORED:
            wanted = wanted * torch.tensor([float(symbol in set(KNOWN.symbols)) for symbol in SYMBOLS])
        assert torch.equal(found[name], wanted.bfloat16()), name
    assert sum(len(value) == len(KNOWN) for value in before.values()) == 4  # embeddings, scored, and two biases


def test_all_settings_and_files_of_a_language_model_are_written(tmp_path):
    folder = tmp_path / "out"
    told = export_with_code(source("cloze"), folder)
    assert settings_of(folder) == {
        "model_type": "unified", "vocabulary_size": len(SYMBOLS), **SHAPE, **USUAL, **IDS,
        "architectures": ["UnifiedForMaskedLM"],
        "auto_map": auto_map(AutoModelForMaskedLM="UnifiedForMaskedLM", AutoModelForCausalLM="UnifiedForMaskedLM"),
        "prediction_heads": ["token", "next_sentence", "boundary", "extractive"], "decoding": "cloze",
        "pair_lengths": {"max_source": 5, "max_target": 4, "longest_target": 3}, "dtype": "float32",
    }  # fmt: skip
    assert told == Conversion(remarks=(advice("AutoModelForCausalLM", folder),))
    code = {path.name: path.read_text() for path in Path(modeling.__file__).parent.glob("*_unified.py")}
    assert len(code) == 11 and {name: (folder / name).read_text() for name in code} == code
    more = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "unified_dict.txt"}
    assert {path.name for path in folder.iterdir()} == code.keys() | more
    assert Vocabulary.load(folder / "unified_dict.txt").symbols == KNOWN.symbols


@pytest.mark.parametrize(
    ("writes", "lacking", "heads", "classes", "best"),
    [
        ("nothing", (), ["token", "next_sentence"], {"AutoModelForMaskedLM": "UnifiedForMaskedLM"},
         "AutoModelForMaskedLM"),
        ("next", ("heads.next_sentence.",), ["token"], {"AutoModelForMaskedLM": "UnifiedForMaskedLM",
         "AutoModelForCausalLM": "UnifiedForMaskedLM"}, "AutoModelForCausalLM"),
        ("nothing", ("heads.next_sentence.classifier.",), ["token"], {"AutoModelForMaskedLM": "UnifiedForMaskedLM"},
         "AutoModelForMaskedLM"),
        ("nothing", ("heads.next_sentence.pooler.",), ["token"], {"AutoModelForMaskedLM": "UnifiedForMaskedLM"},
         "AutoModelForMaskedLM"),
        ("nothing", ("heads.token.",), ["next_sentence"], {}, "AutoModel"),
        ("nothing", ("heads.",), [], {}, "AutoModel"),
    ],
)  # fmt: skip
def test_the_classes_are_those_of_the_heads_that_are_there(tmp_path, writes, lacking, heads, classes, best):
    own = without(source(writes, boundary_offsets=0, sentence_head=False), *lacking) if lacking else source(
        writes, boundary_offsets=0, sentence_head=False
    )  # fmt: skip
    told = export_with_code(own, tmp_path / "out")
    settings = settings_of(tmp_path / "out")
    assert settings["prediction_heads"] == heads and settings["auto_map"] == auto_map(**classes)
    assert settings["architectures"] == ["UnifiedForMaskedLM" if classes else "UnifiedModel"]
    assert settings["token_head"] == ("transform" if classes else "none")
    assert told == Conversion(remarks=(advice(best, tmp_path / "out"),))
    kept = load_file(tmp_path / "out" / "model.safetensors")
    assert kept.keys() == own.trained.parameters.keys()  # also the half of a head


def test_what_belongs_to_no_language_model_is_left_out_by_name(tmp_path):
    own = without(source(), **{"heads.topic.x": torch.ones(2), "lstm.y": torch.ones(2)})
    own = replace(own, trained=replace(own.trained, config=replace(own.trained.config, lstm=1)))
    told = export_with_code(own, tmp_path / "out")
    assert told.left_out == ("heads.topic.x", "lstm.y")
    assert not {"heads.topic.x", "lstm.y"} & load_file(tmp_path / "out" / "model.safetensors").keys()
    assert {"lstm", "attention_backend"}.isdisjoint(settings_of(tmp_path / "out"))


@pytest.mark.parametrize("word", ["ab.c", ".a"])
def test_a_tokenizer_that_transformers_cannot_read_is_named(tmp_path, word):
    own = AnnaTokenizer(["[UNK]", "[CLS]", "[SEP]", *"abc.", "##a", "##b", "##c"], [word], "all")
    told = export_with_code(source(known=Vocabulary(ordinary_symbols(own)), own=own), tmp_path / "out")
    said = (
        "transformers cannot read its tokenizer, anna.json, unified.load does: tokenizer.json cannot say that the word "
        "'.a', which begins with a mark, stays whole"
    )
    assert told.remarks == (advice("AutoModelForMaskedLM", tmp_path / "out"), *([said] if word == ".a" else []))
    assert (tmp_path / "out" / "anna.json").is_file() and read_with_code(tmp_path / "out").tokenizer.words == [word]


def test_how_the_files_of_a_tokenizer_divide_texts_in_another_way_is_told(tmp_path):
    told = export_with_code(source(known=Vocabulary(ordinary_symbols(FOLDED)), own=FOLDED), tmp_path / "out")
    assert told == Conversion(remarks=(advice("AutoModelForMaskedLM", tmp_path / "out"), MARKS))


def test_a_model_of_one_task_has_the_class_of_its_head(tmp_path):
    own = of_task(dtype=torch.bfloat16)
    told = export_with_code(own, tmp_path / "out")
    assert settings_of(tmp_path / "out") == {
        "model_type": "unified", "vocabulary_size": len(SYMBOLS), **SHAPE, **USUAL, **IDS, "boundary_offsets": 0,
        "sentence_head": False, "architectures": ["UnifiedForSequenceClassification"],
        "auto_map": auto_map(AutoModelForSequenceClassification="UnifiedForSequenceClassification"),
        "token_head": "none", "prediction_heads": [], "task_head": "mine", "id2label": {"0": "no", "1": "yes"},
        "label2id": {"no": 0, "yes": 1}, "problem_type": "single_label_classification", "classifier_dropout": 0.375,
        "unified": {"head": RECORD | {"settings": {"labels": ["no", "yes"], "dropout": 0.375}}, "longest": 17},
        "dtype": "bfloat16",
    }  # fmt: skip
    names = own.trained.parameters
    assert told.remarks == (advice("AutoModelForSequenceClassification", tmp_path / "out"),)
    assert told.left_out == tuple(n for n in names if not n.startswith(("transformer.", "heads.mine.")))
    assert len(told.left_out) == 7
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found.keys() == names.keys() - set(told.left_out)


def test_a_model_of_several_tasks_leaves_as_a_language_model(tmp_path):
    told = export_with_code(source("next", heads={"one": RECORD, "two": RECORD}), tmp_path / "out")
    assert {name.split(".")[1] for name in told.left_out} == {"one", "two"} and len(told.left_out) == 8
    assert settings_of(tmp_path / "out")["decoding"] == "next"


def test_the_folder_is_opened_by_its_own_classes(tmp_path):
    own = source("cloze")
    export_with_code(own, tmp_path / "out")
    model, report = UnifiedForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert model.config.decoding == "cloze" and model.config.pair_lengths["longest_target"] == 3
    assert {name: model.config.to_dict()[name] for name in SHAPE} == SHAPE
    tokens = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")("w1 w2")["input_ids"]
    assert [SYMBOLS[i] for i in tokens] == ["<s>", "w1", "w2", "</s>"]


# And back


def test_a_language_model_comes_back_bit_by_bit(tmp_path):
    own = source("cloze")
    export_with_code(own, tmp_path / "out")
    read = read_with_code(str(tmp_path / "out"))
    assert asdict(read.trained.config) == asdict(own.trained.config)
    assert read.trained.vocabulary.symbols == KNOWN.symbols and read.tokenizer.native_symbols() == SYMBOLS
    assert (read.trained.writes, read.trained.lengths) == ("cloze", LENGTHS)
    assert (read.trained.heads, read.trained.longest, read.told) == ({}, None, Conversion())
    found, before = read.trained.parameters, own.trained.parameters
    assert found.keys() == before.keys() and all(torch.equal(found[name], value) for name, value in before.items())


def test_half_precision_comes_back_as_single_and_what_is_lacking_is_new(tmp_path):
    export_with_code(without(source("next", dtype=torch.float16), "heads.next_sentence."), tmp_path / "out")
    read = read_with_code(tmp_path / "out")
    assert {value.dtype for value in read.trained.parameters.values()} == {torch.float32}
    assert {name.split(".")[1] for name in read.told.new} == {"next_sentence"} and len(read.told.new) == 4
    assert read.told.left_out == read.told.remarks == ()


def test_a_model_of_one_task_comes_back_with_its_record(tmp_path):
    own = of_task()
    export_with_code(own, tmp_path / "out")
    read = read_with_code(tmp_path / "out")
    assert read.trained.heads == {"mine": RECORD} and read.trained.longest == 17
    assert (read.trained.writes, read.trained.lengths, read.told) == ("nothing", PairLengths(), Conversion())
    assert read.trained.config == replace(own.config, token_head="none")
    kept = ("transformer.", "heads.mine.")
    before = {name: value for name, value in own.trained.parameters.items() if name.startswith(kept)}
    found = read.trained.parameters
    assert found.keys() == before.keys() and all(torch.equal(found[name], value) for name, value in before.items())


@pytest.mark.parametrize(
    ("noted", "asked", "writes", "remarks"),
    [
        ("cloze", None, "cloze", ()), ("cloze", "next", "next", ("it writes by the scheme 'next'",)),
        ("cloze", "nothing", "nothing", ()), ("left_to_right", None, "left_to_right", ()), (None, None, "nothing", ()),
        ("nothing", "cloze", "cloze", ("it writes by the scheme 'cloze'",)),
    ],
)  # fmt: skip
def test_a_model_writes_as_asked_or_as_noted(tmp_path, noted, asked, writes, remarks):
    export_with_code(source(), tmp_path / "out")
    change(tmp_path / "out", *(["decoding"] if noted is None else []), decoding=noted, task_head=None)
    read = read_with_code(tmp_path / "out", asked)
    assert (read.trained.writes, read.told.remarks) == (writes, remarks)


def test_settings_that_an_older_folder_lacks_are_the_usual_ones(tmp_path):
    own = source(boundary_offsets=0, sentence_head=False, clip_distance=16)
    export_with_code(own, tmp_path / "out")
    change(tmp_path / "out", "clip_distance", "boundary_offsets", "sentence_head", "clamp_len", "pair_lengths", more=1)
    read = read_with_code(tmp_path / "out")
    assert asdict(read.trained.config) == asdict(own.trained.config) and read.trained.lengths == PairLengths()
    change(tmp_path / "out", "width")
    assert "do not fit the model" in refusal(read_with_code, tmp_path / "out")


def test_without_a_dictionary_of_the_library_the_tokenizers_symbols_are_the_dictionary(tmp_path):
    own = source()
    export_with_code(own, tmp_path / "out")
    (tmp_path / "out" / "unified_dict.txt").unlink()
    read = read_with_code(tmp_path / "out")
    symbols = read.trained.vocabulary.symbols
    assert symbols == [*KNOWN.symbols[:4], *WORDS, "more", *KNOWN.symbols[-101:]]
    for name in (TABLE, "heads.token.bias"):
        found, before = read.trained.parameters[name], own.trained.parameters[name]
        assert torch.equal(found, before[[KNOWN.index(symbol) for symbol in symbols]])
    assert read.trained.parameters[SCORED][symbols.index("w0")] == 0.0  # the unknown symbol's row, never predicted


@pytest.mark.parametrize("family", ["xlnet", "words"])
def test_a_tokenizer_is_read_from_its_own_file(tmp_path, family):
    own = XLNetTokenizer(xlnet_pieces())
    known = Vocabulary([*ordinary_symbols(own), "more"])
    model = source(known=known, own=own) if family == "xlnet" else replace(source(), tokenizer=None)
    export_with_code(model, tmp_path / "out")
    read = read_with_code(tmp_path / "out")
    assert asdict(read.trained.config) == asdict(model.trained.config)
    if family == "xlnet":
        assert read.tokenizer.native_symbols() == own.native_symbols() and not (tmp_path / "out" / "vocab.txt").exists()
    else:
        assert read.tokenizer.native_symbols() == KNOWN.symbols and read.tokenizer.encode("w3 more") == ["w3", "more"]
    found, before = read.trained.parameters, model.trained.parameters
    assert all(torch.equal(found[name], value) for name, value in before.items())


def test_what_does_not_fit_together_is_refused(tmp_path):
    folder = tmp_path / "out"
    export_with_code(of_task(), folder)
    whole, path = settings_of(folder), folder / "model.safetensors"
    said = "config.json: model_type 'bert'; --from unified reads models of type 'unified'"
    change(folder, model_type="bert")
    assert refusal(read_with_code, folder) == said
    said = f"{folder}: task_head 'mine' in config.json, but its parameters or settings are missing"
    for own in (None, {}, {"longest": 17}):
        change(folder, model_type="unified", unified=own)
        assert refusal(read_with_code, folder) == said
    change(folder, unified=whole["unified"])
    assert read_with_code(folder).trained.heads == {"mine": RECORD}
    state = load_file(path)
    save_file({name: value for name, value in state.items() if not name.startswith("heads.mine.")}, path)
    assert refusal(read_with_code, folder) == said
    size = len(SYMBOLS)
    save_file(state | {SCORED: state[SCORED][1:].clone()}, path)
    said = f"{folder}: {size} symbols in its tokenizer and dictionary, and tables of {size - 1}, {size} rows"
    assert refusal(read_with_code, folder) == said
    save_file({"x": torch.ones(1)}, path)
    said = f"{folder}: {size} symbols in its tokenizer and dictionary, and tables of no rows"
    assert refusal(read_with_code, folder) == said
    assert SENTINELS[-1] == SYMBOLS[-1]
