"""Rules that find entities, one by one: values of each type, and where names begin, go on and end."""

from __future__ import annotations

import re

import pytest

from unified.corpus import spacy_pipeline
from unified.tasks.augmentation.entities import Entity, entities_by_rules, entities_of_spacy, find_entities


def drawn(marked: str) -> tuple[str, list[Entity]]:
    """A text, and the entities that stand in it as ``<type:text>``."""
    text, expected, end = "", [], 0
    for mark in re.finditer(r"<(\w+):([^>]+)>", marked):
        text += marked[end : mark.start()]
        expected.append(Entity(len(text), len(text) + len(mark[2]), mark[2], mark[1]))
        text, end = text + mark[2], mark.end()
    return text + marked[end:], expected


MONTHS = "January February March April May June July August September October November December".split()


@pytest.mark.parametrize(
    "marked",
    [
        *(f"on <date:{month} 5>, <date:{month} 25, 1890>, <date:7 {month}>, <date:7 {month} 1901>, in <date:{month} "
          f"1920> and <date:{month}>." for month in MONTHS),
        "on <date:May 12>",
        "it cost <money:$3>, <money:£ 4.50>, <money:€1,000>, <money:¥2 million>, <money:$3.5 billion>",
        "<money:$7 thousand>, <money:$7 trillion>, <money:$7> millions",
        "<percentage:3%>, <percentage:4.5 %>, <percentage:5 percent>, <percentage:6 per cent>, <number:7> percents",
        "of <year:1000>, <year:1999>, <year:2000>, <year:2099>, the <year:1920s>",
        "of <number:2100>, <number:999>, <number:3000>, <number:19990>, <number:1920>,<number:5>",
        "the <ordinal:1st>, <ordinal:22nd>, <ordinal:3rd> and <ordinal:4th>",
        "<number:3>, <number:4.5>, <number:1,234,567>, <number:12 million>, <number:5 thousand>, <number:6 trillion>",
        "a1 b22 c333 7x",
        "nothing here",
        "",
    ],
)  # fmt: skip
def test_values_are_found_with_their_types(marked):
    text, expected = drawn(marked)
    assert find_entities(text) == expected


@pytest.mark.parametrize(
    "marked",
    [
        # A capital within a sentence is a name; at its beginning it is one that comes again, or one of several words.
        "we saw <name:Oslo> there",
        'Birds sang. Dogs ran! Cats slept? Cows stood: Pigs lay; "Hens" too',
        "<name:Oslo> is old, and we saw <name:Oslo>.",
        "<name:Ada Berg> came.",
        'He said: "<name:Ada Berg> came."',
        "(<name:Ada Berg>) [<name:Bob Olsen>] '<name:Cy Dahl>'",
        '"[Dogs ran." "[Cats ran',
        f"we saw{' ' * 8}<name:Oslo>, {'(' * 9}<name:Rome>). It ended.{' ' * 9}Dogs ran",
        "1<name:Oslo> sang",
        "it ended.) Dogs ran, it ended.” Dogs ran, it ended.' Dogs ran",
        # Function words in front are no part of it, wherever they stand.
        "When <name:Ada> came, Then <name:Bob> ran, and The <name:Beatles> sang",
        "so In That <name:Ada> was, But He and She",
        "we were In The",
        # Some words join others, but do not end or begin a name.
        "the <name:Duke of York> and <name:Ludwig van Beethoven>, the <name:Tower> of the",
        "a <name:Vasco da Gama> sang",
        "by <name:Leonardo> ser <name:Piero>",
        "for <name:Charles de la Vega> del",
        "saw <name:Omar al Sharif>, <name:Jan den Uyl>, <name:Ana del Rio>, <name:Otto von Berg>, <name:Le Monde>",
        # Blanks join words, other marks do not; a full stop does behind an initial or a title.
        "saw <name:Ada\n Berg>, <name:Cy>, <name:Dahl>",
        "met <name:J. R. Olsen> and <name:Dr. Berg>, <name:Mrs. Dahl>, <name:Prof. Moe>, <name:St. Olav>",
        "met <name:Mr Berg> and <name:Ms. Moe>",
        "of <name:Ann>. Dogs ran",
        "of <name:J>.-<name:Olsen>",
        # An abbreviation of several letters keeps its last full stop.
        "of the <name:U.S.> army, the <name:U.S.> and <name:U>. it",
        "from <name:D.C.> on",
        # Words have apostrophes and hyphens within them, and values cut names.
        "with <name:O'Brien>, <name:D’Arcy>, <name:Anne-Marie>",
        # A possessive 's ends a name, whatever follows.
        "in <name:Luther>'s <name:Bible>, <name:Martin Luther>’s, <name:Duke of York>'s. Ada's brother",
        "by <name:Anne-Marie>'s and <name:O'Brien>’s, <name:O'stroh>, the <name:U.S.>'s, the <name:Beatles>' songs",
        "of <name:Tesla>. <name:Tesla>’s coil",
        "It's late, That’s so, and we saw It's",
        "in <name:Room> <number:12> of <name:Éclair>",
        "with <name:Ada> on <date:May 5> and <name:Apollo> <number:11> went",
        "we saw <name:Ada><money:$5> and <percentage:5%><name:Bob> there",
        "iPhone and eBay",
    ],
)
def test_names_begin_go_on_and_end(marked):
    text, expected = drawn(marked)
    assert find_entities(text) == expected


def test_texts_are_read_one_by_one():
    texts = ["we saw Oslo", "", "in 1867 Oslo"]
    assert entities_by_rules(texts) == [find_entities(text) for text in texts]
    assert [len(found) for found in entities_by_rules(texts)] == [1, 0, 2]


def test_entities_of_a_pipeline_have_its_types(monkeypatch):
    asked = []

    class Annotator:
        def __init__(self, *given):
            asked.append(given)

        def typed_entities(self, texts):
            return [[(0, 3, "PERSON"), (7, 11, "GPE")] if text else [] for text in texts]

    monkeypatch.setattr(spacy_pipeline, "SpacyAnnotator", Annotator)
    find = entities_of_spacy("nlp", "code.py")
    assert asked == [(("entities",), "nlp", "code.py")]
    assert find(["Ada in Oslo", ""]) == [[Entity(0, 3, "Ada", "PERSON"), Entity(7, 11, "Oslo", "GPE")], []]
    entities_of_spacy("nlp")
    assert asked[1] == (("entities",), "nlp", None)
