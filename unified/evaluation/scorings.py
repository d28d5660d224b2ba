"""Ways of scoring whole texts: which tokens a model is asked for, and what it sees then.

The score of a text is the sum of the log-probabilities of its tokens, special symbols not counted. Scores of several
scorings are added: ``left_to_right+right_to_left``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from unified.data.targets import TOKEN
from unified.errors import UnifiedError
from unified.evaluation.names import scoring_names
from unified.evaluation.patterns import HiddenTokens, Sampling, each_alone, in_orders, masked_at_random, orders
from unified.evaluation.predictions import (
    Predictions,
    SequenceForm,
    TokenizedTexts,
    causal_predictions,
    hidden_predictions,
    ordered_predictions,
    sentinel_predictions,
    target_predictions,
)
from unified.generation.schemes import NO_ENTITIES_IN_WRITING
from unified.inference.language_model import UnifiedLM
from unified.masks import GIVEN
from unified.masks.steps import Integers
from unified.objectives import Objective
from unified.objectives.joined_segments import TARGET
from unified.objectives.parse import library_objectives


@dataclass(frozen=True)
class Scoring:
    """One way of scoring texts.

    Attributes:
        name: in commands.
        predictions: makes the predictions of texts.
        cost: tokens that the model reads for a text of so many tokens, of which so many are scored, with so many draws.
        draws: True if something is drawn at random.
        from_one_side: True if nothing behind a token is seen.
        from_behind: True if nothing before a token is seen, so that its context lies behind it.
        by_queries: True if a query stream can ask.
        by_sentinels: True if a sentinel asks, in a source block and a target block.
    """

    name: str
    predictions: Callable[[TokenizedTexts, SequenceForm, Sampling], Predictions]
    cost: Callable[[int, int, int], int]
    draws: bool = False
    from_one_side: bool = False
    from_behind: bool = False
    by_queries: bool = True
    by_sentinels: bool = False


#: Says which tokens to hide, of a text of so many tokens behind so much context.
Pattern = Callable[[int, int, Sampling], HiddenTokens]


def _hidden(pattern: Pattern, texts: TokenizedTexts, sampling: Sampling) -> tuple[Integers, HiddenTokens]:
    """The text of each example, and the hidden tokens of all examples of all texts, one after another."""
    pairs = zip(texts.extents.lengths.tolist(), texts.given.tolist(), strict=True)
    each = [pattern(length, given, sampling) for length, given in pairs]
    members = np.arange(len(each)).repeat([one.count for one in each])
    hidden, asked = np.concatenate([one.hidden for one in each]), np.concatenate([one.asked for one in each])
    known = [one.weights for one in each if one.weights is not None]
    return members, HiddenTokens(len(members), hidden, asked, np.concatenate(known) if known else None)


def _hiding(
    pattern: Pattern, texts: TokenizedTexts, form: SequenceForm, sampling: Sampling, shifted: bool = False
) -> Predictions:
    members, found = _hidden(pattern, texts, sampling)
    return hidden_predictions(texts, form, members, found.hidden, found.asked, found.weights, shifted)


def _infilling(texts: TokenizedTexts, form: SequenceForm, sampling: Sampling) -> Predictions:
    members, found = _hidden(each_alone, texts, sampling)
    return sentinel_predictions(texts, form, members, found.hidden)


def _left_to_right(texts: TokenizedTexts, form: SequenceForm, sampling: Sampling) -> Predictions:
    if form.target_next:
        return target_predictions(texts, form)
    if form.causal_next:
        return causal_predictions(texts, form)
    members, order = np.arange(len(texts.extents)), 1 + texts.extents.within
    if form.query_stream:
        order = np.where(texts.scored, order, GIVEN)  # as generation reads prompts
    return ordered_predictions(texts, form, members, order, "left_to_right")


def _right_to_left(texts: TokenizedTexts, form: SequenceForm, sampling: Sampling) -> Predictions:
    members, lengths = np.arange(len(texts.extents)), texts.extents.lengths
    return ordered_predictions(texts, form, members, lengths.repeat(lengths) - texts.extents.within, "right_to_left")


def _permutation(texts: TokenizedTexts, form: SequenceForm, sampling: Sampling) -> Predictions:
    if not form.query_stream:
        return _hiding(in_orders, texts, form, sampling)
    members = np.arange(len(texts.extents)).repeat(sampling.draws)
    pairs = zip(texts.extents.lengths.tolist(), texts.given.tolist(), strict=True)
    order = np.concatenate([_steps_of_draws(length, given, sampling) for length, given in pairs])
    weights = np.full(sampling.draws * int(texts.scored.sum()), 1 / sampling.draws)
    return ordered_predictions(texts, form, members, order, "left_to_right", weights)


def _steps_of_draws(length: int, given: int, sampling: Sampling) -> Integers:
    """Steps at which tokens appear, int64 (draws x length,), one draw after another: the context from the start."""
    steps = np.zeros((sampling.draws, length), dtype=np.int64)
    steps[:, given:] = 1 + orders(max(length - given, 0), sampling)
    return steps.ravel()


def _one_pass(length: int, scored: int, draws: int) -> int:
    return length + scored + 3


def _copy_each(length: int, scored: int, draws: int) -> int:
    return scored * (length + 2)


def _pair_each(length: int, scored: int, draws: int) -> int:
    return scored * (length + 4)


def _copies_in_orders(length: int, scored: int, draws: int) -> int:
    return draws * scored * (length + 2)


def _copy_each_draw(length: int, scored: int, draws: int) -> int:
    return draws * (length + 2)


#: All ways of scoring by name; :data:`unified.evaluation.names.SENTENCES` says what each does.
SCORINGS: dict[str, Scoring] = {
    scoring.name: scoring
    for scoring in (
        Scoring("left_to_right", _left_to_right, _one_pass, from_one_side=True),
        Scoring("right_to_left", _right_to_left, _one_pass, from_behind=True),
        Scoring("pseudo_likelihood", partial(_hiding, each_alone), _copy_each),
        Scoring("shifted", partial(_hiding, each_alone, shifted=True), _copy_each, by_queries=False),
        Scoring("infilling", _infilling, _pair_each, by_queries=False, by_sentinels=True),
        Scoring("permutation", _permutation, _copies_in_orders, draws=True),
        Scoring("diffusion", partial(_hiding, masked_at_random), _copy_each_draw, draws=True),
    )
}
#: Scorings that a model has learnt, by its decoding scheme, where no checkpoint names its objectives.
_BY_DECODING = {
    "left_to_right": ("left_to_right", "right_to_left", "pseudo_likelihood"),
    "cloze": ("left_to_right", "right_to_left", "pseudo_likelihood"),
    "next": ("left_to_right",),
    "permutation": ("left_to_right", "right_to_left", "pseudo_likelihood", "permutation"),
    "nothing": ("pseudo_likelihood",),
}


def scorings_named(text: str) -> list[Scoring]:
    """The scorings that a text such as ``both`` or ``left_to_right+pseudo_likelihood`` names.

    Raises:
        UnifiedError: a name is unknown, or stands there twice.
    """
    return [SCORINGS[name] for name in scoring_names(text)]


def require_scorable(lm: UnifiedLM, scoring: Scoring) -> None:
    """Refuse a scoring that a model cannot do.

    Raises:
        UnifiedError: says why.
    """
    lm.model.head(TOKEN)  # refuses a model without one
    if lm.others:
        raise UnifiedError(f"texts are scored by a single model; this is an ensemble of {1 + len(lm.others)}")
    if lm.model.config.reads_entities:
        raise UnifiedError(NO_ENTITIES_IN_WRITING)
    if form_of(lm, scoring).query_stream and not scoring.by_queries:
        before = "sentinel" if scoring.by_sentinels else "symbol"
        raise UnifiedError(
            f"scoring {scoring.name!r} reads a token at the {before} before it, and the model predicts by a query "
            "stream (XLNet); take 'pseudo_likelihood'"
        )
    if scoring.by_sentinels and not (lm.special.sentinel_count and lm.model.config.has_token_types(TARGET + 1)):
        raise UnifiedError(
            f"scoring {scoring.name!r} needs {TARGET + 1} token types and a sentinel; the model has "
            f"{lm.model.config.token_types} and its dictionary {lm.special.sentinel_count}; take 'pseudo_likelihood'"
        )
    if lm.model.config.attn_type == "uni" and not scoring.from_one_side:
        raise UnifiedError(
            f"scoring {scoring.name!r} lets tokens see what stands behind them, which the model's attention "
            "(attn_type 'uni') does not; take 'left_to_right'"
        )


def form_of(lm: UnifiedLM, scoring: Scoring) -> SequenceForm:
    """The form in which a model is asked: that of the first of its objectives that teaches the scoring.

    Where no objective is known to teach it, the decoding scheme and the mask of the model decide.
    """
    for objective in _objectives(lm)[0]:
        if scoring.name in objective.scorings:
            return SequenceForm.of(lm, objective.writes, objective.mask)
    return SequenceForm.of(lm, lm.writes, lm.model.config.mask)


def special_tokens(lm: UnifiedLM, scoring: Scoring) -> int:
    """Number of special symbols, at most, that a model reads beside a text that it scores."""
    return 4 if scoring.by_sentinels else 3 if form_of(lm, scoring).target_next else 2


def longest_text(lm: UnifiedLM, scoring: Scoring) -> int:
    """Tokens of the longest text that a model can score: what its positions leave beside the special symbols."""
    return lm.model.config.position_limit - special_tokens(lm, scoring)


def learnt_scorings(lm: UnifiedLM) -> tuple[str, ...]:
    """Names of the scorings that a model has learnt: by its objectives, or where nothing names them as it writes."""
    objectives = _objectives(lm)[0]
    if not objectives:
        return _BY_DECODING[lm.writes]
    return tuple(dict.fromkeys(name for objective in objectives for name in objective.scorings))


def _objectives(lm: UnifiedLM) -> tuple[tuple[Objective, ...], tuple[str, ...]]:
    """The library's objectives that a model has learnt, and the import paths of the others, which stay unread."""
    try:
        return library_objectives(lm.objectives) if lm.objectives else ((), ())
    except UnifiedError:
        return (), ()


def unlearnt(lm: UnifiedLM, scoring: Scoring) -> str | None:
    """A note where nothing has taught the model to predict tokens as a scoring does; None where something has."""
    if scoring.name in learnt_scorings(lm):
        return None
    objectives, others = _objectives(lm)
    if others:
        return (
            f"scoring {scoring.name!r}: whether the model has learnt it is not known (what {', '.join(others)} teaches "
            "is not read, as no checkpoint chooses what is imported), so the scores may say little"
        )
    known = f"its objectives, {lm.objectives}, do" if objectives else f"a model that writes {lm.writes!r} does"
    return f"scoring {scoring.name!r}: the model has not learnt it ({known} not teach it), so the scores may say little"
