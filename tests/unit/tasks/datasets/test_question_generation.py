"""Pairs of question generation: windows with the answer in them, SQuAD's splits, and sources of several parts."""

from __future__ import annotations

import json
import lzma
import random
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.checkpoint_samples import checkpoint, data_folder
from tests.support.corpora import items, run
from unified import UnifiedLM
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tasks.composing import ask
from unified.tasks.datasets import question_generation
from unified.tasks.datasets.question_generation import (
    divide,
    find_answer,
    question_pairs,
    question_source,
    sentence_around,
)
from unified.tasks.datasets.squad_json import (
    MisalignedAnswer,
    SquadAnswer,
    SquadParagraph,
    SquadQuestion,
    read_squad_file,
)
from unified.tasks.windows import TokenCounter, Words
from unified.tokenization import load_tokenizer
from unified.tokenization.sentencepiece_tokenizer import train_sentencepiece
from unified.tokenization.wordpiece import train_wordpiece

#: Sentences between bars.
SENTENCES = [
    "Herbert A. Simon won the prize. |He shared it with H. Jain.",
    "The road connects St. Augustine to Georgia. |It is old.",
    'It was in the U.S. Army (p. 384). |24 people came. |"Why?" they asked.',
    "The town of Wien.\n |Élise lives there.\u00a0|So do I. ",
]


@pytest.mark.parametrize("text", SENTENCES)
def test_the_sentence_around_an_answer_is_that_of_the_splitter_of_texts(text):
    """Every answer within one sentence, and every one that reaches into the next."""
    parts = text.split("|")
    bounds = np.cumsum([0, *map(len, parts)]).tolist()
    context = "".join(parts)
    for start in range(len(context)):
        for end in range(start + 1, len(context) + 1):
            expected = max(b for b in bounds if b <= start), min(b for b in bounds if b >= end)
            assert sentence_around(context, start, end) == expected


def test_sentences_of_texts_without_capitals_begin_with_a_small_letter():
    assert sentence_around("it is old. so am i. and you?", 12, 14) == (11, 20)


def test_sentences_are_those_that_du_published(unified_data):
    """Of 97 in 100 questions of SQuAD's development set; their text is of small letters and marks stand alone."""

    def letters(text: str) -> str:
        return re.sub(r"-[lr][rs]b-|[^a-z0-9]", "", text.lower())

    def published(name: str) -> list[str]:
        with lzma.open(unified_data / "squad_qg" / f"nqg-dev.{name}.txt.xz", "rt", encoding="utf-8") as lines:
            return [letters(line) for line in lines]

    sentences: dict[str, set[str]] = {}
    for question, sentence in zip(published("tgt"), published("src"), strict=True):
        sentences.setdefault(question, set()).add(sentence)
    with lzma.open(unified_data / "squad" / "dev-v1.1.json.xz", "rt", encoding="utf-8") as stream:
        articles = json.load(stream)["data"]
    same = []
    for paragraph in (one for article in articles for one in article["paragraphs"]):
        for question in paragraph["qas"]:
            answer = question["answers"][0]
            start = answer["answer_start"]
            found = sentence_around(paragraph["context"], start, start + len(answer["text"]))
            same.append(letters(paragraph["context"][slice(*found)]) in sentences[letters(question["question"])])
    assert len(same) == 10_570 and sum(same) / len(same) > 0.97


WORDS = "the town of Warsaw lies by a river. Its mayor (in 1998) was Anna | Berg; 3,5 bridges, naïve U.S. ones?".split()


def random_paragraphs(count: int, seed: int = 1) -> list[SquadParagraph]:
    """Passages with odd white space; answers begin and end anywhere in words."""
    rng = random.Random(seed)
    paragraphs = []
    for number in range(count):
        words = rng.choices(WORDS, k=rng.randint(1, 60))
        context = "".join(word + rng.choice([" ", "  ", "\n", "\u00a0"]) for word in words)
        questions = []
        for i in range(3):
            start = rng.choice([index for index, character in enumerate(context) if not character.isspace()])
            answer = context[start : start + rng.randint(1, 30)].rstrip()
            questions.append(SquadQuestion(f"{number}.{i}", " What\n is it? ", (SquadAnswer(answer, start),)))
        paragraphs.append(SquadParagraph(f"T{number}", context, tuple(questions)))
    return paragraphs


def counters() -> dict[str, TokenCounter]:
    lines = [" ".join(random.Random(i).choices(WORDS, k=30)) for i in range(50)]
    return {
        "words": TokenCounter(str.split),
        "unigram": TokenCounter(train_sentencepiece(lines, "unigram", 60).encode),
        "wordpiece": TokenCounter(train_wordpiece(lines, 90).encode),
    }


@pytest.mark.parametrize("name", ["words", "unigram", "wordpiece"])
def test_every_answer_stands_whole_in_its_window_and_behind_it(name):
    counter = counters()[name]
    paragraphs = random_paragraphs(150)
    cut = 0
    for budget in (60, 90, 456):
        asked = [(p, q) for p in paragraphs for q in p.questions]
        pairs = question_pairs(paragraphs, counter, budget)
        assert [pair.id for pair in pairs] == [question.id for _, question in asked]
        for (paragraph, question), pair in zip(asked, pairs, strict=True):
            window, answer = pair.source
            assert answer == " ".join(question.answers[0].text.split())
            assert answer in window and window in " ".join(paragraph.context.split())
            assert counter(window) + 1 + counter(answer) <= budget
            assert answer in pair.sentence and pair.sentence in " ".join(paragraph.context.split())
            assert pair.target == "What is it?"
            cut += len(window.split()) < len(paragraph.context.split())
    assert cut > (0 if name == "words" else 100)


def test_of_sentences_nothing_else_is_shown():
    counter = TokenCounter(str.split)
    paragraphs = random_paragraphs(60)
    pairs = question_pairs(paragraphs, counter, 456, sentences=True)
    windows = question_pairs(paragraphs, counter, 456)
    assert [pair.source[0] for pair in pairs] == [pair.sentence for pair in windows]
    assert [pair.source[1] for pair in pairs] == [pair.source[1] for pair in windows]
    assert sum(pair.source != window.source for pair, window in zip(pairs, windows, strict=True)) > 30
    for pair in question_pairs(paragraphs, counter, 40, sentences=True):
        assert (
            len(" ".join(pair.source).split()) < 40
            and pair.source[1] in pair.source[0]
            and pair.source[0] in pair.sentence
        )


def test_answers_that_do_not_fit_are_named_together_and_nothing_is_cut():
    """An answer of three words needs a source of seven: it stands there twice, with a separator between."""
    answers = {"a": "w1 w2 w3", "b": "w2", "c": "w3 w4 w5"}
    context = "w1 w2 w3 w4 w5"
    questions = tuple(
        SquadQuestion(name, "q", (SquadAnswer(text, context.index(text)), SquadAnswer("w1", 0)))
        for name, text in answers.items()
    )
    paragraph, counter = SquadParagraph("T", context, questions), TokenCounter(str.split)
    assert [pair.id for pair in question_pairs([paragraph], counter, 7)] == ["a", "b", "c"]
    says = "its answer of 3 tokens has no room in a source of 6, where it stands in the window and behind it; allow "
    for sentences in (False, True):
        with pytest.raises(UnifiedError) as raised:
            question_pairs([paragraph], counter, 6, sentences)
        assert raised.value.details == f"2 times (question 'a', question 'c'): {says}longer sources"


def test_questions_without_an_answer_in_the_passage_make_no_pair():
    misaligned = MisalignedAnswer("x", 3, "the answer is not in the passage")
    questions = (
        SquadQuestion("a", "Who?", (), is_impossible=True),
        SquadQuestion("b", "Who?", (), misaligned=(misaligned,)),
        SquadQuestion("c", "Who?", (SquadAnswer("Anna", 0), SquadAnswer("Berg", 5)), misaligned=(misaligned,)),
    )
    (pair,) = question_pairs([SquadParagraph("T", "Anna Berg.", questions)], TokenCounter(str.split))
    assert (pair.id, pair.source) == ("c", ("Anna Berg.", "Anna"))


def titles(part: list[SquadParagraph]) -> list[str]:
    return [paragraph.title for paragraph in part]


@pytest.mark.slow
def test_all_answers_of_the_dev_set_are_in_their_windows(unified_data):
    paragraphs = read_squad_file(unified_data / "squad" / "dev-v1.1.json.xz")
    tokenizer = train_wordpiece([paragraph.context for paragraph in paragraphs[::10]], 3000)
    counter = TokenCounter(tokenizer.encode)
    for chosen, budget, questions, at_least_cut in ((paragraphs, 456, 10_570, 1), (paragraphs[::5], 160, 1_900, 900)):
        asked = [(p, q) for p in chosen for q in p.questions]
        pairs = question_pairs(chosen, counter, budget)
        assert len(pairs) == len(asked) >= questions
        lost = cut = 0
        for (paragraph, question), pair in zip(asked, pairs, strict=True):
            window, answer = pair.source
            lost += answer not in window or answer.split() != question.answers[0].text.split()
            cut += len(window.split()) < len(paragraph.context.split())
            assert counter(window) + 1 + counter(answer) <= budget
        assert lost == 0 and cut > at_least_cut


@pytest.mark.slow
def test_published_lists_of_articles_name_the_real_ones(unified_data):
    listed = {
        part: frozenset((unified_data / "squad_qg" / f"doclist-{part}.txt").read_text(encoding="utf-8").split())
        for part in ("train", "dev", "test")
    }
    assert {part: len(names) for part, names in listed.items()} == {"train": 398, "dev": 48, "test": 44}
    squad = unified_data / "squad"
    held = read_squad_file(squad / "train-v1.1-36articles.json.xz")
    dev = read_squad_file(squad / "dev-v1.1.json.xz")
    assert set(titles(held)) < listed["test"] and set(titles(dev)) == listed["dev"]
    extra = [SquadParagraph("train-extra", "x", ())]
    du = divide([*extra, *held], dev, "du", listed["test"])
    assert (du["train"], len(du["test"]), len(du["valid"])) == (extra, len(held), len(dev))


# Sources of several parts, from the file to the model


PAIRS = [
    {"source": ["the cat sat on the mat.", "the mat"], "target": "On Monday?"},
    {"source": "a dog, a cat and a bird", "target": "The bird?"},
    {"source": ["the bird sang!", "a dog", "the cat"], "target": "sat!"},
]


def prepared(tmp_path: Path, rows: list[dict], *options) -> int:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fields = ("--source-field", "source", "--target-field", "target")
    return run(path, *fields, "--output", tmp_path / "data", *options)


def test_parts_of_a_source_have_the_separator_between_them(tmp_path):
    assert prepared(tmp_path, PAIRS) == 0
    tokenizer = load_tokenizer(tmp_path / "data")
    vocabulary = Vocabulary.load(tmp_path / "data" / "dict.source.txt")
    expected = []
    for row in PAIRS:
        parts = [row["source"]] if isinstance(row["source"], str) else row["source"]
        pieces = [[*tokenizer.encode(part), "</s>"] for part in parts]
        expected.append(vocabulary.encode([piece for part in pieces for piece in part]).tolist())
    assert items(tmp_path / "data" / "train.source-target.source") == expected
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_text())
    assert manifest["splits"]["train"]["source"]["tokens"] == sum(map(len, expected)) - 6
    assert manifest["splits"]["train"]["source"]["unknown"] == 0, "the tokenizer was trained on all parts"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (["a cat", ""], "pairs.jsonl, line 4, field 'source': a part of the source of a pair is empty"),
        ([" ", "a cat"], "line 4, field 'source': a part of the source of a pair is empty"),
        ([], "line 4, field 'source': the source of a pair is empty"),
        (["a", 3], "line 4: field 'source[1]' is an integer, not a text"),
        ({"a": "b"}, "line 4: field 'source' is an object, not a text"),
        (["\ud800"], "line 4: field 'source[0]' holds half of a surrogate pair"),
    ],
)
def test_empty_and_wrong_parts_are_named(tmp_path, capsys, source, message):
    rows = [*PAIRS, {"source": source, "target": "x"}]
    assert prepared(tmp_path, rows) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    if "empty" in message:
        assert prepared(tmp_path, rows, "--skip-empty") == 0
        assert len(items(tmp_path / "data" / "train.source-target.source")) == 3


@pytest.fixture(scope="module")
def lm(tmp_path_factory) -> UnifiedLM:
    folder = tmp_path_factory.mktemp("ask")
    vocabulary = data_folder(folder / "pairs", pairs=True)
    checkpoint(folder / "cloze.pt", vocabulary, str(folder / "pairs"), "cloze")
    return UnifiedLM.from_pretrained(folder / "cloze.pt")


def test_the_model_reads_the_tokens_that_were_prepared(lm, tmp_path):
    assert prepared(tmp_path, PAIRS, "--tokenizer", lm.folder) == 0
    stored = items(tmp_path / "data" / "train.source-target.source")
    assert [[*lm.encode_source(row["source"]), 2] for row in PAIRS] == stored
    sources = [row["source"] for row in PAIRS]
    from_ids = lm.hypotheses([item[:-1] for item in stored], question_generation_config(lm))
    assert lm.generate(sources, beam=2, max_length=6) == [lm.decode(found[0].tokens) for found in from_ids]
    # The separator is more than a gap between words.
    joined = lm.score([" ".join(PAIRS[0]["source"])], ["a cat"])
    assert not np.allclose(joined, lm.score([PAIRS[0]["source"]], ["a cat"]))


def question_generation_config(lm: UnifiedLM):
    from unified.generation import GenerationConfig

    return GenerationConfig.of_options(lm.vocabulary, beam=2, max_length=6)


def test_ask_builds_its_source_as_the_training_data_are_built(lm, monkeypatch):
    passage = "The cat sat on the mat. A dog, a cat and a bird; the bird sang! On Monday the dog barked at the cat."
    made: list[tuple[str, str]] = []

    def noted(*arguments):
        made.append(question_source(*arguments))
        return made[-1]

    monkeypatch.setattr("unified.tasks.composing.question_source", noted)
    question = ask(lm, passage, "the bird", beam=2, max_length=6)
    window, answer = made[0]
    assert question == lm.generate([(window, answer)], beam=2, max_length=6)[0]
    # 96 positions: what is left beside the question, begin, separator and the index that asks.
    budget = 96 - 6 - 3
    start = passage.index("the bird")
    paragraph = SquadParagraph("", passage, (SquadQuestion("", "?", (SquadAnswer("the bird", start),)),))
    (pair,) = question_pairs([paragraph], TokenCounter(lm.encode), budget)
    assert made[0] == pair.source and 0 < len(window) < len(passage) and "the bird" in window
    ask(lm, passage, "the", start=passage.rindex("the"), max_source=30, beam=1, max_length=2)
    assert made[1][0].endswith("the cat.") and len(lm.encode_source(made[1])) <= 30
    assert len(ask(lm, passage, "cat", beam=3, nbest=2, max_length=4)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"answer": "the fish"}, "the answer 'the fish' is not in the passage; it must be a part of it"),
        ({"answer": "cat", "start": 3}, "the answer 'cat' is not at character 3 of the passage"),
        ({"answer": "cat", "start": -4}, "start must be an integer of at least 0, got -4"),
        ({"answer": " "}, "the answer is empty"),
        ({"answer": "The cat sat", "max_source": 20}, "its answer of 12 tokens has no room in a source of 20"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(lm, arguments, message):
    with pytest.raises(UnifiedError, match=message):
        ask(lm, "The cat sat on the mat.", max_length=8, **arguments)


def test_the_default_room_of_a_source_is_the_papers():
    text = " ".join(["word"] * 600)
    counter = TokenCounter(str.split)
    window, answer = question_source(
        Words.of(text, counter), find_answer(text, "word", 1500), question_generation.MAX_SOURCE, counter
    )
    assert len(window.split()) + 1 + len(answer.split()) == 456
