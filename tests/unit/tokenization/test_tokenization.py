"""Tokenizers against what they must mean: round trips, brute-force WordPiece, word starts, and what is refused."""

import io
import pickle
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tokenization import load_tokenizer, ordinary_symbols, word_starts
from unified.tokenization.json_tokenizer import JsonTokenizer
from unified.tokenization.symbol_tokenizer import SymbolTokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEGÄéß"
MARKS = ".,;!?()'-"


def sentences(count, seed=0, words=2000):
    """Sentences over a fixed list of random words, some of them followed by a punctuation mark."""
    rng = np.random.default_rng(seed)
    lexicon = ["".join(rng.choice(list(LETTERS), size=rng.integers(1, 9))) for _ in range(words)]
    lexicon = [word + (rng.choice(list(MARKS)) if rng.random() < 0.2 else "") for word in lexicon]
    frequent = np.minimum(rng.geometric(0.003, size=(count, 12)) - 1, words - 1)
    return [" ".join(lexicon[i] for i in row[: rng.integers(1, 12)]) for row in frequent]


TEXT = sentences(800)


def train(kind, text=TEXT, **options):
    return TokenizerSource(name=kind, **options).train(text)


@pytest.fixture(scope="module")
def tokenizers():
    return {
        "unigram": train("unigram", vocabulary_size=300),
        "bpe": train("bpe", vocabulary_size=300),
        "char": train("char"),
        "wordpiece": train("wordpiece", vocabulary_size=300),
        "anna": train("anna", vocabulary_size=500, word_share=0.3),
    }


KINDS = ["unigram", "bpe", "char", "wordpiece", "anna"]


def letters(text):
    return "".join(text.split())


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_gives_the_text_back_up_to_whitespace(tokenizers, kind):
    for sentence in sentences(300, seed=1):
        decoded = tokenizers[kind].decode(tokenizers[kind].encode(sentence))
        if kind in ("wordpiece", "anna"):  # spaces beside punctuation are its own
            assert letters(decoded) == letters(sentence)
        else:
            assert decoded == sentence


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_byte_fallback_loses_no_character(kind):
    tokenizer = train(kind, vocabulary_size=600, byte_fallback=True, normalization="identity")
    text = "Ω \U0001f600 漢字 \u200b x\u0301 zzz"
    pieces = tokenizer.encode(text)
    assert tokenizer.decode(pieces) == text
    assert set(pieces) <= set(tokenizer.native_symbols())


def test_normalization_is_nfkc_unless_asked_otherwise():
    text = "ﬁve Ⅷ ｘ ²"
    for name, expected in [(None, unicodedata.normalize("NFKC", text)), ("identity", text)]:
        tokenizer = train("unigram", vocabulary_size=300, normalization=name)
        assert tokenizer.processor.normalize(text).replace("\u2581", " ").strip() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_the_pieces(tokenizers, kind):
    tokenizer = tokenizers[kind]
    symbols = tokenizer.native_symbols()
    texts = ["", *sentences(50, seed=2), "Ω", "   "]
    flat, sizes = tokenizer.encode_ids(texts)
    assert flat.dtype == np.int32 and sizes.dtype == np.int64 and len(flat) == sizes.sum()
    for text, ids in zip(texts, np.split(flat, np.cumsum(sizes)[:-1]), strict=True):
        assert [symbols[i] for i in ids] == tokenizer.encode(text)


def test_ids_of_a_trained_sentencepiece_model_are_those_of_the_dictionary(tokenizers):
    for kind in ("unigram", "bpe", "char"):
        vocabulary = Vocabulary(ordinary_symbols(tokenizers[kind]))
        native = tokenizers[kind].native_symbols()
        assert vocabulary.encode(native).tolist() == list(range(len(native)))


@pytest.mark.parametrize("kind", KINDS)
def test_special_symbols_written_in_a_text_stay_text(kind):
    text = [*TEXT, *["the <mask> and </s> or [MASK] [SEP] <sentinel_3> <unk> <s> a/b"] * 200]
    size = None if kind == "char" else 400
    tokenizer = TokenizerSource(name=kind, vocabulary_size=size, character_coverage=1.0).train(text)
    vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    special = vocabulary.special
    ids = vocabulary.encode(tokenizer.encode(text[-1]))
    assert ((ids >= special.ordinary_start) & (ids < special.ordinary_stop)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_special_symbols_of_unknown_characters_are_unknown(kind):
    tokenizer = TokenizerSource(name=kind).train(["\u4f60\u597d\u4e16\u754c"] * 50)
    symbols = ["<mask>", "</s>", "<s>", "<pad>", "<sentinel_3>", "[unused1]"]
    text = "\u597d".join(symbols)
    pieces = tokenizer.encode(text)
    assert pieces == [tokenizer.native_symbols()[i] for i in tokenizer.encode_ids([text])[0]]
    assert "<unk>" in pieces and not set(symbols).intersection(pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_whitespace_is_a_space(kind):
    odd = ["a\tb", "a\u00a0b", "a\u2028b", "a\x85b", " a  b ", "a\x1cb", "a\u3000b\r"]
    tokenizer = TokenizerSource(name=kind, vocabulary_size=None, character_coverage=1.0).train(odd * 20 + TEXT)
    for text in odd:
        assert tokenizer.encode(text) == tokenizer.encode("a b")
    assert not [symbol for symbol in ordinary_symbols(tokenizer) if any(c.isspace() for c in symbol)]


def test_every_symbol_of_a_dictionary_without_a_tokenizer_starts_a_word():
    tokenizer = SymbolTokenizer(["old", "house"])
    assert word_starts(tokenizer, Vocabulary(ordinary_symbols(tokenizer)))[4:6].tolist() == [True, True]


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_word_starts_divide_a_text_at_its_spaces(tokenizers, kind):
    tokenizer = tokenizers[kind]
    for sentence in sentences(200, seed=3):
        groups = []
        for piece in tokenizer.encode(sentence):
            if tokenizer.word_start(piece):
                groups.append([])
            groups[-1].append(piece)
        assert [tokenizer.decode(group) for group in groups] == sentence.split()


def basic_words(text):
    """Words and single punctuation marks, for text whose only marks are :data:`MARKS`."""
    for mark in MARKS:
        text = text.replace(mark, f" {mark} ")
    return text.split()


def wordpieces(word, entries):
    """Longest known piece from the left, again and again; [UNK] for a word that cannot be divided so."""
    pieces, start = [], 0
    while start < len(word):
        for stop in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:stop]
            if piece in entries:
                pieces.append(piece)
                start = stop
                break
        else:
            return ["<unk>"]
    return pieces


def test_wordpiece_is_greedy_longest_match(tokenizers):
    tokenizer = tokenizers["wordpiece"]
    entries = set(tokenizer.entries)
    unknown = 0
    for sentence in [s + " Ωb xΩ" for s in sentences(300, seed=4)]:
        expected = [piece for word in basic_words(sentence) for piece in wordpieces(word, entries)]
        pieces = tokenizer.encode(sentence)
        assert pieces == expected
        unknown += pieces.count("<unk>")
        starts = [piece for piece in pieces if tokenizer.word_start(piece)]
        assert len(starts) == len(basic_words(sentence))
    assert unknown >= 600


def test_wordpiece_special_entries_map_to_the_five_symbols_and_others_keep_their_order(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[unused0]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\n", encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path)
    vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    special = vocabulary.special
    assert vocabulary.symbols[4:7] == ["[unused0]", "the", "##s"]
    expected = [special.pad, 4, special.unknown, special.begin, special.separator, special.mask, 5, 6]
    assert vocabulary.encode(tokenizer.native_symbols()).tolist() == expected
    assert vocabulary.encode(tokenizer.encode("thes the [MASK]")).tolist() == [5, 6, 5, 3, 3, 3]


def test_wordpiece_uncased_drops_case_and_accents(tmp_path):
    tokenizer = WordPieceTokenizer(["[UNK]", "e", "##c", "##o", "le"], lowercase=True)
    assert tokenizer.encode("ÉCO Le") == ["e", "##c", "##o", "le"]
    tokenizer.save(tmp_path)
    assert load_tokenizer(tmp_path).encode("ÉCO Le") == ["e", "##c", "##o", "le"]
    with pytest.raises(UnifiedError, match="asked to be False.*say True"):
        load_tokenizer(tmp_path, lowercase=False)
    (tmp_path / "tokenizer_config.json").unlink()
    assert load_tokenizer(tmp_path).encode("Le") == load_tokenizer(tmp_path, lowercase=True).encode("Le") == ["le"]
    assert load_tokenizer(tmp_path, lowercase=False).encode("Le") == ["<unk>"]


@pytest.mark.parametrize("kind", ["unigram", "char"])
def test_lowercase_is_inside_the_model(kind, tmp_path):
    train(kind, lowercase=True).save(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.decode(tokenizer.encode("ABC ÄÉ dE")) == "abc äé de"
    assert not any(c.isupper() for symbol in ordinary_symbols(tokenizer) for c in symbol)


@pytest.mark.parametrize("kind", [*KINDS, "json"])
def test_files_that_are_links_stay_links(tokenizers, kind, tmp_path):
    json = JsonTokenizer(tokenizers["wordpiece"].content, {})
    saved = {**tokenizers, "json": json}[kind].save
    for folder in ("plain", "links", "far"):
        (tmp_path / folder).mkdir()
    saved(tmp_path / "plain")
    files = {path.name: path.read_bytes() for path in (tmp_path / "plain").iterdir()}
    for name in files:
        (tmp_path / "links" / name).symlink_to(tmp_path / "far" / name)
    saved(tmp_path / "links")
    assert files and all(path.is_symlink() for path in (tmp_path / "links").iterdir())
    assert {path.name: path.read_bytes() for path in (tmp_path / "far").iterdir()} == files


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_and_pickled_tokenizers_are_the_same(tokenizers, kind, tmp_path):
    original = tokenizers[kind]
    original.save(tmp_path)
    file = tmp_path / {"wordpiece": "vocab.txt", "anna": "anna.json"}.get(kind, "tokenizer.model")
    for other in (load_tokenizer(tmp_path), load_tokenizer(str(file))):
        assert other.native_symbols() == original.native_symbols()
    copy = pickle.loads(pickle.dumps(original))
    for sentence in sentences(30, seed=5):
        assert copy.encode(sentence) == load_tokenizer(tmp_path).encode(sentence) == original.encode(sentence)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
@pytest.mark.parametrize("size", [200, 500])
def test_vocabulary_size_is_what_was_asked_for(kind, size):
    assert len(train(kind, vocabulary_size=size).native_symbols()) == size


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        ("unigram", 100_000, r"the unigram tokenizer cannot be trained: .*\d+"),
        ("bpe", 100_000, r"the bpe tokenizer cannot be trained: .*\d+"),
        ("unigram", 10, "cannot be trained: .*required_chars"),
        ("wordpiece", 100_000, "gives .* entries, fewer than --vocabulary-size 100000"),
        ("wordpiece", 10, "10 entries do not hold the"),
    ],
)
def test_impossible_sizes_are_refused(kind, size, message):
    with pytest.raises(UnifiedError, match=message) as refusal:
        train(kind, vocabulary_size=size)
    assert "\n" not in str(refusal.value)


def test_without_a_size_small_texts_give_small_vocabularies():
    for kind in ("unigram", "bpe", "wordpiece"):
        assert 60 < len(train(kind).native_symbols()) < 10_000
    characters = {c for line in TEXT for c in line if c != " "}
    char = train("char", character_coverage=1.0)
    assert set(ordinary_symbols(char)) == characters | {"▁"}


def test_character_coverage_leaves_rare_characters_out():
    text = ["aaaa bbbb"] * 500 + ["Ω"]
    for kind in ("char", "wordpiece"):
        rare = TokenizerSource(name=kind, character_coverage=0.999).train(text)
        everything = TokenizerSource(name=kind, character_coverage=1.0).train(text)
        assert "Ω" not in ordinary_symbols(rare) and "Ω" in ordinary_symbols(everything)


TRAINING = """
import hashlib
from tests.unit.tokenization.test_tokenization import TEXT, TokenizerSource
tokenizer = TokenizerSource(name={kind!r}, vocabulary_size=400).train(TEXT)
print(hashlib.sha256("\\n".join(tokenizer.native_symbols()).encode()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unigram", "anna"])
def test_training_is_the_same_in_every_process(kind):
    # The library `tokenizers` orders some entries by a hash that differs from process to process.
    code = TRAINING.format(kind=kind)
    command = [sys.executable, "-c", code]
    root = Path(__file__).parents[3]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(3)]
    digests = {run.communicate()[0] for run in runs}
    assert len(digests) == 1 and digests != {""}


def test_models_with_other_ids_and_extra_symbols_map_by_name():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_writer=model,
        vocab_size=200,
        control_symbols=["<cls>"],
        user_defined_symbols=["<mask>", "<tag>"],
        pad_id=3,
        minloglevel=3,
    )  # <unk> 0, <s> 1, </s> 2, <pad> 3, as the library has it
    from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer

    tokenizer = SentencePieceTokenizer(model.getvalue())
    vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    special = vocabulary.special
    ids = vocabulary.encode(tokenizer.native_symbols())
    assert ids[:4].tolist() == [special.unknown, special.begin, special.separator, special.pad]
    assert sorted(ids.tolist()[4:]) == sorted([3, special.mask, *range(4, special.ordinary_stop)])
    assert special.mask in vocabulary.encode(tokenizer.encode("a <mask> b"))
    assert vocabulary.index("<tag>") < special.ordinary_stop


def test_a_piece_that_is_no_utf8_is_refused():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["\u00e9 a"]),
        model_writer=model,
        model_type="char",
        vocab_size=6,
        character_coverage=1.0,
        minloglevel=3,
    )
    from unified.tokenization.sentencepiece_tokenizer import SentencePieceTokenizer

    assert "\u00e9" in SentencePieceTokenizer(model.getvalue()).native_symbols()
    with pytest.raises(UnifiedError, match="a.model: a damaged sentencepiece model, one of its pieces is not UTF-8"):
        SentencePieceTokenizer(model.getvalue().replace(b"\xc3\xa9", b"\xff\xa9"), "a.model")


def test_word_starts_per_id(tokenizers):
    for kind in ("unigram", "wordpiece"):
        tokenizer = tokenizers[kind]
        vocabulary = Vocabulary(ordinary_symbols(tokenizer))
        starts = word_starts(tokenizer, vocabulary)
        assert starts.dtype == bool and starts.shape == (len(vocabulary),)
        special = vocabulary.special
        assert starts[[special.begin, special.pad, special.separator]].all()
        assert starts[special.ordinary_stop :].all()
        for i in range(special.ordinary_start, special.ordinary_stop):
            symbol = vocabulary.symbols[i]
            assert starts[i] == (symbol.startswith("▁") if kind == "unigram" else not symbol.startswith("##"))


def test_what_cannot_be_loaded(tmp_path):
    def refused(message, path=tmp_path, **options):
        with pytest.raises(UnifiedError, match=message):
            load_tokenizer(path, **options)

    refused("holds no tokenizer; one of tokenizer.model, vocab.txt, .*, tokenizer.json is needed")
    refused("no such tokenizer file", tmp_path / "x.model")
    model = tmp_path / "tokenizer.model"
    train("char").save(tmp_path)
    refused("has its own rules for case", lowercase=True)
    data = model.read_bytes()
    for damaged in (data[: len(data) // 2], b"not a model at all", b""):
        model.write_bytes(damaged)
        refused(r"tokenizer\.model: (not a|an empty) sentencepiece model")
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[UNK]\na\n", encoding="utf-8")
    refused("holds tokenizer.model and vocab.txt; only one")
    model.unlink()
    for content, message in [
        (b"a\nb\n", r"vocab\.txt: no \[UNK\] among its 2 entries"),
        (b"[UNK]\na\na\n", "lists 'a' twice"),
        (b"[UNK]\n\xff\n", "not UTF-8 at byte 6"),
    ]:
        vocabulary.write_bytes(content)
        refused(message)
    vocabulary.write_bytes(b"[UNK]\r\na\r\n")
    assert load_tokenizer(tmp_path).native_symbols() == ["<unk>", "a"]
    for content, message in [("[1]", "not a JSON object"), ('{"do_lower_case": "yes"}', "neither true nor false")]:
        (tmp_path / "tokenizer_config.json").write_text(content, encoding="utf-8")
        refused(message)


def test_symbols_that_a_dictionary_cannot_hold_are_refused():
    with pytest.raises(UnifiedError, match=r"'a\\u2028b' is empty or holds whitespace"):
        ordinary_symbols(WordPieceTokenizer(["[UNK]", "a\u2028b"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(name="bpe", vocabulary_size=0), "--vocabulary-size must be at least 1, got 0"),
        (dict(name="bpe", character_coverage=1.5), "--character-coverage .* got 1.5"),
        (dict(name="bpe", sample_megabytes=0), "--sample-megabytes"),
        (dict(name="some.model", vocabulary_size=5), "--vocabulary-size means nothing with --tokenizer some.model"),
        (dict(name="wordpiece", normalization="nfkc"), "--normalization means nothing with --tokenizer wordpiece"),
        (dict(name="char", byte_fallback=True), "--byte-fallback means nothing with --tokenizer char"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(UnifiedError, match=message):
        TokenizerSource(**options)


def test_a_million_characters_without_a_space(tokenizers):
    text = "aé" * 500_000
    for kind in KINDS:
        flat, sizes = tokenizers[kind].encode_ids([text])
        assert sizes.tolist() == [len(flat)] and len(flat) >= 1
    assert sizes.tolist() == [1]  # one word, far too long for WordPiece: unknown


def test_no_text_is_refused():
    for kind in KINDS:
        with pytest.raises(UnifiedError, match="cannot be trained"):
            train(kind, [])
