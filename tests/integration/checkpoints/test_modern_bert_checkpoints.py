"""ModernBERT of ``transformers`` in and out: the same states and scores, both forms of its settings, refusals."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.support.modern_models import MODERN_BERT, modern_bert
from tests.support.task_folders import WORDS, tokenizer, vocabulary
from unified import UnifiedLM, masks
from unified.checkpoints.trained import Trained, write
from unified.cli import main
from unified.conversions.formats import read_folder
from unified.conversions.modern_bert import modern_bert_config
from unified.errors import UnifiedError
from unified.model import UnifiedModel

SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
TEXTS = ["The cat sat on the mat.", "Naïve cats, 17 of them", "a" * 30]
#: Settings as folders of the hub have them, before transformers 5.
OLD = {"global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "local_rope_theta": 10000.0}


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory) -> transformers.PreTrainedTokenizerFast:
    """A small byte-level BPE with ModernBERT's special tokens."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS * 4, trainers.BpeTrainer(vocab_size=300, special_tokens=[*SPECIAL], initial_alphabet=alphabet)
    )
    names = ("unk_token", "cls_token", "sep_token", "pad_token", "mask_token")
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(path), **dict(zip(names, SPECIAL, strict=True)), model_input_names=["input_ids"]
    )


def saved(folder: Path, byte_level, kind=None, **changes):
    """A folder of ``transformers`` with wide random weights."""
    ids = dict(pad_token_id=3, bos_token_id=1, cls_token_id=1, eos_token_id=2, sep_token_id=2)
    model = modern_bert(vocab_size=len(byte_level), **ids, **changes)
    if kind is not None:
        model = getattr(transformers, kind)(model.config).eval()
        for parameter in model.parameters():
            parameter.data.normal_(std=0.3)
    model.save_pretrained(folder)
    byte_level.save_pretrained(folder)
    return model


def changed(folder: Path, without: tuple[str, ...] = (), **settings) -> None:
    """Other settings in a folder's ``config.json``."""
    path = folder / "config.json"
    content = {name: value for name, value in json.loads(path.read_text()).items() if name not in without}
    path.write_text(json.dumps(content | settings))


def scores(lm: UnifiedLM, text: str) -> torch.Tensor:
    """Logits (T, V) of our model for CLS text SEP."""
    special = lm.vocabulary.special
    tokens = torch.tensor([[special.begin, *lm.encode(text), special.separator]])
    positions = torch.arange(tokens.size(1))[None]
    mask = masks.batch([masks.bidirectional(tokens.size(1))])
    return lm.model.logits(lm.model.transformer(tokens, positions, tokens * 0, mask)[0])


@pytest.mark.parametrize("form", ["as transformers 5 writes it", "as the hub has it"])
@torch.no_grad()
def test_a_model_comes_in_and_leaves_bit_for_bit(tmp_path, byte_level, form, capsys):
    theirs = saved(tmp_path / "theirs", byte_level)
    if form == "as the hub has it":
        changed(tmp_path / "theirs", ("layer_types", "rope_parameters"), **OLD)
    assert main(["convert", str(tmp_path / "theirs"), str(tmp_path / "ours")]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'ours'}\n"
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    config = lm.model.config
    assert (config.attention_windows, config.rotary_theta, config.local_rotary_theta) == ("0,2,2", 160000.0, 10000.0)
    symbols = [*SPECIAL[1:3], *byte_level.convert_ids_to_tokens(range(5, len(byte_level)))]
    names = ["<s>", "</s>", *symbols[2:]]
    mine = [lm.vocabulary.index(name) for name in names]
    rows = byte_level.convert_tokens_to_ids(symbols)
    for text in TEXTS:
        ids = byte_level(text, add_special_tokens=False)["input_ids"]
        expected = theirs(torch.tensor([[1, *ids, 2]])).logits[0]
        torch.testing.assert_close(scores(lm, text)[:, mine], expected[:, rows], atol=1e-4, rtol=1e-4)
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "out")]) == 0
    assert (
        capsys.readouterr().out.splitlines()[0].endswith(": transformer.embeddings.query")
    )  # ModernBERT has no query stream
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "out"))
    assert one.keys() == two.keys() and all(torch.equal(value, two[name]) for name, value in one.items())
    back = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    assert type(back) is type(theirs)
    for name in ("layer_types", "rope_parameters", "local_attention", "norm_eps", "pad_token_id", "cls_token_id"):
        assert getattr(back.config, name) == getattr(theirs.config, name), name
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in TEXTS:
        given = again(text, return_tensors="pt")
        assert given["input_ids"][0, 1:-1].tolist() == byte_level(text, add_special_tokens=False)["input_ids"]
        assert torch.equal(back(given["input_ids"]).logits, theirs(given["input_ids"]).logits)
    read = read_folder(tmp_path / "out").trained
    state = lm.model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in read.parameters.items())


@torch.no_grad()
def test_a_tokenizer_that_adds_runs_of_spaces_and_placeholders_comes_in_and_leaves(tmp_path, byte_level):
    """The published one does: GPT-NeoX's, with tokens that are no special symbols before and behind those that are."""
    theirs = copy.deepcopy(byte_level)
    theirs.add_tokens([AddedToken(" " * spaces) for spaces in (4, 3, 2)] + ["|||EMAIL_ADDRESS|||"])
    theirs.add_tokens(["<|endoftext|>"], special_tokens=True)
    theirs.add_tokens([AddedToken(f"[unused{i}]") for i in range(3)])
    model = saved(tmp_path / "theirs", theirs)
    assert main(["convert", str(tmp_path / "theirs"), str(tmp_path / "ours")]) == 0
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    names = lm.tokenizer.native_symbols()
    for text in [*TEXTS, "cats[unused1]cats |||EMAIL_ADDRESS||| cat"]:
        ids = theirs(text, add_special_tokens=False)["input_ids"]
        assert lm.encode(text) == [lm.vocabulary.index(names[i]) for i in ids]
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "out")]) == 0
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    text = "a   cat |||EMAIL_ADDRESS|||[unused2]"
    assert again.tokenize(text) == theirs.tokenize(text) and "   " in again.tokenize(text)
    table = load_file(tmp_path / "out" / "model.safetensors")["model.embeddings.tok_embeddings.weight"]
    assert torch.equal(table, model.model.embeddings.tok_embeddings.weight)


@torch.no_grad()
def test_an_encoder_without_heads_gives_features(tmp_path, byte_level, monkeypatch):
    """A folder is named as it is; what it is converted into stands among the caches."""
    monkeypatch.setenv("UNIFIED_CACHE", str(tmp_path / "cache"))
    theirs = saved(tmp_path / "theirs", byte_level, "ModernBertModel")
    lm = UnifiedLM.from_pretrained(tmp_path / "theirs")
    assert lm.model.config.token_head == "none"
    for text in TEXTS:
        ids = byte_level(text, add_special_tokens=False)["input_ids"]
        expected = theirs(torch.tensor([[1, *ids, 2]])).last_hidden_state[0].mean(0)
        torch.testing.assert_close(lm.embed([text])[0], expected, atol=1e-4, rtol=1e-4)
    lm.save_pretrained(tmp_path / "out")
    back = transformers.AutoModel.from_pretrained(tmp_path / "out")
    assert type(back).__name__ == "ModernBertModel"
    for name, value in theirs.state_dict().items():
        assert torch.equal(back.state_dict()[name], value), name


def test_settings_of_every_form():
    """Layer types of any order, one theta, biases, another window, and the form of the hub with its defaults."""
    settings = modern_bert().config.to_dict()
    expected = replace(MODERN_BERT, max_positions=64)
    assert modern_bert_config(settings) == expected
    full, sliding = "full_attention", "sliding_attention"
    odd = {"layer_types": [sliding, full, sliding, sliding], "local_attention": 6}
    assert modern_bert_config(settings | odd).windows == (3, 0, 3, 3)
    assert modern_bert_config(settings | {"layer_types": [full] * 4}).attention_windows == "0"
    assert modern_bert_config(settings | {"layer_types": [sliding, full] * 2}).attention_windows == "2,0"
    biased = {name: True for name in ("attention_bias", "mlp_bias", "classifier_bias", "norm_bias")}
    config = modern_bert_config(settings | biased)
    assert (config.linear_without_bias, config.norm_type) == (False, "layer")
    hub = {name: value for name, value in settings.items() if name not in ("layer_types", "rope_parameters")}
    assert modern_bert_config(hub) == expected
    other = {"global_attn_every_n_layers": 2, "global_rope_theta": 500, "local_rope_theta": None}
    config = modern_bert_config(hub | other)
    assert (config.attention_windows, config.rotary_theta, config.local_rotary_theta) == ("0,2", 500.0, 0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"architectures": ["ModernBertForSequenceClassification"]}, "ModernBertForMaskedLM are read, whose heads"),
        ({"layer_types": ["full_attention"]}, "layer_types must name full_attention or sliding_attention for 4 layers"),
        ({"local_attention": 1}, "local_attention must be at least 2, got 1"),
        ({"mlp_bias": True}, "biases of all linear maps or of none are built"),
        ({"tie_word_embeddings": False}, "decoder_bias and tie_word_embeddings must be true"),
        ({"hidden_activation": "relu"}, "hidden_activation 'relu'"),
        ({"classifier_activation": "silu"}, "classifier_activation 'silu' differs from hidden_activation"),
        ({"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_type 'yarn' of full_attention"),
        ({"num_hidden_layers": 5, "layer_types": None}, "not the parameters of a ModernBERT of 5 layers: missing"),
        ({"vocab_size": 9}, "entries in its vocabulary, 9 in config.json"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, byte_level, settings, message):
    saved(tmp_path / "theirs", byte_level)
    changed(tmp_path / "theirs", **settings)
    with pytest.raises(UnifiedError, match=message):
        read_folder(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"linear_without_bias": False, "norm_type": "layer"}, None),
        ({"linear_without_bias": False}, None),
        ({"norm_type": "layer"}, None),
        ({"activation": "silu"}, None),
        ({"token_types": 2}, "ModernBERT's layers are self-attention with rotary positions"),
        ({"norm_type": "rms"}, "ModernBERT's layers are self-attention with rotary positions"),
        ({"attention_windows": "0,2,3"}, "ModernBERT has one window for all layers that have one"),
        ({"mask": "left_to_right"}, "the model reads texts under the mask 'left_to_right'"),
        ({"positions": "learned", "rotary_theta": 1e4, "local_rotary_theta": 0.0, "token_types": 2}, "BERT's layers"),
    ],
)
@torch.no_grad()
def test_models_of_ours_leave_as_what_they_are(tmp_path, changes, reason, capsys):
    """As ModernBERT where that gives the same scores, else with their own code; the reason is told."""
    known = vocabulary()
    config = replace(MODERN_BERT, vocabulary_size=len(known), initializer_range=0.3, **changes)
    model = UnifiedModel.for_language(config).eval()
    for parameter in model.parameters():  # biases too
        parameter.data += 0.1 * torch.randn_like(parameter)
    lm = UnifiedLM(model, known, tokenizer(), "nothing", tmp_path)
    (tmp_path / "ours").mkdir()
    tokenizer().save(tmp_path / "ours")
    write(Trained(config, "nothing", dict(model.state_dict()), known), tmp_path / "ours")
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    if reason is not None:
        assert f"written as the format 'unified': {reason}" in told
        return
    back = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    assert type(back).__name__ == "ModernBertForMaskedLM"
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    text = " ".join(WORDS[:9])
    ids = words(text, return_tensors="pt")["input_ids"]
    found = back(ids).logits[0][:, ids[0, 1:-1]]
    torch.testing.assert_close(found, scores(lm, text)[:, lm.encode(text)], atol=1e-4, rtol=1e-4)
