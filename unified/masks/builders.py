"""The masks of the field, each for one document."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from unified.masks import steps as of_many
from unified.masks.checks import check_integers, check_length, check_size, check_steps
from unified.masks.constants import GIVEN, NOWHERE
from unified.masks.mask import AttentionMask, structure_of
from unified.masks.steps import Integers, Steps


def bidirectional(length: int) -> AttentionMask:
    """Every token sees every token [BERT, sec. 3]."""
    return of_steps(of_many.bidirectional(_lengths("length", length)), "full")


def left_to_right(length: int) -> AttentionMask:
    """Token i sees tokens 0 to i; also called causal."""
    return of_steps(of_many.left_to_right(_lengths("length", length)), "causal" if length > 1 else "full")


def right_to_left(length: int) -> AttentionMask:
    """Token i sees tokens i to length - 1 [UniLM, sec. 2.3]."""
    return of_steps(of_many.right_to_left(_lengths("length", length)), "mixed" if length > 1 else "full")


def seq2seq(source_length: int, target_length: int) -> AttentionMask:
    """The source sees itself, target token i the source and target tokens 0 to i [UniLM, sec. 2.3]; also: prefix LM."""
    source, target = _lengths("source_length", source_length), _lengths("target_length", target_length)
    # A source of one token makes a triangle too.
    structure = "mixed" if source_length > 1 else "causal"
    full = target_length == 0 or source_length + target_length == 1
    return of_steps(of_many.seq2seq(source, target), "full" if full else structure)


def permutation(steps: Sequence[int] | np.ndarray | torch.Tensor) -> AttentionMask:
    """The content stream of a permutation language model [XLNet, sec. 2.3].

    A token sees itself, what is given and what has an earlier or the same step; what is given sees only that.
    :meth:`AttentionMask.query_stream` makes the stream that predicts.

    Args:
        steps: one integer per token: GIVEN (0), or the step from 1 on at which it appears; steps may tie.

    Raises:
        ValueError: a step is negative.
    """
    return of_steps(of_many.permutation(*_steps("steps", steps, NOWHERE - 1)))


def sliding_window(length: int, left: int | None, right: int | None = 0) -> AttentionMask:
    """Token i sees tokens i - left to i + right: with ``right`` 0 a causal window [Mistral, sec. 2], else two-sided.

    Through several layers a token reads further: each layer adds ``left`` tokens before it and ``right`` behind it. So
    visibility is transitive only where each side is 0 or None, or a text is too short for its window to end.

    Args:
        left, right: how many neighbours on each side; None for all of them.

    Raises:
        ValueError: a number is negative.
    """
    for name, reach in (("left", left), ("right", right)):
        if reach is not None:
            check_length(name, reach)
    return of_steps(of_many.sliding_window(_lengths("length", length), left, right))


def block_causal(length: int, size: int) -> AttentionMask:
    """Token i sees its own block of ``size`` tokens and all blocks before it [BD3LM, sec. 3].

    Raises:
        ValueError: ``length`` is negative or ``size`` below 1.
    """
    return of_steps(of_many.block_causal(_lengths("length", length), check_size("size", size)))


def block_diffusion(length: int, size: int) -> AttentionMask:
    """A text of ``length`` tokens twice, noised and then clean, in blocks of ``size``: block diffusion [BD3LM, sec. 3].

    A noised block sees itself and the clean blocks before it; a clean block sees itself and the clean blocks before it.

    Raises:
        ValueError: ``length`` is negative or ``size`` below 1.
    """
    return of_steps(of_many.block_diffusion(_lengths("length", length), check_size("size", size)))


def pseudo_masked(steps: Sequence[int] | np.ndarray | torch.Tensor) -> AttentionMask:
    """Masked and partially autoregressive prediction in one row [UniLM v2, sec. 2.2].

    The row holds the n tokens of the corrupted text and behind them, step after step, the [P] copies of the step's
    tokens and then their originals, both in the order of the text. Text and [MASK] see each other; the [P] copies and
    the originals of a step see these, and the originals of earlier steps; copies see the copies of their own step too,
    originals the originals.

    Args:
        steps: (n,), GIVEN (0) for a token that is not predicted, else the step from 1 on at which its span is.

    Raises:
        ValueError: a step is negative.
    """
    return of_steps(of_many.pseudo_masked(*_steps("steps", steps, NOWHERE // 2 - 1)))


def tree(parents: Sequence[int] | np.ndarray | torch.Tensor) -> AttentionMask:
    """A token sees itself and its ancestors: several continuations of shared prefixes, or a tree of drafts.

    Args:
        parents: one integer per token, the index of its parent, or -1 for a root.

    Raises:
        ValueError: a parent does not exist, or a token is its own ancestor.
    """
    of_tokens, lengths = _checked("parents", parents, -1)
    if of_tokens.size and of_tokens.max() >= len(of_tokens):
        raise ValueError(f"parents must lie within the {len(of_tokens)} tokens, or be -1, got {of_tokens.max()}")
    return of_steps(of_many.tree(of_tokens, lengths))


#: Names that others use.
causal = left_to_right
prefix_lm = seq2seq

#: Name -> mask of one text, or of a text and a second one behind it, from their lengths in tokens.
TEXT_MASKS: dict[str, Callable[..., AttentionMask]] = {
    "bidirectional": lambda *lengths: bidirectional(sum(lengths)),
    "left_to_right": lambda *lengths: left_to_right(sum(lengths)),
    "right_to_left": lambda *lengths: right_to_left(sum(lengths)),
    "seq2seq": lambda source, target=0: seq2seq(source, target),
}


def of_steps(steps: Steps, structure: str | None = None) -> AttentionMask:
    """The mask of one sequence, in int64; ``structure`` where it is known."""
    if structure is None:
        structure = structure_of(steps.query_step, steps.key_start, steps.key_stop)
    step = torch.from_numpy(steps.query_step)
    same = steps.key_start is steps.query_step
    return AttentionMask.unchecked(
        query_step=step,
        key_start=step if same else torch.from_numpy(steps.key_start),
        key_stop=torch.from_numpy(steps.key_stop),
        document_ends=torch.from_numpy(steps.ends),
        structure=structure,
    )


def _lengths(name: str, length: int) -> Integers:
    return np.array([check_length(name, length)])


def _steps(name: str, values: Sequence[int] | np.ndarray | torch.Tensor, most: int) -> tuple[Integers, Integers]:
    """int64 (n,) steps of one sequence, up to ``most``, and its length, (1,)."""
    array, length = _checked(name, values, GIVEN)
    if array.size:
        check_steps(name, int(array.max()), most)
    return array, length


def _checked(name: str, values: Sequence[int] | np.ndarray | torch.Tensor, least: int) -> tuple[Integers, Integers]:
    """int64 (n,) values of one sequence, and its length, (1,)."""
    array = check_integers(name, values)
    if array.size and array.min() < least:
        raise ValueError(f"{name} must be at least {least}, got {array.min()}")
    return array, np.array([len(array)])
