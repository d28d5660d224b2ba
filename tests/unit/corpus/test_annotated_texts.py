"""Annotations of texts: the options, files that keep them, token spans, pieces of long texts, words of noun phrases."""

import io
import pickle
import zipfile
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tests.support.annotators import Patterns, PatternSource, calls_in, tokens_of_spans
from tests.support.refusals import refused
from unified.corpus import spacy_pipeline
from unified.corpus.annotate import AnnotationSource, KeptAnnotator, annotating, token_spans
from unified.corpus.noun_phrases import NounPhrases
from unified.corpus.spacy_pipeline import within_limit
from unified.data.annotations import KINDS

TEXTS = ["the old House", "a river runs"]

# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (("entitis",), "--annotate takes some of {all}, got 'entitis' (did you mean 'entities'?)"),
        (("entities", "x"), "--annotate takes some of {all}, got 'entities,x'"),
        ((), "--annotate takes some of {all}, got ''"),
        (("",), "--annotate takes some of {all}, got ''"),
        (("entities", "noun_phrases", "entities"), "--annotate entities,noun_phrases,entities: name each kind once"),
    ],
)
def test_unknown_missing_and_repeated_kinds_of_annotations_are_refused(kinds, message):
    assert refused(AnnotationSource, kinds, "en") == message.format(all="noun_phrases,entities,parts_of_speech")


def test_a_source_loads_the_pipeline_with_its_kinds_and_code(monkeypatch):
    monkeypatch.setattr(spacy_pipeline, "SpacyAnnotator", lambda kinds, pipeline, code: (kinds, pipeline, code))
    source = AnnotationSource(KINDS, "en", "code")
    assert source.load() == (KINDS, "en", "code") and AnnotationSource(KINDS, "en").load() == (KINDS, "en", None)
    with pytest.raises(FrozenInstanceError):
        source.pipeline = "de"


# ---------------------------------------------------------------- kept files


def kept(tmp_path, kinds=KINDS):
    """An annotator, the log of its calls, and the path of what it kept of the texts."""
    folder = tmp_path / "a" / "kept"
    annotator = KeptAnnotator(Patterns(kinds, tmp_path / "log"), folder)
    annotator(TEXTS)
    (path,) = folder.iterdir()
    return annotator, tmp_path / "log", path


def written(arrays, compressed=False):
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


class MakesFile:
    """Makes a file when it is unpickled, as a malicious pickle runs commands."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize(
    ("name", "changed", "says"),
    [
        ("kinds", None, "of which some are missing"),
        ("kinds", np.array([["entities"]]), "of which some are missing"),
        ("kinds", np.array([1, 2, 3]), "of which some are missing"),
        ("kinds", np.array([b"entities", b"noun_phrases", b"parts_of_speech"]), "of which some are missing"),
        *((kind, None, "of which some are missing") for kind in KINDS),
        ("entities", np.array([[0, 0, 1]], dtype=np.uint8), "of another form"),
        ("entities", np.array([[0.0, 0, 1]]), "of another form"),
        ("entities", np.array([0, 0, 1]), "of another form"),
        ("entities", np.array([[[0, 0, 1]]]), "of another form"),
        ("entities", np.array([[0, 0, 1, 2]]), "of another form"),
        ("parts_of_speech", np.array([[0, 0, 1]]), "of another form"),
        ("entities", np.array([[-1, 0, 1]]), "of another form"),
        ("entities", np.array([[0, 0, 1], [2, 0, 1]]), "of another form"),
    ],
)
def test_kept_annotations_of_another_form_are_made_anew(tmp_path, capsys, name, changed, says):
    annotator, log, path = kept(tmp_path)
    first = annotator(TEXTS)
    assert calls_in(log) == 1 and capsys.readouterr().err == ""
    arrays = dict(np.load(path)) | {name: changed}
    path.write_bytes(written({key: value for key, value in arrays.items() if value is not None}))
    again = annotator(TEXTS)
    assert calls_in(log) == 2 and capsys.readouterr().err == f"{path}: kept annotations {says}; made anew\n"
    assert all(np.array_equal(first[kind], again[kind]) for kind in KINDS)
    annotator(TEXTS)
    assert calls_in(log) == 2, "the annotations made anew are kept"


def test_spans_of_the_first_and_the_last_text_are_kept(tmp_path):
    annotator, log, path = kept(tmp_path)
    arrays = dict(np.load(path)) | {"entities": np.array([[0, 0, 1], [1, 0, 1]])}
    path.write_bytes(written(arrays))
    assert annotator(TEXTS)["entities"].tolist() == [[0, 0, 1], [1, 0, 1]] and calls_in(log) == 1


def test_a_kept_kind_that_nobody_knows_is_made_anew(tmp_path, capsys):
    annotator, log, path = kept(tmp_path)
    arrays = dict(np.load(path))
    arrays |= {"kinds": np.append(arrays["kinds"], "verbs"), "verbs": arrays["entities"]}
    path.write_bytes(written(arrays))
    annotator(TEXTS)
    assert calls_in(log) == 2 and f"{path}: kept annotations of another form; made anew" in capsys.readouterr().err


def test_damaged_and_foreign_archives_are_made_anew_and_run_nothing(tmp_path, capsys):
    annotator, log, path = kept(tmp_path)
    good = path.read_bytes()
    arrays = dict(np.load(path))
    pickled = written(arrays | {"entities": np.array([MakesFile(tmp_path / "made")], dtype=object)})
    flipped = bytearray(good)
    flipped[good.index(b"\x93NUMPY") + 130] ^= 1  # in the data of an array, which numpy itself would not notice
    no_array = io.BytesIO()
    with zipfile.ZipFile(no_array, "w") as archive:
        archive.writestr("entities.npy", b"\x93NUMPY\x01\x00")
    cases = [(pickled, "that cannot be read (Object arrays cannot be loaded"), (bytes(flipped), "the checksum of ")]
    cases += [(b"", "or a truncated or damaged one"), (good[:-30], "or a truncated or damaged one")]
    cases += [(written(arrays, True), "inside it is compressed"), (no_array.getvalue(), "that cannot be read (")]
    for calls, (content, says) in enumerate(cases, 2):
        path.write_bytes(content)
        annotator(TEXTS)
        said = capsys.readouterr().err
        assert calls_in(log) == calls and said.startswith(f"{path}: ") and says in said
        assert said.endswith("; made anew\n") and path.read_bytes() == good
    assert not (tmp_path / "made").exists()
    pickle.loads(pickle.dumps(MakesFile(tmp_path / "made"))).close()
    assert (tmp_path / "made").exists(), "unpickling would have made the file"


def test_annotations_of_no_kind_and_of_no_text_are_kept_too(tmp_path):
    annotator, log, _ = kept(tmp_path, ())
    assert annotator(TEXTS) == {} and calls_in(log) == 1
    assert annotator([]) == annotator([]) == {} and calls_in(log) == 2
    assert annotator.description == {"kinds": [], "pipeline": "patterns"}


def test_finished_annotations_stay_beside_the_folder_until_all_is_done(tmp_path, capsys):
    destination, folder = tmp_path / "data", tmp_path / ".data.annotations"
    with annotating(None, destination) as none:
        assert none is None
    source = PatternSource(KINDS, "patterns")
    with pytest.raises(KeyboardInterrupt), annotating(source, destination):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "" and not folder.exists()
    with pytest.raises(ZeroDivisionError), annotating(source, destination) as annotator:
        annotator(TEXTS)
        raise ZeroDivisionError
    said = f"finished annotations are kept in {folder}; the same command goes on from there\n"
    assert capsys.readouterr().err == said and len(list(folder.iterdir())) == 1
    with annotating(source, destination) as annotator:
        annotator(TEXTS)
    taken = f"annotations that an interrupted run left in {folder} are taken over where the text is the same\n"
    assert capsys.readouterr().err == taken and not folder.exists()
    with annotating(source, destination):
        pass  # no chunk was annotated, and there is no folder to remove
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------- spans of tokens


def random_offsets(rng):
    """Characters of tokens: with gaps between some, and several that stand for one character together."""
    offsets, at = [], 0
    for _ in range(rng.integers(0, 9)):
        at += int(rng.integers(0, 3))
        size = int(rng.integers(1, 4))
        offsets += [(at, at + size)] * (int(rng.integers(1, 4)) if size == 1 else 1)
        at += size
    return offsets, at


@pytest.mark.parametrize("tagged", [False, True])
def test_token_spans_are_the_tokens_that_share_a_character_with_a_span(tagged):
    rng, left_out = np.random.default_rng(0), 0
    for _ in range(200):
        offsets, spans, expected = [], [], []
        for text in range(rng.integers(1, 6)):
            own, length = random_offsets(rng)
            bounds = np.unique(rng.integers(0, length + 4, size=8)).tolist()
            found = [(*pair, *[int(rng.integers(17))] * tagged) for pair in zip(bounds, bounds[1:], strict=False)]
            found = [span for span in found if rng.random() < 0.7]
            offsets.append(own)
            spans += [(text, *span) for span in found]
            expected.append([number for span in tokens_of_spans(found, own) for number in span])
            left_out += len(expected[-1]) < len(found) * (2 + tagged)
        given = np.array([pair for own in offsets for pair in own], dtype=np.int64).reshape(-1, 2)
        sizes = np.array([len(own) for own in offsets])
        found = token_spans(np.array(spans, dtype=np.int64).reshape(-1, 3 + tagged), given, sizes)
        assert found.tokens.dtype == np.int32 and len(found.sizes) == len(sizes)
        assert [one.tolist() for one in np.split(found.tokens, np.cumsum(found.sizes)[:-1])] == expected
    assert left_out > 20


# ---------------------------------------------------------------- long texts, and words of noun phrases


@pytest.mark.parametrize(
    ("text", "limit", "pieces"),
    [
        ("", 5, [""]),
        ("aaaaa", 5, ["aaaaa"]),
        ("aaaaab", 5, ["aaaaa", "b"]),
        ("aaa bbb ccc", 7, ["aaa", " bbb", " ccc"]),
        ("aaa bbb ccc", 8, ["aaa bbb", " ccc"]),
        ("aaa bbb ccc", 11, ["aaa bbb ccc"]),
        ("a bbbbb", 4, ["a", " bbb", "bb"]),
        (" aaaaaa", 4, [" aaa", "aaa"]),
        ("a b c d", 3, ["a", " b", " c", " d"]),
    ],
)
def test_a_long_text_is_cut_in_front_of_the_last_space_that_leaves_room(text, limit, pieces):
    assert [text[start:stop] for start, stop in within_limit(text, limit)] == pieces


def test_pieces_of_a_long_text_leave_no_character_out_and_short_words_whole():
    rng, whole = np.random.default_rng(0), 0
    for _ in range(300):
        text, limit = "".join(rng.choice(list("aaa "), size=60)), int(rng.integers(2, 20))
        pieces = [text[start:stop] for start, stop in within_limit(text, limit)]
        assert "".join(pieces) == text and max(map(len, pieces)) <= limit and min(map(len, pieces)) > 0
        if max(map(len, text.split())) < limit:
            assert [word for piece in pieces for word in piece.split()] == text.split()
            whole += 1
    assert whole > 50


def test_words_of_noun_phrases_are_the_words_that_a_phrase_touches(monkeypatch):
    asked = []

    class Annotator:
        def __init__(self, kinds, pipeline, code):
            asked.append((kinds, pipeline, code))

        def __call__(self, texts):
            asked.append(texts)
            spans = [(0, 5, 11), (0, 14, 15), (0, 20, 21), (2, 0, 1)]
            return {"noun_phrases": np.array(spans, dtype=np.int64)}

    monkeypatch.setattr(spacy_pipeline, "SpacyAnnotator", Annotator)
    finder = NounPhrases("en", "code")
    assert finder.description == "words of noun phrases (en)"
    # Phrases of the first line: ".S. (o", the space behind "(old)", and the "o" of "to".
    words = finder.words(["the  U.S.\u2003(old) xe, to", "a b", "c d"])
    assert list(words) == ["U.S.", "(old)", "to", "c"]
    assert asked == [(("noun_phrases",), "en", "code"), ["the U.S. (old) xe, to", "a b", "c d"]]
