"""Tokenizers from ``tokenizer.json``: special symbols, words' beginnings, offsets, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from tests.support.locales import plain_locale
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tokenization import json_tokenizer, word_starts
from unified.tokenization.json_tokenizer import SPECIAL_FIELDS, JsonTokenizer, added_token, write_special

LETTERS = ["a", "b", "c", "ab"]


def bpe(*special: str, level: object = None, **changes) -> dict:
    """Byte-level where nothing else is said; ``special`` are the first entries."""
    begin = "\u0120" if level is None else "\u2581"
    entries = [*special, *LETTERS, begin, f"{begin}a"]
    ids = {entry: i for i, entry in enumerate(entries)}
    unknown = special[0] if special else None
    made = Tokenizer(models.BPE(ids, [("a", "b"), (begin, "a")], unk_token=unknown))
    made.pre_tokenizer = level or pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel() if level is None else decoders.Metaspace()
    return {**json.loads(made.to_str()), **changes}


def tokenizer(content: dict | None = None, special: dict | None = None) -> JsonTokenizer:
    found = {"<unk>": "<unk>", "<s>": "<s>"} if special is None else special
    return JsonTokenizer(content or bpe("<unk>", "<s>"), found)


def loaded(folder: Path, content: dict, settings: dict | None = None) -> JsonTokenizer:
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "tokenizer_config.json").unlink(missing_ok=True)
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return JsonTokenizer.load(folder / "tokenizer.json")


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return str(raised.value)


# Entries and special symbols


def test_entries_stand_in_the_order_of_their_ids_with_added_ones():
    added = [{"id": 2, "content": "b", "special": True}, {"id": 3, "content": "<e>", "special": True}]
    content = {"model": {"type": "BPE", "vocab": {"c": 1, "a": 0}, "merges": []}, "added_tokens": added}
    assert tokenizer(content).entries == ["a", "c", "b", "<e>"]
    known = {**added_token(1, "c"), "special": False}  # in the vocabulary already
    assert tokenizer({**content, "added_tokens": [known]}).entries == ["a", "c"]
    assert tokenizer({**content, "added_tokens": None}).entries == ["a", "c"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "has no vocabulary, or its added_tokens are not objects with a content"),
        ({"model": []}, "has no vocabulary, or its added_tokens are not objects with a content"),
        ({"model": {"vocab": [["a", 0.0], "b"]}}, "has no vocabulary, or its added_tokens are not objects with a "
         "content"),
        ({"model": {"vocab": [["a", 0.0, 1]]}}, "has no vocabulary, or its added_tokens are not objects with a "
         "content"),
        ({"model": {"vocab": [[1, 0.0]]}}, "has no vocabulary, or its added_tokens are not objects with a content"),
        ({"model": {"vocab": {}}, "added_tokens": ["a"]}, "has no vocabulary, or its added_tokens are not objects "
         "with a content"),
        ({"model": {"vocab": {"a": 0}}, "added_tokens": [{"content": "b", "id": "1"}]}, "has no vocabulary, or its "
         "added_tokens are not objects with a content"),
        ({"model": {"vocab": {"a": 1}}}, "the ids of its 1 entry are not 0 to 0"),
        ({"model": {"vocab": {"a": 0, "b": 0}}}, "the ids of its 2 entries are not 0 to 1"),
        ({"model": {"vocab": {"a": 0, "b": True}}}, "the ids of its 2 entries are not 0 to 1"),
        ({"model": {"vocab": {"a": 0}}, "added_tokens": [{"content": "b", "special": True}]}, "the ids of its 2 "
         "entries are not 0 to 1"),
        ({"model": {"vocab": {"b" * 4098: 0, "a" * 5000: 1, "c" * 4097: 2}}}, "an entry of 5,000 characters; the "
         "longest may have 4,096"),
        ({"model": {"vocab": {"a" * 4097: 0}}}, "an entry of 4,097 characters; the longest may have 4,096"),
    ],
)  # fmt: skip
def test_vocabularies_that_are_none_are_refused(content, said):
    assert refusal(JsonTokenizer, content, {}) == f"tokenizer.json: {said}"
    assert refusal(JsonTokenizer, content, {}, "x/y.json") == f"x/y.json: {said}"


def test_added_tokens_that_are_no_special_symbols_are_found_in_texts():
    """They keep their ids, though special symbols stand between them."""
    content, plain = bpe("<unk>"), {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    first = len(content["model"]["vocab"])
    contents = ["  ", "<mask>", "cab", "<e>", "[u1]"]
    content["added_tokens"] = [
        {"id": first + i, "content": entry, "special": entry in ("<mask>", "<e>"), **plain}
        for i, entry in enumerate(contents)
    ]
    ours = tokenizer(content, {"<unk>": "<unk>", "<mask>": "<mask>"})
    assert ours.native_symbols()[first:] == ["\u2423\u2423", "<mask>", "cab", "<e>", "[u1]"]
    assert ours.encode("abcabb[u1]") == ["ab", "cab", "b", "[u1]"]
    ids, sizes = ours.encode_ids(["abcabb[u1]", "", "<e>c"])
    assert ids[:4].tolist() == [4, first + 2, 2, first + 4] and sizes.tolist() == [4, 0, len(ids) - 4]
    assert first + 3 not in ids  # special symbols in a text are text
    ids, _, offsets = ours.encode_offsets(["acab"])
    assert ids.tolist() == [1, first + 2] and offsets.tolist() == [[0, 1], [1, 4]]
    assert ours.decode(["a", "\u2423\u2423", "cab"]) == "a  cab"


def test_an_entry_may_have_4096_characters():
    content = bpe("<unk>")
    content["model"]["vocab"]["a" * 4096] = len(content["model"]["vocab"])
    assert len(tokenizer(content).entries[-1]) == 4096


def test_a_model_that_the_library_does_not_read_is_refused():
    content = bpe("<unk>")
    content["model"]["type"] = "Nothing"
    assert refusal(JsonTokenizer, content, {}).startswith(
        "tokenizer.json: not a tokenizer that the library tokenizers reads ("
    )


def test_a_model_may_leave_out_its_type_as_older_files_do():
    """The library tokenizers goes by the other fields."""
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -1.5), ("ab", -2.0)], unk_id=0))
    for content in (bpe("<unk>"), json.loads(unigram.to_str())):
        typed = tokenizer(content)
        del content["model"]["type"]
        untyped = tokenizer(content)
        assert untyped.native_symbols() == typed.native_symbols() and untyped.encode("abba") == typed.encode("abba")


@pytest.mark.parametrize(
    "name", ["RobertaTokenizer", "RobertaTokenizerFast", "GPT2Tokenizer", "GPT2TokenizerFast", "Other", ["x"]]
)
@pytest.mark.parametrize("stated", [None, True, False])
@pytest.mark.parametrize("of_file", [True, False])
def test_a_space_before_a_text_is_as_the_class_has_it(tmp_path, name, stated, of_file):
    """RoBERTa's and GPT-2's classes of transformers pass over what tokenizer.json says of it."""
    content = bpe("<unk>", "<s>", level=None)
    content["pre_tokenizer"]["add_prefix_space"] = of_file
    settings = {"tokenizer_class": name} | ({} if stated is None else {"add_prefix_space": stated})
    own = isinstance(name, str) and name != "Other"
    expected = bool(stated) if own else of_file
    ours = loaded(tmp_path, content, settings)
    assert ours.encode("a")[0] == ("\u0120a" if expected else "a")
    ours.save(tmp_path)
    assert JsonTokenizer.load(tmp_path / "tokenizer.json").encode("a") == ours.encode("a")


@pytest.mark.parametrize(
    ("settings", "special"),
    [
        (None, {"<s>": "<s>", "<pad>": "<pad>", "[SEP]": "</s>", "<mask>": "<mask>"}),
        ({}, {"<s>": "<s>", "<pad>": "<pad>", "[SEP]": "</s>", "<mask>": "<mask>"}),
        ({"cls_token": "[CLS]", "bos_token": "<s>"}, {"[CLS]": "<s>", "<pad>": "<pad>", "[SEP]": "</s>",
         "<mask>": "<mask>"}),
        ({"cls_token": "absent", "bos_token": "[CLS]"}, {"[CLS]": "<s>", "<pad>": "<pad>", "[SEP]": "</s>",
         "<mask>": "<mask>"}),
        ({"cls_token": {"content": "a"}, "eos_token": "b", "unk_token": "c", "mask_token": "ab", "pad_token": "<s>"},
         {"a": "<s>", "<s>": "<pad>", "b": "</s>", "c": "<unk>", "ab": "<mask>"}),
        ({"cls_token": "<pad>", "pad_token": "<pad>", "sep_token": 5}, {"<pad>": "<s>", "[SEP]": "</s>",
         "<mask>": "<mask>"}),
    ],
)  # fmt: skip
def test_special_symbols_are_named_by_the_settings_or_as_usual(tmp_path, settings, special):
    content = bpe("<s>", "[CLS]", "<pad>", "[SEP]", "<mask>")
    content["model"]["unk_token"] = None
    found = loaded(tmp_path, content, settings)
    assert found.special == special
    symbols = dict(zip(found.entries, found.native_symbols(), strict=True))
    assert {entry: symbols[entry] for entry in special} == special
    others = {"<s>": "[s]", "<pad>": "[pad]", "<mask>": "[mask]"}  # the names are taken
    assert all(symbols[one] == others.get(one, one) for one in symbols.keys() - special)


@pytest.mark.parametrize(
    ("entry", "symbol"),
    [("<s>", "<s>"), ("[CLS]", "<s>"), ("<cls>", "<s>"), ("<pad>", "<pad>"), ("[PAD]", "<pad>"), ("</s>", "</s>"),
     ("[SEP]", "</s>"), ("<sep>", "</s>"), ("<unk>", "<unk>"), ("[UNK]", "<unk>"), ("<mask>", "<mask>"),
     ("[MASK]", "<mask>")],
)  # fmt: skip
def test_usual_names_of_special_symbols(tmp_path, entry, symbol):
    assert loaded(tmp_path, bpe(entry)).special == {entry: symbol}


def test_special_symbols_that_the_vocabulary_lacks_are_none():
    assert tokenizer(special={"<unk>": "<unk>", "absent": "<mask>"}).special == {"<unk>": "<unk>"}


# Text


def test_special_symbols_in_a_text_are_text_and_nothing_is_put_around_it():
    content = bpe("<unk>", "<s>")
    content["added_tokens"] = [added_token(1, "<s>")]
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}], "pair": [],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}  # fmt: skip
    content |= {"post_processor": template, "truncation": {"max_length": 1, "stride": 0, "strategy": "LongestFirst",
                "direction": "Right"}, "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_id": 0,
                "pad_type_id": 0, "pad_token": "<unk>", "pad_to_multiple_of": None}}  # fmt: skip
    own = tokenizer(content)
    assert own.encode("abc <s>") == ["ab", "c", "\u0120", "<unk>", "<unk>", "<unk>"]
    assert own.content is content
    scores = [["<unk>", 0.0], ["<s>", -1.0], ["a", -2.0], ["<", -3.0], ["s", -3.0], [">", -3.0]]
    unigram = {"model": {"type": "Unigram", "unk_id": 0, "vocab": scores}}
    assert tokenizer(unigram).encode("a<s>") == ["a", "<", "s", ">"]
    assert tokenizer(unigram).entries == [entry for entry, _ in scores]
    assert unigram["model"]["vocab"][1] == ["<s>", -1.0]


@pytest.mark.parametrize("kind", ["Unigram", "BPE"])
def test_special_symbols_beyond_ours_are_text_too(kind):
    """Such as <extra_id_0> of T5, which is neither the separator nor the mask; other added tokens are found."""
    entries = ["<unk>", "<s>", "a", "<", "e", ">", "<e>", "<f>", "<n>"]
    by_kind = {
        "Unigram": {"unk_id": 0, "vocab": [[entry, -float(len(entry) == 1)] for entry in entries]},
        "BPE": {"unk_token": "<unk>", "vocab": {entry: i for i, entry in enumerate(entries)}, "merges": [],
                "ignore_merges": True},
    }  # fmt: skip
    named = {**added_token(8, "<n>"), "special": False}
    added = [added_token(0, "<unk>"), added_token(6, "<e>"), named, added_token(9, "[x]")]
    own = tokenizer({"model": {"type": kind, **by_kind[kind]}, "added_tokens": added})
    assert own.encode("<e>") == ["<", "e", ">"] and own.encode("<n>a") == ["<n>", "a"]
    assert own.encode("<f>") == ["<f>"] and set(own.encode("[x]")) == {"<unk>"}
    assert own.native_symbols() == own.entries == [*entries, "[x]"]


@pytest.mark.parametrize("merges", [[["<", "s"], ["<s", ">"]], ["< s", "<s >"]])
def test_a_vocabulary_by_words_or_merges_does_not_find_special_symbols_in_a_text(merges):
    ids = {entry: i for i, entry in enumerate(["<unk>", "<s>", "a", "<", "s", ">", "<s"])}
    words = {"type": "WordLevel", "unk_token": "<unk>", "vocab": ids}
    bpe_model = {"type": "BPE", "unk_token": "<unk>", "vocab": ids, "merges": merges}
    for model, pieces in (
        (words, ["a", "<unk>", "a"]),
        (bpe_model, ["a", "<s", ">", "a"]),
        ({**bpe_model, "ignore_merges": True}, ["a", "<s", ">", "a"]),
    ):
        own = tokenizer({"model": model, "pre_tokenizer": {"type": "WhitespaceSplit"}})
        assert own.encode("a <s> a") == pieces
        assert 1 not in own.encode_ids(["<s>", "<unk>"])[0]
        assert own.content["model"] == model and own.entries == list(ids)


def metaspace(scheme: str) -> dict:
    return bpe("<unk>", level=pre_tokenizers.Metaspace(prepend_scheme=scheme))


def replaced(*before: normalizers.Normalizer) -> dict:
    """A tokenizer whose normalizer writes a mark for every space, as Llama's and Gemma's do."""
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.Sequence([*before, normalizers.Replace(" ", "\u2581")])
    level = pre_tokenizers.Split("\u2581", "merged_with_next")
    return bpe("<unk>", level=level, normalizer=json.loads(made.to_str())["normalizer"])


@pytest.mark.parametrize(
    ("content", "mark", "bare"),
    [
        (bpe("<unk>"), "\u0120", True),
        (bpe("<unk>", pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
         "use_regex": True}), "\u0120", False),
        (metaspace("always"), "\u2581", False),
        (metaspace("first"), "\u2581", False),
        (metaspace("never"), "\u2581", True),
        (replaced(), "\u2581", True),
        (replaced(normalizers.Prepend("\u2581")), "\u2581", False),
    ],
)  # fmt: skip
def test_white_space_before_a_text_begins_a_word_once(content, mark, bare):
    """Whether the tokenizer marks the first word of a text (``bare`` where it does not) or not."""
    own = tokenizer(content)
    first = ["a"] if bare else [f"{mark}a"]
    for text, pieces in (
        ("a", first), (" a", [f"{mark}a"]), ("\t\n a ", [f"{mark}a"]), ("a a", [*first, f"{mark}a"]),
        ("", []), (" \t", []),
    ):  # fmt: skip
        assert own.encode(text) == pieces, text
        for ids in (own.encode_ids([text])[0], own.encode_offsets([text])[0]):
            assert [own.entries[i] for i in ids] == pieces, text


def test_ids_sizes_and_characters_of_many_texts():
    own, texts = tokenizer(), ["ab  a", "", " c", "\t a b", " "]
    ids, sizes = own.encode_ids(texts)
    assert [own.entries[i] for i in ids] == ["ab", "\u0120a", "\u0120", "c", "\u0120a", "\u0120", "b"]
    assert sizes.tolist() == [2, 0, 2, 3, 0] and (ids.dtype, sizes.dtype) == (np.int32, np.int64)
    again, counts, offsets = own.encode_offsets(texts)
    assert again.tolist() == ids.tolist() and counts.tolist() == sizes.tolist() and offsets.dtype == np.int64
    # A blank before a text has no character of its own.
    assert offsets.tolist() == [[0, 2], [2, 4], [0, 1], [0, 1], [0, 1], [1, 2], [2, 3]]
    metaspace = tokenizer(bpe("<unk>", level=pre_tokenizers.Metaspace()))
    assert metaspace.encode_offsets(["c"])[2].tolist() == [[0, 1], [0, 1]]  # the space put before it has no extent


def test_a_mark_that_is_put_before_a_text_has_its_first_character():
    begin = {"type": "Replace", "pattern": {"Regex": "^"}, "content": "\u2581"}
    own = tokenizer(bpe("<unk>", level=pre_tokenizers.Split(" ", "removed"), normalizer=begin))
    ids, _, offsets = own.encode_offsets(["c b"])
    assert [own.entries[i] for i in ids] == ["\u2581", "c", "b"] and offsets.tolist() == [[0, 1], [0, 1], [2, 3]]


class PanicException(BaseException):
    """As pyo3 raises it where code of the library fails."""


@pytest.mark.parametrize("raised", [PanicException("says why"), Exception("says why"), RuntimeError("says why")])
def test_what_fails_in_the_library_is_a_refusal(monkeypatch, raised):
    own = failing(monkeypatch, raised)
    assert refusal(own.encode, "a") == "tokenizer.json: cannot divide a text into tokens (says why)"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_no_refusal(monkeypatch, raised):
    with pytest.raises(raised):
        failing(monkeypatch, raised()).encode("a")


def failing(monkeypatch, raised: BaseException) -> JsonTokenizer:
    """A tokenizer of which the library raises ``raised`` where it shall divide a text."""

    class Failing:
        def encode(self, text):
            raise raised

        def token_to_id(self, entry):
            raise AssertionError("there are no added tokens")

    with monkeypatch.context() as patched:
        patched.setattr(json_tokenizer, "Tokenizer", SimpleNamespace(from_str=lambda text: Failing()))
        return tokenizer()


def test_a_tokenizer_without_an_unknown_symbol_may_refuse_a_text():
    content = {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "<unk>"}}
    own = tokenizer(content)
    assert own.encode("a") == ["a"]
    for call in (own.encode, lambda text: own.encode_ids([text]), lambda text: own.encode_offsets([text])):
        assert refusal(call, "b").startswith("tokenizer.json: cannot divide a text into tokens (")


def test_pieces_become_a_text_by_the_decoder_or_with_spaces_between():
    own = tokenizer()
    assert own.decode(["\u0120a", "b", "\u0120", "c"]) == "ab c"
    assert tokenizer(bpe("<unk>", decoder=None)).decode(["a", "b", "c"]) == "a b c"


@pytest.mark.parametrize(
    ("changes", "begin"),
    [
        ({}, "\u0120"),
        ({"pre_tokenizer": None}, None),
        ({"pre_tokenizer": {"type": "Whitespace"}}, None),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "ByteLevel",
          "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]}}, "\u0120"),
        ({"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}},
         "\u2581"),
        ({"pre_tokenizer": None, "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}},
         "\u2581"),
        ({"pre_tokenizer": None, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type":
          "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}}, "\u2581"),
    ],
)  # fmt: skip
def test_words_begin_with_the_mark_of_the_pre_tokenizer(changes, begin):
    own = tokenizer(bpe("<unk>", **changes))
    assert [own.word_start(f"{mark}a") for mark in ("\u0120", "\u2581", "", "a\u0120")] == [
        None if begin is None else own_mark == begin for own_mark in ("\u0120", "\u2581", "", "a\u0120")
    ]
    assert (word_starts(own, Vocabulary(["a"])) is None) == (begin is None)


# Files


def test_what_is_saved_is_loaded(tmp_path):
    own = loaded(tmp_path, bpe("[UNK]", "[CLS]", "[SEP]", "\u00e9"))
    with plain_locale():
        own.save(tmp_path)
    back = JsonTokenizer.load(tmp_path / "tokenizer.json")
    assert back.content == own.content and back.special == own.special and back.entries == own.entries
    text = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    assert text.endswith("}\n") and "\u00e9" in text
    settings = (tmp_path / "tokenizer_config.json").read_text(encoding="utf-8")
    assert json.loads(settings) == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]",
    }  # fmt: skip
    assert added_token(5, "<x>") == {
        "id": 5, "content": "<x>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
        "special": True,
    }  # fmt: skip


def test_special_symbols_are_written_under_the_first_of_their_fields(tmp_path):
    with plain_locale():
        write_special(tmp_path / "x.json", dict(zip(SPECIAL_FIELDS, "1234\u00e9", strict=True)))
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    fields = {"cls_token": "1", "pad_token": "2", "sep_token": "3", "unk_token": "4", "mask_token": "\u00e9"}
    assert json.loads(text).items() >= fields.items() and '"\u00e9"' in text and text.startswith('{\n  "')


def test_refusals_of_a_file_name_it(tmp_path):
    said = refusal(loaded, tmp_path, {"model": 5})
    assert (
        said == f"{tmp_path / 'tokenizer.json'}: has no vocabulary, or its added_tokens are not objects with a content"
    )


def test_normalizers_that_are_no_objects_are_passed_over():
    content = bpe("<unk>")
    content["normalizer"] = json.loads(Tokenizer(models.BPE()).to_str())["normalizer"]
    assert content["normalizer"] is None and tokenizer(content).word_start("\u0120a")
    made = Tokenizer.from_str(json.dumps(content))
    made.normalizer = normalizers.Lowercase()
    assert tokenizer(json.loads(made.to_str())).encode("A") == ["a"]
