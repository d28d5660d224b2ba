"""Sentencepiece models leave with a tokenizer.json that divides texts alike, and Unigram comes in from one."""

from __future__ import annotations

import json
import lzma

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import unified
from unified import UnifiedLM
from unified.checkpoints.trained import Trained, write
from unified.cli import main
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.files.protobuf import message_fields
from unified.model import TransformerConfig, UnifiedModel
from unified.tokenization import Tokenizer as AnyTokenizer
from unified.tokenization import load_tokenizer, ordinary_symbols
from unified.tokenization.sentencepiece_json import sentencepiece_json
from unified.tokenization.sentencepiece_tokenizer import train_sentencepiece

SYLLABLES = "ka lo mi tu ne ra sé bö ча ст ﬁ Ⅳ 漢 字 ① A É".split()
#: Types of models, and further settings of their training.
SETTINGS = [
    ("unigram", {}),
    ("unigram", {"byte_fallback": True, "normalization": "nfkc"}),
    ("bpe", {"lowercase": True}),
    ("bpe", {"byte_fallback": True}),
    ("char", {}),
    ("unigram", {"normalization": "identity", "lowercase": True}),
]


def lines(count: int, seed: int = 0) -> list[str]:
    """Words of syllables of several scripts, some frequent and some rare, with punctuation and odd white space."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(SYLLABLES, rng.integers(1, 4))) for _ in range(200)]
    ends = rng.choice([" ", "  ", ", ", ". ", "\t", "\u00a0", " (", ") "], (count, 12))
    return ["".join(words[int(i)] + end for i, end in zip(rng.zipf(1.5, 12) % 200, row, strict=True)) for row in ends]


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, AnyTokenizer]:
    return {str(one): train_sentencepiece(lines(300), one[0], **one[1]) for one in SETTINGS}


def divided(tokenizer, texts: list[str]) -> list[tuple[list[int], list[int]]]:
    """Ids of each text by the sentencepiece model and by its tokenizer.json."""
    theirs = Tokenizer.from_str(json.dumps(sentencepiece_json(tokenizer)))
    flat, sizes = tokenizer.encode_ids(texts)
    ids = [one.tolist() for one in np.split(flat, np.cumsum(sizes)[:-1])]
    return [(mine, other.ids) for mine, other in zip(ids, theirs.encode_batch_fast(texts), strict=True)]


@pytest.mark.parametrize("settings", [str(one) for one in SETTINGS])
def test_generated_lines_are_divided_alike(tokenizers, settings):
    unseen = ["", " ", "quix ☃☃ 🎈ka 漢", "12,5 %", *lines(200, seed=1)]
    assert [one for one in divided(tokenizers[settings], unseen) if one[0] != one[1]] == []


def test_a_model_older_than_byte_fallback_has_none(tokenizers):
    """Its training settings, field 2 of the model, end before field 35, as those of XLNet's and ALBERT's models do."""
    tokenizer = tokenizers[str(SETTINGS[0])]
    settings = dict(message_fields(tokenizer.model))[2]
    older = settings.replace(b"\x98\x02\x00", b"")
    assert len(older) == len(settings) - 3 < 125  # so that lengths are one byte
    parts = [b"\x12" + bytes([len(one)]) + one for one in (settings, older)]
    model = tokenizer.model.replace(*parts)
    assert len(model) == len(tokenizer.model) - 3
    assert sentencepiece_json(type(tokenizer)(model)) == sentencepiece_json(tokenizer)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_ten_thousand_real_lines_are_divided_alike(unified_data, model_type):
    path = unified_data / "pretrain_wiki" / "valid.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        sentences = [one for one in stream.read(4_000_000).replace("\\n", ". ").split(". ") if one.strip()]
    assert len(sentences) > 10_000
    tokenizer = train_sentencepiece(sentences[::10][:2000], model_type, 2000)
    differing = [one for one in divided(tokenizer, sentences[:10_000]) if one[0] != one[1]]
    # Where the same pieces fit in two orders, rounding decides: sentencepiece adds in single precision.
    assert len(differing) <= 2 and all(sorted(mine) == sorted(other) for mine, other in differing)


def language_model(folder, tokenizer, **more):
    """A tiny random model with this tokenizer."""
    vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    shape = {"layers": 2, "width": 16, "heads": 2, "max_positions": 40, "token_types": 2, "initializer_range": 0.4}
    config = TransformerConfig(vocabulary_size=len(vocabulary), **shape | more)
    folder.mkdir()
    tokenizer.save(folder)
    write(Trained(config, "nothing", UnifiedModel.for_language(config).state_dict(), vocabulary), folder)
    return folder


@pytest.mark.parametrize("settings", [str(SETTINGS[0]), str(SETTINGS[3])])
def test_a_model_with_sentencepiece_goes_out_and_comes_in(tokenizers, tmp_path, settings):
    ours = language_model(tmp_path / "ours", tokenizers[settings])
    assert main(["export", str(ours), str(tmp_path / "theirs")]) == 0
    lm, text = UnifiedLM.from_pretrained(ours), "kalo <mask> tu, mi."
    fill = transformers.pipeline("fill-mask", str(tmp_path / "theirs"), top_k=5)
    assert [one["score"] for one in fill(text)] == pytest.approx([p for _, p in lm.fill_mask(text)[0]], abs=1e-5)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    given = theirs("kalo tu", "mi")
    segments = [lm.tokenizer.encode_ids([one])[0].tolist() for one in ("kalo tu", "mi")]
    assert given["input_ids"] == [0, *segments[0], 2, *segments[1], 2]
    assert given["token_type_ids"] == [0] * (2 + len(segments[0])) + [1] * (1 + len(segments[1]))
    assert theirs.decode(theirs("kalo, tu")["input_ids"], skip_special_tokens=True) == "kalo, tu"
    # All symbols have their rows again: <mask>, and the sentinels, which this model has learnt.
    again, table = unified.load(tmp_path / "theirs"), lm.model.symbols.weight
    assert sorted(again.vocabulary.symbols) == sorted(lm.vocabulary.symbols)
    rows = torch.tensor([again.vocabulary.index(symbol) for symbol in lm.vocabulary.symbols])
    assert torch.equal(again.model.symbols.weight[rows], table)
    assert again.fill_mask(text) == lm.fill_mask(text)
    assert all(again.tokenizer.encode(line) == lm.tokenizer.encode(line) for line in lines(20))


def test_symbols_in_a_unigram_text_are_text(tokenizers, tmp_path):
    (tmp_path / "tokenizer.json").write_text(Tokenizer.from_str(_unigram()).to_str())
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.native_symbols() == ["<s>", "<pad>", "</s>", "<unk>", "\u2581a", "b"]
    assert tokenizer.encode("ab </s>") == ["\u2581a", "b", "<unk>"]
    assert tokenizer.word_start("\u2581a") and not tokenizer.word_start("b")
    assert tokenizer.decode(["\u2581a", "b", "\u2581a"]) == "ab a"
    flat, sizes, offsets = tokenizer.encode_offsets(["ab  ab"])
    assert (flat.tolist(), sizes.tolist()) == ([4, 5, 4, 5], [4])
    assert offsets.tolist() == [[0, 1], [1, 2], [2, 4], [4, 5]]


def _unigram() -> str:
    scores = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581a", -1.0), ("b", -2.0)]
    made = Tokenizer(models.Unigram(scores, 3, False))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return made.to_str()


def test_a_tokenizer_that_transformers_has_not_is_refused(tmp_path, capsys):
    from tests.support.published_models import published

    published("roberta", tmp_path / "roberta")
    with pytest.raises(UnifiedError, match="the model has no tokenizer; the class needs WordPiece"):
        unified.load(tmp_path / "roberta" / "ours").save_pretrained(tmp_path / "out", "bert")
