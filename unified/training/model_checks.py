"""Refuses objectives that do not go with the data or the model, before anything is trained."""

from __future__ import annotations

from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.objectives.mixture import Mixture


def require_content(mixture: Mixture, objectives: str | None, data: str, paired: bool) -> None:
    """Refuse objectives for pairs where the data hold documents, and the other way round.

    Args:
        objectives: the option that names ``mixture``.
        data: the data folder.
        paired: whether it holds pairs.

    Raises:
        UnifiedError: names the option and the folder.
    """
    if mixture.paired != paired:
        content = "source/target pairs" if paired else "documents"
        raise UnifiedError(f"--objectives {objectives!r} does not fit {data}, which holds {content}")


def require_a_row(max_tokens: int, tokens_per_sample: int) -> None:
    """Refuse batches that are too small for one packed row.

    Raises:
        UnifiedError: names both options.
    """
    if max_tokens < tokens_per_sample:
        raise UnifiedError(
            f"--max-tokens {max_tokens} is less than one row of --tokens-per-sample {tokens_per_sample}; "
            "raise the first or lower the second"
        )


def require_served(config: TransformerConfig, mixture: Mixture) -> None:
    """Refuse objectives that need what a model lacks.

    Raises:
        UnifiedError: names the objective, what it needs, and the option that gives it.
    """
    for name, objective in mixture:
        if config.reads_entities and not objective.mark_entities:
            raise UnifiedError(
                f"--sublayers {config.sublayers}: entity-aware attention reads which tokens lie within named "
                f"entities, and objective {name} does not say; anna(mark_entities=True) does, on "
                "documents of `unified prepare --annotate entities`"
            )
        if objective.mark_entities and not config.reads_entities:
            raise UnifiedError(
                f"objective {name} marks named entities, which no attention of the model reads; pass "
                "--sublayers entity,feed_forward, or leave mark_entities out"
            )
    for name, objective in mixture:
        if objective.query_stream and config.positions != "relative":
            raise UnifiedError(
                f"objective {name} predicts by a query stream, which needs a model with relative "
                f"positions, not {config.positions!r}; take one of the models xlnet_*, or pass --positions relative"
            )
        wanted = objective.token_types
        if config.token_types < wanted:
            raise UnifiedError(
                f"objective {name} takes {wanted} token types, the model has {config.token_types}; "
                f"pass --token-types {wanted}"
            )
