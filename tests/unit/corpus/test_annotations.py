"""Annotated spans: files, an interrupted run, and what a text brings along of them."""

import json
import pickle

import numpy as np
import pytest

from tests.support.annotators import PATTERNS, Patterns, PatternSource, calls_in, tokens_of_spans
from tests.support.corpora import random_documents, raw_text, tree, write
from tests.support.many import one_text
from tests.support.token_files import SPECIAL, Reads, equal, numbered_documents, random_sizes, write_documents
from tests.support.token_files import write as write_items
from unified.corpus.annotate import KeptAnnotator
from unified.corpus.prepare import Settings, prepare
from unified.corpus.readers import DocumentCorpus
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.annotations import KINDS, Annotations, columns, span_prefix
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.planning.rows import RowLimits
from unified.tokenization import load_tokenizer
from unified.training.row_dataset import RowDataset

# ---------------------------------------------------------------- prepared folders


def settings_of(path, kinds=KINDS, tokenizer="bpe", size=90, share=0.0, **options):
    tokenizer = TokenizerSource(tokenizer, vocabulary_size=size)
    return Settings(
        DocumentCorpus((str(path),), chunk_bytes=2000),
        valid_share=share,
        tokenizer=tokenizer,
        annotation=PatternSource(kinds, "patterns", **options),
    )


def spans_in(prefix, kind):
    file = TokenFile(span_prefix(prefix, kind))
    return [file[i].reshape(-1, columns(kind)).tolist() for i in range(len(file))]


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["bpe", "wordpiece"])
def test_files_hold_the_spans_of_each_item(tmp_path, tokenizer):
    documents = random_documents(150)
    documents[3][0] = "\u200b"  # WordPiece has no token for it, and the paragraph is left out
    text = write(tmp_path / "a.txt", raw_text(documents))
    manifest = prepare(settings_of(text, tokenizer=tokenizer), tmp_path / "data")
    loaded, expected = load_tokenizer(tmp_path / "data"), {kind: [] for kind in KINDS}
    for i, document in enumerate(documents):
        for kind in KINDS:
            expected[kind] += [[]] if i else []
        for line in document:
            _, sizes, offsets = loaded.encode_offsets([line])
            for kind in KINDS if sizes[0] else ():
                spans = Patterns.spans(kind, [line])[:, 1:].tolist()
                expected[kind].append([list(span) for span in tokens_of_spans(spans, offsets.tolist())])
    for kind in KINDS:
        assert spans_in(tmp_path / "data" / "train", kind) == expected[kind]
        assert manifest["splits"]["train"]["spans"][kind] == sum(map(len, expected[kind])) > 50
    assert manifest["annotations"] == {"kinds": list(KINDS), "pipeline": "patterns"}
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_annotations_change_nothing_else_and_workers_change_nothing(tmp_path):
    text = write(tmp_path / "a.txt", raw_text(random_documents(200)))
    for workers in (1, 2, 3):
        prepare(settings_of(text, share=0.2), tmp_path / str(workers), workers)
    plain = Settings(DocumentCorpus((text,)), valid_share=0.2, tokenizer=TokenizerSource("bpe", vocabulary_size=90))
    prepare(plain, tmp_path / "plain")
    trees = {name: tree(tmp_path / name) for name in ("1", "2", "3", "plain")}
    assert trees["1"] == trees["2"] == trees["3"]
    added = set(trees["1"]) - set(trees["plain"])
    parts = [(part, kind, end) for part in ("train", "valid") for kind in KINDS for end in ("bin", "idx")]
    assert added == {".".join(names) for names in parts}
    assert all(trees["1"][name] == trees["plain"][name] for name in trees["plain"] if name != "manifest.json")
    assert json.loads(trees["plain"]["manifest.json"])["annotations"] is None


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, capsys, workers):
    text = write(tmp_path / "a.txt", raw_text(random_documents(350)))
    (tmp_path / "one").mkdir()
    prepare(settings_of(text, log=str(tmp_path / "all")), tmp_path / "one" / "data")
    total = calls_in(tmp_path / "all")
    log, destination = tmp_path / "log", tmp_path / "two" / "data"
    with pytest.raises(KeyboardInterrupt):
        prepare(settings_of(text, log=str(log), calls=7), destination, workers)
    kept = tmp_path / "two" / ".data.annotations"
    finished = calls_in(log)
    assert 7 <= finished < 7 + workers and len(list(kept.glob("*.npz"))) == finished
    assert [path.name for path in (tmp_path / "two").iterdir()] == [".data.annotations"]
    assert f"kept in {kept}" in capsys.readouterr().err
    # A file that was being written when the process was killed does not count.
    (kept / "half.123.partial").write_bytes(b"PK")
    prepare(settings_of(text, log=str(log)), destination, workers)
    assert "are taken over where the text is the same" in capsys.readouterr().err
    assert calls_in(log) == total > 2 * finished
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["data"]
    one, two = tree(tmp_path / "one" / "data"), tree(destination)
    assert one.pop("manifest.json") != two.pop("manifest.json")  # it names the settings, here the log
    assert one == two


def test_kept_annotations_are_those_of_the_same_texts_and_annotator(tmp_path):
    texts, others = ["the old House", "a b"], ["the old House", "a c"]
    log = tmp_path / "log"
    first = KeptAnnotator(Patterns(KINDS, log), tmp_path / "kept")
    for annotator, given, calls in [
        (first, texts, 1),
        (first, texts, 1),
        (first, others, 2),
        (first, texts[::-1], 3),
        (KeptAnnotator(Patterns(KINDS, log), tmp_path / "kept"), texts, 3),
        (KeptAnnotator(Patterns(KINDS[:2], log), tmp_path / "kept"), texts, 4),
    ]:
        found = annotator(given)
        assert calls_in(log) == calls
        for kind, spans in found.items():
            assert np.array_equal(spans, Patterns.spans(kind, given))


# ---------------------------------------------------------------- texts


class Annotated(Reads):
    annotations = ("noun_phrases", "entities")


ONE, TWO, PAIR = Annotated(), Annotated(segments=2), Annotated(segments=2, wants_random_second=True)


def annotated_texts(tmp_path, rng, documents=12):
    """Texts whose tokens are numbered from 10, and all their spans by kind as sets of tuples of tokens."""
    numbered = numbered_documents(random_sizes(rng, documents, 6, 9))
    file = write_documents(tmp_path / "train", numbered)
    spans = {}
    for kind in ONE.annotations:
        items, spans[kind] = [], set()
        for i in range(len(file)):
            item = file[i][:-1].tolist()
            bounds = np.flatnonzero(rng.random(len(item) + 1) < 0.5)
            own = np.stack([bounds[:-1], bounds[1:]], axis=1)[::2]
            items.append(own.ravel())
            spans[kind] |= {tuple(item[start:stop]) for start, stop in own.tolist()}
        write_items(span_prefix(tmp_path / "train", kind), items)
    return DocumentTexts(file, SPECIAL, annotations=Annotations(file)), numbered, spans


def spans_within(tokens, spans):
    """The ``spans`` that lie within ``tokens``, consecutive numbers, by their indices; sorted."""
    low, high = (tokens[0], tokens[-1]) if len(tokens) else (0, -1)
    return sorted((span[0] - low, span[-1] + 1 - low) for span in spans if low <= span[0] and span[-1] <= high)


@pytest.mark.slow
def test_spans_of_every_block_are_those_within_it(tmp_path):
    rng = np.random.default_rng(0)
    texts, documents, spans = annotated_texts(tmp_path, rng)
    index, cut = 0, 0
    for sentences in documents:
        total = sum(map(len, sentences))
        for _ in range(60):
            start, stop = sorted(rng.choice(total + 1, 2, replace=False).tolist())
            text = one_text(texts, index + start, stop - start, ONE, rng)
            assert set(text.spans) == set(ONE.annotations)
            for kind, found in text.spans.items():
                assert found.dtype == np.int64 and found.shape[1:] == (2,)
                assert [tuple(span) for span in found.tolist()] == spans_within(text.tokens, spans[kind])
                touched = {t for t in text.tokens.tolist() for span in spans[kind] if t in span}
                cut += len(touched) > sum(stop - start for start, stop in found.tolist())
        index += total
    assert cut > 100  # spans that a border of the block cuts were there, and left out


@pytest.mark.parametrize("objective", [TWO, PAIR])
def test_spans_of_both_segments(tmp_path, objective):
    rng = np.random.default_rng(1)
    texts, _, spans = annotated_texts(tmp_path, rng)
    plan = texts.blocks(RowLimits(64, 61, 3, True, 1.0), 1, 1)
    seen = []
    for start, length in zip(plan.starts.tolist(), plan.lengths.tolist(), strict=True):
        for _ in range(5):
            text = one_text(texts, start, length, objective, rng)
            seen.append(text.is_next)
            for kind, found in text.spans.items():
                first, second = (spans_within(part, spans[kind]) for part in (text.tokens, text.second))
                n = len(text.tokens)
                assert [tuple(s) for s in found.tolist()] == first + [(start + n, stop + n) for start, stop in second]
    assert set(seen) == ({True, False} if objective is PAIR else {None})


def test_a_block_of_one_token_at_the_very_end(tmp_path):
    file = write_documents(tmp_path / "train", [[[5, 6]], [[7, 8, 9]]])
    write_items(span_prefix(file.prefix, "entities"), [[0, 2], [], [0, 1, 2, 3], []])
    texts = DocumentTexts(file, SPECIAL, annotations=Annotations(file))
    for objective in (TWO, PAIR):
        text = one_text(texts, 4, 1, objective, np.random.default_rng(0))
        assert len(text.tokens) == 1 and len(text.second) == 0
        assert text.spans["entities"].tolist() == [[0, 1]]


def test_only_what_is_asked_for_is_read(tmp_path):
    texts, _, _ = annotated_texts(tmp_path, np.random.default_rng(2))
    assert one_text(texts, 0, 5, Reads(), np.random.default_rng(0)).spans == {}
    assert texts.annotation_kinds == {"noun_phrases", "entities"}
    bare = DocumentTexts(texts.file, SPECIAL)
    assert bare.annotation_kinds == frozenset() and one_text(bare, 0, 5, ONE, np.random.default_rng(0)).spans == {}


def test_a_separator_within_an_annotated_sentence_is_refused(tmp_path):
    file = write_items(tmp_path / "train", [[5, 6, SPECIAL.separator, 7, SPECIAL.separator]])
    write_items(span_prefix(file.prefix, "entities"), [[3, 4]])
    plain, texts = (DocumentTexts(file, SPECIAL, annotations=a) for a in (None, Annotations(file)))
    assert one_text(plain, 0, 4, ONE, np.random.default_rng(0)).tokens.tolist() == [5, 6, 7]
    with pytest.raises(UnifiedError, match="train: a sentence has </s> within"):
        one_text(texts, 0, 4, ONE, np.random.default_rng(0))


def test_spans_leave_the_random_choices_as_they_are(tmp_path):
    texts, _, _ = annotated_texts(tmp_path, np.random.default_rng(2))
    bare = DocumentTexts(texts.file, SPECIAL)
    for seed in range(50):
        one, other = (one_text(t, 3, 40, PAIR, np.random.default_rng(seed)) for t in (texts, bare))
        assert np.array_equal(one.tokens, other.tokens) and np.array_equal(one.second, other.second)
        assert one.is_next == other.is_next


def test_annotations_of_other_tokens_or_garbled_ones_are_refused(tmp_path):
    file = write_documents(tmp_path / "train", [[[5, 6, 7], [8]], [[9]]])
    name = span_prefix(file.prefix, "entities")
    write_items(name, [[0, 1]])
    with pytest.raises(UnifiedError, match="annotates 1 item, but .* holds 5"):
        Annotations(file)
    for wrong, message in [
        ([0, 4], "item 0 has a span outside of its text"),
        ([2, 2], "item 0 has a span outside"),
        ([-1, 2], "item 0 has a span outside"),
        ([0], "start without a stop"),
    ]:
        write_items(name, [wrong, [], [], [], []])
        texts = DocumentTexts(file, SPECIAL, annotations=Annotations(file))
        with pytest.raises(UnifiedError, match=message):
            one_text(texts, 0, 4, ONE, np.random.default_rng(0))
        with pytest.raises(UnifiedError, match=message):
            texts.annotations.check()
    for item, wrong in [(1, [0, 2]), (2, [0, 1])]:  # beyond a sentence that is not the first, and in no sentence at all
        write_items(name, [wrong if i == item else [] for i in range(5)])
        with pytest.raises(UnifiedError, match=f"item {item} has a span outside of its text"):
            Annotations(file).check()
    write_items(name, [[0, 3], [0, 1], [], [0, 1], []])
    Annotations(file).check()


# ---------------------------------------------------------------- from text to examples


@pytest.fixture(scope="module")
def annotated_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("annotated")
    text = write(folder / "a.txt", raw_text(random_documents(60, paragraphs=60)))
    prepare(settings_of(text, size=500), folder / "data")
    return folder / "data"


def rows_of(folder, objectives, row_length=128):
    vocabulary = Vocabulary.load(folder / "dict.txt")
    file = TokenFile(folder / "train")
    texts = DocumentTexts(file, vocabulary.special, np.load(folder / "word_starts.npy"), Annotations(file))
    return RowDataset(texts, parse_objectives(objectives), row_length, seed=1)


def all_spans(folder, kind):
    """Tokens of every span of the folder."""
    tokens, spans = TokenFile(folder / "train"), spans_in(folder / "train", kind)
    return {tuple(tokens[i][start:stop].tolist()) for i, own in enumerate(spans) for start, stop in own}


def hidden_runs(example):
    restored = example.tokens.copy()
    restored[example.targets["token"].output_indices[:, 0]] = example.targets["token"].labels
    groups = np.split(
        example.targets["token"].output_indices[:, 0],
        np.flatnonzero(np.diff(example.targets["token"].output_indices[:, 0]) > 1) + 1,
    )
    return [tuple(restored[group].tolist()) for group in groups]


@pytest.mark.slow
@pytest.mark.parametrize("scheme, kind", [("noun_phrase", "noun_phrases"), ("entity", "entities")])
def test_hidden_spans_are_spans_of_the_text(annotated_folder, scheme, kind):
    # Quotas of spans alone: what is hidden beyond them are single tokens where no span fits any more.
    rows = rows_of(annotated_folder, f"anna(scheme={scheme!r}, span_share=1, word_share=0, mask_share=0.1)")
    known, whole, total = all_spans(annotated_folder, kind), 0, 0
    for example in rows.examples(range(len(rows)))[0].split():
        total += len(example.targets["token"].output_indices)
        whole += sum(len(run) for run in hidden_runs(example) if run in known)
    assert whole > 0.6 * total > 1000


@pytest.mark.slow
def test_a_mixture_reads_the_annotations_it_needs(annotated_folder):
    rows = rows_of(annotated_folder, "anna:1,spanbert(scheme='noun_phrase'):1")
    examples, per_row = rows.examples(range(len(rows)))
    names, made = examples.objectives, np.split(np.array(examples.split(), dtype=object), np.cumsum(per_row)[:-1])
    assert 0.4 < names.count("anna") / len(names) < 0.6 and set(names) == {"anna", "spanbert"}
    # The same from a copy, in any order, as a worker would read it.
    copy = pickle.loads(pickle.dumps(rows))
    for row in reversed(range(len(rows))):
        assert all(equal(one, other) for one, other in zip(made[row], copy[row], strict=True))


@pytest.mark.parametrize(
    "objective, missing",
    [
        ("anna", "noun_phrases"),
        ("anna(scheme='entity')", "entities"),
        ("anna(scheme='pos')", "parts_of_speech"),
        ("spanbert(scheme='named_entity')", "entities"),
        ("spanbert(scheme='noun_phrase')", "noun_phrases"),
    ],
)
def test_an_objective_without_its_annotation_is_refused(tmp_path, objective, missing):
    file = write_documents(tmp_path / "train", [[[5, 6, 7], [8]], [[9]]])
    words = np.ones(20, dtype=bool)
    with pytest.raises(UnifiedError, match=f"needs the annotation {missing}, which the data do not have .they have no"):
        RowDataset(DocumentTexts(file, SPECIAL, words), parse_objectives(objective), 64, seed=1)
    there = next(kind for kind in PATTERNS if kind != missing)
    write_items(span_prefix(file.prefix, there), [[], [], [], [], []])
    texts = DocumentTexts(file, SPECIAL, words, Annotations(file))
    with pytest.raises(UnifiedError, match=f"they have {there}.; prepare them with --annotate {missing}"):
        RowDataset(texts, parse_objectives(objective), 64, seed=1)
