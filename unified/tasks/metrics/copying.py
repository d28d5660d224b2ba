"""Two faults of generated texts that BLEU and ROUGE do not name: saying things twice, and ignoring the source.

A model that hardly reads its source writes "what is the name of the name of the world": every text is fluent, bigrams
return, and few of its words come from what it was given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import summed

#: English words that say nothing about a topic. A word of another language counts as a content word.
FUNCTION_WORDS = frozenset(
    """
    a about after again against all also although am among an and another any are as at be became because become
    been before being between both but by can cannot could d did do does doing done down during each either else
    ever every few for from further had has have having he her here hers herself him himself his how however i
    if in into is it its itself just ll lrb m many may me might mine more most much must my myself n neither no
    none nor not now of off on once one only onto or other others our ours ourselves out over own per re rrb s
    same shall she should since so some such t than that the their theirs them themselves then there these they
    this those though through thus to too under until up upon us very was we were what when where whether which
    while who whom whose why will with within without would yet you your yours yourself
    """.split()
)
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Lower-case runs of letters, digits and underscores, of any script."""
    return _WORD.findall(text.lower())


class CopyingCounts:
    """Counts of repetitions and of words from the source, for each text.

    Args:
        texts: generated texts.
        sources: what each was generated from; None where that is not known.

    Raises:
        UnifiedError: there are more or fewer sources than texts.
    """

    def __init__(self, texts: Sequence[str], sources: Sequence[str] | None):
        if sources is not None and len(sources) != len(texts):
            raise UnifiedError(
                f"{counted(len(sources), 'source')} for {counted(len(texts), 'text')}; they must pair one to one"
            )
        self._has_sources = sources is not None
        given = [""] * len(texts) if sources is None else sources
        #: Repeated bigrams, bigrams, content words from the source, content words of each text: (N, 4).
        self._values = np.array([_counts(text, source) for text, source in zip(texts, given, strict=True)])

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """Percentages over all texts of a sample (:class:`unified.tasks.metrics.bootstrap.Examples`).

        Returns:
            ``repeated_bigrams``: bigrams that the same text has had before, as a share of all bigrams: the repetition
            rate seq-rep-n of [Welleck et al. 2020] for n = 2, summed over the texts. 0 where no text has two words.
            ``source_words``, where there are sources: content words (:data:`FUNCTION_WORDS` are none) that the source
            has too, letter by letter without case, as a share of all content words; 0 where there is none.
        """
        repeated, bigrams, copied, content = summed(self._values, counts).tolist()
        found = {"repeated_bigrams": 100 * repeated / max(bigrams, 1)}
        return found | ({"source_words": 100 * copied / max(content, 1)} if self._has_sources else {})


def _counts(text: str, source: str) -> tuple[float, float, float, float]:
    words, given = words_of(text), set(words_of(source))
    bigrams = list(zip(words, words[1:], strict=False))
    content = [word for word in words if word not in FUNCTION_WORDS]
    return len(bigrams) - len(set(bigrams)), len(bigrams), sum(word in given for word in content), len(content)
