"""Small spaCy pipelines made without a network: a component of our own tags words by their letters."""

import spacy
from spacy.language import Language
from spacy.training import Example

DETERMINERS = {"the", "a", "an", "this"}
VERBS = {"is", "was", "sees", "runs", "has", "sleeps"}


@Language.factory("letter_grammar")
def letter_grammar(nlp, name):
    """A determiner and adjectives (ending in -y or -al) before a noun (any other word of 4 letters or more) are its
    children; every noun is an object of the first word. Short words are prepositions."""

    def tag(document):
        for word in document:
            word.pos_ = part_of_speech(word.lower_)
        for word in reversed(document):
            after = word.nbor() if word.i + 1 < len(document) else None
            if word.pos_ in ("DET", "ADJ") and after is not None and after.pos_ in ("ADJ", "NOUN"):
                word.head, word.dep_ = (after if after.pos_ == "NOUN" else after.head), "amod"
            else:
                word.head, word.dep_ = document[0], "dobj" if word.pos_ == "NOUN" else "dep"
        document[0].dep_ = "ROOT"
        return document

    return tag


@Language.component("heads_only")
def heads_only(document):
    """A parse without parts of speech: every word is an object of the first."""
    for word in document:
        word.head, word.dep_ = document[0], "dobj" if word.i else "ROOT"
    return document


def part_of_speech(word):
    if word in DETERMINERS:
        return "DET"
    if word in VERBS:
        return "VERB"
    if not word.isalpha():
        return "PUNCT"
    if word.endswith(("y", "al")):
        return "ADJ"
    return "NOUN" if len(word) > 3 else "ADP"


def trained(folder, texts):
    """A neural entity recognizer that has learned capitalized words of ``texts`` a little, in ``folder``."""
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    examples = []
    for text in texts:
        document = nlp.make_doc(text)
        names = [(word.idx, word.idx + len(word), "PLACE") for word in document if word.text[0].isupper()]
        examples.append(Example.from_dict(document, {"entities": names}))
    spacy.util.fix_random_seed(1)
    nlp.initialize(lambda: examples)
    for _ in range(15):
        nlp.update(examples)
    nlp.to_disk(folder)
    return str(folder)


def save(folder, *components, language="en", entities=("New York", "Paris")):
    """A pipeline of ``components`` ("letter_grammar", "entity_ruler") in ``folder``."""
    nlp = spacy.blank(language)
    for component in components:
        pipe = nlp.add_pipe(component)
        if component == "entity_ruler":
            pipe.add_patterns([{"label": "PLACE", "pattern": entity} for entity in entities])
    nlp.to_disk(folder)
    return str(folder)
