"""Files of WordPiece tokenizers: entries, settings and their names, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import transformers

from tests.support.locales import plain_locale
from unified.errors import UnifiedError
from unified.tokenization import load_tokenizer, tokenizer_files
from unified.tokenization.wordpiece import WordPieceTokenizer
from unified.tokenization.wordpiece_files import is_wordpiece, read_entries, read_json, read_settings, write_settings

ENTRIES = ["[UNK]", "a", "##b"]


def content(**changes) -> dict:
    whole = {
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": {entry: i for i, entry in enumerate(ENTRIES)},
        },
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False, "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
    }  # fmt: skip
    return whole | changes


def written(folder: Path, value: dict, name: str = "tokenizer.json") -> Path:
    (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder / name


def refusal(call, *arguments, **options) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments, **options)
    return str(raised.value)


@pytest.mark.parametrize(
    ("data", "entries"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\n\n\nb\n", ["a", "", "", "b"]),
        (b" a \n\xe2\x80\xa8\n", [" a ", "\u2028"]),
    ],
)
def test_each_line_is_an_entry(tmp_path, data, entries):
    (tmp_path / "vocab.txt").write_bytes(data)
    with plain_locale():
        assert read_entries(tmp_path / "vocab.txt") == entries


def beside_vocabulary(folder: Path, **files: dict) -> list[str]:
    """Entries of a ``vocab.txt`` with these files of JSON beside it."""
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n")
    for name, value in files.items():
        written(folder, value, f"{name}.json")
    return WordPieceTokenizer.load(folder / "vocab.txt").entries


def test_special_symbols_added_beside_a_vocabulary_are_entries(tmp_path):
    """As transformers before version 5 saves them, with or without what tokenizer_config.json says of them."""
    added, named = {"[E1]": 4, "[E2]": 3}, {"cls_token": "[CLS]", "additional_special_tokens": ["[E1]"]}
    others = {"sep_token": {"content": "[E2]"}}
    assert beside_vocabulary(tmp_path, added_tokens=added, special_tokens_map=named | others)[3:] == ["[E2]", "[E1]"]
    (tmp_path / "added_tokens.json").unlink()
    decoder = {"4": {"content": "[E4]", "special": True}, "3": {"content": "[E3]", "special": True}}
    known = {"0": {"content": "[UNK]", "special": True}, "1": {"content": "a", "special": False}}
    settings = {"do_lower_case": True, "added_tokens_decoder": known | decoder}
    assert beside_vocabulary(tmp_path, tokenizer_config=settings)[3:] == ["[E3]", "[E4]"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"added_tokens": {"covid": 3}}, ": adds tokens that are no special symbols, which is not built: covid"),
        ({"tokenizer_config": {"added_tokens_decoder": {"3": {"content": "covid", "special": False}}}},
         ": adds tokens that are no special symbols, which is not built: covid"),
        ({"added_tokens": {"<e>": 4}, "special_tokens_map": {"mask_token": "<e>"}}, ": the ids of its added tokens are "
         "not 3 to 3"),
        ({"added_tokens": {"<e>": "3"}}, "/added_tokens.json: '<e>' must be an integer"),
        ({"tokenizer_config": {"added_tokens_decoder": []}}, "/tokenizer_config.json: 'added_tokens_decoder' must be "
         "an object"),
        ({"tokenizer_config": {"added_tokens_decoder": {"3": {"content": "<e>", "special": 1}}}},
         "/tokenizer_config.json: 'special' of '3' of 'added_tokens_decoder' must be true or false"),
        ({"tokenizer_config": {"added_tokens_decoder": {"x": {"content": "<e>"}}}}, "/tokenizer_config.json: "
         "added_tokens_decoder must have ids as its names, got 'x'"),
    ],
)  # fmt: skip
def test_tokens_added_beside_a_vocabulary_that_are_not_built_are_refused(tmp_path, files, said):
    assert refusal(beside_vocabulary, tmp_path, **files) == f"{tmp_path}{said}"


@pytest.mark.parametrize(
    ("name", "settings", "field"),
    [
        ("tokenizer_config", {"word_tokenizer_type": "mecab", "subword_tokenizer_type": "wordpiece"},
         "word_tokenizer_type 'mecab'"),
        ("tokenizer_config", {"subword_tokenizer_type": "character"}, "subword_tokenizer_type 'character'"),
        ("tokenizer_config", {"tokenizer_class": "BertJapaneseTokenizer"}, "tokenizer_class 'BertJapaneseTokenizer'"),
        ("config", {"tokenizer_class": "BertJapaneseTokenizer"}, "tokenizer_class 'BertJapaneseTokenizer'"),
        ("config", {"tokenizer_class": "FastTokenizer"}, "tokenizer_class 'FastTokenizer'"),
        ("config", {"tokenizer_class": ["BertTokenizer"]}, "tokenizer_class ['BertTokenizer']"),
    ],
)  # fmt: skip
def test_a_vocabulary_by_which_another_tokenizer_divides_texts_is_refused(tmp_path, name, settings, field):
    ends = "is read only as BERT's own WordPiece tokenizer divides texts"
    said = f"{tmp_path / name}.json: {field}; vocab.txt {ends}"
    assert refusal(beside_vocabulary, tmp_path, **{name: settings}) == said
    (tmp_path / "vocab.txt").unlink()
    path = written(tmp_path, content())
    if "tokenizer_class" in settings:  # a tokenizer.json says itself how it divides texts
        assert load_tokenizer(path).entries == ENTRIES
    else:
        assert refusal(load_tokenizer, path) == said.replace("vocab.txt", "tokenizer.json")


@pytest.mark.parametrize("ending", ["", "Fast"])
def test_classes_that_divide_texts_as_berts_does_are_read(tmp_path, ending):
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"ab", "##b", "\u6771", "\u4eac"]
    text = "ab Abb \u6771\u4eac a"
    names = "Bert ConvBert DistilBert Electra LayoutLM Lxmert MobileBert Splinter SqueezeBert"
    (tmp_path / "vocab.txt").write_text("\n".join(entries) + "\n", encoding="utf-8")
    for name in names.split():
        named = {"tokenizer_class": f"{name}Tokenizer{ending}", "do_lower_case": False}
        written(tmp_path, named, "tokenizer_config.json")
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path).tokenize(text)
        ours = load_tokenizer(tmp_path).encode(text)
        assert ours == ["<unk>" if one == "[UNK]" else one for one in theirs] and ours[1:3] == ["##b", "<unk>"]
    # Names in older folders, which AutoTokenizer of today refuses or reads without their do_lower_case, and what
    # today's folders say of any tokenizer.
    older = "DPRContextEncoder DPRQuestionEncoder DPRReader PreTrained Realm RetriBert"
    for name in (*(f"{one}Tokenizer{ending}" for one in older.split()), "TokenizersBackend"):
        named = {"tokenizer_class": name, "do_lower_case": False}
        written(tmp_path, named, "tokenizer_config.json")
        assert load_tokenizer(tmp_path).encode(text) == ours
    written(tmp_path, {"tokenizer_class": "BertJapaneseTokenizer"}, "config.json")  # the other file counts
    assert load_tokenizer(tmp_path).encode(text) == ours


def test_a_vocabulary_is_utf_8(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"ab\n\xff\n")
    assert refusal(read_entries, path) == f"{path}: not UTF-8 at byte 3; vocab.txt is a UTF-8 text file"


def test_settings_have_the_names_of_transformers(tmp_path):
    path = tmp_path / "tokenizer_config.json"
    assert read_settings(path) == {}
    write_settings(path, {"lowercase": True, "strip_accents": None, "split_chinese": False}, {})
    text = path.read_text()
    assert text == (
        '{\n  "tokenizer_class": "BertTokenizer",\n  "do_lower_case": true,\n  "strip_accents": null,\n'
        '  "tokenize_chinese_chars": false\n}\n'
    )
    assert read_settings(path) == {"lowercase": True, "split_chinese": False}
    for name in ("do_lower_case", "strip_accents", "tokenize_chinese_chars"):
        for value in (1, "true", []):
            said = f"{path}: {name} is {value!r}, neither true nor false"
            assert refusal(read_settings, written(tmp_path, {name: value}, path.name)) == said


def test_entries_and_settings_of_a_tokenizer_json(tmp_path):
    assert read_json(written(tmp_path, content())) == (ENTRIES, {"lowercase": True, "split_chinese": False})
    more = [{"content": "<x>", "id": 3, "special": True}, {"content": "a", "id": 1, "special": True}]
    assert read_json(written(tmp_path, content(added_tokens=more)))[0] == [*ENTRIES, "<x>"]
    turned = content()
    turned["model"]["vocab"] = {"a": 1, "##b": 2, "[UNK]": 0}
    turned["normalizer"] |= {"strip_accents": True, "lowercase": None, "handle_chinese_chars": True}
    assert read_json(written(tmp_path, turned)) == (ENTRIES, {"strip_accents": True, "split_chinese": True})


@pytest.mark.parametrize(
    ("part", "name", "value", "usual"),
    [
        ("model", "type", "BPE", "WordPiece"),
        ("model", "unk_token", "<unk>", "[UNK]"),
        ("model", "continuing_subword_prefix", "@@", "##"),
        ("model", "max_input_chars_per_word", 99, 100),
        ("normalizer", "type", "NFC", "BertNormalizer"),
        ("normalizer", "clean_text", False, True),
        ("pre_tokenizer", "type", "Whitespace", "BertPreTokenizer"),
    ],
)
def test_tokenizers_that_are_not_berts_are_refused(tmp_path, part, name, value, usual):
    changed = content()
    changed[part][name] = value
    path, ending = tmp_path / "tokenizer.json", "only BERT's WordPiece tokenizers are read from tokenizer.json"
    assert refusal(read_json, written(tmp_path, changed)) == f"{path}: {part} {name} {value!r}, not {usual!r}; {ending}"
    said = refusal(read_json, written(tmp_path, content(**{part: None})))
    assert said.startswith(f"{path}: {part} type None, not ") and said.endswith(ending)


@pytest.mark.parametrize(
    ("vocabulary", "added", "said"),
    [
        ([], [], "has no vocabulary, or its added_tokens are not objects with a content"),
        ({"a": 0}, ["x"], "has no vocabulary, or its added_tokens are not objects with a content"),
        ({"a": 0}, [{"content": "x", "id": "1"}], "has no vocabulary, or its added_tokens are not objects with a "
         "content"),
        ({"a": 0}, [{"content": "x", "id": 1}, {"content": "y", "id": 2, "special": False}], "adds tokens that are no "
         "special symbols, which is not built: x; y"),
        ({"a": 1}, [], "the ids of its 1 entry are not 0 to 0"),
        ({"a": 0, "b": 0}, [], "the ids of its 2 entries are not 0 to 1"),
        ({"a": 0, "b": True}, [], "the ids of its 2 entries are not 0 to 1"),
        ({"a": 0}, [{"content": "x", "special": True}], "the ids of its 2 entries are not 0 to 1"),
    ],
)  # fmt: skip
def test_vocabularies_that_are_none_are_refused(tmp_path, vocabulary, added, said):
    changed = content(added_tokens=added)
    changed["model"]["vocab"] = vocabulary
    assert refusal(read_json, written(tmp_path, changed)) == f"{tmp_path / 'tokenizer.json'}: {said}"


def test_a_setting_of_the_normalizer_must_be_true_or_false(tmp_path):
    changed = content()
    changed["normalizer"]["handle_chinese_chars"] = 1
    said = f"{tmp_path / 'tokenizer.json'}: handle_chinese_chars is 1, neither true nor false"
    assert refusal(read_json, written(tmp_path, changed)) == said


def test_a_wordpiece_tokenizer_is_known_by_its_model(tmp_path):
    assert is_wordpiece(written(tmp_path, content()))
    assert not is_wordpiece(written(tmp_path, {"model": {"type": "BPE"}}))
    assert not is_wordpiece(written(tmp_path, {"model": {"type": "BPE", "max_input_chars_per_word": 100}}))
    assert not is_wordpiece(written(tmp_path, {"model": {"continuing_subword_prefix": "##", "merges": []}}))
    assert not is_wordpiece(written(tmp_path, {"model": ["type", "WordPiece"]})) and not is_wordpiece(
        written(tmp_path, {})
    )


def test_a_wordpiece_model_may_leave_out_its_type_as_older_files_do(tmp_path):
    """bert-base-uncased's file is one. The settings beside it count there, as transformers has it."""
    whole = content(version="1.0", added_tokens=[])
    del whole["model"]["type"]
    path = written(tmp_path, whole)
    assert is_wordpiece(path) and read_json(path) == (ENTRIES, {"lowercase": True, "split_chinese": False})
    assert [load_tokenizer(path).word_start(entry) for entry in ENTRIES] == [True, True, False]
    for lowercase in (True, False):
        written(tmp_path, {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase}, "tokenizer_config.json")
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        assert load_tokenizer(path).encode("Ab A") == [
            {"[UNK]": "<unk>"}.get(piece, piece) for piece in theirs.tokenize("Ab A")
        ]
    assert load_tokenizer(path).encode("Ab a") == ["<unk>", "a"]


# The tokenizer that is made of them


def test_settings_beside_a_vocabulary_have_the_last_word(tmp_path):
    path = written(tmp_path, content())
    own = load_tokenizer(path)
    assert (own.entries, own.lowercase, own.strip_accents, own.split_chinese) == (ENTRIES, True, None, False)
    written(tmp_path, {"do_lower_case": False, "strip_accents": True}, "tokenizer_config.json")
    own = load_tokenizer(tmp_path)
    assert (own.lowercase, own.strip_accents, own.split_chinese) == (False, True, False)
    said = f"{path}: lower case was asked to be True, the tokenizer's files say False"
    assert refusal(load_tokenizer, tmp_path, lowercase=True) == said
    assert load_tokenizer(tmp_path, lowercase=False).lowercase is False


@pytest.mark.parametrize(
    ("entries", "capitals"),
    [
        (["a", "[CLS]"], False),
        (["A"], True),
        (["##A"], True),
        (["[A"], True),
        (["A]"], True),
        (["É"], True),
        (["1"], False),
    ],
)
def test_a_vocabulary_is_uncased_where_nothing_says_it_and_no_entry_but_special_ones_has_capitals(
    tmp_path, entries, capitals
):
    (tmp_path / "vocab.txt").write_text("\n".join(["[UNK]", *entries, ""]), encoding="utf-8")
    for path in (tmp_path, tmp_path / "vocab.txt"):
        assert load_tokenizer(path).lowercase is not capitals
        for lowercase in (False, True):
            assert load_tokenizer(path, lowercase=lowercase).lowercase is lowercase
    own = load_tokenizer(tmp_path)
    assert (own.strip_accents, own.split_chinese) == (None, True)


def test_an_entry_that_is_called_like_another_ones_symbol_gets_a_free_name(tmp_path):
    """Where BERT's entry is missing, the one that is called like our symbol stands for it."""
    own = WordPieceTokenizer(["[UNK]", "<s>", "[CLS]", "<mask>", "[MASK]", "</s>", "a"])
    assert own.native_symbols() == ["<unk>", "[s]", "<s>", "[mask]", "<mask>", "</s>", "a"]
    own.save(tmp_path)
    assert load_tokenizer(tmp_path).native_symbols() == own.native_symbols()


@pytest.mark.parametrize("begin", ["[BOS]", {"content": "[BOS]", "lstrip": False}])
def test_special_symbols_are_the_entries_that_the_settings_name(tmp_path, begin):
    entries = ["[UNK]", "[CLS]", "[BOS]", "[EOS]", "a"]
    path = written(tmp_path, content())
    whole = content()
    whole["model"]["vocab"] = {entry: i for i, entry in enumerate(entries)}
    written(tmp_path, whole)
    named = {"cls_token": begin, "sep_token": "[EOS]", "mask_token": "[none]", "pad_token": None}
    written(tmp_path, named, "tokenizer_config.json")
    for own in (load_tokenizer(path), load_tokenizer(path).with_entries([])):
        assert own.native_symbols() == ["<unk>", "[CLS]", "<s>", "</s>", "a"] and own.encode("a b") == ["a", "<unk>"]
    path.unlink()
    own.save(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (settings["cls_token"], settings["sep_token"]) == ("[BOS]", "[EOS]") and "mask_token" not in settings
    assert load_tokenizer(tmp_path).native_symbols() == own.native_symbols()


def test_special_symbols_that_are_called_like_words_are_words_in_texts(tmp_path):
    """transformers finds its special symbols in texts; here no text contains one, whatever it is called."""
    words = ["pad", "cls", "sep", "mask"]
    entries = [*words, "[UNK]", "a", "ma", "##s", "##k", "[MASK]"]
    named = {f"{word}_token": word for word in words}
    written(tmp_path, named, "tokenizer_config.json")
    (tmp_path / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries))
    own = load_tokenizer(tmp_path)
    assert own.native_symbols() == ["<pad>", "<s>", "</s>", "<mask>", "<unk>", *entries[5:]]
    pieces = ["ma", "##s", "##k"]
    text = "a mask masks " + " ".join(words) + " [MASK] maskmask"
    assert own.encode("a mask masks") == ["a", *pieces, *pieces, "##s"]
    assert set(own.encode(text)) == {"a", "<unk>", *pieces}
    symbols = own.native_symbols()
    ids, sizes, offsets = own.encode_offsets(["mask a"])
    assert [symbols[i] for i in ids] == [*pieces, "a"] and offsets.tolist() == [[0, 2], [2, 3], [3, 4], [5, 6]]
    assert own.content["model"]["vocab"] == {entry: i for i, entry in enumerate(entries)}
    own.save(tmp_path)
    assert load_tokenizer(tmp_path).encode(text) == own.encode(text)


def test_unknown_words_are_unk(tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\n<unk>\n")
    path = written(tmp_path, {"unk_token": "<unk>"}, "tokenizer_config.json")
    said = f"{path}: unk_token '<unk>', not '[UNK]'; no other is built for WordPiece"
    assert refusal(load_tokenizer, tmp_path) == said
    path.unlink()
    (tmp_path / "vocab.txt").write_text("<unk>\na\n")
    said = f"{tmp_path / 'vocab.txt'}: no [UNK] among its 2 entries; is it a WordPiece vocabulary?"
    assert refusal(load_tokenizer, tmp_path) == said


def test_a_copy_with_more_entries_keeps_its_settings():
    own = WordPieceTokenizer(ENTRIES, lowercase=True, strip_accents=False, split_chinese=False)
    more = own.with_entries(["<x>"])
    assert more.entries == [*ENTRIES, "<x>"] and own.entries == ENTRIES
    assert (more.lowercase, more.strip_accents, more.split_chinese) == (True, False, False)


def test_beside_a_vocabulary_the_tokenizer_json_counts_and_beside_a_file_of_ours_it_does_not(tmp_path):
    assert tokenizer_files(tmp_path) == []
    (tmp_path / "tokenizer.json").touch()
    assert tokenizer_files(tmp_path) == ["tokenizer.json"]
    (tmp_path / "vocab.txt").touch()
    assert tokenizer_files(str(tmp_path)) == ["tokenizer.json"]
    (tmp_path / "anna.json").touch()
    assert tokenizer_files(tmp_path) == ["anna.json"]
    (tmp_path / "tokenizer.json").unlink()
    assert tokenizer_files(tmp_path) == ["vocab.txt", "anna.json"]


def test_other_tokenizers_have_their_own_rules_for_case(tmp_path):
    path = written(tmp_path, {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})
    said = f"{path}: this tokenizer has its own rules for case; leave --lowercase out"
    assert refusal(load_tokenizer, path, lowercase=False) == said
    assert load_tokenizer(path).encode("a") == ["a"]
