"""Scores of generated texts: signatures, defaults, samples under any tokenizer, and the exact text of refusals."""

from __future__ import annotations

import logging
import random
from importlib.metadata import version

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.tasks.metrics import GenerationScores, score_generation
from unified.tasks.metrics.generation import GeneratedTexts, rouge_f1
from unified.tasks.metrics.length_tuning import LengthScores, NBest, tuned
from unified.tasks.metrics.outputs import Written


def test_signatures_say_how_rouge_was_computed():
    for references, count in ((["a", "b"], "1"), ([["a", "b"], ["c", "d"]], "2"), ([["a"], ["b", "c"]], "var")):
        for stemmer, separator, stems, longest in (
            (True, None, "porter", "rougeL"),
            (False, "|", "no", "rougeLsum"),
        ):
            scores = score_generation(["a", "b"], references, use_stemmer=stemmer, sentence_separator=separator)
            assert scores.rouge_signature == (
                f"nrefs:{count}|score:f1|stemmer:{stems}|tok:default|long:{longest}|version:{version('rouge_score')}"
            )
            assert scores.bleu_signature.startswith(f"nrefs:{count}|case:mixed|eff:no|tok:13a|smooth:exp|version:")


def test_texts_are_scored_with_stems_unless_somebody_says_otherwise():
    texts = ["cats running"], ["cat runs"]
    whole = score_generation(*texts)
    assert whole.rouge1 == 100 and score_generation(*texts, use_stemmer=False).rouge1 == 0
    assert GeneratedTexts(*texts).scores() == whole.to_dict()
    assert "source_words" not in whole.to_dict() and score_generation(*texts, sources=["x"]).source_words == 0
    assert GenerationScores(**whole.to_dict()) == whole


def test_references_without_words_are_counted():
    """rouge-score reads ASCII letters and digits alone."""
    assert score_generation(["a"] * 5, [["\u6f22", "\u00e9"], ["?"], ["7"], ["\u00e9 a"], [""]]).without_words == 4
    values, _, without = rouge_f1(["a b", "c"], [["a", "\u6f22"], ["d"]], False, None)
    assert ([column[0] for column in values], without) == ([pytest.approx(2 / 3), 0, pytest.approx(2 / 3)], 1)


@pytest.mark.parametrize("tokenizer", ["13a", "char", "none"])
def test_bleu_of_a_sample_is_that_of_its_texts_written_out(tokenizer, caplog):
    rng = random.Random(3)
    words = ["the", "cat's", "mat.", "on", "a"]

    def text() -> str:
        return " ".join(rng.choices(words, k=rng.randint(4, 9)))

    hypotheses = [text() for _ in range(6)]
    references = [[text() for _ in range(rng.randint(1, 3))] for _ in range(6)]
    counts = np.array([2, 0, 1, 1, 0, 2.0])
    chosen = np.repeat(np.arange(6), counts.astype(int)).tolist()
    texts = GeneratedTexts(hypotheses, references, bleu_tokenizer=tokenizer)
    with caplog.at_level(logging.WARNING, logger="sacrebleu"):
        found = texts.measures(counts)["bleu"]
    expected = score_generation(
        [hypotheses[i] for i in chosen], [references[i] for i in chosen], bleu_tokenizer=tokenizer
    )
    assert found == pytest.approx(expected.bleu) and found > 0
    assert not [record for record in caplog.records if record.name == "sacrebleu"]


def test_bleu_of_a_sample_is_smoothed_where_no_four_words_match():
    """As that of all texts is."""
    hypotheses, references = ["the cat sat down now", "a b c x y"], ["the cat is down now", "a b c v w"]
    texts = GeneratedTexts(hypotheses, references)
    for counts in ([1, 1], [2, 0], [0, 1]):
        chosen = np.repeat(np.arange(2), counts).tolist()
        expected = score_generation([hypotheses[i] for i in chosen], [references[i] for i in chosen]).bleu
        assert texts.measures(np.array(counts, dtype=np.float64))["bleu"] == pytest.approx(expected) and expected > 10


def test_a_sample_without_a_matching_word_has_no_bleu():
    assert GeneratedTexts(["a b c d e", "f"], ["v w x y z", "f"]).measures(np.array([2.0, 0]))["bleu"] == 0


def test_what_cannot_be_scored_is_refused():
    refused = [
        (("a", ["b"]), {}, "hypotheses: expected a list of strings, got one string"),
        ((["a"], ["b", "c"]), {}, "1 hypothesis but 2 references; they must pair one to one"),
        (([], []), {}, "nothing to score: no hypotheses"),
        ((["a", "b"], ["c", []]), {}, "references[1]: empty; every hypothesis needs at least one reference"),
        ((["a"], ["b"]), {"sources": []}, "0 sources for 1 text; they must pair one to one"),
    ]
    for texts, settings, message in refused:
        with pytest.raises(UnifiedError) as caught:
            score_generation(*texts, **settings)
        assert str(caught.value) == message
    with pytest.raises(
        UnifiedError, match=r"^BLEU tokenizer 'chr' \(did you mean 'char'\?\): expected one of 13a, char,"
    ):
        score_generation(["a"], ["b"], bleu_tokenizer="chr")


def test_separators_stand_between_sentences_for_rouge_alone():
    found = score_generation([" a b | c "], ["a b c"], sentence_separator="|")
    assert found.exact_match == found.character_similarity == found.rouge1 == 100
    assert score_generation(["a||b"], ["a b"], sentence_separator="|").exact_match == 100


def test_limits_of_lengths_are_inclusive_and_the_end_does_not_count():
    written = [[Written("a", -1.0, 3), Written("b", -2.0, 5)]]
    nbest = NBest(written, ["a", "b"], [["b"]])
    for low, high, score, outside in ((2, 4, 0, 0), (3, 4, 100, 0), (4, 4, 100, 0), (0, 2, 0, 0), (3, 3, 0, 1),
                                      (5, 9, 0, 1), (0, 1, 0, 1)):  # fmt: skip
        found = nbest.scores("fairseq", 0.0, low, high)
        assert found == LengthScores(0.0, low, high, score, 0, score, outside)
    assert [one.min_length for one in tuned(nbest, "fairseq", [0.0], [2, 3, 9], [3, 4], "rougeL")] == [3, 2, 2]


@pytest.mark.parametrize("separator", [None, "|"])
def test_white_space_that_no_model_writes_does_not_count(separator):
    """Whatever white space stands in either text, single spaces score the same; a space within a word is a mistake."""
    generator = random.Random(1)
    texts = [["Yes,", "please."], ["Two", "lines", "of", "text"], ["plain"], ["a", "|", "b"], []]

    def spaced(words):
        def white():
            return "".join(generator.choices(" \n\t\u00a0\u3000", k=generator.randint(1, 3)))

        return generator.choice(["", white()]) + white().join(words) + generator.choice(["", white()])

    single = [" ".join(words) for words in texts]
    for _ in range(20):
        for written, wanted in ((map(spaced, texts), single), (single, map(spaced, texts))):
            found = score_generation(list(written), list(wanted), sentence_separator=separator)
            assert found.exact_match == found.character_similarity == 100
    found = score_generation(["Two lines"], ["Two li nes"])
    assert found.exact_match == 0 and found.character_similarity == pytest.approx(90)
