"""Parts of speech in the input: the symbol of its tag stands behind each word (ANNA's table 7, "POS")."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unified.data.annotations import PARTS_OF_SPEECH, TAGS
from unified.data.extents import Extents, ranges
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens
from unified.objectives.joined_segments import annotated_spans, require_word_starts


def first_tag(special: SpecialTokens) -> int:
    """Id of the symbol of the first of :data:`TAGS`; the others follow.

    The last sentinels of the dictionary stand for tags: symbols that no text has, of which T5's objectives use the
    first ones.
    """
    return special.first_sentinel + special.sentinel_count - len(TAGS)


def with_tags(texts: Texts, name: str) -> Texts:
    """The first segments of the texts with a tag behind each annotated word, and where words begin then.

    Words are those of the annotation. Words that share a token, as the parts of a contraction may, are one word, with
    the tag of the first. A tag is a word by itself; a token in no annotated word keeps the word that it has.

    Args:
        name: of the objective, for messages.

    Raises:
        UnifiedError: the texts have no parts of speech, or do not say where words begin.
    """
    texts = texts.first_segments()
    begins = require_word_starts(texts, name).copy()
    extents = Extents(texts.lengths[0])
    spans = annotated_spans(texts, PARTS_OF_SPEECH, name).shifted(extents.starts)
    starts, stops, tags = spans.bounds.T
    reach = np.maximum.accumulate(stops)
    first = np.flatnonzero(starts >= np.append(0, reach)[: len(starts)])  # words that share no token with earlier ones
    starts, tags = starts[first], tags[first]
    stops = reach[np.append(first, len(reach))[1:] - 1]
    begins[ranges(starts, stops - starts)] = False
    begins[starts] = True
    return replace(
        texts,
        tokens=np.insert(texts.tokens, stops, first_tag(texts.special) + tags),
        lengths=texts.lengths + np.bincount(spans.owners[first], minlength=len(texts)),
        word_starts=np.insert(begins, stops, True),
        spans={},
    )
