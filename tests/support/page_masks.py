"""Random masks for the interactive page, and what Python says of them."""

from __future__ import annotations

import inspect

import numpy as np
import torch

from unified import masks
from unified.masks.tiles import visible_tiles

EACH = 100  # random masks of every builder
#: Every builder of the library, by its own name; two have a second one.
BUILDERS = {
    function.__name__: function
    for function in (vars(masks)[name] for name in masks.__all__)
    if inspect.isfunction(function) and function.__module__ == "unified.masks.builders"
}

#: What the page says of one case; it uses the functions of the page and is run in each engine.
ANSWER = """
function vectorsOf(mask) {
  return [mask.queryStep, mask.keyStart, mask.keyStop, mask.documentEnds, mask.ownKeys];
}
function recovered(dense, keyCount) {
  try { return vectorsOf(maskOfDense(dense, keyCount)); } catch (error) { return error.message; }
}
function changedOrRefused(row, changes) {
  try { return changedMask(row, changes); } catch (error) { return error.message; }
}
function leaksOf(mask, predictions) {
  return findLeaks(mask, predictions).map((leak) => [leak.query, leak.labelKey, leak.through, leakText(leak)]);
}
function answer(one) {
  if (one.dense) {
    const found = recovered(one.dense, one.dense[0].length);
    if (typeof found === "string") return { recovered: found };
    const mask = maskOfDense(one.dense, one.dense[0].length);
    return { recovered: found, transitive: isTransitive(mask), leaks: leaksOf(mask, one.predictions) };
  }
  const built = one.documents.map(([name, values]) => buildMask(name, values));
  const row = one.length === null ? built[0] : packMasks(built, one.length);
  const mask = one.changes ? changedOrRefused(row, one.changes) : row;
  if (typeof mask === "string") return { refused: mask };
  return {
    vectors: vectorsOf(mask),
    dense: denseOf(mask),
    tiles: one.changes ? null : tilesOf(mask, one.tileSize),
    transitive: isTransitive(mask),
    leaks: leaksOf(mask, one.predictions),
    recovered: recovered(denseOf(mask), mask.keyStart.length),
  };
}
"""


# ---------------------------------------------------------------------- random masks, and what Python says of them


def random_values(rng: np.random.Generator, name: str) -> list:
    """Arguments of a builder, in order."""

    def integer(least: int, most: int) -> int:
        return int(rng.integers(least, most + 1))

    length = integer(0, 10)
    if name in ("bidirectional", "left_to_right", "right_to_left"):
        return [length]
    if name == "seq2seq":
        return [integer(0, 6), integer(0, 6)]
    if name == "sliding_window":
        return [length, *(None if rng.random() < 0.15 else integer(0, 5) for _ in range(2))]
    if name in ("block_causal", "block_diffusion"):
        return [length, integer(1, 4)]
    if name == "tree":
        order = rng.permutation(length).tolist()  # parents stand anywhere
        parents = [-1] * length
        for n, token in enumerate(order):
            parents[token] = -1 if n == 0 or rng.random() < 0.2 else order[integer(0, n - 1)]
        return [parents]
    return [rng.integers(0, integer(1, 6), length).tolist()]


def random_changes(rng: np.random.Generator, mask: masks.AttentionMask) -> dict:
    """What `unified masks show` can add to a mask."""
    later = np.flatnonzero(~mask.given_keys().numpy())
    stream = rng.permutation(later)[:4].tolist() if len(later) and rng.random() < 0.4 else None
    return {
        "queryStream": stream,
        "sinks": int(rng.integers(0, 4)) if rng.random() < 0.5 else 0,
        "memory": int(rng.integers(0, 4)) if rng.random() < 0.5 else 0,
        "withoutSelf": bool(rng.random() < 0.3),
    }


def changed(mask: masks.AttentionMask, changes: dict) -> masks.AttentionMask:
    if changes["queryStream"]:
        mask = mask.query_stream(changes["queryStream"])
    if changes["sinks"]:
        mask = mask.with_sinks(changes["sinks"])
    if changes["memory"]:
        mask = mask.with_memory(changes["memory"])
    return mask.without_self() if changes["withoutSelf"] else mask


def vectors(mask: masks.AttentionMask) -> list:
    tensors = (mask.query_step, mask.key_start, mask.key_stop, mask.document_ends, mask.own_keys)
    return [tensor.tolist() for tensor in tensors]


def recovered(dense: torch.Tensor) -> list | str:
    try:
        return vectors(masks.from_dense(dense))
    except ValueError as error:
        return str(error)


def answer(mask: masks.AttentionMask, case: dict) -> dict:
    """What the page has to say of a case."""
    kinds = None
    if case["changes"] is None:
        some, full = visible_tiles(mask, case["tileSize"])
        kinds = [
            [("full" if f else "partial" if s else "empty") for s, f in zip(*rows, strict=True)]
            for rows in zip(some[0].tolist(), full[0].tolist(), strict=True)
        ]
    return {
        "vectors": vectors(mask),
        "dense": mask.dense().tolist(),
        "tiles": kinds,
        "transitive": masks.is_transitive(mask),
        "leaks": leaks_of(mask, case["predictions"]),
        "recovered": recovered(mask.dense()),
    }


def leaks_of(mask: masks.AttentionMask, pairs: list[list[int]]) -> list:
    found = masks.leaks(mask, [query for query, _ in pairs], [key for _, key in pairs])
    return [[leak.query, leak.label_key, list(leak.through), str(leak)] for leak in found]


def random_matrix(rng: np.random.Generator) -> np.ndarray:
    """Any bool matrix, or one of intervals; of tokens that are query and key at once, or of queries over keys."""
    queries, keys = rng.integers(1, 13, 2)
    keys = queries if rng.random() < 0.6 else keys
    if rng.random() < 0.4:
        return rng.random((queries, keys)) < rng.choice([0.15, 0.3, 0.5, 0.8])
    steps = int(rng.integers(2, 13))
    step, start = rng.integers(0, steps, (queries, 1)), rng.integers(0, steps, (1, keys))
    return (start <= step) & (step < start + rng.integers(0, 7, (1, keys)))


def matrix_case(rng: np.random.Generator) -> tuple[dict, dict]:
    dense = random_matrix(rng)
    case = {"dense": dense.tolist(), "predictions": []}
    said = {"recovered": recovered(torch.from_numpy(dense))}
    if isinstance(said["recovered"], list):
        mask = masks.from_dense(dense)
        case["predictions"] = predictions(rng, mask)
        said |= {"transitive": masks.is_transitive(mask), "leaks": leaks_of(mask, case["predictions"])}
    return case, said


def predictions(rng: np.random.Generator, mask: masks.AttentionMask) -> list[list[int]]:
    if not mask.query_length or not mask.key_length:
        return []
    count = int(rng.integers(1, 8))
    queries, keys = rng.integers(0, mask.query_length, count), rng.integers(-1, mask.key_length, count)
    return np.stack([queries, keys], axis=1).tolist()


def random_cases(rng: np.random.Generator, kind: str) -> tuple[list[dict], list[dict]]:
    """Cases, and what Python says of them: of a builder, of packed rows ("pack"), or of matrices ("matrix")."""
    cases, answers = [], []
    for _ in range(EACH):
        if kind == "matrix":
            case, said = matrix_case(rng)
            cases.append(case)
            answers.append(said)
            continue
        names = (
            [kind] if kind != "pack" else [str(name) for name in rng.choice(list(BUILDERS), int(rng.integers(0, 4)))]
        )
        documents = [(name, random_values(rng, name)) for name in names]
        built = [BUILDERS[name](*values) for name, values in documents]
        length = None
        mask = built[0] if built else None
        if kind == "pack":
            length = sum(one.key_length for one in built) + int(rng.integers(0, 5))
            mask = masks.pack(built, length)
        changes = random_changes(rng, mask) if kind != "pack" and rng.random() < 0.5 else None
        case = {"documents": documents, "length": length, "changes": changes, "tileSize": int(rng.integers(1, 6))}
        cases.append(case)
        try:
            mask = mask if changes is None else changed(mask, changes)
        except ValueError as error:
            answers.append({"refused": str(error)})
        else:
            case["predictions"] = predictions(rng, mask)
            answers.append(answer(mask, case))
    return cases, answers
