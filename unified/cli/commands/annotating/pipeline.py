"""Options of the commands that find named entities in a task's texts by a spaCy pipeline."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from unified.errors import UnifiedError

if TYPE_CHECKING:
    from unified.corpus.annotate import AnnotationSource


def add_pipeline_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the spaCy pipeline that finds named entities."""
    parser.add_argument(
        "--spacy",
        metavar="PIPELINE",
        help="spaCy pipeline that finds named entities in the task's texts, for a model whose attention reads them: a "
        "name or a folder",
    )
    parser.add_argument(
        "--spacy-code", metavar="MODULE", help="Python module that registers the spaCy pipeline's own components"
    )


def entity_source(args: argparse.Namespace) -> AnnotationSource | None:
    """The pipeline of the options; None where no pipeline is given.

    Raises:
        UnifiedError: --spacy-code stands without --spacy.
    """
    from unified.corpus.annotate import AnnotationSource
    from unified.tasks.heads.named_entities import ENTITIES

    require_pipeline(args)
    return None if args.spacy is None else AnnotationSource((ENTITIES,), args.spacy, args.spacy_code)


def require_pipeline(args: argparse.Namespace) -> None:
    """Refuse options of a pipeline without a pipeline.

    Raises:
        UnifiedError: --spacy-code stands without --spacy.
    """
    if args.spacy is None and args.spacy_code is not None:
        raise UnifiedError(f"--spacy-code {args.spacy_code} belongs to a pipeline; give --spacy PIPELINE too")
