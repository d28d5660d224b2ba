"""Compares the examples of an objective with its declarations."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from unified.arguments import counted
from unified.data.example import Example, Examples, query_stream_problem
from unified.data.randomness import Draws
from unified.data.targets import BOUNDARY, EXTRACTIVE, NEXT_SENTENCE, TOKEN
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens
from unified.objectives.arrays import PER_TOKEN, WrongExample, check_arrays, check_indices, labels_of
from unified.objectives.contract import Objective
from unified.objectives.leaks import leak_of_copies

#: Examples of a run that are looked at: enough to see every branch of an objective, few enough to cost nothing.
FIRST_EXAMPLES = 8


def check_first_examples(objective: Objective, texts: Texts, draws: Draws, positions: int) -> None:
    """Makes examples and refuses them where they contradict the objective's declarations, or leak labels.

    Refused are also examples that are others when they are made again, and an objective that changes its texts.

    Args:
        draws: random numbers of the examples.
        positions: the number of position ids that the model has; every id must be below it.

    Raises:
        WrongExample: names the first thing that is wrong.
    """
    given = [array.copy() for array in _arrays(texts)]
    examples = objective.examples(texts, draws)
    check_examples(objective, texts, examples, positions)
    if not all(map(np.array_equal, given, _arrays(texts))):
        raise WrongExample("changes the text that it is given")
    if not all(map(_equal, examples.split(), objective.examples(texts, draws).split())):
        raise WrongExample(
            "makes another example of the same text and the same random numbers; take them from the generator that it "
            "is given, and from nowhere else"
        )
    problem = leak_of_copies(objective, texts, draws)
    if problem:
        raise WrongExample(problem)


def check_examples(objective: Objective, texts: Texts, examples: Examples, positions: int) -> None:
    """Refuses examples that contradict the objective's declarations.

    Args:
        texts: what the examples were made of.
        positions: the number of position ids that the model has; every id must be below it.

    Raises:
        WrongExample: names the first thing that is wrong.
    """
    if len(examples) != len(texts):
        raise WrongExample(f"made {counted(len(examples), 'example')} of {counted(len(texts), 'text')}")
    _check_arrays(objective, examples)
    tokens = texts.lengths.sum(0)
    check_lengths(objective, examples, objective.lengths(tokens), tokens)
    for example in examples.split():
        _check_ids(objective, example, texts.special, positions)
        _check_predictions(objective, example, texts.special)
    check_sentinels(objective, examples, texts)


def check_lengths(objective: Objective, examples: Examples, allowed: np.ndarray, tokens: np.ndarray) -> None:
    """Refuse examples longer than planned.

    Args:
        allowed: int64 (n,), tokens that each example may have.
        tokens: int64 (n,), tokens of each text.

    Raises:
        WrongExample: names the lengths.
    """
    too_long = np.flatnonzero(examples.lengths > allowed)
    if too_long.size:
        one = too_long[0]
        made = f"made {counted(examples.lengths[one], 'token')} of {tokens[one]}"
        raise WrongExample(f"{made}; its special_tokens, or lengths, allows {allowed[one]}")


def check_sentinels(objective: Objective, examples: Examples, texts: Texts) -> None:
    """Refuse labels that are sentinels which the objective did not declare.

    A softmax over the declared symbols alone would not have them.

    Args:
        texts: what the examples were made of.

    Raises:
        WrongExample: names the sentinel.
    """
    if TOKEN not in examples.targets:
        return
    labels = labels_of(TOKEN, examples.targets[TOKEN])
    special, declared = texts.special, objective.target_sentinels(int(texts.lengths.sum(0).max()))
    first = special.first_sentinel + declared
    beyond = labels[(labels >= first) & (labels < special.first_sentinel + special.sentinel_count)]
    if beyond.size:
        beyond = np.setdiff1d(beyond, texts.tokens)  # those of the text itself may be predicted
    if beyond.size:
        sentinel = int(beyond[0]) - special.first_sentinel
        raise WrongExample(f"has sentinel {sentinel} as a target; its target_sentinels allows {declared}")


def _check_arrays(objective: Objective, examples: Examples) -> None:
    """Refuse arrays that do not fit together, hold anything but whole numbers, or are of heads not declared."""
    strange = sorted({*examples.objectives} - {objective.name})
    if strange:
        raise WrongExample(f"made an example of the objective {strange[0]!r}; its name declares {objective.name!r}")
    for name in PER_TOKEN:
        array = getattr(examples, name)
        if array.dtype != np.int64:
            raise WrongExample(f"made {name} of dtype {array.dtype}; expected int64")
    for head, targets in examples.targets.items():
        if len(targets.output_indices) and head not in objective.heads:
            raise WrongExample(f"makes predictions for the head {head!r}; its heads declares {objective.heads}")
    check_arrays(examples, objective.own_heads)
    for head, targets in examples.targets.items():
        for name, array in (("weights", targets.weights), ("divisors", targets.divisors)):
            if array is not None and not (np.isfinite(array) & (array >= 0)).all():
                raise WrongExample(f"made {name} for the head {head!r} that are negative or not finite")
        if targets.divisors is not None and len(targets) and not targets.divisors.any():
            raise WrongExample(f"made divisors for the head {head!r} that are all 0")


def _check_ids(objective: Objective, example: Example, special: SpecialTokens, positions: int) -> None:
    """Refuse tokens, labels, token types and positions outside of their tables."""
    vocabulary = special.first_sentinel + special.sentinel_count
    tables = {
        "tokens": (vocabulary, "the vocabulary has {}"),
        "token_types": (objective.token_types, "its token_types declares {}"),
        "positions": (positions, "rows have {}"),
    }
    for name, (size, known) in tables.items():
        outside = _outside(getattr(example, name), size)
        if outside.size:
            raise WrongExample(f"has {outside[0]} among its {name}; {known.format(size)}")


def _check_predictions(objective: Objective, example: Example, special: SpecialTokens) -> None:
    """Refuse predictions outside of the example, and labels and inputs outside of their tables."""
    vocabulary = special.first_sentinel + special.sentinel_count
    of_vocabulary, of_two = (vocabulary, "the vocabulary has {}"), (2, "expected 0 or 1")
    tables = {TOKEN: of_vocabulary, BOUNDARY: of_vocabulary, NEXT_SENTENCE: of_two, EXTRACTIVE: of_two}
    check_indices(example)
    for head, targets in example.targets.items():
        if head in tables:
            size, known = tables[head]
            outside = _outside(labels_of(head, targets), size)
            if outside.size:
                what = f"among the labels of the head {head!r}"
                raise WrongExample(f"has {outside[0]} {what}; {known.format(size)}")
    if TOKEN in example.targets and (np.diff(example.targets[TOKEN].output_indices[:, 0]) <= 0).any():
        raise WrongExample("has indices of the head 'token' that do not increase")
    if BOUNDARY in example.targets:
        outside = _outside(example.targets[BOUNDARY].inputs["distances"], objective.boundary_offsets)
        if outside.size:
            limit = f"boundary_offsets allows distances below {objective.boundary_offsets}"
            raise WrongExample(f"has the distance {outside[0]} for the head 'boundary'; its {limit}")
    if example.query_stream and not objective.query_stream:
        raise WrongExample("makes examples with a query stream; its query_stream declares none")
    problem = query_stream_problem(example)
    if problem:
        raise WrongExample(f"makes examples whose query stream cannot be made: {problem}")
    if objective.mark_entities and example.entities is None:
        raise WrongExample("declares mark_entities, and its examples have no entities")


def _outside(values: np.ndarray, size: int) -> np.ndarray:
    return values[(values < 0) | (values >= size)]


def _arrays(texts: Texts) -> list[np.ndarray]:
    known = [] if texts.word_starts is None else [texts.word_starts]
    return [texts.tokens, texts.lengths, *known, *(spans.bounds for spans in texts.spans.values())]


def _equal(one: Example, other: Example) -> bool:
    return all(np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(Example))
