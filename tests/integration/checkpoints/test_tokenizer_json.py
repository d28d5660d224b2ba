"""Folders as transformers 5 saves them: the same ids as there, the same model, and what cannot be read faithfully."""

import json
import lzma
import unicodedata

import numpy as np
import pytest
import tokenizers
import torch
import transformers

from tests.integration.checkpoints.test_bert_checkpoints import SENTENCES, minilm  # noqa: F401
from tests.support.published_models import published
from unified import UnifiedLM
from unified.cli import main
from unified.conversions.bert import export_bert, read_bert
from unified.conversions.export import Source
from unified.conversions.xlnet import read_xlnet
from unified.errors import UnifiedError
from unified.tokenization import load_tokenizer
from unified.tokenization.json_tokenizer import JsonTokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer, train_wordpiece

#: White space that BERT removes as control characters; here, as all white space, it stands between words.
CONTROLS = {"\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\x85"}
NASTY = [
    "naïve café ÉCOLE Straße İstanbul ǅungla ﬁn Å A\u0300 e\u0301\u0323",
    "汉字かな交じり文 中文，标点。 한국어 𠀋𠮷 ﹏",
    "a\u00a0b\u2009c\u3000d\u2028e\u2029f\ufeffg\u200bh\u00adi\tj\nk\r\nl",
    "👩‍👩‍👧‍👦 🇩🇪 ✌🏽 \U000e0041 \ud7ff \ufffd \x00\x07\x7f",
    "don't — “quotes” … $5,000.00 [x] <y> {z} a_b C++ #tag @me 100% ½ ² ⅷ",
    "x" * 100 + " " + "y" * 101,
    "",
    " \t ",
]


def nasty_texts() -> list[str]:
    """Random strings of all assigned characters, and the collection above."""
    rng = np.random.default_rng(0)
    blocks = [(0x20, 0x250), (0x300, 0x600), (0x900, 0xE00), (0x1E00, 0x3100), (0x4E00, 0x4F00), (0xAC00, 0xAD00)]
    blocks += [(0xF900, 0x10000), (0x1F300, 0x1F700), (0x20000, 0x20100)]
    characters = [c for first, stop in blocks for c in map(chr, range(first, stop)) if unicodedata.category(c) != "Cs"]
    characters = [c for c in characters if c not in CONTROLS]
    texts = ["".join(rng.choice(characters, rng.integers(1, 40))) for _ in range(400)]
    mixed = [" ".join(rng.permutation(text.split() + NASTY[i % 5].split())) for i, text in enumerate(texts[:60])]
    return [*NASTY, *texts, *mixed]


@pytest.fixture(scope="module")
def entries() -> list[str]:
    """A vocabulary with letters of many scripts, so that few words are unknown."""
    lines = [*SENTENCES * 20, *nasty_texts(), *(text.lower() for text in nasty_texts())] * 2
    return train_wordpiece(lines, character_coverage=1.0).entries


@pytest.mark.parametrize("split_chinese", [True, False])
@pytest.mark.parametrize("strip_accents", [None, True, False])
@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_are_those_of_transformers(tmp_path, entries, lowercase, strip_accents, split_chinese):
    """Whatever the settings, from tokenizer.json, from vocab.txt, and after our own saving, in transformers too."""
    vocabulary = {entry: i for i, entry in enumerate(entries)}
    theirs = transformers.BertTokenizer(
        vocabulary, do_lower_case=lowercase, strip_accents=strip_accents, tokenize_chinese_chars=split_chinese
    )
    theirs.save_pretrained(tmp_path / "five")
    assert not (tmp_path / "five" / "vocab.txt").exists()
    one = load_tokenizer(tmp_path / "five")
    assert one.entries == entries and (one.lowercase, one.split_chinese) == (lowercase, split_chinese)
    (tmp_path / "ours").mkdir()
    one.save(tmp_path / "ours")
    again = load_tokenizer(tmp_path / "ours")
    back = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours", tokenizer_type="bert")
    texts = nasty_texts()
    for text, expected in zip(texts, theirs(texts, add_special_tokens=False)["input_ids"], strict=True):
        for tokenizer in (one, again):
            flat, _ = tokenizer.encode_ids([text])
            assert flat.tolist() == expected, text
        assert back(text, add_special_tokens=False)["input_ids"] == expected
        flat, _, _ = one.encode_offsets([text])
        assert flat.tolist() == expected, text


def test_settings_of_the_tokenizer_are_said_in_either_file(tmp_path, entries):
    """tokenizer_config.json has the last word, as in transformers; what it leaves open tokenizer.json says."""
    theirs = transformers.BertTokenizer({e: i for i, e in enumerate(entries)}, do_lower_case=False, strip_accents=True)
    theirs.save_pretrained(tmp_path)
    config = tmp_path / "tokenizer_config.json"
    config.unlink()
    found = load_tokenizer(tmp_path)
    assert (found.lowercase, found.strip_accents, found.split_chinese) == (False, True, True)
    config.write_text(json.dumps({"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": False}))
    found = load_tokenizer(tmp_path)
    assert (found.lowercase, found.strip_accents, found.split_chinese) == (True, True, False)
    config.write_text(json.dumps({"do_lower_case": True, "strip_accents": "yes"}))
    with pytest.raises(UnifiedError, match="tokenizer_config.json: strip_accents is 'yes', neither true nor false"):
        load_tokenizer(tmp_path)


def test_real_text_has_the_ids_of_transformers(minilm, unified_data, tmp_path):  # noqa: F811
    """MiniLM's 30,522 entries on a megabyte of Wikipedia, from tokenizer.json and from vocab.txt."""
    theirs = transformers.AutoTokenizer.from_pretrained(minilm)
    (tmp_path / "tokenizer.json").write_bytes((minilm / "tokenizer.json").read_bytes())
    tokenizers = [load_tokenizer(tmp_path), WordPieceTokenizer.load(minilm / "vocab.txt")]
    path = next(iter(sorted((unified_data / "pretrain_wiki").glob("*.xz"))))
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        lines = stream.read(1_000_000).splitlines()
    expected = theirs(lines, add_special_tokens=False)["input_ids"]
    for tokenizer in tokenizers:
        flat, sizes = tokenizer.encode_ids(lines)
        assert flat.tolist() == [token for ids in expected for token in ids]
    assert len(flat) > 150_000


@torch.no_grad()
def test_a_folder_of_transformers_5_goes_in_and_out(tmp_path):
    one = published("bert", tmp_path / "bert", shift=-5.0)
    folder = tmp_path / "five"
    one.theirs.float().save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(tmp_path / "bert" / "theirs").save_pretrained(folder)
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"
    }  # fmt: skip
    assert main(["convert", "--from", "bert", str(folder), str(tmp_path / "ours")]) == 0
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    assert lm.fill_mask("the <mask> sat") == UnifiedLM.from_pretrained(tmp_path / "bert" / "ours").fill_mask(
        "the <mask> sat"
    )
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "back")]) == 0
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "back")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    given = tokenizer("The [MASK] sat", return_tensors="pt")
    assert given["input_ids"].equal(torch.tensor([[one.rows[i] for i in (0, 4, lm.special.mask, 6, 2)]]))
    probabilities = model(**given).logits[0, 2].softmax(-1)
    for symbol, p in lm.fill_mask("the <mask> sat", top=10**6)[0]:
        assert float(probabilities[lm.tokenizer.native_symbols().index(symbol)]) == pytest.approx(p, abs=1e-6)


@torch.no_grad()
def test_special_symbols_beyond_the_vocabulary_keep_their_rows(tmp_path):
    one, folder = published("bert", tmp_path / "bert"), tmp_path / "five"
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "bert" / "theirs")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<e1>", "</e1>"]})
    model = one.theirs.float()
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    read_bert(folder).save(tmp_path / "ours")
    lm, table = UnifiedLM.from_pretrained(tmp_path / "ours"), model.bert.embeddings.word_embeddings.weight
    for symbol in ("<e1>", "</e1>"):
        row = lm.model.symbols.weight[lm.vocabulary.index(symbol)]
        assert torch.equal(row, table[tokenizer.convert_tokens_to_ids(symbol)])
    # A text never has them: written there they are text.
    assert "<e1>" not in lm.tokenizer.encode("<e1> the cat </e1>")
    export_bert(Source.read(tmp_path / "ours"), tmp_path / "back")
    back = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "back")
    assert torch.equal(back.bert.embeddings.word_embeddings.weight, table)


def changed(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["model"].update(type="Unigram"), "not a tokenizer that the library tokenizers reads"),
        (lambda c: c["model"].update(unk_token="<unk>"), "model unk_token '<unk>', not '\\[UNK\\]'"),
        (lambda c: c["model"].update(continuing_subword_prefix="@@"), "continuing_subword_prefix '@@'"),
        (lambda c: c["model"].update(max_input_chars_per_word=50), "max_input_chars_per_word 50, not 100"),
        (lambda c: c.update(normalizer=None), "normalizer type None, not 'BertNormalizer'"),
        (lambda c: c.update(normalizer={"type": "NFKC"}), "normalizer type 'NFKC'"),
        (lambda c: c["normalizer"].update(clean_text=False), "normalizer clean_text False, not True"),
        (lambda c: c["normalizer"].update(lowercase="no"), "lowercase is 'no', neither true nor false"),
        (lambda c: c.update(pre_tokenizer={"type": "Whitespace"}), "pre_tokenizer type 'Whitespace'"),
        (
            lambda c: c["added_tokens"].append({"id": 15, "content": "covid", "special": False}),
            "adds tokens that are no special symbols, which is not built: covid$",
        ),
        (
            lambda c: c["added_tokens"].append({"id": 99, "content": "<x>", "special": True}),
            "ids of its 16 entries are",
        ),
        (lambda c: c["added_tokens"].append("<x>"), "added_tokens are not objects"),
        (lambda c: c["model"]["vocab"].update(mat=[3]), "ids of its 15 entries are not 0 to 14"),
        (lambda c: c["model"].pop("vocab"), "has no vocabulary"),
    ],
)
def test_tokenizers_of_other_kinds_are_refused_in_one_line(tmp_path, change, message):
    published("bert", tmp_path)
    folder = tmp_path / "theirs"
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    (folder / "vocab.txt").unlink()
    changed(folder / "tokenizer.json", change)
    with pytest.raises(UnifiedError, match=f"tokenizer.json: .*{message}") as caught:
        read_bert(folder).save(tmp_path / "again")
    assert "\n" not in str(caught.value) and not (tmp_path / "again").exists()


def test_an_unknown_character_without_an_unknown_symbol_is_refused():
    made = tokenizers.Tokenizer(tokenizers.models.Unigram([("a", -1.0), ("b", -2.0)]))
    ours = JsonTokenizer(json.loads(made.to_str()), {}, "here.json")
    assert ours.encode("ab") == ["a", "b"]
    for divide in (ours.encode, lambda text: ours.encode_ids([text]), lambda text: ours.encode_offsets([text])):
        with pytest.raises(UnifiedError, match="here.json: cannot divide a text into tokens .*unk_id"):
            divide("c")


def test_what_the_library_tokenizers_fails_at_is_refused():
    """A prefix of pieces that is longer than they are: its code fails with an exception that is no Exception."""
    content = json.loads(tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])).to_str())
    JsonTokenizer(content, {})
    content["model"]["continuing_subword_prefix"] = "##"
    with pytest.raises(UnifiedError, match="tokenizer.json: not a tokenizer that the library tokenizers reads .*slice"):
        JsonTokenizer(content, {})


def test_an_entry_that_would_end_the_process_is_refused():
    """The library tokenizers puts the entries of a Unigram into a tree and takes that apart by recursion."""
    made = tokenizers.Tokenizer(tokenizers.models.Unigram([("a", -1.0), ("b" * 5000, -2.0)]))
    with pytest.raises(UnifiedError, match="tokenizer.json: an entry of 5,000 characters; the longest may have 4,096"):
        JsonTokenizer(json.loads(made.to_str()), {})


def test_folders_without_a_tokenizer_that_is_read_say_what_is(tmp_path, capsys):
    published("bert", tmp_path / "bert")
    folder = tmp_path / "bert" / "theirs"
    (folder / "vocab.txt").unlink()
    with pytest.raises(UnifiedError, match="theirs: holds neither tokenizer.json nor vocab.txt"):
        read_bert(folder).save(tmp_path / "out")
    (folder / "tokenizer.json").write_text("[]")
    with pytest.raises(UnifiedError, match="tokenizer.json: not a JSON object"):
        read_bert(folder).save(tmp_path / "out")
    published("xlnet", tmp_path / "xlnet")
    folder = tmp_path / "xlnet" / "theirs"
    (folder / "spiece.model").rename(folder / "pieces")
    with pytest.raises(UnifiedError, match="spiece.model: no such file"):
        read_xlnet(folder).save(tmp_path / "out")
    (folder / "pieces").rename(folder / "spiece.model")
    assert main(["convert", "--from", "bert", str(folder), str(tmp_path / "out")]) == 2
    assert main(["convert", "--from", "roberta", str(folder), str(tmp_path / "out")]) == 2
    assert "model_type 'xlnet'; --from roberta reads roberta, xlm-roberta, camembert" in capsys.readouterr().err
    changed(tmp_path / "bert" / "theirs" / "config.json", lambda c: c.update(model_type="distilbert"))
    (tmp_path / "bert" / "theirs" / "tokenizer.json").unlink()
    (tmp_path / "bert" / "theirs" / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n")
    with pytest.raises(UnifiedError, match="model_type 'distilbert'; --from bert reads models of type 'bert'"):
        read_bert(tmp_path / "bert" / "theirs").save(tmp_path / "out")


# How an imported model writes


def test_a_model_of_six_token_types_writes_as_it_was_fine_tuned(tmp_path, capsys):
    one = published("unilm", tmp_path / "unilm", writes="cloze")
    source, out = tmp_path / "unilm" / "theirs", tmp_path / "out"

    def converted(name: str, *more: str) -> str:
        assert main(["convert", "--from", "bert", str(source), str(out / name), *more]) == 0
        return capsys.readouterr().out

    assert "it continues prompts; where it was fine-tuned on pairs, --writes cloze lets it write" in converted("usual")
    assert "it writes by the scheme 'cloze'" in converted("cloze", "--writes", "cloze")
    assert "writes" not in converted("nothing", "--writes", "nothing")
    lms = {name: UnifiedLM.from_pretrained(out / name) for name in ("usual", "cloze", "nothing")}
    assert [lm.writes for lm in lms.values()] == ["left_to_right", "cloze", "nothing"]
    options = {"beam": 3, "max_length": 6}
    assert lms["cloze"].generate(["the cat sat"], **options) == one.lm.generate(["the cat sat"], **options)
    assert lms["usual"].generate(["the cat sat"], **options)[0].startswith("the cat sat")
    with pytest.raises(UnifiedError, match="does not generate"):
        lms["nothing"].generate(["the cat"])


@pytest.mark.parametrize(
    ("kind", "writes", "message"),
    [
        (
            "bert",
            "cloze",
            "--writes cloze takes 6 token types, the model has 2; training it by `fairseq-train --token-types 6` adds",
        ),
        ("roberta", "left_to_right", "--writes left_to_right takes 3 token types, the model has 2"),
        ("unilm", "permutation", "--writes permutation: a model with learned positions cannot write so"),
        ("xlnet", "cloze", "--writes cloze: a model with relative positions cannot write so"),
    ],
)
def test_schemes_that_a_model_does_not_have_are_refused(tmp_path, capsys, kind, writes, message):
    published(kind, tmp_path)
    words = ["convert", "--from", "bert" if kind == "unilm" else kind, str(tmp_path / "theirs"), str(tmp_path / "out")]
    assert main([*words, "--writes", writes]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_the_command_speaks_of_its_own_options(tmp_path, capsys):
    published("xlnet", tmp_path)
    words = ["convert", "--from", "xlnet", str(tmp_path / "theirs"), str(tmp_path / "ours")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "ours: not empty; name a new folder" in said and "--output" not in said and "--overwrite" not in said
    # An export has a tokenizer, whatever its file is called.
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "back")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"wrote {tmp_path / 'back'}"
    assert main(["convert", str(tmp_path / "theirs"), str(tmp_path / "more"), "--seed", "3"]) == 2
    assert "leave it out" in capsys.readouterr().err
    (tmp_path / "ours" / "dict.txt").unlink()
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "more")]) == 2
    assert "copy dict.txt and the tokenizer's files (tokenizer*, vocab.txt" in capsys.readouterr().err
