"""Writers of splits: chunk after chunk gives the files of the whole text, and counts that are true."""

import numpy as np
import pytest

from tests.support.corpora import items, tree
from unified.corpus.encode import EncodedDocuments, EncodedPairs
from unified.corpus.items import Items
from unified.corpus.split_writers import DocumentSplitWriter, PairSplitWriter
from unified.data.annotations import KINDS, SOURCE_KINDS, columns
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary

END, UNKNOWN = 2, 3
VOCABULARY = Vocabulary([f"w{i}" for i in range(200)])


def flat(lists):
    sizes = np.array([len(one) for one in lists], dtype=np.int64)
    return Items(np.array([number for one in lists for number in one], dtype=np.uint16), sizes)


def random_spans(rng, kind):
    return rng.integers(0, 9, size=columns(kind) * rng.integers(0, 4)).tolist()


def random_pieces(rng, documents):
    """Paragraphs as (document, tokens, spans of each kind), and the same cut into pieces between two paragraphs.

    Numbers of documents increase, not always by one.
    """
    numbers = np.cumsum(rng.integers(1, 3, size=documents)).tolist()
    paragraphs = [
        (
            number,
            [*rng.integers(UNKNOWN, 12, size=rng.integers(1, 6)).tolist(), END],
            [random_spans(rng, k) for k in KINDS],
        )
        for number in numbers
        for _ in range(rng.integers(1, 4))
    ]
    cuts = sorted({0, len(paragraphs), *rng.integers(0, len(paragraphs), size=3).tolist()})
    return paragraphs, [paragraphs[start:stop] for start, stop in zip(cuts, cuts[1:], strict=False)]


def layout(paragraphs):
    """Items and the spans of each kind; between two documents stands an item of the separator alone, without spans."""
    found, spans, before = [], [[] for _ in KINDS], None
    for number, item, own in paragraphs:
        if before not in (None, number):
            found.append([END])
            for kind in spans:
                kind.append([])
        found.append(item)
        for kind, mine in zip(spans, own, strict=True):
            kind.append(mine)
        before = number
    return found, dict(zip(KINDS, spans, strict=True))


def encoded(piece):
    found, spans = layout(piece)
    numbers = {number for number, _, _ in piece}
    return EncodedDocuments(
        flat(found), min(numbers), max(numbers), len(numbers), {kind: flat(own) for kind, own in spans.items()}
    )


def test_documents_that_arrive_in_pieces_are_written_as_one_text(tmp_path):
    rng = np.random.default_rng(0)
    for trial in range(20):
        paragraphs, pieces = random_pieces(rng, int(rng.integers(1, 8)))
        found, spans = layout(paragraphs)
        with DocumentSplitWriter(tmp_path, f"part{trial}", VOCABULARY, KINDS) as writer:
            for piece in pieces:
                writer.add(encoded(piece))
            writer.skipped += trial
        prefix = tmp_path / f"part{trial}"
        assert items(prefix) == found and TokenFile(prefix).dtype == np.uint16
        for kind in KINDS:
            assert items(f"{prefix}.{kind}") == spans[kind] and TokenFile(f"{prefix}.{kind}").dtype == np.int32
        tokens = [token for item in found for token in item]
        assert writer.counts.tolist() == np.bincount(tokens, minlength=len(VOCABULARY)).tolist()
        assert writer.counts.dtype == np.int64
        documents = len({number for number, _, _ in paragraphs})
        assert writer.statistics == {
            "documents": documents,
            "skipped": trial,
            "sentences": len(paragraphs),
            "tokens": len([token for token in tokens if token != END]),
            "unknown": tokens.count(UNKNOWN),
            "spans": {kind: sum(map(len, spans[kind])) // columns(kind) for kind in KINDS},
        }
        shown = [f"{number} {unit}{'s' if number != 1 else ''}" for number, unit in
                 ((documents, "document"), (writer.statistics["tokens"], "token"))]  # fmt: skip
        assert writer.summary == ", ".join(shown)


def test_a_split_without_a_document_counts_none(tmp_path):
    with DocumentSplitWriter(tmp_path, "train", VOCABULARY) as writer:
        pass
    assert writer.statistics == {"documents": 0, "skipped": 0, "sentences": 0, "tokens": 0, "unknown": 0}
    assert sorted(tree(tmp_path)) == ["train.bin", "train.idx"] and items(tmp_path / "train") == []


def test_summaries_write_thousands_with_commas(tmp_path):
    one = EncodedDocuments(flat([[5, 6, END], [END]] * 1200 + [[7, END]]), 0, 1200, 1201)
    with DocumentSplitWriter(tmp_path, "train", VOCABULARY) as documents:
        documents.add(one)
    assert documents.summary == "1,201 documents, 2,401 tokens"
    with PairSplitWriter(tmp_path, "train", VOCABULARY) as pairs:
        pairs.add(EncodedPairs(flat([[5, END]] * 1300), flat([[5, 6, END]] * 1300), 0))
    assert pairs.summary == "1,300 pairs, 3,900 tokens"


def test_pairs_that_arrive_in_pieces_are_written_as_one_text(tmp_path):
    rng = np.random.default_rng(1)

    def sides(count):
        return [[*rng.integers(UNKNOWN, 9, size=rng.integers(1, 5)).tolist(), END] for _ in range(count)]

    sources, targets, spans, skipped = [], [], {kind: [] for kind in SOURCE_KINDS}, 0
    with PairSplitWriter(tmp_path, "valid", VOCABULARY, SOURCE_KINDS) as writer:
        assert writer.statistics["skipped"] == 0
        for count in (3, 1, 7):
            own = sides(count), sides(count), {k: [random_spans(rng, k) for _ in range(count)] for k in SOURCE_KINDS}
            writer.add(
                EncodedPairs(flat(own[0]), flat(own[1]), count, {kind: flat(found) for kind, found in own[2].items()})
            )
            sources, targets, skipped = sources + own[0], targets + own[1], skipped + count
            spans = {kind: spans[kind] + own[2][kind] for kind in SOURCE_KINDS}
    prefix = f"{tmp_path}/valid.source-target"
    assert items(f"{prefix}.source") == sources and items(f"{prefix}.target") == targets
    assert {kind: items(f"{prefix}.source.{kind}") for kind in SOURCE_KINDS} == spans
    assert TokenFile(f"{prefix}.source").dtype == np.uint16 and TokenFile(f"{prefix}.source.oracle").dtype == np.int32
    both = [[token for item in side for token in item] for side in (sources, targets)]
    assert writer.counts.tolist() == np.bincount(both[0] + both[1], minlength=len(VOCABULARY)).tolist()
    assert writer.statistics == {
        "pairs": 11,
        "skipped": skipped,
        "source": {"tokens": len(both[0]) - 11, "unknown": both[0].count(UNKNOWN)},
        "target": {"tokens": len(both[1]) - 11, "unknown": both[1].count(UNKNOWN)},
        "spans": {kind: sum(map(len, spans[kind])) // 2 for kind in SOURCE_KINDS},
    }
    with PairSplitWriter(tmp_path, "test", VOCABULARY) as bare:
        bare.add(EncodedPairs(flat([[5, END]]), flat([[6, END]]), 0))
    assert "spans" not in bare.statistics and not list(tmp_path.glob("test.*.oracle.*"))


@pytest.mark.parametrize("writer", [DocumentSplitWriter, PairSplitWriter])
def test_no_file_is_left_of_a_split_that_was_interrupted(tmp_path, writer):
    kinds = KINDS if writer is DocumentSplitWriter else SOURCE_KINDS
    with pytest.raises(KeyboardInterrupt), writer(tmp_path, "train", VOCABULARY, kinds) as one:
        assert isinstance(one, writer) and list(tmp_path.iterdir())
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
