"""Files of CoNLL's shared tasks: words, speakers, chains and tags, and the exact text of every refusal."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from unified.errors import UnifiedError
from unified.tasks.metrics.conll import (
    CoreferenceDocument,
    coreference_text,
    pair_documents,
    read_coreference,
    read_tags,
)

COLUMNS = ["doc", "0", "0", "word", "-", "-", "-", "-", "-", "Ann", "*", "-"]


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a file of lines and returns its name, which is short, so that messages are not cut."""
    monkeypatch.chdir(tmp_path)

    def of(*lines: str) -> str:
        Path("f").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return "f"

    return of


def refusal(call, *arguments, **settings) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments, **settings)
    return caught.value.details


def row(*changes: tuple[int, str], separator: str = "\t", count: int = 12) -> str:
    """A line of ``count`` columns, the last of which is that of the chains."""
    columns = [*COLUMNS[: count - 1], "-"]
    for number, text in changes:
        columns[number] = text
    return separator.join(columns)


def test_words_and_speakers_of_sentences(write):
    """The fourth column, and the tenth of twelve or more; blank lines end sentences, however many there are."""
    lines = [
        "nothing before a document is read (7)",
        "#begin document  (a); part 000 ",
        "",
        row((3, "He"), (9, "-")),
        row((3, "said"), (9, "_"), (-1, "(1)"), separator="  "),
        " ",
        "",
        row((3, "so"), (9, "Bob Lee"), (-1, "_")),
        row((3, "/."), count=11),
        row((3, "/?"), count=13),
        row((3, "1/.")),
        "",
        "#end document",
        "nothing between documents is read (7",
        "#  begin document b",
        row((3, "z"), count=5, separator=" "),
        "# end document",
    ]
    found = read_coreference(write(*lines), words=True)
    assert found == {
        "(a); part 000": CoreferenceDocument(
            [[(1, 1)]], 6, [["He", "said"], ["so", ".", "?", "1/."]], [[None, None], ["Bob Lee", None, "Ann", "Ann"]]
        ),
        "b": CoreferenceDocument([], 1, [["z"]], [[None]]),
    }
    plain = read_coreference(write(*lines))
    assert [(one.tokens, one.sentences, one.speakers) for one in plain.values()] == [(6, [], []), (1, [], [])]


def test_a_line_without_a_word_is_refused(write):
    short, blank = row(count=4), row((3, " "))
    message = "expected a word in the fourth column, before that of the chains"
    path = write("#begin document a", row(count=5), short, blank, "#end document")
    assert refusal(read_coreference, path, words=True) == f"f, line 3: {message}; f, line 4: {message}"
    assert read_coreference(path)["a"].tokens == 3


def test_columns_are_those_between_tabs_where_there_is_one(write):
    """A cell with spaces is one column then."""
    path = write("#begin document a", "x\t(1) | (2)".replace(" | ", "|"), "x y\t(1)", "(3) (1)", "#end document")
    assert read_coreference(path)["a"].chains == [[(0, 0), (1, 1), (2, 2)], [(0, 0)]]
    assert refusal(read_coreference, write("#begin document a", "x\t(1) (2)", "#end document")) == (
        "f, line 2: expected a last column such as '(4|(7)', '4)' or '-', got '(1) (2)'"
    )


def test_a_long_cell_is_cut_in_the_message(write):
    path = write("#begin document a", "x\t" + "z" * 61, "#end document")
    assert refusal(read_coreference, path).endswith("got '" + "z" * 60 + "'")


def test_neighbouring_marks_are_told_apart(write):
    """No bar is needed between them, and numbers do not flow together."""
    cells = ["(1(2", "(3)1)", "(12|(1)2)", "12)(2)", "(4)4)"]
    path = write("#begin document a", *(f"x\t{cell}" for cell in cells[:4]), "#end document")
    assert read_coreference(path)["a"].chains == [[(0, 1), (2, 2)], [(0, 2), (3, 3)], [(1, 1)], [(2, 3)]]
    assert refusal(read_coreference, write("#begin document a", f"x\t{cells[4]}", "#end document")) == (
        "f, line 2: a mention of chain 4 ends that has not begun"
    )


def test_problems_of_a_file_are_named_together_and_the_first_ten_at_most(write):
    lines = ["#begin document a", "x\t(1", "#begin document a", "x\t1)", "#end document", "#begin document b", "x\t-"]
    assert refusal(read_coreference, write(*lines)) == (
        "f, line 3: document 'a' has no '#end document' line; f, line 4: a mention of chain 1 ends that has not begun; "
        "f, line 7: document 'b' has no '#end document' line"
    )
    twice = write("#begin document a", "#end document", "#begin document a", "#end document")
    assert refusal(read_coreference, twice) == "f, line 3: document 'a' was in this file before"
    many = refusal(read_coreference, write("#begin document a", *["x\t1)"] * 12, "#end document"))
    assert many.count("a mention of chain 1") == 10 and many.endswith("line 11: a mention of chain 1 ends that has "
                                                                      "not begun; and 2 more")  # fmt: skip
    ten = refusal(read_coreference, write("#begin document a", *["x\t1)"] * 10, "#end document"))
    assert ten.endswith("f, line 11: a mention of chain 1 ends that has not begun")
    assert refusal(read_coreference, write("x\t-")) == (
        "f: no '#begin document' line; expected a file in the format of CoNLL-2012"
    )


def random_document(rng: random.Random) -> CoreferenceDocument:
    """Sentences with speakers, and chains in each of which no two mentions cross."""
    sentences = [[f"w{rng.randrange(9)}" for _ in range(rng.randint(1, 5))] for _ in range(rng.randint(1, 4))]
    speakers = [[rng.choice(["Ann", "B C", None]) for _ in words] for words in sentences]
    tokens = sum(map(len, sentences))
    chains: list[list[tuple[int, int]]] = []
    for _ in range(rng.randint(0, 4)):
        chain: list[tuple[int, int]] = []
        for _ in range(rng.randint(1, 4)):
            start, end = sorted(rng.choices(range(tokens), k=2))
            if (start, end) not in chain and not any(a < start <= b < end or start < a <= end < b for a, b in chain):
                chain.append((start, end))
        chains.append(chain)
    return CoreferenceDocument(chains, tokens, sentences, speakers)


def test_what_is_written_is_read(tmp_path):
    """Spaces within words and speakers become underscores; the chains keep their mentions."""
    rng = random.Random(3)
    for _ in range(150):
        documents = {f"(a/b_{i}); part 00{i}": random_document(rng) for i in range(2)}
        path = tmp_path / "f"
        path.write_text(coreference_text(documents), encoding="utf-8")
        found = read_coreference(path, words=True)
        assert list(found) == list(documents)
        for name, document in documents.items():
            assert found[name].tokens == document.tokens and found[name].sentences == document.sentences
            assert found[name].speakers == [[one and one.replace(" ", "_") for one in own] for own in document.speakers]
            assert sorted(map(sorted, found[name].chains)) == sorted(map(sorted, document.chains))


def test_the_columns_that_are_written():
    document = CoreferenceDocument([[(0, 2), (0, 1), (1, 1)], [(0, 0), (2, 2)], [(1, 2)]], 3, [["a b", "c"], ["d"]])
    assert coreference_text({"(x/y); part 003": document, "z": CoreferenceDocument([], 1, [["e"]], [["S"]])}) == (
        "#begin document (x/y); part 003\n"
        "x/y\t003\t0\ta_b\t-\t-\t-\t-\t-\t-\t*\t(0|(0|(1)\n"
        "x/y\t003\t1\tc\t-\t-\t-\t-\t-\t-\t*\t(2|(0)|0)\n"
        "\n"
        "x/y\t003\t0\td\t-\t-\t-\t-\t-\t-\t*\t(1)|2)|0)\n"
        "\n"
        "#end document\n"
        "#begin document z\n"
        "z\t0\t0\te\t-\t-\t-\t-\t-\tS\t*\t-\n"
        "\n"
        "#end document\n"
    )


@pytest.mark.parametrize(
    ("chain", "crosses"),
    [
        ([(0, 1), (1, 2)], True),  # one ends where the other begins: the file would close the wrong one
        ([(0, 2), (1, 3)], True),
        ([(0, 1), (2, 3)], False),
        ([(0, 3), (1, 2)], False),
        ([(0, 3), (0, 1), (2, 3)], False),
        ([(2, 3), (0, 1)], False),
        ([(0, 3), (1, 1), (2, 3)], False),
        ([(0, 2), (0, 0), (1, 3)], True),
    ],
)
def test_mentions_of_a_chain_that_cross_are_refused(chain, crosses):
    document = CoreferenceDocument([chain], 4, [["a", "b", "c", "d"]])
    if crosses:
        assert refusal(coreference_text, {"x": document}) == (
            f"document 'x': two mentions of one chain cross at token {max(start for start, _ in chain)}"
        )
    else:
        assert coreference_text({"x": document}).count("(0") == len(chain)


def test_a_name_of_several_lines_is_refused():
    document = CoreferenceDocument([], 1, [["a"]])
    assert refusal(coreference_text, {"a\nb": document}) == "document 'a\\nb': a name is one line"


def test_documents_pair_by_name():
    one, two = CoreferenceDocument([[(0, 0)]], 2), CoreferenceDocument([[(1, 1)]], 2)
    assert pair_documents({"a": one, "b": two}, {"b": one, "a": two}, "k", "r") == (
        [one.chains, two.chains],
        [two.chains, one.chains],
    )
    refused = [
        ({"a": one, "b": one}, {"a": one}, "r: 1 document missing, the first is 'b'"),
        ({"a": one}, {"a": one, "c": one}, "k: 1 document missing, the first is 'c'"),
        ({"a": one, "b": one, "c": one}, {"d": one, "a": one}, "r: 2 documents missing, the first is 'b'; it has 'd' "
         "instead"),
        ({"a": one}, {"a": CoreferenceDocument([], 3)}, "r: document 'a' has 3 tokens, in k 2"),
    ]  # fmt: skip
    for key, response, message in refused:
        assert refusal(pair_documents, key, response, "k", "r") == message


def test_tags_are_the_last_column(write):
    path = write("", " ", "a NN B-X", "b c\tNN\tO ", "", "", "d NN I-X", "")
    assert read_tags(path) == [["B-X", "O"], ["I-X"]] and read_tags(write("B-X", "", " O")) == [["B-X"], ["O"]]
    assert refusal(read_tags, write("", " ", "-DOCSTART- O")) == "f: no tags; expected columns, one token a line"
    assert refusal(read_tags, write("a O", "b", "", "c\t", "", "d O", "", "e x O")) == (
        "f, line 2: 1 column, but line 1 has 2; f, line 4: the tag is empty; f, line 8: 3 columns, but line 1 has 2"
    )
