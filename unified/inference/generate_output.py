"""Generated sentences in the lines of ``fairseq-generate``, so that whatever reads those reads these."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unified.generation.search import Hypothesis
from unified.inference.language_model import UnifiedLM


def lines(
    lm: UnifiedLM, number: int, source: str, reference: str | None, given: Sequence[int], found: Sequence[Hypothesis]
) -> str:
    """Lines of one sentence, each ended by a line feed.

    ``S-number`` source, ``T-number`` reference (if there is one), and for each hypothesis ``H-number`` score and
    symbols, ``D-number`` score and text, ``P-number`` scores of its tokens and of its end. Scores are logarithms to
    base 2.

    Args:
        given: ids that the text of a hypothesis begins with (a prompt).
    """
    rows = [f"S-{number}\t{_line(source)}"]
    if reference is not None:
        rows.append(f"T-{number}\t{_line(reference)}")
    for hypothesis in found:
        score = hypothesis.score / math.log(2)
        written = hypothesis.tokens.tolist()
        rows.append(f"H-{number}\t{score:.6f}\t{' '.join(lm.pieces(written))}")
        rows.append(f"D-{number}\t{score:.6f}\t{_line(lm.decode([*given, *written]))}")
        log_probs = " ".join(f"{value / math.log(2):.4f}" for value in hypothesis.log_probs.tolist())
        rows.append(f"P-{number}\t{log_probs}")
    return "".join(f"{row}\n" for row in rows)


def _line(text: str) -> str:
    """Joins the lines of a generated text (byte pieces may be line ends) to one line of the output."""
    return " ".join(text.splitlines())
