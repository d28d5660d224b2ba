"""Augmentation without models: sampled passages, entities, unanswerable questions, and stages that go on."""

from __future__ import annotations

import itertools
import json
import lzma
import re
from collections import Counter

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.tasks.augmentation.entities import Entity, entities_of_spacy, find_entities
from unified.tasks.augmentation.negatives import AUXILIARIES, negated, negatives, swaps
from unified.tasks.augmentation.passages import Passage, sample_passages
from unified.tasks.augmentation.stages import Stages

# Passages


def corpus(folder, rng, documents=40):
    """JSON lines, compressed, and plain text; what it holds as (document, paragraph, text)."""
    texts = [[" ".join(f"w{n}" for n in rng.integers(0, 50, rng.integers(1, 12))) for _ in range(rng.integers(1, 6))]
             for _ in range(documents)]  # fmt: skip
    half = documents // 2
    with lzma.open(folder / "a.jsonl.xz", "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps({"text": "\n".join(some)}) + "\n" for some in texts[:half])
    (folder / "b.txt").write_text("\n\n".join("\n".join(some) for some in texts[half:]) + "\n", encoding="utf-8")
    held = [(d, p, text) for d, some in enumerate(texts) for p, text in enumerate(some)]
    return [str(folder / "a.jsonl.xz"), str(folder / "b.txt")], held


def test_all_paragraphs_of_the_length_are_found_in_order(tmp_path):
    paths, held = corpus(tmp_path, np.random.default_rng(0))
    found = sample_passages(paths, "text", None, (4, 8), seed=1)
    expected = [Passage(*one) for one in held if 4 <= len(one[2].split()) <= 8]
    assert found == expected and len(expected) > 30


def test_rows_and_paragraphs_without_text_are_left_out(tmp_path):
    rows = ("one two\n\n \nthree four", "", "five six")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    found = sample_passages([str(tmp_path / "a.jsonl")], "text", None, (1, 9), seed=1)
    assert found == [Passage(0, 0, "one two"), Passage(0, 1, "three four"), Passage(2, 0, "five six")]


def test_a_sample_is_uniform_seeded_and_of_different_texts(tmp_path):
    """3 of 12 texts are drawn, one of which is there nine times: each is in a quarter of the samples."""
    texts = [f"t{i} a b c" for i in range(12)] + ["t0 a b c"] * 8
    for name, part in (("a", texts[:7]), ("b", texts[7:])):
        (tmp_path / f"{name}.txt").write_text("\n".join(part) + "\n")
    paths = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    drawn, rounds = Counter(), 1000
    for seed in range(rounds):
        some = {passage.text for passage in sample_passages(paths, "text", 3, (1, 9), seed)}
        assert len(some) == 3
        if seed < 20:
            assert some == {passage.text for passage in sample_passages(paths[::-1], "text", 3, (1, 9), seed)}
        drawn.update(some)
    deviation = (rounds * 0.25 * 0.75) ** 0.5
    assert len(drawn) == 12 and all(abs(count - rounds / 4) < 4.5 * deviation for count in drawn.values())


def test_no_paragraph_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    for lines, says in (
        (
            "one two\n\none\n\none two three\n",
            "no paragraph of 80 to 500 words; the shortest has 1, the longest 3; change",
        ),
        ("", "no text; passages are"),
        (" \n\n\t\n", "no text; passages are"),
    ):
        path.write_text(lines)
        with pytest.raises(UnifiedError, match=f"^{path}: {says}"):
            sample_passages([str(path)], "text", None, (80, 500), 1)


# Entities

DRAWN = """In <year:1867>, <name:Nikola Tesla> moved to <name:New York City>. He earned <money:$25> per hour, or
<money:€3.5 million>; about <percentage:20%> of it on <date:May 5, 1890>. Students liked <name:Dr. J. Smith> of the
<name:United States of America>. <name:Warsaw> is old. The <name:Beatles> saw <name:Warsaw> on the <ordinal:2nd> of
<date:June> in the <year:1960s>, and <number:1,234> people. <name:U.S.> troops, <number:3.5 million>, left on
<date:17 June 1917>. "Nobody came," said <name:O'Brien>. It had <number:12> of <number:12345> towers, <percentage:3.4
percent> of all, in <date:March 1920>."""


def test_entities_as_drawn():
    marks = list(re.finditer(r"<(\w+):([^>]+)>", DRAWN))
    text, expected, end = "", [], 0
    for mark in marks:
        text += DRAWN[end : mark.start()]
        expected.append(Entity(len(text), len(text) + len(mark[2]), mark[2], mark[1]))
        text, end = text + mark[2], mark.end()
    text += DRAWN[end:]
    found = find_entities(text)
    assert [(one.type, one.text) for one in found] == [
        ("name", "Dr. J. Smith of the\nUnited States of America")
        if one.text == "Dr. J. Smith"
        else (one.type, one.text)
        for one in expected
        if one.text != "United States of America"
    ]


def test_entities_are_parts_of_the_text_and_apart():
    rng = np.random.default_rng(3)
    parts = ["In", "1867", "Ada", "Berg", "the", "of", "$5", "3,000", "million", "May", "12", ".", ",", "U.S.", "é",
             "Éa", "20%", "2nd", "\n", "(", "John's", "x", "1.5", "?", "’"]  # fmt: skip
    seen = Counter()
    for _ in range(400):
        text = "".join(rng.choice(parts) + rng.choice([" ", " ", ""]) for _ in range(rng.integers(0, 25)))
        found = find_entities(text)
        seen.update(one.type for one in found)
        assert all(text[one.start : one.end] == one.text and one.text.strip() for one in found)
        assert all(a.end <= b.start for a, b in itertools.pairwise(found))
    assert min(seen[kind] for kind in ("date", "money", "percentage", "year", "ordinal", "number", "name")) > 10


@pytest.mark.slow
def test_entities_of_a_pipeline(tmp_path):
    from tests.support.spacy_pipelines import trained

    texts = ["We saw Anna in Rome", "Then Rome slept and Bob ran"]
    trained(tmp_path / "nlp", texts)
    find = entities_of_spacy(str(tmp_path / "nlp"))
    found = find(texts)
    for text, some in zip(texts, found, strict=True):
        assert all(text[one.start : one.end] == one.text and one.type == "PLACE" for one in some)
    assert any(found)


# Unanswerable questions


def spelled(text):
    return re.findall(r"\w+|[^\w\s]", text.lower())


def is_within(part, words):
    return any(words[i : i + len(part)] == part for i in range(len(words)))


def told_swaps(question, entities):
    """Every way to replace a run of the question's words that is an entity, said word by word."""
    words, found = spelled(question), set()
    inside = {one for one in entities if is_within(spelled(one.text), words)}
    taken, i = [], 0
    while i < len(words):  # the longest entity that begins here
        starting = [one for one in inside if words[i : i + len(spelled(one.text))] == spelled(one.text)]
        if starting:
            longest = max(len(spelled(one.text)) for one in starting)
            kinds = sorted(one.type for one in starting if len(spelled(one.text)) == longest)
            taken.append((i, longest, kinds[0]))
            i += longest
        else:
            i += 1
    for place, length, kind in taken:
        for other in entities:
            replaced, put = words[place : place + length], spelled(other.text)
            if other.type == kind and other not in inside and not is_within(replaced, put):
                found.add((*words[:place], *put, *words[place + length :]))
    return found


def test_swaps_against_a_retelling():
    rng = np.random.default_rng(5)
    pool = [("New York", "name"), ("York", "name"), ("U.S.", "name"), ("Ada Berg", "name"), ("1867", "year"),
            ("1901", "year"), ("12", "number"), ("Oslo", "name"), ("12", "year"), ("Ada", "name")]  # fmt: skip
    fillers = ["when", "did", "move", "to", "in", "?", "the"]
    counts = 0
    for _ in range(600):
        some = [pool[i] for i in rng.permutation(len(pool))[: rng.integers(1, 7)]]
        entities = [Entity(0, len(text), text, kind) for text, kind in some]
        words = [
            " ".join(re.findall(r"\w+|[^\w\s]", pool[rng.integers(len(pool))][0].lower())) if rng.random() < 0.4
            else rng.choice(fillers)
            for _ in range(rng.integers(1, 8))
        ]  # fmt: skip
        question = " ".join(words)
        found = swaps(question, entities)
        assert len(set(found)) == len(found)
        assert {tuple(spelled(text)) for text in found} == told_swaps(question, entities)
        counts += len(found)
    assert counts > 300


def test_negations():
    for question, expected in {
        "Who was he?": "Who was not he?",
        "what CAN it be ?": "what CAN not it be ?",
        "in may 5 , who could come ?": "in may 5 , who could not come ?",
        "What may come?": "What may not come?",
        "do what you may": "do not what you may",
        "say what you may": "say what you may not",
        "of 5 may it be ?": "of 5 may not it be ?",
        "Which had he done?": "Which had not he done?",
        "didn ' t he come , or was he ill ?": None,
        "Who didn't he see, and who is she?": None,
        "Who didn’t he see, and who is she?": None,
        "Who is not here?": None,
        "tell of may 5": None,
        "tell of may": "tell of may not",
        "Who has never come?": None,
        "Name a wash": None,  # no auxiliary within a word
    }.items():
        assert negated(question) == expected, question
    for word in AUXILIARIES - {"may"}:
        assert negated(f"where {word} it ?") == f"where {word} not it ?"


def test_negatives_are_new_drawn_by_seed_and_as_many_as_asked_for():
    names = [f"Name{i}" for i in range(6)]
    entities = [Entity(0, 5, name, "name") for name in names]
    questions = [f"where did name{i} go ?" for i in range(4)] + ["where did NAME4 go?", "list all", "list name1"]
    ways, made = Counter(), Counter()
    for seed in range(300):
        found = negatives(questions, entities, 0.8, np.random.default_rng(seed))
        assert found == negatives(questions, entities, 0.8, np.random.default_rng(seed))
        texts = [tuple(spelled(one.question)) for one in found]
        assert len(set(texts)) == len(texts) and not set(texts) & {tuple(spelled(one)) for one in questions}
        for one in found:
            source = questions[one.source]
            expected = [negated(source)] if one.way == "negation" else swaps(source, entities)
            assert one.question in expected
        made.update(one.source for one in found)
        ways.update(one.way for one in found if one.source == 6)
        ways.update(f"{one.way} of all" for one in found)
    assert 5 not in made and set(made) == {0, 1, 2, 3, 4, 6}
    assert abs(made[6] - 240) < 35 and set(ways) == {"swap", "swap of all", "negation of all"}
    assert negatives(questions, entities, 0.0, np.random.default_rng(0)) == []


# Stages

NUMBERS = [{"id": str(i), "n": i} for i in range(23)]


def doubled(stages, calls, fail_at=None):
    def work(block):
        calls.append([rows[0]["n"] for rows in block])
        if len(calls) == fail_at:
            raise KeyboardInterrupt
        return [{"id": one["id"], "of": one["n"] + len(block), "text": "é\u2028"} for (one,) in block]

    stages.first("numbers", lambda: NUMBERS)
    stages.run("doubled", ("numbers",), work)


@pytest.mark.parametrize("fail_at", [1, 2, 4, 5])
def test_a_stage_goes_on_behind_its_last_whole_block(tmp_path, fail_at):
    whole, calls = Stages(tmp_path / "whole", 5), []
    whole.folder.mkdir()
    doubled(whole, calls)
    assert list(map(len, calls)) == [5, 5, 5, 5, 3]
    broken, calls = Stages(tmp_path / "broken", 5), []
    broken.folder.mkdir()
    with pytest.raises(KeyboardInterrupt):
        doubled(broken, calls, fail_at)
    assert not broken.path("doubled").exists()
    calls.clear()
    doubled(broken, calls)
    assert calls[0][0] == 5 * (fail_at - 1)
    assert broken.path("doubled").read_bytes() == whole.path("doubled").read_bytes()
    calls.clear()
    doubled(broken, calls)
    assert not calls


def test_a_stage_that_was_killed_at_any_byte_goes_on(tmp_path):
    stages = Stages(tmp_path, 5)
    doubled(stages, [])
    content = stages.path("doubled").read_bytes()
    stages.path("doubled").unlink()
    partial = tmp_path / "doubled.jsonl.partial"
    for size in range(0, len(content) + 1, 7):
        partial.write_bytes(content[:size])
        doubled(stages, calls := [])
        assert stages.path("doubled").read_bytes() == content and not partial.exists()
        assert len(calls) == 5 - content[:size].count(b"\n") // 5
        stages.path("doubled").unlink()


def test_stages_that_do_not_belong_together_are_refused(tmp_path):
    stages = Stages(tmp_path, 5)
    doubled(stages, [])
    stages.path("numbers").write_text('{"id": "0", "n": 0}\n')
    with pytest.raises(UnifiedError, match="damaged"):
        list(stages.rows("numbers", "doubled"))
