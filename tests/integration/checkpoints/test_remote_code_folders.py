"""Folders that bring their code along: opened where this library is not, and read again without running it."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import warnings
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import unified
from tests.support import prepared_python, task_folders
from tests.support.exported_models import BODIES, exported, language_model
from tests.support.published_models import published
from tests.unit.tokenization.test_anna_tokenizer import PIECES
from unified import UnifiedLM
from unified.cli import main
from unified.conversions import modeling
from unified.conversions.modeling.configuration_unified import UnifiedConfig
from unified.conversions.modeling.modeling_unified import UnifiedForMaskedLM
from unified.conversions.remote_code import read_with_code
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.model import TransformerConfig
from unified.tokenization import Tokenizer, ordinary_symbols
from unified.tokenization.anna import AnnaTokenizer
from unified.tokenization.sentencepiece_tokenizer import train_sentencepiece

CODE = Path(modeling.__file__).parent
TEXTS = ["w1 w2 w3 w4", "w9"]
#: Opens a folder by the classes that its config.json names, and prints what it writes as JSON.
PROGRAM = """
import json, sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "unified":
            raise ImportError("the library is not installed here")

sys.meta_path.insert(0, Forbidden())
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer
folder, texts = sys.argv[1], json.loads(sys.argv[2])
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
given = tokenizer(texts, padding=True, return_tensors="pt")
models = [one.from_pretrained(folder, trust_remote_code=True).eval()
          for one in (AutoModelForCausalLM, AutoModelForMaskedLM, AutoModel)]
written = [tokenizer.batch_decode(model.generate(**given, beam=3), skip_special_tokens=True) for model in models[:2]]
with torch.no_grad():
    states = [model(**given, output_hidden_states=True).hidden_states[-1] for model in models]
assert torch.equal(states[0], states[1]) and torch.equal(states[0], states[2])
try:
    import unified
except ImportError:
    classes = [type(model).__name__ for model in models]
    print(json.dumps({"written": written, "first": states[0][0, 0].tolist(), "classes": classes}))
"""


def test_the_code_imports_no_other_package_than_transformers_needs():
    files = {path.stem: path for path in CODE.glob("*_unified.py")}
    assert {"configuration_unified", "modeling_unified"} <= files.keys()
    own, outside = {}, set()
    for name, path in files.items():
        own[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                outside |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                (own[name] if node.level else outside).add(str(node.module).partition(".")[0])
    standard = {"__future__", "collections", "dataclasses", "math", "numbers", "typing", "warnings"}
    assert outside == {"numpy", "torch", "transformers"} | standard  # transformers needs numpy itself
    assert set().union(*own.values()) <= files.keys()
    # Earlier releases of transformers copy what these two import, and not what that imports in turn.
    assert own["modeling_unified"] == files.keys() - {"modeling_unified"} and not own["configuration_unified"]


def test_the_code_has_a_setting_for_every_setting_of_a_model():
    known = set(inspect.signature(UnifiedConfig.__init__).parameters)
    wanted = {field.name for field in fields(TransformerConfig)} - {"attention_backend", "lstm"}
    assert wanted <= known


@pytest.mark.slow
@torch.no_grad()
def test_a_folder_is_opened_where_the_library_is_not(tmp_path):
    lm = language_model("cloze", PairLengths(longest_target=6), norm="pre", sublayers="neighbor,self,feed_forward")
    lm.save_pretrained(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "unified"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [prepared_python.FRESH, "-c", PROGRAM, str(tmp_path / "out"), json.dumps(TEXTS)],
        capture_output=True, text=True, cwd=tmp_path, env=environment | {"HF_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["classes"] == ["UnifiedForMaskedLM", "UnifiedForMaskedLM", "UnifiedModel"]
    assert found["written"] == [lm.generate(TEXTS, beam=3)] * 2
    ids = [0, *lm.encode(TEXTS[0]), 2]
    indices = torch.arange(len(ids))[None]
    wanted = lm.model.transformer(
        torch.tensor([ids]), indices, indices * 0, unified.masks.batch([unified.masks.bidirectional(len(ids))])
    )
    torch.testing.assert_close(torch.tensor(found["first"]), wanted[0, 0], atol=1e-5, rtol=1e-5)


def test_sizes_have_the_names_of_other_configurations_too():
    config = UnifiedConfig(
        vocabulary_size=11, layers=3, width=16, heads=4, feed_forward=17, max_positions=18, token_types=5,
        norm_epsilon=1e-6,
    )  # fmt: skip
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
             "max_position_embeddings", "type_vocab_size", "layer_norm_eps")  # fmt: skip
    assert [getattr(config, name) for name in names] == [11, 16, 3, 4, 17, 18, 5, 1e-6]
    assert all(name in transformers.BertConfig().to_dict() for name in names)


def test_whoever_may_read_the_configuration_may_read_the_parameters(tmp_path):
    language_model().save_pretrained(tmp_path / "out")
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert len(modes) == 1


def test_pipelines_fill_masks(tmp_path):
    lm = language_model(**BODIES["pre-norm"])
    lm.save_pretrained(tmp_path / "out")
    fill = transformers.pipeline("fill-mask", str(tmp_path / "out"), trust_remote_code=True, top_k=5)
    wanted = dict(lm.fill_mask("w1 w2 <mask> w9", top=5)[0])
    found = {one["token_str"].replace("[SEP]", "</s>"): one["score"] for one in fill("w1 w2 [MASK] w9")}
    assert found == pytest.approx(wanted, abs=1e-5)


def test_the_transformer_alone_is_loaded_without_a_report_of_heads(tmp_path):
    language_model(**BODIES["pre-norm"]).save_pretrained(tmp_path / "out")
    options = {"trust_remote_code": True, "output_loading_info": True}
    _, info = transformers.AutoModel.from_pretrained(tmp_path / "out", **options)
    assert not info["unexpected_keys"] and not info["missing_keys"]


# The way back


def same(one: UnifiedLM, other: UnifiedLM) -> None:
    """Two models are equal, bit by bit, and so is everything that a user asks them by."""
    assert asdict(one.model.config) == asdict(other.model.config)
    assert one.vocabulary.symbols == other.vocabulary.symbols
    assert (one.writes, one.lengths) == (other.writes, other.lengths)
    assert one.untrained == other.untrained
    before, after = one.model.state_dict(), other.model.state_dict()
    assert before.keys() == after.keys()
    assert {name for name, value in before.items() if not torch.equal(value, after[name])} <= one.untrained


@pytest.mark.parametrize("body", BODIES)
def test_a_round_trip_changes_no_bit(tmp_path, body):
    heads = {} if body == "relative" else {"boundary_offsets": 4, "sentence_head": True}
    lm = language_model("permutation", PairLengths(3, 4, 5), mask="left_to_right", **BODIES[body], **heads)
    lm.writes = "permutation" if lm.model.config.relative else "next"
    lm.model.symbols.scored[20:30] = 0
    lm.save_pretrained(tmp_path / "out")
    again = unified.load(tmp_path / "out")
    same(lm, again)
    assert again.encode("w1 w2 w0 other") == lm.encode("w1 w2 w0 other")


def test_code_in_a_folder_is_not_run(tmp_path):
    lm = language_model()
    lm.save_pretrained(tmp_path / "out", "unified")
    for path in (tmp_path / "out").glob("*.py"):
        path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    same(lm, unified.load(tmp_path / "out"))
    assert main(["convert", str(tmp_path / "out"), str(tmp_path / "ours")]) == 0
    same(lm, unified.load(tmp_path / "ours"))
    assert not (tmp_path / "ran").exists()


@torch.no_grad()
def test_what_transformers_saves_again_is_read_again(tmp_path):
    lm = language_model(**BODIES["pre-norm"])
    one = exported(lm, tmp_path / "out")
    one.theirs.transformer.layers[0].attention.norm.weight += 1
    one.theirs.save_pretrained(tmp_path / "tuned")
    transformers.AutoTokenizer.from_pretrained(one.folder, trust_remote_code=True).save_pretrained(tmp_path / "tuned")
    again = unified.load(tmp_path / "tuned")
    weight = "transformer.layers.0.attention.norm.weight"
    assert torch.equal(again.model.state_dict()[weight], lm.model.state_dict()[weight] + 1)
    lm.model.transformer.layers[0].attention.norm.weight += 1
    # Without the dictionary of the library ids differ, and what is written does not.
    assert sorted(again.vocabulary.symbols) == sorted({*lm.vocabulary.symbols, "w0"})
    assert again.generate(TEXTS, beam=2) == lm.generate(TEXTS, beam=2)


@pytest.mark.parametrize("damage", ["rows", "name", "type"])
def test_a_folder_that_does_not_fit_together_is_refused(tmp_path, damage):
    language_model().save_pretrained(tmp_path / "out", "unified")
    path, config = tmp_path / "out" / "model.safetensors", tmp_path / "out" / "config.json"
    state, settings = load_file(path), json.loads(config.read_text())
    if damage == "rows":
        state["heads.token.bias"] = state["heads.token.bias"][1:].clone()
        message = r"out: 136 symbols in its tokenizer and dictionary, and tables of 135, 136 rows"
    elif damage == "name":
        state["transformer.layers.0.other"] = torch.zeros(1)
        message = "unknown: transformer.layers.0.other"
    else:
        settings["model_type"] = "bert"
        message = "model_type 'bert'; --from unified reads"
    save_file(state, path)
    config.write_text(json.dumps(settings))
    with pytest.raises(UnifiedError, match=message):
        read_with_code(tmp_path / "out")


# Tokenizers


def anna() -> AnnaTokenizer:
    return AnnaTokenizer(PIECES, ["covid-19", "u.s."], "a test")


def sentences() -> Tokenizer:
    rng = np.random.default_rng(0)
    return train_sentencepiece([" ".join(rng.choice(["kalo", "mitu", "nera"], 6)) for _ in range(99)], "char")


def lm_with(tokenizer: Tokenizer | None, folder: Path, **changes) -> UnifiedLM:
    """A model of its pieces, in a folder of its own; without a tokenizer of some words."""
    known = Vocabulary(list(task_folders.WORDS) if tokenizer is None else ordinary_symbols(tokenizer))
    lm = language_model(known=known, **changes)
    return UnifiedLM(lm.model, lm.vocabulary, tokenizer, "left_to_right", folder)


@pytest.mark.parametrize("relative", [False, True])
def test_sentencepiece_and_symbols_leave_with_a_tokenizer(tmp_path, relative):
    shape = {"positions": "relative"} if relative else {}
    folder = task_folders.language_model(tmp_path / "words", **shape)
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer_config.json").unlink()
    without = UnifiedLM.from_pretrained(folder)
    for number, (lm, text) in enumerate([
        (lm_with(sentences(), tmp_path, **shape), "kalo nera, mitu"), (without, "w1 w2 w29 none")
    ]):  # fmt: skip
        lm.save_pretrained(tmp_path / f"out{number}", "unified")
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / f"out{number}", trust_remote_code=True)
        again = unified.load(tmp_path / f"out{number}")
        same(lm, again)
        assert again.encode(text) == lm.encode(text)
        found = theirs.convert_ids_to_tokens(theirs(text)["input_ids"])
        around = ([], ["</s>", "<s>"]) if relative else (["<s>"], ["</s>"])
        assert found == [*around[0], *lm.pieces(lm.encode(text)), *around[1]]


def test_annas_tokenizer_leaves_for_both_libraries(tmp_path, capsys):
    lm = lm_with(anna(), tmp_path, sublayers="neighbor,self,feed_forward")
    lm.save_pretrained(tmp_path / "out")
    again = unified.load(tmp_path / "out")
    same(lm, again)
    assert again.encode("the covid-19 u.s.") == lm.encode("the covid-19 u.s.")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", trust_remote_code=True)
    found = theirs.convert_ids_to_tokens(theirs("the (covid-19), u.s.?")["input_ids"])
    assert found == ["[CLS]", *again.pieces(again.encode("the (covid-19), u.s.?")), "[SEP]"]
    assert {"covid-19", "u.s."} <= set(found)
    assert main(["convert", str(tmp_path / "out"), str(tmp_path / "ours")]) == 0
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "back")]) == 0
    assert "anna.json" not in capsys.readouterr().out
    assert (tmp_path / "back" / "model.safetensors").read_bytes() == (
        tmp_path / "out" / "model.safetensors"
    ).read_bytes()
    other = lm_with(AnnaTokenizer(PIECES, ["(c)a"], "a test"), tmp_path, sublayers="neighbor,self,feed_forward")
    other.save(tmp_path / "marks")
    assert main(["export", str(tmp_path / "marks"), str(tmp_path / "only-ours")]) == 0
    said = capsys.readouterr().out
    assert "transformers cannot read its tokenizer, anna.json, unified.load does: tokenizer.json cannot say" in said
    assert not (tmp_path / "only-ours" / "tokenizer.json").exists()
    same(other, unified.load(tmp_path / "only-ours"))


@torch.no_grad()
def test_an_xlnet_leaves_with_its_streams(tmp_path):
    lm = published("xlnet", tmp_path).lm.to("cpu")
    lm.model.float()
    lm.save_pretrained(tmp_path / "out", "unified")
    same(lm, unified.load(tmp_path / "out"))
    theirs = UnifiedForMaskedLM.from_pretrained(tmp_path / "out")
    pieces = lm.tokenizer.native_symbols()
    ids = torch.tensor([[pieces.index(lm.vocabulary.symbols[i]) for i in lm.encode("the cat sat")]])
    written = theirs.generate(ids, beam=2, max_length=6)[0]
    assert lm.tokenizer.decode([pieces[i] for i in written]) == lm.generate(["the cat sat"], beam=2, max_length=6)[0]


# Which format


def test_the_format_is_the_first_that_gives_the_same_states(tmp_path, capsys):
    def model_type(name: str, *words: str, **changes) -> str:
        folder = task_folders.language_model(tmp_path / name, writes="cloze", **{"token_types": 6} | changes)
        capsys.readouterr()
        assert main(["export", *words, str(folder), str(tmp_path / f"{name}-out")]) == 0
        return json.loads((tmp_path / f"{name}-out" / "config.json").read_text())["model_type"]

    assert model_type("one") == "bert"
    first, second = capsys.readouterr().out.splitlines()
    assert (
        "the folder fills in and embeds, but does not generate" in first
        and "the format 'unified' makes one that does" in first
        and second == f"wrote {tmp_path / 'one-out'}"
    )
    assert model_type("two", "--format", "unified") == "unified"
    assert "trust_remote_code=True)" in capsys.readouterr().out
    assert model_type("three", norm="pre") == "unified"
    assert "written as the format 'unified': BERT's layers are self-attention" in capsys.readouterr().out
    assert model_type("four", mask="left_to_right") == "unified"
    assert "written as the format 'unified': the model reads texts under the mask" in capsys.readouterr().out
    assert main(["export", "--format", "bert", str(tmp_path / "three"), str(tmp_path / "no")]) == 2
    assert "BERT's layers are" in capsys.readouterr().err and not (tmp_path / "no").exists()
    with pytest.raises(UnifiedError, match="format must be one of bert, xlnet, modernbert, unified, got 'gpt'"):
        UnifiedLM.from_pretrained(tmp_path / "one").save_pretrained(tmp_path / "no", format="gpt")


def test_sources_are_cut_with_a_warning(tmp_path):
    lm = language_model("cloze", PairLengths(max_source=3, longest_target=4))
    one = exported(lm, tmp_path / "out")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        one.theirs.generate(one.ids[torch.tensor([lm.encode("w1 w2 w3 w4")])], beam=1)
    assert [str(one.message) for one in said] == ["1 of 1 texts have more than 3 tokens; the rest is not read"]


@pytest.mark.parametrize(("writes", "best"), [("nothing", "AutoModelForMaskedLM"), ("cloze", "AutoModelForCausalLM")])
def test_the_advice_names_the_class_with_most_heads(tmp_path, capsys, writes, best):
    model = task_folders.language_model(tmp_path / "model", writes=writes, token_types=6)
    assert main(["export", str(model), str(tmp_path / "out"), "--format", "unified"]) == 0
    said = capsys.readouterr().out
    assert (
        f"it loads with its own code: {best}.from_pretrained({str(tmp_path / 'out')!r}, trust_remote_code=True)" in said
    )
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == ["UnifiedForMaskedLM"]
