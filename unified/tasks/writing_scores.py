"""Written texts as the rules of each task score them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.coqa import COQA_SIGNATURE, CoqaTurns
from unified.tasks.metrics.examples import Noted
from unified.tasks.metrics.generation import GeneratedTexts
from unified.tasks.metrics.question_generation import GeneratedQuestions, from_bert_words, penn_treebank
from unified.tasks.metrics.summaries import POST_PROCESSING
from unified.tasks.writing import WritingItem
from unified.tokenization import parts_of
from unified.tokenization.spelling import respelt, usual_spelling


def scored_texts(
    items: Sequence[WritingItem],
    texts: Sequence[str],
    bert_words: bool,
    separator: str | None = None,
    post_processing: str | None = None,
) -> Examples:
    """Texts with BLEU, ROUGE, repetition and copied words, see :class:`.metrics.generation.GenerationScores`.

    Args:
        bert_words: whether the texts were written in words of BERT's tokenizer, which does not know where spaces stood
            beside marks; both sides then get the spelling that such words have, as ``spelling`` of the scores says.
        separator: between the sentences of a summary.
        post_processing: name of the published clean-up, which both sides get the form of.
    """
    references = [item.right for item in items]
    sources = [" ".join(parts_of(item.source)) for item in items]
    if post_processing is None:
        form = partial(_respelt, separator=separator) if bert_words else str
        scored = GeneratedTexts(
            [form(text) for text in texts],
            [[form(text) for text in group] for group in references],
            sentence_separator=separator,
            sources=sources,
        )
        return Noted(scored, {"spelling": "bert-words"} if bert_words else {})
    rules = POST_PROCESSING[post_processing]
    cleaned = [rules(text, separator) for text in texts]
    in_form = [[rules.in_form(text, separator) for text in group] for group in references]
    scored = GeneratedTexts(cleaned, in_form, sentence_separator=separator, sources=sources)
    return Noted(scored, {"post_process": str(rules)})


def scored_questions(items: Sequence[WritingItem], texts: Sequence[str], bert_words: bool) -> Examples:
    """Questions of SQuAD with BLEU-1 to 4 and ROUGE-L; those of one sentence, the item's reference group, are pooled.

    An example is a sentence.
    """
    form, name = (from_bert_words, "bert-words") if bert_words else (penn_treebank, "penn-treebank")
    references = [penn_treebank(item.target or "") for item in items]
    groups = [item.reference_group or item.id for item in items]
    return GeneratedQuestions([form(text) for text in texts], references, groups, form=name)


def scored_answers(items: Sequence[WritingItem], texts: Sequence[str], bert_words: bool) -> Examples:
    """Answers with ``em`` and ``f1`` of CoQA; capitals, articles and punctuation do not count on either side.

    Words of BERT's tokenizer are joined first: without its marks ``oliver ' s`` would be two words.
    """
    spelt = [usual_spelling(text) for text in texts] if bert_words else list(texts)
    return Noted(CoqaTurns([item.right for item in items], spelt), {"signature": COQA_SIGNATURE})


def _respelt(text: str, separator: str | None) -> str:
    return respelt(text) if separator is None else separator.join(map(respelt, text.split(separator)))
