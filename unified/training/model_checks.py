"""Refuses objectives that do not go with data or model before anything is trained; adapts a new model to them."""

from __future__ import annotations

from dataclasses import replace

from unified.arguments import Called, as_option
from unified.errors import UnifiedError
from unified.generation.schemes import SCHEMES
from unified.model import TransformerConfig
from unified.objectives.mixture import Mixture


def require_content(
    mixture: Mixture, objectives: str | None, data: str, paired: bool, called: Called = as_option
) -> None:
    """Refuse objectives for pairs where the data hold documents, and the other way round.

    Args:
        objectives: what names ``mixture``.
        data: the data folder.
        paired: whether it holds pairs.
        called: as for :func:`unified.arguments.check_settings_of`, here and in the other functions.

    Raises:
        UnifiedError: names the option or parameter and the folder.
    """
    if mixture.paired != paired:
        content = "source/target pairs" if paired else "documents"
        raise UnifiedError(f"{called('objectives')} {objectives!r} does not fit {data}, which holds {content}")


def require_positions(config: TransformerConfig, tokens_per_sample: int, called: Called = as_option) -> None:
    """Refuse rows longer than the position table of a model.

    Raises:
        UnifiedError: names both options.
    """
    if config.positions == "learned" and config.max_positions < tokens_per_sample:
        row, table = called("tokens_per_sample"), called("max_positions")
        raise UnifiedError(f"{row} {tokens_per_sample} exceeds {table} {config.max_positions}")


def require_served(config: TransformerConfig, mixture: Mixture, called: Called = as_option) -> None:
    """Refuses objectives that need a part which the model lacks.

    Raises:
        UnifiedError: names the objective, what it needs, and the option that gives it.
    """
    for name, objective in mixture:
        if config.reads_entities and not objective.mark_entities:
            raise UnifiedError(
                f"{called('sublayers')} {config.sublayers}: entity-aware attention reads which tokens lie within named "
                f"entities, and objective {name} does not say; anna(mark_entities=True) does, on "
                "documents of `unified prepare --annotate entities`"
            )
        if objective.mark_entities and not config.reads_entities:
            raise UnifiedError(
                f"objective {name} marks named entities, which no attention of the model reads; pass "
                f"{called('sublayers')} entity,feed_forward, or leave mark_entities out"
            )
    for name, objective in mixture:
        if objective.query_stream and not config.positions_in_attention:
            raise UnifiedError(
                f"objective {name} predicts by a query stream, which needs a model with relative or rotary "
                f"positions, not {config.positions!r}; take one of the models xlnet_* or modern_*, or pass "
                f"{called('positions')} relative or rotary"
            )
        wanted = objective.token_types
        if not config.has_token_types(wanted):
            raise UnifiedError(
                f"objective {name} takes {wanted} token types, the model has {config.token_types}; "
                f"pass {called('token_types')} {wanted}"
            )


def adapted(config: TransformerConfig, mixture: Mixture, called: Called = as_option) -> TransformerConfig:
    """A model with the mask and the heads that the objectives decide.

    Heads that ``config`` asks for stay, and one may reach further than the objectives do.

    Raises:
        UnifiedError: the model lacks what an objective needs, or has another mask; names the option.
    """
    if config.token_head == "none":
        raise UnifiedError(
            f"{called('token_head')} none: language modelling predicts tokens; leave it out, and the head that the "
            "checkpoint lacks is new"
        )
    require_served(config, mixture, called)
    if config.mask not in (mixture.mask, TransformerConfig.mask):
        raise UnifiedError(
            f"{called('mask')} {config.mask}: the objectives {mixture} decide who sees whom; it is for tasks of "
            "understanding"
        )
    reach = max(objective.boundary_offsets for objective in mixture.objectives)
    extractive = any("extractive" in objective.heads for objective in mixture.objectives)
    return replace(
        config,
        mask=mixture.mask,
        boundary_offsets=max(config.boundary_offsets, reach),
        sentence_head=config.sentence_head or extractive,
    )


def scheme_of(config: TransformerConfig, mixture: Mixture) -> str:
    """The decoding scheme of a model that learns these objectives, a name of :data:`SCHEMES` or "nothing".

    The first objective decides that declares a scheme for which the model has token types.
    """
    declared = (objective.writes for objective in mixture.objectives if objective.writes != "nothing")
    schemes = [scheme for scheme in declared if config.has_token_types(SCHEMES[scheme].token_types)]
    return schemes[0] if schemes and not config.reads_entities else "nothing"
