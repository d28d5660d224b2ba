"""A spaCy pipeline for the text of debug_text.py: its grammar is known, so nothing has to be trained or downloaded.

    python recipes/common/debug_pipeline.py FOLDER

writes the pipeline; `unified prepare --spacy FOLDER --spacy-code debug_pipeline` uses it, with this folder on
PYTHONPATH. It stands in for en_core_web_sm at the debug size and is good for no other text.
"""

from __future__ import annotations

import sys

import spacy
from debug_text import DETERMINERS, NAMES, PLACES, SUBJECTS
from spacy.language import Language

_PARTS = {
    "DET": DETERMINERS,
    "PROPN": [word for name in (*NAMES, *PLACES) for word in name.lower().split()],
    "ADJ": [word for adjectives, _, _ in SUBJECTS.values() for word in adjectives.split()],
    "NOUN": [part for _, nouns, _ in SUBJECTS.values() for noun in nouns.split() for part in noun.split("-")],
    "VERB": [word for *_, verbs in SUBJECTS.values() for word in verbs.split()],
}
_PART_OF = {word: part for part, words in _PARTS.items() for word in words}


@Language.component("debug_grammar")
def debug_grammar(document):
    """Parts of speech by a list; the word before a noun depends on the noun, nouns depend on the first verb."""
    for word in document:
        word.pos_ = _PART_OF.get(word.lower_, "PUNCT" if not word.text[0].isalnum() else "ADP")
        if word.text == "-":
            word.pos_ = "ADJ"  # within fishing-net, which is one phrase
    root = next((word for word in document if word.pos_ == "VERB"), document[0])
    inside = ("DET", "ADJ", "NOUN", "PROPN")
    head = root
    for word in reversed(document):
        if word.pos_ in ("NOUN", "PROPN"):
            after = word.nbor() if word.i + 1 < len(document) else None
            if after is None or after.pos_ not in ("ADJ", "NOUN", "PROPN"):
                head = word
                word.head, word.dep_ = root, "dobj"
                continue
        if word.pos_ in inside and head is not root:
            word.head, word.dep_ = head, "compound"
        else:
            head = root
            word.head, word.dep_ = root, "dep"
    root.head, root.dep_ = root, "ROOT"
    return document


def main(folder: str) -> None:
    pipeline = spacy.blank("en")
    pipeline.add_pipe("debug_grammar")
    entities = pipeline.add_pipe("entity_ruler")
    entities.add_patterns([{"label": "PERSON", "pattern": name} for name in NAMES])
    entities.add_patterns([{"label": "GPE", "pattern": name} for name in PLACES])
    pipeline.to_disk(folder)


if __name__ == "__main__":
    main(sys.argv[1])
