"""Data folders of documents and of pairs: what is found in them, and what is refused."""

import pytest

from unified.data.prepared_folder import DataFolder
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError


def folder_of(path, *names: str):
    path.mkdir(exist_ok=True)
    for name in names:
        (path / name).touch()
    return path


def test_a_folder_of_documents(tmp_path):
    path = folder_of(tmp_path / "data", "train.idx", "train.entities.idx", "valid.idx")
    Vocabulary(["a", "b"]).save(path / "dict.txt")
    folder = DataFolder.open(str(path), None, None)
    assert (folder.source, folder.target, folder.paired, folder.path) == (None, None, False, path)
    assert folder.prefixes("valid") == (str(path / "valid"),)
    assert folder.vocabulary().symbols == Vocabulary(["a", "b"]).symbols


@pytest.mark.parametrize("order", ["de-en", "en-de"])
def test_a_folder_of_pairs_has_them_by_either_name(tmp_path, order):
    """fairseq names a file by both languages, in the order that it was prepared in, and by its own."""
    path = folder_of(
        tmp_path / "data", *(f"{split}.{order}.{side}.idx" for split in ("train", "x.y") for side in ("de", "en"))
    )
    for side in ("de", "en"):
        Vocabulary(["a", "b"]).save(path / f"dict.{side}.txt")
    found = DataFolder.open(str(path), None, None)
    assert (found.source, found.target) == tuple(order.split("-")) and found.paired
    for source, target in (("de", "en"), ("en", "de")):
        folder = DataFolder.open(str(path), source, target)
        assert (folder.source, folder.target) == (source, target)
        for split in ("train", "x.y"):
            base = path / f"{split}.{order}"
            assert folder.prefixes(split) == (f"{base}.{source}", f"{base}.{target}")
        with pytest.raises(UnifiedError) as caught:
            folder.prefixes("test")
        there = ", ".join(f"{split}.{order}.{side}.idx" for split in ("train", "x.y") for side in ("de", "en"))
        assert str(caught.value) == f"{path}: has no split 'test' for {source}-{target}; it holds {there}"
        assert folder.vocabulary().symbols == Vocabulary(["a", "b"]).symbols
        assert DataFolder.open(str(path), source, None) == DataFolder.open(str(path), None, target) == folder


def test_a_split_is_missing_where_nothing_is(tmp_path):
    with pytest.raises(UnifiedError, match=f"^{tmp_path}: has no split 'train' for a-b; it holds no "):
        DataFolder.open(str(tmp_path), "a", "b").prefixes("train")


def test_sides_of_pairs_must_share_a_dictionary(tmp_path):
    path = folder_of(tmp_path / "data", "train.a-b.a.idx", "train.a-b.b.idx")
    for side in ("a", "b"):
        Vocabulary([side]).save(path / f"dict.{side}.txt")
    with pytest.raises(UnifiedError) as caught:
        DataFolder.open(str(path), None, None).vocabulary()
    assert str(caught.value) == (
        f"dict.a.txt and dict.b.txt in {path} differ; one Transformer needs one dictionary: use `unified prepare`, or "
        "fairseq-preprocess --joined-dictionary"
    )


def test_files_of_other_names_make_no_pairs(tmp_path):
    """A name needs a split, two languages, and one of them; those of documents have a split alone."""
    for number, name in enumerate(
        ["a-b.a.idx", "train.a-b.c.idx", "train.a.b-c.idx", "train.ab.a-b.idx", "a.b-c.d.d.idx", "b-c.b.x.idx"]
    ):
        folder = DataFolder.open(str(folder_of(tmp_path / str(number), name)), None, None)
        assert not folder.paired, name
    dotted = DataFolder.open(str(folder_of(tmp_path / "pairs", "x.y.a-b.b.idx", "x.y.a-b.a.bin")), None, None)
    assert (dotted.source, dotted.target) == ("a", "b")


def test_folders_that_cannot_be_opened(tmp_path):
    nothing, several = folder_of(tmp_path / "nothing", "train.bin"), tmp_path / "several"
    folder_of(several, "train.de-en.de.idx", "train.fr-en.en.idx")
    for path, message in (
        (tmp_path / "missing", "no such data folder; make one with `unified prepare` or fairseq-preprocess"),
        (
            nothing / "train.bin",
            "a file, where a data folder is wanted; make one with `unified prepare` or fairseq-preprocess",
        ),
        (nothing, "holds no prepared data (*.idx); make it with `unified prepare`"),
        (several, "holds several language pairs ([('de', 'en'), ('fr', 'en')]); choose with -s and -t"),
    ):
        with pytest.raises(UnifiedError) as caught:
            DataFolder.open(str(path), None, None)
        assert str(caught.value) == f"{path}: {message}"


def test_one_language_chooses_the_other_where_it_can(tmp_path):
    path = folder_of(tmp_path / "data", "train.de-en.de.idx", "train.fr-en.en.idx")
    for source, target, found in (("fr", None, "fr en"), (None, "fr", "en fr"), ("de", None, "de en")):
        folder = DataFolder.open(str(path), source, target)
        assert f"{folder.source} {folder.target}" == found
    documents = folder_of(tmp_path / "documents", "train.idx")
    for folder, source, target, message in (
        (path, None, "en", "holds several language pairs ([('de', 'en'), ('fr', 'en')]); choose with -s and -t"),
        (path, "en", None, "holds several language pairs ([('en', 'de'), ('en', 'fr')]); choose with -s and -t"),
        (path, "it", None, "holds no pairs for -s it; its language pairs are [('de', 'en'), ('fr', 'en')]"),
        (path, None, "it", "holds no pairs for -t it; its language pairs are [('de', 'en'), ('fr', 'en')]"),
        (documents, "fr", None, "holds no pairs for -s fr; it holds documents"),
        (folder_of(tmp_path / "nothing"), "fr", None, "holds no prepared data (*.idx); make it with `unified prepare`"),
    ):
        with pytest.raises(UnifiedError) as caught:
            DataFolder.open(str(folder), source, target)
        assert str(caught.value) == f"{folder}: {message}"
