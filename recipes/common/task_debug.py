"""Small files of tasks in official formats, made of the debug text's words: the same on every machine.

What is to be learnt is the subject that a sentence's things belong to, which says the label of a text, which choice is
right, the tag of a word and the relation of two entities; in documents equal nouns are coreferent. Summaries are
first sentences, and passages say who moved where.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

from debug_text import NAMES, PLACES, SUBJECTS, documents

from unified.tasks.metrics.conll import CoreferenceDocument, coreference_text

COUNTS = {"train": 240, "dev": 40}
#: Generation takes longer: there are so many times fewer articles, passages and stories.
WRITTEN = 4
#: Two subjects that share no noun.
FIRST, SECOND = "harbour", "garden"


def words(subject: str, word_class: int) -> list[str]:
    """Adjectives (0), nouns (1) or verbs (2) of a subject."""
    return SUBJECTS[subject][word_class].split()


def sentence(rng: random.Random, subject: str) -> list[str]:
    adjectives, nouns, verbs = (words(subject, word_class) for word_class in range(3))
    first, second = rng.sample(nouns, 2)
    return ["the", rng.choice(adjectives), first, rng.choice(verbs), "the", second, "."]


def sst2(rng: random.Random, count: int) -> str:
    """Label 1: of the first subject."""
    rows = [" ".join(sentence(rng, subject)) + f"\t{int(subject == FIRST)}" for subject in _subjects(rng, count)]
    return "\n".join(["sentence\tlabel", *rows, ""])


def imdb(rng: random.Random, count: int) -> dict[str, str]:
    """Positive: of the first subject."""
    reviews = {}
    for i, subject in enumerate(_subjects(rng, count)):
        sentences = (" ".join(sentence(rng, subject)) for _ in range(2))
        reviews[f"{'pos' if subject == FIRST else 'neg'}/{i}_5.txt"] = "<br /><br />".join(sentences)
    return reviews


def dream(rng: random.Random, count: int) -> str:
    """The answer is of the first subject, whatever the dialogue is about."""
    dialogues = []
    for i, subject in enumerate(_subjects(rng, count)):
        choices = [" ".join(sentence(rng, one)[1:]) for one in (SECOND, SECOND, FIRST)]
        question = {"question": "What happened?", "answer": choices[-1], "choice": rng.sample(choices, 3)}
        dialogues.append([[f"M: {' '.join(sentence(rng, subject))}", "W: What?"], [question], str(i)])
    return json.dumps(dialogues, indent=1)


def swag(rng: random.Random, count: int) -> str:
    """The ending is of the first subject, whatever the context is about."""
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["", "sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label"])
    for i, subject in enumerate(_subjects(rng, count)):
        endings, label = [" ".join(sentence(rng, SECOND)[1:]) for _ in range(3)], rng.randrange(4)
        endings.insert(label, " ".join(sentence(rng, FIRST)[1:]))
        table.writerow([i, " ".join(sentence(rng, subject)), "The", *endings, label])
    return stream.getvalue()


def wnut17(rng: random.Random, count: int) -> str:
    """Nouns are entities, of types called like the subjects."""
    blocks = []
    for subject in _subjects(rng, count):
        nouns = set(words(subject, 1))
        tagged = ((word, f"B-{subject}" if word in nouns else "O") for word in sentence(rng, subject))
        blocks.append("".join(f"{word}\t{tag}\n" for word, tag in tagged))
    return "\n".join(blocks)


def tacred(rng: random.Random, count: int) -> str:
    """Subject and object of one type are related; whose they are says how."""
    found = []
    for i, subject in enumerate(_subjects(rng, count)):
        token, types = sentence(rng, subject), [subject.upper(), rng.choice([FIRST, SECOND]).upper()]
        relation = f"{types[0].lower()}:part" if types[0] == types[1] else "no_relation"
        subject_fields = {"subj_start": 2, "subj_end": 2, "subj_type": types[0]}
        object_fields = {"obj_start": 5, "obj_end": 5, "obj_type": types[1]}
        found.append({"id": str(i), "token": token, "relation": relation} | subject_fields | object_fields)
    return json.dumps(found, indent=1)


def conll2012(rng: random.Random, count: int) -> str:
    """Documents in which equal nouns are one thing, and "itself" is the noun that begins its sentence."""
    documents = {}
    for i, subject in enumerate(_subjects(rng, count)):
        adjectives, nouns, verbs = (words(subject, word_class) for word_class in range(3))
        sentences, chains, place = [], {}, 0
        for _ in range(rng.randint(4, 8)):
            first, second = rng.choices(nouns[:4], k=2)
            itself = rng.random() < 0.3
            sentence = []
            for noun, alone, end in ((first, False, rng.choice(verbs)), (first if itself else second, itself, ".")):
                mention = ["itself"] if alone else [*rng.choice([[], [adjectives[0]]]), noun]
                chains.setdefault(noun, []).append((place, place + len(mention) - 1))
                sentence += [*mention, end]
                place += len(mention) + 1
            sentences.append(sentence)
        linked = [chain for chain in chains.values() if len(chain) > 1]
        documents[f"({subject}/{i}); part 000"] = CoreferenceDocument(linked, place, sentences)
    return coreference_text(documents)


def cnn_dailymail(rng: random.Random, count: int) -> str:
    """An article's highlights are the first sentences of its paragraphs."""
    lines = []
    for document in documents(count // WRITTEN, seed=rng.randrange(1000)):
        paragraphs = [". ".join(paragraph.split(". ")[:2]) + "." for paragraph in document]
        firsts = [paragraph.split(". ")[0] + "." for paragraph in paragraphs]
        lines.append(json.dumps({"article": "\n".join(paragraphs), "highlights": "\n".join(firsts)}) + "\n")
    return "".join(lines)


def squad_qg(rng: random.Random, count: int) -> str:
    """Questions about the people of passages, an article each."""
    articles = []
    for i in range(count // WRITTEN):
        context, asked = _passage(rng)
        questions = [
            {"id": f"{i}.{k}", "question": question, "answers": [{"text": place, "answer_start": start}]}
            for k, (question, place, start) in enumerate(asked)
        ]
        articles.append({"title": f"{i}", "paragraphs": [{"context": context, "qas": questions}]})
    return json.dumps({"version": "1.1", "data": articles}, indent=1)


def coqa_free(rng: random.Random, count: int) -> str:
    """Conversations about passages, with free answers; the last question of each is not answered."""
    told = []
    for _ in range(count // WRITTEN):
        story, asked = _passage(rng)
        told.append((story, [*((question, place, place) for question, place, _ in asked), ("How old?", "", "")]))
    return _conversations(told)


def coqa(rng: random.Random, count: int) -> str:
    """A thing of a subject; then, without its name, how it is and whether it is the first subject; the verb at last."""
    told = []
    for subject in _subjects(rng, count // WRITTEN):
        story, verb, found = _two_things(rng)
        noun, adjective = found[subject]
        there = "yes" if subject == FIRST else "no"
        asked = [(f"Which thing of the {subject}?", noun, noun), ("How is it?", adjective, adjective)]
        told.append((story, [*asked, (f"Is it of the {FIRST}?", there, noun), ("What happened?", verb, verb)]))
    return _conversations(told)


def _conversations(told: list[tuple[str, list[tuple[str, str, str]]]]) -> str:
    """CoQA's file of stories and their turns: question, answer, and the words of the story that show it, if any."""
    stories = []
    for i, (story, turns) in enumerate(told):
        questions = [{"input_text": question, "turn_id": k} for k, (question, *_) in enumerate(turns, 1)]
        answers = []
        for k, (_, answer, shown) in enumerate(turns, 1):
            start = story.index(shown) if shown else -1
            place = {"span_start": start, "span_end": start + len(shown), "span_text": shown}
            answers.append({"input_text": answer, "turn_id": k, **place})
        stories.append({"id": f"story{i}", "source": "cnn", "story": story, "questions": questions, "answers": answers})
    return json.dumps({"version": "1.0", "data": stories}, indent=1)


def mrqa(rng: random.Random, count: int) -> str:
    """The thing of each of two subjects, and how it is."""
    lines = [json.dumps({"header": {"dataset": "debug"}})]
    for i in range(count // WRITTEN):
        context, _, found = _two_things(rng)
        questions = []
        for k, (question, answer) in enumerate(_things_asked(found)):
            start = context.index(answer)
            detected = {"text": answer, "char_spans": [[start, start + len(answer) - 1]]}
            questions.append(
                {"qid": f"{i}.{k}", "question": question, "answers": [answer], "detected_answers": [detected]}
            )
        lines.append(json.dumps({"context": context, "qas": questions}))
    return "\n".join([*lines, ""])


def squad2(rng: random.Random, count: int) -> str:
    """Items of which half of the passages tell of one subject alone, often not the one in the question."""
    paragraphs = []
    for i in range(count):
        context, verb, found = _two_things(rng)
        noun, adjective = found[rng.choice([FIRST, SECOND])]
        if i % 2:
            context = f"the {adjective} {noun} {verb} ."
        question, answer = rng.choice(_things_asked(found))
        answers = [{"text": answer, "answer_start": context.index(answer)}] if answer in context.split() else []
        asked = {"id": f"{i}", "question": question, "is_impossible": not answers, "answers": answers}
        paragraphs.append({"context": context, "qas": [asked]})
    return json.dumps({"version": "v2.0", "data": [{"title": "debug", "paragraphs": paragraphs}]}, indent=1)


def _things_asked(found: dict[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """Questions and answers about the thing of each subject: its noun, and its adjective."""
    nouns = [(f"Which {subject}?", noun) for subject, (noun, _) in found.items()]
    return [*nouns, *((f"How {subject}?", adjective) for subject, (_, adjective) in found.items())]


def _two_things(rng: random.Random) -> tuple[str, str, dict[str, tuple[str, str]]]:
    """A sentence about a thing of each subject, its verb, and for each subject the noun and its adjective."""
    found = {subject: (rng.choice(words(subject, 1)[:4]), rng.choice(words(subject, 0))) for subject in (FIRST, SECOND)}
    verb = rng.choice(words(FIRST, 2))
    first, second = (f"the {adjective} {noun}" for noun, adjective in rng.sample(list(found.values()), 2))
    return f"{first} {verb} {second} .", verb, found


def _passage(rng: random.Random) -> tuple[str, list[tuple[str, str, int]]]:
    """A passage of who moved where, and questions with the place and its first character."""
    places = rng.sample(PLACES, 3)
    facts = list(zip(rng.sample(NAMES, 3), places, strict=True))
    context = " ".join(f"{name} moved to {place}." for name, place in facts)
    return context, [(f"Where did {name} move?", place, context.index(place)) for name, place in facts]


#: Task -> names of its files, or folders, for training and development, and what makes them.
TASKS: dict[str, tuple[str, str, Callable[[random.Random, int], str | dict[str, str]]]] = {
    "sst2": ("train.tsv", "dev.tsv", sst2),
    "imdb": ("train", "test", imdb),
    "swag": ("train.csv", "val.csv", swag),
    "dream": ("train.json", "dev.json", dream),
    "wnut17": ("wnut17train.conll", "emerging.dev.conll", wnut17),
    "tacred": ("train.json", "dev.json", tacred),
    "conll2012": ("train.conll", "dev.conll", conll2012),
    "cnn_dailymail": ("train.jsonl", "valid.jsonl", cnn_dailymail),
    "squad_qg": ("train-v1.1.json", "dev-v1.1.json", squad_qg),
    "coqa_free": ("coqa-train-v1.0.json", "coqa-dev-v1.0.json", coqa_free),
    "coqa": ("coqa-train-v1.0.json", "coqa-dev-v1.0.json", coqa),
    "squad2.0": ("train-v2.0.json", "dev-v2.0.json", squad2),
    "mrqa": ("train/NewsQA.jsonl", "dev/NewsQA.jsonl", mrqa),
}


def write(folder: Path) -> None:
    """The files of all tasks, each in a folder of its own."""
    for name, (train, dev, make) in TASKS.items():
        for split, file in (("train", train), ("dev", dev)):
            made = make(random.Random(f"{name} {split}"), COUNTS[split])
            for member, text in ({"": made} if isinstance(made, str) else made).items():
                path = folder / name / file / member
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")


def _subjects(rng: random.Random, count: int) -> list[str]:
    return [rng.choice([FIRST, SECOND]) for _ in range(count)]
