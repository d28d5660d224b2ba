"""Questions of SQuAD, MRQA and CoQA as items."""

from __future__ import annotations

from collections.abc import Iterable

from unified.data.coqa import NO_PLACE, CoqaTurn
from unified.data.mrqa import MrqaQuestion
from unified.data.squad import SquadParagraph
from unified.metrics.squad import normalize_answer
from unified.tasks.free_answers import most_similar_span
from unified.tasks.questions import Answer, QuestionItem

#: Answers of CoQA that are no parts of a passage.
CHOICES = ("yes", "no", "unknown")


def squad_items(paragraphs: Iterable[SquadParagraph]) -> list[QuestionItem]:
    """Of SQuAD; answers that do not stand where the file says are kept, to be counted."""
    return [
        QuestionItem(
            question.id,
            question.text,
            paragraph.context,
            tuple(Answer(answer.text, answer.start) for answer in (*question.answers, *question.misaligned)),
            impossible=True if question.is_impossible else None,
        )
        for paragraph in paragraphs
        for question in paragraph.questions
    ]


def mrqa_items(questions: Iterable[MrqaQuestion]) -> list[QuestionItem]:
    """Of MRQA; the first detected answer is learnt, all answers are scored by."""
    return [
        QuestionItem(
            question.id,
            question.text,
            question.context,
            _detected(question),
            references=question.answers,
        )
        for question in questions
    ]


def coqa_items(turns: Iterable[CoqaTurn]) -> list[QuestionItem]:
    """Of CoQA; turns without a question or an answer are left out.

    The answer is the part of the passage that is most like the main free answer, or one of :data:`CHOICES`; what was
    said before is the history.
    """
    return [_turn(turn) for turn in turns if turn.question.strip() and turn.answers[0].text.strip()]


def _detected(question: MrqaQuestion) -> tuple[Answer, ...]:
    if question.detected is None:
        return (Answer(question.answers[0]),)
    text, start, end = question.detected
    shown = question.context[start:end]
    # Capitals and spaces may differ from the answer's; of anything else the place is wrong, which is counted.
    return (Answer(shown if normalize_answer(shown) == normalize_answer(text) else text, start),)


def _turn(turn: CoqaTurn) -> QuestionItem:
    main, choice = turn.answers[0], normalize_answer(turn.answers[0].text)
    answers: tuple[Answer, ...] = ()
    if choice not in CHOICES:
        rationale = None if main.start == NO_PLACE else (main.start, main.end)
        span = most_similar_span(turn.passage, main.text, rationale)
        answers = (Answer(turn.passage[slice(*span)], span[0]) if span else Answer(main.text),)
    return QuestionItem(
        f"{turn.story} {turn.number}",
        turn.question,
        turn.passage,
        answers,
        choice=choice if choice in CHOICES else None,
        history=" ".join(text for said in turn.history for text in said) or None,
        references=tuple(answer.text for answer in turn.answers),
    )
