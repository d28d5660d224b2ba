"""XLNet's folders in and out: ``transformers``' and TensorFlow's names, the tokenizer, and training from there."""

import io
import json
import shutil
import subprocess
import unicodedata

import numpy as np
import pytest
import sentencepiece
import torch
from safetensors.torch import load_file
from transformers import XLNetConfig, XLNetLMHeadModel

from tests.support import fairseq_runs as fairseq
from tests.support import tensorflow_files
from tests.support.prepared_python import interpreter
from unified import UnifiedLM, masks
from unified.conversions.export import Source
from unified.conversions.xlnet import export_xlnet, read_xlnet, xlnet_config
from unified.errors import UnifiedError
from unified.tokenization import load_tokenizer, single_spaced
from unified.tokenization.xlnet import XLNetTokenizer, prepared, prepared_characters

SPECIAL = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
SENTENCES = [
    "The café's naïve owner sold 1,000 cups in 1999, 20 more than ``expected''.",
    "He said ''hello'' in 12, then 3,456,789 times;  the\tend.",
    "A text of many words, and of few numbers: 7, 8, 9.",
    "Über 5,5 Å — 100,  it is",
]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory) -> bytes:
    """A sentencepiece model with XLNet's symbols in XLNet's order, in which some pieces end in a digit and a comma."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([prepared(s) for s in SENTENCES] * 30 + ["9, 9, 9, 0, 00, 19, 1999, 12, 7, 8,"] * 200),
        model_writer=model, vocab_size=150, hard_vocab_limit=False, unk_id=0, bos_id=1, eos_id=2, pad_id=-1,
        control_symbols=SPECIAL[3:], split_by_number=False, split_by_unicode_script=False, num_threads=1, minloglevel=3,
    )  # fmt: skip
    return model.getvalue()


def hugging_face(pieces: bytes, **changes) -> XLNetLMHeadModel:
    torch.manual_seed(3)
    size = len(XLNetTokenizer(pieces).native_symbols())
    sizes = dict(vocab_size=size, d_model=32, n_layer=2, n_head=4, d_inner=48, ff_activation="gelu")
    model = XLNetLMHeadModel(XLNetConfig(**{**sizes, **changes})).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


@pytest.fixture
def folder(tmp_path, pieces):
    model = hugging_face(pieces, ff_activation="gelu_new", dropout=0.07, layer_norm_eps=1e-9, initializer_range=0.03)
    model.save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "spiece.model").write_bytes(pieces)
    return model, tmp_path / "theirs"


def same_logits(lm: UnifiedLM, model: XLNetLMHeadModel, rows: list[str]) -> None:
    """All tokens of a text at once, and of the next token behind it by the query stream."""
    processor = lm.tokenizer.processor
    for text in rows:
        ids = lm.encode(text)
        theirs = torch.tensor([[processor.piece_to_id(lm.vocabulary.symbols[i]) for i in ids]])
        length = theirs.size(1)
        indices = torch.arange(length)[None]
        order = [processor.piece_to_id(piece) for piece in lm.tokenizer.encode(text)]
        assert theirs[0].tolist() == order
        states = lm.model.transformer(
            torch.tensor([ids]), indices, torch.zeros_like(indices), masks.batch([masks.bidirectional(length)])
        )
        expected = model.transformer(theirs).last_hidden_state
        torch.testing.assert_close(states, expected, atol=1e-4, rtol=1e-4)
        scores = lm.model.logits(states[0])
        rows_of = [lm.vocabulary.index(symbol) for symbol in lm.tokenizer.native_symbols()]
        torch.testing.assert_close(scores[:, rows_of], model.lm_loss(expected)[0], atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_imported_and_exported_again_bit_by_bit(folder, tmp_path):
    model, source = folder
    done = read_xlnet(source).save(tmp_path / "ours")
    assert done.new == () and done.left_out == ()
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    assert lm.writes == "permutation"
    config, settings = lm.model.config, model.config
    assert {config.dropout, config.attention_dropout, config.inner_dropout} == {settings.dropout}
    assert (config.norm_epsilon, config.initializer_range) == (settings.layer_norm_eps, settings.initializer_range)
    same_logits(lm, model, SENTENCES)
    left_out = export_xlnet(Source.read(tmp_path / "ours"), tmp_path / "again").left_out
    assert all(name.startswith("heads.next_sentence") for name in left_out)
    one, two = (load_file(path / "model.safetensors") for path in (source, tmp_path / "again"))
    two = {name: two[name] for name in two if name in one or name != "lm_loss.weight"}
    assert one.keys() <= two.keys() | {"lm_loss.weight"}
    assert all(torch.equal(one[name], two[name]) for name in one.keys() & two.keys())
    loaded = XLNetLMHeadModel.from_pretrained(tmp_path / "again").eval()
    read = XLNetConfig.from_pretrained(tmp_path / "again").to_dict()
    # The library's own settings stand beside those of transformers; untie_r is always so in this version.
    for name in ("architectures", "dtype", "_name_or_path", "untie_r", "unified"):
        read.pop(name, None)
    assert {name for name in read if read[name] != settings.to_dict()[name]} == set()
    ids = torch.randint(0, model.config.vocab_size, (2, 9))
    assert torch.equal(loaded(ids).logits, model(ids).logits)
    assert (tmp_path / "again" / "spiece.model").read_bytes() == (source / "spiece.model").read_bytes()


@pytest.mark.parametrize("changes", [{"attn_type": "uni"}, {"clamp_len": 5}, {"attn_type": "uni", "clamp_len": 4}])
@torch.no_grad()
def test_direction_and_clamped_distances_come_and_go(tmp_path, pieces, changes):
    """States of tokens and fillings of masks are those of ``transformers``; the export has its settings again."""
    model = hugging_face(pieces, ff_activation="gelu_new", bi_data=False, **changes)
    model.save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "spiece.model").write_bytes(pieces)
    read_xlnet(tmp_path / "theirs").save(tmp_path / "ours")
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    assert {name: getattr(lm.model.config, name) for name in changes} == changes
    same_logits(lm, model, SENTENCES)
    same_fillings(lm, model, "The café's <mask> owner<mask> sold")
    export_xlnet(Source.read(tmp_path / "ours"), tmp_path / "again")
    again = XLNetConfig.from_pretrained(tmp_path / "again")
    assert (again.attn_type, again.clamp_len) == (model.config.attn_type, model.config.clamp_len)
    loaded, ids = (
        XLNetLMHeadModel.from_pretrained(tmp_path / "again").eval(),
        torch.randint(0, model.config.vocab_size, (2, 11)),
    )
    assert torch.equal(loaded(ids).logits, model(ids).logits)


@torch.no_grad()
def test_masks_are_filled_by_queries_that_see_the_text_around_them(folder, tmp_path):
    """``transformers`` with the hidden tokens blocked for all and a target mapping; texts have no greatest length."""
    model, source = folder
    read_xlnet(source).save(tmp_path / "ours")
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    long = " ".join(SENTENCES * 5)
    for text in ("The café's <mask> owner<mask> sold", "<mask>", f"{long} <mask> owner"):
        length = same_fillings(lm, model, text)
    assert length > 512


def same_fillings(lm: UnifiedLM, model: XLNetLMHeadModel, text: str) -> int:
    """Probabilities at each ``<mask>``, which nothing sees; returns the number of pieces."""
    parts, pieces = text.split("<mask>"), []
    for part in parts:
        pieces += [*lm.tokenizer.encode(part), "<mask>"]
    pieces = [*pieces[:-1], "<sep>", "<cls>"]
    indices = [i for i, piece in enumerate(pieces) if piece == "<mask>"]
    tokens = torch.tensor([[lm.tokenizer.processor.piece_to_id(piece) for piece in pieces]])
    perm_mask, mapping = torch.zeros(1, len(pieces), len(pieces)), torch.zeros(1, len(indices), len(pieces))
    perm_mask[:, :, indices] = 1
    mapping[0, torch.arange(len(indices)), indices] = 1
    types = torch.tensor([[0] * (len(pieces) - 1) + [2]])
    logits = model(tokens, token_type_ids=types, perm_mask=perm_mask, target_mapping=mapping).logits[0]
    found = lm.fill_mask(text, top=len(lm.vocabulary))
    symbols = lm.tokenizer.native_symbols()
    for row, expected in zip(found, logits, strict=True):
        by_symbol = dict(row)
        known = torch.tensor([by_symbol[symbol] for symbol in symbols])
        torch.testing.assert_close(known / known.sum(), expected.softmax(-1), atol=1e-5, rtol=1e-4)
    return len(pieces)


def tensorflow_variables(model: XLNetLMHeadModel, tied: bool) -> dict[str, np.ndarray]:
    """The published code's names and shapes (zihangdai/xlnet, modeling.py)."""
    named = {
        "model/transformer/word_embedding/lookup_table": model.transformer.word_embedding.weight,
        "model/transformer/mask_emb/mask_emb": model.transformer.mask_emb,
        "model/lm_loss/bias": model.lm_loss.bias,
        "model/sequnece_summary/summary/kernel": torch.zeros(3, 3),
    }
    layers = [layer for layer in model.transformer.layer]
    for vector in ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed"):
        values = [getattr(layer.rel_attn, vector) for layer in layers]
        named[f"model/transformer/{vector}"] = values[0] if tied else torch.stack(values)
    for i, layer in enumerate(layers):
        stem = f"model/transformer/layer_{i}"
        for letter in "qkvor":
            named[f"{stem}/rel_attn/{letter}/kernel"] = getattr(layer.rel_attn, letter)
        for part, norm in (("rel_attn", layer.rel_attn.layer_norm), ("ff", layer.ff.layer_norm)):
            named |= {f"{stem}/{part}/LayerNorm/gamma": norm.weight, f"{stem}/{part}/LayerNorm/beta": norm.bias}
        for number, linear in ((1, layer.ff.layer_1), (2, layer.ff.layer_2)):
            named[f"{stem}/ff/layer_{number}/kernel"] = linear.weight.T
            named[f"{stem}/ff/layer_{number}/bias"] = linear.bias
    return {name: value.detach().numpy().copy() for name, value in named.items()}


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@torch.no_grad()
def test_tensorflows_names(tmp_path, pieces, tied):
    model = hugging_face(pieces, ff_activation="gelu_new")
    if tied:
        first = model.transformer.layer[0].rel_attn
        for layer in model.transformer.layer:
            for vector in ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed"):
                getattr(layer.rel_attn, vector).copy_(getattr(first, vector))
    source = tmp_path / "theirs"
    source.mkdir()
    tensorflow_files.write(source / "xlnet_model.ckpt", tensorflow_variables(model, tied))
    settings = {"d_head": 8, "d_inner": 48, "d_model": 32, "ff_activation": "gelu", "n_head": 4, "n_layer": 2,
                "n_token": model.config.vocab_size, "untie_r": not tied}  # fmt: skip
    (source / "xlnet_config.json").write_text(json.dumps(settings))
    (source / "spiece.model").write_bytes(pieces)
    done = read_xlnet(source).save(tmp_path / "ours")
    assert done.left_out == ("model/sequnece_summary/summary/kernel",)
    same_logits(UnifiedLM.from_pretrained(tmp_path / "ours"), model, SENTENCES)


def literal_pieces(processor, text):
    """``encode_pieces`` of the published prepro_utils.py."""
    text = " ".join(text.strip().split()).replace("``", '"').replace("''", '"')
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    found = []
    for piece in processor.encode(text, out_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            parts = processor.encode(piece[:-1].replace("\u2581", ""), out_type=str)
            if piece[0] != "\u2581" and parts[0][0] == "\u2581":
                if len(parts[0]) == 1:
                    parts = parts[1:]
                else:
                    parts[0] = parts[0][1:]
            parts.append(piece[-1])
            found.extend(parts)
        else:
            found.append(piece)
    return found


def test_text_is_tokenized_as_published(pieces, tmp_path):
    tokenizer = XLNetTokenizer(pieces)
    divided = 0
    for text in [*SENTENCES, "", "9,", "x9,y", "00, 19,x 8,,"]:
        expected = literal_pieces(tokenizer.processor, text)
        assert tokenizer.encode(text) == expected
        divided += expected != tokenizer.processor.encode(prepared(text), out_type=str)
    assert divided >= 2, "some pieces end in a digit and a comma"
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert isinstance(again, XLNetTokenizer)
    flat, sizes = again.encode_ids(SENTENCES)
    symbols = again.native_symbols()
    assert [symbols[i] for i in flat[: sizes[0]]] == tokenizer.encode(SENTENCES[0])
    assert prepared("Ünïcode  ``x''") == 'Unicode "x"'


def test_training_goes_on_and_writes(folder, tmp_path):
    _, source = folder
    read_xlnet(source).save(tmp_path / "ours")
    text = tmp_path / "text"
    text.write_text("\n".join(f"{SENTENCES[i % 4]}\n" + "\n" * (i % 3 == 0) for i in range(120)))
    words = ["prepare", text, "--valid-share", "0.1", "--tokenizer", tmp_path / "ours", "--workers", 1]
    command = [interpreter(), "-m", "unified.cli", *words, "--output", tmp_path / "data"]
    subprocess.run(list(map(str, command)), check=True, cwd=fairseq.ROOT)
    shape = ("--arch", "xlnet_tiny", "--layers", 2, "--width", 32, "--heads", 4, "--feed-forward", 48)
    result = fairseq.train(
        tmp_path / "data", tmp_path / "save", *shape, "--objectives", "xlnet", "--memory", 32, "--inner-dropout", 0,
        "--restore-file", tmp_path / "ours" / "checkpoint_last.pt", "--reset-optimizer", "--reset-dataloader",
        "--reset-meters", "--reset-lr-scheduler", "--batch-size", 4, "--max-update", 60, "--log-interval", 10,
        "--disable-validation", "--lr", 3e-3,
    )  # fmt: skip
    losses = [float(row["loss"]) for row in fairseq.logged(result.stdout + result.stderr, "train_inner")]
    assert min(losses[-3:]) < 0.92 * losses[0], losses
    assert "heads.next_sentence" in result.stdout + result.stderr, "new parameters are named"
    shutil.copy(tmp_path / "ours" / "xlnet.model", tmp_path / "save")
    lm = UnifiedLM.from_pretrained(tmp_path / "save" / "checkpoint_last.pt", data=tmp_path / "data")
    (written,) = lm.generate(["The café"], beam=2, max_length=5)
    assert written.startswith("The cafe")
    with pytest.raises(UnifiedError, match="continues prompts; it has not learnt to write targets"):
        lm.generate(["The café"], prompt=False)


def test_pieces_stand_at_their_characters(pieces):
    """Each piece is what the characters that it stands for become, up to the space that may begin it."""
    tokenizer = XLNetTokenizer(pieces)
    rng = np.random.default_rng(0)
    letters = [
        *"the cafe,1 9 ``''",
        "e\u0301",
        "\u00e9",
        "\ufb01",
        "\u00bd",
        "\u00a8",
        "\u200b",
        " ",
        "9,",
        "19, ",
        "\u0323\u0301",
    ]
    texts = [*SENTENCES, "", "\u0301x", *("".join(rng.choice(letters, 25)) for _ in range(300))]
    flat, sizes, offsets = tokenizer.encode_offsets(texts)
    expected = tokenizer.encode_ids(texts)
    assert np.array_equal(flat, expected[0]) and np.array_equal(sizes, expected[1])
    exact = commas = 0
    for text, own in zip(texts, np.split(offsets, np.cumsum(sizes)[:-1]), strict=True):
        single = single_spaced(text)
        assert prepared(single) == prepared_characters(single)[0]
        assert (own[:, 0] < own[:, 1]).all() and (np.diff(own, axis=0) >= 0).all() and own.max(initial=0) <= len(single)
        names = tokenizer.encode(text)
        for (start, end), name in zip(own.tolist(), names, strict=True):
            shown = prepared(single[start:end]) or single[start:end]
            plain = name.replace("\u2581", "").strip()
            if name != "<unk>" and plain:
                # A character that becomes several, as \u00bd does, stands whole for each of its pieces.
                assert plain == shown.strip() or (plain in shown and not single[start:end].isascii()), (text, name)
                exact += plain == shown.strip()
            commas += name == ","
    assert exact > 3000 and commas > 200


def test_what_is_no_xlnet_is_refused(folder, tmp_path, pieces):
    _, source = folder
    for change, says in (
        ({"attn_type": "both"}, "attn_type must be one of bi, uni, got 'both'"),
        ({"same_length": True}, "same_length True; only False is built"),
        ({"d_head": 7}, "4 heads of 7 do not make d_model 32"),
        ({"ff_activation": "relu"}, "ff_activation 'relu'"),
        ({"vocab_size": 20}, "20 in its settings"),
        ({"n_layer": 3}, "missing: transformer.layer.2"),
    ):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
        settings = json.loads((copy / "config.json").read_text()) | change
        (copy / "config.json").write_text(json.dumps(settings))
        with pytest.raises(UnifiedError, match=says):
            read_xlnet(copy).save(tmp_path / "out")
        assert not (tmp_path / "out").exists()
    with pytest.raises(UnifiedError, match="no d_model; is it an XLNet's"):
        xlnet_config({"n_head": 2, "vocab_size": 9, "n_layer": 1, "d_inner": 8})
    (source / "spiece.model").unlink()
    with pytest.raises(UnifiedError, match="spiece.model: no such file"):
        read_xlnet(source).save(tmp_path / "out")
    plain = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20), model_writer=plain, vocab_size=80, hard_vocab_limit=False, minloglevel=3
    )
    with pytest.raises(UnifiedError, match="not an XLNet's model: it has no piece <cls>"):
        XLNetTokenizer(plain.getvalue())
