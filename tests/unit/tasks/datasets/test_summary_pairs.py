"""Data sets of summaries to pairs: every form, what is refused, and the oracle against its definition."""

import gzip
import hashlib
import json
import random

import pytest
from rouge_score.rouge_scorer import RougeScorer

from tests.support.corpora import jsonl, write
from unified.cli import main
from unified.tasks.datasets.summaries.formats import UnifiedError, cnn_dailymail_story, xsum_file
from unified.tasks.datasets.summaries.greedy import greedy_oracle

STORY = """Paris (CNN) -- Mr. Smith left. He went home!

A caption without a stop

"It rained," she said.
He said 'no'

@highlight

Smith leaves

@highlight

It rains | a lot.
"""
ARTICLE = [
    "Paris (CNN) -- Mr. Smith left.",
    "He went home!",
    "A caption without a stop.",
    '"It rained," she said.',
    "He said 'no'",
]


def pairs(tmp_path, *arguments):
    """What `unified pairs` writes, line by line."""
    output = tmp_path / "out.jsonl"
    arguments = [str(argument) for argument in arguments]
    assert main(["pairs", *arguments, "--output", str(output), "--overwrite", "--workers", "1"]) == 0
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def refused(tmp_path, capsys, *arguments):
    """The message of `unified pairs`, which leaves nothing behind."""
    before = sorted(tmp_path.rglob("*"))
    output = tmp_path / "refused.jsonl"
    assert main(["pairs", *map(str, arguments), "--output", str(output), "--workers", "1"]) == 2
    assert sorted(tmp_path.rglob("*")) == before
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("unified pairs: error: ")
    return message.removeprefix("unified pairs: error: ")


# ---------------------------------------------------------------- forms


def test_stories(tmp_path):
    folder = tmp_path / "stories"
    folder.mkdir()
    write(folder / "b.story", STORY)
    write(folder / "a.story", "\ufeffOne .\nTwo\n@highlight\nThree\n")
    tokenized, plain = pairs(tmp_path, "cnn_dailymail", folder)
    assert plain == {"source": " ".join(ARTICLE), "target": "Smith leaves. | It rains / a lot."}
    # Where the stops of a story stand apart, so does the one that is put there.
    assert tokenized == {"source": "One . Two .", "target": "Three ."}
    assert pairs(tmp_path, "cnn_dailymail", folder, "--separator", "[X_SEP]")[1]["target"] == (
        "Smith leaves. [X_SEP] It rains | a lot."
    )


def test_stories_of_one_name_in_two_folders_are_two_pairs(tmp_path):
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        write(folder / "1.story", f"In the {folder.name}.\n@highlight\nThere.")
    assert [row["source"] for row in pairs(tmp_path, "cnn_dailymail", *folders)] == ["In the first.", "In the second."]


@pytest.mark.parametrize("end", [".", "!", "?", "...", "'", "`", '"', "\u2019", "\u201d", ")"])
def test_lines_with_an_end_keep_it(end):
    story = cnn_dailymail_story(f"a b{end}\nc d\n@highlight\ne{end}")
    assert " ".join(story.source) == f"a b{end} c d." and story.target == (f"e{end}",)


def test_stories_by_a_list_of_addresses(tmp_path, capsys):
    folders = [tmp_path / name for name in ("cnn", "dailymail")]
    addresses = [f"http://example.org/{i}" for i in range(3)]
    for i, address in enumerate(addresses):
        folders[i % 2].mkdir(exist_ok=True)
        name = hashlib.sha1(address.encode()).hexdigest()
        write(folders[i % 2] / f"{name}.story", f"Story {i}.\n@highlight\nPoint {i}.")
    chosen = write(tmp_path / "list.txt", f"{addresses[2]}\n\n{addresses[1]}\n")
    found = pairs(tmp_path, "cnn_dailymail", *folders, "--list", chosen)
    assert [row["source"] for row in found] == ["Story 2.", "Story 1."]
    chosen = write(tmp_path / "list.txt", f"{addresses[2]}\nnone\nhttp://x\n")
    message = refused(tmp_path, capsys, "cnn_dailymail", *folders, "--list", chosen, "--verbose")
    name = hashlib.sha1(b"http://x").hexdigest()
    assert message.startswith(f"{chosen}, line 2: no file none.story; {chosen}, line 3: no file {name}.story; in ")


def test_json_lines_of_every_data_set(tmp_path):
    rows = {
        "cnn_dailymail": (
            {"article": "A b. C d.\nE  f", "highlights": "One .\n\nTwo three."},
            {"source": "A b. C d. E f", "target": "One . | Two three."},
        ),
        "gigaword": (
            {"document": "a b c . d", "summary": "b\u00a0c"},
            {"source": "a b c . d", "target": "b c"},
        ),
        "xsum": (
            {"document": "A b.\nC d. E.", "summary": "Two. Sentences."},
            {"source": "A b. C d. E.", "target": "Two. Sentences."},
        ),
        "reuters": (
            {"body": "A b.\nC d.", "title": "HEAD LINE", "topics": []},
            {"source": "A b. C d.", "target": "HEAD LINE"},
        ),
        "scitldr": (
            {"source": ["A b. c", " ", "D"], "target": ["One.", "Another | one."]},
            {"source": "A b. c D", "target": "One.", "references": ["One.", "Another / one."]},
        ),
        "aeslc": (
            {"id": "1", "body": "A b.\nC d.", "subject": "A | b", "annotations": ["Ab", " "]},
            {"source": "A b. C d.", "target": "A / b", "references": ["A / b", "Ab"]},
        ),
    }
    for name, (row, expected) in rows.items():
        assert pairs(tmp_path, name, jsonl(tmp_path / "in.jsonl", [row])) == [expected], name


def test_gigawords_line_files(tmp_path):
    sources = tmp_path / "train.article.txt.gz"
    sources.write_bytes(gzip.compress(b"first one\nsecond one\n"))
    found = pairs(tmp_path, "gigaword", sources, write(tmp_path / "train.title.txt", "first\nsecond"))
    assert found == [{"source": "first one", "target": "first"}, {"source": "second one", "target": "second"}]


def test_xsums_own_files(tmp_path):
    text = "[SN]URL[SN]\nx\n\n[SN]TITLE[SN]\nT\n\n[SN]FIRST-SENTENCE[SN]\nThe  gist.\n\n[SN]RESTBODY[SN]\n"
    text += "One.\nTwo. Three."
    (tmp_path / "bbc").mkdir()
    write(tmp_path / "bbc" / "77.summary", text)
    chosen = write(tmp_path / "ids", "77\n")
    found = pairs(tmp_path, "xsum", tmp_path / "bbc", "--list", chosen)
    assert found == [{"source": "One. Two. Three.", "target": "The gist."}]
    with pytest.raises(UnifiedError, match=r"no part \[SN\]RESTBODY\[SN\]"):
        xsum_file(text.replace("RESTBODY", "REST"))


def test_sentences_and_oracle_come_along(tmp_path, capsys):
    row = {"document": "The cat sat.\nA dog ran off. The sky", "summary": "The dog ran off today"}
    other = {"document": "Nothing of it.", "summary": "\u6f22"}
    path = jsonl(tmp_path / "in.jsonl", [row, other])
    first, second = pairs(tmp_path, "xsum", path, "--oracle")
    assert first["sentences"] == [0, 13, 28] and first["oracle"] == [1]
    assert [first["source"][i : i + 3] for i in first["sentences"]] == ["The", "A d", "The"]
    assert second["oracle"] == []
    said = capsys.readouterr().out
    assert "without a sentence that the oracle takes: 1\n" in said and "might be better" not in said
    row = jsonl(tmp_path / "in.jsonl", [{"document": "a b x c d\na b\nc d", "summary": "a b q c d"}])
    for options, taken in (([], [1, 2]), (["combinations"], [1, 2]), (["greedy"], [0])):
        assert pairs(tmp_path, "xsum", row, "--oracle", *options)[0]["oracle"] == taken
    assert "oracle" not in pairs(tmp_path, "xsum", row)[0]
    capsys.readouterr()
    many = {"document": "\n".join(f"a{i} b{i}." for i in range(7)), "summary": " ".join(f"a{i} b{i}" for i in range(7))}
    (row,) = pairs(tmp_path, "xsum", jsonl(tmp_path / "in.jsonl", [many]), "--oracle")
    assert row["oracle"] == [0, 1, 2, 3, 4]
    assert "whose oracle might be better with more sentences than were tried: 1\n" in capsys.readouterr().out


def test_processes_change_nothing(tmp_path):
    rng = random.Random(0)
    rows = [{"document": "\n".join(f"W{rng.randrange(9)} x." for _ in range(5)), "summary": "W1 W2"} for _ in range(50)]
    for workers in ("1", "2"):
        arguments = ["xsum", jsonl(tmp_path / "in.jsonl", rows), "--oracle", "--workers", workers]
        assert main(["pairs", *arguments, "--output", str(tmp_path / f"{workers}.jsonl")]) == 0
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


# ---------------------------------------------------------------- refusals


def test_every_bad_row_is_reported(tmp_path, capsys):
    good = json.dumps({"document": "a", "summary": "b"})
    bad = ["{", "3", '{"document": "a"}', '{"document": 1, "summary": "b"}', '{"document": "a", "summary": " "}']
    bad += ['{"document": "\\ud800", "summary": "b"}', '{"document": "", "summary": "b"}']
    path = write(tmp_path / "in.jsonl", "\n".join([good, "", *bad, good]) + "\n")
    message = refused(tmp_path, capsys, "gigaword", path, "--verbose")
    locations = [f"{path}, line {number}: " for number in range(3, 10)]
    reasons = [
        "not JSON (", "not a JSON object but an integer", "no field 'summary'; its fields: 'document'",
        "field 'document' holds an integer, not a text", "the summary is empty; mend it, or leave such pairs out with",
        "field 'document' holds half of a surrogate pair", "the text is empty",
    ]  # fmt: skip
    for location, reason in zip(locations, reasons, strict=True):
        assert location + reason in message
    assert "line 1:" not in message and "line 10" not in message
    path = write(tmp_path / "in.jsonl", "{\n" * 1234)
    message = refused(tmp_path, capsys, "gigaword", path, "--verbose")
    assert f"{path}, 1,234 lines (1, 2, 3, ...): not JSON (" in message and message.count("not JSON") == 1


def test_empty_sides_may_be_left_out_and_are_counted(tmp_path, capsys):
    path = jsonl(tmp_path / "in.jsonl", [{"document": d, "summary": s} for d, s in (("a", "b"), ("", "b"), ("a", ""))])
    assert pairs(tmp_path, "xsum", path, "--skip-empty") == [{"source": "a", "target": "b"}]
    assert "1 pair\nleft out, a side is empty: 2\n" in capsys.readouterr().out
    path = jsonl(tmp_path / "in.jsonl", [{"document": "", "summary": "b"}])
    assert "holds no pair" in refused(tmp_path, capsys, "xsum", path, "--skip-empty")


def test_stories_that_are_none(tmp_path, capsys):
    folder = tmp_path / "stories"
    folder.mkdir()
    write(folder / "a.story", "Only text.\n")
    write(folder / "b.story", b"\xff")
    message = refused(tmp_path, capsys, "cnn_dailymail", folder)
    assert f"{folder}/a.story: the summary is empty" in message and f"{folder}/b.story: not UTF-8 at byte 0" in message


@pytest.mark.parametrize(
    ("name", "inputs", "says"),
    [
        ("reuters", ["a.txt"], "reuters is read from rows (JSON lines, CSV, Parquet, ...)"),
        (
            "gigaword",
            ["a.txt"],
            "read from rows (JSON lines, CSV, Parquet, ...) or two text files (sources, summaries)",
        ),
        ("gigaword", ["a.txt", "a.jsonl"], "is read from"),
        ("xsum", ["a.txt", "b.txt"], "is read from rows (JSON lines, CSV, Parquet, ...) or folders of *.summary files"),
        ("gigaword", ["."], "is read from"),
        ("xsum", ["none.jsonl"], "none.jsonl: no such file"),
        ("xsum", ["a.jsonl", "--list", "b.txt"], "--list chooses files of folders"),
        ("xsum", ["a.jsonl", "--separator", "a b"], "--separator must be a symbol"),
        ("gigaword", ["a.txt", "b.txt"], "ends after line 1"),
    ],
)
def test_inputs_that_do_not_fit(tmp_path, capsys, monkeypatch, name, inputs, says):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.txt", "a\n")
    write(tmp_path / "b.txt", "a\nb\n")
    jsonl(tmp_path / "a.jsonl", [{"document": "a", "summary": "b"}])
    assert says in refused(tmp_path, capsys, name, *inputs)


def test_outputs_that_are_refused(tmp_path, capsys):
    path = jsonl(tmp_path / "in.jsonl", [{"document": "a", "summary": "b"}])
    (tmp_path / "out.jsonl").touch()
    for output, says in (
        (path, "a file that the command reads"),
        (tmp_path / "out.jsonl", "exists already"),
        (tmp_path / "out.txt", "name it *.jsonl"),
    ):
        assert main(["pairs", "xsum", path, "--output", str(output)]) == 2
        assert says in capsys.readouterr().err


# ---------------------------------------------------------------- oracle


SCORER = RougeScorer(["rouge1", "rouge2"])


def by_brute_force(sentences, summary):
    """The definition, each candidate scored anew by rouge-score."""
    taken, best = [], 0.0
    while True:
        scores = {}
        for number in set(range(len(sentences))) - set(taken):
            text = " ".join(sentences[i] for i in sorted([*taken, number]))
            scores[number] = sum(score.fmeasure for score in SCORER.score(summary, text).values()) / 2
        highest = max(scores.values(), default=0.0)
        if highest <= best + 1e-9:
            return sorted(taken)
        best = highest
        taken.append(min(number for number, score in scores.items() if score >= highest - 1e-9))


@pytest.mark.slow
@pytest.mark.parametrize("words", [3, 6, 15, 40])
def test_oracle_is_its_definition(words):
    rng, taken = random.Random(words), 0
    vocabulary = [f"w{i}" for i in range(words)] + ["...", "\u6f22"]
    for _ in range(250):
        sentences = [" ".join(rng.choices(vocabulary, k=rng.randint(0, 8))) for _ in range(rng.randint(0, 8))]
        summary = " ".join(rng.choices(vocabulary, k=rng.randint(0, 20)))
        found = greedy_oracle(sentences, summary)
        assert found == by_brute_force(sentences, summary), (sentences, summary)
        taken += len(found)
    assert taken > 200


def test_oracle_typed_out():
    # Both halves of the summary are needed; in the order of the source they make its bigram "b c" too.
    assert greedy_oracle(["x y z", "a b", "c d", "a a a"], "A b, c d!") == [1, 2]
    assert greedy_oracle(["a b c", "a b c"], "a b c") == [0]
    assert greedy_oracle(["q"], "a") == greedy_oracle([], "a") == greedy_oracle(["a"], "") == []


def test_oracle_on_real_abstracts(unified_data, tmp_path):
    found = pairs(tmp_path, "scitldr", unified_data / "scitldr" / "dev.jsonl.xz", "--oracle", "greedy")[:150]
    for pair in found[:25]:
        starts = [*pair["sentences"], len(pair["source"]) + 1]
        sentences = [pair["source"][a : b - 1] for a, b in zip(starts, starts[1:], strict=False)]
        assert pair["oracle"] == by_brute_force(sentences, pair["target"])
    assert sum(len(pair["oracle"]) for pair in found) > 150


def test_real_headlines(unified_data, tmp_path):
    found = pairs(tmp_path, "reuters", unified_data / "reuters21578" / "dev.jsonl.xz")
    assert len(found) == 2544 and found[0]["target"] == "ASIAN EXPORTERS FEAR DAMAGE FROM U.S.-JAPAN RIFT"
    assert all(pair["source"] == " ".join(pair["source"].split()) for pair in found)
