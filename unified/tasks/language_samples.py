"""Samples of a language model: words that it fills in, texts that it goes on with or writes from sources."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path
from typing import Any

from unified.data.prepared_folder import DataFolder
from unified.data.token_files import TokenFile, exists
from unified.generation import SCHEMES
from unified.inference.language_model import UnifiedLM
from unified.reports.run_page import Sample

#: Words of a sentence, at least and at most, tokens that are written, and symbols that are shown for a blank.
_SHORTEST, _LONGEST, _WRITTEN, _SHOWN = 5, 60, 30, 3


def language_samples(lm: UnifiedLM, folder: Path, count: int, rng: random.Random) -> list[Sample]:
    """Random validation texts of a prepared folder with the model's predictions; none without such a split."""
    data = DataFolder.open(str(folder), None, None)
    if not all(map(exists, data.prefixes("valid"))) or lm.model.config.token_head == "none":
        return []
    files = [TokenFile(prefix) for prefix in data.prefixes("valid")]
    order = rng.sample(range(len(files[0])), len(files[0]))
    texts = ([lm.decode(file[i].tolist()) for file in files] for i in order)
    if data.paired:
        chosen = [pair for pair, _ in zip(texts, range(count), strict=False)]
        written = _written(lm, [source for source, _ in chosen]) if lm.writes in SCHEMES else []
        return [
            Sample({"source": source, "right": target, "model": text}, text == target)
            for (source, target), text in zip(chosen, written, strict=False)
        ]
    sentences = [text for (text,) in texts if _SHORTEST <= len(text.split()) <= _LONGEST][: 4 * count]
    filled = [sample for sample in (_filled(lm, text, rng) for text in sentences) if sample is not None][:count]
    if lm.writes not in SCHEMES or not SCHEMES[lm.writes].prompt:
        return filled
    continued = (sample for text in sentences if (sample := continuation(lm, text)) is not None)
    return [*filled, *islice(continued, count)]


def _filled(lm: UnifiedLM, text: str, rng: random.Random) -> Sample | None:
    """A sentence in which one word of one token is hidden; None where it has no such word."""
    words = text.split()
    for i in rng.sample(range(len(words)), len(words)):
        ids = lm.encode(words[i])
        if len(ids) == 1 and ids[0] != lm.special.unknown:
            hidden = " ".join([*words[:i], "<mask>", *words[i + 1 :]])
            if len(lm.encode(hidden)) + 4 > lm.model.config.position_limit:
                return None
            found = lm.fill_mask(hidden, top=_SHOWN)[0]
            shown = ", ".join(f"“{symbol}” {probability:.0%}" for symbol, probability in found)
            right = lm.vocabulary.symbols[ids[0]]
            return Sample({"sentence": hidden, "hidden word": words[i], "model": shown}, found[0][0] == right)
    return None


def continuation(lm: UnifiedLM, text: str) -> Sample | None:
    """The first half of a sentence and what the model writes behind it; None where its positions leave no room."""
    words = text.split()
    begun, rest = " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])
    room = lm.length_rules.tokens_left(len(lm.encode(begun)))
    if room < 1:
        return None
    [written] = _written(lm, [begun], max_length=min(_WRITTEN, room))
    return Sample({"beginning": begun, "as it goes on": rest, "model": written})


def _written(lm: UnifiedLM, sources: list[str], **options: Any) -> list[str]:
    """One text for each source."""
    texts = lm.generate(sources, beam=1, **options)
    return [text if isinstance(text, str) else text[0] for text in texts]
