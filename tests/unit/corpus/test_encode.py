"""Encoding of chunks of text, against definitions that go a document, a pair and a line at a time."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.annotators import Patterns, tokens_of_spans
from tests.support.corpora import jsonl, write
from tests.support.refusals import refused
from unified.corpus import encode
from unified.corpus.encode import DocumentEncoder, LineSampler, PairEncoder, TokenEncoder, split
from unified.corpus.items import Items
from unified.corpus.readers import ParallelCorpus, RowPairCorpus
from unified.data.annotations import KINDS, columns
from unified.data.sampling import uniform
from unified.data.vocabulary import Vocabulary
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

END = 2
WORDS = [*"abcdefghijklmnopqrstuvwxyz", "an", "old", "tree", "runs", "over"]
#: The tokenizer numbers the words in another order than the vocabulary.
VOCABULARY = Vocabulary(WORDS)
ENCODER = TokenEncoder(SymbolTokenizer(["<unk>", *reversed(WORDS)]), VOCABULARY)


@dataclass(frozen=True)
class Given:
    """A chunk of documents that a test writes out."""

    held: list

    def documents(self):
        return iter(self.held)

    @property
    def size(self):
        return 1000 + len(self.held)


def ids(text):
    return [VOCABULARY.index(word) for word in text.split()]


def lists(items):
    assert items.sizes.dtype == np.int64 and items.tokens.shape == (items.sizes.sum(),)
    return [part.tolist() for part in np.split(items.tokens, np.cumsum(items.sizes)[:-1])]


def random_chunk(rng):
    """Numbered documents; some paragraphs, and some whole documents, have no token."""
    choices = [" ".join(rng.choice(WORDS, size=rng.integers(1, 6))) for _ in range(12)] + ["", " \t"] * 3
    numbers = np.cumsum(rng.integers(1, 4, size=rng.integers(0, 8))).tolist()
    return Given(
        [(n, [str(t).replace(" ", "  ", 1) for t in rng.choice(choices, rng.integers(1, 4))]) for n in numbers]
    )


def written_out(documents):
    """Items, spans by kind, numbers of the first and the last document, how many: the layout's definition."""
    items, spans, seen = [], {kind: [] for kind in KINDS}, []
    for number, paragraphs in documents:
        texts = [" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.split()]
        if texts and seen:
            items.append([END])
            for kind in KINDS:
                spans[kind].append([])
        for text in texts:
            items.append([*ids(text), END])
            ends = np.cumsum([len(word) + 1 for word in text.split()]).tolist()
            offsets = [(end - 1 - len(word), end - 1) for end, word in zip(ends, text.split(), strict=True)]
            for kind in KINDS:
                found = Patterns.spans(kind, [text])[:, 1:].tolist()
                spans[kind].append([number for span in tokens_of_spans(found, offsets) for number in span])
        seen += [number] if texts else []
    return items, spans, seen


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_separator_ends_every_paragraph_and_stands_alone_between_two_documents(share):
    rng, empty, whole = np.random.default_rng(0), 0, 0
    for seed in range(80):
        chunk = random_chunk(rng)
        annotated = DocumentEncoder(ENCODER, seed, share, Patterns(KINDS))(chunk)
        plain = DocumentEncoder(ENCODER, seed, share)(chunk)
        assert annotated[0] == plain[0] == chunk.size
        parts = split(chunk.held, seed, share)
        for documents, found, bare in zip(parts, annotated[1:], plain[1:], strict=True):
            items, spans, seen = written_out(documents)
            if not seen:
                assert found is None and bare is None
                empty += 1
                continue
            for one in (found, bare):
                assert lists(one.items) == items and one.items.tokens.dtype == np.uint16
                assert (one.first, one.last, one.documents) == (seen[0], seen[-1], len(seen))
            assert bare.spans == {}
            assert {kind: lists(own) for kind, own in found.spans.items()} == spans
            whole += len(seen) > 1
    assert empty > 5 and whole > 20


def test_the_annotator_is_not_called_for_a_chunk_without_documents():
    def fails(texts):
        raise AssertionError(texts)

    assert DocumentEncoder(ENCODER, 1, 0.0, fails)(Given([])) == (1000, None, None)


def test_an_annotator_sees_texts_with_single_blanks():
    asked = []

    def annotator(texts):
        asked.append(texts)
        return {kind: np.zeros((0, 1 + columns(kind)), dtype=np.int64) for kind in KINDS}

    items, spans = ENCODER.annotated_pieces(["  a \t b", "c"], annotator)
    assert asked == [["a b", "c"]] and lists(items) == [ids("a b"), ids("c")]
    assert {kind: lists(own) for kind, own in spans.items()} == {kind: [[], []] for kind in KINDS}


def test_a_source_of_several_parts_has_a_separator_behind_each():
    items, shortest = ENCODER.sources(["a b c", ["d", "e f"], [], "", ["g h", "", "i"], ["j k", "l m n"]])
    a, d, ef, gh, i, jk, lmn = map(ids, ("a b c", "d", "e f", "g h", "i", "j k", "l m n"))
    several = [[*gh, END, END, *i, END], [*jk, END, *lmn, END]]
    assert lists(items) == [[*a, END], [*d, END, *ef, END], [END], [END], *several]
    assert shortest.tolist() == [3, 1, 0, 0, 0, 2] and shortest.dtype == np.int64


def test_items_have_the_dtype_that_the_size_of_the_vocabulary_needs():
    many = Vocabulary([f"w{i}" for i in range(65_500)])
    encoder = TokenEncoder(SymbolTokenizer(many.symbols), many)
    pieces = encoder.pieces(["w0 w65499", "nothing", ""])
    assert pieces.tokens.tolist() == [4, 65_503, 3] and pieces.sizes.tolist() == [2, 1, 0]
    closed = encoder.close(pieces, np.array([1, 2]))
    assert lists(closed) == [[4, 65_503, END], [END], [3, END], [END], [END]]
    assert pieces.tokens.dtype == closed.tokens.dtype == np.int32


# ---------------------------------------------------------------- pairs


def pair_chunk(folder, sources, targets):
    """The second chunk of the corpus, so that numbers of pairs and of lines differ from their indices."""
    files = (write(folder / f"{name}.txt", "x\n") for name in ("one", "two"))
    paths = (
        write(folder / "s.txt", "".join(f"{line}\n" for line in sources)),
        write(folder / "t.txt", "".join(f"{line}\n" for line in targets)),
    )
    first, second = zip(files, paths, strict=True)
    _, chunk = ParallelCorpus(first, second).chunks()
    return chunk


def row_chunk(folder, rows):
    path = jsonl(folder / "pairs.jsonl", rows)
    (chunk,) = RowPairCorpus((path,), "source", "target").chunks()
    return chunk


def test_pairs_without_text_on_a_side_are_left_out_of_their_split_and_counted(tmp_path):
    rng = np.random.default_rng(1)
    texts = ["", " ", *(" ".join(rng.choice(WORDS, size=n)) for n in (1, 1, 2, 3, 5))]
    sources, targets = ([str(text) for text in rng.choice(texts, size=300)] for _ in range(2))
    chunk = pair_chunk(tmp_path, sources, targets)
    for share in (0.0, 0.3):
        size, *found = PairEncoder(ENCODER, 4, share, skip_empty=True)(chunk)
        assert size == chunk.size
        pairs = split(list(enumerate(zip(sources, targets, strict=True), 1)), 4, share)
        for own, encoded in zip(pairs, found, strict=True):
            whole = [(ids(s), ids(t)) for _, (s, t) in own if s.split() and t.split()]
            if not own:
                assert encoded is None
                continue
            assert lists(encoded.source) == [[*s, END] for s, _ in whole]
            assert lists(encoded.target) == [[*t, END] for _, t in whole]
            assert encoded.skipped == len(own) - len(whole) > 10 and encoded.spans == {}
    _, only, none = PairEncoder(ENCODER, 4, 0.0, False)(pair_chunk(tmp_path, ["a"], ["b"]))
    assert lists(only.source) == [[*ids("a"), END]] and only.skipped == 0 and none is None


EMPTY = "of a pair is empty; mend it, or leave such pairs out, as `unified prepare --skip-empty` does"


@pytest.mark.parametrize(
    ("sources", "targets", "says"),
    [
        (["a", "", "b"], ["a", "b", "b"], "s.txt, line 2: the source"),
        (["a", "b", "c"], ["a", "b", " "], "t.txt, line 3: the target"),
        (["", "b", "c"], ["", "b", ""], "s.txt, line 1: the source"),
    ],
)
def test_a_side_without_text_is_refused_with_its_line(tmp_path, sources, targets, says):
    chunk = pair_chunk(tmp_path, sources, targets)
    assert refused(PairEncoder(ENCODER, 1, 0.0, skip_empty=False), chunk) == f"{tmp_path}/{says} {EMPTY}"


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        (["a", ""], "b", "field 'source': a part of the source"),
        (["", "a"], "b", "field 'source': a part of the source"),
        (["a", "c"], "", "field 'target': the target"),
        ([""], "b", "field 'source': the source"),
        ([], "b", "field 'source': the source"),
        ("", "b", "field 'source': the source"),
    ],
)
def test_a_part_without_text_is_refused_as_a_part(tmp_path, source, target, says):
    chunk = row_chunk(tmp_path, [{"source": "a", "target": "b"}, {"source": source, "target": target}])
    path = tmp_path / "pairs.jsonl"
    assert refused(PairEncoder(ENCODER, 1, 0.0, skip_empty=False), chunk) == f"{path}, line 2, {says} {EMPTY}"
    assert PairEncoder(ENCODER, 1, 0.0, skip_empty=True)(chunk)[1].skipped == 1


def test_with_an_oracle_sources_have_spans_of_their_sentences_and_of_those_it_takes(tmp_path):
    rows = [
        {"source": "a b. c d e.", "target": "a", "sentences": [0, 5], "oracle": [1]},
        {"source": "f g", "target": " ", "sentences": [0], "oracle": [0]},
        {"source": "h. i j. k", "target": "l m", "sentences": [0, 3, 8], "oracle": [0, 2]},
        {"source": "n", "target": "o", "sentences": [0], "oracle": []},
    ]
    words = [*WORDS, "b.", "e.", "h.", "j."]
    encoder = TokenEncoder(SymbolTokenizer(["<unk>", *words]), Vocabulary(words))
    chunk = row_chunk(tmp_path, rows)
    size, found, valid = PairEncoder(encoder, 1, 0.0, skip_empty=True, oracle=True)(chunk)
    assert size == chunk.size and valid is None and found.skipped == 1
    assert lists(found.spans["sentences"]) == [[0, 2, 2, 5], [0, 1, 1, 3, 3, 4], [0, 1]]
    assert lists(found.spans["oracle"]) == [[2, 5], [0, 1, 3, 4], []]
    plain = PairEncoder(encoder, 1, 0.0, skip_empty=True)(chunk)[1]
    assert plain.spans == {} and lists(plain.source) == lists(found.source)
    assert lists(plain.target) == lists(found.target)
    parts = PairEncoder(encoder, 3, 0.5, skip_empty=True, oracle=True)(chunk)[1:]
    pairs = [len(part.target.sizes) + part.skipped for part in parts if part]
    assert pairs == [len(part) for part in split(list(chunk.pairs()), 3, 0.5) if part] and len(pairs) == 2


def test_an_oracle_may_take_no_sentence_of_any_pair(tmp_path):
    chunk = row_chunk(tmp_path, [{"source": "a b", "target": "c", "sentences": [0], "oracle": []}])
    spans = PairEncoder(ENCODER, 1, 0.0, skip_empty=False, oracle=True)(chunk)[1].spans
    assert {kind: lists(own) for kind, own in spans.items()} == {"sentences": [[0, 2]], "oracle": [[]]}


# ---------------------------------------------------------------- the sample of lines, and the splits


def test_a_share_is_chosen_by_the_number_and_the_seed_alone():
    items = [(number, f"text {number}") for number in range(4000)]
    train, valid = split(iter(items), 7, 0.1)
    assert sorted(train + valid) == items and train == sorted(train) and valid == sorted(valid)
    assert 300 < len(valid) < 500
    assert split(items[::-3], 7, 0.1)[1] == [item for item in items[::-3] if item in valid]
    assert split(items, 8, 0.1)[1] != valid
    assert split(iter(items), 7, 0) == (items, []) and split([], 7, 0.5) == ([], [])
    assert split(iter(items), 7, 1) == ([], items)


def test_a_document_that_draws_exactly_the_share_stays_in_training():
    drawn = float(uniform(7, np.array([3]))[0])
    assert split([(3,)], 7, drawn) == ([(3,)], []) and split([(3,)], 7, np.nextafter(drawn, 1)) == ([], [(3,)])


def mixed(state):
    """SplitMix64 of Steele et al. (2014) in Python's integers."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)


def key(seed, chunk, line):
    """The hash of a number that no document has, since those begin at 0."""
    return mixed(mixed(2**62 + chunk * 2**32 + line) ^ mixed(seed))


def test_lines_of_at_most_4000_characters_have_keys_by_seed_chunk_and_number():
    chunk = Given([(5, ["a" * 4000, "b" * 4001]), (6, ["c", "", "d" * 8001])])
    lines = ["a" * 4000, "b" * 4000, "b", "c", "d" * 4000, "d" * 4000, "d"]
    for index in (0, 1, 7):
        keyed = [(key(3, index, number), line) for number, line in enumerate(lines)]
        assert LineSampler(3, 0.0)((index, chunk, 2**64)) == (chunk.size, 7, keyed)
        limit = sorted(keyed)[3][0]
        below = [pair for pair in keyed if pair[0] < limit]
        assert LineSampler(3, 0.0)((index, chunk, limit)) == (chunk.size, 7, below) and len(below) == 3
        other = [(key(4, index, number), line) for number, line in enumerate(lines)]
        assert LineSampler(4, 0.0)((index, chunk, 2**64)) == (chunk.size, 7, other)


def test_lines_of_the_validation_split_stay_out_of_the_sample(tmp_path):
    documents = [(number, [f"one {number}", f"two {number}"]) for number in range(200)]
    rows = [{"source": [f"one {n}", f"two {n}"] if n % 2 else f"one {n}", "target": f"end {n}"} for n in range(200)]
    pairs = [(n, [f"one {n}", *([f"two {n}"] if n % 2 else []), f"end {n}"]) for n in range(200)]
    for chunk, texts_of in ((Given(documents), documents), (row_chunk(tmp_path, rows), pairs)):
        train, valid = split(texts_of, 9, 0.3)
        texts = [text for _, own in train for text in own]
        size, count, keyed = LineSampler(9, 0.3)((2, chunk, 2**64))
        assert (size, count, [line for _, line in keyed]) == (chunk.size, len(texts), texts) and valid


def test_lines_of_parallel_files_are_both_sides_in_turn(tmp_path):
    chunk = pair_chunk(tmp_path, ["a", "b"], ["c", "d"])
    size, count, keyed = LineSampler(1, 0.0)((0, chunk, 2**64))
    assert (size, count, [line for _, line in keyed]) == (8, 4, ["a", "c", "b", "d"])


@pytest.mark.parametrize("kind", [Items, encode.EncodedDocuments, encode.EncodedPairs, DocumentEncoder, PairEncoder])
def test_what_worker_processes_exchange_is_immutable(kind):
    one = kind(**{field.name: None for field in dataclasses.fields(kind)})
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(one, dataclasses.fields(kind)[0].name, 1)
