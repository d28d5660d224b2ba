"""Documents with chains: CoNLL-2012's files and JSON lines as items, predictions as files that the scorer compares."""

import json
import random

import pytest

from unified.cli import main
from unified.errors import UnifiedError
from unified.tasks.heads import Coreference
from unified.tasks.heads.documents import DocumentItem, read_conll, response_text
from unified.tasks.heads.items import write_items
from unified.tasks.metrics import score_coreference
from unified.tasks.metrics.conll import CoreferenceDocument, coreference_text, read_coreference


def random_chains(rng: random.Random, words: int) -> tuple:
    """Mentions of which no two cross, dealt to chains."""
    mentions, found = [], set()
    for _ in range(rng.randint(0, 15)):
        start = rng.randrange(words)
        end = min(words - 1, start + rng.choice((0, 0, 1, 2, 5)))
        if not any(a < start <= b < end or start < a <= end < b for a, b in mentions) and (start, end) not in found:
            mentions.append((start, end))
            found.add((start, end))
    groups = [[] for _ in range(4)]
    for mention in sorted(mentions):
        rng.choice(groups).append(mention)
    return tuple(tuple(group) for group in groups if group)


def random_item(rng: random.Random, name: str, chains=random_chains) -> DocumentItem:
    sentences = tuple(
        tuple(rng.choice(["a", "Bé", "(", "-", "|x", "#y"]) for _ in range(rng.randint(1, 12)))
        for _ in range(rng.randint(1, 5))
    )
    speakers = tuple(tuple(rng.choice([None, "Ann", "Bob"]) for _ in words) for words in sentences)
    speakers = speakers if any(map(any, speakers)) else None
    return DocumentItem(name, sentences, speakers, "bc", chains(rng, sum(map(len, sentences))))


def key_text(items: list[DocumentItem]) -> str:
    return response_text(items, [{"id": item.id, "chains": item.chains} for item in items])


def sorted_chains(item: DocumentItem) -> list:
    return sorted(map(sorted, item.chains))


def test_items_survive_both_formats(tmp_path):
    rng = random.Random(0)
    for _ in range(60):
        items = [random_item(rng, f"(bc/d{i}); part 00{i}") for i in range(3)]
        write_items(tmp_path / "items.jsonl", items)
        assert Coreference.read(tmp_path / "items.jsonl") == items
        (tmp_path / "key.conll").write_text(key_text(items))
        read = read_conll(tmp_path / "key.conll")
        for item, other in zip(items, read, strict=True):
            assert sorted_chains(item) == sorted_chains(other)
            assert vars(item) | {"chains": None} == vars(other) | {"chains": None}


def test_the_twelve_columns():
    document = CoreferenceDocument([[(0, 2), (0, 0)], [(1, 2)]], 3, [["A", "b"], ["c d"]], [["Ann", None], [None]])
    assert coreference_text({"(nw/1); part 001": document}) == (
        "#begin document (nw/1); part 001\n"
        "nw/1\t001\t0\tA\t-\t-\t-\t-\t-\tAnn\t*\t(0|(0)\n"
        "nw/1\t001\t1\tb\t-\t-\t-\t-\t-\t-\t*\t(1\n"
        "\n"
        "nw/1\t001\t0\tc_d\t-\t-\t-\t-\t-\t-\t*\t1)|0)\n"
        "\n"
        "#end document\n"
    )


@pytest.mark.parametrize("chain", [[(0, 2), (1, 3)], [(0, 1), (1, 2)], [(0, 3), (1, 2), (2, 4)]])
def test_what_the_format_cannot_say_is_refused(chain):
    document = CoreferenceDocument([chain], 5, [["a"] * 5])
    with pytest.raises(UnifiedError, match="document 'd': two mentions of one chain cross at token"):
        coreference_text({"d": document})


def test_predictions_through_files_score_as_they_do_directly(tmp_path, capsys):
    rng = random.Random(1)
    for _ in range(20):
        items = [random_item(rng, f"(d{i}); part 000") for i in range(4)]
        guesses = [
            {"id": item.id, "chains": [list(map(list, c)) for c in random_chains(rng, len(item.words))]}
            for item in items
        ]
        key, response = tmp_path / "key.conll", tmp_path / "response.conll"
        key.write_text(key_text(items))
        response.write_text(Coreference().official(items, guesses)["response.conll"])
        assert main(["score", "coref", str(key), str(response)]) == 0
        mentions = [[[tuple(mention) for mention in chain] for chain in guess["chains"]] for guess in guesses]
        assert json.loads(capsys.readouterr().out) == score_coreference([item.chains for item in items], mentions)


def test_documents_of_one_name_make_no_response():
    items, predictions = [DocumentItem("a", (("w",),))] * 2, [{"id": "a", "chains": []}] * 2
    assert Coreference().official(items, predictions) == {}


def test_bad_lines_of_a_data_folder_are_reported_together(tmp_path):
    good = {"sentences": [["a", "b"], ["c"]], "chains": [[[0, 1], [2, 2]]]}
    bad = [
        ({"sentences": []}, "3 lines (1, 2, 3): 'sentences' must"),
        ({"sentences": [["a"], []]}, ""),
        ({"sentences": ["ab"]}, ""),
        ({"speakers": [["x", "y"]]}, "2 lines (4, 5): 'speakers' must"),
        ({"speakers": [["x"], [None]]}, ""),
        ({"genre": 3}, "line 6: 'genre' must"),
        ({"chains": None}, "5 lines (7, 8, 9, ...): 'chains' must"),
        ({"chains": [[[0, 3]]]}, ""),
        ({"chains": [[[1, 0]]]}, ""),
        ({"chains": [[[True, 1]]]}, ""),
        ({"chains": [[-1, 0]]}, ""),
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(json.dumps(good | change) for change, _ in bad))
    with pytest.raises(UnifiedError) as caught:
        Coreference.read(path)
    for _, message in bad:
        assert message in caught.value.details
    path.write_text('{"sentences": [["line\u2028separator", "a\x85b"]]}')  # what str.splitlines takes for ends of lines
    assert Coreference.read(path, labelled=False) == [DocumentItem("1", (("line\u2028separator", "a\x85b"),))]


def test_bad_lines_of_conll_are_reported_together(tmp_path):
    path = tmp_path / "x.conll"
    lines = ["#begin document d", "d 0 0 w (1", "d 0 1 w 2)", "d 0 -", "d 0 3 w x", "#end document"]
    path.write_text("\n".join(lines))
    with pytest.raises(UnifiedError) as caught:
        read_conll(path)
    for message in (
        "x.conll, line 3: a mention of chain 2 ends that has not begun",
        "x.conll, line 4: expected a word in the fourth column",
        "x.conll, line 5: expected a last column such as '(4|(7)', '4)' or '-', got 'x'",
        "x.conll, line 2: the mention of chain 1 that begins here does not end",
    ):
        assert message in caught.value.details
    path.write_text("\n".join(["#begin document d", *["d 0 0 w 1)"] * 14, "#end document"]))
    with pytest.raises(UnifiedError, match=r"line 2: .*; and \d+ more$") as caught:
        read_conll(path)
    assert "line 11: " in caught.value.details and caught.value.details.endswith("; and 4 more")
    path.write_text("#begin document d\n\n#end document\n")
    with pytest.raises(UnifiedError, match="x.conll: no words in 1 document, the first is 'd'"):
        read_conll(path)


@pytest.mark.parametrize(
    ("name", "genre"),
    [
        ("(bc/cctv/00/cctv_0000); part 000", "bc"),
        ("(GUM_academic_art); part 000", "academic"),
        ("(1023_bleak_house_brat); part 0", None),
        ("(wsj/1); part 0", None),
        ("anything", None),
    ],
)
def test_genres_stand_in_names(tmp_path, name, genre):
    path = tmp_path / "x.conll"
    path.write_text(f"#begin document {name}\nd 0 0 w - \n#end document\n")
    assert read_conll(path) == [DocumentItem(name, (("w",),), None, genre, ())]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "documents", "words", "mentions", "named", "genres"),
    [
        ("litbank_coref", 10, 21037, 2819, 0, 0),
        ("ontogum_coref", 30, 28119, 3818, 11987, 15),
    ],
)
def test_real_documents(unified_data, tmp_path, name, documents, words, mentions, named, genres):
    key = unified_data / name / "dev.conll.xz"
    items = read_conll(key)
    assert len(items) == documents and sum(len(item.words) for item in items) == words
    assert sum(len(chain) for item in items for chain in item.chains) == mentions
    assert sum(name is not None for item in items for said_by in item.speakers or () for name in said_by) == named
    assert len({item.genre for item in items} - {None}) == genres
    (tmp_path / "copy").write_text(key_text(items))
    copy, original = read_coreference(tmp_path / "copy"), read_coreference(key)
    assert {name: sorted(map(sorted, d.chains)) for name, d in copy.items()} == {
        name: sorted(map(sorted, d.chains)) for name, d in original.items()
    }
