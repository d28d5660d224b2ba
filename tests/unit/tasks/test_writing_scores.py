"""Scores of written texts: each kind of task has the rules of its papers, by hand."""

from __future__ import annotations

import pytest

from unified.tasks.metrics.summaries import POST_PROCESSING
from unified.tasks.writing import WritingItem
from unified.tasks.writing_scores import scored_answers, scored_questions, scored_texts


def rounded(scores: dict, *names: str) -> list[float]:
    return [round(scores[name], 1) for name in names]


def test_sentences_of_a_summary_may_stand_in_another_order():
    """ROUGE-L of whole texts is that of the longest common subsequence, three words of five; of sentences it is 1."""
    items = [WritingItem("1", "a fox ran .", "the fox ran | it slept")]
    found = scored_texts(items, ["it slept | the fox ran"], False, separator="|").scores()
    assert rounded(found, "rouge1", "rouge2", "rougeL") == [100, 75, 100] and "rougeLsum" in found["rouge_signature"]
    found = scored_texts(items, ["it slept | the fox ran"], False).scores()
    assert rounded(found, "rouge1", "rouge2", "rougeL") == [100, 75, 60]
    assert found["rouge_signature"].split("|")[4] == "long:rougeL" and "post_process" not in found
    assert scored_texts(items, ["it slept | the fox ran"], True).scores() == found | {"spelling": "bert-words"}


def test_sources_and_all_references_count():
    items = [WritingItem("1", ("a fox", "ran fast"), "no", ("a fox sat", "a fox ran")), WritingItem("2", "x", "y")]
    found = scored_texts(items, ["a fox ran", "z"], False).scores()
    assert found["sentences"] == 2 and found["exact_match"] == 50
    assert rounded(found, "source_words") == [66.7]  # two of three content words, one from each part of a source


def test_both_sides_get_the_form_of_a_published_clean_up():
    items = [WritingItem("1", "s", "( Fox ) ran | it slept")]
    written = ["-lrb- fox -rrb- ran | it slept"]
    plain = scored_texts(items, written, False, "|").scores()
    found = scored_texts(items, written, False, "|", "gigaword").scores()
    assert found["rouge1"] == 100 > plain["rouge1"] and "rougeLsum" in found["rouge_signature"]
    assert found["source_words"] == plain["source_words"]
    assert found["post_process"] == str(POST_PROCESSING["gigaword"]) == "gigaword|max_words:any"
    with pytest.raises(KeyError):
        scored_texts(items, written, False, None, "unknown").scores()


def test_questions_of_bert_words_are_joined_before_they_are_compared():
    items = [WritingItem("1", "s", "What's it?")]
    joined, as_written = (
        scored_questions(items, ["what ' s it ?"], bert_words).scores() for bert_words in (True, False)
    )
    assert rounded(joined, "bleu1", "bleu4", "rougeL") == [100, 100, 100]
    assert round(as_written["bleu1"]) == 60  # of five words three are right
    assert "tok:bert-words+spaces" in joined["signature"].split("|")
    assert "tok:penn-treebank+spaces" in as_written["signature"].split("|")
    untold = scored_questions([WritingItem("1", "s", None)], ["XX"], False).scores()
    assert rounded(untold, "bleu1", "rougeL") == [0, 0]


def test_questions_of_one_sentence_are_pooled():
    """The reference of either question counts for both; items without a group are by themselves."""
    targets = ("who ran ?", "what slept ?")
    alone = [WritingItem(str(i), "s", target) for i, target in enumerate(targets)]
    pooled = [WritingItem(one.id, one.source, one.target, reference_group="g") for one in alone]
    assert scored_questions(alone, targets[::-1], False).scores()["sources"] == 2
    found = scored_questions(pooled, targets[::-1], False).scores()
    assert (
        found["sources"] == 1
        and round(found["bleu3"]) == 100 > scored_questions(alone, targets[::-1], False).scores()["bleu3"]
    )


def test_answers_are_compared_by_the_rules_of_coqa():
    items = [WritingItem("1", "s", "the Fox!"), WritingItem("2", "s", "no", ("two red foxes", "two foxes"))]
    assert scored_answers(items, ["fox", "cats"], False).scores() == {
        "em": 50.0, "f1": 50.0, "turns": 2, "signature": "rules:coqa|refs:leave-one-out",
    }  # fmt: skip
