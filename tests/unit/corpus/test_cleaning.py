"""Cleaning: sentences and rules against naive definitions and examples, reports that add up, folders that follow."""

import itertools
import json
import lzma
import random
import string
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

from tests.support.corpora import random_lines
from unified.corpus.cleaning import Cleaning, Counts, Report
from unified.corpus.cleaning.patterns import strip_noise, strip_paths, strip_urls
from unified.corpus.cleaning.sentences import sentence_starts, split_sentences

GERMAN = "Der Hund lief gestern über die grüne Wiese, und die Katze schaute ihm von der Mauer aus lange zu."
ENGLISH = "The dog ran across the green field yesterday, and the cat watched it from the wall for a long time."


@pytest.fixture(scope="module")
def real_documents(unified_data):
    """(number, lines) of 200 articles."""
    with lzma.open(unified_data / "pretrain_wiki" / "valid.jsonl.xz", "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line in stream]
    return [(i, [line for line in text.split("\n") if line.strip()]) for i, text in enumerate(texts)]


# Sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mr. Smith went to Washington.", "He saw Dr. J. R. Jones, Jr. and others.", "Why?"],
        ["The U.S. Army came, e.g. in 1944.", 'He said "Stop!"', "Then (he left.)", "“Never again,” she said."],
        ["It cost 3.5 million in No. 5, vol. 2, p. 7 of it.", "No.", "He did not … go."],
        ["Wait... what?!", "Yes!", "iPhone is not lower-case here?", "Well...", "It ends without a mark"],
        ["A sentence.", "2019 was a year.", "¿Qué?", "É assim."],
    ],
)
def test_sentences_of_running_text(sentences):
    text = " ".join(sentences)
    if "iPhone" in text:  # a name that begins in lower case does not begin a sentence
        sentences = ["Wait... what?!", "Yes! iPhone is not lower-case here?", *sentences[3:]]
    assert split_sentences(text) == sentences
    assert split_sentences("  " + text.replace(" ", "\u2003\t") + " ") == sentences


def test_no_letter_opens_a_sentence_as_a_quotation_mark_does():
    for letter in string.ascii_uppercase:
        assert split_sentences(f"He left. {letter}x came. ({letter}x stayed.") == [
            "He left.",
            f"{letter}x came.",
            f"({letter}x stayed.",
        ]


def test_a_line_of_white_space_has_no_sentence():
    assert split_sentences("") == split_sentences(" \t") == []
    assert Cleaning(chunks=5).clean([(0, [" "]), (1, ["One. Two."])])[0] == [(1, ["One.", "Two."])]


def naive_sentences(line):
    """Word by word, as the docstring says it."""
    known = "mr mrs ms messrs dr prof st mt ft gen col lt sgt capt maj cmdr adm rev hon gov sen rep pres sr jr v vs cf "
    known += "viz al ca approx dept est univ jan feb mar apr jun jul aug sep sept oct nov dec"
    numbered = "no nos vol vols fig figs p pp ch art sec eq op bd".split()
    words = line.split()
    sentences = [[]]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        sentences[-1].append(word)
        first = following.lstrip("\"'“‘„«‹([{")[:1]
        if word.rstrip("\"'”’»›)]}")[-1:] not in list(".!?…") or first.islower():
            continue
        before = word[:-1].lstrip("\"'“‘„«‹([{")
        if word.endswith(".") and before[-1:] not in list(".!?…"):
            initial = len(before) == 1 and before.isupper()
            inside = "." in before and before[0].isalpha()
            if initial or inside or before.lower() in known.split():
                continue
            if first.isdigit() and before.lower() in numbered:
                continue
        sentences.append([])
    return [" ".join(sentence) for sentence in sentences if sentence]


@pytest.mark.slow
def test_sentences_are_those_of_the_naive_splitter_and_lose_nothing(real_documents):
    lines = [line for _, lines in real_documents for line in lines] + random_lines(2000, seed=0)
    several = 0
    for line in lines:
        sentences = split_sentences(line)
        assert sentences == naive_sentences(line), line
        assert " ".join(sentences) == " ".join(line.split())
        assert [part for sentence in sentences for part in split_sentences(sentence)] == sentences
        several += len(sentences) > 1
    assert several > 4000


def test_sentences_begin_where_the_text_has_them_whatever_white_space_it_has():
    """Sentences between the starts are those of split_sentences, in texts whose white space is of any kind."""
    rng, spaces = random.Random(3), [" ", "  ", "\n", "\t ", "\u00a0", "\u2003\n"]
    for line in random_lines(500, seed=1) + ["", "One.", "It is so. No. 5 is Mr. X. Why? yes."]:
        text = "".join(word + rng.choice(spaces) for word in line.split()) + rng.choice(["", "\n", "  "])
        for any_case in (False, True):
            starts = sentence_starts(text, any_case)
            parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
            assert starts[0] == 0 and all(not text[start].isspace() for start in starts[1:])
            assert [" ".join(part.split()) for part in parts if part.strip()] == split_sentences(line, any_case)
    assert sentence_starts("One. two") == [0]


# What is stripped from inside a sentence


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("See http://a.org/x_(y)?q=1#z for it.", "See for it."),
        ("See https://a.org/x.", "See ."),
        ("(ftp://a.org/file.txt), www.Example.com!", "(), !"),
        ("HTTP://A.ORG and wwwx.org and http:// and a.org stay", "and wwwx.org and http:// and a.org stay"),
        ('<a href="http://a.org/">it</a>', '<a href="/">it</a>'),
    ],
)
def test_urls(text, left):
    left = '<a href="">it</a>' if "href" in text else left
    assert strip_urls(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Run /usr/local/bin/x.sh now.", "Run now."),
        ("Look in /usr/lib/.", "Look in ."),
        ("Its home (~/notes.txt) and ../src/a.c, ./run:", "Its home () and , :"),
        (r"On C:\Windows\System32, D:\x.", "On , ."),
        (r"From \\server\share\file.txt!", "From !"),
        *(
            (text, text)
            for text in ("and/or he/she 9/11/2001 1/2 km/h", "IPA /ˈwɪki/ or /a/", "a / b", "TCP/IP", "W:\\")
        ),
    ],
)
def test_paths(text, left):
    assert strip_paths(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("one<br/>two <b>three</b> <a href='x y' id=z>four</a><!-- five -->", "one two three four"),
        ("AT&amp;T &lt;br&gt;&nbsp;&#233;&#x41; &amp;amp; &unknown; R&D", "AT&T éA & &unknown; R&D"),
        ("one&nbsp;two&#160;&emsp;three&#10;four&#9;five&#8203;six", "one two three four fivesix"),
        ("Known since 1900[12][citation needed], and ([1]) later [edit].", "Known since 1900, and later."),
        ("An [ [update]] is () or [ ] there ().", "An is or there."),
        ("Title ===== text ---- end ****** ok", "Title text end ok"),
        ("Wait.... no!!! a...... b", "Wait.... no!!! a b"),
        ("in\u200bvis\ufeffi\x07ble \ufffd\ue000text", "invisible text"),
        ("a<b and c>d, 5 < 6 [2019] (see) -- - x", "a<b and c>d, 5 < 6 [2019] (see) -- - x"),
        ("--- * () !", ""),
    ],
)
def test_noise(text, left):
    assert strip_noise(text) == left


def test_noise_within_noise_is_stripped_twenty_deep():
    """An ampersand that was written as an entity again and again."""
    for depth in (1, 7, 20):
        assert strip_noise(f"a &{'amp;' * depth} b") == "a & b"
        assert strip_noise(f"a {'(' * depth}[1]{')' * depth} b") == "a b"
    assert strip_noise(f"a &{'amp;' * 22} b") == "a &amp;amp; b"


@pytest.mark.slow
@pytest.mark.parametrize("strip", [strip_urls, strip_paths, strip_noise])
def test_stripping_again_strips_nothing_and_clean_text_stays(strip, real_documents):
    changed = 0
    for line in random_lines(6_000, seed=1) + [line for _, lines in real_documents for line in lines]:
        line = " ".join(line.split())
        stripped = strip(line)
        assert strip(stripped) == stripped
        assert stripped == " ".join(stripped.split()) and len(stripped) <= len(line)
        if "&" not in line:  # what is left stands in the same order
            rest = iter(line)
            assert all(character in rest for character in stripped if character != " ")
        if all(character.isalnum() or character in " ,;'" for character in line) and line:
            assert stripped == line
        changed += stripped != line
    assert changed > 1200


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        *(
            unit * (200_000 // len(unit))
            for unit in (".", "(", "<!--", "/a", "http://.", ". ", '."', "&amp;", "<a b=c ")
        ),
        *("([" * 50_000 + "])" * 50_000, "&" + "amp;" * 50_000, "http://" + "." * 200_000, "a" + ". A" * 100_000),
    ],
    ids=lambda text: text[:8],
)
def test_long_lines_of_one_kind_come_to_an_end(text):
    cleaned, report = Cleaning(urls=True, paths=True, noise=True, sentences=True).clean([(0, [text])])
    assert report.input == amount([(0, naive_sentences(text))])
    assert sum(report.removed.values(), report.kept) == report.input


# Rules that drop, and reports


def naively(documents, **rules):
    """The rules one after another on documents as lists of sentences, without anything shared with the library."""
    divided = not rules.keys().isdisjoint(("sentences", "short_sentences", "chunks"))
    texts = [
        (number, [s for line in lines for s in (naive_sentences(line) if divided else [" ".join(line.split())])])
        for number, lines in documents
    ]
    history = [texts]
    for name in ("urls", "paths", "noise", "short_sentences", "short_documents"):
        if name not in rules:
            continue
        texts = history[-1]
        if name == "short_sentences":
            texts = [(n, [s for s in text if len(s.split()) >= rules[name]]) for n, text in texts]
        elif name == "short_documents":
            texts = [(n, text) for n, text in texts if len(" ".join(text).split()) >= rules[name]]
        else:
            strip = {"urls": strip_urls, "paths": strip_paths, "noise": strip_noise}[name]
            texts = [(n, [strip(s) for s in text]) for n, text in texts]
        history.append([(n, [s for s in text if s]) for n, text in texts if any(text)])
    texts, chunks = history[-1], []
    for number, text in texts if "chunks" in rules else []:
        for sentence in text:
            if chunks and chunks[-1][0] == number and words([*chunks[-1][1], sentence]) <= rules["chunks"]:
                chunks[-1][1].append(sentence)
            else:
                chunks.append((number, [sentence]))
    return history, chunks if "chunks" in rules else texts


def words(sentences):
    return sum(len(sentence.split()) for sentence in sentences)


def amount(texts):
    sentences = [sentence for _, text in texts for sentence in text]
    return Counts(len(texts), len(sentences), words(sentences), len("".join("".join(sentences).split())))


RULES = {"urls": True, "paths": True, "noise": True, "short_sentences": 4, "short_documents": 12, "chunks": 15}


def test_every_set_of_rules_is_its_naive_definition_and_its_report_adds_up():
    lines = iter(random_lines(500, seed=2))
    rng = np.random.default_rng(3)
    documents = [(number, list(itertools.islice(lines, rng.integers(1, 6)))) for number in range(0, 48, 2)]
    for count in range(len(RULES) + 1):
        for names in itertools.combinations(RULES, count):
            rules = {name: RULES[name] for name in names}
            cleaned, report = Cleaning(**rules).clean(documents)
            history, expected = naively(documents, **rules)
            assert cleaned == expected
            removed = [amount(before) - amount(after) for before, after in itertools.pairwise(history)]
            assert report.input == amount(history[0]) and report.kept == amount(history[-1])
            assert list(report.removed) == [name for name in names if name != "chunks"]
            assert list(report.removed.values()) == removed
            assert report.input == sum(report.removed.values(), report.kept)
            assert report.chunks == (len(cleaned) if "chunks" in names else None)
            parts = [Cleaning(**rules).clean(documents[i : i + 7])[1] for i in range(0, len(documents), 7)]
            assert sum(parts, Report()) == report


@pytest.mark.parametrize("seed", range(40))
def test_overlapping_chunks_repeat_the_last_sentences_that_fit(seed):
    """By definition: as full as they can be, and the longest end of a chunk that leaves room comes again."""
    rng = np.random.default_rng(seed)
    words = int(rng.integers(3, 40))
    overlap = int(rng.integers(1, words))
    sentences = [
        " ".join([f"S{i}", *["w"] * int(rng.integers(0, 12)), "end."]) for i in range(int(rng.integers(1, 40)))
    ]
    cleaned, report = Cleaning(chunks=words, overlap=overlap).clean([(7, [" ".join(sentences)])])
    chunks, size = [chunk for _, chunk in cleaned], lambda some: sum(len(one.split()) for one in some)
    numbers = [[sentences.index(sentence) for sentence in chunk] for chunk in chunks]
    assert report.chunks == len(chunks) and {number for number, _ in cleaned} == {7}
    assert report.kept.words == size(sentences), "what comes twice counts once"
    assert numbers[0][0] == 0 and numbers[-1][-1] == len(sentences) - 1
    for own in numbers:
        assert own == list(range(own[0], own[-1] + 1)) and (len(own) == 1 or size(sentences[i] for i in own) <= words)
    for before, own in pairwise(numbers):
        fresh = before[-1] + 1
        assert own[0] > before[0] and own[0] <= fresh == own[own.index(fresh)]
        allowed = [
            start
            for start in range(before[0] + 1, fresh + 1)
            if start == fresh
            or (size(sentences[start:fresh]) <= overlap and size(sentences[start : fresh + 1]) <= words)
        ]
        assert own[0] == min(allowed)
        assert size(sentences[before[0] : fresh + 1]) > words, "the chunk before had no room for it"
    plain = [chunk for _, chunk in Cleaning(chunks=words).clean([(7, [" ".join(sentences)])])[0]]
    assert [sentence for chunk in plain for sentence in chunk] == sentences


@pytest.mark.slow
def test_chunks_keep_every_sentence_in_order_and_are_as_full_as_they_can_be(real_documents):
    cleaned, report = Cleaning(chunks=300).clean(real_documents)
    assert report.chunks == len(cleaned) > 1500 and not report.removed
    sentences = [(n, s) for n, lines in real_documents for line in lines for s in naive_sentences(line)]
    assert [(n, s) for n, chunk in cleaned for s in chunk] == sentences
    for (number, chunk), (following, behind) in itertools.pairwise(cleaned):
        assert words(chunk) <= 300 or len(chunk) == 1
        assert number != following or words(chunk) + words(behind[:1]) > 300


@pytest.mark.slow
def test_cleaning_clean_text_again_changes_nothing(real_documents):
    rules = Cleaning(noise=True, short_sentences=10, short_documents=100)
    once, _ = rules.clean(real_documents)
    again, report = rules.clean(once)
    assert again == once and report.input == report.kept and 100 < len(once) < 200


def test_the_set_of_the_papers_appendix():
    rules = Cleaning.parse("anna")
    assert asdict(rules) == {
        **dict(urls=True, paths=True, noise=True, short_sentences=10, short_documents=100, language="en", chunks=300),
        "overlap": None,
        "sentences": False,
    }
    order = ["urls", "paths", "noise", "short_sentences", "short_documents", "language"]
    assert list(rules.rules()) == order
    backwards = Cleaning.parse(",".join(reversed("urls,paths,noise,short_sentences=10,short_documents=100".split(","))))
    assert list(backwards.rules()) == order[:-1]


def test_language_keeps_documents_in_it():
    documents = [(0, [ENGLISH, "And so on."]), (1, [GERMAN, "Und so weiter."]), (2, [ENGLISH] * 9), (3, [GERMAN] * 9)]
    for language, kept in (("en", [0, 2]), ("de", [1, 3])):
        cleaned, report = Cleaning(language=language).clean(documents)
        assert cleaned == [documents[i] for i in kept]
        assert report.removed["language"] == amount([documents[i] for i in range(4) if i not in kept])


def test_sentences_are_divided_and_none_is_dropped():
    documents = [(0, random_lines(200, seed=6)), (1, ["One. Two."])]
    cleaned, report = Cleaning.parse("sentences").clean(documents)
    assert cleaned == [(number, [s for line in lines for s in naive_sentences(line)]) for number, lines in documents]
    assert not report.removed and report.kept == report.input == amount(cleaned)
