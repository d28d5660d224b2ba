"""A rule that a model of coreference must beat: mentions with the same head word are the same thing.

    python recipes/spanbert/coreference/baseline.py dev.conll --mentions found

The head word is the last one before a preposition, a relative pronoun or a comma, in lower case. Mentions are those of
the key (``gold``, which no model is given), or capitalised words that stand together, personal pronouns, and definite
determiners with the words behind them (``found``). Chains of one mention are left out, as the model leaves them out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from unified.errors import UnifiedError
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.documents import DocumentItem, read_conll, response_text
from unified.tasks.metrics.conll import Mention

PRONOUNS = frozenset(
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its itself "
    "we us our ours ourselves they them their theirs themselves".split()
)
DETERMINERS = frozenset("the this that these those my your his her its our their".split())
#: Words that begin the part of a mention behind its head word.
BEHIND = frozenset(
    "of in on at from for with to by about over under between among into upon near beside who whom whose which that "
    "where when , ( : ; -- -".split()
)
#: Words before which a determiner's noun phrase ends, as it does before punctuation.
FUNCTION_WORDS = frozenset(
    "a an and or but as is was were are be been has have had do does did will would could should not no so than if "
    "'s all said then there".split()
).union(BEHIND, PRONOUNS, DETERMINERS)
#: Words of a determiner's noun phrase behind it; 1 and 3 change the scores of real documents by half a point.
NOUN_WORDS = 2


def head_word(words: list[str]) -> str:
    """The head word of a mention in lower case: the one before its first ``of``, ``that`` or the like."""
    end = next((i for i, word in enumerate(words) if i and word.lower() in BEHIND), len(words))
    return words[end - 1].lower()


def found_mentions(item: DocumentItem) -> list[Mention]:
    """Definite phrases, and names and pronouns that are not the end of one, in the order of their first words."""
    phrases = list(definite_phrases(item))
    ends = {end for _, end in phrases}
    return sorted([*phrases, *(mention for mention in names_and_pronouns(item) if mention[1] not in ends)])


def definite_phrases(item: DocumentItem) -> Iterator[Mention]:
    """Definite determiners with up to ``NOUN_WORDS`` words behind them, before function words and punctuation."""
    before = 0
    for sentence in item.sentences:
        for i, word in enumerate(sentence):
            if word.lower() in DETERMINERS:
                behind = sentence[i + 1 : i + 1 + NOUN_WORDS]
                nouns = list(takewhile(lambda noun: noun[0].isalpha() and noun.lower() not in FUNCTION_WORDS, behind))
                if nouns:
                    yield before + i, before + i + len(nouns)
        before += len(sentence)


def names_and_pronouns(item: DocumentItem) -> Iterator[Mention]:
    """Runs of capitalised words, and pronouns. A sentence's first word must be capitalised elsewhere too."""
    inside = {word for sentence in item.sentences for word in sentence[1:] if word[0].isupper()}
    before = 0
    for sentence in item.sentences:
        begin = None
        for i, word in enumerate((*sentence, ".")):
            pronoun = word.lower() in PRONOUNS
            name = word[0].isupper() and not pronoun and (i > 0 or word in inside)
            if begin is not None and not name:
                yield before + begin, before + i - 1
                begin = None
            if pronoun and i < len(sentence):
                yield before + i, before + i
            if name and begin is None:
                begin = i
        before += len(sentence)


def same_head(item: DocumentItem, mentions: str) -> dict:
    """The prediction for a document, as the model's are."""
    words, by_head = item.words, {}
    if mentions == "gold":
        spans = sorted({mention for chain in item.chains for mention in chain})
    else:
        spans = found_mentions(item)
    for start, end in spans:
        by_head.setdefault(head_word(words[start : end + 1]), []).append([start, end])
    return {"id": item.id, "chains": [chain for chain in by_head.values() if len(chain) > 1]}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="coreference by equal head words, scored")
    parser.add_argument("key", metavar="KEY", help="documents with chains, in the format of CoNLL-2012")
    parser.add_argument(
        "--mentions",
        choices=("gold", "found"),
        default="found",
        help="mentions to link: those of KEY or found ones (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="file to write the chains to, in the format of CoNLL-2012 (default: none)",
    )
    options = parser.parse_args(arguments)
    try:
        items = read_conll(options.key)
    except UnifiedError as error:
        print(f"baseline.py: error: {error}", file=sys.stderr)
        return 2
    predictions = [same_head(item, options.mentions) for item in items]
    if options.output:
        options.output.write_text(response_text(items, predictions), encoding="utf-8")
    print(json.dumps(Coreference().score(items, predictions), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
