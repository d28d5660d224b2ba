"""The Stanford Sentiment Treebank (Socher et al. 2013), of which SST-2 is made, and whose test set has labels."""

from __future__ import annotations

import re
from pathlib import Path

from unified.files.json_files import Entries
from unified.files.text_files import numbered_lines
from unified.tasks.heads.items import TextItem

_ROOT = re.compile(r"\(([0-4]) ")
_LEAF = re.compile(r"\([0-4] ([^()\s]+)\)")
#: The treebank's words for brackets, which GLUE's sentences have as they are.
_BRACKETS = {"-lrb-": "(", "-rrb-": ")"}
#: Sentiment of a whole sentence to SST-2's label; neutral sentences (2) are none of its.
_LABELS = {"0": "0", "1": "0", "3": "1", "4": "1"}


def read_sentiment_trees(path: str | Path) -> list[TextItem]:
    """Positive and negative sentences of a file of trees, a sentence a line, in lower case; numbered from 0.

    The backslashes that stand before slashes and asterisks in trees are left out, as in GLUE's sentences.

    Raises:
        UnifiedError: the file cannot be read, holds no such sentence, or lines are no trees; the first ten are named.
    """
    entries = Entries(path)
    items: list[TextItem] = []
    for number, line in numbered_lines(path):
        line = line.strip()
        if not line:
            continue
        root, words = _ROOT.match(line), _LEAF.findall(line)
        if root is None or not words or line.count("(") != line.count(")"):
            entries.wrong(f"line {number}", "no tree of sentiments, such as (3 (2 Good) (2 .))")
        elif root[1] in _LABELS:
            text = " ".join(_BRACKETS.get(word, word) for word in map(str.lower, words)).replace("\\", "")
            items.append(TextItem(str(len(items)), text, None, _LABELS[root[1]]))
    if not items:
        entries.wrong("the file", "holds no positive or negative sentence")
    entries.check()
    return items
