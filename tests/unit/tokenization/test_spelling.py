"""The usual spelling of words and marks: by hand, on random texts, and on the answers and titles of real data."""

import json
import lzma
import random

import pytest
from tokenizers.pre_tokenizers import BertPreTokenizer

from unified.corpus.tokenizer_source import TokenizerSource
from unified.tasks.datasets.coqa_json import read_coqa_file
from unified.tasks.metrics.generation import rouge_f1
from unified.tasks.metrics.question_generation import from_bert_words
from unified.tasks.metrics.summaries import POST_PROCESSING
from unified.tasks.writing import WritingItem
from unified.tasks.writing_scores import scored_answers, scored_texts
from unified.tokenization import load_tokenizer
from unified.tokenization.json_tokenizer import JsonTokenizer
from unified.tokenization.spelling import respelt, usual_spelling
from unified.tokenization.symbol_tokenizer import SymbolTokenizer


def apart(text: str) -> str:
    """The words of BERT's tokenizer with a space between any two."""
    return " ".join(word for word, _ in BertPreTokenizer().pre_tokenize_str(text))


SPELLINGS = """\
He said: "don't!" (Twice?)
Oliver's well-known car, o'clock and l'amour
the boys' room: it's new
'one word' and it's N.Z.'s
the Qur'an
3.5 of 3,000,000 at 10:30, 5% or $5 (.5)
in the U.S.-led war, p.m. and e.g. this
see www.enron.com or a@b.com/x_y, http://x.org
"one" and "two": Q&A, AT & T
the option(s) [1] {2} <x n> a < b
10–20, a – b, wait... what?! -- no
= -1 and #3; “so” ‘what’ it’s x * y = z + 1""".split("\n")


@pytest.mark.parametrize("text", SPELLINGS)
def test_usual_spellings_come_back_from_words_that_are_apart(text):
    assert apart(text) != text and usual_spelling(apart(text)) == text == respelt(text)


def test_what_may_be_two_things_is_the_more_frequent_one():
    assert usual_spelling("news - today , in 1990 . 2 men") == "news-today, in 1990.2 men"
    assert usual_spelling("1 , 2 , 3 and 3 , 50") == "1, 2, 3 and 3, 50"
    assert usual_spelling("a vitamin c . so") == "a vitamin c. so" and usual_spelling("") == ""


MARKS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~’“”‘–—…«»¿¡")
WORDS = ["a", "s", "t", "u", "word", "don", "boys", "3", "50", "500", "com", "www", "<unk>", "[UNK]", "Émile", "漢"]


@pytest.mark.parametrize("seed", range(4))
def test_nothing_but_spaces_beside_marks_goes(seed):
    """BERT's tokenizer has the same words before and after, and what is spelt already stays as it is."""
    generator = random.Random(seed)
    for _ in range(5000):
        text = " ".join(generator.choices(WORDS + MARKS, k=generator.randint(0, 10)))
        spelt = usual_spelling(text)
        assert apart(spelt) == apart(text) and "".join(spelt.split()) == "".join(text.split()), text
        assert usual_spelling(spelt) == spelt and respelt(spelt) == respelt(text) == respelt(respelt(text)), text


def texts_of(folder, name: str) -> list[str]:
    """Answers, subjects, summaries and titles of real data, single-spaced."""
    if name == "coqa":
        turns = read_coqa_file(folder / "coqa_abg" / "coqa_abg_val.json.xz")
        texts = [answer.text for turn in turns for answer in turn.answers]
    else:
        field = {"aeslc": "subject", "scitldr": "target", "reuters21578": "title"}[name]
        with lzma.open(folder / name / "dev.jsonl.xz", "rt", encoding="utf-8") as stream:
            texts = [json.loads(line)[field] for line in stream]
    texts = [text if isinstance(text, str) else text[0] for text in texts]
    return [" ".join(text.split()) for text in texts if text.strip()]


@pytest.mark.parametrize(
    ("name", "spelt"), [("coqa", 0.98), ("scitldr", 0.97), ("aeslc", 0.87), ("reuters21578", 0.75)]
)
def test_right_texts_of_real_data_are_right(unified_data, name, spelt):
    """Words that are apart are scored 100 where both sides have one spelling; ROUGE does not see the spelling.

    Titles and subjects have dashes between spaces, which nobody tells from hyphens.
    """
    texts = texts_of(unified_data, name)
    words = [apart(text) for text in texts]
    assert len(texts) > 500
    assert sum(usual_spelling(own) == text for own, text in zip(words, texts, strict=True)) / len(texts) > spelt
    items = [WritingItem(str(i), "x", text) for i, text in enumerate(texts)]
    found, plain = scored_texts(items, words, True).scores(), scored_texts(items, words, False).scores()
    assert found["exact_match"] == found["character_similarity"] == 100 and found["bleu"] == pytest.approx(100)
    assert found["exact_match"] > plain["exact_match"] + 15 and found["spelling"] == "bert-words"
    assert [found[rouge] for rouge in ("rouge1", "rouge2", "rougeL")] == [
        plain[rouge] for rouge in ("rouge1", "rouge2", "rougeL")
    ]


def test_right_answers_of_coqa_are_right(unified_data):
    texts = texts_of(unified_data, "coqa")
    items = [WritingItem(str(i), "x", text, (text,)) for i, text in enumerate(texts)]
    words = [apart(text) for text in texts]
    found, plain = scored_answers(items, words, True).scores(), scored_answers(items, words, False).scores()
    assert found["em"] > 99 and found["f1"] > 99.4 and plain["em"] < 94
    assert scored_answers(items, list(map(usual_spelling, words)), True).scores() == found


def test_published_clean_ups_see_no_spelling(unified_data):
    """They divide texts into BERT's words themselves; only ``--`` and ``''`` are words of their own where they join."""
    forms = [rules.in_form for rules in POST_PROCESSING.values()] + [from_bert_words]
    for name in ("coqa", "scitldr", "reuters21578"):
        for words in map(apart, texts_of(unified_data, name)):
            if "- -" not in words and "' '" not in words:
                assert all(form(usual_spelling(words)) == form(words) for form in forms), words


def test_rouge_sees_no_spelling():
    generator = random.Random(5)
    references = [" ".join(generator.choices(WORDS + MARKS, k=8)) for _ in range(300)]
    texts = [" ".join(generator.choices(WORDS + MARKS, k=8)) for _ in range(300)]
    groups = [[one] for one in references]
    assert rouge_f1(list(map(usual_spelling, texts)), groups, True, None) == rouge_f1(texts, groups, True, None)


LINES = ['He said: "don\'t!" to 3.5 well-known men.', "Oliver's car, e.g. a red one (new)."] * 30


@pytest.mark.parametrize(
    ("kind", "has"), [("wordpiece", True), ("anna", True), ("unigram", False), ("bpe", False), ("char", False)]
)
def test_tokenizers_say_whether_they_have_berts_words(tmp_path, kind, has):
    """Those that have them spell what they decode; all give back the text."""
    tokenizer = TokenizerSource(name=kind).train(LINES)
    tokenizer.save(tmp_path)
    for own in (tokenizer, load_tokenizer(tmp_path)):
        assert own.bert_words is has
        assert [own.decode(own.encode(line)) for line in LINES] == LINES
    assert SymbolTokenizer(["a"]).bert_words is False


@pytest.mark.parametrize(("step", "has"), [("BertPreTokenizer", True), ("WhitespaceSplit", False)])
def test_a_tokenizer_of_a_json_file_says_so_by_its_steps(step, has):
    entries = ["<unk>", "a", "b", "-", ".", "'", "s"]
    content = {
        "version": "1.0",
        "model": {"type": "WordLevel", "vocab": {entry: i for i, entry in enumerate(entries)}, "unk_token": "<unk>"},
        "added_tokens": [],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": step}]},
        "normalizer": None, "decoder": None, "post_processor": None, "truncation": None, "padding": None,
    }  # fmt: skip
    tokenizer = JsonTokenizer(content, {"<unk>": "<unk>"})
    assert tokenizer.bert_words is has
    assert tokenizer.decode(["a", "-", "b", "'", "s", "."]) == ("a-b's." if has else "a - b ' s .")
