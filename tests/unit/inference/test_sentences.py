"""Inputs of `unified generate`: sides of a split of a folder, and lines of a file."""

import gzip

import pytest

from tests.support.token_files import SEPARATOR, SPECIAL, write
from unified.errors import UnifiedError
from unified.inference.sentences import FileSentences, FolderSentences


class Model:
    """Writes ids as numbers."""

    special = SPECIAL
    unknown_text = "?"

    def decode(self, ids, unknown="<unk>"):
        named = {SEPARATOR: "|", SPECIAL.unknown: unknown}
        return " ".join(named.get(token, str(token)) for token in ids)

    def encode(self, text):
        return [int(word) for word in text.split()]


def split(folder, base, sides, **items):
    for side in sides:
        write(folder / f"{base}.{side}", [[*item, SEPARATOR] for item in items.get(side, [[5], [6]])])


@pytest.fixture
def folder(tmp_path):
    split(
        tmp_path, "test.source-target", ("source", "target"), source=[[5, 6], [7, SEPARATOR, 8, 9]], target=[[10], []]
    )
    return tmp_path


def test_sources_and_references_of_a_folder(folder):
    found, lm = FolderSentences(folder, "test", None, None), Model()
    assert len(found) == 2
    assert [found.source(lm, i) for i in range(2)] == [[5, 6], [7, SEPARATOR, 8, 9]]
    assert [found.parts(lm, i) for i in range(2)] == [["5 6"], ["7", "8 9"]]
    assert [found.texts(lm, i) for i in range(2)] == [("5 6 |", "10 |"), ("7 | 8 9 |", "|")]
    names = {path.name for path in found.files}
    assert len(found.files) == 4 and names == {
        f"test.source-target.{side}.{end}" for side in ("source", "target") for end in ("idx", "bin")
    }


def test_unknown_tokens_are_read_again_as_such_and_match_nothing(folder):
    """As fairseq-generate has it: a source shows what it is, a reference what no hypothesis has."""
    for side in ("source", "target"):
        write(folder / f"odd.source-target.{side}", [[5, SPECIAL.unknown, SEPARATOR]])
    found = FolderSentences(folder, "odd", None, None)
    assert found.parts(Model(), 0) == ["5 ?"] and found.texts(Model(), 0) == ("5 <unk> |", "5 <<unk>> |")


def test_a_source_without_a_separator_at_its_end_is_whole(folder):
    write(folder / "bare.source-target.source", [[5, 6], [SEPARATOR]])
    write(folder / "bare.source-target.target", [[7], [8]])
    found = FolderSentences(folder, "bare", None, None)
    assert [found.source(Model(), i) for i in range(2)] == [[5, 6], []]
    assert found.parts(Model(), 1) == [""]


@pytest.mark.parametrize(
    ("source", "target", "sides"),
    [
        (None, None, ("source", "target")),
        ("source", None, ("source", "target")),
        (None, "target", ("source", "target")),
        ("target", None, ("target", "source")),
        ("target", "source", ("target", "source")),
    ],
)
def test_either_direction_can_be_asked_for(folder, source, target, sides):
    found = FolderSentences(folder, "test", source, target)
    assert [found.sources.prefix, found.targets.prefix] == [f"{folder}/test.source-target.{side}" for side in sides]


def test_one_pair_of_several_is_named(folder):
    split(folder, "test.de-en", ("de", "en"))
    split(folder, "other.de-fr", ("de", "fr"))
    assert FolderSentences(folder, "test", "en", None).sources.prefix.endswith("test.de-en.en")
    for sides, says in (
        ((None, None), "holds several language pairs .*; choose with -s and -t"),
        (("xx", None), "holds no pairs for -s xx; its language pairs are "),
        (("fr", None), "has no split 'test' for fr-de"),
        (("de", "source"), "has no split 'test' for de-source"),
    ):
        with pytest.raises(UnifiedError, match=f"^{folder}: {says}"):
            FolderSentences(folder, "test", *sides)


def test_documents_are_no_pairs(tmp_path):
    write(tmp_path / "test", [[5, 6]])
    with pytest.raises(UnifiedError, match=f"^{tmp_path}: holds documents, no source/target pairs; --input reads"):
        FolderSentences(tmp_path, "test", None, None)


def test_folders_that_are_none_and_sides_of_two_lengths_are_refused(folder):
    with pytest.raises(UnifiedError, match="/no: no such data folder; make one with `unified prepare`"):
        FolderSentences(folder / "no", "test", None, None)
    split(folder, "uneven.a-b", ("a", "b"), b=[[5]])
    with pytest.raises(UnifiedError) as raised:
        FolderSentences(folder, "uneven", "a", None)
    base = f"{folder}/uneven.a-b"
    assert str(raised.value) == f"{base}.a holds 2 items, {base}.b 1; they must pair one to one"


def test_a_side_that_is_missing_is_named(folder):
    """A source without its target names the missing file; a target alone is no pair."""
    split(folder, "lone.a-b", ("a",))
    with pytest.raises(UnifiedError, match=r"/lone\.a-b\.b\.idx"):
        FolderSentences(folder, "lone", "a", None)
    split(folder, "alone.a-b", ("b",))
    with pytest.raises(UnifiedError, match="has no split 'alone' for a-b"):
        FolderSentences(folder, "alone", "a", None)


@pytest.mark.parametrize("name", ["lines.txt", "lines.txt.gz"])
def test_lines_of_a_file_are_sources_without_references(tmp_path, name):
    path = tmp_path / name
    with gzip.open(path, "wt") if name.endswith("gz") else path.open("w") as file:
        file.write("5 6\n\n7\n")
    found, lm = FileSentences(path), Model()
    assert found.files == [path] and len(found) == 3
    assert [found.source(lm, i) for i in range(3)] == [[5, 6], [], [7]]
    assert [found.parts(lm, i) for i in range(3)] == [["5 6"], [""], ["7"]]
    assert [found.texts(lm, i) for i in range(3)] == [("5 6", None), ("", None), ("7", None)]
