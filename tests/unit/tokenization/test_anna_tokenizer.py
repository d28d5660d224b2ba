"""ANNA's tokenizer against its rule written out, the choice of its words against counting, and what is refused."""

import json
import lzma
import sys
import unicodedata
from collections import Counter

import numpy as np
import pytest

from tests.support.checkpoint_samples import checkpoint
from tests.support.corpora import json_lines, random_documents, run, tree, write
from unified import UnifiedLM
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tokenization import anna, load_tokenizer, ordinary_symbols, single_spaced
from unified.tokenization.anna import MARKS, AnnaTokenizer, surface_form, train_anna

TABLE_1 = ["COVID-19", "U.S.", "Ph.D.", "l'amour", "C++", "Sant'Egidio"]
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c . , ' - ( ) ? U S P h D C + the ##a ##b ##c ##h".split()


def basic_words(chunk):
    """BERT's words: control characters gone, punctuation marks and Chinese characters by themselves."""
    text = ""
    for character in chunk:
        category = unicodedata.category(character)
        if category[0] == "C" or character == "\ufffd":
            continue
        ascii_symbol = character.isascii() and not character.isalnum()
        chinese = 0x4E00 <= ord(character) <= 0x9FFF
        text += f" {character} " if ascii_symbol or category[0] == "P" or chinese else character
    return text.split()


def wordpieces(word, entries):
    pieces, start = [], 0
    while start < len(word):
        stops = range(len(word), start, -1)
        found = (("##" if start else "") + word[start:stop] for stop in stops)
        piece = next((piece for piece in found if piece in entries), None)
        if piece is None or len(word) > 100:
            return ["<unk>"]
        pieces.append(piece)
        start += len(piece.removeprefix("##") if start else piece)
    return pieces


def by_the_rule(text, tokenizer):
    """Every chunk whole, or its longest known part but for marks around it whole, or divided as by BERT."""
    words, entries = {word: -i for i, word in enumerate(tokenizer.words)}, {*tokenizer.pieces, *tokenizer.words}
    pieces = []
    for chunk in text.split():
        marks = (
            [not chunk[:i].strip(MARKS) for i in range(len(chunk) + 1)],
            [not chunk[i:].strip(MARKS) for i in range(len(chunk) + 1)],
        )
        indices = [
            (i, j) for i in range(len(chunk)) for j in range(i + 1, len(chunk) + 1) if marks[0][i] and marks[1][j]
        ]
        known = [(j - i, words[chunk[i:j]], i, j) for i, j in indices if chunk[i:j] in words]
        _, _, i, j = max(known, default=(0, 0, len(chunk), len(chunk)))
        before, after = (
            [p for word in basic_words(side) for p in wordpieces(word, entries)] for side in (chunk[:i], chunk[j:])
        )
        pieces += [*before, *([chunk[i:j]] if i < j else []), *after]
    return pieces


def random_chunks(count, seed):
    rng = np.random.default_rng(seed)
    alphabet = list("abcUSPhDC.+,'-()?#…“”«é漢\u200b\ufeff\u0301\U0001f600[]")
    return ["".join(rng.choice(alphabet, size=rng.integers(1, 8))) for _ in range(count)]


def assert_follows_the_rule(tokenizer, texts):
    expected = [by_the_rule(text, tokenizer) for text in texts]
    assert [tokenizer.encode(text) for text in texts[:50]] == expected[:50]
    ids, sizes = tokenizer.encode_ids(texts)
    assert ids.dtype == np.int32 and sizes.tolist() == list(map(len, expected))
    symbols = tokenizer.native_symbols()
    assert [symbols[i] for i in ids] == [piece for pieces in expected for piece in pieces]
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("remembered", [0, 1 << 22])
def test_random_strings_follow_the_rule(remembered):
    chunks = random_chunks(8_000, seed=0)
    words = [word for word, _ in Counter(random_chunks(20_000, seed=1)).most_common(600)]
    words += ["U.S.", "U.S", ".U.S", "Ph.D.", "a(b", "'a'", "(a", "a)", "漢b"]
    words = [word for word in dict.fromkeys(words) if word not in PIECES and anna.can_be_word(word)]
    assert len(words) > 300
    tokenizer = AnnaTokenizer(PIECES, words, "a test")
    tokenizer.most_remembered = remembered
    rng = np.random.default_rng(2)
    texts = [" ".join(chunks[i : i + size]) for i, size in enumerate(rng.integers(0, 12, size=1000))]
    expected = assert_follows_the_rule(tokenizer, texts)
    if not remembered:  # nothing but the last call's
        tokenizer.encode("ab cd")
        assert tokenizer.remembered == 2
    whole = {piece for pieces in expected for piece in pieces} & set(words)
    assert len([word for word in whole if len(basic_words(word)) > 1]) > 40


@pytest.fixture(scope="module")
def real_lines(unified_data):
    with lzma.open(unified_data / "pretrain_wiki" / "valid.jsonl.xz", "rt", encoding="utf-8") as stream:
        return [line for document in stream for line in json.loads(document)["text"].split("\n") if line.strip()]


@pytest.mark.slow
def test_real_text_follows_the_rule_and_comes_back(real_lines):
    tokenizer = train_anna(real_lines[:2000], 5000)
    texts = real_lines[2000:3500]
    expected = assert_follows_the_rule(tokenizer, texts)
    divided = sum(len(basic_words(piece)) > 1 for pieces in expected for piece in pieces if piece != "<unk>")
    assert divided > 500  # words that BERT would divide at their punctuation
    for text, pieces in zip(texts, expected, strict=True):
        if "<unk>" in pieces:
            continue
        decoded = tokenizer.decode(pieces)
        visible = [c for c in text if not c.isspace() and unicodedata.category(c)[0] != "C" and c != "\ufffd"]
        assert [c for c in decoded if c != " "] == visible
        assert tokenizer.encode(decoded) == pieces


@pytest.mark.slow
def test_offsets_cut_the_pieces_out_of_real_text(real_lines):
    tokenizer = train_anna(real_lines[:2000], 5000)
    texts = [line for line in real_lines[2000:4000] if line.isprintable()]
    ids, sizes, offsets = tokenizer.encode_offsets(texts)
    expected = tokenizer.encode_ids(texts)
    assert np.array_equal(ids, expected[0]) and np.array_equal(sizes, expected[1])
    symbols, numbers = tokenizer.native_symbols(), np.repeat(np.arange(len(texts)), sizes)
    texts = [single_spaced(text) for text in texts]
    for i, number, (start, stop) in zip(ids.tolist(), numbers.tolist(), offsets.tolist(), strict=True):
        assert symbols[i] in ("<unk>", texts[number][start:stop], "##" + texts[number][start:stop])


def test_words_of_the_papers_table_stay_whole_in_running_text():
    tokenizer = AnnaTokenizer(PIECES, TABLE_1, "the paper's Table 1")
    assert tokenizer.encode(" ".join(TABLE_1)) == TABLE_1
    text = "(COVID-19). the U.S.? U.S., «C++», \"Ph.D.\" 'Sant'Egidio' l'amour… the-U.S. U.S C+"
    assert [piece for piece in tokenizer.encode(text) if piece in TABLE_1] == [
        *("COVID-19", "U.S.", "U.S.", "C++", "Ph.D.", "Sant'Egidio", "l'amour")
    ]
    assert tokenizer.encode("(U.S.,)?") == ["(", "U.S.", ",", ")", "?"]
    assert tokenizer.encode("the-U.S. C+ U.S") == ["the", "-", "U", ".", "S", ".", "C", "+", "U", ".", "S"]
    assert tokenizer.decode(["(", "U.S.", ",", ")", "?"]) == "(U.S.,)?"


def test_surface_forms_lose_the_marks_of_their_sentence_and_keep_their_own():
    for chunk, word in [
        *((f"({word}),", word) for word in TABLE_1),
        *((f"“{word}", word) for word in TABLE_1),
        *[("end.", "end"), ("3.5.", "3.5"), ("U.S", "U.S"), ("U.S.A.!", "U.S.A."), ("example.com.", "example.com")],
        *[("'tis", "tis"), ("well-known;", "well-known"), ("...", ""), ("e.g.,", "e.g."), ("$5", "$5")],
    ]:
        assert surface_form(chunk) == word, chunk


@pytest.mark.slow
def test_words_are_the_most_frequent_surface_forms_and_have_their_share(real_lines):
    lines = real_lines[:800]
    counts = Counter(surface_form(chunk) for line in lines for chunk in line.split())
    for size, share in [(2000, None), (2001, 0.5), (2000, 0.0), (2503, 0.8)]:
        tokenizer = TokenizerSource("anna", vocabulary_size=size, word_share=share).train(lines)
        assert len(tokenizer.words) == round((0.7 if share is None else share) * size)
        assert len(tokenizer.native_symbols()) == len(set(tokenizer.native_symbols())) == size
        wordpiece = TokenizerSource("wordpiece", vocabulary_size=len(tokenizer.pieces)).train(lines)
        assert tokenizer.pieces == wordpiece.entries
        candidates = [word for word in counts if any(c.isalnum() for c in word) and word.isprintable()]
        candidates = {word for word in candidates if counts[word] > 1} - set(wordpiece.entries)
        ranked = sorted(candidates, key=lambda word: (-counts[word], word))
        assert tokenizer.words == ranked[: len(tokenizer.words)]


def test_without_a_size_the_text_decides():
    tokenizer = TokenizerSource("anna").train(["the U.S. of C++, and U.S."] * 3)
    assert sorted(tokenizer.words) == ["C++", "U.S."]


def test_words_that_look_like_symbols_never_become_words():
    hostile = "<mask> </s> [MASK] ##s <unk> <sentinel_3> [PAD] \u200bx --- ab"
    tokenizer = TokenizerSource("anna", character_coverage=1.0).train([hostile + " C++"] * 9)
    assert tokenizer.words == ["/s", "C++", "sentinel_3"]
    vocabulary = Vocabulary(ordinary_symbols(tokenizer))
    ids = vocabulary.encode(tokenizer.encode(hostile))
    assert ((ids >= vocabulary.special.ordinary_start) & (ids < vocabulary.special.ordinary_stop)).all()
    for word in ("##s", "<mask>", "[MASK]", "a b", "", "...", "a\u2028b", "x" * 101):
        with pytest.raises(UnifiedError, match="cannot be a word of the vocabulary"):
            AnnaTokenizer(PIECES, [word], "a test")
    with pytest.raises(UnifiedError, match="lists 'the' twice"):
        AnnaTokenizer(PIECES, ["the"], "a test")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(vocabulary_size=100_000), r"WordPieces of the anna tokenizer \(30000 of 100000 entries\): .*fewer than"),
        (dict(vocabulary_size=20), r"WordPieces of the anna tokenizer \(6 of 20 entries\): .* do not hold"),
        (dict(vocabulary_size=300, word_share=0.9), r"gives \d+ words, fewer than the 270 of --vocabulary-size 300"),
    ],
)
def test_impossible_sizes_are_refused(options, message):
    with pytest.raises(UnifiedError, match=message) as refusal:
        TokenizerSource("anna", **options).train(["one U.S. two C++ three"] * 5)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(name="anna", lowercase=True), "--lowercase means nothing with --tokenizer anna"),
        (dict(name="anna", word_share=1.0), "--word-share is at least 0 and below 1, got 1.0"),
        (dict(name="bpe", word_share=0.5), "--word-share means nothing with --tokenizer bpe"),
        (dict(name="wordpiece", spacy="x"), "--spacy means nothing with --tokenizer wordpiece"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(UnifiedError, match=message):
        TokenizerSource(**options)


def test_damaged_files_are_refused(tmp_path):
    AnnaTokenizer(PIECES, TABLE_1, "a test").save(tmp_path)
    path = tmp_path / "anna.json"
    good = json.loads(path.read_text(encoding="utf-8"))
    for content, message in [
        (path.read_bytes()[:40], "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "not an object with candidates, pieces, words"),
        (json.dumps({**good, "more": 1}).encode(), "not an object with"),
        (json.dumps({**good, "words": "U.S."}).encode(), "words is not a list of strings"),
        (json.dumps({**good, "pieces": [1]}).encode(), "pieces is not a list of strings"),
        (json.dumps({**good, "pieces": ["a"]}).encode(), r"no \[UNK\]"),
    ]:
        path.write_bytes(content)
        with pytest.raises(UnifiedError, match=message) as refusal:
            load_tokenizer(tmp_path)
        assert str(path) in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_folder_with_this_tokenizer_is_read_by_every_user(tmp_path, capsys):
    documents = [[f"{line} the U.S. of C++, (Ph.D.)" for line in document] for document in random_documents(40)]
    text, data = write(tmp_path / "a.jsonl", json_lines(documents)), tmp_path / "data"
    for workers in (1, 2):
        options = ["--tokenizer", "anna", "--vocabulary-size", "300", "--word-share", "0.1", "--workers", workers]
        assert run(text, *options, "--output", tmp_path / f"data{workers}") == 0
    assert (
        "30 words of the anna tokenizer are chosen from all words of the text (no --spacy)" in capsys.readouterr().err
    )
    assert tree(tmp_path / "data1") == tree(tmp_path / "data2")
    data = tmp_path / "data1"
    manifest = json.loads((data / "manifest.json").read_text())
    assert manifest["tokenizer"] == {
        "pieces": 270,
        "words": 30,
        "word_candidates": "all words of the text (no --spacy)",
    }
    vocabulary = Vocabulary.load(data / "dict.txt")
    starts = np.load(data / "word_starts.npy")
    assert starts.tolist() == [not symbol.startswith("##") for symbol in vocabulary.symbols]
    checkpoint(tmp_path / "run" / "a.pt", vocabulary, str(data), "next")
    lm = UnifiedLM.from_pretrained(tmp_path / "run" / "a.pt")
    from fairseq_plugins.tokenizer import FolderTokenizer

    fairseq_side = FolderTokenizer.of(data)
    for line in (line for document in documents for line in document):
        pieces = load_tokenizer(data).encode(line)
        assert {"U.S.", "C++", "Ph.D."} <= set(pieces)
        assert lm.pieces(lm.encode(line)) == pieces == fairseq_side.encode(line).split(" ")
        assert lm.decode(lm.encode(line)) == fairseq_side.decode(" ".join(pieces))
    assert lm.decode(lm.encode("(C++), (U.S.)")) == "(C++), (U.S.)"


def nouns(spacy):
    """A pipeline component that takes capitalised words for nouns, and "the" before one for its article."""

    @spacy.Language.component("capitalised")
    def capitalised(document):
        words = [token.text for token in document]
        is_noun = [word[0].isupper() for word in words]
        heads = [
            i + 1 if word == "the" and i + 1 < len(words) and is_noun[i + 1] else i for i, word in enumerate(words)
        ]
        return spacy.tokens.Doc(
            document.vocab,
            words=words,
            spaces=[bool(token.whitespace_) for token in document],
            heads=heads,
            deps=[
                "nsubj" if noun else "ROOT" if head == i else "det"
                for i, (noun, head) in enumerate(zip(is_noun, heads, strict=True))
            ],
            pos=["NOUN" if noun else "DET" for noun in is_noun],
        )


@pytest.mark.slow
def test_with_spacy_words_are_those_of_noun_phrases(tmp_path):
    spacy = pytest.importorskip("spacy")
    nouns(spacy)
    pipeline = spacy.blank("en")
    pipeline.add_pipe("capitalised")
    pipeline.to_disk(tmp_path / "pipeline")
    source = TokenizerSource("anna", vocabulary_size=70, word_share=0.1, spacy=str(tmp_path / "pipeline"))
    lines = ["x-ray of the U.S.-based,\u2003 C++ so-called Sant'Egidio, N-n", "so-called  (O'Neill's) x-ray. Q-q"] * 4
    assert list(source.noun_phrases().words(lines[:2])) == [
        *("the", "U.S.-based,", "C++", "Sant'Egidio,", "N-n", "(O'Neill's)", "Q-q")
    ]
    tokenizer = source.train(lines)
    assert sorted(tokenizer.words) == ["C++", "N-n", "O'Neill's", "Q-q", "Sant'Egidio", "U.S.-based", "the"]
    assert tokenizer.candidates == f"words of noun phrases ({tmp_path / 'pipeline'})"


@pytest.mark.slow
def test_what_spacy_cannot_do_is_said_before_the_text_is_read(tmp_path, capsys, monkeypatch):
    text = write(tmp_path / "a.txt", "one U.S.\n" * 9)

    def refusal(pipeline):
        capsys.readouterr()
        options = ["--tokenizer", "anna", "--spacy", pipeline, "--output", tmp_path / "data"]
        assert run(text, *options) == 2 and not (tmp_path / "data").exists()
        (line,) = capsys.readouterr().err.splitlines()
        return line

    with monkeypatch.context() as without:
        without.setitem(sys.modules, "spacy", None)
        assert "--spacy needs the library spaCy, which is not installed: pip install '.[spacy]'" in refusal(
            "en_core_web_sm"
        )
    spacy = pytest.importorskip("spacy")
    assert "--spacy no_such_pipeline: no such pipeline; give the folder of one" in refusal("no_such_pipeline")
    spacy.blank("en").to_disk(tmp_path / "no_parser")
    assert "no_parser: gives no noun_phrases, it lacks" in refusal(tmp_path / "no_parser")
